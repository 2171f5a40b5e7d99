"""`PartialDependence`: the mean prediction where one or two features have given values, over the whole background."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import check_bool, check_int, find_position
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.progress import Progress
from fouriershap._rows.frames import Rows, is_missing
from fouriershap._rows.inputs import BitEncoder, PoolEncoder, RulesEncoder
from fouriershap._rows.pool import Pool
from fouriershap.analysis import plotting
from fouriershap.analysis.explainer import (
    ExplainerLike,
    background_of,
    check_predictions,
    encode_rows,
    output_names,
    with_other_background,
)
from fouriershap.analysis.moments import Floats
from fouriershap.analysis.results import AnalysisResult, check_output

_POINTS, _POINTS_OF_PAIRS = 100, 20
_DECILES = np.arange(1, 10) / 10
_INDIVIDUAL_ROWS = 1 << 17  # that are predicted at a time


@dataclass(frozen=True, eq=False)
class Curve:
    """The partial dependence of one feature or of a pair.

    Attributes
    ----------
    features : tuple of str
        One name or two.
    grid : tuple of arrays
        Values of each feature, (n_points,): float64, or objects if they are labels.
    values : (n_points, n_outputs) or (n_points, n_points_2, n_outputs) float64
    individual : (n_rows, n_points, n_outputs) float64, optional
        Predictions of each row of X with the feature's value replaced (ICE).
    columns : tuple of int
        Position of each feature, of a group its first column's.
    deciles : tuple of (9,) float64 or None
        Of each feature's values in X, if they are numbers.
    """

    features: tuple[str, ...]
    grid: tuple[NDArray[Any], ...]
    values: Floats
    individual: Floats | None
    columns: tuple[int, ...]
    deciles: tuple[Floats | None, ...]

    @property
    def name(self) -> str:
        """The names of the features, joined."""
        return " x ".join(self.features)


@dataclass(frozen=True, eq=False, repr=False)
class PartialDependence(AnalysisResult):
    """Partial dependence of features and pairs; returned by `Explainer.partial_dependence`.

    Attributes
    ----------
    curves : tuple of Curve
        One for each entry of ``features``, with ``features``, ``grid``, ``values`` and ``individual``.
    base : (n_outputs,) float64
        Mean output over the background.
    column_names, outputs : tuple of str

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).integers(0, 3, size=(500, 3)) * 1.0
    >>> explainer = fs.Explainer(DecisionTreeRegressor().fit(X, X[:, 0] + X[:, 1] * X[:, 2]), X)
    >>> found = explainer.partial_dependence(0)
    >>> found.curves[0].grid[0], found.curves[0].values[:, 0].round(2)
    (array([0., 1., 2.]), array([1.05, 2.05, 3.05]))
    """

    curves: tuple[Curve, ...]
    base: Floats
    column_names: tuple[str, ...]
    outputs: tuple[str, ...]
    like: Any = None
    analysis = "partial dependence"
    _BAR = "dependence"
    _IN_ORDER = True
    _FACTS = ("base", "outputs")

    def __len__(self) -> int:
        return len(self.curves)

    def __repr__(self) -> str:
        lines = []
        for curve in self.curves[:20]:
            low, high = curve.values[..., 0].min(), curve.values[..., 0].max()
            size = " x ".join(str(len(values)) for values in curve.grid)
            lines.append(f"  {curve.name}: from {low:.4g} to {high:.4g} on {size} points")
        more = [] if len(self) <= 20 else [f"  ... {len(self) - 20:,} more"]
        about = f"mean {self.base[0]:.4g}" + (
            f", {len(self.outputs)} outputs" if len(self.outputs) > 1 else ""
        )
        return "\n".join([f"PartialDependence({about})", *lines, *more])

    def table(self) -> dict[str, Any]:
        has_pairs = any(len(curve.grid) > 1 for curve in self.curves)
        are_numbers = all(values.dtype.kind == "f" for curve in self.curves for values in curve.grid)
        names: list[list[Any]] = [[], []]
        values: list[list[Any]] = [[], []]
        outputs: list[str] = []
        dependence: list[float] = []
        for curve in self.curves:
            shape = curve.values.shape
            at = np.indices(shape).reshape(len(shape), -1)
            for k in range(2):
                known = k < len(curve.grid)
                names[k] += [curve.features[k] if known else ""] * at.shape[1]
                mine = curve.grid[k][at[k]] if known else np.full(at.shape[1], np.nan)
                values[k] += mine.tolist() if are_numbers else _texts(mine, "" if known else None)
            outputs += [self.outputs[o] for o in at[-1].tolist()]
            dependence += curve.values.reshape(-1).tolist()
        columns: dict[str, Any] = {"feature": names[0], "value": values[0]}
        if has_pairs:
            columns |= {"feature_2": names[1], "value_2": values[1]}
        if len(self.outputs) > 1:
            columns["output"] = outputs
        return columns | {"dependence": np.array(dependence)}

    def plot(self, curve: int = 0, *, output: int | str = 0, ax: Any = None) -> Any:
        """Plot one curve: a line, points for labels, or a map of a pair (matplotlib).

        Parameters
        ----------
        curve : int
            Position among the ``features`` that were asked for.
        output : int or str
            Output to show, by position or name.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        if check_int("curve", curve, 0) >= len(self):
            raise InputError(f"curve is {curve}, but there are {len(self)}, counted from 0.")
        shown, o = self.curves[curve], check_output(output, self.outputs)
        if len(shown.grid) == 2:
            return plotting.value_map(shown.features, shown.grid, shown.values[..., o], ax)
        individual = None if shown.individual is None else shown.individual[..., o]
        mean = float(self.base[o])
        return plotting.curve(shown.features[0], shown.grid[0], shown.values[:, o], individual, mean, ax)


@dataclass(frozen=True, eq=False)
class _Axis:
    """Values of a feature, and where they come from.

    ``positions`` (n_points,): rows of X that have them, or -1 where ``values`` are numbers that are written.
    """

    name: str
    player: int
    columns: tuple[int, ...]
    values: NDArray[Any]
    positions: NDArray[np.int64]
    deciles: Floats | None

    @property
    def is_written(self) -> bool:
        return bool((self.positions < 0).any())


@check_arguments
def partial_dependence(
    explainer: ExplainerLike,
    features: Any = None,
    X: Any = None,
    *,
    grid: Any = None,
    grid_resolution: int | None = None,
    percentiles: tuple[float, float] = (0.05, 0.95),
    individual: bool = False,
    background: Any = None,
    background_weights: Any = None,
) -> PartialDependence:
    """Compute the mean output over the background where one or two features have given values (PDP).

    Exact for trees, sums of products and spectra, over every row of the background; with ``output="probability"`` the
    mean of the probabilities themselves. Of path-dependent trees, the mean by the shares of the training rows
    (scikit-learn's ``method="recursion"``).

    Parameters
    ----------
    features : name, position, pair of these, or a list of all that, optional
        Columns of X, or groups of them. By default each column on its own.
    X : array or data frame, optional
        Rows from which grids are taken, and individual curves are drawn. By default the background, if its columns are
        numbers that enter the model as they are.
    grid : sequence of values, or dict of such by feature, optional
        Values of the features; one sequence if there is one feature. By default as scikit-learn chooses them: all
        distinct values where there are fewer than ``grid_resolution``, else evenly spaced ones. Labels must occur in
        X, and all that occur are used.
    grid_resolution : int, optional
        By default 100 for single features, and 20 for each of a pair.
    percentiles : tuple of two floats
        Where evenly spaced values begin and end.
    individual : bool
        Whether to predict every row of X at every value of single features as well (ICE).
    background, background_weights
        As in `drift`.

    Returns
    -------
    PartialDependence
        With ``curves``, ``frame()``, ``plot()`` and ``to_json()``.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> explainer = fs.Explainer(LinearRegression().fit(X, X[:, 0] - 2 * X[:, 1]), X)
    >>> found = explainer.partial_dependence(1, grid=[-1.0, 0.0, 1.0])
    >>> found.curves[0].values[:, 0].round(1)
    array([ 1.9, -0.1, -2.1])
    """
    explainer = with_other_background(explainer, background, background_weights)
    X = _own_rows(explainer) if X is None else X
    explainer = explainer.offline(X)
    engine, n_jobs = check_predictions(explainer, "partial_dependence"), explainer.n_jobs
    rows = encode_rows(explainer, X)
    table = Pool(rows.shown, "X")
    wanted = _wanted(features, explainer, rows)
    grids = _grids(grid, wanted, explainer, rows)
    if grid_resolution is not None:
        check_int("grid_resolution", grid_resolution, 2)
    check_bool("individual", individual)

    def codes_of(base: NDArray[np.int64], axes: list[_Axis], at: NDArray[np.int64]) -> NDArray[Any]:
        some = _with_values(table, base, axes, at)
        if rows.entered is not None:
            return explainer.inputs.encode(some).codes
        return explainer.inputs.encoder.encode(some, "X")

    curves = []
    with Progress(explainer.progress):
        for players in wanted:
            n_points = grid_resolution or (_POINTS if len(players) == 1 else _POINTS_OF_PAIRS)
            axes = [
                _make_axis(explainer, rows, table, f, grids.get(f), n_points, percentiles) for f in players
            ]
            shape = tuple(len(axis.values) for axis in axes)
            at = np.indices(shape).reshape(len(shape), -1)
            codes = codes_of(np.zeros(at.shape[1], dtype=np.int64), axes, at)
            found = engine.partial_means(codes, [tuple(axis.player for axis in axes)], n_jobs)
            of_rows = None
            if individual and len(axes) == 1:
                of_rows = _individual(table, axes, lambda *which: engine.predict(codes_of(*which), n_jobs))
            curves.append(
                Curve(
                    features=tuple(axis.name for axis in axes),
                    grid=tuple(axis.values for axis in axes),
                    values=found.reshape(*shape, -1),
                    individual=of_rows,
                    columns=tuple(axis.columns[0] for axis in axes),
                    deciles=tuple(axis.deciles for axis in axes),
                )
            )
    base = np.array(engine.expected, dtype=np.float64)
    return PartialDependence(tuple(curves), base, rows.names, output_names(explainer), like=X)


def _own_rows(explainer: ExplainerLike) -> Any:
    """Return the background as rows of the caller, where it still is that."""
    encoder, found = explainer.inputs.encoder, background_of(explainer)
    if isinstance(encoder, PoolEncoder):
        return encoder.background.native
    plain = isinstance(encoder, BitEncoder)
    if isinstance(encoder, RulesEncoder):
        plain = not encoder.rules.categorical and not encoder.rules.vocabularies
    if found is None or not plain or getattr(explainer, "has_pipeline", False):
        raise InputError(
            "give X=, rows from which the values of features are taken: this explainer has no background rows in the "
            "form in which its caller has rows (of labels, before the steps of a Pipeline, or path-dependent)."
        )
    return found[0]


def _feature(entry: Any, explainer: ExplainerLike, rows: Rows) -> int:
    """Return the number of a feature: a column, or, beyond these, a group."""
    players = explainer.player_names
    if isinstance(entry, str) and entry not in rows.names and entry in players:
        return len(rows.names) + players.index(entry)
    return find_position(entry, rows.names, "features")


def _wanted(features: Any, explainer: ExplainerLike, rows: Rows) -> list[tuple[int, ...]]:
    """Return the features of each curve, see `_feature`."""
    if features is None:
        features = [j for j in range(len(rows.names)) if (rows.player == rows.player[j]).sum() == 1]
        features = features or list(explainer.player_names)
    if hasattr(features, "tolist"):  # an array, or the columns of a data frame
        features = features.tolist()
    if isinstance(features, str | tuple) or not isinstance(features, Sequence):
        features = [features]
    found = []
    for entry in features:
        is_pair = not isinstance(entry, str) and isinstance(entry, Sequence | np.ndarray)
        one = tuple(_feature(each, explainer, rows) for each in (entry if is_pair else [entry]))
        n = len(rows.names)
        players = {int(rows.player[f]) if f < n else f - n for f in one}
        if len(one) not in (1, 2) or len(players) < len(one):
            raise InputError(
                f"features holds {truncated_repr(entry)}; give one feature, or a pair of different ones, by name or "
                "position."
            )
        found.append(one)
    if not found:
        raise InputError("features is empty; give at least one.")
    return found


def _grids(
    grid: Any, wanted: list[tuple[int, ...]], explainer: ExplainerLike, rows: Rows
) -> dict[int, Sequence[Any]]:
    """Return the values of features that the caller gives."""
    if grid is None:
        return {}
    used = {f for players in wanted for f in players}
    if isinstance(grid, Mapping):
        given = {_feature(name, explainer, rows): values for name, values in grid.items()}
    elif len(used) == 1:
        given = dict.fromkeys(used, grid)
    else:
        raise InputError(
            f"grid is one sequence for {len(used)} features; give a dict: {{'feature': [values], ...}}."
        )
    names = (*rows.names, *explainer.player_names)
    for f, values in given.items():
        if f not in used:
            raise InputError(f"grid has values of {truncated_repr(names[f])}, which is not among features.")
        is_list = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
        if not is_list or getattr(values, "ndim", 1) == 0 or not len(values):
            raise InputError(
                f"grid of {truncated_repr(names[f])} is {truncated_repr(values)}; give a list of values."
            )
    return given


def _make_axis(
    explainer: ExplainerLike,
    rows: Rows,
    table: Pool,
    feature: int,
    given: Sequence[Any] | None,
    n_points: int,
    percentiles: tuple[float, float],
) -> _Axis:
    player = int(rows.player[feature]) if feature < len(rows.names) else feature - len(rows.names)
    columns = tuple(np.flatnonzero(rows.player == player).tolist()) if player >= 0 else ()
    name = rows.names[feature] if feature < len(rows.names) else explainer.player_names[player]
    if player < 0:
        raise InputError(f"the model does not read the column {truncated_repr(name)}.")
    if len(columns) != 1:
        if feature < len(rows.names) or given is not None:
            raise InputError(
                f"{truncated_repr(name)} belongs to the group {truncated_repr(explainer.player_names[player])} of "
                f"{len(columns)} columns, which move together. Give the group's name without grid=, or make an "
                "explainer without groups=."
            )
        return _group_axis(explainer, rows, name, player, columns, n_points)
    numbers = table.numbers(columns[0])
    if numbers is None:
        labels = table.labels(columns[0])
        values: NDArray[Any] = np.empty(0)
        chosen = _distinct(labels, table.category_order(columns[0])) if given is None else list(given)
        first = {label: r for r, label in reversed(list(enumerate(labels)))}
        for label in chosen:
            if (None if is_missing(label) else label) not in first:
                raise InputError(
                    f"grid has {truncated_repr(label)} of {truncated_repr(name)}, which no row of X has."
                )
        positions = np.array([first[None if is_missing(v) else v] for v in chosen], dtype=np.int64)
        values = np.empty(len(chosen), dtype=object)
        values[:] = chosen
        return _Axis(name, player, columns, values, positions, None)
    known = numbers[~np.isnan(numbers)]
    deciles = None if not len(known) else _quantiles(known, _DECILES)
    if given is not None:
        try:
            values = np.asarray(given, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise InputError(
                f"grid of {truncated_repr(name)} is {truncated_repr(given)}; give numbers."
            ) from None
        return _Axis(name, player, columns, values, np.full(len(values), -1), deciles)
    distinct, at = np.unique(numbers, return_index=True)
    at = at[~np.isnan(distinct)].astype(np.int64)
    distinct = distinct[~np.isnan(distinct)]
    if not len(distinct):
        raise InputError(f"the column {truncated_repr(name)} of X has missing values only; give grid=.")
    if len(distinct) < n_points:
        return _Axis(name, player, columns, distinct, at, deciles)
    low, high = _quantiles(known, np.array(_check_percentiles(percentiles)))
    if np.isclose(low, high):
        low, high = known.min(), known.max()
    return _Axis(name, player, columns, np.linspace(low, high, n_points), np.full(n_points, -1), deciles)


def _group_axis(
    explainer: ExplainerLike, rows: Rows, name: str, player: int, columns: tuple[int, ...], n_points: int
) -> _Axis:
    """Return the distinct values of a group of columns, most frequent first."""
    mine = rows.codes[:, explainer.inputs.code_players == player]
    _, at, count = np.unique(mine, axis=0, return_index=True, return_counts=True)
    at = at[np.argsort(-count, kind="stable")][:n_points].astype(np.int64)
    data, labels = rows.display(len(explainer.player_names))
    shown = (data if labels is None else labels)[at, player]
    values = np.empty(len(at), dtype=object)
    values[:] = [str(each) for each in shown.tolist()]
    return _Axis(name, player, columns, values, at, None)


def _check_percentiles(percentiles: Any) -> tuple[float, float]:
    try:
        low, high = (float(each) for each in percentiles)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not 0 <= low < high <= 1:
        raise InputError(
            f"percentiles is {truncated_repr(percentiles)}; give two ascending numbers from 0 to 1."
        )
    return low, high


def _distinct(labels: list[Any], order: list[Any] | None) -> list[Any]:
    """Return the labels that occur: in their own order if they have one, else sorted, a missing one last."""
    found = {label for label in labels if label is not None}
    ranked = sorted(found, key=lambda label: (type(label).__name__, label))
    if order is not None:
        ranked = [label for label in order if label in found]
    return ranked + [None] * (None in labels)


def _quantiles(known: Floats, shares: Floats) -> Floats:
    """Return quantiles as SciPy's ``mquantiles`` does, which scikit-learn uses."""
    ordered, n = np.sort(known), len(known)
    if n == 1:
        return np.full(len(shares), ordered[0])
    place = n * shares + 0.4 + 0.2 * shares
    below = np.floor(np.clip(place, 1, n - 1)).astype(np.int64)
    share = np.clip(place - below, 0, 1)
    return np.asarray((1 - share) * ordered[below - 1] + share * ordered[below])


def _with_values(table: Pool, base: NDArray[np.int64], axes: list[_Axis], at: NDArray[np.int64]) -> Any:
    """Return rows ``base`` of X with the values ``at`` (n_axes, n_rows) of the axes, in the caller's type."""
    index = np.repeat(base[:, None], len(table.names), axis=1)
    for axis, points in zip(axes, at, strict=True):
        if not axis.is_written:
            index[:, list(axis.columns)] = axis.positions[points][:, None]
    rows = table.take(index)
    for axis, points in zip(axes, at, strict=True):
        if axis.is_written:
            rows = table.written(rows, axis.columns[0], axis.values[points])
    return rows


def _individual(table: Pool, axes: list[_Axis], predict: Callable[..., Floats]) -> Floats:
    """Return predictions (n_rows, n_points, n_outputs) of every row of X at every value."""
    n_points, parts = len(axes[0].values), []
    step = max(_INDIVIDUAL_ROWS // n_points, 1)
    for first in range(0, len(table), step):
        base = np.arange(first, min(first + step, len(table)))
        parts.append(predict(np.repeat(base, n_points), axes, np.tile(np.arange(n_points), len(base))[None]))
    return np.concatenate(parts).reshape(len(table), n_points, -1)


def _texts(values: NDArray[Any], missing: str | None) -> list[str]:
    if missing is None:
        return [""] * len(values)
    return ["missing" if is_missing(value) else str(value) for value in values.tolist()]
