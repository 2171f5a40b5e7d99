"""Pictures of answers: bars with intervals, and lines over groups (matplotlib)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriershap._base.checks import check_whole, need
from fouriershap._explainers.questions.moments import Floats

UP, DOWN, QUIET = "#c8373a", "#1f6fb4", "#9aa5b1"
_LINES = (
    "#1f6fb4",
    "#c8373a",
    "#e08e1b",
    "#3a9d5d",
    "#7a4fb5",
    "#0f8b8d",
    "#b5497a",
    "#6b6b6b",
    "#a6761d",
    "#222222",
)


def axes(ax: Any, width: float, height: float) -> Any:
    """The caller's, or new ones."""
    if ax is not None:
        return ax
    plt = need("matplotlib.pyplot", "a plot", "matplotlib")
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def bars(
    names: tuple[str, ...],
    values: Floats,
    low: Floats,
    high: Floats,
    top: int,
    title: str,
    ax: Any = None,
    signed: bool = True,
) -> Any:
    """Horizontal bars, the largest on top, with intervals (NaN for none); what is left out is told."""
    order = np.argsort(-np.abs(values), kind="stable")
    shown, rest = order[: check_whole("top", top)], order[check_whole("top", top) :]
    ax = axes(ax, 6.4, 1.0 + 0.36 * (len(shown) + bool(len(rest) and signed)))
    place = np.arange(len(shown))[::-1]
    colours = [UP if value > 0 or not signed else DOWN for value in values[shown]]
    ax.barh(place, values[shown], color=colours if signed else DOWN, height=0.62, alpha=0.85)
    known = ~np.isnan(low[shown])
    ends = np.abs(np.stack([values[shown] - low[shown], high[shown] - values[shown]]))[:, known]
    ax.errorbar(
        values[shown][known], place[known], xerr=ends, fmt="none", ecolor="#222222", capsize=2.5, lw=1
    )
    labels = [names[k] for k in shown]
    if len(rest) and signed:
        total = float(values[rest].sum())
        ax.barh([-1], [total], color=QUIET, height=0.62)
        place, labels = np.append(place, -1), [*labels, f"{len(rest)} others"]
    ax.set_yticks(place, labels)
    ax.axvline(0, color="#444444", lw=0.8)
    ax.set_title(title, fontsize=10)
    tidy(ax)
    return ax


def lines(
    groups: tuple[str, ...],
    names: tuple[str, ...],
    values: Floats,
    low: Floats,
    high: Floats,
    whole: Floats,
    top: int,
    title: str,
    ax: Any = None,
) -> Any:
    """A line per player over groups, (n_groups, n_names), with bands; the whole in grey."""
    order = np.argsort(-np.abs(values).max(axis=0), kind="stable")[: check_whole("top", top)]
    ax = axes(ax, 7.5, 4.2)
    place = np.arange(len(groups))
    ax.plot(place, whole, color=QUIET, lw=4, alpha=0.6, label="in all", solid_capstyle="round")
    for number, k in enumerate(order):
        colour = _LINES[number % len(_LINES)]
        ax.plot(place, values[:, k], color=colour, marker="o", ms=3.5, lw=1.6, label=names[k])
        ax.fill_between(place, low[:, k], high[:, k], color=colour, alpha=0.14, lw=0)
    every = max(1, -(-len(groups) // 12))
    ax.set_xticks(place[::every], groups[::every], rotation=30, ha="right", rotation_mode="anchor")
    ax.axhline(0, color="#444444", lw=0.8)
    ax.set_title(title, fontsize=10)
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(ax)
    return ax


def tidy(ax: Any) -> None:
    """No frame where nothing is to be read."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=9)


def side_by_side(
    groups: tuple[str, ...],
    names: tuple[str, ...],
    values: Floats,
    low: Floats,
    high: Floats,
    top: int,
    title: str,
    ax: Any = None,
) -> Any:
    """Points with intervals, (n_groups, n_names), players below each other and groups within."""
    order = np.argsort(-np.ptp(values, axis=0), kind="stable")[: check_whole("top", top)]
    ax = axes(ax, 7.5, 1.2 + len(order) * (0.25 + 0.14 * len(groups)))
    step = 0.7 / max(len(groups), 2)
    for g, group in enumerate(groups):
        place = np.arange(len(order))[::-1] + step * ((len(groups) - 1) / 2 - g)
        ends = np.stack([values[g, order] - low[g, order], high[g, order] - values[g, order]])
        ends = np.nan_to_num(np.maximum(ends, 0.0))
        style = {"color": _LINES[g % len(_LINES)], "fmt": "o", "ms": 4.5, "capsize": 2.5, "lw": 1.2}
        ax.errorbar(values[g, order], place, xerr=ends, label=group, **style)
    ax.set_yticks(np.arange(len(order))[::-1], [names[k] for k in order])
    for line in np.arange(len(order) - 1) + 0.5:
        ax.axhline(line, color="#dddddd", lw=0.6)
    ax.axvline(0, color="#444444", lw=0.8)
    ax.set_title(title, fontsize=10)
    columns = 2 if max(map(len, groups)) > 16 else 4
    ax.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.06), ncols=columns)
    tidy(ax)
    return ax
