"""Results for people: tables on the terminal, the same tables as Markdown, made from the JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from _cells import Cells
from _common import print_table, seconds
from tree_cells.race import OURS

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
TITLES = {
    "scale": "Rows x background rows, construction included",
    "explain": "Explaining alone, 100,000 rows, already compiled",
    "grid": "The paper's grid: random forests of 20 trees on bits, 100 x 100, construction included",
    "deep": "Trees of unlimited depth, construction included",
    "memory": "Peak memory above the data",
    "latency": "One fresh row, call overhead included",
    "probability": "Probabilities and responses, one thread, construction included",
    "builds": "The portable build and -march=native",
}


def tables(cells: list[dict[str, Any]]) -> Iterator[Table]:
    """One table per group: a line per cell, a column per contender."""
    for group in dict.fromkeys(cell["group"] for cell in cells):
        mine = [cell for cell in cells if cell["group"] == group]
        who = list(dict.fromkeys(name for cell in mine for name in (*cell["wall"], *cell["megabytes"])))
        lines = [(cell["model"], cell["cell"], *(_entry(cell, name) for name in who)) for cell in mine]
        yield TITLES.get(group, group), ("model", "cell", *who), lines


def _entry(cell: dict[str, Any], who: str) -> str:
    if who in cell["megabytes"]:
        return f"{cell['megabytes'][who]:,.0f} MB"
    if who not in cell["wall"]:
        return "-"
    found, ours = cell["wall"][who], cell["wall"].get(OURS)
    about = "~" if any(note.startswith(f"{who}: extrapolated") for note in cell["notes"]) else ""
    if who == OURS or not ours:
        return about + seconds(found)
    ratio = found / ours
    return f"{about}{seconds(found)} ({ratio:,.{0 if ratio >= 10 else 2}f}x)"


def target_lines(targets: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    lines = []
    for target in targets:
        sense = ">=" if target["at_least"] else "<="
        unit = f" {target['unit']}"
        decimals = 2 if abs(target["value"] / target["limit"] - 1) > 0.01 else 3  # beside the limit
        value, limit = f"{target['value']:,.{decimals}f}{unit}", f"{sense} {target['limit']:g}{unit}"
        cpu = "" if target["by_cpu"] is None else f"{target['by_cpu']:,.2f}"
        lines.append((target["name"], value, cpu, limit, "held" if target["held"] else "MISSED"))
    return lines


TARGET_HEADER = ("target", "found", "by CPU time", "asked", "")


def print_report(cells: list[dict[str, Any]], targets: list[dict[str, Any]]) -> None:
    for title, header, lines in tables(cells):
        print(f"{title}\n")
        print_table(header, lines)
    for note in _notes(cells):
        print(f"- {note}")
    if targets:
        print()
        print_table(TARGET_HEADER, target_lines(targets))


def markdown(kept: Cells, method: tuple[str, ...]) -> str:
    """The page results/trees.md."""
    members = kept.found.values()
    cells = [cell for member in members for cell in member["cells"]]
    targets = [target for member in members for target in member["targets"]]
    parts = [
        "# Tree ensembles: fouriershap and its peers\n",
        f"{_when(members)}; {kept.told()} Made by `benchmarks/trees.py` from `trees.json`.\n",
        *(f"{line}\n" for line in method),
    ]
    held = sum(target["held"] for target in targets)
    parts.append(f"[Targets](#targets): {held} of {len(targets)} held.\n")
    for title, header, lines in tables(cells):
        parts.append(f"## {title}\n")
        parts.append(_markdown_table(header, lines))
    parts += ["## Targets\n", _markdown_table(TARGET_HEADER, target_lines(targets))]
    parts.append("## Notes\n")
    parts.append("\n".join(f"- {note}" for note in _notes(cells)) + "\n")
    return "\n".join(parts)


def _when(members: Iterable[dict[str, Any]]) -> str:
    """The time of the run; from when to when where groups ran apart."""
    dates = sorted(member["date"] for member in members)
    return dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"


def _notes(cells: list[dict[str, Any]]) -> list[str]:
    """Each note once, with the cells that it is about unless these are all of a group."""
    about: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for note in cell["notes"]:
            about.setdefault((cell["group"], note), []).append(f"{cell['model']}, {cell['cell']}")
    sizes = {group: sum(cell["group"] == group for cell in cells) for group, _ in about}
    lines = []
    for (group, note), where in about.items():
        place = group if len(where) == sizes[group] else f"{group}, {'; '.join(where)}"
        lines.append(f"{place}: {note}")
    worst: dict[str, float] = {}
    for cell in cells:
        for peer, difference in cell["differences"].items():
            worst[peer] = max(worst.get(peer, 0.0), difference)
    found = ", ".join(f"{peer} {difference:.0e}" for peer, difference in worst.items())
    return [*lines, f"largest differences, of the largest value: {found}"] if worst else lines


def _markdown_table(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    ruler = ("---", *("---:" for _ in header[1:]))
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, ruler, *lines)) + "\n"
