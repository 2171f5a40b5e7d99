"""Verifying what a file says: kernels check nothing, so no index read from outside may leave its array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_weights
from fouriershap._base.errors import FileFormatError
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.tables import WIDTH, Blocks, TableSet

if TYPE_CHECKING:  # trees import the tables, whose package imports this module
    from fouriershap._trees.codes import Pages
    from fouriershap._trees.ensemble import TreeEnsemble

_MOST_PATTERNS = 1 << 16
_NARROW_PATTERNS = 1 << 8
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def verify_tables(tables: TableSet, n_narrow: int, n_wide: int) -> None:
    """Raise `FileFormatError` unless every row of ``n_narrow + n_wide`` codes stays inside the tables."""
    _verify_types(tables.blocks)
    _verify_types(tables)
    _verify_blocks(tables.blocks, n_narrow, n_wide)
    _within("table_block", tables.table_block, 0, len(tables.blocks))
    n_groups = len(tables.group_output)
    _starts("group_start", tables.group_start, n_groups, tables.n_tables)
    _within("group sizes", np.diff(tables.group_start), 1, tables.n_tables + 1)
    _require(tables.group_players.shape == (n_groups, WIDTH), "group_players has the wrong shape")
    _within("group_players", tables.group_players, -1, tables.n_players)
    _require(len(tables.group_width) == n_groups, "group_width has the wrong length")
    _within("group_width", tables.group_width, 1, tables.n_outputs + 1)
    _within("group_output", tables.group_output, 0, tables.n_outputs)
    _within("group_output", tables.group_output + tables.group_width, 1, tables.n_outputs + 1)
    group = np.repeat(np.arange(n_groups), np.diff(tables.group_start))
    patterns = tables.blocks.n_patterns[tables.table_block].astype(np.int64)
    narrow = patterns <= _NARROW_PATTERNS
    _require((narrow == narrow[tables.group_start[:-1][group]]).all(), "a group mixes widths of patterns")
    _require(len(tables.table_offset) == tables.n_tables, "table_offset has the wrong length")
    _within("table_offset", tables.table_offset, 0, len(tables.values) + 1)
    ends = tables.table_offset + patterns * WIDTH * tables.group_width[group]
    _within("table_offset", ends, 0, len(tables.values) + 1)


def _verify_types(arrays: Blocks | TableSet) -> None:
    """Kernels would convert other types, and numbers that were looked at here would become others."""
    special = {"cut_at": np.uint16, "table_offset": np.int64}
    for field in fields(arrays):
        array = getattr(arrays, field.name)
        if not isinstance(array, np.ndarray):
            continue
        kinds = _FLOATS if field.name == "values" else (np.dtype(special.get(field.name, np.int32)),)
        shape = array.ndim == (2 if field.name == "group_players" else 1)
        _require(array.dtype in kinds and shape, f"{field.name} has the wrong type")


def _verify_blocks(blocks: Blocks, n_narrow: int, n_wide: int) -> None:
    n_blocks, n_cuts = len(blocks), len(blocks.cut_column)
    _starts("cut_start", blocks.cut_start, n_blocks, n_cuts)
    _require(len(blocks.n_patterns) == n_blocks, "n_patterns has the wrong length")
    _require(len(blocks.cut_at) == len(blocks.cut_weight) == n_cuts, "cuts have different lengths")
    _within("cut_column", blocks.cut_column, -n_wide, n_narrow)
    _require((blocks.cut_at[blocks.cut_column >= 0] < _NARROW_PATTERNS).all(), "a cut lies beyond a byte")
    _within("n_patterns", blocks.n_patterns, 1, _MOST_PATTERNS + 1)
    _require(len(blocks.cut_missing) == n_blocks, "cut_missing has the wrong length")
    ordered = (blocks.cut_start[:-1] <= blocks.cut_missing) & (blocks.cut_missing <= blocks.cut_start[1:])
    _require(ordered.all(), "cut_missing lies outside the cuts of its block")
    # With the cuts that tell missing values apart, and without them.
    for part in (blocks, _without_missing(blocks)):
        lowest, highest = _pattern_range(part)
        _within("patterns", lowest, 0, _MOST_PATTERNS)
        _require((highest < blocks.n_patterns).all(), "patterns lie beyond their table")


def _without_missing(blocks: Blocks) -> Blocks:
    block = np.repeat(np.arange(len(blocks)), np.diff(blocks.cut_start))
    kept = np.arange(len(block)) < blocks.cut_missing[block]
    start = np.concatenate([[0], np.cumsum(blocks.cut_missing - blocks.cut_start[:-1])]).astype(np.int32)
    cuts = {name: getattr(blocks, name)[kept] for name in ("cut_column", "cut_at", "cut_weight")}
    return replace(blocks, cut_start=start, cut_missing=start[1:], **cuts)


def _pattern_range(blocks: Blocks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n_blocks,) the lowest and the highest pattern that any codes can make.

    The cuts of one column add up to a step function of its code: their weights, in the order of their
    thresholds, accumulated. Columns are independent, so their lowest and highest steps add up.
    """
    base = blocks.base.astype(np.int64)
    if not len(blocks.cut_column):
        return base, base
    block = np.repeat(np.arange(len(blocks)), np.diff(blocks.cut_start))
    order = np.lexsort((blocks.cut_at, blocks.cut_column, block))
    block, column, at = block[order], blocks.cut_column[order], blocks.cut_at[order]
    total = np.cumsum(blocks.cut_weight[order], dtype=np.int64)
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (block[1:] != block[:-1]) | (column[1:] != column[:-1])
    firsts = np.flatnonzero(begins)
    before = np.concatenate([[0], total])[firsts]
    steps = total - np.repeat(before, np.diff(np.append(firsts, len(order))))
    # Between equal thresholds no code can stop, so only the last of them is a step.
    real = np.ones(len(order), dtype=bool)
    real[:-1] = begins[1:] | (at[1:] != at[:-1])
    lowest = np.minimum(np.minimum.reduceat(np.where(real, steps, 0), firsts), 0)
    highest = np.maximum(np.maximum.reduceat(np.where(real, steps, 0), firsts), 0)
    owner = block[firsts]
    low = np.bincount(owner, lowest, minlength=len(blocks)).astype(np.int64)
    high = np.bincount(owner, highest, minlength=len(blocks)).astype(np.int64)
    return base + low, base + high


def verify_terms(terms: Terms) -> None:
    """Raise `FileFormatError` unless atoms, players and bits are all where they should be."""
    _require(len(terms.constant) > 0, "there are no outputs")
    _starts("atom_start", terms.atom_start, terms.n_atoms, len(terms.atom_bits))
    _within("atom_bits", terms.atom_bits, 0, terms.n_bits)
    _within("atom_player", terms.atom_player, 0, terms.n_players)
    _starts("start", terms.start, terms.n_terms, len(terms.atoms))
    _within("atoms", terms.atoms, 0, terms.n_atoms)
    _require(
        terms.coefficients.shape == (terms.n_terms, terms.n_outputs), "coefficients have the wrong shape"
    )


def verify_trees(trees: TreeEnsemble, player: NDArray[Any], feasible: NDArray[Any]) -> None:
    """Raise `FileFormatError` unless every index of an ensemble is where it should be.

    `TreeEnsemble` has checked shapes, and that children come after their parents; here, that the nodes of
    each tree are a tree, and what only files could have wrong.
    """
    n_nodes, n_sets = trees.n_nodes, len(trees.set_start) - 1
    for name in ("threshold", "left", "right", "missing_left", "category_set", "cover"):
        _require(getattr(trees, name).shape == (n_nodes,), f"{name} has the wrong length")
    _within("feature", trees.feature, -1, trees.n_features)
    _within("category_set", trees.category_set, -1, max(n_sets, 0))
    _starts("set_start", trees.set_start, n_sets, len(trees.set_categories))
    inner = np.flatnonzero(trees.feature >= 0)
    children = np.concatenate([trees.left[inner], trees.right[inner]])
    parents = np.bincount(children, minlength=n_nodes)
    parents[trees.roots] += 1
    _require((parents == 1).all(), "a node has no parent, or several")
    tree = trees.tree_of_node
    _require((tree[children] == tree[np.tile(inner, 2)]).all(), "a child is in another tree")
    _require(player.shape == (trees.n_features,), "player has the wrong length")
    _within("player", player, 0, max(trees.n_features, 1))
    _require(
        feasible.shape == (trees.n_trees,) and feasible.dtype == np.bool_, "feasible has the wrong shape"
    )


def verify_rows(trees: TreeEnsemble, background: NDArray[Any] | None, weights: NDArray[Any] | None) -> None:
    """Raise `FileFormatError` unless a background is one of these trees."""
    _require(trees.dtype in _FLOATS, "the trees compare in no known type")
    if background is not None:
        fits = background.ndim == 2 and background.shape[1] == trees.n_features
        _require(fits and background.dtype == trees.dtype, "the background does not fit the trees")
    if weights is not None:
        check_weights(weights, 0 if background is None else len(background))


def verify_numbers(precision: np.dtype[Any], outputs: Iterable[NDArray[Any] | None], n_outputs: int) -> None:
    """Raise `FileFormatError` for a precision that no table has, and for outputs of the wrong number."""
    _require(precision in _FLOATS, "tables have no such precision")
    for array in outputs:
        _require(array is None or array.shape == (n_outputs,), "expected values have the wrong length")


def verify_pages(pages: Pages, column: NDArray[np.int32], n_codes: NDArray[np.int32]) -> None:
    """Raise `FileFormatError` unless every wide code finds its byte."""
    wide = np.flatnonzero(column < 0)
    size = np.zeros(len(wide), dtype=np.int64)
    size[~column[wide]] = n_codes[wide]
    _within("page sources", pages.source, 0, len(wide))
    _require(pages.offset.shape == pages.source.shape, "page offsets have the wrong length")
    _within("page offsets", pages.offset, 0, len(pages.lut) + 1)
    _within("pages", pages.offset + size[pages.source], 0, len(pages.lut) + 1)
    _require(pages.lut.dtype == np.uint8, "pages hold no bytes")


def _require(condition: Any, what: str) -> None:
    if not condition:
        raise FileFormatError(f"the file is damaged: {what}.")


def _within(name: str, values: NDArray[Any], first: int, last: int) -> None:
    _require(values.dtype.kind in "iu", f"{name} are not integers")
    if values.size:
        _require(first <= values.min() and values.max() < last, f"{name} lie outside {first} ... {last - 1}")


def _starts(name: str, starts: NDArray[Any], n_parts: int, n_items: int) -> None:
    """``starts`` cut ``n_items`` items into ``n_parts`` parts."""
    _within(name, starts, 0, n_items + 1)
    _require(starts.dtype.kind == "i", f"{name} have no sign")  # differences of others never fall
    _require(starts.shape == (n_parts + 1,), f"{name} has the wrong length")
    _require(starts[0] == 0 and starts[-1] == n_items and (np.diff(starts) >= 0).all(), f"{name} do not rise")


def verify_pairs(
    pairs: NDArray[np.int32], in_tables: NDArray[np.bool_], n_players: int, n_trees: int
) -> None:
    """Check the pairs of interaction tables: i < j, each once and in order."""
    shape = pairs.ndim == 2 and pairs.shape[1] == 2 and in_tables.shape == (n_trees,)
    _require(
        shape and in_tables.dtype == np.bool_, "the pairs of the interaction tables have the wrong shape"
    )
    _within("pairs", pairs, 0, n_players)
    keys = pairs[:, 0].astype(np.int64) * n_players + pairs[:, 1]
    ordered = (pairs[:, 0] < pairs[:, 1]).all() and (np.diff(keys) > 0).all()
    _require(bool(ordered), "the pairs of the interaction tables are not in order")
