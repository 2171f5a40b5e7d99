"""The arrays that a spectrum is made of: checked, in canonical order, multiplied, pruned."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_floats, check_number, check_whole
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.short import short

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


def check_scalar(value: Any) -> float:
    if not isinstance(value, Real):
        raise InputError(f"a Spectrum combines with a Spectrum or a number, not with {type(value).__name__}.")
    return float(value)


def kept_terms(
    coefficients: Floats,
    degrees: NDArray[np.int64],
    min_amplitude: float | None,
    energy: float | None,
    max_terms: int | None,
) -> NDArray[np.bool_]:
    """Which terms the rules of `Spectrum.prune` keep, (n_terms,), of coefficients (n_terms, n_outputs)."""
    amplitude = np.abs(coefficients).max(axis=1, initial=0.0)
    varying = degrees > 0
    may_drop = varying if min_amplitude is not None or energy is not None else np.zeros_like(varying)
    if min_amplitude is not None:
        check_number("min_amplitude", min_amplitude, 0)
        may_drop = may_drop & (amplitude < min_amplitude)
    if energy is not None:
        may_drop = may_drop & _beyond_energy(coefficients, varying, energy)
    kept = ~may_drop
    if max_terms is not None:
        check_whole("max_terms", max_terms, 0)
        ranked = np.argsort(-np.where(varying & kept, amplitude, -1.0), kind="stable")
        kept[ranked[max_terms:]] = False
        kept |= ~varying
    return kept


def _beyond_energy(coefficients: Floats, varying: NDArray[np.bool_], share: float) -> NDArray[np.bool_]:
    if not 0 < share <= 1:
        raise InputError(f"energy is {short(share)}; give the share of the variance to keep, in (0, 1].")
    energies = np.where(varying, (coefficients**2).sum(axis=1), 0.0)
    if share == 1:
        return np.equal(energies, 0.0)
    order = np.argsort(-energies, kind="stable")
    before = np.cumsum(energies[order]) - energies[order]
    beyond = np.zeros(len(energies), dtype=bool)
    # A term is needed while the larger ones hold less than the share.
    beyond[order] = before >= share * energies.sum()
    return beyond


def largest_move(
    frequencies: NDArray[np.bool_], coefficients: Floats, owner: NDArray[np.int32], n_players: int
) -> Floats:
    """``2 * sum |a_f|`` over the terms that touch each player, (n_players, n_outputs)."""
    bound = np.zeros((n_players, coefficients.shape[1]))
    terms, bits = np.nonzero(frequencies)
    # A term counts once for a player, however many of the player's bits it reads.
    term, player = np.divmod(np.unique(terms * n_players + owner[bits]), max(n_players, 1))
    np.add.at(bound, player, 2.0 * np.abs(coefficients)[term])
    return bound
