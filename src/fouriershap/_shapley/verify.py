"""Checks of what a file holds: no index that kernels follow may leave its array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_weights
from fouriershap._base.headers import require
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.tables import Blocks, TableSet
from fouriershap._trees.codes import Pages
from fouriershap._trees.ensemble import ARRAY_TYPES, TreeEnsemble

_MOST_CATEGORIES = 1 << 31
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_TERM_TYPES = {"atom_start": "i8", "atom_bits": "i4", "atom_player": "i4", "start": "i8", "atoms": "i4"}
_TERM_TYPES |= {"coefficients": "f8", "constant": "f8"}


def verify_tables(tables: TableSet, n_narrow: int, n_wide: int) -> None:
    """Raise `FileFormatError` unless every row of ``n_narrow + n_wide`` codes stays inside the tables."""
    _verify_types(tables.blocks)
    _verify_types(tables)
    _within("cut_column", tables.blocks.cut_column, -n_wide, n_narrow)
    try:
        require(tables.bound is not None, "its tables cannot be bound")  # the kernels check them
    except ValueError as error:
        require(False, str(error))


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
