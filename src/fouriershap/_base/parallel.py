"""Blocks of rows on a few threads, and how many of them are done."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar

from fouriershap._base.checks import Progress, is_whole
from fouriershap._base.errors import InputError
from fouriershap._base.short import short

if TYPE_CHECKING:
    from fouriershap._base.progress import Teller

# Seconds. polars and CatBoost have waits resumed after a signal: one without an end would outlast Ctrl-C.
_PATIENCE = 0.05
SILENCE = 2.0  # seconds before anything is told that nobody asked for
_watch: ContextVar[Watch | None] = ContextVar("fouriershap_watch", default=None)


def count_jobs(n_jobs: int | None) -> int:
    """The number of threads: None is every core that the process may use, -1 too, -2 all but one."""
    if n_jobs is not None:
        if not is_whole(n_jobs) or n_jobs == 0:
            raise InputError(f"n_jobs is {short(n_jobs)}; give a number of threads, or None for every core.")
        if n_jobs > 0:
            return int(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if n_jobs is None else max(1, cores + 1 + int(n_jobs))


class Watch:
    """A call that is watched: ``with Watch(progress): ...``. The loops below, in the same thread, are counted.

    None tells after two seconds, True and functions at once, False never; see `progress.Teller`.
    """

    is_counting = False
    _teller: Teller | None = None
    _name, _n_loops, _n_done, _total = "explaining", 1, 0, 1

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._began = self._entered = time.perf_counter()

    def __enter__(self) -> Watch:
        self._outer = _watch.set(None if self.progress is False else self)
        return self

    def __exit__(self, *_: object) -> None:
        _watch.reset(self._outer)
        if self._teller is not None:
            self._teller.close()

    def enter(self, name: str, n_loops: int) -> None:
        """See `enter`."""
        self._name, self._n_loops, self._n_done = name, n_loops, 0
        self._entered = time.perf_counter()

    def begin(self, total: int) -> None:
        """A loop over so many parts begins."""
        self.is_counting, self._total = True, max(total, 1)

    def end(self) -> None:
        """The loop is over."""
        self.is_counting = False
        self._n_done += 1

    def show(self, done: int) -> None:
        """So many parts of the loop are done; called by the thread that waits."""
        now = time.perf_counter()
        if self._teller is None:
            if self.progress is None and now - self._began < SILENCE:
                return
            from fouriershap._base.progress import Teller

            self._teller = Teller(self.progress)
        share = min((self._n_done + done / self._total) / self._n_loops, 1.0)
        self._teller.tell(self._name, share, now - self._entered)


def _watching() -> Watch | None:
    """The watch over this thread, unless one of its loops is being counted already."""
    watch = _watch.get()
    return None if watch is None or watch.is_counting else watch


def enter(name: str, n_loops: int = 1) -> None:
    """The next ``n_loops`` loops, of about the same length, make a stage of this name, where somebody watches."""
    watch = _watching()
    if watch is not None:
        watch.enter(name, n_loops)


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
    waiting: where blocks take long it may end them. Where the call is watched (`Watch`), the blocks that are done
    are counted.
    """
    jobs = count_jobs(n_jobs)
    watch = _watching()
    if 0 < n_rows <= block_rows and (watch is None or watch.progress is None):
        work(0, n_rows)  # nothing to share out, and nothing to tell on the way
        return
    blocks = deque((first, min(first + block_rows, n_rows)) for first in range(0, n_rows, block_rows))
    if watch is None:
        _run(work, blocks, jobs, lambda _: None, stop)
        return
    watch.begin(len(blocks))
    try:
        _run(work, blocks, jobs, watch.show, stop)
    finally:
        watch.end()


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
    n_threads = min(jobs, n_blocks)
    threads = [Thread(target=labour, args=(key,), name=f"fouriershap_{key}") for key in range(n_threads)]
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
    if failures:
        raise failures[0]
    show(n_blocks)
