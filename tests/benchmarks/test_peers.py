"""The baselines of the benchmarks, on a problem small enough for the definition."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import oracles
from paper.models import Network, r_squared
from paper.truth import by_definition
from peers import coalitions, missing
from peers.fast_shap_answers import ask
from peers.kernel_shap import kernel_shap
from peers.linreg_shap import linreg_shap
from peers.permutation import permutation

N_BITS = 8


@pytest.fixture(scope="module")
def problem() -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    """A network, rows, background rows and the true SHAP values."""
    rng = np.random.default_rng(0)
    weights = tuple(rng.normal(size=shape).astype(np.float32) for shape in ((N_BITS, 12), (12, 1)))
    network = Network(weights, (rng.normal(size=12).astype(np.float32), np.zeros(1, np.float32)))
    X, background = (rng.integers(0, 2, size=(n, N_BITS)).astype(np.float32) for n in (4, 5))
    return network, X, background, oracles.shap_values(network, X, background)[..., 0]


@pytest.mark.parametrize(
    ("peer", "least"),
    [
        (partial(kernel_shap, all_features=True), 0.9999),
        (permutation, 0.99),
        (linreg_shap, 0.95),
        (partial(linreg_shap, n_samples=16_384), 0.999),
    ],
)
def test_samplers_come_near_the_truth(problem: Any, peer: Any, least: float) -> None:
    network, X, background, expected = problem
    found = peer(network, background, 0)(X)
    assert found.shape == X.shape
    assert r_squared(expected, found) > least
    total = network(X) - network(background).mean()
    np.testing.assert_allclose(found.sum(axis=1), total, atol=1e-4)


def test_more_coalitions_are_more_accurate(problem: Any) -> None:
    network, X, background, expected = problem
    few, many = (
        r_squared(expected, linreg_shap(network, background, 0, n_samples=n)(X)) for n in (128, 8192)
    )
    assert few < many


def test_shapiq(problem: Any) -> None:
    pytest.importorskip("shapiq")
    from peers.shapiq_peers import shapiq

    network, X, background, expected = problem
    assert r_squared(expected, shapiq(network, background, 0)(X)) > 0.999


def test_the_definition_is_the_oracle(problem: Any) -> None:
    network, X, background, expected = problem
    np.testing.assert_allclose(by_definition(network, X, background), expected, atol=1e-6)


def test_coalitions_have_the_sizes_of_the_kernel() -> None:
    drawn = coalitions.draw(np.random.default_rng(0), (20_000,), 6)
    sizes, share = coalitions.size_shares(6)
    found = np.bincount(drawn.sum(axis=1), minlength=7)[1:6] / len(drawn)
    np.testing.assert_allclose(found, share, atol=0.015)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.5, atol=0.02)
    assert sizes.tolist() == [1, 2, 3, 4, 5]


def test_answers_of_fastshap_are_the_game(problem: Any) -> None:
    network, X, background, expected = problem
    answers = ask(network, background, X, 6, seed=0)
    np.testing.assert_array_equal(answers.subsets[:, :3], ~answers.subsets[:, 3:])
    value = oracles.coalition_values(network, X[1], background, np.arange(N_BITS))[:, 0]
    number = answers.subsets[1] @ (1 << np.arange(N_BITS))
    np.testing.assert_allclose(answers.values[1], value[number] - value[0], atol=1e-6)
    np.testing.assert_allclose(answers.totals, expected.sum(axis=1), atol=1e-5)


def test_what_is_missing_is_named() -> None:
    assert missing("numpy") is None
    assert "no_such_peer" in str(missing("numpy", "no_such_peer"))
