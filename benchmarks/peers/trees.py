"""How each peer is called: model, rows and background in, SHAP values (n_rows, n_features) out."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import fouriershap as fs

Explain = Callable[[], np.ndarray]

ABOUT_SHAPIQ = (
    "shapiq computes by its own C++; where woodelf is installed, it leaves calls of 100,000 pairs of rows or more "
    "to that."
)


def ours(
    model: Any,
    X: np.ndarray,
    background: np.ndarray | None,
    n_jobs: int = -1,
    check: bool = True,
    output: str = "raw",
) -> Explain:
    given = {"n_jobs": n_jobs, "check": check, "output": output}
    return lambda: fs.TreeExplainer(model, background, **given).shap_values(X)


def shap(model: Any, X: np.ndarray, background: np.ndarray | None) -> Explain:
    """The whole background: shap would cut an array to 100 rows. Its code runs on one thread."""
    from shap import TreeExplainer, maskers

    def run() -> np.ndarray:
        if background is None:
            explainer = TreeExplainer(model, feature_perturbation="tree_path_dependent")
        else:
            explainer = TreeExplainer(model, maskers.Independent(background, max_samples=len(background)))
        return explainer.shap_values(X, check_additivity=False)

    return run


def woodelf(model: Any, X: np.ndarray, background: np.ndarray) -> Explain:
    """Takes data frames; making them is not charged. One thread."""
    import pandas as pd
    from woodelf import WoodelfExplainer

    rows, others = (_framed(pd, data) for data in (X, background))

    def run() -> np.ndarray:
        with contextlib.redirect_stdout(io.StringIO()):
            return np.asarray(WoodelfExplainer(model, others).shap_values(rows, verbose=False))

    return run


def shapiq(model: Any, X: np.ndarray, background: np.ndarray) -> Explain:
    """Its interventional explainer, SHAP values alone, by its own C++, which takes a row at a time.

    See `ABOUT_SHAPIQ` for what it would do otherwise.
    """
    from shapiq import TreeExplainer

    def run() -> np.ndarray:
        explainer = TreeExplainer(
            model,
            mode="interventional",
            reference_dataset=background,
            index="SV",
            max_order=1,
            backend="shapiq",
        )
        found = (explainer.explain(row).get_n_order_values(1) for row in X)
        return np.stack(list(found))

    return run


def _framed(pandas: Any, data: np.ndarray) -> Any:
    return pandas.DataFrame(data, columns=[f"f{i}" for i in range(data.shape[1])])


def catboost_own(model: Any, X: np.ndarray, background: np.ndarray, n_jobs: int) -> Explain:
    """Its reference data must come with labels, which raw values do not depend on."""
    from catboost import Pool

    def run() -> np.ndarray:
        rows, reference = (Pool(data, label=np.zeros(len(data))) for data in (X, background))
        found = model.get_feature_importance(
            rows, type="ShapValues", reference_data=reference, thread_count=n_jobs
        )
        return found[:, :-1]

    return run


def pltreeshap(model: Any, X: np.ndarray, background: np.ndarray) -> Explain:
    from pltreeshap import PLTreeExplainer

    return lambda: np.asarray(PLTreeExplainer(model, data=background).shap_values(X))


def fasttreeshap(model: Any, X: np.ndarray, background: np.ndarray) -> Explain:
    from fasttreeshap import TreeExplainer

    return lambda: TreeExplainer(model, background).shap_values(X, check_additivity=False)


OPTIONAL = {"pltreeshap": pltreeshap, "fasttreeshap": fasttreeshap}


def importable() -> tuple[dict[str, Callable[..., Explain]], list[str]]:
    """The optional peers that can be imported, and why the others cannot."""
    found, missing = {}, []
    for name, peer in OPTIONAL.items():
        try:
            import_module(name)
            found[name] = peer
        except (ImportError, AttributeError) as error:  # AttributeError: written for an older NumPy
            missing.append(f"{name}: left out, cannot be imported ({error})")
    return found, missing
