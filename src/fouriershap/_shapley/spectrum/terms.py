"""Terms: a spectrum in terms of its players.

For a player, a frequency is one bit: the parity of the player's bits that the frequency touches. Such a parity is an
*atom*. A term is a product of atoms of distinct players, however many bits a player owns, so engines need only atoms
and players. With one bit per player, the atoms are the bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.bits import pack
from fouriershap._base.parallel import for_each_block
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.players import check_players

_ROWS_PER_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Terms:
    """The non-constant terms of a spectrum as products of atoms."""

    n_bits: int
    n_players: int
    atom_start: NDArray[np.int64]  # (n_atoms + 1,)
    # Atom a is the parity of the bits ``atom_bits[atom_start[a]:atom_start[a + 1]]``.
    atom_bits: NDArray[np.int32]
    atom_player: NDArray[np.int32]  # (n_atoms,)
    start: NDArray[np.int64]  # (n_terms + 1,)
    atoms: NDArray[np.int32]  # term k is the product of the characters of ``atoms[start[k]:start[k + 1]]``
    coefficients: NDArray[np.float64]  # (n_terms, n_outputs)
    constant: NDArray[np.float64]  # (n_outputs,) coefficient of the constant term

    @property
    def n_terms(self) -> int:
        return len(self.coefficients)

    @property
    def n_outputs(self) -> int:
        return len(self.constant)

    @property
    def n_atoms(self) -> int:
        return len(self.atom_player)

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of players that each term touches."""
        return np.diff(self.start)

    def values(self, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return atoms (n_atoms, n_rows) of rows of bits (n_rows, n_bits), as 0 and 1."""
        columns = np.ascontiguousarray(bits.T)
        if len(self.atom_bits) == self.n_atoms:  # every atom is a single bit
            in_order = np.array_equal(self.atom_bits, np.arange(self.n_bits))
            return columns if in_order else columns[self.atom_bits]
        out = np.empty((self.n_atoms, len(bits)), dtype=np.uint8)
        for a in range(self.n_atoms):
            mine = self.atom_bits[self.atom_start[a] : self.atom_start[a + 1]]
            np.bitwise_xor.reduce(columns[mine], axis=0, out=out[a])
        return out

    def evaluate(self, bits: NDArray[np.uint8], n_jobs: int = -1) -> NDArray[np.float64]:
        """Return the sum of all terms, the constant included, (n_rows, n_outputs)."""
        out = np.empty((len(bits), self.n_outputs))
        terms = kernels.bits.Terms(self.start, self.atoms, self.coefficients)

        def work(first: int, last: int) -> None:
            columns = pack(self.values(bits[first:last]))
            kernels.bits.evaluate(terms, columns, 0, columns.shape[1], out[first:last])

        for_each_block(work, len(bits), _ROWS_PER_BLOCK, n_jobs)
        out += self.constant
        return out

    def select(self, kept: NDArray[np.bool_]) -> Terms:
        """Return some of the terms, over the same atoms."""
        degrees = self.degrees[kept]
        start = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        atoms = self.atoms[np.repeat(kept, self.degrees)]
        parts = (self.n_bits, self.n_players, self.atom_start, self.atom_bits, self.atom_player)
        return Terms(*parts, start, atoms, self.coefficients[kept], self.constant)


def make_terms(spectrum: Spectrum, players: ArrayLike | None = None) -> Terms:
    """Return the terms of a spectrum for players as callers give them."""
    owner = check_players(players, spectrum.n_bits)
    return terms_of(spectrum, owner, int(owner.max(initial=-1)) + 1)


def terms_of(spectrum: Spectrum, owner: NDArray[np.int32], n_players: int) -> Terms:
    """Return the terms of a spectrum, given the ``owner`` (n_bits,) of each bit; a player may own no bit."""
    constant = spectrum.matrix[spectrum.degrees == 0].sum(axis=0)
    varying = spectrum.select(spectrum.degrees > 0)
    if np.array_equal(owner, np.arange(spectrum.n_bits)):
        start, atoms = varying.positions()
        each = np.arange(spectrum.n_bits, dtype=np.int32)
        bit_start = np.arange(spectrum.n_bits + 1, dtype=np.int64)
        return Terms(
            spectrum.n_bits, n_players, bit_start, each, owner, start, atoms, varying.matrix, constant
        )
    atom_masks, atom_player, start, atoms = _find_atoms(varying.frequencies, owner, n_players)
    sizes = [len(mask) for mask in atom_masks]
    atom_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    atom_bits = np.concatenate([*atom_masks, np.empty(0, np.int32)]).astype(np.int32)
    parts = (spectrum.n_bits, n_players, atom_start, atom_bits, atom_player, start, atoms)
    return Terms(*parts, varying.matrix, constant)


def _find_atoms(
    frequencies: NDArray[np.bool_], owner: NDArray[np.int32], n_players: int
) -> tuple[list[NDArray[np.int32]], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Return the distinct masks of every player, and each frequency as a list of them."""
    atom_of = np.full((len(frequencies), n_players), -1, dtype=np.int32)
    masks: list[NDArray[np.int32]] = []
    atom_player: list[int] = []
    for player in range(n_players):
        bits = np.flatnonzero(owner == player).astype(np.int32)
        touching = np.flatnonzero(frequencies[:, bits].any(axis=1))
        if not len(touching):
            continue
        part = frequencies[touching][:, bits]
        _, first, inverse = np.unique(
            pack(part.view(np.uint8)), axis=0, return_index=True, return_inverse=True
        )
        atom_of[touching, player] = len(masks) + inverse.reshape(-1)
        masks.extend(bits[part[k]] for k in first)
        atom_player.extend([player] * len(first))
    present = atom_of >= 0
    start = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
    return masks, np.array(atom_player, dtype=np.int32), start, atom_of[present]
