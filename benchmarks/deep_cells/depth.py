"""Deeper and deeper: LightGBM, 100 trees of up to 2,024 leaves, against the peers that reach so far."""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import fouriershap as fs
from deep_cells import models
from peers import trees as peers

GROUP = "depth"
DEPTHS = (6, 9, 12, 15, 18, 21)
SMALL, LARGE, LARGEST = 100, 20_000, 100_000
DEEPEST = {SMALL: 21, LARGE: 21, LARGEST: 15}  # the largest take ten minutes at depth 18 and 21
MODELS = tuple(
    f"lightgbm, deep:100:{depth} x {size}" for size in DEEPEST for depth in DEPTHS if depth <= DEEPEST[size]
)
PEERS = {"woodelf": peers.woodelf, "shap": peers.shap, "shapiq": peers.shapiq}
ASKED = {SMALL: ("shap", "shapiq", "woodelf"), LARGE: ("woodelf",), LARGEST: ()}
# Of a peer in one cell: when it has taken so many times what we take, more of them would tell nothing new; nor would
# a deeper model of so many rows, beyond the first that it did not finish.
LEAST_CPU_SECONDS, MOST_TIMES = 40, 16
DEEPEST_ASKED = {SMALL: 21, LARGE: 15}
NOT_FINISHED = "not finished after"
_SHORT = 5.0  # seconds of our own: measured three times
_MODULES = {"woodelf": "woodelf", "shap": "shap", "shapiq": "shapiq"}


def run(name: str) -> list[dict[str, Any]]:
    """CPU seconds on one thread, construction included; every peer's values compared with ours."""
    model, _, digits = name.partition(" x ")
    size = int(digits)
    X, background = models.rows(size), models.background(size)
    work = _ours(model, X, background)
    ours, values = _timed(work)
    for _ in range(2 if ours < _SHORT else 0):  # a first call also imports what is imported when needed
        ours = min(ours, _timed(work)[0])
    cell: dict[str, Any] = {"model": model, "rows": size, "seconds": ours}
    too_deep = int(model.rpartition(":")[2]) > DEEPEST_ASKED.get(size, 0)
    for peer in () if too_deep else ASKED[size]:
        if find_spec(_MODULES[peer]) is None:
            continue
        most = max(LEAST_CPU_SECONDS, math.ceil(MOST_TIMES * ours))
        seconds, theirs = within(most, _theirs, peer, model, X, background)
        cell[peer] = seconds
        if theirs is None:
            continue
        cell[f"{peer} differs"] = float(np.abs(theirs - values).max() / np.abs(values).max())
    return [cell]


def within(
    most: int, prepare: Callable[..., Callable[[], np.ndarray]], *arguments: Any
) -> tuple[float | str, np.ndarray | None]:
    """CPU seconds and values of work; in words and None where it fails, or takes more CPU seconds than ``most``.

    In a process of its own, which the system stops: peers in C++ cannot be interrupted from Python. What ``prepare``
    takes to make the work of its arguments is not charged.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.npz"
        child = multiprocessing.get_context("spawn").Process(
            target=_in_child, args=(most, answer, prepare, *arguments)
        )
        child.start()
        child.join()
        if child.exitcode == -signal.SIGXCPU:
            return f"{NOT_FINISHED} {most} s", None
        if not answer.exists():  # without memory the system kills it, too
            return f"fails: exit code {child.exitcode}", None
        found = np.load(answer)
        return (
            (float(found["seconds"]), found["values"]) if "values" in found else (str(found["failure"]), None)
        )


def _in_child(
    most: int, answer: Path, prepare: Callable[..., Callable[[], np.ndarray]], *arguments: Any
) -> None:
    work = prepare(*arguments)
    spent = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + most, resource.RLIM_INFINITY))
    try:
        with threadpool_limits(1):  # of BLAS, where peers multiply matrices
            seconds, values = _timed(work)
    except (MemoryError, ValueError, NotImplementedError) as error:
        np.savez(answer, failure=f"fails: {type(error).__name__}")
        return
    np.savez(answer, seconds=seconds, values=np.asarray(values))


def _theirs(peer: str, name: str, X: np.ndarray, background: np.ndarray) -> Callable[[], np.ndarray]:
    return PEERS[peer](models.model(name), X, background)


def _ours(name: str, X: np.ndarray, background: np.ndarray) -> Callable[[], np.ndarray]:
    model = models.model(name)
    return lambda: fs.TreeExplainer(model, background, n_jobs=1).shap_values(X)


def _timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found
