"""Blocks of rows on a few threads, and how many of them are done."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread, local
from typing import TypeVar

from fouriershap._base.checks import is_integer
from fouriershap._base.errors import CostWarning, InputError
from fouriershap._base.messages import duration_text, truncated_repr
from fouriershap._base.progress import current_progress
from fouriershap._base.warn import warn

# Seconds. polars and CatBoost have waits resumed after a signal: one without an end would outlast Ctrl-C.
_PATIENCE = 0.05
_LONG = 20.0  # seconds from which on a warning is due


_spent = local()


def cpu_seconds() -> float:
    """Return a clock of the processor's time that this thread takes, and the threads that it has work for it here."""
    return time.thread_time() + getattr(_spent, "by_others", 0.0)


def count_jobs(n_jobs: int) -> int:
    """Return the number of threads: -1 is every core that the process may use, -2 all but one, and so on."""
    if not is_integer(n_jobs) or n_jobs == 0:
        raise InputError(
            f"n_jobs is {truncated_repr(n_jobs)}; give a number of threads, or -1 for all cores."
        )
    if n_jobs > 0:
        return int(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores + 1 + int(n_jobs))


def warn_if_long(what: str, seconds: float, why: str, n_jobs: int) -> None:
    """Emit a `CostWarning` where ``what`` may take long: so many seconds, of one core."""
    seconds /= count_jobs(n_jobs)
    if seconds > _LONG:
        warn(f"{what} may take up to about {duration_text(seconds)}: {why}; Ctrl-C ends it.", CostWarning)


def enter(name: str, n_loops: int = 1) -> None:
    """Begin a stage of the call's progress, if it is shown: the next ``n_loops`` loops, of about the same length."""
    progress = current_progress()
    if progress is not None:
        progress.enter(name, n_loops)


T = TypeVar("T")


def for_each_in_turn(
    work: Callable[[int], T], add: Callable[[T], None], n_parts: int, n_jobs: int = -1
) -> None:
    """Call ``add(work(k))`` for k = 0, 1, ...: work on several threads at once, adding in this order."""
    done: dict[int, T] = {}
    lock = Lock()
    n_added = 0

    def worker(first: int, _: int) -> None:
        nonlocal n_added
        result = work(first)
        with lock:
            done[first] = result
            while n_added in done:
                add(done.pop(n_added))
                n_added += 1

    for_each_block(worker, n_parts, 1, n_jobs)


def for_each_block(
    work: Callable[[int, int], None],
    n_rows: int,
    block_rows: int,
    n_jobs: int = -1,
    stop: Callable[[], None] | None = None,
) -> None:
    """Call ``work(first, last)`` for consecutive blocks of rows.

    The blocks do not depend on ``n_jobs``, so neither does the result. An exception, Ctrl-C included,
    drops the blocks that have not begun, waits for those that have, and is raised. ``stop`` is called before
    waiting: where blocks take long it may end them. Within a `Progress` the blocks that are done are counted.
    """
    jobs = count_jobs(n_jobs)
    progress = current_progress()
    if 0 < n_rows <= block_rows and (progress is None or progress.option is None):
        work(0, n_rows)  # nothing to share out, and nothing to show on the way
        return
    blocks = deque((first, min(first + block_rows, n_rows)) for first in range(0, n_rows, block_rows))
    if progress is None:
        _run(work, blocks, jobs, lambda _: None, stop)
        return
    progress.begin_loop(len(blocks))
    try:
        _run(work, blocks, jobs, progress.show_loop, stop)
    finally:
        progress.end_loop()


def _run(
    work: Callable[[int, int], None],
    blocks: deque[tuple[int, int]],
    jobs: int,
    show: Callable[[int], None],
    stop: Callable[[], None] | None,
) -> None:
    n_blocks = len(blocks)
    if jobs == 1 or n_blocks <= 1:
        for done, (first, last) in enumerate(blocks, 1):
            work(first, last)
            show(done)
        return
    failures: list[BaseException] = []
    taken: list[float] = []
    busy: set[int] = set()  # threads that have a block, or are about to take one

    def worker(key: int) -> None:
        busy.add(key)
        try:
            while True:
                try:
                    first, last = blocks.popleft()
                except IndexError:  # nothing is left
                    return
                work(first, last)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            failures.append(error)
            blocks.clear()
            if stop is not None:
                stop()
        finally:
            taken.append(cpu_seconds())
            busy.discard(key)

    # No pool: this thread shares no lock with the others, so that Ctrl-C cannot leave one taken for good.
    n_threads = min(jobs, n_blocks)
    threads = [Thread(target=worker, args=(key,), name=f"fouriershap_{key}") for key in range(n_threads)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(_PATIENCE)
                show(n_blocks - len(blocks) - len(busy))
    except BaseException:
        blocks.clear()
        if stop is not None:
            stop()
        while busy:  # not `join`: a thread whose start was interrupted does not know yet that it is alive
            time.sleep(_PATIENCE / 10)
        raise
    _spent.by_others = getattr(_spent, "by_others", 0.0) + sum(taken)
    if failures:
        raise failures[0]
    show(n_blocks)
