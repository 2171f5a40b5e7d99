"""Plots of results: bars, lines over groups, and groups side by side, with intervals (matplotlib)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_int, import_optional
from fouriershap._base.messages import wrapped

Floats = NDArray[np.float64]
POSITIVE, NEGATIVE, MUTED = "#c8373a", "#1f6fb4", "#9aa5b1"
# Distinguishable colours for groups and lines.
COLOURS = ("#1f6fb4", "#c8373a", "#e08e1b", "#3a9d5d", "#7a4fb5", "#0f8b8d", "#b5497a", "#6b6b6b", "#a6761d")


def bars(
    names: tuple[str, ...],
    values: Floats,
    top_k: int,
    title: str,
    ax: Any = None,
    interval: tuple[Floats, Floats] | None = None,
    is_size: bool = False,
    label: str = "SHAP value",
) -> Any:
    """Draw horizontal bars, the largest on top; of values with a sign the sum of the others below.

    ``interval`` has the lower and upper ends, NaN where they are unknown.
    """
    order = np.argsort(-np.abs(values), kind="stable")
    shown, others = order[: check_int("top_k", top_k)], order[top_k:]
    has_rest = bool(len(others)) and not is_size
    place, labels = np.arange(len(shown))[::-1], [wrapped(names[k]) for k in shown]
    ax = _make_axes(ax, 6.4, 1.0 + _line_height(labels) * (len(shown) + has_rest))
    colours = [NEGATIVE if is_size or value <= 0 else POSITIVE for value in values[shown]]
    ax.barh(place, values[shown], color=colours, height=0.62, alpha=0.85)
    if interval is not None:
        _draw_intervals(ax, values[shown], place, interval[0][shown], interval[1][shown])
    if has_rest:
        ax.barh([-1], [float(values[others].sum())], color=MUTED, height=0.62)
        place, labels = np.append(place, -1), [*labels, f"{len(others)} others"]
    ax.set_yticks(place, labels)
    ax.axvline(0, color="#444444", lw=0.8)
    return _finish(ax, title, label)


def lines(
    groups: tuple[str, ...],
    names: tuple[str, ...],
    values: Floats,
    interval: tuple[Floats, Floats],
    total: Floats,
    top_k: int,
    title: str,
    ax: Any = None,
) -> Any:
    """Draw a line per player over groups, (n_groups, n_names), in strips of one scale; the total on top."""
    order = np.argsort(-np.abs(values).max(axis=0), kind="stable")[: check_int("top_k", top_k)]
    ax = _make_axes(ax, 7.5, 1.4 + 0.62 * (len(order) + 1))
    unknown = np.full(len(groups), np.nan)
    strips = [("total", total, unknown, unknown)]
    strips += [(names[k], values[:, k], interval[0][:, k], interval[1][:, k]) for k in order]
    reach = float(np.nanmax(np.abs([strip[1:] for strip in strips]))) or 1.0
    place, middles = np.arange(len(groups)), np.arange(len(strips))[::-1]
    for middle, (_, line, low, high) in zip(middles, strips, strict=True):
        heights, ends = (middle + 0.46 * each / reach for each in (line, np.stack([low, high])))
        ax.axhline(middle, color="#bbbbbb", lw=0.8)
        ax.fill_between(place, ends[0], ends[1], color=MUTED, alpha=0.3, lw=0)
        for colour, side in ((POSITIVE, line > 0), (NEGATIVE, line < 0)):
            ax.fill_between(
                place, middle, heights, where=side, interpolate=True, color=colour, alpha=0.45, lw=0
            )
        ax.plot(place, heights, color="#333333", marker="o", ms=3, lw=1.2)
        ax.text(1.01, middle, f"{line[-1]:+.3g}", transform=ax.get_yaxis_transform(), va="center", fontsize=9)
    ax.set_yticks(middles, [wrapped(name, 26) for name, *_ in strips])
    ax.set_ylim(-0.6, len(strips) - 0.4)
    every = max(1, -(-len(groups) // 12))
    ax.set_xticks(place[::every], groups[::every], rotation=30, ha="right", rotation_mode="anchor")
    return _finish(ax, title, f"strips reach from {-reach:.3g} to {reach:.3g}; numbers: the last group")


def side_by_side(
    groups: tuple[str, ...],
    names: tuple[str, ...],
    values: Floats,
    interval: tuple[Floats, Floats],
    top_k: int,
    title: str,
    ax: Any = None,
) -> Any:
    """Draw points with intervals, (n_groups, n_names): a line per player, with its groups in it."""
    order = np.argsort(-np.ptp(values, axis=0), kind="stable")[: check_int("top_k", top_k)]
    ax = _make_axes(ax, 7.5, 1.2 + len(order) * (0.25 + 0.14 * len(groups)))
    step, middle = 0.7 / max(len(groups), 2), np.arange(len(order))[::-1]
    for g, group in enumerate(groups):
        place = middle + step * ((len(groups) - 1) / 2 - g)
        low, high = (ends[g, order] for ends in interval)
        style = {"color": COLOURS[g % len(COLOURS)], "marker": "o", "ms": 4.5, "ls": "none"}
        style["label"] = wrapped(group, 44)
        ax.plot(values[g, order], place, **style)
        _draw_intervals(ax, values[g, order], place, low, high, COLOURS[g % len(COLOURS)])
    ax.set_yticks(middle, [wrapped(names[k]) for k in order])
    for line in np.arange(len(order) - 1) + 0.5:
        ax.axhline(line, color="#dddddd", lw=0.6)
    ax.axvline(0, color="#444444", lw=0.8)
    columns = 2 if max(map(len, groups)) > 16 else 4
    ax.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
    return _finish(ax, "", title)


def stacked_bars(
    names: tuple[str, ...], parts: dict[str, Floats], top_k: int, title: str, ax: Any = None
) -> Any:
    """Draw horizontal bars of parts that add up, the largest sum on top."""
    total = np.sum([*parts.values()], axis=0)
    shown = np.argsort(-total, kind="stable")[: check_int("top_k", top_k)]
    labels = [wrapped(names[k]) for k in shown]
    ax = _make_axes(ax, 6.4, 1.2 + _line_height(labels) * len(shown))
    place, start = np.arange(len(shown))[::-1], np.zeros(len(shown))
    for colour, (label, values) in zip(COLOURS, parts.items(), strict=False):
        ax.barh(place, values[shown], left=start, color=colour, height=0.62, alpha=0.85, label=label)
        start = start + values[shown]
    ax.set_yticks(place, labels)
    ax.axvline(0, color="#444444", lw=0.8)
    ax.legend(fontsize=8, frameon=False, loc="lower right")
    return _finish(ax, "", title)


def curve(
    name: str, grid: NDArray[Any], values: Floats, individual: Floats | None, mean: float, ax: Any = None
) -> Any:
    """Draw values over a grid of numbers as a line, of labels as bars from the mean; individual rows behind it."""
    ax = _make_axes(ax, 6.0, 3.8)
    place = grid if grid.dtype.kind == "f" else np.arange(len(grid))
    if individual is not None:
        alpha = min(1.0, max(0.05, 10 / max(len(individual), 1)))
        ax.plot(place, individual.T, color=MUTED, lw=0.7, alpha=alpha)
    ax.axhline(mean, color="#444444", lw=0.8, ls=":")
    if grid.dtype.kind == "f":
        ax.plot(place, values, color=NEGATIVE, lw=2)
    else:
        ax.bar(place, values - mean, bottom=mean, color=NEGATIVE, width=0.62, alpha=0.85)
        ax.set_xticks(place, [_label(each) for each in grid], rotation=30, ha="right", rotation_mode="anchor")
    ax.set_ylabel("mean output", fontsize=9)
    return _finish(ax, "", name)


def value_map(names: tuple[str, ...], grid: tuple[NDArray[Any], ...], values: Floats, ax: Any = None) -> Any:
    """Draw values (n_first, n_second) over two grids as colours."""
    ax = _make_axes(ax, 5.6, 4.4)
    places = [each if each.dtype.kind == "f" else np.arange(len(each)) for each in grid]
    image = ax.pcolormesh(*places, values.T, shading="nearest", cmap="viridis")
    for axis, each, place, name in zip((ax.xaxis, ax.yaxis), grid, places, names, strict=True):
        axis.set_label_text(name)
        if each.dtype.kind != "f":
            axis.set_ticks(place, [_label(label) for label in each])
    ax.figure.colorbar(image, ax=ax, label="mean output")
    return _finish(ax, "", names[0])


def _label(value: Any) -> str:
    return "missing" if value is None or value != value else str(value)


def _line_height(labels: list[str]) -> float:
    """Return the inches that a bar needs for its label."""
    return 0.2 + 0.16 * max((label.count("\n") + 1 for label in labels), default=1)


def _make_axes(ax: Any, width: float, height: float) -> Any:
    """Return the caller's axes, or new ones."""
    if ax is not None:
        return ax
    plt = import_optional("matplotlib.pyplot", "a plot", "matplotlib")
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _draw_intervals(
    ax: Any, values: Floats, place: Any, low: Floats, high: Floats, colour: str = "#222222"
) -> None:
    known = ~np.isnan(low)
    ends = np.maximum(np.stack([values - low, high - values])[:, known], 0.0)
    ax.errorbar(values[known], place[known], xerr=ends, fmt="none", ecolor=colour, capsize=2.5, lw=1)


def _finish(ax: Any, title: str, label: str) -> Any:
    ax.set_title(title, fontsize=10)
    ax.set_xlabel(label, fontsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=9)
    return ax
