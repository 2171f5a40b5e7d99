"""Values in the forms that callers get: without the axis of a single output, or as a ``shap.Explanation``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import need
from fouriershap._rows.frames import Rows


def without_single_output(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (..., n_outputs) as users expect them: no last axis where there is one output."""
    return values[..., 0] if values.shape[-1] == 1 else values


def make_explanation(
    rows: Rows,
    values: NDArray[np.float64],
    expected: NDArray[np.float64],
    player_names: tuple[str, ...],
    output_names: tuple[str, ...] | None,
    seconds: float,
) -> Any:
    """A ``shap.Explanation``; ``expected`` (n_outputs,), or (n_rows, n_outputs) where rows differ in it."""
    shap = need("shap", "explainer(X), a shap.Explanation,", "[shap]", "shap_values(X) needs nothing more.")
    data, labels = rows.display(len(player_names))
    single = values.shape[-1] == 1
    base = np.broadcast_to(expected, (len(values), values.shape[-1])).copy()
    return shap.Explanation(
        values=without_single_output(values),
        base_values=without_single_output(base),
        data=data,
        display_data=labels,
        feature_names=list(player_names),
        output_names=None if single or output_names is None else list(output_names),
        compute_time=seconds,
    )
