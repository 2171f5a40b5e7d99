"""The arrays that a spectrum is made of: checked, in canonical order, multiplied."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_floats
from fouriershap._base.errors import CapacityError, InputError

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
_MOST_PRODUCT_TERMS = 50_000_000


def canonical(words: Words, values: Floats) -> tuple[Words, Floats, NDArray[np.int64]]:
    """Terms, words (n_terms, n_words) and values (n_terms, n_outputs), in order, equal ones summed; and their degrees.

    By degree, then by their bits. Arrays that are in order already are kept as they are, so that those of a file
    stay mapped.
    """
    degrees = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    # lexsort sorts by its last key first: the degree, then the words from the first bits on.
    order = np.lexsort((*words.T[::-1], degrees))
    if not (order[1:] > order[:-1]).all():
        words, degrees, values = words[order], degrees[order], values[order]
    new = np.ones(len(words), dtype=bool)
    new[1:] = (words[1:] != words[:-1]).any(axis=1)
    firsts = np.flatnonzero(new)
    if len(firsts) < len(words):
        values = np.add.reduceat(values, firsts, axis=0)
        words, degrees = words[firsts], degrees[firsts]
    return words, values, degrees


def product(words: Words, values: Floats, other_words: Words, other_values: Floats) -> tuple[Words, Floats]:
    """Every term times every other: frequencies add up bit by bit. Equal ones are not summed yet."""
    n_terms = len(words) * len(other_words)
    if n_terms > _MOST_PRODUCT_TERMS:
        raise CapacityError(
            f"the product would form {n_terms:,} terms before equal ones are summed "
            f"(limit {_MOST_PRODUCT_TERMS:,}); prune the factors first."
        )
    frequencies = words[:, None] ^ other_words[None]
    products = values[:, None] * other_values[None]
    return frequencies.reshape(n_terms, words.shape[1]), products.reshape(n_terms, values.shape[1])


def check_coefficients(coefficients: ArrayLike, n_terms: int) -> Floats:
    """(n_terms,) or (n_terms, n_outputs) finite float64."""
    values = as_floats(coefficients, "coefficients")
    if values.ndim not in (1, 2) or len(values) != n_terms or (values.ndim == 2 and values.shape[1] == 0):
        raise InputError(
            f"coefficients has shape {values.shape}; give ({n_terms},) or ({n_terms}, n_outputs), one "
            "line per frequency."
        )
    if not np.isfinite(values).all():
        raise InputError(
            f"coefficients holds {int((~np.isfinite(values)).sum())} values that are not finite."
        )
    return values


def check_number(value: Any) -> float:
    if not isinstance(value, Real):
        raise InputError(f"a Spectrum combines with a Spectrum or a number, not with {type(value).__name__}.")
    return float(value)
