"""Pruning a spectrum: which terms may go, and how far a SHAP value can move without them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_number, check_whole
from fouriershap._base.errors import InputError
from fouriershap._base.short import short

Floats = NDArray[np.float64]


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
