"""Whether an explainer in a file still says what the model says, by the library that made it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import Explainer, InputError, TreeExplainer, library_output
from fouriershap._base.checks import need
from fouriershap._base.short import reason, short
from fouriershap.cli._models import ModelFile
from fouriershap.cli._rows import as_pandas


def largest_gaps(explainer: Explainer, model: ModelFile, table: Any) -> tuple[float, float]:
    """Largest differences of base value plus SHAP values, as shares of the scale of the outputs.

    From the output of the trees in the file, and from what the model's own library predicts.
    """
    if not isinstance(explainer, TreeExplainer):
        raise InputError("the file holds a black box explainer, whose model cannot be asked from a file.")
    if explainer.output != "raw":
        raise InputError(f"the file explains output={short(explainer.output)}; check compares raw outputs.")
    known, read = explainer.ensemble, model.ensemble
    if read is None:
        raise InputError(f"the model is a black box ({model.why}), the file holds trees: not made from it.")
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


def ask_library(model: ModelFile, rows: Any) -> NDArray[np.float64]:
    """Raw outputs (n_rows, n_outputs), before any link, of an Arrow table in the model's order of columns."""
    ensemble = model.ensemble
    assert ensemble is not None
    library = ensemble.kind.split()[0]
    need("pandas", "check", "pandas")
    live = _load(model, library) if model.estimator is None else model.estimator
    try:
        return library_output(live, as_pandas(rows), ensemble)
    except Exception as error:
        raise InputError(
            f"{library} itself cannot answer these rows ({type(error).__name__}: {reason(error)})."
        ) from error


def _load(model: ModelFile, library: str) -> Any:
    """The library's own model from a file of its own format."""
    if library == "spark":
        raise InputError(
            "a model of Spark is read without Spark, which check would need: compare in Spark itself."
        )
    package = need(library, "check, which asks the model's own library,", library)
    if library == "catboost":
        form = "json" if model.path.suffix.lower() == ".json" else "cbm"
        return package.CatBoost().load_model(str(model.path), format=form)
    if library == "onnx":
        return package.load(str(model.path))
    if library == "ydf":
        return package.load_model(str(model.path))
    return package.Booster(model_file=str(model.path))
