"""Bad input of the sparse transform, and its progress."""

from __future__ import annotations

import numpy as np
import pytest

from fouriershap import InputError, QueryError, sparse_walsh_hadamard
from sparse_models import Model, random_spectrum

# Bad input


def failing(bad):
    """Answers two batches of 64 well, then ``bad(rows)``."""
    state = {"batch": -1}

    def h(rows):
        state["batch"] += 1
        return np.zeros(len(rows)) if state["batch"] < 2 else bad(rows)

    return h


def raise_it(rows):
    raise RuntimeError("no connection")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda rows: np.zeros(len(rows) - 1), r"shape \(63,\)"),
        (lambda rows: np.zeros((len(rows), 2)), r"shape \(64, 2\)"),
        (lambda rows: np.full(len(rows), np.nan), "not finite"),
        (lambda rows: np.array(["a"] * len(rows)), "dtype"),
        (raise_it, "RuntimeError: no connection"),
    ],
)
def test_failures_name_the_batch_and_keep_the_answers(bad, message):
    with pytest.raises(QueryError, match=f"batch 2 .queries 128 to 191.*{message}") as caught:
        sparse_walsh_hadamard(failing(bad), 40, batch_size=64, random_state=0)
    assert caught.value.batch == 2
    rows = np.concatenate(caught.value.rows)
    assert rows.shape == (128, 40)
    assert sum(map(len, caught.value.answers.values())) == 128
    assert set(caught.value.answers) == {tuple(row) for row in rows.tolist()}


@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_a_budget_that_is_too_small_says_what_would_do(algorithm):
    with pytest.raises(InputError, match="need at least") as caught:
        sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, budget=100, algorithm=algorithm)
    needed = int(str(caught.value).split("need at least ")[1].split()[0])
    sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, budget=needed, algorithm=algorithm, random_state=0)
    with pytest.raises(InputError, match="need at least"):
        sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, budget=needed - 1, algorithm=algorithm)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"h": np.zeros(8)}, "h is ndarray"),
        ({"n_bits": -1}, "n_bits"),
        ({"n_bits": 2.5}, "n_bits"),
        ({"n_terms": 0}, "n_terms"),
        ({"max_degree": 0}, "max_degree"),
        ({"budget": 0}, "budget"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": None}, "batch_size"),
        ({"algorithm": "fast"}, "algorithm"),
        ({"progress": 3}, "progress"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        sparse_walsh_hadamard(**({"h": lambda rows: rows[:, 0], "n_bits": 30} | arguments))


# Progress


def test_progress_counts_queries():
    seen = []
    model = Model(random_spectrum(0, 40, 20))
    h = lambda rows: (sizes.append(len(rows)), model(rows))[1]  # noqa: E731
    sizes = []
    progress = lambda done, total: seen.append((done, total))  # noqa: E731
    sparse_walsh_hadamard(h, 40, 20, random_state=0, batch_size=100, progress=progress)
    assert max(sizes) <= 100
    assert [done for done, _ in seen] == np.cumsum(sizes).tolist()
    assert all(done <= total for done, total in seen)


def test_progress_bar(capsys):
    sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, progress=True, random_state=0)
    assert "queries" in capsys.readouterr().err
