"""Candidate "enumerate": the model asked at every combination of levels, as a spectrum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._blackbox.bit_code import BitCode, exact_code
from fouriershap._blackbox.surrogates import SpectrumSurrogate
from fouriershap._fourier.transform import walsh_hadamard
from fouriershap._rows.levels import Encoding
from fouriershap._shapley.engine import Floats

Ints = NDArray[np.int64]

MOST_BITS = 18


def n_combinations(code: BitCode) -> int:
    """Return the number of combinations of levels."""
    product = 1
    for player in code.players:
        product *= player.n_levels
    return product


def fits(code: BitCode, budget: int) -> bool:
    return code.n_bits <= MOST_BITS and n_combinations(code) <= budget


def check_fits(encoding: Encoding, pool_codes: Floats, budget: int) -> BitCode:
    """Return the code of all levels; raise if asking all combinations is not feasible."""
    code = exact_code(encoding, pool_codes)
    if n_combinations(code) > budget:
        raise InputError(
            f"method='enumerate' asks every combination of levels: {n_combinations(code):,} queries, but budget is "
            f"{budget:,}. Raise the budget, or use method='auto'."
        )
    if code.n_bits > MOST_BITS:
        raise InputError(
            f"method='enumerate' needs {code.n_bits} bits for the levels of the players; at most {MOST_BITS} are "
            "feasible. Use method='auto'."
        )
    return code


def all_rows(code: BitCode) -> NDArray[np.uint8]:
    """Return every row of bits (2^n_bits, n_bits), position p holding bit i as ``p >> i & 1``."""
    return (np.arange(1 << code.n_bits)[:, None] >> np.arange(code.n_bits) & 1).astype(np.uint8)


def combinations(code: BitCode) -> tuple[Ints, Ints]:
    """Return positions (n_combinations,) of distinct rows in `all_rows`, and which one each row (2^n_bits,) equals."""
    position, out, first = np.arange(1 << code.n_bits), np.zeros(1 << code.n_bits, dtype=np.int64), 0
    for player in code.players:
        number = position >> first & ((1 << player.n_bits) - 1)
        out |= number % player.n_levels << first  # beyond the last level it wraps around
        first += player.n_bits
    rows, where = np.unique(out, return_inverse=True)
    return rows, where


def find_combinations(code: BitCode, bits: NDArray[np.uint8]) -> Ints:
    """Return the combination of each row of bits (n, n_bits)."""
    positions = bits.astype(np.int64) @ (1 << np.arange(code.n_bits))
    return combinations(code)[1][positions]


def make_surrogate(code: BitCode, answers: Floats) -> SpectrumSurrogate:
    """Return the surrogate from the answers to `all_rows` (2^n_bits, n_outputs)."""
    values = answers[:, 0] if answers.shape[1] == 1 else answers
    spectrum = walsh_hadamard(values, code.n_bits)
    # Coefficients below rounding are not terms.
    amplitude = np.abs(spectrum.coefficients).max(initial=0.0)
    kept = (
        np.abs(spectrum.coefficients).reshape(len(spectrum), answers.shape[1]).max(axis=1) > 1e-14 * amplitude
    )
    return SpectrumSurrogate(spectrum.select(kept), code)
