"""The table of results for docs/reproduce.md, written between its markers."""

from __future__ import annotations

from pathlib import Path

from _common import seconds
from _pages import fill
from paper import fig2, fig3
from paper.claims import tree_ratios
from paper.numbers import Results, best_setting, figure2_points, results_of, summary
from paper.report import table
from paper.settings import DATASETS, LABELS


def update(page: Path, results: Results) -> None:
    """Replace what stands between the page's markers."""
    fill(page, "benchmarks", benchmark_table(results))


def benchmark_table(results: Results) -> str:
    """Per model of the paper: accuracy, speed-up over KernelSHAP and the strongest peers; trees below."""
    lines, once = [], []
    for name in DATASETS:
        points = figure2_points(results, name)
        if fig2.BLACK_BOX not in points:
            continue
        _, ours = best_setting(points[fig2.BLACK_BOX])
        cells = [_entry(ours)]
        cells += [
            _entry(best_setting(points[who])[1]) if who in points else "-" for who in (fig2.LINREG, fig2.FAST)
        ]
        default = f"R² {summary(points[fig2.BASE])['r2']:.4f}" if fig2.BASE in points else "-"
        lines.append((LABELS[name], *cells, default))
        once.append((f"{name} {seconds(ours[0]['once_seconds'])}", f"{ours[0]['once_queries']:,}"))
    header = ("black box", "fouriershap", "LinRegSHAP", "FastSHAP", "KernelSHAP (1x)")
    parts = [table(header, lines)] if lines else []
    if once:
        took, asked = (", ".join(column) for column in zip(*once, strict=True))
        parts.append(
            f"(Done once and not counted: the fit, {took}, from {asked} queries; and FastSHAP's training.)\n"
        )
    ratios = tree_ratios(results)
    if ratios:
        depths = sorted({depth for found in ratios.values() for depth in found})
        body = [
            (name, *(f"{found[d]:.0f}x" if d in found else "-" for d in depths))
            for name, found in ratios.items()
        ]
        parts.append(
            table(("random forest, 20 trees: times faster than shap", *(f"depth {d}" for d in depths)), body)
        )
        slow = max(min(c["seconds"][fig3.BASE]) for c in results_of(results, "fig3").values())
        parts.append(f"(100 rows, 100 background rows, exact; shap takes up to {seconds(slow)}.)\n")
    return "\n".join(parts)


def _entry(points: list[dict[str, float]]) -> str:
    found = summary(points)
    return f"R² {found['r2']:.4f}, {found['speedup']:,.{0 if found['speedup'] >= 10 else 1}f}x"
