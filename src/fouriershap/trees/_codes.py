"""Codes: every feature value as a small integer that decides all of an ensemble's splits.

The thresholds of a feature over the whole ensemble, sorted, cut the numbers into intervals; the code of
a value is the number of its interval. Categories that some split names are codes of their own, and all
others share one. The last code of every feature is the missing value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import kernels
from fouriershap.shapley._tables import Codes, empty_codes
from fouriershap.trees._ensemble import TreeEnsemble

NO_COLUMN = np.iinfo(np.int32).max
_FAN = 16


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

    @cached_property
    def _search(self) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """What the kernels search in: tiers, where each feature's begin, numbers of levels, which are sets.

        The tiers of a feature are its levels, every 16th of them, every 256th ..., each padded with NaN to a
        multiple of 16, until 16 are left: a value is found by 16 comparisons a tier.
        """
        parts: list[NDArray[Any]] = []
        lengths = [0]
        for f in range(self.n_features):
            tier = self.levels[self.start[f] : self.start[f + 1]]
            total = 0
            while True:
                padded = np.full(max(1, -(-len(tier) // _FAN)) * _FAN, np.nan, dtype=self.dtype)
                padded[: len(tier)] = tier
                parts.append(padded)
                total += len(padded)
                if len(padded) == _FAN:
                    break
                tier = padded[::_FAN]
            lengths.append(total)
        start = np.cumsum(lengths[:-1], dtype=np.int64) if self.n_features else np.zeros(0, np.int64)
        tiers = np.concatenate(parts) if parts else np.empty(0, self.dtype)
        return tiers, start, np.diff(self.start), self.categorical

    def encode(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """Codes (n_features, n_rows) int32 of cleaned rows (n_rows, n_features)."""
        codes = np.empty((self.n_features, len(rows)), dtype=np.int32)
        kernels.tables.encode32(np.ascontiguousarray(rows), *self._search, codes)
        return codes

    def encode_columns(self, rows: NDArray[Any], column: NDArray[np.int32]) -> Codes:
        """Codes for tables.

        Feature f goes to line ``column[f]`` of the narrow codes, ``~column[f]`` of the wide ones where it is
        negative, nowhere where it is `NO_COLUMN`.
        """
        used = column[column != NO_COLUMN]
        codes = empty_codes(int((used >= 0).sum()), int((used < 0).sum()), len(rows))
        missing = kernels.tables.encode(
            np.ascontiguousarray(rows), *self._search, column, codes.narrow, codes.wide
        )
        return replace(codes, any_missing=bool(missing))

    def columns(self, used: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The line of each used feature, as `encode_columns` takes it: bytes where 256 codes suffice."""
        n_codes = self.n_codes
        column = np.full(self.n_features, NO_COLUMN, dtype=np.int32)
        narrow = np.flatnonzero(used & (n_codes <= 256))
        wide = np.flatnonzero(used & (n_codes > 256))
        column[narrow] = np.arange(len(narrow))
        column[wide] = ~np.arange(len(wide))
        return column


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

    def select(self, kept: NDArray[np.bool_]) -> CodedTrees:
        """Some of the trees, on the same codes."""
        if kept.all():
            return self
        return replace(
            self, ensemble=self.ensemble.select(kept), cut=self.cut[kept[self.ensemble.tree_of_node]]
        )

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
