"""Codes that identify a frequency of low degree by few parities: BCH syndromes, or simply its bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.bits import pack, unpack
from fouriershap._base.errors import CapacityError
from fouriershap._base.messages import truncated_text
from fouriershap._fourier.gf2 import Bits, Words, inverse, pivots, product

Positions = NDArray[np.int32]

# Primitive polynomials over GF(2) of degree 2 to 20; bit i is the coefficient of x^i.
_PRIMITIVE = [0x7, 0xB, 0x13, 0x25, 0x43, 0x89, 0x11D, 0x211, 0x409, 0x805, 0x1053, 0x201B, 0x4443]
_PRIMITIVE += [0x8003, 0x1100B, 0x20009, 0x40081, 0x80027, 0x100009]
_LARGEST_DEGREE = len(_PRIMITIVE) + 1
_MOST_TABLE_ENTRIES = 1 << 23
_MOST_CELLS = 1 << 24


@dataclass(frozen=True)
class Code:
    """Parities ``rows @ f`` that determine every frequency f of degree at most ``max_degree``.

    This one has a parity per bit, so that the key is the frequency.

    Attributes
    ----------
    rows : (n_parities, n_bits) uint8
        Independent parity rows.
    row_words : (n_parities, w) uint64
        What each parity, where it is 1, adds (XOR) to the key of a frequency.
    bit_words : (n_bits + 1, w) uint64
        What each bit adds to the key; the last line, zero, is that of the padding.
    max_degree : int
        Width of the position lists.
    """

    rows: Bits
    row_words: Words
    bit_words: Words
    max_degree: int

    def decode(self, keys: Words) -> tuple[Positions, NDArray[np.bool_]]:
        """Return the bits (n_valid, max_degree) of frequencies with keys (n_keys, w), ascending, padded with n_bits.

        Also returns which keys belong to a frequency of degree at most max_degree, (n_keys,) bool.
        """
        valid = np.bitwise_count(keys).sum(axis=1) <= self.max_degree
        bits = unpack(keys[valid], len(self.rows)).view(np.bool_)
        return list_positions(bits, self.max_degree), valid


def unit_code(n_bits: int, max_degree: int) -> Code:
    """Return a parity per bit."""
    rows = np.eye(n_bits, dtype=np.uint8)
    words = pack(rows)
    return Code(rows, words, _padded(words), max_degree)


def make_code(n_bits: int, max_degree: int) -> Code:
    """Return the BCH code for the degree, or unit parities if there are no more of these."""
    degree = min(max_degree, n_bits)
    if degree * max(2, n_bits.bit_length()) >= n_bits:
        return unit_code(n_bits, degree)
    code = BCHCode.make(n_bits, degree)
    return unit_code(n_bits, degree) if len(code.rows) == n_bits else code


def fold(keys: Words) -> Words:
    """Return one word per key (n, w): the key itself, or a mix of its words that is unique in practice."""
    folded = keys[:, 0].copy()
    for column in range(1, keys.shape[1]):
        folded = (folded ^ (folded >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + keys[:, column]
    return folded


def term_keys(code: Code, positions: Positions) -> Words:
    """Return one word per term at positions (n, width), equal for equal terms."""
    return fold(np.bitwise_xor.reduce(code.bit_words[positions], axis=1))


@dataclass(frozen=True)
class BCHCode(Code):
    """Parity rows alpha^((2i+1)p), i < t, of bit p: the syndromes S_1, S_3, ..., S_(2t-1) of a frequency.

    A key holds the t syndromes, none of which crosses the border of a word. Rows of the parity matrix can be
    dependent (27 of 30 are independent at 40 bits, t = 5); only independent ones are measured.
    """

    n_bits: int
    field_bits: int
    exp: NDArray[np.int64]  # exp[i] = alpha^i, twice around; zeros above, where log(0) leads
    log: NDArray[np.int64]
    table: NDArray[np.unsignedinteger] | None  # (t, 2^m, n): coefficient times alpha^(-ip)

    @classmethod
    def make(cls, n_bits: int, max_degree: int) -> BCHCode:
        m = max(2, int(n_bits).bit_length())
        if m > _LARGEST_DEGREE:
            raise CapacityError(
                f"n_bits is {truncated_text(f'{n_bits:,}')}; the code is limited to "
                f"{(1 << _LARGEST_DEGREE) - 1:,} bits. "
                "Drop or group columns."
            )
        exp, log = _field(m)
        order = (1 << m) - 1
        powers = (2 * np.arange(max_degree)[:, None] + 1) * np.arange(n_bits) % order
        syndromes = exp[powers]  # (t, n)
        parities = (syndromes[:, None] >> np.arange(m)[:, None] & 1).astype(np.uint8)
        parities = parities.reshape(max_degree * m, n_bits)
        rows = parities[pivots(parities.T)]
        columns = pivots(rows)
        basis = inverse(rows[:, columns])
        assert basis is not None
        expansion = product(parities[:, columns], basis)  # parities = expansion @ rows
        expanded = (expansion.T.reshape(len(rows), max_degree, m).astype(np.int64) << np.arange(m)).sum(
            axis=2
        )
        bit_words = _padded(_join(syndromes.T, m))
        table = _locator_table(exp, max_degree, m, n_bits)
        return cls(rows, _join(expanded, m), bit_words, max_degree, n_bits, m, exp, log, table)

    def decode(self, keys: Words) -> tuple[Positions, NDArray[np.bool_]]:
        valid = np.zeros(len(keys), dtype=bool)
        found: list[Positions] = []
        step = max(1, _MOST_CELLS // self.n_bits)
        for first in range(0, len(keys), step):
            positions, good = self._decode_block(keys[first : first + step])
            valid[first : first + step] = good
            found.append(positions)
        empty = np.empty((0, self.max_degree), dtype=np.int32)
        return np.concatenate([empty, *found]), valid

    def _decode_block(self, keys: Words) -> tuple[Positions, NDArray[np.bool_]]:
        locator, length = self._locate(_split(keys, self.max_degree, self.field_bits))
        degree = self.max_degree - np.argmax(locator[::-1] != 0, axis=0)
        plausible = np.flatnonzero((length <= self.max_degree) & (degree == length))
        roots = self._roots(locator[1:, plausible])
        split = roots.sum(axis=1) == length[plausible]
        kept = plausible[split]
        positions = list_positions(roots[split], self.max_degree)
        # A locator that splits need not reproduce the syndromes, so compare them.
        same = (np.bitwise_xor.reduce(self.bit_words[positions], axis=1) == keys[kept]).all(axis=1)
        valid = np.zeros(len(keys), dtype=bool)
        valid[kept[same]] = True
        return positions[same], valid

    def _locate(self, odd: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Run Berlekamp-Massey for all keys at once: locators (t + 1, n_keys), lengths (n_keys,).

        In characteristic 2 every second discrepancy is zero, so t steps suffice. ``shifted`` is the last
        locator before the length changed, over its discrepancy, times the power of x that is due.
        """
        t, n_keys = odd.shape
        order = (1 << self.field_bits) - 1
        syndrome = np.zeros((2 * t, n_keys), dtype=np.int64)  # S_0 (unused) to S_(2t-1)
        syndrome[1::2] = odd
        for i in range(2, 2 * t, 2):  # the even ones are squares
            syndrome[i] = self._multiply(syndrome[i // 2], syndrome[i // 2])
        locator = np.zeros((t + 1, n_keys), dtype=np.int64)
        locator[0] = 1
        shifted = np.zeros_like(locator)
        shifted[1] = 1
        length = np.zeros(n_keys, dtype=np.int64)
        for step in range(t):
            discrepancy = syndrome[2 * step + 1].copy()
            for j in range(1, min(2 * step, t) + 1):
                discrepancy ^= self._multiply(locator[j], syndrome[2 * step + 1 - j])
            change = (discrepancy != 0) & (length <= step)
            updated = locator ^ self._multiply(discrepancy, shifted)
            # 1 / discrepancy, and an arbitrary element where that is 0.
            scale = self.exp[np.maximum(order - self.log[discrepancy], 0)]
            source = np.where(change, self._multiply(scale, locator), shifted)
            shifted = np.zeros_like(source)
            shifted[2:] = source[:-2]
            length = np.where(change, 2 * step + 1 - length, length)
            locator = updated
        return locator, length

    def _roots(self, coefficients: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return where 1 + sum_i c_i alpha^(-ip) vanishes, (n_keys, n_bits), for coefficients (t, n_keys)."""
        shape = (coefficients.shape[1], self.n_bits)
        if self.table is not None:
            total = np.zeros(shape, dtype=self.table.dtype)
            for line, values in zip(self.table, coefficients, strict=True):
                total ^= line[values]
            return np.equal(total, 1)
        order = (1 << self.field_bits) - 1
        sums = np.zeros(shape, dtype=np.int64)
        for i, values in enumerate(coefficients, start=1):
            sums ^= self.exp[self.log[values][:, None] + (-i * np.arange(self.n_bits)) % order]
        return np.equal(sums, 1)

    def _multiply(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        product: NDArray[np.int64] = self.exp[self.log[a] + self.log[b]]
        return product


def list_positions(bits: NDArray[np.bool_], width: int) -> Positions:
    """Return the bits set in each line (n, n_bits), ascending, as (n, width) int32 padded with n_bits."""
    lines, columns = np.nonzero(bits)
    counts = np.bincount(lines, minlength=len(bits))
    slots = np.arange(len(lines)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions = np.full((len(bits), width), bits.shape[1], dtype=np.int32)
    positions[lines, slots] = columns
    return positions


def _field(m: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return powers and logarithms of GF(2^m); log(0) is so large that every product with 0 reads a 0."""
    order = (1 << m) - 1
    exp = np.zeros(4 * order + 1, dtype=np.int64)
    log = np.full(order + 1, 2 * order, dtype=np.int64)
    value = 1
    for i in range(order):
        exp[i] = exp[i + order] = value
        log[value] = i
        value <<= 1
        if value > order:
            value ^= _PRIMITIVE[m - 2]
    return exp, log


def _locator_table(exp: NDArray[np.int64], t: int, m: int, n_bits: int) -> NDArray[np.unsignedinteger] | None:
    """Return products c * alpha^(-ip) for every c, or None where the table would be too large."""
    if (t * n_bits) << m > _MOST_TABLE_ENTRIES:
        return None
    order = (1 << m) - 1
    table = np.zeros((t, order + 1, n_bits), dtype=np.uint8 if m <= 8 else np.uint16)
    values = exp[:order]
    powers = -np.arange(1, t + 1)[:, None] * np.arange(n_bits) % order
    table[:, values] = exp[np.arange(order)[:, None] + powers[:, None]]
    return table


def _join(fields: NDArray[np.int64], m: int) -> Words:
    """Pack fields of m bits (n, t) into words (n, w)."""
    per_word = 64 // m
    words = np.zeros((len(fields), -(-fields.shape[1] // per_word)), dtype=np.uint64)
    for i in range(fields.shape[1]):
        words[:, i // per_word] |= fields[:, i].astype(np.uint64) << np.uint64(m * (i % per_word))
    return words


def _split(words: Words, t: int, m: int) -> NDArray[np.int64]:
    """Unpack what `_join` packed, transposed: (t, n)."""
    per_word = 64 // m
    mask = np.uint64((1 << m) - 1)
    fields = [(words[:, i // per_word] >> np.uint64(m * (i % per_word))) & mask for i in range(t)]
    return np.array(fields, dtype=np.int64).reshape(t, len(words))


def _padded(words: Words) -> Words:
    return np.concatenate([words, np.zeros((1, words.shape[1]), dtype=np.uint64)])
