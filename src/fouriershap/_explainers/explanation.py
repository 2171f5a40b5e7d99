"""Values in the forms that callers get: arrays, a ``shap.Explanation``, a tidy table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_int, import_optional
from fouriershap._rows.frames import Rows, frame_library
from fouriershap._rows.tables import to_frame
from fouriershap._rows.text import text_of
from fouriershap._shapley.engine import Estimates


def without_single_output(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drop the last axis of values (..., n_outputs) if there is one output."""
    return values[..., 0] if values.shape[-1] == 1 else values


def make_explanation(
    rows: Rows,
    values: NDArray[np.float64],
    errors: NDArray[np.float64] | None,
    expected: NDArray[np.float64],
    player_names: tuple[str, ...],
    output_names: tuple[str, ...] | None,
    seconds: float,
) -> Any:
    """Return a ``shap.Explanation``; ``expected`` is (n_outputs,), or (n_rows, n_outputs) if rows differ in it."""
    shap = import_optional(
        "shap", "explainer(X), a shap.Explanation,", "[shap]", "shap_values(X) needs nothing more."
    )
    data, labels = rows.display(len(player_names))
    single = values.shape[-1] == 1
    base = np.broadcast_to(expected, (len(values), values.shape[-1])).copy()
    estimated = errors is not None and errors.any()
    return shap.Explanation(
        error_std=without_single_output(errors) if errors is not None and estimated else None,
        values=without_single_output(values),
        base_values=without_single_output(base),
        data=data,
        display_data=labels,
        feature_names=list(player_names),
        output_names=None if single or output_names is None else list(output_names),
        compute_time=seconds,
    )


def make_frame(
    found: Estimates,
    data: NDArray[Any],
    labels: NDArray[Any] | None,
    names: tuple[str, ...],
    outputs: tuple[str, ...] | None,
    like: Any,
    top_k: int | None,
) -> Any:
    """Return the table of `Explainer.frame`, in the library of ``like``.

    Values are (n_rows, n_players, n_outputs), ``data`` and ``labels`` (n_rows, n_players). ``outputs``: names of a
    column of their own; None for none.
    """
    values, errors = found
    n_rows, n_players, n_outputs = values.shape
    k = n_players if top_k is None else min(check_int("top_k", top_k, 1, ", or None for all"), n_players)
    by_output = np.moveaxis(values, 2, 1)  # (n_rows, n_outputs, n_players)
    order = np.argsort(-np.abs(by_output), axis=2, kind="stable")[:, :, :k]
    row = np.repeat(np.arange(n_rows), n_outputs * k)
    player = order.reshape(-1)
    table: dict[str, Any] = {"row": row}
    if outputs is not None:
        number = np.tile(np.repeat(np.arange(n_outputs), k), n_rows)
        table["output"] = [outputs[o] for o in number.tolist()]
    table["feature"] = [names[p] for p in player.tolist()]
    if labels is None:
        table["value"] = data[row, player].astype(np.float64)
    else:
        table["value"] = [text_of(value) for value in labels[row, player].tolist()]
    table["contribution"] = np.take_along_axis(by_output, order, axis=2).reshape(-1)
    if errors is not None and errors.any():
        table["error"] = np.take_along_axis(np.moveaxis(errors, 2, 1), order, axis=2).reshape(-1)
    table["rank"] = np.tile(np.arange(1, k + 1), n_rows * n_outputs)
    frame, index = to_frame(table, like), getattr(like, "index", None)
    if frame_library(like) != "pandas" or index is None or index.equals(type(frame.index)(range(len(like)))):
        return frame
    return frame.set_axis(index.take(row), axis=0)
