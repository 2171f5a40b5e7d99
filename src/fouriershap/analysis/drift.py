"""`Drift`: the change of the mean prediction from the background to other rows, split over players."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap.analysis import plotting
from fouriershap.analysis.explainer import (
    ExplainerLike,
    background_of,
    check_engine,
    output_names,
    with_other_background,
)
from fouriershap.analysis.means import group_rows, make_terms
from fouriershap.analysis.moments import Floats, Moments, check_level, interval
from fouriershap.analysis.results import (
    PlayerResult,
    bracket,
    group_columns,
    predicted,
    signed,
    strongest_lines,
)

_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Drift(PlayerResult):
    """The change of the mean prediction, split exactly over players; returned by `Explainer.drift`.

    Attributes
    ----------
    names : tuple of str
        Players; with ``interactions=True`` main effects of players, then pairs.
    groups : tuple of str
        Groups or periods of the new rows; one without a name if there are none.
    outputs : tuple of str
    values, low, high : (n_groups, n_names, n_outputs) float64
        The part of each player in the change, and the ends of its interval; NaN where that is unknown.
    change, change_low, change_high : (n_groups, n_outputs) float64
        The whole change: the sum of ``values``.
    before : (n_outputs,) float64
        Mean prediction of the background.
    n_rows : (n_groups,) int64
    level : float or None
        Coverage of the intervals.
    counts_background : bool
        Whether the intervals include the sampling error of the background.
    in_order : bool
        Whether the groups are ordered (periods, numbers, bins), so that plots join them by lines.

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
    analysis = "drift"
    _BAR = "change"
    _FACTS = (
        *("outputs", "groups", "n_rows", "change", "change_low", "change_high"),
        *("level", "counts_background"),
    )

    def __repr__(self) -> str:
        sample = "both samples" if self.counts_background else "the sample of new rows alone"
        about = "no intervals" if self.level is None else f"{self.level:.0%} intervals over {sample}"
        lines = [f"Drift(of the mean prediction, {about})"]
        for g, group in enumerate(self.groups):
            for o, output in enumerate(self.outputs):
                title = ", ".join(filter(None, [group, output if len(self.outputs) > 1 else ""]))
                ends = bracket(self.change_low[g, o], self.change_high[g, o])
                change = f"{signed(self.change[g, o])}{ends}"
                lines.append(f"{title or 'change'}: {change}, {self.n_rows[g]:,} rows")
                if len(self.groups) * len(self.outputs) > 3:
                    continue
                interval = self.low[g, :, o], self.high[g, :, o]
                lines += strongest_lines(self.names, self.values[g, :, o], interval, _SHOWN)
        return "\n".join(lines[:41])

    def table(self) -> dict[str, Any]:
        columns = group_columns(self.groups, self.names, self.outputs)
        columns["change"] = self.values.reshape(-1)
        if self.level is not None:
            columns |= {"low": self.low.reshape(-1), "high": self.high.reshape(-1)}
        return columns

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"mean_before": self.before, "mean_after": self.before + self.change}

    def _draw(self, o: int, top_k: int, ax: Any) -> Any:
        """Draw bars; a line per player for periods, points for groups."""
        ends, before = (self.low[:, :, o], self.high[:, :, o]), self.before[o]
        if len(self.groups) == 1:
            title = f"mean {predicted(self.outputs, o)} {before:.4g} → {before + self.change[0, o]:.4g}"
            own = (ends[0][0], ends[1][0])
            label = f"part in the change of the mean {predicted(self.outputs, o)}"
            return plotting.bars(self.names, self.values[0, :, o], top_k, title, ax, own, label=label)
        title = f"change of the mean {predicted(self.outputs, o)} from {before:.4g}"
        about = (self.groups, self.names, self.values[:, :, o], ends)
        if not self.in_order:
            return plotting.side_by_side(*about, top_k, title, ax)
        return plotting.lines(*about, self.change[:, o], top_k, title, ax)


@check_arguments
def drift(
    explainer: ExplainerLike,
    X_new: Any,
    *,
    weights: ArrayLike | None = None,
    background: Any = None,
    background_weights: ArrayLike | None = None,
    by: Any = None,
    every: str | None = None,
    bins: int | None = None,
    interactions: bool = False,
    level: float | None = 0.95,
) -> Drift:
    """Split the change of the mean prediction from the background to other rows exactly over players.

    The parts are the mean SHAP values of the new rows; they add up to the change. Their intervals include the
    sampling error of both samples, which takes one more pass over the background.

    Parameters
    ----------
    X_new : array or data frame, shape (n_rows, n_columns)
    weights : array_like, optional
        A weight per new row.
    background : array or data frame, optional
        Rows to compare with instead of the explainer's background. An explainer that was loaded from a file may have
        no background rows: give them again, or the intervals include the error of the new rows alone.
    background_weights : array_like, optional
        A weight per row of ``background``.
    by : str or array_like, optional
        Name of a column of X_new, a feature or not, or an entry per row: the change is split for each group.
    every : {"day", "week", "month", "quarter", "year"}, optional
        Period per group, if ``by`` holds dates.
    bins : int, optional
        Number of groups with about equally many rows, if ``by`` holds numbers.
    interactions : bool
        Split into main effects and pairs of players.
    level : float or None
        Coverage of the intervals; None for no intervals, which saves the pass over the background.

    Returns
    -------
    Drift
        With ``frame()``, ``plot()`` and ``to_json()``.
    """
    level = check_level(level)
    explainer = with_other_background(explainer, background, background_weights).offline(X_new)
    engine = check_engine(explainer, "drift")
    given = group_rows(explainer, X_new, "X_new", weights, by, every, bins)
    given.check_weights()
    terms = make_terms(explainer, interactions)
    found = given.moments(explainer, terms)
    rows = background_of(explainer) if level is not None else None
    means = np.stack([moments.mean for moments in found])
    low, high = np.full_like(means, np.nan), np.full_like(means, np.nan)
    if level is not None:
        for g, moments in enumerate(found):
            errors = [moments.error()]
            if rows is not None:  # one group at a time: each has tables of its own
                other = Moments()
                for (values,), share in given.background_terms(explainer, terms, rows, [g]):
                    other.add(values, share)
                errors.append(other.error())
            low[g], high[g] = interval(means[g], errors, level)
    return Drift(
        names=terms.names,
        groups=given.groups.labels,
        outputs=output_names(explainer),
        values=means[:, :-1],
        low=low[:, :-1],
        high=high[:, :-1],
        change=means[:, -1],
        change_low=low[:, -1],
        change_high=high[:, -1],
        before=np.array(engine.expected, dtype=np.float64),
        n_rows=given.sizes(),
        level=level,
        counts_background=rows is not None,
        in_order=given.groups.in_order,
        like=X_new,
    )
