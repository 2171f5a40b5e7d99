"""Results for people: shap's `Explanation`, and the check that it adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import AdditivityError, MissingDependencyError


def check_additivity(
    values: NDArray[np.float64],
    expected: NDArray[np.float64],
    prediction: NDArray[np.float64],
    tolerance: float,
) -> None:
    """Compare sums of SHAP values (n_rows, n_players, n_outputs) with raw predictions (n_rows, n_outputs).

    ``expected``: (n_outputs,), or (n_rows, n_outputs) where it is not the same for all rows.
    """
    if not len(values):
        return
    gap = np.abs(values.sum(axis=1) + expected - prediction)
    scale = max(float(np.abs(prediction - expected).max()), float(np.abs(prediction).max()), 1e-300)
    if np.isfinite(gap).all() and gap.max() <= tolerance * scale:
        return
    row, output = np.unravel_index(np.where(np.isfinite(gap), gap, np.inf).argmax(), gap.shape)
    total = values[row, :, output].sum() + np.broadcast_to(expected, gap.shape)[row, output]
    raise AdditivityError(
        f"the SHAP values of row {row} (output {output}) add up to {total!r}, but the model's trees give "
        f"{prediction[row, output]!r}: a difference of {gap[row, output]:.3g}, more than tolerance = "
        f"{tolerance:g} of the scale {scale:.3g}. Likely causes: leaf values of very different size (use "
        "precision='double'), values that are not finite, or a bug, which we would like to hear of. "
        "check_additivity=False skips this check."
    )


def make_explanation(
    values: NDArray[np.float64],
    expected: NDArray[np.float64],
    data: NDArray[Any],
    labels: NDArray[Any] | None,
    names: tuple[str, ...],
    output_names: tuple[str, ...] | None,
    seconds: float,
) -> Any:
    """A ``shap.Explanation`` of values (n_rows, n_players, n_outputs).

    ``data`` (n_rows, n_players) are numbers to draw, ``labels`` what people read instead of them, if anything;
    ``expected`` is as in `check_additivity`.
    """
    try:
        import shap
    except ImportError as error:
        raise MissingDependencyError(
            "explainer(X) returns a shap.Explanation, and shap is not installed: "
            "pip install 'fouriershap[shap]'. explainer.shap_values(X) needs nothing more."
        ) from error
    single = values.shape[2] == 1
    base = np.broadcast_to(expected, (len(values), values.shape[2])).copy()
    return shap.Explanation(
        values=values[:, :, 0] if single else values,
        base_values=base[:, 0] if single else base,
        data=data,
        display_data=labels,
        feature_names=list(names),
        output_names=None if single or output_names is None else list(output_names),
        compute_time=seconds,
    )
