"""`Cohorts`: mean explanations of groups of rows, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import check_whole
from fouriershap._base.errors import InputError
from fouriershap._explainers.questions import cohort_tree, pictures
from fouriershap._explainers.questions.answer import PicturedAnswer, bracket, group_columns, number
from fouriershap._explainers.questions.group_means import GroupedRows, read_grouped
from fouriershap._explainers.questions.groups import Groups
from fouriershap._explainers.questions.means import Terms, check_engine, names_of_outputs, terms_of
from fouriershap._explainers.questions.moments import Floats, MeanError, Moments, check_level, interval

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_MOST_LEAVES = 4
_SHOWN = 5
_FEWEST = 40  # rows from which a tree can be grown on half of them


@dataclass(frozen=True, eq=False, repr=False)
class Cohorts(PicturedAnswer):
    """Mean explanations of groups of rows; what `Explainer.cohorts` returns.

    Attributes
    ----------
    names : tuple of str
        Players.
    groups : tuple of str
    outputs : tuple of str
    values, low, high : (n_groups, n_names, n_outputs) float64
        Mean SHAP values of each group, and the ends of their intervals.
    differences, difference_low, difference_high : (n_groups, n_names, n_outputs) float64
        Mean of the group less that of all other rows, NaN where there are none.
    predictions : (n_groups, n_outputs) float64
        Mean prediction.
    n_rows : (n_groups,) int64
        Rows that the means are of.
    level : float or None
    counts_background : bool
        Whether the intervals count that the background is a sample, too.

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
    question = "cohorts"
    _MOST_SHOWN = 8

    def __repr__(self) -> str:
        lines = [
            f"Cohorts({len(self.groups)} groups, {int(self.n_rows.sum()):,} rows; group less all others)"
        ]
        for g, group in enumerate(self.groups):
            for o, output in enumerate(self.outputs):
                title = ", ".join([group, output] if len(self.outputs) > 1 else [group])
                lines.append(
                    f"{title}: mean prediction {self.predictions[g, o]:.4g}, {self.n_rows[g]:,} rows"
                )
                differences = self.differences[g, :, o]
                for k in np.argsort(-np.abs(differences), kind="stable")[:_SHOWN]:
                    ends = bracket(self.difference_low[g, k, o], self.difference_high[g, k, o])
                    lines.append(f"  {self.names[k]}: {number(differences[k])}{ends}")
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
        return {
            "groups": self.groups,
            "outputs": self.outputs,
            "n_rows": self.n_rows,
            "mean_prediction": self.predictions,
            "level": self.level,
            "counts_background": self.counts_background,
        }

    def _draw(self, o: int, top: int, ax: Any) -> Any:
        """Mean SHAP values side by side, a colour for each group."""
        ends = (self.low[:, :, o], self.high[:, :, o])
        return pictures.side_by_side(
            self.groups, self.names, self.values[:, :, o], *ends, top, "mean SHAP value", ax
        )


def make_cohorts(
    explainer: Explainer,
    X: Any,
    by: Any,
    every: Any,
    bins: Any,
    leaves: Any,
    weights: ArrayLike | None,
    level: Any,
    random_state: Any,
) -> Cohorts:
    """What `Explainer.cohorts` documents."""
    level = check_level(level)
    engine = check_engine(explainer, "cohorts")
    given = read_grouped(explainer, X, "X", weights, by, every, bins)
    if by is None:
        given = _tree_groups(explainer, given, leaves, random_state)
    given.check_weighed()
    terms = terms_of(explainer, engine, False)
    found = given.moments(explainer, terms)
    kept = explainer._background_codes() if level is not None else None
    seen = None if kept is None else _background_moments(explainer, given, terms, kept, found)
    means = np.stack([one.mean for one in found])
    mass = np.array([one.weight for one in found])
    rest = _rest(means, mass)
    ends = np.full((4, *means.shape), np.nan)
    if level is not None:
        errors = [one.error() for one in found]
        for g in range(len(found)):
            own = [errors[g], *([] if seen is None else [seen[0][g].error()])]
            ends[0, g], ends[1, g] = interval(means[g], own, level)
            if len(found) > 1:
                others = [
                    _scaled(errors[h], -mass[h] / (mass.sum() - mass[g])) for h in range(len(found)) if h != g
                ]
                both = [errors[g], *others, *([] if seen is None else [seen[1][g].error()])]
                ends[2, g], ends[3, g] = interval(means[g] - rest[g], both, level)
    inner = (slice(None), slice(0, -1))
    return Cohorts(
        names=terms.names,
        groups=given.groups.labels,
        outputs=names_of_outputs(explainer),
        values=means[inner],
        low=ends[0][inner],
        high=ends[1][inner],
        differences=(means - rest)[inner],
        difference_low=ends[2][inner],
        difference_high=ends[3][inner],
        predictions=engine.expected + means[:, -1],
        n_rows=given.sizes(),
        level=level,
        counts_background=seen is not None,
        like=X,
    )


def _rest(means: Floats, mass: Floats) -> Floats:
    """Means of the rows outside each group, (n_groups, ...); NaN where there are none."""
    if len(means) == 1:
        return np.full_like(means, np.nan)
    total = np.tensordot(mass, means, 1)
    shape = (-1, *[1] * (means.ndim - 1))
    return np.asarray((total - mass.reshape(shape) * means) / (mass.sum() - mass).reshape(shape))


def _scaled(error: MeanError, by: float) -> MeanError:
    return replace(error, variance=error.variance * by * by, third=error.third * by**3)


def _background_moments(
    explainer: Explainer, given: GroupedRows, terms: Terms, kept: Any, found: list[Moments]
) -> tuple[list[Moments], list[Moments]]:
    """Of what background rows bring to the mean of each group, and to its difference from the others."""
    mass = np.array([one.weight for one in found])
    means, differences = ([Moments() for _ in found] for _ in range(2))
    for values, weights in given.from_background(explainer, terms, kept):
        every = np.stack(values)
        for g, apart in enumerate(every - _rest(every, mass)):
            means[g].add(every[g], weights)
            differences[g].add(apart, weights)
    return means, differences


def _tree_groups(explainer: Explainer, given: GroupedRows, leaves: Any, random_state: Any) -> GroupedRows:
    """Leaves of a tree that half of the rows grew, and the other half, whose means are told.

    Means of the rows that chose the splits would differ more than the groups do.
    """
    if check_whole("leaves", leaves, 2) > _MOST_LEAVES:
        raise InputError(f"leaves is {leaves}; give 2 to {_MOST_LEAVES}.")
    rows, share = given.rows, given.share
    if len(rows) < _FEWEST:
        raise InputError(f"X has {len(rows)} rows; a tree of cohorts needs {_FEWEST}. Give by=.")
    rng = np.random.default_rng(check_whole("random_state", random_state, 0))
    grows = np.zeros(len(rows), dtype=bool)
    grows[rng.permutation(len(rows))[: len(rows) // 2]] = True
    columns = cohort_tree.columns_of(*rows.display(len(explainer.player_names)))
    values = explainer._explain(replace(rows, codes=rows.codes[grows]), explainer.n_jobs)
    paths = cohort_tree.grow([column[grows] for column in columns], values.reshape(len(values), -1), leaves)
    member = cohort_tree.members(paths, [column[~grows] for column in columns])
    used, member = np.unique(member, return_inverse=True)
    labels = tuple(cohort_tree.words(paths[k], explainer.player_names) for k in used)
    rest = None if share is None else share[~grows]
    others = replace(rows, codes=rows.codes[~grows])
    return GroupedRows(others, rest, Groups(labels, member.astype(np.int64)))
