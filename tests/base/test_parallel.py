"""Threads: the same result for any number of them, one object for many, errors and Ctrl-C."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from fouriershap._base.parallel import count_jobs, for_each_block
from strategies import random_frequencies


def press_ctrl_c() -> None:
    """What a terminal does: a signal to the main thread, wherever it waits."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def problem(n_rows: int = 9000) -> tuple[fs.Spectrum, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    h = fs.Spectrum(random_frequencies(rng, 150, 24, 5), rng.standard_normal((150, 2)))
    X, background = (rng.integers(0, 2, size=(n, 24)).astype(np.uint8) for n in (n_rows, 200))
    return h, X, background


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 100), st.integers(1, 30), st.sampled_from([1, 2, 5, -1]))
def test_every_row_once(n_rows: int, block_rows: int, n_jobs: int) -> None:
    seen = np.zeros(n_rows, dtype=int)

    def work(first: int, last: int) -> None:
        assert 0 < last - first <= block_rows
        seen[first:last] += 1

    for_each_block(work, n_rows, block_rows, n_jobs)
    assert (seen == 1).all()


def test_the_same_result_for_any_number_of_threads() -> None:
    h, X, background = problem()
    tables = fs.SpectrumExplainer(h, background)
    mixed = fs.SpectrumExplainer(h, background, memory=tables.info.table_bytes / 2)
    assert mixed.plan().strategy == "tables+direct"
    calls: list[Any] = [
        lambda n: h(X, n_jobs=n),
        lambda n: tables.shap_values(X, n_jobs=n),
        lambda n: mixed.shap_values(X[:300], n_jobs=n),
        lambda n: fs.spectra.shap_values(h, X[:300], background, strategy="direct", n_jobs=n),
    ]
    for call in calls:
        expected = call(1)
        for n_jobs in (2, 3, 8, -1):
            np.testing.assert_array_equal(call(n_jobs), expected)


def test_many_threads_explain_with_one_object_at_once() -> None:
    h, X, background = problem(5000)
    tables = fs.SpectrumExplainer(
        h, background, memory=fs.SpectrumExplainer(h, background).info.table_bytes / 2
    )
    parts = np.array_split(X[:800], 16)
    expected = [tables.shap_values(part, n_jobs=1) for part in parts]
    barrier = threading.Barrier(8)

    def explain(part: np.ndarray) -> np.ndarray:
        barrier.wait()
        return tables.shap_values(part, n_jobs=2)

    with ThreadPoolExecutor(8) as pool:
        for found, wanted in zip(pool.map(explain, parts), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_an_exception_in_a_block_is_raised_and_stops_the_rest(n_jobs: int) -> None:
    done = []

    def work(first: int, last: int) -> None:
        if first == 3:
            raise ZeroDivisionError("block 3")
        time.sleep(0.002)
        done.append(first)

    with pytest.raises(ZeroDivisionError, match="block 3"):
        for_each_block(work, 2000, 1, n_jobs)
    assert len(done) < 1000
    settled = len(done)
    time.sleep(0.05)
    assert len(done) == settled  # nothing runs on behind the caller's back


@pytest.fixture
def undisturbed() -> Iterator[None]:
    """No callback of the collector, in which an interrupt would be lost, and no handler that a library left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("n_jobs", [1, 2, 8])
@pytest.mark.parametrize("block", [0, 100])
def test_ctrl_c(n_jobs: int, block: int) -> None:
    """While blocks are still handed to the threads, and while they are waited for."""
    done = []

    def work(first: int, last: int) -> None:
        if first == block:
            press_ctrl_c()
        time.sleep(0.002)
        done.append(first)

    with pytest.raises(KeyboardInterrupt):
        for_each_block(work, 2000, 1, n_jobs)
    assert len(done) < 1000
    settled = len(done)
    time.sleep(0.05)
    assert len(done) == settled


@pytest.mark.usefixtures("undisturbed")
def test_ctrl_c_reaches_a_long_explanation() -> None:
    """The kernels come up for air between blocks of rows."""
    rng = np.random.default_rng(0)
    h = fs.Spectrum(random_frequencies(rng, 3000, 60, 8), rng.standard_normal(3000))
    X, background = (rng.integers(0, 2, size=(n, 60)) for n in (20_000, 20_000))
    timer = threading.Timer(0.3, press_ctrl_c)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fs.spectra.shap_values(h, X, background, strategy="direct")  # an hour
    timer.join()


def test_numbers_of_threads() -> None:
    every = count_jobs(-1)
    assert every >= 1
    assert count_jobs(-(10**6)) == 1
    assert count_jobs(np.int64(3)) == 3
    for bad in (None, 0, 1.5, True, "two"):
        with pytest.raises(fs.InputError, match="n_jobs"):
            count_jobs(bad)  # type: ignore[arg-type]
