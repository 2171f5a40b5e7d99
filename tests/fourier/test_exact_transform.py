"""`walsh_hadamard`: the definition, round trips, callables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
import oracles
from fouriershap._fourier.transform import transform_in_place
from strategies import generators, spectra


@settings(max_examples=50, deadline=None)
@given(generators(), st.integers(0, 9), st.sampled_from([None, 1, 3]))
def test_the_definition(rng: np.random.Generator, n_bits: int, n_outputs: int | None) -> None:
    """a_f = 2^-n sum_x h(x) (-1)^<f, x>; and the spectrum evaluates to the values that it came from."""
    X = oracles.all_rows(n_bits)
    values = rng.standard_normal(len(X) if n_outputs is None else (len(X), n_outputs))
    given_values = values.copy()
    h = fs.walsh_hadamard(values, n_bits)
    np.testing.assert_array_equal(values, given_values)  # the caller's array is left alone
    expected = oracles.characters(h.frequencies, X).T @ values / len(X)
    np.testing.assert_allclose(h.coefficients, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(h(X), values, rtol=0, atol=1e-11)


@settings(max_examples=50, deadline=None)
@given(spectra(n_bits=8), st.integers(1, 300))
def test_round_trip_through_a_callable(h: fs.Spectrum, batch_size: int) -> None:
    back = fs.walsh_hadamard(h, 8, batch_size=batch_size)
    X = oracles.all_rows(8)
    np.testing.assert_allclose(back(X), h(X), rtol=0, atol=1e-11 * (np.abs(h.coefficients).sum() + 1e-300))


def test_rows_come_as_bits_in_batches() -> None:
    seen = []

    def h(rows: np.ndarray) -> np.ndarray:
        seen.append(rows.copy())
        return rows[:, 0]

    assert len(fs.walsh_hadamard(h, 5, batch_size=7)) == 2
    assert max(map(len, seen)) == 7
    rows = np.concatenate(seen)
    assert rows.dtype == np.uint8
    np.testing.assert_array_equal(rows, oracles.all_rows(5))


def test_known_spectra() -> None:
    parity = fs.walsh_hadamard(lambda x: x.sum(axis=1) % 2, 4)
    assert parity == fs.Spectrum([[0] * 4, [1] * 4], [0.5, -0.5])
    assert fs.walsh_hadamard([3.0], 0).coefficients.tolist() == [3.0]
    assert len(fs.walsh_hadamard(np.zeros(8), 3)) == 0


def test_in_place_and_its_own_inverse() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((1 << 12, 2))
    work = values.copy()
    transform_in_place(work)
    transform_in_place(work)
    np.testing.assert_allclose(work / (1 << 12), values, atol=1e-12)


def test_twenty_bits() -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal(1 << 20)
    h = fs.walsh_hadamard(values, 20)
    np.testing.assert_allclose(h.energy, (values**2).mean(), rtol=1e-12)
    picked = rng.integers(0, 1 << 20, size=64)
    rows = (picked[:, None] >> np.arange(20)) & 1
    np.testing.assert_allclose(h(rows), values[picked], atol=1e-9)


@pytest.mark.parametrize(
    ("h", "n_bits", "message"),
    [
        ([1.0, 2.0, 3.0], 2, "2\\*\\*2 = 4 values"),
        ([1.0, np.nan], 1, "not finite"),
        (["a", "b"], 1, "h cannot be read"),
        (lambda x: x, -1, "n_bits"),
        (lambda x: x, 2.0, "n_bits"),
        (lambda x: x, True, "n_bits"),
        (lambda x: x[:1, 0], 2, "h returned shape"),
        (lambda x: 1.0, 2, "h returned shape"),
        (lambda x: np.zeros((len(x), 2, 2)), 2, "h returned shape"),
        (lambda x: np.zeros(len(x)) if x[0, 2] else np.zeros((len(x), 2)), 3, "h returned shape"),
        (lambda x: x[:, 0] / 0.0, 2, "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_bad_input(h: object, n_bits: int, message: str) -> None:
    with pytest.raises(fs.InputError, match=message):
        fs.walsh_hadamard(h, n_bits, batch_size=4)  # type: ignore[arg-type]


def test_too_many_bits_and_bad_batches() -> None:
    with pytest.raises(fs.CapacityError, match="2\\^40"):
        fs.walsh_hadamard(lambda x: x[:, 0], 40)
    with pytest.raises(fs.InputError, match="batch_size"):
        fs.walsh_hadamard(lambda x: x[:, 0], 3, batch_size=0)
