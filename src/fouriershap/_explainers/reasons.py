"""Reasons: SHAP values as a tidy table in the caller's frame library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_whole
from fouriershap._rows.frames import frame_library
from fouriershap._rows.tables import to_frame
from fouriershap._rows.text import text_of


def make_frame(
    values: NDArray[np.float64],
    data: NDArray[Any],
    labels: NDArray[Any] | None,
    names: tuple[str, ...],
    output_names: tuple[str, ...] | None,
    like: Any,
    top_k: int | None,
) -> Any:
    """The table of `Explainer.frame`: values (n_rows, n_players, n_outputs), data and labels (n_rows, n_players)."""
    n_rows, n_players, n_outputs = values.shape
    k = n_players if top_k is None else min(check_whole("top_k", top_k, 1, ", or None for all"), n_players)
    by_output = np.moveaxis(values, 2, 1)  # (n_rows, n_outputs, n_players)
    order = np.argsort(-np.abs(by_output), axis=2, kind="stable")[:, :, :k]
    row = np.repeat(np.arange(n_rows), n_outputs * k)
    player = order.reshape(-1)
    table: dict[str, Any] = {"row": row}
    if n_outputs > 1:
        outputs = output_names or tuple(str(o) for o in range(n_outputs))
        table["output"] = _as_strings(outputs, np.tile(np.repeat(np.arange(n_outputs), k), n_rows))
    table["feature"] = _as_strings(names, player)
    if labels is None:
        table["value"] = data[row, player].astype(np.float64)
    else:
        table["value"] = [text_of(value) for value in labels[row, player].tolist()]
    table["contribution"] = np.take_along_axis(by_output, order, axis=2).reshape(-1)
    table["rank"] = np.tile(np.arange(1, k + 1), n_rows * n_outputs)
    return _with_index(to_frame(table, like), like, row)


def _with_index(table: Any, like: Any, row: NDArray[Any]) -> Any:
    """The table under the index of the rows, where it is more than their numbers, which pandas gives to all."""
    index = getattr(like, "index", None)
    if frame_library(like) != "pandas" or index is None or index.equals(type(table.index)(range(len(like)))):
        return table
    return table.set_axis(index.take(row), axis=0)


def _as_strings(names: tuple[str, ...], index: NDArray[Any]) -> list[str]:
    return [names[i] for i in index.tolist()]
