"""Cells of results that are kept one by one: a run goes on where it stopped, and measures again what was disturbed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _common import commit, describe_machine

MOST_LOAD = 1.5  # processes that wanted a core, ours included: beyond, a cell is measured again


class Cells:
    """The results of one benchmark: a JSON file with the machine, and each cell with its commit, date and load."""

    def __init__(self, path: Path, packages: tuple[str, ...], most_load: float = MOST_LOAD) -> None:
        self.path, self.packages, self.most_load = path, packages, most_load
        self.found: dict[str, dict[str, Any]] = json.loads(path.read_text())["cells"] if path.exists() else {}

    def measure(
        self, name: str, work: Callable[[], dict[str, Any]], *, again: bool = False
    ) -> dict[str, Any]:
        """The cell, measured now where it is missing, was disturbed, or ``again`` says so. A quieter one stays."""
        old = self.found.get(name)
        if old is not None and old["load"] <= self.most_load and not again:
            return old
        before = os.getloadavg()[0]
        cell = work()
        cell |= {
            "commit": commit(),
            "date": time.strftime("%Y-%m-%d"),
            "load": max(before, os.getloadavg()[0]),
        }
        if old is None or again or cell["load"] < old["load"]:
            self.found[name] = cell
            document = {"machine": describe_machine(self.packages), "cells": self.found}
            self.path.write_text(json.dumps(document, indent=1) + "\n")
        return self.found[name]

    def told(self) -> str:
        """Where the cells come from, for people."""
        machine = describe_machine(self.packages)
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        commits = sorted({cell["commit"] for cell in self.found.values()})
        loads = [cell["load"] for cell in self.found.values()]
        disturbed = sum(load > MOST_LOAD for load in loads)
        text = f"{machine['cpu']}, Python {machine['python']}, {versions}; commit {', '.join(commits)}."
        return text + (
            f" {disturbed} of {len(loads)} cells were measured beside other work." if disturbed else ""
        )
