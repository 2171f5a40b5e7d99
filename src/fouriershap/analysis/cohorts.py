"""`Cohorts`: mean explanations of groups of rows, and where they differ."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import check_int
from fouriershap._base.errors import InputError
from fouriershap._rows.text import MISSING
from fouriershap.analysis import cohort_tree, plotting
from fouriershap.analysis.explainer import (
    Background,
    ExplainerLike,
    background_of,
    check_engine,
    output_names,
    shap_values,
    with_other_background,
)
from fouriershap.analysis.groups import Groups
from fouriershap.analysis.means import GroupedRows, Terms, group_rows, make_terms
from fouriershap.analysis.moments import Floats, MeanError, Moments, check_level, interval
from fouriershap.analysis.results import PlayerResult, group_columns, predicted, strongest_lines

_MOST_LEAVES = 4
_SHOWN = 5
_NO_WORD = re.compile(rf"[-<>\d]|(True|False|{MISSING})$")
_RANGE = re.compile(r"^[<>]| to < ")
_FEWEST_ROWS = 40  # for a tree, which half of the rows grow


@dataclass(frozen=True, eq=False, repr=False)
class Cohorts(PlayerResult):
    """Mean explanations of groups of rows; returned by `Explainer.cohorts`.

    Attributes
    ----------
    names : tuple of str
        Players.
    groups : tuple of str
        Labels; those of a column of numbers carry its name ("sex = 1", "age < 30").
    outputs : tuple of str
    values, low, high : (n_groups, n_names, n_outputs) float64
        Mean SHAP values of each group, and the ends of their intervals.
    differences, difference_low, difference_high : (n_groups, n_names, n_outputs) float64
        Mean of the group minus the mean of all other rows; NaN if there are none.
    predictions : (n_groups, n_outputs) float64
        Mean prediction.
    n_rows : (n_groups,) int64
        Number of rows that are averaged.
    level : float or None
    counts_background : bool
        Whether the intervals include the sampling error of the background.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, np.where(X[:, 0] > 0, X[:, 1], 0))
    >>> cohorts = fs.Explainer(model, X).cohorts(X, by=X[:, 0] > 0)
    >>> cohorts.groups, cohorts.values.shape
    (('False', 'True'), (2, 3, 1))
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    differences: Floats
    difference_low: Floats
    difference_high: Floats
    predictions: Floats
    n_rows: NDArray[np.int64]
    level: float | None
    counts_background: bool
    like: Any = None
    analysis = "cohorts"
    _BAR = "difference"
    _FACTS = ("groups", "outputs", "n_rows", "level", "counts_background")
    _TOP_K = 8

    def __repr__(self) -> str:
        about = f"{len(self.groups)} groups, {int(self.n_rows.sum()):,} rows; group minus all others"
        lines = [f"Cohorts({about})"]
        for g, group in enumerate(self.groups):
            for o, output in enumerate(self.outputs):
                title = ", ".join([group, output] if len(self.outputs) > 1 else [group])
                mean = f"mean prediction {self.predictions[g, o]:.4g}"
                lines.append(f"{title}: {mean}, {self.n_rows[g]:,} rows")
                ends = self.difference_low[g, :, o], self.difference_high[g, :, o]
                lines += strongest_lines(self.names, self.differences[g, :, o], ends, _SHOWN)
        return "\n".join(lines[:60])

    def table(self) -> dict[str, Any]:
        columns = group_columns(self.groups, self.names, self.outputs)
        columns["mean"] = self.values.reshape(-1)
        if self.level is not None:
            columns |= {"low": self.low.reshape(-1), "high": self.high.reshape(-1)}
        columns["difference"] = self.differences.reshape(-1)
        if self.level is not None:
            columns["difference_low"] = self.difference_low.reshape(-1)
            columns["difference_high"] = self.difference_high.reshape(-1)
        return columns

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"mean_prediction": self.predictions}

    def _draw(self, o: int, top_k: int, ax: Any) -> Any:
        """Draw mean SHAP values side by side, a colour for each group."""
        about = (self.groups, self.names, self.values[:, :, o], (self.low[:, :, o], self.high[:, :, o]))
        return plotting.side_by_side(
            *about, top_k, f"mean SHAP value of the group, {predicted(self.outputs, o)}", ax
        )


@check_arguments
def cohorts(
    explainer: ExplainerLike,
    X: Any,
    by: Any = None,
    *,
    every: str | None = None,
    bins: int | None = None,
    max_leaves: int = 4,
    weights: ArrayLike | None = None,
    background: Any = None,
    background_weights: ArrayLike | None = None,
    level: float | None = 0.95,
    random_state: int = 0,
) -> Cohorts:
    """Compare the mean explanations of groups of rows.

    Parameters
    ----------
    X : array or data frame, shape (n_rows, n_columns)
    by : str or array_like, optional
        Name of a column of X, a feature or not, a mask, or an entry per row. None for a tree that splits where SHAP
        values differ most: half of the rows grow it, and the means are those of the other half.
    every, bins
        As in `drift`: periods of dates, bins of numbers.
    max_leaves : int
        Most leaves of the tree, 2 to 4.
    weights : array_like, optional
        A weight per row.
    background, background_weights
        As in `drift`.
    level : float or None
        Coverage of each interval; None for no intervals.
    random_state : int
        Seed that chooses the half that grows the tree.

    Returns
    -------
    Cohorts
        With ``frame()``, ``plot()`` and ``to_json()``.
    """
    level = check_level(level)
    explainer = with_other_background(explainer, background, background_weights).offline(X)
    engine = check_engine(explainer, "cohorts")
    given = group_rows(explainer, X, "X", weights, by, every, bins)
    if by is None:
        given = _group_by_tree(explainer, given, max_leaves, random_state)
    given.check_weights()
    terms = make_terms(explainer)
    found = given.moments(explainer, terms)
    means = np.stack([moments.mean for moments in found])
    mass = np.array([moments.weight for moments in found])
    rest = _mean_of_others(means, mass)
    rows = background_of(explainer) if level is not None else None
    ends = np.full((4, *means.shape), np.nan)
    if level is not None:
        errors = [[moments.error()] for moments in found]
        differences = [[own] for [own] in errors]
        for g, h in permutations(range(len(found)), 2):
            differences[g].append(_scale(errors[h][0], -mass[h] / (mass.sum() - mass[g])))
        if rows is not None:
            added = _background_moments(explainer, given, terms, rows, mass)
            for own, moments in zip([*errors, *differences], [*added[0], *added[1]], strict=True):
                own.append(moments.error())
        for g in range(len(found)):
            ends[0, g], ends[1, g] = interval(means[g], errors[g], level)
            if len(found) > 1:
                ends[2, g], ends[3, g] = interval(means[g] - rest[g], differences[g], level)
    inner = (slice(None), slice(0, -1))
    return Cohorts(
        names=terms.names,
        groups=with_column(by, given.groups.labels),
        outputs=output_names(explainer),
        values=means[inner],
        low=ends[0][inner],
        high=ends[1][inner],
        differences=(means - rest)[inner],
        difference_low=ends[2][inner],
        difference_high=ends[3][inner],
        predictions=engine.expected + means[:, -1],
        n_rows=given.sizes(),
        level=level,
        counts_background=rows is not None,
        like=X,
    )


def with_column(by: Any, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return labels that say which column they are of, unless they are words: "sex = 1", "age < 30"."""
    if not isinstance(by, str) or not all(_NO_WORD.match(label) for label in labels):
        return labels
    return tuple(f"{by} {label}" if _RANGE.search(label) else f"{by} = {label}" for label in labels)


def _mean_of_others(means: Floats, mass: Floats) -> Floats:
    """Return the means of the rows outside each group, (n_groups, ...); NaN if there are none."""
    if len(means) == 1:
        return np.full_like(means, np.nan)
    total = np.tensordot(mass, means, 1)
    shape = (-1, *[1] * (means.ndim - 1))
    return np.asarray((total - mass.reshape(shape) * means) / (mass.sum() - mass).reshape(shape))


def _scale(error: MeanError, by: float) -> MeanError:
    return replace(error, variance=error.variance * by * by, third=error.third * by**3)


def _background_moments(
    explainer: ExplainerLike, given: GroupedRows, terms: Terms, background: Background, mass: Floats
) -> tuple[list[Moments], list[Moments]]:
    """Return the moments of what background rows add to the mean of each group, and to its difference from others."""
    means, differences = ([Moments() for _ in mass] for _ in range(2))
    every = list(range(len(given)))
    for blocks, weights in given.background_terms(explainer, terms, background, every):
        values = np.stack(blocks)
        for g, difference in enumerate(values - _mean_of_others(values, mass)):
            means[g].add(values[g], weights)
            differences[g].add(difference, weights)
    return means, differences


def _group_by_tree(
    explainer: ExplainerLike, given: GroupedRows, max_leaves: Any, random_state: Any
) -> GroupedRows:
    """Grow a tree on half of the rows; return the other half, grouped by its leaves.

    Means of the rows that chose the splits would differ more than the groups do.
    """
    if check_int("max_leaves", max_leaves, 2) > _MOST_LEAVES:
        raise InputError(f"max_leaves is {max_leaves}; give 2 to {_MOST_LEAVES}.")
    rows, names = given.rows, explainer.player_names
    if len(rows) < _FEWEST_ROWS:
        raise InputError(f"X has {len(rows)} rows; a tree of cohorts needs {_FEWEST_ROWS}. Give by=.")
    rng = np.random.default_rng(check_int("random_state", random_state, 0))
    grows = np.zeros(len(rows), dtype=bool)
    grows[rng.permutation(len(rows))[: len(rows) // 2]] = True
    columns = cohort_tree.shown_columns(*rows.display(len(names)))
    values = shap_values(explainer, rows.codes[grows])
    leaves = cohort_tree.grow(
        [column[grows] for column in columns], values.reshape(len(values), -1), max_leaves
    )
    member = cohort_tree.find_leaves(leaves, [column[~grows] for column in columns])
    used, member = np.unique(member, return_inverse=True)
    labels = tuple(cohort_tree.describe_leaf(leaves[k], names) for k in used)
    weights = None if given.weights is None else given.weights[~grows]
    others = replace(rows, codes=rows.codes[~grows])
    return GroupedRows(others, weights, Groups(labels, member.astype(np.int64)))
