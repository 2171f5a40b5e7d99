r"""Hash frequencies into bins over GF(2), and measure the bins by queries.

With M of shape (b, n) over GF(2), an offset o and a shift d, the b-dimensional transform of the answers at
the points T M + o + d, T in {0,1}^b, is

.. math:: U_d[j] = \sum_{f: M f = j} a_f (-1)^{\langle f, o + d\rangle}.

The signs of one bin over the shifts identify the frequency in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.bits import pack, unpack
from fouriershap._fourier.bch import Code, Positions
from fouriershap._fourier.gf2 import (
    Bits,
    Words,
    product,
    random_full_rank,
    random_invertible,
    xor_product,
    xor_span,
)
from fouriershap._fourier.queries import Queries
from fouriershap._fourier.transform import transform_in_place

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Hash:
    """Points to query, and how to read a frequency's key from a bin."""

    matrix: Bits  # (b, n_bits)
    points: Bits  # (n_shifts, n_bits) offset plus shift; the first has shift zero
    # (b, w) what each bit of the bin's index adds to the key (coded hashes; zero lines otherwise).
    bin_keys: Words
    # (n_read, w) what a negative sign at the shifts 1 ... n_read, relative to shift 0, adds to the key.
    shift_keys: Words

    @property
    def n_queries(self) -> int:
        return len(self.points) << len(self.matrix)


@dataclass(frozen=True)
class Bins:
    """A hash with its answers."""

    hash: Hash
    values: Floats  # (2^b, n_shifts) U_d[j] of the answers less their centre
    bin_of_bit: Ints  # (n_bits + 1,) what each bit of a frequency adds (XOR) to its bin; zero for the padding
    # (n_bits + 1, w) packed over the shifts: what each bit adds to the parities <f, o + d>.
    signs_of_bit: Words
    key_of_bin: Words  # (2^b, w)

    @property
    def n_bins(self) -> int:
        return len(self.values)

    @property
    def n_shifts(self) -> int:
        return int(self.values.shape[1])


def coded_hash(code: Code, b: int, n_extra: int, rng: np.random.Generator) -> Hash:
    """Return a hash merged with a code: some rows of a random mix of its parities index the bins, the others shift.

    The bin's index then gives b parities without a query. ``n_extra`` random shifts outside of the code tell
    apart frequencies of higher degree that have the same parities.
    """
    mix, unmix = random_invertible(len(code.rows), rng)
    mixed = product(mix, code.rows)
    n_bits = mixed.shape[1]
    offset, extra = rng.integers(0, 2, (1, n_bits), np.uint8), rng.integers(0, 2, (n_extra, n_bits), np.uint8)
    shifts = np.concatenate([np.zeros((1, n_bits), np.uint8), mixed[b:], extra])
    keys = xor_product(np.ascontiguousarray(unmix.T), code.row_words)
    return Hash(mixed[:b], offset ^ shifts, keys[:b], keys[b:])


def random_hash(code: Code, b: int, n_repeats: int, rng: np.random.Generator) -> Hash:
    """Return a random full-rank hash with the code's rows as shifts, from ``n_repeats`` random points each."""
    n_bits = code.rows.shape[1]
    matrix = random_full_rank(b, n_bits, rng)
    offsets = rng.integers(0, 2, (n_repeats, 1, n_bits), np.uint8)
    shifts = np.concatenate([np.zeros((1, n_bits), np.uint8), code.rows])
    width = code.row_words.shape[1]
    points = (offsets ^ shifts).reshape(-1, n_bits)
    return Hash(matrix, points, np.zeros((b, width), np.uint64), code.row_words)


def measure(queries: Queries, plan: Hash, centre: float | None) -> tuple[Bins, float]:
    """Query the points of a hash; ``centre`` (by default the mean of these answers) is subtracted first."""
    span = xor_span(plan.matrix)
    n_bins, n_shifts = len(span), len(plan.points)
    answers = queries.ask(n_bins * n_shifts, lambda i: span[i // n_shifts] ^ plan.points[i % n_shifts])
    if centre is None:
        centre = float(answers.mean())
    values = (answers - centre).reshape(n_bins, n_shifts)
    transform_in_place(values)
    values /= n_bins
    no_bit = np.zeros((1, len(plan.matrix)), np.uint8)
    bin_of_bit = pack(np.concatenate([plan.matrix.T, no_bit]))[:, 0].astype(np.int64)
    signs = pack(np.concatenate([plan.points.T, np.zeros((1, n_shifts), np.uint8)]))
    keys = xor_span(plan.bin_keys).astype(np.uint64, copy=False)
    return Bins(plan, values, bin_of_bit, signs, keys), centre


def locate(bins: Bins, positions: Positions) -> tuple[Ints, Words]:
    """Return bin (n,) and packed parities over the shifts (n, w) of the frequencies at positions (n, width)."""
    index = np.bitwise_xor.reduce(bins.bin_of_bit[positions], axis=1)
    return index, np.bitwise_xor.reduce(bins.signs_of_bit[positions], axis=1)


def characters(signs: Words, n_shifts: int) -> NDArray[np.int8]:
    """Return +1 and -1, (n, n_shifts), from packed parities."""
    return 1 - 2 * unpack(signs, n_shifts).view(np.int8)


def total_queries(measured: list[Bins]) -> int:
    return sum(bins.values.size for bins in measured)


def mean_square(measured: list[Bins]) -> float:
    """Return the mean square of the centred answers (Parseval)."""
    return sum(b.n_bins * float(np.vdot(b.values, b.values)) for b in measured) / total_queries(measured)
