"""What processes cost: peak memory while a command runs, the start of a worker, and pages that workers share."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

_SAMPLE_SECONDS = 0.1
_HERE = Path(__file__).parent.parent

START = """
import json, sys, time
begin = time.perf_counter()
import numpy, pyarrow
libraries = time.perf_counter()
import fouriershap
explainer = fouriershap.load(sys.argv[1])
opened = time.perf_counter()
explainer.shap_values(numpy.zeros((1, len(explainer.feature_names))), n_jobs=1)
first = time.perf_counter()
print(json.dumps({"numpy and pyarrow": libraries - begin, "open": opened - libraries, "first row": first - opened}))
"""

HOLD = """
import sys, numpy, fouriershap
explainer = fouriershap.load(sys.argv[1])
rows = numpy.random.default_rng(0).random((1000, len(explainer.feature_names)), dtype=numpy.float32)
explainer.shap_values(rows, n_jobs=1)
print("ready", flush=True)
sys.stdin.read()
"""


class Watched(NamedTuple):
    """A command that has ended: what it printed, how long it took, and the peak of each process, in bytes."""

    output: str
    seconds: float
    cpu_seconds: float
    peaks: dict[str, list[int]]


def run_watched(command: list[str], n_threads: int, role: Callable[[list[str]], str | None]) -> Watched:
    """Run a command and sample the resident memory of its processes; ``role`` names those that count.

    Libraries with thread pools of their own get ``n_threads``.
    """
    environment = os.environ | {"OMP_NUM_THREADS": str(n_threads), "PYTHONPATH": str(_HERE)}
    begin, cpu_before = time.perf_counter(), _cpu_of_ended()
    peaks: dict[int, tuple[str, int]] = {}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        watched = psutil.Process(child.pid)
        while child.poll() is None:
            for process in [watched, *_children(watched)]:
                _sample(process, role, peaks)
            time.sleep(_SAMPLE_SECONDS)
        output, errors = child.communicate()
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{errors[-4000:]}")
    by_role: dict[str, list[int]] = {}
    for name, peak in peaks.values():
        by_role.setdefault(name, []).append(peak)
    return Watched(output, time.perf_counter() - begin, _cpu_of_ended() - cpu_before, by_role)


def _cpu_of_ended() -> float:
    """CPU seconds of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _sample(
    process: psutil.Process, role: Callable[[list[str]], str | None], peaks: dict[int, tuple[str, int]]
) -> None:
    try:
        name, resident = role(process.cmdline()), process.memory_info().rss
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return
    if name is not None:
        peaks[process.pid] = (name, max(resident, peaks.get(process.pid, ("", 0))[1]))


def start_seconds(model: Path, runs: int = 5) -> dict[str, float]:
    """The quickest of several fresh processes: what a worker pays before it explains."""
    found = []
    for _ in range(runs):
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", START, str(model)], capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stdout) | {"whole process": time.perf_counter() - begin})
    return min(found, key=lambda seconds: seconds["whole process"])


def shared_memory(model: Path, n_processes: int = 10) -> dict[str, Any]:
    """Resident and proportional set size of processes that have opened and used one file, in bytes.

    The proportional size counts a page that k processes share as 1/k of a page.
    """
    command = [sys.executable, "-c", HOLD, str(model)]
    holders = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(n_processes)
    ]
    try:
        for holder in holders:
            holder.stdout.readline()
        whole = [_rollup(Path(f"/proc/{holder.pid}/smaps_rollup").read_text()) for holder in holders]
        mapped = [_mapping(Path(f"/proc/{h.pid}/smaps").read_text(), model.resolve()) for h in holders]
    finally:
        for holder in holders:
            holder.stdin.close()
            holder.wait()
            holder.stdout.close()
    return {
        "processes": n_processes,
        "file": model.stat().st_size,
        "process": {key: max(size[key] for size in whole) for key in ("Rss", "Pss")},
        "file mapped": {key: max(size[key] for size in mapped) for key in ("Rss", "Pss", "Private_Dirty")},
        "file mapped, all processes": sum(size["Pss"] for size in mapped),
    }


def _rollup(text: str) -> dict[str, int]:
    """The sizes of an entry of smaps, in bytes."""
    lines = (line.split() for line in text.splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if words[-1] == "kB"}


def _mapping(text: str, file: Path) -> dict[str, int]:
    """The sizes of all mappings of a file."""
    total: dict[str, int] = {"Rss": 0, "Pss": 0, "Private_Dirty": 0}
    inside = False
    for line in text.splitlines():
        words = line.split()
        if words[-1] != "kB" and not words[0].endswith(":"):  # the head of a mapping
            inside = words[-1] == str(file)
        elif inside and words[0].rstrip(":") in total:
            total[words[0].rstrip(":")] += int(words[1]) * 1024
    return total
