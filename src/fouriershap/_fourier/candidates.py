"""Which frequencies may be in a bin: keys read from the signs of its values over the shifts.

The largest term of a bin decides the signs. With two terms in a bin all signs are right; with three, the
wrong ones are exactly those of smallest magnitude (|a - b - c| is the smallest of the four possible
magnitudes if a is the largest), so flipping the least reliable signs one by one meets the right pattern.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from fouriershap._fourier.gf2 import Words, xor_product
from fouriershap._fourier.hashing import Bins, Floats, Ints

_FLIPPED_SHARE = 0.55
_CHASE_SIGNS, _DEEP_SIGNS = 6, 8
_TRIPLE_SIGNS = 12
DEEP_BINS = 5


class Stage(IntEnum):
    """How hard to look; each is tried when the one before finds nothing."""

    SIGNS = 0
    ORDERED_FLIPS = 1
    CHASE = 2
    RELAXED_FLIPS = 3
    DEEP = 4


def read_keys(bins: Bins, left: Floats, active: Ints, stage: Stage) -> Words:
    """Keys (n_active, n_patterns, w) of the frequencies that may dominate the ``active`` bins of a coded hash.

    ``left`` (2^b, n_shifts) is the residual.
    """
    shift_keys = bins.hash.shift_keys
    values = left[active, : len(shift_keys) + 1]
    negative = values < 0
    bits = (negative[:, 1:] ^ negative[:, :1]).astype(np.uint8)
    keys = (bins.key_of_bin[active] ^ xor_product(bits, shift_keys))[:, None]
    if stage == Stage.SIGNS:
        return keys
    # The sign at shift 0 is the reference of all others: flipping it flips them all.
    reference = np.bitwise_xor.reduce(shift_keys, axis=0)[None]
    flip_keys = np.concatenate([reference, shift_keys])
    if stage == Stage.CHASE:
        return keys ^ _all_flips(values, flip_keys, _CHASE_SIGNS)
    if stage == Stage.DEEP:
        return keys ^ _few_flips(values, flip_keys)
    n_flips = max(1, int(_FLIPPED_SHARE * values.shape[1]))
    doubtful = np.argsort(np.abs(values), axis=1)[:, :n_flips]
    flipped: Words = np.bitwise_xor.accumulate(flip_keys[doubtful], axis=1)
    return keys ^ flipped


def _all_flips(values: Floats, flip_keys: Words, n_signs: int) -> Words:
    """(n, 2^n_signs - 1, w): every subset of the least reliable signs."""
    n_flips = min(n_signs, values.shape[1])
    doubtful = flip_keys[np.argsort(np.abs(values), axis=1)[:, :n_flips]]
    subsets = np.zeros((len(values), 1, flip_keys.shape[1]), dtype=np.uint64)
    for i in range(n_flips):
        subsets = np.concatenate([subsets, subsets ^ doubtful[:, i : i + 1]], axis=1)
    return subsets[:, 1:]


def _few_flips(values: Floats, flip_keys: Words) -> Words:
    """What noise can have turned: any two signs, three of the twelve least reliable, eight of eight."""
    ordered = flip_keys[np.argsort(np.abs(values), axis=1)]
    n_signs = ordered.shape[1]
    first, second = np.triu_indices(n_signs, 1)
    pairs = ordered[:, first] ^ ordered[:, second]
    doubtful = np.flatnonzero(second < min(_TRIPLE_SIGNS, n_signs))
    triples = [pairs[:, doubtful[second[doubtful] < i]] ^ ordered[:, i : i + 1] for i in range(n_signs)]
    subsets = _all_flips(values, flip_keys, _DEEP_SIGNS)
    return np.concatenate([ordered, pairs, *triples[:_TRIPLE_SIGNS], subsets], axis=1)
