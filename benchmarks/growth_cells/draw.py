"""Pictures of cost as work grows: a panel per axis."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

TITLES = {
    "background": "1,000 rows of XGBoost, 100 trees of depth 6",
    "depth": "100 rows, 100 background rows: LightGBM, 100 trees",
}
_USUAL = "XGBoost, 100 trees of depth 6, 1,000 rows against 1,000"
TITLES |= {"rows": "XGBoost, 100 trees of depth 6, 1,000 background rows"}
TITLES |= {"trees": "XGBoost, depth 6, 1,000 rows against 1,000", "features": _USUAL, "outputs": _USUAL}
LABELS = {"background": "background rows", "depth": "depth of the trees", "rows": "rows"}
LABELS |= {"trees": "trees", "features": "features", "outputs": "outputs (classes)"}
COLORS = {"fouriershap": "#c8102e", "shap": "#4c72b0", "shapiq": "#8172b3", "woodelf": "#55a868"}

_LINE = 12.0  # points that a name is high


def draw(panels: dict[str, dict[str, list[tuple[int, float]]]], us: str, remark: str, path: Path) -> None:
    """A panel per axis, a line per contender, named at its end; a remark below."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullLocator

    n_rows = -(-len(panels) // 2)
    figure, grid = plt.subplots(n_rows, 2, figsize=(10, 4 * n_rows), layout="constrained", squeeze=False)
    axes = list(grid.ravel())
    for spare in axes[len(panels) :]:
        spare.set_visible(False)
    for axis, (name, found) in zip(axes, panels.items(), strict=False):
        for who, points in found.items():
            values, took = zip(*points, strict=True)
            mine = who == us
            axis.plot(
                values, took, marker="o", ms=5 if mine else 4, lw=2.6 if mine else 1.6, color=COLORS[who]
            )
        axis.set_yscale("log")
        if name != "depth":
            axis.set_xscale("log")
        low, high = axis.get_xlim()
        axis.set_xlim(low, high * 40 if name != "depth" else high + 0.28 * (high - low))
        _name_lines(axis, {who: points[-1] for who, points in found.items()}, us)
        ticks = sorted({value for points in found.values() for value, _ in points})
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_title(TITLES[name], loc="left", fontsize=10)
        axis.set_xlabel(LABELS[name])
        axis.set_ylabel("CPU seconds, one thread")
        axis.grid(alpha=0.25, which="major")
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(remark, fontsize=8, color="0.4")
    figure.savefig(path, dpi=160)
    plt.close(figure)


def _name_lines(axis: Any, ends: dict[str, tuple[int, float]], us: str) -> None:
    """Names beside the ends of lines, those of neighbours pushed apart; a white rim keeps other lines off them."""
    from matplotlib.patheffects import withStroke

    points_high = axis.get_figure().get_figheight() * 72 / axis.get_gridspec().nrows * 0.8
    low, high = (math.log10(limit) for limit in axis.get_ylim())
    taken: list[tuple[int, float]] = []
    for who, (value, took) in sorted(ends.items(), key=lambda end: -end[1][1]):
        place = (math.log10(took) - low) / (high - low) * points_high
        moved = min([place, *(each - _LINE for where, each in taken if where == value)])
        taken.append((value, moved))
        axis.annotate(
            who,
            (value, took),
            xytext=(7, moved - place),
            textcoords="offset points",
            va="center",
            color=COLORS[who],
            weight="bold" if who == us else "normal",
            path_effects=[withStroke(linewidth=4, foreground="white")],
        )
