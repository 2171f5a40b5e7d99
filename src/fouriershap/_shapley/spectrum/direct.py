"""The direct method: the closed form, row by row against every background row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.bits import pack
from fouriershap._base.parallel import for_each_block
from fouriershap._shapley.spectrum.terms import Terms

_WORK_PER_BLOCK = 20_000_000  # (row, term, background row) triples: some ten milliseconds


def add_direct(
    terms: Terms,
    rows: NDArray[np.uint8],
    background: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    out: NDArray[np.float64],
    n_jobs: int | None = None,
) -> None:
    """Add the SHAP values of all terms to ``out`` (n_rows, n_players, n_outputs), of rows of bits.

    ``weights`` (n_background,) sum to 1, or are None for equal ones.
    """
    if not terms.n_terms:
        return
    n_background = len(background)
    sliced = pack(terms.values(background))
    # Equal weights are counted bit-parallel and divided once, here, by way of the coefficients.
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
