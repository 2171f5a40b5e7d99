"""A peer that takes too long, or fails, leaves words in its cell; one that answers, its CPU seconds."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import numpy as np
import pytest

from deep_cells.depth import within


def _spins() -> Callable[[], np.ndarray]:
    def work() -> np.ndarray:
        while True:
            np.ones(1000).sum()

    return work


def _refuses() -> Callable[[], np.ndarray]:
    def work() -> np.ndarray:
        raise NotImplementedError

    return work


def _is_killed() -> Callable[[], np.ndarray]:
    def work() -> np.ndarray:
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does where memory ends
        return np.zeros(0)

    return work


def _doubles(X: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: 2 * X


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (_spins, "not finished after 1 s"),
        (_refuses, "fails: NotImplementedError"),
        (_is_killed, "fails: exit code -9"),
    ],
)
def test_words_of_what_has_no_answer(prepare: Callable[..., Callable[[], np.ndarray]], words: str) -> None:
    assert within(1, prepare) == (words, None)


def test_an_answer_comes_with_its_seconds() -> None:
    X = np.arange(6.0).reshape(2, 3)
    seconds, values = within(60, _doubles, X)
    assert isinstance(seconds, float) and 0 <= seconds < 60
    np.testing.assert_array_equal(values, 2 * X)
