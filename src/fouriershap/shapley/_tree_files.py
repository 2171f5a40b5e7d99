"""A compiled tree engine as named arrays, and back: what a .fshap file of an explainer holds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._io import Contents
from fouriershap.shapley._tables import tables_from_arrays, tables_to_arrays
from fouriershap.shapley._tree_engine import TreeEngine
from fouriershap.shapley._tree_tables import code_columns
from fouriershap.shapley._verify import verify_pages, verify_tables, verify_trees
from fouriershap.trees._codes import Columns, Pages, count_lines
from fouriershap.trees._ensemble import TreeEnsemble

_FLAGS = ("numbers_are_labels", "negative_is_unknown", "hashed", "accepts_missing", "absent_is_missing")
_PLAIN = ("n_features", "n_outputs", "kind", *_FLAGS)


def engine_to_contents(engine: TreeEngine) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and header of an engine."""
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
    header |= {"names": e.feature_names, "output_names": e.output_names}
    header["vocabularies"] = [[f, list(map(_plain, labels))] for f, labels in e.vocabularies.items()]
    header |= {"precision": engine.dtype.name, "memory": engine.memory, "method": engine.method}
    header["interventional"] = engine.background is not None
    state = engine.compiled_state()
    if state is not None:
        tables, columns, expected = state
        arrays |= tables_to_arrays(tables) | {"table_expected": expected}
        if columns.pages is not None:
            arrays |= {f"pages.{f.name}": getattr(columns.pages, f.name) for f in fields(Pages)}
    arrays["feasible"] = engine._feasible
    arrays["expected"] = engine.expected_value
    if engine.background is not None and not engine._feasible.all():
        arrays["background"] = engine.background  # trees without tables still need it
        if engine.weights is not None:
            arrays["weights"] = engine.weights
    return arrays, header


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
        feature_names=None if names is None else tuple(names),
        output_names=None if outputs is None else tuple(outputs),
        vocabularies={int(f): tuple(labels) for f, labels in header["vocabularies"]},
    )
    background = arrays.get("background")
    if background is None and header["interventional"]:
        background = np.empty((0, ensemble.n_features), dtype=ensemble.dtype)
    # The tables are in the file: nothing is compiled here.
    method = "walk" if header["method"] == "walk" else "auto"
    settings = (header["memory"], np.dtype(header["precision"]), method)
    verify_trees(ensemble, arrays["player"], arrays["feasible"])
    engine = TreeEngine(ensemble, arrays["player"], background, arrays.get("weights"), *settings)
    state = None
    if "values" in arrays:
        tables = tables_from_arrays(arrays, engine.n_players, ensemble.n_outputs)
        column = code_columns(engine.coded.select(arrays["feasible"]))
        pages = None
        if "pages.lut" in arrays:
            pages = Pages(*(arrays[f"pages.{f.name}"] for f in fields(Pages)))
            verify_pages(pages, column, engine.coded.book.n_codes)
        narrow, wide = count_lines(column)
        verify_tables(tables, narrow + (0 if pages is None else len(pages.source)), wide)
        state = (tables, Columns(column, pages), arrays["table_expected"])
    engine.restore(state, arrays["feasible"], arrays["expected"])
    return engine
