"""What all environments found, as a page."""

from __future__ import annotations

from typing import Any

from _pages import markdown_table
from fuzz_cells.state import KINDS, LIBRARIES

CHECKS = {
    "reading": "values and expected value add up to the library's own output, 150 rows at and beside thresholds",
    "tables": "SHAP values by tables against the definition, the library itself asked about every hybrid",
    "walk": "the same by the walk, in double precision",
    "groups": "groups of columns and a weighted background, likewise",
    "path": "path-dependent values add up to the library's own output",
    "forms": "rows and background in random forms (containers, types, labels), live and from a file, by the same "
    "definition; where the library refuses them, so do we",
    "sparse": "scipy's matrices add up to the library's own output",
    "files": "a saved explainer says the same, to the last bit",
    "model files": "the file that the library saves is explained as the model",
}
Found = dict[str, dict[str, Any]]  # environment -> state


def page(found: Found, asked: int) -> str:
    failures = [(name, failure) for name, state in found.items() for failure in state["failures"]]
    done = sum(state["done"] for state in found.values())
    wrong = len({(name, failure["seed"]) for name, failure in failures})
    parts = [
        "# Random models against their own libraries",
        f"Written by `benchmarks/fuzz.py`: {done:,} of {asked:,} models, {wrong:,} with something wrong. Cells are the "
        "number of models and the largest difference, as a share of the largest output or leaf (rounding: libraries "
        "that add up in float32 differ by up to 1e-5, others by 1e-6 with tables of single precision, else by 1e-9).",
        _environments(found),
        _checks(found),
        _forms(found),
        _kinds(found),
        _failures(failures),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _environments(found: Found) -> str:
    header = ["environment", "Python", *LIBRARIES.values(), "models", "refused", "wrong"]
    rows = []
    for name, state in found.items():
        identity, cells = state["identity"], _cells(state)
        counts = [sum(cell[key] for cell in cells) for key in ("models", "refused", "wrong")]
        versions = [identity["versions"][package] for package in LIBRARIES.values()]
        rows.append([name, identity["python"], *versions, *(f"{count:,}" for count in counts)])
    return markdown_table(header, rows)


def _cells(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for kinds in state["cells"].values() for cell in kinds.values()]


def _checks(found: Found) -> str:
    header = ["largest difference", *KINDS.values()]
    rows = []
    for check, meaning in CHECKS.items():
        row = [f"{check}: {meaning}"]
        for library in KINDS:
            cells = [c for state in found.values() for c in state["cells"].get(library, {}).values()]
            largest = [cell["largest"][check] for cell in cells if check in cell["largest"]]
            row.append(f"{max(largest):.0e}" if largest else "")
        rows.append(row)
    return markdown_table(header, rows)


def _forms(found: Found) -> str:
    rows = []
    for who in ("both", "neither", "the library alone"):
        counts = [
            sum(state["forms"].get(library, {}).get(who, 0) for state in found.values()) for library in KINDS
        ]
        rows.append([who, *(f"{count:,}" for count in counts)])
    return markdown_table(["rows in a form, answered by", *KINDS.values()], rows)


def _kinds(found: Found) -> str:
    header = ["kind", *found]
    kinds = {
        (library, kind)
        for state in found.values()
        for library, kinds in state["cells"].items()
        for kind in kinds
    }
    rows = []
    for library, kind in sorted(kinds):
        told = [_told(state["cells"].get(library, {}).get(kind)) for state in found.values()]
        rows.append([f"{library} {kind}", *told])
    return markdown_table(header, rows)


def _told(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    told = f"{cell['models']:,}: {max(cell['largest'].values(), default=0.0):.0e}"
    told += f", {cell['refused']} refused" if cell["refused"] else ""
    return told + (f", **{cell['wrong']} wrong**" if cell["wrong"] else "")


def _failures(failures: list[tuple[str, dict[str, Any]]]) -> str:
    if not failures:
        return ""
    rows = [
        [
            str(f["seed"]),
            name,
            f"{f['library']} {f['kind']}",
            f["check"],
            " ".join(f["what"].replace("|", "/").split())[:160],
        ]
        for name, f in failures[:100]
    ]
    return "## What is wrong\n\n" + markdown_table(["seed", "environment", "kind", "check", "what"], rows)
