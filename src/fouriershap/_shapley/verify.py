"""Checks of what a file holds: no index that kernels follow may leave its array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_weights
from fouriershap._base.headers import require
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.tables import WIDTH, Blocks, TableSet
from fouriershap._trees.codes import Pages
from fouriershap._trees.ensemble import ARRAY_TYPES, TreeEnsemble

_MOST_PATTERNS = 1 << 16
_NARROW_PATTERNS = 1 << 8
_MOST_CATEGORIES = 1 << 31
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_TERM_TYPES = {"atom_start": "i8", "atom_bits": "i4", "atom_player": "i4", "start": "i8", "atoms": "i4"}
_TERM_TYPES |= {"coefficients": "f8", "constant": "f8"}


def verify_tables(tables: TableSet, n_narrow: int, n_wide: int) -> None:
    """Raise `FileFormatError` unless every row of ``n_narrow + n_wide`` codes stays inside the tables."""
    _verify_types(tables.blocks)
    _verify_types(tables)
    _verify_blocks(tables.blocks, n_narrow, n_wide)
    _within("table_block", tables.table_block, 0, len(tables.blocks))
    n_groups = len(tables.group_output)
    _starts("group_start", tables.group_start, n_groups, tables.n_tables)
    _within("group sizes", np.diff(tables.group_start), 1, tables.n_tables + 1)
    require(tables.group_players.shape == (n_groups, WIDTH), "group_players has the wrong shape")
    _within("group_players", tables.group_players, -1, tables.n_players)
    require(len(tables.group_width) == n_groups, "group_width has the wrong length")
    _within("group_width", tables.group_width, 1, tables.n_outputs + 1)
    _within("group_output", tables.group_output, 0, tables.n_outputs)
    _within("group_output", tables.group_output + tables.group_width, 1, tables.n_outputs + 1)
    group = np.repeat(np.arange(n_groups), np.diff(tables.group_start))
    patterns = tables.blocks.n_patterns[tables.table_block].astype(np.int64)
    narrow = patterns <= _NARROW_PATTERNS
    require((narrow == narrow[tables.group_start[:-1][group]]).all(), "a group mixes widths of patterns")
    require(len(tables.table_offset) == tables.n_tables, "table_offset has the wrong length")
    _within("table_offset", tables.table_offset, 0, len(tables.values) + 1)
    ends = tables.table_offset + patterns * WIDTH * tables.group_width[group]
    _within("table_offset", ends, 0, len(tables.values) + 1)


def _verify_types(arrays: Blocks | TableSet) -> None:
    """Refuse types that kernels would convert: numbers checked here would become others."""
    special = {"cut_at": "u2", "table_offset": "i8"}
    for field in fields(arrays):
        array = getattr(arrays, field.name)
        if field.name == "values":
            require(array.dtype in _FLOATS and array.ndim == 1, "values has the wrong type")
        elif isinstance(array, np.ndarray):
            n_axes = 2 if field.name == "group_players" else 1
            verify_array(field.name, array, special.get(field.name, "i4"), n_axes)


def verify_array(name: str, array: NDArray[Any], kind: str, n_axes: int = 1) -> None:
    """Raise `FileFormatError` unless an array has this type, in NumPy's letters, and ``n_axes`` axes."""
    require(array.dtype == np.dtype(kind) and array.ndim == n_axes, f"{name} has the wrong type")
    if array.dtype == np.bool_:  # kernels count on it
        require((array.view(np.uint8) <= 1).all(), f"{name} has booleans that are neither true nor false")


def _verify_blocks(blocks: Blocks, n_narrow: int, n_wide: int) -> None:
    n_blocks, n_cuts = len(blocks), len(blocks.cut_column)
    _starts("cut_start", blocks.cut_start, n_blocks, n_cuts)
    require(len(blocks.n_patterns) == n_blocks, "n_patterns has the wrong length")
    require(len(blocks.cut_at) == len(blocks.cut_weight) == n_cuts, "cuts have different lengths")
    _within("cut_column", blocks.cut_column, -n_wide, n_narrow)
    require((blocks.cut_at[blocks.cut_column >= 0] < _NARROW_PATTERNS).all(), "a cut lies beyond a byte")
    _within("n_patterns", blocks.n_patterns, 1, _MOST_PATTERNS + 1)
    require(len(blocks.cut_missing) == n_blocks, "cut_missing has the wrong length")
    ordered = (blocks.cut_start[:-1] <= blocks.cut_missing) & (blocks.cut_missing <= blocks.cut_start[1:])
    require(ordered.all(), "cut_missing lies outside the cuts of its block")
    # With the cuts that tell missing values apart, and without them.
    for part in (blocks, _without_missing(blocks)):
        lowest, highest = _pattern_range(part)
        _within("patterns", lowest, 0, _MOST_PATTERNS)
        require((highest < blocks.n_patterns).all(), "patterns lie beyond their table")


def _without_missing(blocks: Blocks) -> Blocks:
    block = np.repeat(np.arange(len(blocks)), np.diff(blocks.cut_start))
    kept = np.arange(len(block)) < blocks.cut_missing[block]
    start = np.concatenate([[0], np.cumsum(blocks.cut_missing - blocks.cut_start[:-1])]).astype(np.int32)
    cuts = {name: getattr(blocks, name)[kept] for name in ("cut_column", "cut_at", "cut_weight")}
    return replace(blocks, cut_start=start, cut_missing=start[1:], **cuts)


def _pattern_range(blocks: Blocks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lowest and the highest pattern that any codes can make, (n_blocks,).

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


def verify_terms(terms: Terms, n_outputs: int) -> None:
    """Raise `FileFormatError` unless atoms, players and bits are in range."""
    for name, kind in _TERM_TYPES.items():
        verify_array(name, getattr(terms, name), kind, 2 if name == "coefficients" else 1)
    require(terms.n_outputs == n_outputs > 0, "terms have the wrong number of outputs")
    require(0 <= terms.n_players <= terms.n_bits, "there are more players than bits")
    _starts("atom_start", terms.atom_start, terms.n_atoms, len(terms.atom_bits), least=1)
    _within("atom_bits", terms.atom_bits, 0, terms.n_bits)
    _within("atom_player", terms.atom_player, 0, terms.n_players)
    _starts("start", terms.start, terms.n_terms, len(terms.atoms), least=1)
    _within("atoms", terms.atoms, 0, terms.n_atoms)
    player = terms.atom_player[terms.atoms]
    rises = np.diff(player, prepend=-1) > 0
    rises[terms.start[:-1]] = True
    require(rises.all(), "a term has a player twice")
    require(terms.coefficients.shape[1] == n_outputs, "coefficients have the wrong shape")


def verify_owners(terms: Terms, player: NDArray[Any]) -> None:
    """Raise `FileFormatError` unless the players of bits are those that own their atoms."""
    verify_array("player", player, "i4")
    require(player.shape == (terms.n_bits,), "player has the wrong length")
    _within("player", player, 0, max(terms.n_players, 1))
    owner = np.repeat(terms.atom_player, np.diff(terms.atom_start))
    require((player[terms.atom_bits] == owner).all(), "bits have other players than their atoms")


def verify_players(player: NDArray[Any], n_columns: int) -> None:
    """Raise `FileFormatError` unless every column has a player, numbered from 0 without gaps."""
    verify_array("player", player, "i4")
    require(player.shape == (n_columns,), "player has the wrong length")
    _within("player", player, 0, max(n_columns, 1))
    require(len(np.unique(player)) == player.max(initial=-1) + 1, "players have gaps")


def verify_tree_types(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise `FileFormatError` unless all arrays of an ensemble are there, with their types."""
    require(arrays.keys() == ARRAY_TYPES.keys(), "the arrays of its trees are not the expected ones")
    for name, kind in ARRAY_TYPES.items():
        verify_array(name, arrays[name], kind, 2 if name == "values" else 1)


def verify_trees(trees: TreeEnsemble, player: NDArray[Any], feasible: NDArray[Any]) -> None:
    """Raise `FileFormatError` for what `TreeEnsemble` has not checked: what only files could have wrong."""
    require((trees.category_set[trees.feature < 0] < 0).all(), "a leaf has categories")
    _within("set_categories", trees.set_categories, 0, _MOST_CATEGORIES)
    verify_players(player, trees.n_features)
    verify_array("feasible", feasible, "?")
    require(feasible.shape == (trees.n_trees,), "feasible has the wrong length")


def verify_rows(trees: TreeEnsemble, background: NDArray[Any] | None, weights: NDArray[Any] | None) -> None:
    """Raise `FileFormatError` unless a background fits these trees."""
    require(trees.dtype in _FLOATS, "the trees compare in an unknown type")
    if background is not None:
        fits = background.ndim == 2 and background.shape[1] == trees.n_features
        require(fits and background.dtype == trees.dtype, "the background does not fit the trees")
    verify_weights(weights, background)


def verify_weights(weights: NDArray[Any] | None, background: NDArray[Any] | None) -> None:
    """Raise unless there are no weights, or one per row of the background."""
    if weights is not None:
        verify_array("weights", weights, "f8")
        check_weights(weights, 0 if background is None else len(background))


def verify_numbers(precision: np.dtype[Any], outputs: Iterable[NDArray[Any] | None], n_outputs: int) -> None:
    """Raise `FileFormatError` for an unknown precision, and for expected values of the wrong length."""
    require(precision in _FLOATS, "the precision of its tables is unknown")
    for array in outputs:
        if array is not None:
            verify_array("expected", array, "f8")
            require(array.shape == (n_outputs,), "expected values have the wrong length")


def verify_pages(pages: Pages, column: NDArray[np.int32], n_codes: NDArray[np.int32]) -> None:
    """Raise `FileFormatError` unless every wide code finds its byte."""
    wide = np.flatnonzero(column < 0)
    size = np.zeros(len(wide), dtype=np.int64)
    size[~column[wide]] = n_codes[wide]
    for name, kind in {"source": "i4", "offset": "i8", "lut": "u1"}.items():
        verify_array(f"pages.{name}", getattr(pages, name), kind)
    _within("page sources", pages.source, 0, len(wide))
    require(pages.offset.shape == pages.source.shape, "page offsets have the wrong length")
    _within("page offsets", pages.offset, 0, len(pages.lut) + 1)
    _within("pages", pages.offset + size[pages.source], 0, len(pages.lut) + 1)


def _within(name: str, values: NDArray[Any], first: int, last: int) -> None:
    require(values.dtype.kind in "iu", f"{name} are not integers")
    if values.size:
        require(first <= values.min() and values.max() < last, f"{name} lie outside {first} ... {last - 1}")


def _starts(name: str, starts: NDArray[Any], n_parts: int, n_items: int, least: int = 0) -> None:
    """Require that ``starts`` cut ``n_items`` items into ``n_parts`` parts of at least ``least`` each."""
    _within(name, starts, 0, n_items + 1)
    require(starts.dtype.kind == "i", f"{name} are unsigned")  # whose differences never fall
    require(starts.shape == (n_parts + 1,), f"{name} has the wrong length")
    require(
        starts[0] == 0 and starts[-1] == n_items and (np.diff(starts) >= least).all(), f"{name} do not rise"
    )


def verify_pairs(
    pairs: NDArray[np.int32], in_tables: NDArray[np.bool_], n_players: int, n_trees: int
) -> None:
    """Check the pairs of interaction tables: i < j, each once and in order."""
    verify_array("pairs", pairs, "i4", 2)
    verify_array("pairs.in_tables", in_tables, "?")
    shapes = pairs.shape[1] == 2 and in_tables.shape == (n_trees,)
    require(shapes, "the pairs of the interaction tables have the wrong shape")
    _within("pairs", pairs, 0, n_players)
    keys = pairs[:, 0].astype(np.int64) * n_players + pairs[:, 1]
    ordered = (pairs[:, 0] < pairs[:, 1]).all() and (np.diff(keys) > 0).all()
    require(bool(ordered), "the pairs of the interaction tables are not in order")
