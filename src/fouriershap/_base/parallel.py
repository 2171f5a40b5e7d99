"""Blocks of rows on a few threads."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread
from typing import TypeVar

from fouriershap._base.checks import is_whole
from fouriershap._base.errors import InputError
from fouriershap._base.short import short

# Seconds. polars and CatBoost have waits resumed after a signal: one without an end would outlast Ctrl-C.
_PATIENCE = 0.05


def count_jobs(n_jobs: int | None) -> int:
    """The number of threads: None is every core that the process may use, -1 too, -2 all but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if not is_whole(n_jobs) or n_jobs == 0:
        raise InputError(f"n_jobs is {short(n_jobs)}; give a number of threads, or None for every core.")
    n_jobs = int(n_jobs)
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


T = TypeVar("T")


def for_each_in_turn(
    work: Callable[[int], T], add: Callable[[T], None], n_parts: int, n_jobs: int | None = None
) -> None:
    """Call ``add(work(k))`` for k = 0, 1, ...: work on several threads at once, adding in this order."""
    done: dict[int, T] = {}
    lock = Lock()
    n_added = 0

    def labour(first: int, _: int) -> None:
        nonlocal n_added
        result = work(first)
        with lock:
            done[first] = result
            while n_added in done:
                add(done.pop(n_added))
                n_added += 1

    for_each_block(labour, n_parts, 1, n_jobs)


def for_each_block(
    work: Callable[[int, int], None],
    n_rows: int,
    block_rows: int,
    n_jobs: int | None = None,
    stop: Callable[[], None] | None = None,
) -> None:
    """Call ``work(first, last)`` for consecutive blocks of rows.

    The blocks do not depend on ``n_jobs``, so neither does the result. An exception, Ctrl-C included,
    drops the blocks that have not begun, waits for those that have, and is raised. ``stop`` is called before
    waiting: where blocks take long it may end them.
    """
    jobs = count_jobs(n_jobs)
    blocks = deque((first, min(first + block_rows, n_rows)) for first in range(0, n_rows, block_rows))
    if jobs == 1 or len(blocks) <= 1:
        for first, last in blocks:
            work(first, last)
        return
    failures: list[BaseException] = []
    busy: set[int] = set()  # threads that have a block, or are about to take one

    def labour(key: int) -> None:
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
            busy.discard(key)

    # No pool: this thread shares no lock with the others, so that Ctrl-C cannot leave one taken for good.
    n_threads = min(jobs, len(blocks))
    threads = [Thread(target=labour, args=(key,), name=f"fouriershap_{key}") for key in range(n_threads)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(_PATIENCE)
    except BaseException:
        blocks.clear()
        if stop is not None:
            stop()
        while busy:  # not `join`: a thread whose start was interrupted does not know yet that it is alive
            time.sleep(_PATIENCE / 10)
        raise
    if failures:
        raise failures[0]
