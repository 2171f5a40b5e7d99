"""Codes: every feature value as a small integer that decides all of an ensemble's splits.

The thresholds of a feature over the whole ensemble, sorted, cut the numbers into intervals; the code of
a value is the number of its interval. Categories that some split names are codes of their own, and all
others share one. The last code of every feature is the missing value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.frozen import Frozen
from fouriershap._trees.ensemble import TreeEnsemble

NO_COLUMN = np.iinfo(np.int32).max
_FAN = 16
_STRIDE = 64  # codes are padded to a multiple of this many rows


@dataclass(frozen=True, eq=False)
class Codes:
    """Rows as codes, a line per column: (n8, stride) uint8 and (n16, stride) uint16, padded."""

    narrow: NDArray[np.uint8]
    wide: NDArray[np.uint16]
    n_rows: int
    any_missing: bool = False


def empty_codes(n_narrow: int, n_wide: int, n_rows: int) -> Codes:
    """Codes to be filled. The stride is odd in cache lines, so that columns do not share cache sets."""
    stride = (-(-n_rows // _STRIDE) | 1) * _STRIDE
    return Codes(np.zeros((n_narrow, stride), np.uint8), np.zeros((n_wide, stride), np.uint16), n_rows)


@dataclass(frozen=True, eq=False)
class Codebook(Frozen):
    """How raw values become codes."""

    dtype: np.dtype[Any]  # float32 or float64, as in the ensemble
    start: NDArray[np.int64]  # (n_features + 1,) where the levels of each feature begin in ``levels``
    levels: NDArray[
        Any
    ]  # (n_levels,) sorted thresholds of a numerical feature, categories of a categorical one
    categorical: NDArray[np.bool_]  # (n_features,)

    @property
    def n_features(self) -> int:
        return len(self.categorical)

    @property
    def n_codes(self) -> NDArray[np.int32]:
        """(n_features,) number of codes, the missing value included; its code is ``n_codes - 1``."""
        # K thresholds make K + 1 intervals; K categories and "any other" make K + 1 codes.
        return (np.diff(self.start) + 2).astype(np.int32)

    @cached_property
    def bound_levels(self) -> kernels.encode.Levels:
        """The levels as kernels take them."""
        return kernels.encode.Levels(*self.search_arrays())

    def search_arrays(self) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return tiers, where each feature's begin, the numbers of levels, and which are categorical.

        The tiers of a feature are its levels, every 16th of them, every 256th ..., each padded with NaN to a
        multiple of 16, until 16 are left: a value is found by 16 comparisons a tier.
        """
        n_levels = np.diff(self.start)
        padded = [np.maximum(-(-n_levels // _FAN), 1) * _FAN]  # per tier, per feature; 0: no such tier
        while (padded[-1] > _FAN).any():
            n_above = padded[-1] // _FAN
            padded.append(np.where(padded[-1] > _FAN, -(-n_above // _FAN) * _FAN, 0))
        total = np.sum(padded, axis=0)
        first = np.cumsum(total) - total
        tiers = np.full(int(total.sum()), np.nan, dtype=self.dtype)
        tiers[np.arange(len(self.levels)) + np.repeat(first - self.start[:-1], n_levels)] = self.levels
        below = first
        for lower, upper in pairwise(padded):
            above = below + lower
            n_above = np.where(upper > 0, lower // _FAN, 0)
            rank = np.arange(n_above.sum()) - np.repeat(np.cumsum(n_above) - n_above, n_above)
            tiers[np.repeat(above, n_above) + rank] = tiers[np.repeat(below, n_above) + _FAN * rank]
            below = above
        return tiers, first.astype(np.int64), n_levels, self.categorical

    def encode(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """Codes (n_features, n_rows) int32 of cleaned rows (n_rows, n_features)."""
        codes = np.empty((self.n_features, len(rows)), dtype=np.int32)
        kernels.encode.encode32(self.bound_levels, np.ascontiguousarray(rows), codes)
        return codes

    def encode_columns(
        self, rows: NDArray[Any], column: NDArray[np.int32], pages: Pages | None = None
    ) -> Codes:
        """Codes for tables.

        Feature f goes to line ``column[f]`` of the narrow codes, ``~column[f]`` of the wide ones where it is
        negative, nowhere where it is `NO_COLUMN`. The pages follow as further narrow lines.
        """
        n_narrow, n_wide = count_lines(column)
        n_pages = 0 if pages is None else len(pages.source)
        codes = empty_codes(n_narrow + n_pages, n_wide, len(rows))
        missing = kernels.encode.encode(
            self.bound_levels, np.ascontiguousarray(rows), column, codes.narrow, codes.wide
        )
        return self._with_pages(replace(codes, any_missing=bool(missing)), pages, n_narrow)

    def to_columns(
        self, codes: NDArray[np.int32], column: NDArray[np.int32], pages: Pages | None = None
    ) -> Codes:
        """Return what `encode_columns` gives, from codes (n_features, n_rows) of all features."""
        n_narrow, n_wide = count_lines(column)
        n_rows = codes.shape[1]
        out = empty_codes(n_narrow + (0 if pages is None else len(pages.source)), n_wide, n_rows)
        narrow, wide = np.flatnonzero((column >= 0) & (column != NO_COLUMN)), np.flatnonzero(column < 0)
        out.narrow[column[narrow], :n_rows] = codes[narrow]
        out.wide[~column[wide], :n_rows] = codes[wide]
        used = np.concatenate([narrow, wide])
        missing = bool((codes[used] == (self.n_codes[used] - 1)[:, None]).any())
        return self._with_pages(replace(out, any_missing=missing), pages, n_narrow)

    @staticmethod
    def _with_pages(codes: Codes, pages: Pages | None, n_narrow: int) -> Codes:
        if pages is not None:
            kernels.encode.remap(
                codes.wide, codes.n_rows, pages.source, pages.offset, pages.lut, n_narrow, codes.narrow
            )
        return codes

    def columns(self, used: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the line of each used feature, as `encode_columns` takes it: bytes where 256 codes suffice."""
        n_codes = self.n_codes
        column = np.full(self.n_features, NO_COLUMN, dtype=np.int32)
        narrow = np.flatnonzero(used & (n_codes <= 256))
        wide = np.flatnonzero(used & (n_codes > 256))
        column[narrow] = np.arange(len(narrow))
        column[wide] = ~np.arange(len(wide))
        return column


def count_lines(column: NDArray[np.int32]) -> tuple[int, int]:
    """How many lines of narrow and of wide codes there are."""
    return int(((column >= 0) & (column != NO_COLUMN)).sum()), int((column < 0).sum())


@dataclass(frozen=True, eq=False)
class Pages:
    """Wide codes as bytes. A page knows the cuts of some trees alone, and of these a byte can tell 255 apart.

    Comparing bytes is twice as fast, and a forest of a hundred trees needs but a few pages.
    """

    source: NDArray[np.int32]  # (n_pages,) the line of the wide codes that the page reads
    offset: NDArray[np.int64]  # (n_pages,)
    lut: NDArray[
        np.uint8
    ]  # code c becomes ``lut[offset[p] + c]``, the number of the page's cuts that are <= c


class Columns(NamedTuple):
    """Where the codes of each feature go: what `Codebook.encode_columns` takes beside the rows."""

    column: NDArray[np.int32]
    pages: Pages | None


def turn_pages(
    feature: NDArray[np.int32],
    at: NDArray[np.uint16],
    tree: NDArray[np.int32],
    column: NDArray[np.int32],
    n_codes: NDArray[np.int32],
) -> tuple[Pages, NDArray[np.int32], NDArray[np.uint16]] | None:
    """Put the cuts on wide codes (feature, code and tree of each) onto pages of consecutive trees.

    Gives the pages, and the column and the code of each cut anew; None where no feature is wide, or where some tree
    alone has more cuts on one than a byte can tell apart.
    """
    wide = column[feature] < 0
    if not wide.any():
        return None
    n_trees, n_pages = int(tree.max()) + 1, 1
    while True:
        page = tree[wide].astype(np.int64) * n_pages // n_trees
        owner = feature[wide].astype(np.int64) * n_pages + page
        keys, inverse = np.unique(owner * 65_536 + at[wide], return_inverse=True)
        owners, first, counts = np.unique(keys // 65_536, return_index=True, return_counts=True)
        if counts.max() <= 255:
            break
        if n_pages == n_trees:
            return None
        n_pages = min(n_trees, n_pages + max(1, n_pages // 2))
    line = np.searchsorted(owners, owner)
    new_column, new_at = column[feature], at.copy()
    new_column[wide] = count_lines(column)[0] + line
    new_at[wide] = inverse - first[line] + 1
    page_feature = owners // n_pages
    sizes = n_codes[page_feature].astype(np.int64)
    tables = [
        np.searchsorted(keys[begin : begin + count] % 65_536, np.arange(size), side="right")
        for begin, count, size in zip(first, counts, sizes, strict=True)
    ]
    pages = Pages(
        (~column[page_feature]).astype(np.int32),
        np.cumsum(sizes) - sizes,
        np.concatenate(tables).astype(np.uint8),
    )
    return pages, new_column, new_at


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
        """Return some of the trees, on the same codes."""
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
    set_owner = np.full(len(e.set_start) - 1, -1, dtype=np.int32)
    set_owner[e.category_set[e.category_set >= 0]] = e.feature[e.category_set >= 0]
    # All (feature, level) pairs at once, thresholds of numerical and members of categorical nodes alike.
    numerical = (e.feature >= 0) & (e.category_set < 0)
    if categorical.any() and categorical[e.feature[numerical]].any():
        mixed = e.feature[numerical][categorical[e.feature[numerical]]][0]
        raise UnsupportedModelError(
            f"{e!r} splits feature {mixed} both as a number and as a category: its trees were trained on different "
            "kinds of data. Train them again with one set of categorical features."
        )
    nodes = np.flatnonzero(numerical & ~np.isnan(e.threshold))
    members = np.repeat(set_owner, np.diff(e.set_start))
    feature = np.concatenate([e.feature[nodes], members[members >= 0]])
    level = np.concatenate([e.threshold[nodes], e.set_categories[members >= 0]]).astype(e.dtype)
    start, position = np.empty(e.n_features + 1, dtype=np.int64), np.empty(len(level), dtype=np.int64)
    found = np.empty_like(level)
    n_found = kernels.nodes.levels(feature, level, start, position, found)
    book = Codebook(e.dtype, start, found[:n_found].copy(), categorical)
    # A code c is the number of thresholds <= x, so x >= level i iff c > i; a threshold of NaN is beyond all.
    cut = np.where(e.feature >= 0, book.n_codes[e.feature] - 1, 0).astype(np.int32)
    cut[nodes] = position[: len(nodes)] - start[e.feature[nodes]] + 1
    return CodedTrees(e, book, cut, _set_bits(e, book, set_owner))


def _set_bits(e: TreeEnsemble, book: Codebook, set_owner: NDArray[np.int32]) -> NDArray[np.uint64]:
    if not len(set_owner):
        return np.zeros((0, 1), dtype=np.uint64)
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
