"""Results, cell by cell: what is finished is kept, and not run again."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import paper_data
from _cells import MOST_LOAD, ONE_COMMIT, is_disturbed
from _common import RESULTS, commit, cores, describe_machine, source
from paper.settings import Settings

PACKAGES = (
    *(
        "scikit-learn",
        "shap",
        "shapiq",
        "woodelf-explainer",
        "catboost",
        "torch",
        "fasttreeshap",
        "pltreeshap",
    ),
    *("matplotlib", "jax"),
)


ONE_THREAD = ("fig1", "fig3", "fig4")  # the others are a load of as many as there are cores by themselves


class Skipped(Exception):  # noqa: N818 - it is an outcome, no error
    """A peer is not installed: its cell says so, and so does the report."""


class Cell(NamedTuple):
    """One piece of work: the file (figure or table) that it belongs to, its name, and what does it."""

    part: str
    name: str
    run: Callable[[], dict[str, Any]]


def folder(settings: Settings) -> Path:
    return RESULTS / ("paper" if settings.name == "full" else f"paper-{settings.name}")


def read(where: Path) -> dict[str, dict[str, Any]]:
    """All documents, by part."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(where.glob("*.json"))}


def run(cells: Iterable[Cell], settings: Settings) -> None:
    """Run what is not finished, in order, and write after each cell.

    A cell that was skipped, that failed, or that ran beside other work is tried again by the next run. Results of other
    settings or of another machine are put aside. On one commit (see `_cells.py`) those of another state of the package
    are run again.
    """
    cells = list(cells)
    where = folder(settings)
    where.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    for i, cell in enumerate(cells):
        path = where / f"{cell.part}.json"
        document = _document(path, settings)
        head = f"[{i + 1}/{len(cells)}, {time.perf_counter() - begin:.0f} s] {cell.part} {cell.name}"
        if _is_finished(document["cells"].get(cell.name, {}), cell.part):
            print(f"{head}: finished before", flush=True)
            continue
        print(head, flush=True)
        document["cells"][cell.name] = _better(document["cells"].get(cell.name, {}), _outcome(cell))
        temporary = path.with_suffix(".part")
        temporary.write_text(json.dumps(document, indent=1, default=lambda value: value.item()) + "\n")
        temporary.replace(path)


def _is_finished(found: dict[str, Any], part: str) -> bool:
    one_commit = os.environ.get(ONE_COMMIT, "") not in ("", "0")
    quiet = not is_disturbed(found | {"threads": 1 if part in ONE_THREAD else cores()}, MOST_LOAD)
    return "result" in found and quiet and (not one_commit or found.get("source") == source())


def _better(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new outcome, unless the old one is of the same state of the package and was measured in more quiet."""
    alike = "result" in old and old.get("source") == new["source"]
    return old if alike and old.get("load", math.inf) <= new["load"] else new


def _outcome(cell: Cell) -> dict[str, Any]:
    begin = time.perf_counter()
    try:
        outcome: dict[str, Any] = {"result": cell.run()}
    except Skipped as reason:
        outcome = {"skipped": str(reason)}
        print(f"    skipped: {reason}")
    except paper_data.DatasetError as error:
        raise SystemExit(str(error)) from error
    except Exception as error:  # noqa: BLE001 - one peer that fails must not end a run of an hour; it is reported
        outcome = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(f"    FAILED: {outcome['failed']}")
    where = {"commit": commit(), "source": source(), "load": os.getloadavg()[0]}
    when = {"date": time.strftime("%Y-%m-%d %H:%M"), "seconds": time.perf_counter() - begin}
    return outcome | where | when


def _document(path: Path, settings: Settings) -> dict[str, Any]:
    fresh = {"machine": describe_machine(PACKAGES), "settings": asdict(settings), "cells": {}}
    fresh = json.loads(json.dumps(fresh))
    if path.exists():
        found = json.loads(path.read_text())
        if all(found[key] == fresh[key] for key in ("machine", "settings")):
            return found
        path.replace(path.with_suffix(".old"))
        print(f"    {path.name} is of another machine, other versions or settings: kept as {path.stem}.old")
    return fresh


def quickest(work: Callable[[], Any], *, repeats: int = 5, most_seconds: float = 1.0) -> tuple[float, Any]:
    """Seconds of the quickest of some runs, and what the last returned. Slow work is run once."""
    best, spent = float("inf"), 0.0
    for _ in range(repeats):
        begin = time.perf_counter()
        found = work()
        seconds = time.perf_counter() - begin
        best, spent = min(best, seconds), spent + seconds
        if spent + seconds > most_seconds:
            break
    return best, found
