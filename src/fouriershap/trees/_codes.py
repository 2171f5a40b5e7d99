"""Codes: every feature value as a small integer that decides all of an ensemble's splits.

The thresholds of a feature over the whole ensemble, sorted, cut the numbers into intervals; the code of
a value is the number of its interval. Categories that some split names are codes of their own, and all
others share one. The last code of every feature is the missing value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap.trees._ensemble import TreeEnsemble


@dataclass(frozen=True, eq=False)
class Codebook:
    """How raw values become codes.

    Attributes
    ----------
    dtype : float32 or float64, as in the ensemble
    start : (n_features + 1,) int64
        Where the levels of each feature begin in ``levels``.
    levels : (n_levels,) dtype
        Sorted thresholds of a numerical feature, sorted categories of a categorical one.
    categorical : (n_features,) bool
    n_codes : (n_features,) int32
        Number of codes, the missing value included; its code is ``n_codes - 1``.
    """

    dtype: np.dtype[Any]
    start: NDArray[np.int64]
    levels: NDArray[Any]
    categorical: NDArray[np.bool_]

    @property
    def n_features(self) -> int:
        return len(self.categorical)

    @property
    def n_codes(self) -> NDArray[np.int32]:
        # K thresholds make K + 1 intervals; K categories and "any other" make K + 1 codes.
        return (np.diff(self.start) + 2).astype(np.int32)

    def encode(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """Codes (n_features, n_rows) int32 of cleaned rows (n_rows, n_features)."""
        codes = np.empty((self.n_features, len(rows)), dtype=np.int32)
        for f in range(self.n_features):
            levels = self.levels[self.start[f] : self.start[f + 1]]
            column = rows[:, f]
            missing = np.isnan(column)
            if self.categorical[f]:
                whole = np.trunc(column)
                position = np.searchsorted(levels, whole)
                known = np.append(levels, np.nan)[position] == whole
                codes[f] = np.where(known, position, len(levels))
            else:
                codes[f] = np.searchsorted(levels, column, side="right")
            codes[f, missing] = len(levels) + 1
        return codes


@dataclass(frozen=True, eq=False)
class CodedTrees:
    """An ensemble whose splits test codes.

    A code goes left at node v iff it is under ``cut[v]``, or it is the feature's missing code and
    ``missing_left[v]``; at a categorical node iff its bit in row ``category_set[v]`` of ``set_bits`` is set
    (the bit of the missing code included, so ``missing_left`` need not be asked there).
    """

    ensemble: TreeEnsemble
    book: Codebook
    cut: NDArray[np.int32]
    set_bits: NDArray[np.uint64]

    def goes_left(self, node: int) -> NDArray[np.bool_]:
        """(n_codes of the node's feature,) bool: which codes go left."""
        e = self.ensemble
        n_codes = int(self.book.n_codes[e.feature[node]])
        codes = np.arange(n_codes)
        if e.category_set[node] >= 0:
            words = self.set_bits[e.category_set[node]]
            return np.unpackbits(words.view(np.uint8), bitorder="little", count=n_codes).astype(bool)
        left: NDArray[np.bool_] = codes < self.cut[node]
        left[-1] = e.missing_left[node]
        return left


def code_trees(ensemble: TreeEnsemble) -> CodedTrees:
    """Collect the levels of every feature, and turn thresholds and category sets into codes."""
    e = ensemble
    categorical = e.is_categorical
    levels: list[NDArray[Any]] = []
    cut = np.zeros(e.n_nodes, dtype=np.int32)
    order = np.argsort(e.feature, kind="stable")
    bounds = np.searchsorted(e.feature[order], np.arange(e.n_features + 1))
    set_owner = np.full(len(e.set_start) - 1, -1, dtype=np.int64)
    set_owner[e.category_set[e.category_set >= 0]] = e.feature[e.category_set >= 0]
    set_of_category = np.repeat(np.arange(len(set_owner)), np.diff(e.set_start))
    for f in range(e.n_features):
        nodes = order[bounds[f] : bounds[f + 1]]
        if categorical[f]:
            levels.append(np.unique(e.set_categories[set_owner[set_of_category] == f]).astype(e.dtype))
            continue
        thresholds = e.threshold[nodes].astype(e.dtype)
        unique, inverse = np.unique(thresholds[~np.isnan(thresholds)], return_inverse=True)
        # A code c is the number of thresholds <= x, so x >= unique[i] iff c > i.
        node_cut = np.full(len(nodes), len(unique) + 1)
        node_cut[~np.isnan(thresholds)] = inverse + 1
        cut[nodes] = node_cut
        levels.append(unique)
    start = np.concatenate([[0], np.cumsum([len(level) for level in levels])]).astype(np.int64)
    flat = np.concatenate(levels) if levels else np.empty(0)
    book = Codebook(e.dtype, start, flat.astype(e.dtype), categorical)
    return CodedTrees(e, book, cut, _set_bits(e, book, set_owner))


def _set_bits(e: TreeEnsemble, book: Codebook, set_owner: NDArray[np.int64]) -> NDArray[np.uint64]:
    n_codes = book.n_codes
    most = int(n_codes[book.categorical].max()) if book.categorical.any() else 1
    bits = np.zeros((len(set_owner), (most + 63) // 64 * 64), dtype=bool)
    for s, f in enumerate(set_owner):
        if f >= 0:
            levels = book.levels[book.start[f] : book.start[f + 1]]
            members = e.set_categories[e.set_start[s] : e.set_start[s + 1]]
            bits[s, np.searchsorted(levels, members.astype(book.dtype))] = True
    nodes = np.flatnonzero((e.category_set >= 0) & e.missing_left)
    bits[e.category_set[nodes], n_codes[e.feature[nodes]] - 1] = True
    packed: NDArray[np.uint64] = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    return packed
