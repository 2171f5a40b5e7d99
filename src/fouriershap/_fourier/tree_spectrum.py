"""The exact spectrum of a tree ensemble on binary features (paper, Eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.bits import unpack
from fouriershap._base.errors import CapacityError, FourierShapWarning
from fouriershap._base.warn import warn
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._trees.codes import CodedTrees, code_trees
from fouriershap._trees.ensemble import TreeEnsemble

MAX_TERMS = 50_000_000
_CHUNK = 1 << 20  # terms expanded before equal frequencies are summed: bounds the scratch memory
_ROUNDING = 1e-14  # share of a term's absolute contributions below which it has cancelled

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


def ensemble_spectrum(ensemble: TreeEnsemble, rows: NDArray[Any], max_terms: int) -> Spectrum:
    """Return the spectrum of an ensemble on binary features (see `fouriershap.tree_spectrum`).

    ``rows`` (2, n_features) are a row of zeros and a row of ones, as the ensemble takes rows.
    """
    leaves = _find_leaves(ensemble, _goes_left(code_trees(ensemble), rows))
    degrees, counts = np.unique(leaves.degree, return_counts=True)
    expected = sum(int(n) << int(d) for d, n in zip(degrees, counts, strict=True))
    if expected > max_terms:
        raise CapacityError(
            f"the spectrum of {ensemble!r} would be summed from {expected:,} terms (limit max_terms = "
            f"{max_terms:,}): paths test up to {int(degrees.max())} distinct features. Raise max_terms, train "
            "shallower trees, or use TreeExplainer, which needs no spectrum."
        )
    return _collect(ensemble, leaves)


def _goes_left(coded: CodedTrees, rows: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether 0, and whether 1, goes left at each node, (n_nodes,) bool each."""
    e = coded.ensemble
    codes = coded.book.encode(rows)
    inner = np.flatnonzero(e.feature >= 0)
    numerical, category = inner[e.category_set[inner] < 0], inner[e.category_set[inner] >= 0]
    sides = []
    for line in codes.T:
        left = np.zeros(e.n_nodes, dtype=bool)
        code = line[e.feature[numerical]]
        missing = code == coded.book.n_codes[e.feature[numerical]] - 1
        left[numerical] = np.where(missing, e.missing_left[numerical], code < coded.cut[numerical])
        code = line[e.feature[category]].astype(np.uint64)
        words = coded.set_bits[e.category_set[category], code >> np.uint64(6)]
        left[category] = (words >> (code & np.uint64(63))) & np.uint64(1)
        sides.append(left)
    blind = inner[sides[0][inner] == sides[1][inner]]
    if len(blind):
        warn(
            f"{len(blind)} of {len(inner)} splits of {e!r} send 0 and 1 the same way (the first on feature "
            f"{int(e.feature[blind[0]])}): was the model trained on features that are not binary? The spectrum is "
            "exact on rows of 0 and 1 only. For other features use TreeExplainer.",
            FourierShapWarning,
        )
    return sides[0], sides[1]


@dataclass(frozen=True, eq=False)
class _Leaves:
    """The leaves that rows of bits can reach, tree by tree."""

    node: NDArray[np.int64]  # (n_leaves,)
    tested: Words  # (n_leaves, n_words) the features that must have one value on the path, packed
    ones: Words  # (n_leaves, n_words) those of them that must be 1

    @property
    def degree(self) -> NDArray[np.int64]:
        """Number of features tested, (n_leaves,)."""
        return np.asarray(np.bitwise_count(self.tested).sum(axis=1, dtype=np.int64))


def _find_leaves(e: TreeEnsemble, goes_left: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> _Leaves:
    """Walk all trees at once, level by level, with the sets of features that must be 0 and that must be 1."""
    n_words = max(1, -(-e.n_features // 64))
    node = e.roots.astype(np.int64)
    must = np.zeros((2, len(node), n_words), dtype=np.uint64)
    found: list[tuple[NDArray[np.int64], Words]] = []
    while len(node):
        leaf = e.feature[node] < 0
        found.append((node[leaf], must[:, leaf]))
        node, must = node[~leaf], must[:, ~leaf]
        word = e.feature[node] // 64
        bit = np.uint64(1) << (e.feature[node] % 64).astype(np.uint64)
        children, sets = [], []
        for child, is_left in ((e.left, True), (e.right, False)):
            below = must.copy()
            for value in (0, 1):
                # Where 1 cannot pass to the child the feature must be 0, and the other way round.
                closed = goes_left[1 - value][node] != is_left
                below[value, np.arange(len(node)), word] |= np.where(closed, bit, np.uint64(0))
            open_ = ~(below[0] & below[1]).any(axis=1)
            children.append(child[node[open_]])
            sets.append(below[:, open_])
        node, must = np.concatenate(children).astype(np.int64), np.concatenate(sets, axis=1)
    nodes = np.concatenate([n for n, _ in found])
    both = np.concatenate([m for _, m in found], axis=1)
    order = np.argsort(nodes)  # leaves of one tree, whose frequencies coincide, next to each other
    return _Leaves(nodes[order], (both[0] | both[1])[order], both[1][order])


def _collect(e: TreeEnsemble, leaves: _Leaves) -> Spectrum:
    """Sum the terms of all leaves, chunk by chunk."""
    values = np.zeros((len(leaves.node), e.n_outputs))
    if e.values.shape[1] == e.n_outputs:
        values[:] = e.values[leaves.node]
    else:
        output = e.tree_output[e.tree_of_node[leaves.node]]
        values[np.arange(len(values)), output] = e.values[leaves.node, 0]
    # One more output, the sum of absolute contributions, shows which terms have cancelled.
    parts_words = [np.zeros((1, leaves.tested.shape[1]), dtype=np.uint64)]
    parts = [np.append(e.base, np.abs(e.base).max())[None]]
    ends = np.cumsum(2.0**leaves.degree)
    chunk = (ends // _CHUNK).astype(np.int64)
    for rows in np.split(np.arange(len(values)), np.flatnonzero(np.diff(chunk)) + 1):
        for words, coefficients in _expand(e.n_features, leaves, values, rows):
            summed = Spectrum.from_words(words, coefficients, e.n_features)
            parts_words.append(summed.words)
            parts.append(summed.matrix)
    total = Spectrum.from_words(np.concatenate(parts_words), np.concatenate(parts), e.n_features)
    a, size = total.matrix[:, :-1], total.matrix[:, -1:]
    kept = (np.abs(a) > _ROUNDING * size).any(axis=1) | (total.degrees == 0)
    single = e.n_outputs == 1
    return Spectrum.from_words(total.words[kept], a[kept, 0] if single else a[kept], e.n_features)


def _expand(
    n_bits: int, leaves: _Leaves, values: Floats, rows: NDArray[np.int64]
) -> list[tuple[Words, Floats]]:
    """Return frequencies and coefficients of some leaves: one pair per number of tested features."""
    degree = leaves.degree[rows]
    parts = []
    for d in np.unique(degree):
        at = rows[degree == d]
        n, n_words = len(at), leaves.tested.shape[1]
        features = np.nonzero(unpack(leaves.tested[at], n_bits))[1].reshape(n, d)
        is_one = np.take_along_axis(unpack(leaves.ones[at], n_bits), features, axis=1)
        words = np.zeros((n, 1, n_words), dtype=np.uint64)
        signs = np.ones((n, 1))
        for j in range(d):
            literal = np.zeros((n, 1, n_words), dtype=np.uint64)
            literal[np.arange(n), 0, features[:, j] // 64] = np.uint64(1) << (features[:, j] % 64).astype(
                "u8"
            )
            words = np.concatenate([words, words | literal], axis=1)
            signs = np.concatenate([signs, np.where(is_one[:, j, None] == 1, -signs, signs)], axis=1)
        scaled = values[at] / 2.0**d
        coefficients = np.empty((n, 2**d, values.shape[1] + 1))
        coefficients[:, :, :-1] = signs[:, :, None] * scaled[:, None]
        coefficients[:, :, -1] = np.abs(scaled).max(axis=1)[:, None]
        parts.append((words.reshape(-1, n_words), coefficients.reshape(-1, values.shape[1] + 1)))
    return parts
