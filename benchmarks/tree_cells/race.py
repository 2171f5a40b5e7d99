"""Contenders on the same work: compared first, then timed in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from peers import trees as peers

OURS = "fouriershap"
TOLERANCE = 1e-4  # of the largest value


@dataclass(frozen=True)
class Contender:
    """A way to do the work.

    Attributes
    ----------
    run : callable
        Does the work, everything included that is to be timed.
    values : callable, optional
        What of the outcome is compared; None where it answers another question and only time is compared.
    share : float
        Part of the rows that it explains; its time is divided by it, and marked as extrapolated.
    rows_off : float
        Share of rows that may differ, for a peer with a known fault; `why` says which.
    referee : callable, optional
        Takes the numbers of the rows that differ, and returns how far a third party is from us on them.
    """

    run: Callable[[], Any]
    values: Callable[[Any], np.ndarray] | None = np.asarray
    share: float = 1.0
    rows_off: float = 0.0
    why: str = ""
    referee: Callable[[np.ndarray], float] | None = None


@dataclass
class Cell:
    """The outcome of one race. Times are minima, in seconds."""

    group: str
    model: str
    cell: str
    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    megabytes: dict[str, float] = field(default_factory=dict)
    differences: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def target(
        self, name: str, peer: str, limit: float, *, ours: str = OURS, at_least: bool = True
    ) -> Target:
        """How many times faster than the peer we are, or with at_least=False how many times its time we take."""
        wall, cpu = (found[peer] / found[ours] for found in (self.wall, self.cpu))
        if at_least:
            return Target(name, wall, limit, by_cpu=cpu)
        return Target(name, 1 / wall, limit, at_least=False, by_cpu=1 / cpu)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Target:
    """A number that must hold: `value` at least, or at most, `limit`.

    `by_cpu` is the same ratio by the CPU time of all threads: what a busy machine disturbs less.
    """

    name: str
    value: float
    limit: float
    at_least: bool = True
    unit: str = "times"
    by_cpu: float | None = None

    @property
    def held(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"held": self.held}


@dataclass
class Outcome:
    """What a group of cells found."""

    cells: list[Cell] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def extend(self, other: Outcome) -> None:
        self.cells += other.cells
        self.targets += other.targets


def by_shapiq(model: Any, X: np.ndarray, background: np.ndarray, share: float = 1.0) -> dict[str, Contender]:
    """shapiq's interventional explainer on a share of the rows, where it is installed: it needs Python 3.12."""
    if find_spec("shapiq") is None:
        return {}
    few = X[: max(1, round(share * len(X)))]
    return {"shapiq": Contender(peers.shapiq(model, few, background), share=len(few) / len(X))}


def race(
    name: tuple[str, str, str],
    contenders: dict[str, Contender],
    *,
    reference: str = OURS,
    rounds: int = 7,
    most_seconds: float = 4.0,
    in_a_row: int = 1,
) -> Cell:
    """Run all, compare with the reference, then time them in turn.

    The comparing round counts as a run. Nobody begins another run that would take them beyond
    ``most_seconds``, so a slow contender may run but once. ``in_a_row``: runs of a contender before the next has its
    turn; where runs take a millisecond, the first one alone would mostly tell whose work is in the caches.
    """
    cell = Cell(*name)
    spent = dict.fromkeys(contenders, 0.0)
    expected = None
    for who in sorted(contenders, key=lambda who: who != reference):
        found, seconds = _timed(cell, who, contenders[who])
        spent[who] += seconds
        if who == reference:
            expected = contenders[who].values(found)
        elif contenders[who].values is not None:
            _compare(cell, who, contenders[who], contenders[who].values(found), expected)
    for _ in range(rounds - 1):
        for who, contender in contenders.items():
            for _ in range(in_a_row):
                if spent[who] + cell.wall[who] * contender.share <= most_seconds:
                    spent[who] += _timed(cell, who, contender)[1]
    for who, contender in contenders.items():
        if contender.share < 1:
            cell.notes.append(f"{who}: extrapolated from {contender.share:.2%} of the rows")
    return cell


def _timed(cell: Cell, who: str, contender: Contender) -> tuple[Any, float]:
    wall_begin, cpu_begin = time.perf_counter(), time.process_time()
    found = contender.run()
    wall, cpu = time.perf_counter() - wall_begin, time.process_time() - cpu_begin
    cell.wall[who] = min(cell.wall.get(who, np.inf), wall / contender.share)
    cell.cpu[who] = min(cell.cpu.get(who, np.inf), cpu / contender.share)
    cell.runs[who] = cell.runs.get(who, 0) + 1
    return found, wall


def _compare(cell: Cell, who: str, contender: Contender, found: np.ndarray, expected: np.ndarray) -> None:
    """Note the largest difference; stop where it is no rounding, and no known fault of the peer."""
    expected = expected[: len(found)]
    by_row = np.abs(found - expected).reshape(len(found), -1).max(axis=1) / np.abs(expected).max()
    off = by_row > TOLERANCE
    cell.differences[who] = float(by_row.max())
    if off.mean() > contender.rows_off:
        where = f"{cell.group}, {cell.model}, {cell.cell}"
        raise SystemExit(
            f"{where}: {who} differs in {int(off.sum())} of {len(off)} rows, by up to {by_row.max():.1e} of the "
            "largest value. No time is reported."
        )
    if off.any():
        note = f"{who}: wrong by up to {by_row.max():.1e} in {int(off.sum())} of {len(off)} rows: {contender.why}"
        cell.notes.append(note + _ask_referee(contender, np.flatnonzero(off)))


def _ask_referee(contender: Contender, rows: np.ndarray) -> str:
    if contender.referee is None:
        return ""
    distance = contender.referee(rows)
    if distance > TOLERANCE:
        raise SystemExit(f"The referee is {distance:.1e} away from us in these rows. No time is reported.")
    return f" (the model's own answers to hybrids of these rows are {distance:.0e} from ours)"
