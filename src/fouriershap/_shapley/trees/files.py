"""Compiled trees as named arrays, and back: the contents of a .fshap file."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import stored_memory
from fouriershap._base.headers import get_size, get_typed, require
from fouriershap._base.links import LINKS
from fouriershap._shapley.indices import stored_index
from fouriershap._shapley.outputs.kinds import OUTPUTS, Output
from fouriershap._shapley.sets import pair_keys
from fouriershap._shapley.tables import TableSet, tables_from_arrays, tables_to_arrays
from fouriershap._shapley.trees.blocks import code_columns
from fouriershap._shapley.trees.compiled import NO_COLUMNS, CompiledTrees
from fouriershap._shapley.trees.model import Background, TreeModel, make_model
from fouriershap._shapley.trees.pairs import TreePairs
from fouriershap._shapley.verify import (
    verify_numbers,
    verify_pages,
    verify_pairs,
    verify_rows,
    verify_tables,
    verify_tree_types,
    verify_trees,
)
from fouriershap._trees.codes import Columns, Pages, count_lines
from fouriershap._trees.ensemble import ARRAY_TYPES, TreeEnsemble

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]


class StoredTrees(NamedTuple):
    """The parts of an engine from a file."""

    model: TreeModel
    background: Background
    compiled: CompiledTrees
    expected: NDArray[np.float64]
    pairs: TreePairs | None
    output: Output | None


def trees_to_contents(
    model: TreeModel,
    background: Background,
    compiled: CompiledTrees,
    expected: NDArray[np.float64],
    pairs: TreePairs | None,
    keep_background: bool,
    output: Output,
) -> tuple[Arrays, Header]:
    """Return arrays and header; with the background where some tree has no table, or ``keep_background`` is set."""
    arrays, header = ensemble_to_contents(model.ensemble)
    arrays |= {"player": model.player, "feasible": compiled.in_tables, "expected": expected}
    header |= {"precision": model.dtype.name, "memory": model.memory, "strategy": model.strategy}
    header |= {"index": model.index.name, "interventional": background.rows is not None}
    header |= {"link": model.link.name, "model_kind": model.kind, "output": output.name}
    header |= {"n_background": background.n_rows, "n_channels": model.n_channels}
    arrays |= _tables_to_arrays(compiled.tables, compiled.columns)
    if compiled.tables is not None:
        arrays["table_expected"] = compiled.expected
    needed = keep_background or compiled.rest is not None
    if pairs is not None:
        arrays |= {"pairs": pairs.pairs, "pairs.in_tables": pairs.in_tables}
        arrays |= {f"pairs.{k}": a for k, a in _tables_to_arrays(pairs.tables, pairs.columns).items()}
        needed |= pairs.rest is not None
    if background.rows is not None and needed:
        arrays["background"] = background.rows
        if background.weights is not None:
            arrays["weights"] = background.weights
    return arrays, header


def trees_from_contents(arrays: Arrays, header: Header) -> StoredTrees:
    """Return what `trees_to_contents` wrote: nothing is compiled, tables stay where they are."""
    ensemble, in_tables = ensemble_from_contents(arrays, header), arrays["feasible"]
    rows, weights = arrays.get("background"), arrays.get("weights")
    is_interventional = get_typed(header, "interventional", bool)
    require(rows is None or is_interventional, "it has a background that nothing is compared with")
    if rows is None and is_interventional:
        rows = np.empty((0, ensemble.n_features), dtype=ensemble.dtype)
    n_background = get_size(header, "n_background")
    known = rows is None or not len(rows) or n_background in (None, len(rows))
    require(known, "its background has the wrong number of rows")
    strategy, link = get_typed(header, "strategy", str), get_typed(header, "link", str)
    require(strategy in ("auto", "tables", "stream", "walk"), "its strategy is unknown")
    require(link in LINKS, "its link is unknown")
    output = OUTPUTS.get(get_typed(header, "output", str))
    require(output is not None, "its output is unknown")
    settings = (stored_memory(get_typed(header, "memory", int)), _float_type(header, "precision"))
    kind: str = get_typed(header, "model_kind", str)
    expected, of_tables = arrays["expected"], arrays.get("table_expected")
    verify_trees(ensemble, arrays["player"], in_tables)
    index = stored_index(get_typed(header, "index", str), int(arrays["player"].max(initial=-1)) + 1)
    verify_rows(ensemble, rows, weights)
    n_channels = get_size(header, "n_channels")
    require(n_channels == 1 or (n_channels and ensemble.n_outputs == 1), "its channels are unknown")
    assert n_channels is not None
    n_outputs = ensemble.n_outputs * n_channels
    verify_numbers(settings[1], (expected, of_tables), n_outputs)
    # Tables were asked for when the file was written: what it holds is all there is to check.
    strategy = "auto" if strategy == "tables" else strategy
    about = (*settings, strategy, index, LINKS[link], kind, n_channels)
    model = make_model(ensemble, arrays["player"], *about)
    background = Background(model, rows, weights, n_background)
    tables, columns = _tables_from_arrays(arrays, background, in_tables, model.n_players)
    require((of_tables is not None) == in_tables.any(), "the mean of its tables is not there")
    of_tables = np.zeros(n_outputs) if of_tables is None else of_tables
    compiled = CompiledTrees(in_tables, tables, columns, of_tables, model.walk_without(in_tables))
    pairs = _pairs_from_arrays(arrays, background) if "pairs" in arrays else None
    named = None if output is None else output(model.link)
    is_own = named is not None and named.is_raw  # else it is a function of the raw output, see `load_output`
    return StoredTrees(model, background, compiled, expected, pairs, named if is_own else None)


def ensemble_to_contents(e: TreeEnsemble) -> tuple[Arrays, Header]:
    arrays = {f"trees.{name}": getattr(e, name) for name in ARRAY_TYPES}
    return arrays, {"n_features": e.n_features, "n_outputs": e.n_outputs, "dtype": e.dtype.name}


def ensemble_from_contents(arrays: Arrays, header: Header) -> TreeEnsemble:
    trees = {name[6:]: array for name, array in arrays.items() if name.startswith("trees.")}
    verify_tree_types(trees)
    parts: dict[str, Any] = {name: get_typed(header, name, int) for name in ("n_features", "n_outputs")}
    return TreeEnsemble(**parts | trees, dtype=_float_type(header, "dtype"))


def _float_type(header: Header, name: str) -> np.dtype[Any]:
    found: str = get_typed(header, name, str)
    require(found in ("float32", "float64"), f"{name} is unknown")
    return np.dtype(found)


def _tables_to_arrays(tables: TableSet | None, columns: Columns) -> Arrays:
    if tables is None:
        return {}
    pages = columns.pages
    paged = {} if pages is None else {f"pages.{f.name}": getattr(pages, f.name) for f in fields(Pages)}
    return tables_to_arrays(tables) | paged


def _tables_from_arrays(
    arrays: Arrays, background: Background, in_tables: NDArray[np.bool_], n_players: int
) -> tuple[TableSet | None, Columns]:
    """Return the tables, after checking where the codes of these trees would lead in them."""
    model = background.model
    require(("values" in arrays) == in_tables.any(), "trees have tables that are not there")
    walked = not in_tables.all() and background.is_lost
    require(not walked, "trees without tables need a background, which is not there")
    if "values" not in arrays:
        return None, NO_COLUMNS
    tables = tables_from_arrays(arrays, n_players, model.ensemble.n_outputs * model.n_channels)
    column, pages = code_columns(model.coded.select(in_tables)), None
    if "pages.lut" in arrays:
        pages = Pages(*(arrays[f"pages.{f.name}"] for f in fields(Pages)))
        verify_pages(pages, column, model.coded.book.n_codes)
    narrow, wide = count_lines(column)
    verify_tables(tables, narrow + (0 if pages is None else len(pages.source)), wide)
    return tables, Columns(column, pages)


def _pairs_from_arrays(arrays: Arrays, background: Background) -> TreePairs:
    model = background.model
    mine = {name[6:]: array for name, array in arrays.items() if name.startswith("pairs.")}
    pairs, in_tables = arrays["pairs"], mine["in_tables"]
    verify_pairs(pairs, in_tables, model.n_players, model.ensemble.n_trees)
    tables, columns = _tables_from_arrays(mine, background, in_tables, len(pairs))
    keys = pair_keys(pairs[:, 0], pairs[:, 1], model.n_players)
    rest = model.walk_without(in_tables)
    return TreePairs(model, background, keys, tables, columns, in_tables, rest)
