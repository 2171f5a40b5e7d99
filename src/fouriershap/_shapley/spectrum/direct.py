"""The closed form (strategy "direct"): every row against every background row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.bits import pack
from fouriershap._base.parallel import for_each_block
from fouriershap._shapley.indices import Index, difference_shares, difference_weight
from fouriershap._shapley.sets import pair_keys
from fouriershap._shapley.spectrum.terms import Terms

_WORK_PER_BLOCK = 20_000_000  # (row, term, background row) triples: some ten milliseconds
_NUMBERS = 1 << 22  # largest number of values at a time


def add_direct(
    terms: Terms,
    rows: NDArray[np.uint8],
    background: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    out: NDArray[np.float64],
    n_jobs: int = -1,
) -> None:
    """Add the SHAP values of all terms to ``out`` (n_rows, n_players, n_outputs), of rows of bits.

    ``weights`` (n_background,) sum to 1, or are None for equal ones.
    """
    if not terms.n_terms:
        return
    n_background = len(background)
    sliced = pack(terms.values(background))
    # Equal weights are counted bit-parallel; the coefficients are divided once.
    padded = np.empty(0)
    coefficients = terms.coefficients / n_background
    if weights is not None:
        padded = np.zeros(64 * sliced.shape[1])
        padded[:n_background] = weights
        coefficients = terms.coefficients
    bound = kernels.bits.Terms(terms.start, terms.atoms, coefficients)

    def work(first: int, last: int) -> None:
        atoms = np.ascontiguousarray(terms.values(rows[first:last]).T)
        kernels.bits.direct(bound, atoms, sliced, n_background, padded, terms.atom_player, out[first:last])

    block = max(1, _WORK_PER_BLOCK // (terms.n_terms * n_background))
    for_each_block(work, len(rows), block, n_jobs)


def add_differences(
    terms: Terms,
    rows: NDArray[np.uint8],
    background: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    index: Index,
    keys: NDArray[np.int64] | None,
    out: NDArray[np.float64],
) -> None:
    """Add the closed form of any index, term by term: shares of the players that differ, by their number.

    Adds values of players to ``out`` (n_rows, n_players, n_outputs) if ``keys`` is None, else interactions of these
    pairs to ``out`` (n_rows, n_pairs, n_outputs).
    """
    if not terms.n_terms or not len(rows):
        return
    order = 1 if keys is None else 2
    mine, others = terms.values(rows), terms.values(background)
    share = np.full(len(background), 1 / len(background)) if weights is None else weights
    for k in range(terms.n_terms):
        atoms = terms.atoms[terms.start[k] : terms.start[k + 1]]
        numbers = range(0 if index.subgames else len(atoms) + 1)
        by_number = np.array([difference_weight(index, order, m) for m in numbers])
        sign = share * (1.0 - 2.0 * np.bitwise_xor.reduce(others[atoms], axis=0))
        players = terms.atom_player[atoms]
        step = max(1, _NUMBERS // (len(atoms) * len(background)))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            differs = mine[atoms, part].T[:, :, None] ^ others[atoms]  # (rows, atoms, background)
            if index.subgames:
                shares = difference_shares(index, players, differs.transpose(0, 2, 1) == 1)
                out[part, players] += np.einsum("rba,b->ra", shares, sign)[:, :, None] * terms.coefficients[k]
                continue
            each = by_number[differs.sum(axis=1)] * sign
            columns: NDArray[Any]
            if keys is None:
                found, columns = np.einsum("rab,rb->ra", differs, each), players
            else:
                i, j = np.triu_indices(len(atoms), 1)
                both = (differs * each[:, None]) @ differs.transpose(0, 2, 1)
                key = pair_keys(players[i], players[j], terms.n_players)
                kept = np.isin(key, keys)
                found, columns = both[:, i[kept], j[kept]], np.searchsorted(keys, key[kept])
            out[part, columns] += found[:, :, None] * terms.coefficients[k]
