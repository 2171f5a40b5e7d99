"""The figures, drawn from the results; each as PNG and as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter, NullFormatter

from paper import fig2, fig3
from paper.numbers import figure2_points, results_of
from paper.settings import DATASETS, LABELS, N_BITS

BLUE, ORANGE, GREEN, RED, PURPLE, BROWN, PINK, GREY = plt.get_cmap("tab10").colors[:8]
STYLES = {
    fig2.BLACK_BOX: (BLUE, "o", 9),
    fig2.TABLES: ("#7fb8e6", "s", 6),
    fig2.CLOSED_FORM: (PURPLE, "^", 6),
    fig2.FAST: (ORANGE, "D", 7),
    fig2.DEEP_LIFT: (GREEN, "P", 8),
    fig2.LINREG: (RED, "v", 7),
    fig2.BASE: ("black", "*", 12),
    "KernelSHAP, l1_reg=0": (GREY, "*", 9),
    "PermutationExplainer": (BROWN, "X", 7),
    "shapiq KernelSHAP": (PINK, "<", 7),
    "shapiq ProxySPEX": (PINK, ">", 7),
    "shapiq SPEX": (PINK, "d", 7),
}
TREE_STYLES = {
    fig3.OURS: (BLUE, "o"),
    fig3.OURS_THREADS: ("#7fb8e6", "P"),
    fig3.SPECTRUM: (PURPLE, "^"),
    "woodelf": (ORANGE, "s"),
    "shapiq": (PINK, "X"),
    "fasttreeshap": (GREEN, "D"),
    "pltreeshap": (RED, "v"),
}
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True}
STYLE |= {"grid.alpha": 0.25, "figure.dpi": 120, "legend.frameon": False}


def draw(results: dict[str, dict[str, Any]], where: Path) -> None:
    """Every figure whose results are there."""
    with plt.rc_context(STYLE):
        for part, figure in (
            *(("fig1", _figure_1), ("fig2", _figure_2), ("fig2", _amortisation)),
            *(("fig3", _figure_3), ("fig4", _figure_4), ("fig5", _figure_5)),
        ):
            if results_of(results, part):
                name, drawn = figure(results)
                drawn.savefig(where / f"{name}.png", bbox_inches="tight")
                plt.close(drawn)


def _panels(title: str, height: float = 6.4) -> tuple[Any, dict[str, Any]]:
    drawn, axes = plt.subplots(2, 2, figsize=(9.5, height), layout="constrained")
    drawn.suptitle(title, fontsize=11, fontweight="bold")
    panels = dict(zip(DATASETS, axes.flat, strict=True))
    for name, axis in panels.items():
        axis.set_title(LABELS[name], fontsize=9.5, loc="left")
    return drawn, panels


def _accuracy_axis(axis: Any, values: Iterable[float]) -> None:
    """R^2 by the nines: the distance from 1 on a logarithmic scale, 1 at the top."""
    worst = max([_missing(value) for value in values], default=1.0)
    axis.set_yscale("log")
    axis.set_ylim(min(2.0, max(worst * 1.6, 0.02)), 3e-7)
    ticks = [1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6]
    axis.set_yticks(ticks, ["≤ 0", "0.9", "0.99", "0.999", "0.9999", "0.99999", "exact"], minor=False)
    axis.minorticks_off()


def _missing(r2: float) -> float:
    """1 - R^2, kept between 'exact' and 'nothing'."""
    return float(np.clip(1 - r2, 1e-6, 1.0))


def _short(value: float, _: Any = None) -> str:
    """0.01, 1, 100, 10k, 1M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _log_axis(axis: Any) -> None:
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(_short))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _figure_1(results: dict[str, Any]) -> tuple[str, Any]:
    """R^2 as terms are added; below, the paper's axes, where a larger k may well be found sooner."""
    drawn, rows = plt.subplots(2, 4, figsize=(13, 6), layout="constrained", sharey="col")
    drawn.suptitle(
        "Figure 1. Stage 1: a sparse transform of the model, on the uniform cube",
        fontsize=11,
        fontweight="bold",
    )
    columns = dict(zip(DATASETS, rows.T, strict=True))
    for label, cell in results_of(results, "fig1").items():
        name, what = label.split("/")
        seconds, k, r2 = ([point[key] for point in cell["points"]] for key in ("seconds", "k", "r2"))
        by_terms, by_time = columns[name]
        (line,) = by_terms.plot(k, r2, "o-", label=what, markersize=5)
        by_time.plot(seconds, r2, "o-", color=line.get_color(), markersize=5, linewidth=0.7)
        by_time.annotate(
            f"k = {k[-1]}", (seconds[-1], r2[-1]), (4, -10), textcoords="offset points", fontsize=7
        )
    for name, (by_terms, by_time) in columns.items():
        by_terms.set_title(LABELS[name], fontsize=9.5, loc="left")
        for axis, what in ((by_terms, "k, terms asked for"), (by_time, "seconds")):
            _log_axis(axis)
            left, right = axis.get_xlim()
            if right < 20 * left:  # a decade or more, so that the axis has labels
                axis.set_xlim(left / 3, right * 3)
            axis.set(xlabel=what)
        if by_terms.lines:
            by_terms.legend(loc="lower right")
    for axis in rows[:, 0]:
        axis.set_ylabel("R² on random points")
    return "figure1", drawn


def _figure_2(results: dict[str, Any]) -> tuple[str, Any]:
    drawn, panels = _panels("Figure 2. Speed-up over KernelSHAP against accuracy of the SHAP values", 8.0)
    for name, axis in panels.items():
        series = figure2_points(results, name)
        for who, points in series.items():
            colour, marker, size = STYLES[who]
            for setting in dict.fromkeys(point["setting"] for point in points):
                some = [point for point in points if point["setting"] == setting]
                speed = np.array([point["speedup"] for point in some])
                r2 = np.median([_missing(point["r2"]) for point in some])
                middle = np.median(speed)
                ends = [[middle - speed.min()], [speed.max() - middle]]
                axis.errorbar(
                    middle,
                    r2,
                    xerr=ends,
                    fmt=marker,
                    color=colour,
                    markersize=size,
                    elinewidth=0.8,
                    alpha=0.9,
                )
        _accuracy_axis(axis, [point["r2"] for points in series.values() for point in points])
        _log_axis(axis)
        axis.set(xlabel="times faster than KernelSHAP (right is better)", ylabel="R² (up is better)")
    _legend(drawn, results)
    return "figure2", drawn


def _legend(drawn: Any, results: dict[str, Any], but: tuple[str, ...] = ()) -> None:
    found = {who for name in DATASETS for who in figure2_points(results, name)} - set(but)
    handles = [
        plt.Line2D([], [], color=colour, marker=marker, markersize=size, linestyle="", label=who)
        for who, (colour, marker, size) in STYLES.items()
        if who in found
    ]
    drawn.legend(handles=handles, loc="outside lower center", ncols=4)


def _amortisation(results: dict[str, Any]) -> tuple[str, Any]:
    """One more panel per model: what a row costs in queries, where 40 rows and where 10,000 share them."""
    title = (
        "Figure 2, continued. Accuracy against model queries per explained row\n"
        "Lines: queries that are asked once, shared by 40 rows (right end) to 10,000 rows (marker)"
    )
    drawn, panels = _panels(title, 8.0)
    for name, axis in panels.items():
        series = {
            who: points for who, points in figure2_points(results, name).items() if who != fig2.CLOSED_FORM
        }
        for who, points in series.items():
            colour, marker, size = STYLES[who]
            for setting in dict.fromkeys(point["setting"] for point in points):
                point = [point for point in points if point["setting"] == setting][-1]
                once, height = point.get("once_queries", 0), _missing(point["r2"])
                if once:
                    axis.plot(
                        [once / 10_000, once / 40], [height] * 2, "-", color=colour, linewidth=1.5, alpha=0.6
                    )
                    axis.plot(once / 10_000, height, marker, color=colour, markersize=size)
                elif point["queries"]:
                    axis.plot(point["queries"] / point["rows"], height, marker, color=colour, markersize=size)
        _accuracy_axis(axis, [point["r2"] for points in series.values() for point in points])
        _log_axis(axis)
        axis.set(xlabel="queries per explained row (left is better)", ylabel="R² (up is better)")
    _legend(drawn, results, but=(fig2.CLOSED_FORM, fig2.DEEP_LIFT))
    return "figure2-queries", drawn


def _figure_3(results: dict[str, Any]) -> tuple[str, Any]:
    drawn, panels = _panels(
        "Figure 3. Random forests of 20 trees: speed-up over TreeSHAP by depth, 100 x 100 rows"
    )
    cells = results_of(results, "fig3")
    for name, axis in panels.items():
        axis.set_title(LABELS[name].split(",")[0] + f" (n = {N_BITS[name]})", fontsize=9.5, loc="left")
        mine = {
            int(label.split("/")[1]): cell for label, cell in cells.items() if label.startswith(f"{name}/")
        }
        for who, (colour, marker) in TREE_STYLES.items():
            depths = [depth for depth in sorted(mine) if who in mine[depth]["seconds"]]
            if not depths:
                continue
            ratios = [_ratios(mine[depth]["seconds"], who) for depth in depths]
            middle, spread = ([f(r) for r in ratios] for f in (np.mean, np.std))
            axis.errorbar(depths, middle, spread, fmt=f"{marker}-", color=colour, label=who, capsize=2)
        axis.axhline(1, color="black", linewidth=0.8, label="TreeSHAP")
        axis.axhline(5, color="black", linewidth=0.6, linestyle=":", label="5 times, as claimed")
        axis.set(yscale="log", xlabel="depth", ylabel="times faster than TreeSHAP")
        axis.yaxis.set_major_formatter(FuncFormatter(_short))
    handles, labels = max(
        (axis.get_legend_handles_labels() for axis in panels.values()), key=lambda pair: len(pair[0])
    )
    drawn.legend(handles, labels, loc="outside lower center", ncols=5)
    return "figure3", drawn


def _ratios(seconds: dict[str, list[float]], who: str) -> list[float]:
    return [base / own for base, own in zip(seconds[fig3.BASE], seconds[who], strict=False)]


def _figure_4(results: dict[str, Any]) -> tuple[str, Any]:
    drawn, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    drawn.suptitle("Figure 4. Accuracy of the tree models by depth", fontsize=11, fontweight="bold")
    for name, axis in zip(("gb1", "avgfp"), axes, strict=True):
        cells = {
            int(k.split("/")[1]): v for k, v in results_of(results, "fig4").items() if k.startswith(name)
        }
        axis.plot(sorted(cells), [cells[depth]["test_r2"] for depth in sorted(cells)], "o-", color=BLUE)
        axis.set(xlabel="depth", ylabel="R² on test rows", ylim=(0, None), xticks=sorted(cells))
        axis.set_title(LABELS[name], fontsize=9.5, loc="left")
    return "figure4", drawn


def _figure_5(results: dict[str, Any]) -> tuple[str, Any]:
    values = {who: np.array(v) for who, v in results_of(results, "fig5")["entacmaea"]["values"].items()}
    drawn, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
    drawn.suptitle("Figure 5. Entacmaea: the same SHAP values three times", fontsize=11, fontweight="bold")
    limit = max(np.abs(v).max() for v in values.values())
    for axis, (who, found) in zip(axes, values.items(), strict=True):
        image = axis.imshow(found, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
        axis.set_title(who, fontsize=9.5)
        axis.set(xlabel="feature", xticks=range(found.shape[1]), yticks=range(len(found)))
        axis.grid(False)
    axes[0].set_ylabel("explained row")
    drawn.colorbar(image, ax=axes, label="SHAP value")
    return "figure5", drawn
