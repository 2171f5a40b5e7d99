"""Whether an explainer in a file still says what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._batch_frames import open_batch
from fouriershap._errors import InputError
from fouriershap._explainer import Explainer
from fouriershap._frames import to_rows
from fouriershap._tree_explainer import TreeExplainer
from fouriershap.trees import TreeEnsemble


def largest_gaps(explainer: Explainer, model: TreeEnsemble, table: Any) -> tuple[float, float]:
    """Largest differences, as shares of the scale of the outputs.

    Returns
    -------
    additivity : float
        Between base value plus SHAP values and the output of the trees in the file.
    agreement : float
        Between base value plus SHAP values and the output of the model.
    """
    if not isinstance(explainer, TreeExplainer):
        raise InputError("the file holds a black box explainer, whose model cannot be asked from a file.")
    known = explainer.ensemble
    if (known.n_features, known.n_outputs) != (model.n_features, model.n_outputs):
        raise InputError(
            f"the model has {model.n_features} features and {model.n_outputs} outputs, the file "
            f"{known.n_features} and {known.n_outputs}: it was made from another model."
        )
    rows = open_batch(table, (), explainer._frame_names).features
    sums = explainer._explain(rows, None).sum(axis=1) + explainer._expected
    own = explainer._engine.predict(to_rows(rows, known))
    theirs = model.predict(to_rows(rows, model))
    scale = max(float(np.abs(theirs).max()), float(np.abs(theirs - explainer._expected).max()), 1e-300)
    return _largest(sums - own) / scale, _largest(sums - theirs) / scale


def _largest(gap: NDArray[np.float64]) -> float:
    return float(np.abs(gap).max()) if np.isfinite(gap).all() else float("inf")
