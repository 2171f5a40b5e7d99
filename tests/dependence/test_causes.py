"""Interventions on Gaussians against the same steps written out for one coalition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from causal_oracle import step_by_step
from fouriershap._base.errors import FileFormatError
from fouriershap._dependence.causes import Chain, Intervened
from fouriershap._dependence.fit import fit_dependence

Floats = NDArray[np.float64]
CHAIN = [[3, 1], [0, 4], [2]]
N = 5


def chain_of(confounded: list[bool], groups: list[list[int]] = CHAIN) -> Chain:
    place = np.empty(N, dtype=np.int64)
    for number, group in enumerate(groups):
        place[group] = number
    return Chain(place, np.array(confounded))


@pytest.mark.parametrize("confounded", list(product([False, True], repeat=3)))
def test_every_coalition(confounded: tuple[bool, ...]) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, N)) @ rng.normal(size=(N, N))
    mixture = fit_dependence("gaussian", rows, np.zeros(N, dtype=bool), None, 0)
    masks = (np.arange(1 << N)[:, None] >> np.arange(N) & 1).astype(bool)
    found = Intervened(mixture, masks, np.zeros(N, dtype=bool), chain_of(list(confounded)))
    moved = mixture.positions(rows[:1])[0] - mixture.means[0]
    means = found.given(rows[:1]).means[0, :, 0] - mixture.means[0]
    for mask, mean, spread in zip(masks, means, found.covariances[0], strict=True):
        want_mean, want_spread = step_by_step(
            mixture.covariances[0], moved, mask.tolist(), CHAIN, list(confounded)
        )
        np.testing.assert_allclose(mean, want_mean, atol=1e-10)
        np.testing.assert_allclose(spread, want_spread, atol=1e-10)


def test_a_single_group_is_conditioned_on_or_left_alone() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, N)) @ rng.normal(size=(N, N))
    mixture = fit_dependence("gaussian", rows, np.zeros(N, dtype=bool), None, 0)
    masks = np.array([[True, False, True, False, False]])
    nothing = np.zeros(N, dtype=bool)
    plain = mixture.condition(masks, nothing)
    alone, told = (
        Intervened(mixture, masks, nothing, chain_of([flag], [list(range(N))])) for flag in (True, False)
    )
    np.testing.assert_allclose(told.covariances, plain.covariances, atol=1e-12)
    np.testing.assert_allclose(told.given(rows[:3]).means, plain.given(rows[:3]).means, atol=1e-12)
    left = ~masks[0]
    block = np.ix_(left, left)
    np.testing.assert_allclose(alone.covariances[0, 0][block], mixture.covariances[0][block])
    given = alone.given(rows[:3]).means[0, 0][:, left]
    np.testing.assert_allclose(given, np.tile(mixture.means[0][left], (3, 1)))


def test_files() -> None:
    chain = chain_of([True, False, True])
    again = Chain.from_contents(chain.to_contents(), N)
    np.testing.assert_array_equal(again.place, chain.place)
    np.testing.assert_array_equal(again.confounded, chain.confounded)
    with pytest.raises(FileFormatError, match="other features"):
        Chain.from_contents(chain.to_contents(), N + 1)
    with pytest.raises(FileFormatError, match="other features"):
        Chain.from_contents(chain_of([True, False]).to_contents(), N)
