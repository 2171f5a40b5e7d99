"""Cells of results that are kept one by one: a run goes on where it stopped, and measures again what was disturbed.

With ``FOURIERSHAP_ONE_COMMIT=1`` in the environment (``make bench ONE_COMMIT=1``) a cell counts only where it was
measured on the package as it is now, with the libraries that are installed now. What is compared is the tree of `src`,
so that committing results changes nothing. Cells that nobody wants any more are then left out of the file.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from _common import commit, describe_machine, plain, source

MOST_LOAD = 1.5  # processes that wanted a core, ours included: beyond, a cell is measured again
PATIENCE = 120.0  # seconds that a run on one commit waits, in all, for the load of earlier work to pass
ONE_COMMIT = "FOURIERSHAP_ONE_COMMIT"


class Cells:
    """The results of one benchmark: a JSON file with the machine, and each cell with its commit, date and load.

    ``where`` are the keys under which the file holds the cells, ``wanted`` the names of all that a whole run measures,
    in their order. Where ``page`` is set, what it answers is written beside the file, as Markdown, after each cell.
    """

    def __init__(
        self,
        path: Path,
        packages: tuple[str, ...],
        most_load: float = MOST_LOAD,
        where: tuple[str, ...] = ("cells",),
        wanted: Iterable[str] = (),
    ) -> None:
        self.path, self.packages, self.most_load, self.where = path, packages, most_load, where
        self.wanted, self.patience = list(wanted), PATIENCE
        self.one_commit = os.environ.get(ONE_COMMIT, "") not in ("", "0")
        self.source = source()
        if self.one_commit and (self.source == "unknown" or self.source.endswith("+")):
            raise SystemExit(
                f"{ONE_COMMIT} is set, but src is {'in no clone' if self.source == 'unknown' else 'changed'}: "
                "commit it first, so that results can name what they measured."
            )
        document = json.loads(path.read_text()) if path.exists() else {}
        for key in where:
            document = document.get(key, {})
        found = {name: cell for name, cell in document.items() if isinstance(cell, dict)}
        self.found: dict[str, dict[str, Any]] = {
            name: found[name] for name in (*self.wanted, *found) if name in found and self._is_wanted(name)
        }
        self.beside: dict[str, Any] = {}  # what the file holds next to the cells
        self.page: Callable[[], str] | None = None

    def is_good(self, name: str) -> bool:
        """Whether there is a cell that was measured in quiet and, where one commit is asked for, on this one."""
        cell = self.found.get(name)
        if cell is None or is_disturbed(cell, self.most_load):
            return False
        return not self.one_commit or self.is_current(cell)

    def measure(
        self, name: str, work: Callable[[], dict[str, Any]], *, again: bool = False, threads: int = 1
    ) -> dict[str, Any]:
        """The cell, measured now unless it `is_good`, or where ``again`` says so. A quieter one stays.

        Work on several ``threads`` is a load of as many by itself, which disturbs nobody.
        """
        if self.is_good(name) and not again:
            return self.found[name]
        self._wait(threads)
        old, before, begin = self.found.get(name), os.getloadavg()[0], time.perf_counter()
        cell = json.loads(json.dumps(work(), default=plain)) | {
            "commit": commit(),
            "source": self.source,
            "versions": self._versions(),
            "date": time.strftime("%Y-%m-%d"),
            "took": time.perf_counter() - begin,
            "load": max(before, os.getloadavg()[0]),
            "threads": threads,
        }
        stale = old is None or (self.one_commit and not self.is_current(old))
        if again or stale or cell["load"] < old.get("load", math.inf):
            self.found[name] = cell
            order = [*self.wanted, *self.found]
            self.found = {name: self.found[name] for name in order if name in self.found}
            self.write()
        return self.found[name]

    def _wait(self, threads: int) -> None:
        """On one commit: until what ran before has left the average of a minute, within patience."""
        while self.one_commit and self.patience > 0 and os.getloadavg()[0] > self.most_load + threads - 1:
            time.sleep(5)
            self.patience -= 5

    def _is_wanted(self, name: str) -> bool:
        return not self.one_commit or not self.wanted or name in self.wanted

    def write(self) -> None:
        """Write the file: the machine, what is wanted, and under the keys of ``where`` the cells; and the page."""
        inner: dict[str, Any] = self.beside | {self.where[-1]: self.found}
        for key in reversed(self.where[:-1]):
            inner = {key: inner}
        wanted = {"most_load": self.most_load, "wanted": self.wanted, "where": self.where}
        document = {"machine": describe_machine(self.packages), "run": wanted} | inner
        unfinished = self.path.with_suffix(".part")
        unfinished.write_text(json.dumps(_finite(document), indent=1) + "\n")
        unfinished.replace(self.path)
        if self.page is not None:
            self.path.with_suffix(".md").write_text(self.page())

    def told(self) -> str:
        """Where the cells come from, for people."""
        machine = describe_machine(self.packages)
        kept = list(self.found.values())
        versions = sorted({cell.get("versions", "versions not recorded") for cell in kept})
        commits = sorted({cell.get("commit", "unknown") for cell in kept})
        disturbed = sum(is_disturbed(cell, self.most_load) for cell in kept)
        text = (
            f"{machine['cpu']}, {machine['cores']} cores; {'; '.join(versions)}; commit {', '.join(commits)}."
        )
        return text + (
            f" {disturbed} of {len(kept)} cells were measured beside other work, or without a note of it."
            if disturbed
            else ""
        )

    def is_current(self, cell: dict[str, Any]) -> bool:
        """Whether a cell was measured on the package as it is now, with the libraries that are there now."""
        return cell.get("source") == self.source and cell.get("versions") == self._versions()

    def _versions(self) -> str:
        machine = describe_machine(self.packages)
        named = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        return f"Python {machine['python']}, {named}"


def is_disturbed(cell: dict[str, Any], most_load: float) -> bool:
    """Whether other work ran beside a cell, or nobody noted."""
    own = cell.get("threads", 1) - 1
    return cell.get("load", math.inf) > most_load + own


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
