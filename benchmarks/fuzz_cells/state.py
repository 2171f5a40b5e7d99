"""How far an environment has come, and what it found: a small file from which a run goes on."""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzz_cells.checks import Outcome

ROOT = Path(__file__).parent.parent.parent
LIBRARIES = {"sklearn": "scikit-learn", "xgboost": "xgboost", "lightgbm": "lightgbm", "catboost": "catboost"}
KINDS = LIBRARIES | {"pipelines": "Pipelines"}
_OTHERS = ("numpy", "pandas", "polars", "pyarrow", "narwhals")


def digest() -> str:
    """Of all that decides a result: the package and this benchmark. What was found of another is not kept."""
    found = hashlib.sha256()
    folders = [ROOT / "src" / "fouriershap", Path(__file__).parent]
    for path in sorted(
        p for folder in folders for p in folder.rglob("*") if p.suffix in (".py", ".cpp", ".h")
    ):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def identity(first: int, step: int) -> dict[str, Any]:
    """What a state must share with a run that goes on from it: code, versions, and which seeds are its own."""
    return {
        "digest": digest(),
        "python": sys.version.split()[0],
        "versions": {name: _version(name) for name in (*LIBRARIES.values(), *_OTHERS)},
        "first": first,
        "step": step,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def load(path: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """The state at ``path`` if it is of the same identity, else a new one."""
    if path.exists():
        state: dict[str, Any] = json.loads(path.read_text())
        if state["identity"] == wanted:
            return state
    return {"identity": wanted, "done": 0, "seconds": 0.0, "cells": {}, "forms": {}, "failures": []}


def save(path: Path, state: dict[str, Any]) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(state, indent=1))
    new.replace(path)


def add(state: dict[str, Any], seed: int, library: str, outcome: Outcome) -> None:
    """Count an outcome."""
    cell = (
        state["cells"]
        .setdefault(library, {})
        .setdefault(outcome.kind, {"models": 0, "refused": 0, "wrong": 0, "largest": {}})
    )
    cell["models"] += 1
    cell["refused"] += bool(outcome.refused)
    cell["wrong"] += bool(outcome.failures)
    forms = state["forms"].setdefault(library, {})
    for who in outcome.forms:
        forms[who] = forms.get(who, 0) + 1
    for check, difference in outcome.differences.items():
        cell["largest"][check] = max(difference, cell["largest"].get(check, 0.0))
    for check, text in outcome.failures.items():
        state["failures"].append(
            {"seed": seed, "library": library, "kind": outcome.kind, "check": check, "what": text}
        )
