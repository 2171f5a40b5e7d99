"""Dependences against formulas written out for one coalition and row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, norm

from fouriershap._base.errors import FileFormatError
from fouriershap._dependence.coordinates import ranked, scaled
from fouriershap._dependence.fit import fit_dependence
from fouriershap._dependence.mixture import Mixture

Floats = NDArray[np.float64]


def rows_of(n_rows: int = 400, seed: int = 0) -> Floats:
    """Return two clusters of three correlated numbers, and a label that tells the clusters apart, but not always."""
    rng = np.random.default_rng(seed)
    cluster = rng.random(n_rows) < 0.4
    C = np.array([[1.0, 0.7, 0.2], [0.7, 1.5, 0.0], [0.2, 0.0, 0.5]])
    numbers = rng.multivariate_normal([0, 0, 0], C, n_rows) + np.outer(cluster, [4.0, -3.0, 1.0])
    label = np.where(rng.random(n_rows) < 0.9, cluster, ~cluster) * 2.0
    return np.column_stack([numbers[:, :2], label, numbers[:, 2]])


IS_LABEL = np.array([False, False, True, False])
NUMBERS = [0, 1, 3]


def in_numbers(mixture: Mixture, k: int) -> tuple[Floats, Floats]:
    """Return mean and covariance of a component in the unit of the numbers."""
    scale = mixture.coordinates.scale
    mean = mixture.means[k] * scale + mixture.coordinates.center
    return mean, mixture.covariances[k] * np.outer(scale, scale)


@pytest.mark.parametrize("name", ["gaussian", "mixture"])
def test_conditional_moments_and_shares_are_those_of_the_formulas(name: str) -> None:
    X = rows_of()
    mixture = fit_dependence(name, X, IS_LABEL, None, 0)
    masks = np.array([[m >> f & 1 for f in range(4)] for m in range(16)], dtype=bool)
    conditioned = mixture.condition(masks, np.zeros(3, dtype=bool))
    given = conditioned.given(X[:3])
    for c, mask in enumerate(masks):
        S = [j for j, f in enumerate(NUMBERS) if mask[f]]
        T = [j for j, f in enumerate(NUMBERS) if not mask[f]]
        for r in range(3):
            z, likelihood = X[r, NUMBERS], []
            for k in range(mixture.n_components):
                mean, C = in_numbers(mixture, k)
                inverse = np.linalg.inv(C[np.ix_(S, S)])
                want = mean[T] + C[np.ix_(T, S)] @ inverse @ (z[S] - mean[S])
                found = given.means[k, c, r] * mixture.coordinates.scale + mixture.coordinates.center
                np.testing.assert_allclose(found[T], want, atol=1e-9)
                np.testing.assert_allclose(found[S], z[S], atol=1e-9)
                left = C[np.ix_(T, T)] - C[np.ix_(T, S)] @ inverse @ C[np.ix_(S, T)]
                unit = np.outer(mixture.coordinates.scale, mixture.coordinates.scale)
                np.testing.assert_allclose(
                    (conditioned.covariances[k, c] * unit)[np.ix_(T, T)], left, atol=1e-9
                )
                density = mixture.weights[k]
                density *= multivariate_normal(mean[S], C[np.ix_(S, S)]).pdf(z[S]) if S else 1.0
                density *= mixture.shares[k, 2, int(X[r, 2] / 2)] if mask[2] else 1.0
                likelihood.append(density)
            np.testing.assert_allclose(
                given.shares[:, c, r], np.array(likelihood) / sum(likelihood), atol=1e-9
            )


def test_log_densities_are_those_of_scipy() -> None:
    X = rows_of()
    mixture = fit_dependence("mixture", X, IS_LABEL, None, 0)
    want = np.zeros(5)
    for k in range(mixture.n_components):
        density = multivariate_normal(mixture.means[k], mixture.covariances[k]).pdf(mixture.positions(X[:5]))
        want += mixture.weights[k] * density * mixture.shares[k, 2, (X[:5, 2] / 2).astype(int)]
    np.testing.assert_allclose(mixture.log_density(X[:5]), np.log(want), atol=1e-9)


def test_a_gaussian_has_the_moments_of_the_rows() -> None:
    X = rows_of()
    mean, C = in_numbers(fit_dependence("gaussian", X, IS_LABEL, None, 0), 0)
    np.testing.assert_allclose(mean, X[:, NUMBERS].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(C, np.cov(X[:, NUMBERS].T, ddof=0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["gaussian", "copula", "mixture"])
def test_draws_have_the_moments_of_the_rows_and_keep_what_is_known(name: str) -> None:
    X = rows_of(2000)
    X[:300, 1] = np.nan
    X[::9, 2] = np.nan
    mixture = fit_dependence(name, X, IS_LABEL, None, 0)
    drawn = mixture.sample(20_000, np.random.default_rng(1)).codes
    np.testing.assert_allclose(np.nanmean(drawn, axis=0), np.nanmean(X, axis=0), atol=0.12)
    np.testing.assert_allclose(np.nanstd(drawn, axis=0), np.nanstd(X, axis=0), rtol=0.05)
    np.testing.assert_allclose(np.isnan(drawn).mean(axis=0), np.isnan(X).mean(axis=0), atol=0.01)
    known = ~np.isnan(drawn[:, 1])
    there = ~np.isnan(X[:, 1])
    want = np.corrcoef(X[there][:, [0, 1, 3]].T)
    np.testing.assert_allclose(
        np.corrcoef(drawn[known][:, [0, 1, 3]].T), want, atol=0.2 if name == "copula" else 0.07
    )
    assert set(np.unique(drawn[:, 2][~np.isnan(drawn[:, 2])])) == {0.0, 2.0}
    masks = np.array([[True, False, True, False], [False, True, False, True]])
    gone = np.isnan(X[300, NUMBERS])
    conditioned = mixture.condition(masks, gone)
    noise = conditioned.noise(50, np.random.default_rng(2))
    some = conditioned.draw(X[300:302], conditioned.given(X[300:302]), noise).codes.reshape(2, 2, 50, 4)
    for c, mask in enumerate(masks):
        np.testing.assert_array_equal(some[c][..., mask], np.tile(X[300:302, None, mask], (1, 50, 1)))


def test_missing_numbers_are_learnt_from_the_others() -> None:
    """Where large values are missing, their mean is known only from a correlated number."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 4000)
    gone = X.copy()
    gone[X[:, 0] > 0.3, 1] = np.nan
    mixture = fit_dependence("gaussian", gone, np.zeros(2, dtype=bool), None, 0)
    mean, C = in_numbers(mixture, 0)
    np.testing.assert_allclose(mean, X.mean(axis=0), atol=0.06)
    np.testing.assert_allclose(C, np.cov(X.T), atol=0.08)
    assert abs(np.nanmean(gone[:, 1]) - X[:, 1].mean()) > 0.3


def test_ranks_are_normal_and_come_back() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(size=3000)), rng.poisson(1.0, 3000).astype(float)])
    mixture = fit_dependence("copula", X, np.zeros(2, dtype=bool), None, 0)
    z = mixture.positions(X)
    assert norm.cdf(z[:, 0]).mean() == pytest.approx(0.5, abs=1e-3)
    assert z[:, 0].std() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(mixture.coordinates.back(z), X, rtol=1e-3, atol=1e-9)
    drawn = mixture.sample(20_000, rng).codes
    for count in range(4):
        assert (drawn[:, 1] == count).mean() == pytest.approx((X[:, 1] == count).mean(), abs=0.015)
    assert drawn[:, 0].min() >= X[:, 0].min()
    assert np.median(drawn[:, 0]) == pytest.approx(np.median(X[:, 0]), abs=0.05)


@pytest.mark.parametrize("n_rows", [2, 5])
def test_constants_copies_and_few_rows_are_no_trouble(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    column = rng.normal(size=n_rows)
    X = np.column_stack([column, column, np.full(n_rows, 3.0), np.full(n_rows, np.nan)])
    for name in ("gaussian", "copula", "mixture"):
        mixture = fit_dependence(name, X, np.zeros(4, dtype=bool), None, 0)
        drawn = mixture.sample(200, rng).codes
        assert np.isnan(drawn[:, 3]).all()
        assert np.isfinite(drawn[:, :3]).all()
        np.testing.assert_allclose(drawn[:, 2], 3.0, atol=1e-3)


def test_weights_count() -> None:
    X = rows_of()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    for name in ("gaussian", "copula"):
        some = fit_dependence(name, X, IS_LABEL, weights, 0)
        other = fit_dependence(name, repeated, IS_LABEL, None, 0)
        np.testing.assert_allclose(some.means, other.means, atol=1e-9)
        np.testing.assert_allclose(some.covariances, other.covariances, atol=1e-3)
        np.testing.assert_allclose(some.shares, other.shares, atol=1e-9)


def test_files_are_checked() -> None:
    mixture = fit_dependence("mixture", rows_of(), IS_LABEL, None, 0)
    arrays: dict[str, Any] = mixture.to_contents()
    again = Mixture.from_contents(arrays)
    np.testing.assert_array_equal(again.log_density(rows_of()), mixture.log_density(rows_of()))
    for name in ("means", "shares", "codes", "coordinates.scale"):
        with pytest.raises(FileFormatError):
            Mixture.from_contents(arrays | {name: arrays[name][:-1]})


@pytest.mark.parametrize("n_rows", [3, 97, 1001])
def test_large_constants_are_at_their_mean(n_rows: int) -> None:
    numbers = np.full((n_rows, 1), 1.7e18)
    found = scaled(numbers, np.full(n_rows, 1 / n_rows))
    np.testing.assert_allclose(found.forward(numbers), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.back(found.forward(numbers)), numbers)


def test_ranks_of_rows_with_next_to_no_weight() -> None:
    weights = np.r_[1.0, np.full(9, 1e-300)]
    found = ranked(np.arange(10.0)[:, None], weights / weights.sum())
    assert np.isfinite(found.scores).all()
    assert (np.diff(found.scores[0]) >= 0).all()
