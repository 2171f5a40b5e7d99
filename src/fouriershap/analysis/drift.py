"""`Drift`: the change of the mean prediction from the background to other rows, split over players."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._explainers.questions import pictures
from fouriershap._explainers.questions.answer import PicturedAnswer, bracket, group_columns, number
from fouriershap._explainers.questions.group_means import GroupedRows, read_grouped
from fouriershap._explainers.questions.means import Terms, check_engine, names_of_outputs, terms_of
from fouriershap._explainers.questions.moments import Floats, Moments, check_level, interval

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Drift(PicturedAnswer):
    """The change of the mean prediction, split exactly over players; what `Explainer.drift` returns.

    Attributes
    ----------
    names : tuple of str
        Players; with ``interactions=True`` main effects of players, then pairs.
    groups : tuple of str
        Groups or periods of the new rows; one without a name where there are none.
    outputs : tuple of str
    values, low, high : (n_groups, n_names, n_outputs) float64
        What each brings to the change, and the ends of its interval; NaN where that is not known.
    change, change_low, change_high : (n_groups, n_outputs) float64
        The whole change: the sum of ``values``.
    before : (n_outputs,) float64
        Mean prediction of the background.
    n_rows : (n_groups,) int64
    level : float or None
        Coverage of the intervals.
    counts_background : bool
        Whether the intervals count that the background is a sample, too.
    in_order : bool
        Whether the groups come one after the other (periods, numbers, bins), which pictures join by lines.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> model = LinearRegression().fit(X, 2 * X[:, 0] + X[:, 1])
    >>> drift = fs.Explainer(model, X).drift(X[:250] + [0.5, 0, 0])
    >>> bool(np.isclose(drift.values.sum(), model.predict(X[:250] + [0.5, 0, 0]).mean() - model.predict(X).mean()))
    True
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    change: Floats
    change_low: Floats
    change_high: Floats
    before: Floats
    n_rows: NDArray[np.int64]
    level: float | None
    counts_background: bool
    in_order: bool = True
    like: Any = None
    question = "drift"

    def __repr__(self) -> str:
        lines = []
        for g, group in enumerate(self.groups):
            for o, output in enumerate(self.outputs):
                title = ", ".join(filter(None, [group, output if len(self.outputs) > 1 else ""]))
                ends = bracket(self.change_low[g, o], self.change_high[g, o])
                lines.append(
                    f"{title or 'change'}: {number(self.change[g, o])}{ends}, {self.n_rows[g]:,} rows"
                )
                order = np.argsort(-np.abs(self.values[g, :, o]), kind="stable")[:_SHOWN]
                if len(self.groups) * len(self.outputs) > 3:
                    continue
                for k in order:
                    ends = bracket(self.low[g, k, o], self.high[g, k, o])
                    lines.append(f"  {self.names[k]}: {number(self.values[g, k, o])}{ends}")
        return "\n".join([f"Drift(of the mean prediction, {self._sureness()})", *lines[:40]])

    def _sureness(self) -> str:
        if self.level is None:
            return "no intervals"
        both = "both samples" if self.counts_background else "the new rows' sample alone"
        return f"{self.level:.0%} intervals over {both}"

    def table(self) -> dict[str, Any]:
        columns = group_columns(self.groups, self.names, self.outputs)
        columns["change"] = self.values.reshape(-1)
        if self.level is not None:
            columns |= {"low": self.low.reshape(-1), "high": self.high.reshape(-1)}
        return columns

    def facts(self) -> dict[str, Any]:
        return {
            "outputs": self.outputs,
            "groups": self.groups,
            "n_rows": self.n_rows,
            "mean_before": self.before,
            "mean_after": self.before + self.change,
            "change": self.change,
            "change_low": self.change_low,
            "change_high": self.change_high,
            "level": self.level,
            "counts_background": self.counts_background,
        }

    def _draw(self, o: int, top: int, ax: Any) -> Any:
        """Bars; over periods a line for each player, of groups points."""
        if len(self.groups) == 1:
            title = f"mean prediction {self.before[o]:.4g} → {self.before[o] + self.change[0, o]:.4g}"
            ends = (self.low[0, :, o], self.high[0, :, o])
            return pictures.bars(self.names, self.values[0, :, o], *ends, top, title, ax)
        title = f"change of the mean prediction from {self.before[o]:.4g}"
        ends = (self.low[:, :, o], self.high[:, :, o])
        if not self.in_order:
            return pictures.side_by_side(self.groups, self.names, self.values[:, :, o], *ends, top, title, ax)
        whole = self.change[:, o]
        return pictures.lines(self.groups, self.names, self.values[:, :, o], *ends, whole, top, title, ax)


def make_drift(
    explainer: Explainer,
    X: Any,
    weights: ArrayLike | None,
    by: Any,
    every: Any,
    bins: Any,
    interactions: bool,
    level: Any,
) -> Drift:
    """What `Explainer.drift` documents."""
    level = check_level(level)
    engine = check_engine(explainer, "drift")
    given = read_grouped(explainer, X, "X_new", weights, by, every, bins)
    given.check_weighed()
    terms = terms_of(explainer, engine, interactions)
    found = given.moments(explainer, terms)
    kept = explainer._background_codes() if level is not None else None
    others = None if kept is None else _background_moments(explainer, given, terms, kept)
    means = np.stack([one.mean for one in found])
    low, high = np.full_like(means, np.nan), np.full_like(means, np.nan)
    if level is not None:
        for g, one in enumerate(found):
            errors = [one.error(), *([] if others is None else [others[g].error()])]
            low[g], high[g] = interval(means[g], errors, level)
    return Drift(
        names=terms.names,
        groups=given.groups.labels,
        outputs=names_of_outputs(explainer),
        values=means[:, :-1],
        low=low[:, :-1],
        high=high[:, :-1],
        change=means[:, -1],
        change_low=low[:, -1],
        change_high=high[:, -1],
        before=np.array(engine.expected, dtype=np.float64),
        n_rows=given.sizes(),
        level=level,
        counts_background=others is not None,
        in_order=given.groups.in_order,
        like=X,
    )


def _background_moments(explainer: Explainer, given: GroupedRows, terms: Terms, kept: Any) -> list[Moments]:
    """Of what background rows bring to the mean of each group."""
    found = [Moments() for _ in range(len(given))]
    for g, one in enumerate(found):  # one at a time: each has tables of its own
        for (values,), weights in given.only(g).from_background(explainer, terms, kept):
            one.add(values, weights)
    return found
