"""Linear algebra over GF(2), on matrices of 0 and 1 (uint8)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
Words = NDArray[np.uint64]


def pivots(matrix: Bits) -> NDArray[np.int64]:
    """Return the pivot columns of the row echelon form: the first independent columns."""
    rows = matrix.astype(bool)
    found: list[int] = []
    for column in range(rows.shape[1]):
        rank = len(found)
        if rank == len(rows):
            break
        below = np.flatnonzero(rows[rank:, column])
        if not len(below):
            continue
        pivot = rank + below[0]
        rows[[rank, pivot]] = rows[[pivot, rank]]
        others = rank + 1 + np.flatnonzero(rows[rank + 1 :, column])
        rows[others] ^= rows[rank]
        found.append(column)
    return np.array(found, dtype=np.int64)


def inverse(matrix: Bits) -> Bits | None:
    """Return the inverse of a square matrix, or None where it is singular."""
    size = len(matrix)
    work = np.concatenate([matrix.astype(bool), np.eye(size, dtype=bool)], axis=1)
    for column in range(size):
        below = np.flatnonzero(work[column:, column])
        if not len(below):
            return None
        pivot = column + below[0]
        work[[column, pivot]] = work[[pivot, column]]
        others = work[:, column].copy()
        others[column] = False
        work[others] ^= work[column]
    return work[:, size:].astype(np.uint8)


def product(left: Bits, right: Bits) -> Bits:
    """Return the matrix product modulo 2; sums are exact in float32 up to 2^24 terms."""
    sums = left.astype(np.float32) @ right.astype(np.float32)
    return (sums.astype(np.int64) & 1).astype(np.uint8)


def random_invertible(size: int, rng: np.random.Generator) -> tuple[Bits, Bits]:
    """Return a uniformly random invertible matrix (size, size), and its inverse."""
    while True:
        # A random square matrix is invertible with probability 0.29, so a few draws suffice.
        matrix = rng.integers(0, 2, (size, size), dtype=np.uint8)
        inverted = inverse(matrix)
        if inverted is not None:
            return matrix, inverted


def random_full_rank(n_rows: int, n_columns: int, rng: np.random.Generator) -> Bits:
    """Return a uniformly random matrix (n_rows, n_columns) of rank n_rows <= n_columns."""
    while True:
        matrix = rng.integers(0, 2, (n_rows, n_columns), dtype=np.uint8)
        if len(pivots(matrix)) == n_rows:
            return matrix


def xor_product(bits: Bits, words: Words) -> Words:
    """Return the XOR of the lines of ``words`` (k, w) that each line of ``bits`` (n, k) selects: (n, w)."""
    out = np.zeros((len(bits), words.shape[1]), dtype=np.uint64)
    for column in range(bits.shape[1]):
        out ^= np.where(bits[:, column, None] != 0, words[column], np.uint64(0))
    return out


def xor_span(words: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Return all 2^k XORs of the lines of ``words`` (k, w): line j combines the lines of the bits set in j."""
    span = np.zeros((1, words.shape[1]), dtype=words.dtype)
    for line in words:
        span = np.concatenate([span, span ^ line])
    return span
