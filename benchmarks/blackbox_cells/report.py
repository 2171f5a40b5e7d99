"""Results for people: Markdown tables made from the JSON."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from _cells import Cells
from _common import seconds
from blackbox_cells.default_call import MOST_SECONDS, N_ROWS
from blackbox_cells.models import SUBJECTS
from blackbox_cells.network_runs import FEW_REFINED, REFINED
from blackbox_cells.network_runs import TARGETS as NETWORK_TARGETS
from blackbox_cells.networks import NETWORKS

TARGETS = {
    ("entacmaea", 2000): 0.995,
    ("entacmaea", 8192): 1 - 1e-9,
    ("sgemm14", 5000): 0.997,
    ("sgemm14", 20000): 0.999,
    ("sgemm40", 20000): 0.985,
    ("gb1", 20000): 0.995,
    ("avgfp", 5000): 0.995,
}
_HEAD = (
    "| way | budget | SHAP R^2, median | range | seeds | chosen | fidelity | fit | model queries | target "
    "| row from which it pays, in calls |"
)


def markdown(kept: Cells, method: tuple[str, ...]) -> str:
    cells = kept.found
    lines = [
        "# Black boxes",
        "",
        "Written by `benchmarks/blackbox.py`; fit times are CPU seconds on one thread without the model's own. "
        f"{kept.told()}",
        "",
        *method,
        "",
        _held(cells),
        "",
    ]
    for name, subject in SUBJECTS.items():
        groups = _grouped(cells, name)
        if groups:
            lines += [f"## {subject.title}", "", _HEAD, "|" + "---|" * 11]
            samplers = _samplers(groups)
            lines += [_line(name, way, budget, found, samplers) for (way, budget), found in groups.items()]
            lines.append("")
    lines += _networks(cells) + _refined(cells) + _default(cells)
    if "amortised" in cells:
        lines += _amortised(cells["amortised"])
    return "\n".join(lines) + "\n"


def _held(cells: dict[str, Any]) -> str:
    """How many targets of `auto` held, by the medians of the seeds."""
    verdicts = []
    for (name, budget), target in TARGETS.items():
        found = _grouped(cells, name).get(("auto", budget))
        if found:
            verdicts.append(median(cell["shap_r2"] for cell in found) >= target)
    for (name, budget), wanted in NETWORK_TARGETS.items():
        found = _grouped(cells, name).get(("auto", budget))
        if found:
            verdicts.append(_verdict(wanted, _medians(found)).endswith("held"))
    return f"{sum(verdicts)} of {len(verdicts)} targets held."


def _medians(found: list[dict[str, Any]]) -> tuple[float, float, float]:
    """SHAP R^2, seconds of fitting, microseconds a row."""
    r2, fit, row = (
        median(cell[key] for cell in found) for key in ("shap_r2", "fit_cpu_seconds", "row_seconds")
    )
    return r2, fit, row * 1e6


def _default(cells: dict[str, Any]) -> list[str]:
    """What the default call takes."""
    found = {key.split(".")[1]: cell for key, cell in cells.items() if key.startswith("default.")}
    if not found:
        return []
    lines = [
        "## The default call",
        "",
        f"`fs.Explainer(predict, X)` with {N_ROWS:,} rows and everything else by default, on two cores; seconds "
        f"without the model's own. Asked: at most {MOST_SECONDS:g} s by the clock of a quiet machine; load is how many "
        "processes wanted a core.",
        "",
        "| model | chosen | queries | clock | CPU | load |",
        "|" + "---|" * 6,
    ]
    for name, cell in found.items():
        spent = " | ".join(seconds(cell[key]) for key in ("wall_seconds", "cpu_seconds"))
        lines.append(f"| {name} | {cell['method']} | {cell['queries']:,} | {spent} | {cell['load']:.1f} |")
    return [*lines, ""]


def _refined(cells: dict[str, Any]) -> list[str]:
    """What `refine` adds."""
    found = {tuple(key.split(".")[1:]): cell for key, cell in cells.items() if key.startswith("refine.")}
    if not found:
        return []
    lines = [
        "## Refining",
        "",
        "SHAP R^2, and queries a row, by pairs of permutations for each background row; then, in the last columns, "
        "against a single background row, where a pair asks least.",
        "",
    ]
    heads = ["none", *map(str, REFINED), *(f"{head}, one row" for head in ("none", *FEW_REFINED))]
    lines += ["| model | budget | seed | " + " | ".join(heads) + " |", "|" + "---|" * (3 + len(heads))]
    for (name, budget, seed), cell in found.items():
        each = " | ".join(f"{cell[f'refined_{p}']:.4f} ({cell[f'queries_{p}']:,.0f})" for p in REFINED)
        few = [cell.get(key) for key in ("few_plain", *(f"few_refined_{p}" for p in FEW_REFINED))]
        told = " | ".join("" if r2 is None else f"{r2:.4f}" for r2 in few)
        lines.append(f"| {name} | {int(budget):,} | {seed} | {cell['plain']:.4f} | {each} | {told} |")
    return [*lines, ""]


_NETWORK_HEAD = (
    "| way | budget | SHAP R^2, median | range | seeds | chosen | fit, CPU on one thread | a row "
    "| queries | target | row from which it pays, in calls | in CPU seconds |"
)


def _networks(cells: dict[str, Any]) -> list[str]:
    """Smooth models, trained anew by each seed."""
    lines: list[str] = []
    for name, (title, _) in NETWORKS.items():
        groups = _grouped(cells, name)
        if groups:
            lines += [f"## {title[0].upper()}{title[1:]}", "", _NETWORK_HEAD, "|" + "---|" * 12]
            samplers = _samplers(groups)
            lines += [
                _network_line(name, way, budget, found, samplers) for (way, budget), found in groups.items()
            ]
            lines.append("")
    return lines


def _samplers(groups: dict[tuple[str, int], list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    return {way: found[0] for (way, _), found in groups.items() if "queries_per_row" in found[0]}


def _pays_in_calls(budget: int, samplers: dict[str, dict[str, Any]]) -> str:
    """By sampler: the row from which on asking once for all asks less."""
    rows = {way: math.ceil(budget / each["queries_per_row"]) for way, each in samplers.items()}
    return ", ".join(f"{way}: {row}" for way, row in rows.items()) if budget else ""


def _network_line(
    name: str, way: str, budget: int, found: list[dict[str, Any]], samplers: dict[str, dict[str, Any]]
) -> str:
    r2 = [cell["shap_r2"] for cell in found]
    methods = ", ".join(sorted({cell["method"] for cell in found if "method" in cell})) or "-"
    fit, row = (median(cell[key] for cell in found) for key in ("fit_cpu_seconds", "row_seconds"))
    target = NETWORK_TARGETS.get((name, budget))
    wanted = "" if target is None or way != "auto" else _verdict(target, _medians(found))
    calls = _pays_in_calls(budget, samplers)
    spent = ", ".join(f"{way}: {_told(pays_from(found[0], each))}" for way, each in samplers.items())
    asked = f"{median(cell['queries'] for cell in found):,.0f}"
    spent = spent if budget else ""
    asked_of = f"{budget:,}" if budget else _rows_asked(found)
    return (
        f"| {way} | {asked_of} | {median(r2):.4f} | {min(r2):.4f} to {max(r2):.4f} | {len(r2)} | {methods} "
        f"| {seconds(fit) if budget else ''} | {seconds(row)} | {asked} | {wanted} | {calls} | {spent} |"
    )


def _verdict(target: tuple[float, float, float], found: tuple[float, float, float]) -> str:
    """What was asked (R^2, seconds of fitting, microseconds a row), and whether it held."""
    r2, fit, row = target
    missed = {
        "R^2": found[0] < r2,
        "fit": found[1] > fit,
        "row": found[2] > row,
    }
    told = ", ".join(name for name, is_missed in missed.items() if is_missed)
    return f"{r2}, {fit:g} s, {row} us: {f'MISSED ({told})' if told else 'held'}"


def _rows_asked(found: list[dict[str, Any]]) -> str:
    """Of a sampler: that it asks row by row, and how many rows it had time for."""
    rows = found[0].get("rows")
    return "per row" if rows is None else f"per row, {rows} rows"


def pays_from(cell: dict[str, Any], sampler: dict[str, Any]) -> float:
    """Rows from which fitting once takes less CPU than the sampler, the model's own time counted."""
    once = cell["fit_cpu_seconds"] + cell["queries"] * cell["model_seconds"]
    each = sampler["row_seconds"] + sampler["queries_per_row"] * sampler["model_seconds"]
    gained = each - cell["row_seconds"]
    return max(once / gained, 1.0) if gained > 0 else math.inf


def _told(rows: float) -> str:
    return "never" if math.isinf(rows) else f"{rows:,.0f}"


def _grouped(cells: dict[str, Any], name: str) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Cells of a subject by (way, budget), seeds in order."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for key in sorted(cells, key=_order):
        parts = key.split(".")
        if parts[0] == name:
            groups.setdefault((parts[1], int(parts[2])), []).append(cells[key])
    return groups


def _order(key: str) -> tuple[Any, ...]:
    parts = key.split(".")
    return (parts[0], int(parts[2]), parts[1], int(parts[3])) if len(parts) == 4 else (key, 0, "", 0)


def _line(
    name: str, way: str, budget: int, found: list[dict[str, Any]], samplers: dict[str, dict[str, Any]]
) -> str:
    scores = [cell["shap_r2"] for cell in found]
    chosen = ", ".join(dict.fromkeys(cell.get("method", "") for cell in found))
    if "cube_r2" in found[0]:
        chosen = f"cube R^2 >= {min(cell['cube_r2'] for cell in found):.6f}, {found[0]['terms']} terms"
    fidelity = "-"
    if "fidelity" in found[0]:
        fidelity = f"{median(cell['fidelity'][0] for cell in found):.4f}"
    target = TARGETS.get((name, budget)) if way == "auto" else None
    verdict = ""
    if target is not None:
        held = "held" if median(scores) >= target else "MISSED"
        verdict = f"{'1 - 1e-9' if target > 0.9999 else f'{target:g}'}: {held}"
    return (
        f"| {way} | {f'{budget:,}' if budget else _rows_asked(found)} | {median(scores):.5f} | {min(scores):.5f} to "
        f"{max(scores):.5f} | {len(scores)} | {chosen or '-'} | {fidelity} | "
        f"{seconds(median(cell.get('fit_cpu_seconds', cell['fit_seconds']) for cell in found)) if budget else ''} | "
        f"{median(cell['queries'] for cell in found):,.0f} | {verdict} | {_pays_in_calls(budget, samplers)} |"
    )


def _amortised(cell: dict[str, Any]) -> list[str]:
    return [
        "## Paying once",
        "",
        f"After {cell['queries']:,} queries of the SGEMM network ({seconds(cell['fit_seconds'])} of fitting), "
        f"{cell['rows']:,} rows against {cell['background']:,} background rows: "
        f"{seconds(cell['compile_seconds'])} to compile the background, {seconds(cell['explain_seconds'])} to "
        f"explain, {cell['queries_after_fitting']} more queries.",
        "",
        "![Model calls per explained row](blackbox_calls.svg)",
        "",
    ]
