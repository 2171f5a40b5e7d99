"""What every benchmark shares: interleaved timing, a description of the machine, results as JSON."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """The quickest of several runs: what the work costs when nothing else disturbs it."""

    wall_seconds: float
    cpu_seconds: float
    runs: int


def time_interleaved(
    contenders: dict[str, Callable[[], Any]], *, rounds: int = 7, most_seconds: float = 60.0
) -> dict[str, Timing]:
    """Time the contenders in turn, round after round, so that a busy spell of the machine meets them all.

    Every contender runs at least twice (the first run warms up caches and counts too: minima are taken),
    and no new round begins after ``most_seconds``.
    """
    wall = dict.fromkeys(contenders, float("inf"))
    cpu = dict.fromkeys(contenders, float("inf"))
    begin, done = time.perf_counter(), 0
    while done < rounds and (done < 2 or time.perf_counter() - begin < most_seconds):
        for name, run in contenders.items():
            wall_begin, cpu_begin = time.perf_counter(), time.process_time()
            run()
            wall[name] = min(wall[name], time.perf_counter() - wall_begin)
            cpu[name] = min(cpu[name], time.process_time() - cpu_begin)
        done += 1
    return {name: Timing(wall[name], cpu[name], done) for name in contenders}


def times(quick: Timing, slow: Timing) -> dict[str, float]:
    """How many times longer the slow one takes. On a busy machine CPU time is the fairer of the two."""
    return {
        "wall": slow.wall_seconds / quick.wall_seconds,
        "cpu": slow.cpu_seconds / quick.cpu_seconds,
    }


def describe_machine(packages: tuple[str, ...] = ()) -> dict[str, Any]:
    """Processor, cores and versions; nothing that names the machine or its owner."""
    from fouriershap import _kernels as kernels

    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": sys.version.split()[0],
        "kernels": kernels.backend(),
        "instruction_set": kernels.instruction_set(),
        "versions": {name: _version(name) for name in ("fouriershap", "numpy", *packages)},
    }


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit() -> str:
    """The commit that made the package as it is measured, with a plus where that was changed since.

    Later commits, of results or pages, do not change it. "unknown" outside a clone.
    """
    return _revision("log", "-1", "--format=%h", "--", "../src")


def source() -> str:
    """The tree of the package that is measured, marked as `commit` does: the same after a commit of results."""
    return _revision("rev-parse", "--short=12", "HEAD:src")


def _revision(*words: str) -> str:
    commands = (words, ("status", "--porcelain", "--", "../src"))
    try:
        found, changed = (
            subprocess.run(["git", *command], capture_output=True, text=True, check=True, cwd=RESULTS.parent)
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip() + ("+" if changed.stdout.strip() else "")


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def plain(value: Any) -> Any:
    """What JSON takes in place of a timing or a number of NumPy."""
    return asdict(value) if isinstance(value, Timing) else value.item()


def print_machine(packages: tuple[str, ...] = ()) -> None:
    machine = describe_machine(packages)
    versions = ", ".join(f"{name} {found}" for name, found in machine["versions"].items())
    print(f"{machine['cpu']}, {machine['cores']} cores, {machine['instruction_set']} kernels")
    print(f"Python {machine['python']}, {versions}\n")


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as their widest cell; the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, tuple("-" * width for width in widths), *rows]:
        first, *rest = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join([first, *rest]).rstrip())
    print()


def seconds(value: float) -> str:
    """A duration for people."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} us"
    return f"{digits(value * 1e3)} ms" if value < 1 else f"{digits(value)} s"


def digits(value: float, most: int = 3) -> str:
    """A number with so many digits that count, and all that stand before the point."""
    return f"{value:,.0f}" if value >= 10 ** (most - 1) else f"{value:.{most}g}"
