"""A compiled tree engine as named arrays, and back: what a .fshap file of an explainer holds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.files import Contents
from fouriershap._base.memory import check_memory
from fouriershap._shapley.indices import check_index
from fouriershap._shapley.tables import TableSet, tables_from_arrays, tables_to_arrays
from fouriershap._shapley.trees.blocks import code_columns
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.pairs import TreePairs, restore_pairs
from fouriershap._shapley.verify import (
    verify_numbers,
    verify_pages,
    verify_pairs,
    verify_rows,
    verify_tables,
    verify_trees,
)
from fouriershap._trees.codes import Columns, Pages, count_lines
from fouriershap._trees.ensemble import TreeEnsemble

_FLAGS = ("numbers_are_labels", "negative_is_unknown", "hashed", "accepts_missing", "absent_is_missing")
_PLAIN = ("n_features", "n_outputs", "kind", *_FLAGS)


def engine_to_contents(
    engine: TreeEngine, interactions: bool = False, background: bool = False
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and header of an engine, with the tables of all pairs where ``interactions`` is set.

    The background is kept where some tree has no table, or ``background`` is set.
    """
    e = engine.ensemble
    arrays: dict[str, NDArray[Any]] = {"player": engine.player}
    for field in fields(e):
        value = getattr(e, field.name)
        if isinstance(value, np.ndarray):
            arrays[f"trees.{field.name}"] = value
    header: dict[str, Any] = {name: getattr(e, name) for name in _PLAIN}
    header |= {
        "dtype": e.dtype.name,
        "computes_in": e.computes_in.name,
        "missing_value": repr(e.missing_value),
    }
    header["objective"] = e.objective
    header |= {"names": e.feature_names, "output_names": e.output_names}
    header |= {"lost_labels": e.lost_labels, "frame_labels": e.frame_labels}
    header["vocabularies"] = [[f, list(map(_plain, labels))] for f, labels in e.vocabularies.items()]
    header |= {"precision": engine.dtype.name, "memory": engine.memory, "method": engine.method}
    header["index"] = engine.index
    header |= {"interventional": engine.background is not None, "n_background": engine.n_background}
    state = engine.compiled_state()
    if state is not None:
        tables, columns, expected = state
        arrays |= tables_to_arrays(tables) | {"table_expected": expected}
        if columns.pages is not None:
            arrays |= {f"pages.{f.name}": getattr(columns.pages, f.name) for f in fields(Pages)}
    arrays["feasible"] = engine._feasible
    arrays["expected"] = engine.expected_value
    deep = background or not engine._feasible.all()
    if interactions:
        pairs = engine.interactions(None)
        arrays |= _pairs_to_arrays(pairs)
        deep |= pairs.deep is not None
    if engine.background is not None and deep:
        arrays["background"] = engine.background  # trees without tables still need it
        if engine.weights is not None:
            arrays["weights"] = engine.weights
    return arrays, header


def _pairs_to_arrays(pairs: TreePairs) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"pairs": pairs.pairs, "pairs.in_tables": pairs.in_tables}
    if pairs.tables is not None:
        arrays |= {f"pairs.{name}": array for name, array in tables_to_arrays(pairs.tables).items()}
        if pairs.columns.pages is not None:
            arrays |= {f"pairs.pages.{f.name}": getattr(pairs.columns.pages, f.name) for f in fields(Pages)}
    return arrays


def _pairs_from_arrays(arrays: dict[str, NDArray[Any]], engine: TreeEngine) -> TreePairs:
    """The inverse of `_pairs_to_arrays`; trees without tables are prepared again."""
    mine = {name[6:]: array for name, array in arrays.items() if name.startswith("pairs.")}
    pairs, in_tables = arrays["pairs"], mine["in_tables"]
    verify_pairs(pairs, in_tables, engine.n_players, engine.ensemble.n_trees)
    tables, columns = None, Columns(np.empty(0, dtype=np.int32), None)
    if "values" in mine:
        tables = tables_from_arrays(mine, len(pairs), engine.ensemble.n_outputs)
        columns = _verified_columns(mine, tables, engine, in_tables)
    return restore_pairs(engine.pair_trees, pairs, tables, columns, in_tables)


def _verified_columns(
    arrays: dict[str, NDArray[Any]], tables: TableSet, engine: TreeEngine, in_tables: NDArray[np.bool_]
) -> Columns:
    """Where the codes of these trees go, after a look at what the tables make of them."""
    column = code_columns(engine.coded.select(in_tables))
    pages = None
    if "pages.lut" in arrays:
        pages = Pages(*(arrays[f"pages.{f.name}"] for f in fields(Pages)))
        verify_pages(pages, column, engine.coded.book.n_codes)
    narrow, wide = count_lines(column)
    verify_tables(tables, narrow + (0 if pages is None else len(pages.source)), wide)
    return Columns(column, pages)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def engine_from_contents(contents: Contents) -> TreeEngine:
    """The inverse of `engine_to_contents`."""
    arrays, header = contents.arrays, contents.header
    trees = {f.name: arrays[f"trees.{f.name}"] for f in fields(TreeEnsemble) if f"trees.{f.name}" in arrays}
    names, outputs = header["names"], header["output_names"]
    ensemble = TreeEnsemble(
        **{name: header[name] for name in _PLAIN},
        **trees,  # type: ignore[arg-type]
        dtype=np.dtype(header["dtype"]),
        computes_in=np.dtype(header["computes_in"]),
        missing_value=float(header["missing_value"]),
        objective=header.get("objective", ""),
        feature_names=None if names is None else tuple(names),
        output_names=None if outputs is None else tuple(outputs),
        vocabularies={int(f): tuple(labels) for f, labels in header["vocabularies"]},
        lost_labels=tuple(header.get("lost_labels", ())),
        frame_labels=tuple(tuple(labels) for labels in header.get("frame_labels", ())),
    )
    background, weights = arrays.get("background"), arrays.get("weights")
    if background is None and header["interventional"]:
        background = np.empty((0, ensemble.n_features), dtype=ensemble.dtype)
    # The tables are in the file: nothing is compiled here.
    method = "walk" if header["method"] == "walk" else "auto"
    settings = (check_memory(header["memory"]), np.dtype(header["precision"]), method)
    index = check_index(header.get("index", "shapley"))
    verify_trees(ensemble, arrays["player"], arrays["feasible"])
    verify_rows(ensemble, background, weights)
    verify_numbers(settings[1], (arrays["expected"], arrays.get("table_expected")), ensemble.n_outputs)
    engine = TreeEngine(ensemble, arrays["player"], background, weights, *settings, index)
    engine.n_background = header.get("n_background")
    state = None
    if "values" in arrays:
        tables = tables_from_arrays(arrays, engine.n_players, ensemble.n_outputs)
        columns = _verified_columns(arrays, tables, engine, arrays["feasible"])
        state = (tables, columns, arrays["table_expected"])
    engine.restore(state, arrays["feasible"], arrays["expected"])
    if "pairs" in arrays:
        engine.restore_pairs(_pairs_from_arrays(arrays, engine))
    return engine
