"""`Interactions`: what sets of players contribute together, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import check_int, check_memory, find_position
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.progress import Progress
from fouriershap._rows.tables import to_frame
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import find_interaction_index
from fouriershap._shapley.interactions import strongest_sets
from fouriershap._shapley.sets import key_sets
from fouriershap.analysis import plotting
from fouriershap.analysis.explainer import (
    ExplainerLike,
    check_engine,
    encode_rows,
    output_names,
    with_other_background,
)
from fouriershap.analysis.moments import Floats
from fouriershap.analysis.results import AnalysisResult, check_output, predicted, repeat_names, signed

_SHOWN = 10
_JOINED = " x "


@check_arguments
@dataclass(frozen=True, eq=False, repr=False)
class Interactions(AnalysisResult):
    """Interactions of sets of players, the strongest first; returned by `Explainer.interactions`.

    Attributes
    ----------
    index : {"k-SII", "STII", "FSII", "SII", "BII", "FBII", "Moebius"}
    order, min_order : int
        The most and the fewest players of a set.
    positions : tuple of tuples of int
        The players of each set, ascending.
    sets : tuple of tuples of str
        Their names.
    values : (n_rows, n_sets) or (n_rows, n_sets, n_outputs) float64
    strength : (n_sets,) float64
        Mean absolute value over rows and outputs.
    rest : (n_rows,) or (n_rows, n_outputs) float64
        The sum of all sets that are not listed.
    base : (n_outputs,) float64
        Mean prediction of the background. With "k-SII", "STII" or "FSII" and ``min_order=1``, base, values and rest of
        a row add up to its prediction.
    n_met : int
        Number of sets that interact in some row.
    players, outputs : tuple of str

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).integers(0, 2, size=(200, 3))
    >>> model = DecisionTreeRegressor().fit(X, X[:, 0] * X[:, 1] * X[:, 2])
    >>> found = fs.TreeExplainer(model, X, feature_names=["a", "b", "c"]).interactions(X, order=3)
    >>> found.value_of("a", "b", "c").shape
    (200,)
    >>> bool(np.allclose(found.base + found.values.sum(axis=1), model.predict(X)))
    True
    """

    index: str
    order: int
    min_order: int
    positions: tuple[tuple[int, ...], ...]
    values: Floats
    strength: Floats
    rest: Floats
    base: Floats
    n_met: int
    players: tuple[str, ...]
    outputs: tuple[str, ...]
    like: Any = None
    analysis = "interactions"
    _BAR = "strength"
    _FACTS = ("index", "order", "min_order", "outputs")

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        lines = [f"  {name}: {size:.4g}" for name, size in zip(self.names, self.strength, strict=True)]
        more = [] if len(lines) <= _SHOWN else [f"  ... {len(lines) - _SHOWN:,} more"]
        about = f"{self.index} of order {self.order}, {len(self.values):,} rows"
        which = f"{len(self):,} of {self.n_met:,} sets, mean |value|"
        return "\n".join([f"Interactions({about}, {which})", *lines[:_SHOWN], *more])

    @cached_property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """The players of each set, by name."""
        return tuple(tuple(self.players[player] for player in players) for players in self.positions)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sets: those of their players, joined."""
        return tuple(_JOINED.join(players) for players in self.sets)

    def value_of(self, *players: int | str) -> Floats:
        """Return the values of one set, (n_rows,) or (n_rows, n_outputs); its players by name or position."""
        wanted = tuple(sorted(find_position(player, self.players, "players") for player in players))
        if wanted in self.positions:
            return np.asarray(self.values[:, self.positions.index(wanted)])
        if len(set(wanted)) < len(wanted) or not self.min_order <= len(wanted) <= self.order:
            raise InputError(
                f"players are {truncated_repr(players)}; give {self.min_order} to {self.order} different ones, "
                "as many as the "
                "sets of this result have."
            )
        if len(self) < self.n_met:
            raise InputError(
                f"the set {truncated_repr(players)} is not among the {len(self)} strongest; give a larger top_k=."
            )
        return np.zeros_like(self.rest)  # they never interact

    def table(self) -> dict[str, Any]:
        values = self._with_outputs()
        shape = values.shape[1:]
        columns: dict[str, Any] = {"set": repeat_names(self.names, shape, 0)}
        columns["size"] = np.repeat([len(players) for players in self.sets], shape[1])
        if len(self.outputs) > 1:
            columns["output"] = repeat_names(self.outputs, shape, 1)
        columns["mean"] = values.mean(axis=0).reshape(-1)
        columns["strength"] = np.abs(values).mean(axis=0).reshape(-1)
        return columns

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"n_rows": len(self.values), "n_sets": self.n_met, "mean_before": self.base}

    def row(self, row: int, *, output: int | str = 0) -> Any:
        """Return the values of one row, the largest first: a frame with ``set``, ``size`` and ``value``."""
        r, o = self._check_row(row), check_output(output, self.outputs)
        values = self._with_outputs()[r, :, o]
        order = np.argsort(-np.abs(values), kind="stable")
        table = {
            "set": [self.names[k] for k in order.tolist()],
            "size": np.array([len(self.sets[k]) for k in order.tolist()], dtype=np.int64),
            "value": values[order],
        }
        return to_frame(table, self.like)

    def plot(self, *, row: int | None = None, output: int | str = 0, top_k: int = 15, ax: Any = None) -> Any:
        """Plot the strongest sets as bars: mean absolute values over all rows, or the values of one (matplotlib).

        Parameters
        ----------
        row : int, optional
            Position of a row; None for mean absolute values over all rows.
        output : int or str
            Output to show, by position or name.
        top_k : int
            Number of sets shown.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        o = check_output(output, self.outputs)
        values, of = self._with_outputs()[:, :, o], predicted(self.outputs, o)
        of = "" if of == "prediction" else f", {of}"
        if row is not None:
            r = self._check_row(row)
            rest = float(self.rest.reshape(len(values), -1)[r, o])
            title = f"{self.index} of order {self.order}{of}, row {r}; sets not listed: {signed(rest)}"
            return plotting.bars(self.names, values[r], top_k, title, ax, label="value of the set")
        sizes = np.abs(values).mean(axis=0)
        title = f"{self.index} of order {self.order}{of}: mean |value|, {len(values):,} rows"
        ax = plotting.bars(self.names, sizes, top_k, title, ax, is_size=True, label="mean |value|")
        order = np.argsort(-sizes, kind="stable")[:top_k].tolist()
        first: dict[int, Any] = {}  # a bar of each number of players, for the legend
        for bar, k in zip(ax.patches, order, strict=True):
            n_players = len(self.positions[k])
            bar.set_color(plotting.COLOURS[(n_players - 1) % len(plotting.COLOURS)])
            first.setdefault(n_players, bar)
        if len(first) > 1:
            labels = [f"{n} player{'s' if n > 1 else ''}" for n in sorted(first)]
            ax.legend([first[n] for n in sorted(first)], labels, frameon=False, fontsize=9)
        return ax

    def _with_outputs(self) -> Floats:
        return self.values.reshape(*self.values.shape[:2], len(self.outputs))

    def _check_row(self, row: int) -> int:
        if check_int("row", row, 0) >= len(self.values):
            raise InputError(
                f"row is {truncated_repr(row)}, but there are {len(self.values):,} rows, counted from 0."
            )
        return int(row)


@check_arguments
def interactions(
    explainer: ExplainerLike,
    X: Any,
    order: int = 3,
    *,
    index: str = "k-SII",
    top_k: int | None = None,
    min_order: int = 1,
    background: Any = None,
    background_weights: ArrayLike | None = None,
) -> Interactions:
    """Compute what sets of up to ``order`` players contribute together, exactly, row by row.

    Parameters
    ----------
    X : array or data frame, shape (n_rows, n_columns)
    order : int
        Most players of a set.
    index : {"k-SII", "STII", "FSII", "SII", "BII", "FBII", "Moebius"}
        n-Shapley values, Shapley-Taylor, faithful Shapley, the plain Shapley interaction index, Banzhaf's, faithful
        Banzhaf, or Moebius coefficients; the first three add up to the prediction (see ``docs/interactions.md`` for
        which to choose). Also "weighted-banzhaf(p)" and "beta-shapley(a, b)", see `TreeExplainer`.
    top_k : int, optional
        Only the strongest sets, by mean absolute value over the rows. If the values of all sets do not fit into memory,
        rows are processed in blocks, twice. None for all sets that interact.
    min_order : int
        Fewest players of a set: ``min_order=order`` for those of the highest order alone.
    background, background_weights
        As in `drift`.

    Returns
    -------
    Interactions
        With ``frame()``, ``row(i)``, ``value_of(*players)``, ``plot()`` and ``to_json()``.

    Examples
    --------
    The ten strongest pairs:

    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).integers(0, 2, size=(200, 3))
    >>> explainer = fs.Explainer(DecisionTreeRegressor().fit(X, X[:, 0] * X[:, 1]), X)
    >>> explainer.interactions(X, order=2, min_order=2, index="SII", top_k=10).positions
    ((0, 1),)
    """
    find_interaction_index(index)
    check_int("order", order)
    if check_int("min_order", min_order) > order:
        raise InputError(f"min_order is {truncated_repr(min_order)}; give at most order={order}.")
    if top_k is not None:
        check_int("top_k", top_k, 1, ", or None for all sets")
    explainer = with_other_background(explainer, background, background_weights).offline(X)
    engine = check_engine(explainer, "interactions")
    codes = encode_rows(explainer, X).codes
    return interactions_of(explainer, engine, codes, order, index, top_k, min_order, like=X)


def interactions_of(
    explainer: ExplainerLike,
    engine: Engine,
    codes: NDArray[Any],
    order: int,
    index: str,
    top_k: int | None,
    min_order: int,
    like: Any = None,
) -> Interactions:
    """Return the interactions of encoded rows by an engine of the explainer, with arguments that are checked."""
    memory = check_memory(None)
    with Progress(explainer.progress):
        found = strongest_sets(
            engine, codes, find_interaction_index(index), order, min_order, top_k, memory, explainer.n_jobs
        )
    rest = found.total - found.values.sum(axis=1)
    if len(found.keys) == found.n_met:
        rest = np.zeros_like(rest)  # only rounding errors are left
    single = engine.n_outputs == 1
    return Interactions(
        index=index,
        order=order,
        min_order=min_order,
        positions=tuple(key_sets(found.keys, engine.n_players)),
        values=found.values[..., 0] if single else found.values,
        strength=found.strength,
        rest=rest[..., 0] if single else rest,
        base=np.array(engine.expected, dtype=np.float64),
        n_met=found.n_met,
        players=explainer.player_names,
        outputs=output_names(explainer),
        like=like,
    )
