"""Whether an explainer in a file still says what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import Explainer, InputError, TreeExplainer
from fouriershap._base.short import short
from fouriershap.cli._library import ask_library
from fouriershap.cli._models import ModelFile


def largest_gaps(explainer: Explainer, model: ModelFile, table: Any) -> tuple[float, float]:
    """Largest differences, as shares of the scale of the outputs.

    Returns
    -------
    additivity : float
        Between base value plus SHAP values and the output of the trees in the file.
    agreement : float
        Between base value plus SHAP values and what the model's own library predicts.
    """
    if not isinstance(explainer, TreeExplainer):
        raise InputError("the file holds a black box explainer, whose model cannot be asked from a file.")
    if explainer.output != "raw":
        raise InputError(f"the file explains output={short(explainer.output)}; check compares raw outputs.")
    known, read = explainer.ensemble, model.ensemble
    if (known.n_features, known.n_outputs) != (read.n_features, read.n_outputs):
        raise InputError(
            f"the model has {read.n_features} features and {read.n_outputs} outputs, the file "
            f"{known.n_features} and {known.n_outputs}: it was made from another model."
        )
    rows = explainer.select(table)
    expected, shape = np.atleast_1d(explainer.expected_value), (rows.num_rows, known.n_outputs)
    sums = explainer.shap_values(rows).sum(axis=1).reshape(shape) + expected
    own = explainer.predict(rows).reshape(shape)
    theirs = ask_library(model, rows)
    scale = max(float(np.abs(theirs).max()), float(np.abs(theirs - expected).max()), 1e-300)
    return _largest(sums - own) / scale, _largest(sums - theirs) / scale


def _largest(gap: NDArray[np.float64]) -> float:
    return float(np.abs(gap).max()) if np.isfinite(gap).all() else float("inf")
