"""Which explainer a model goes to: the rule behind `Explainer(model, background)`."""

from __future__ import annotations

import os
from types import FunctionType, MethodType
from typing import Any

from fouriershap._base.checks import descends_from
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.short import short, short_text
from fouriershap._explainers.base import Explainer

__all__ = ["Explainer"]

_SUPPORTED = """
Supported:
- a tree model of scikit-learn, XGBoost, LightGBM or CatBoost, or the path of a saved one: exact (TreeExplainer);
- a linear model, a support vector machine, a Gaussian process, KernelRidge or a small network of scikit-learn, results
  of statsmodels, XGBoost's gblinear: exact where they are sums of products (ProductExplainer);
- a scikit-learn Pipeline that ends in one of these: exact;
- a function of rows, or any object with predict_proba or predict: fitted (BlackBoxExplainer);
- a Spectrum, with a background of bits: exact (SpectrumExplainer)."""

_OF_BLACK_BOXES = {
    "answers",
    "batch_size",
    "budget",
    "categorical",
    "data",
    "max_degree",
    "method",
    "min_fidelity",
    "n_terms",
    "random_state",
    "rows",
}  # options that no other explainer of models has


def explainer_class(*args: Any, **options: Any) -> type[Explainer]:
    """The class for what `Explainer` was called with; only that class is imported."""
    if not args:
        given = f" (keywords given: {short_text(', '.join(options))})" if options else ""
        raise InputError(f"the model comes first: fs.Explainer(model, background){given}.")
    model = args[0]
    from fouriershap._fourier.spectrum import Spectrum

    if isinstance(model, Spectrum):
        from fouriershap._explainers.spectrum import SpectrumExplainer

        return SpectrumExplainer
    if not isinstance(model, FunctionType | MethodType) and _is_tree_model(model):
        from fouriershap._explainers.trees import TreeExplainer

        return TreeExplainer
    if not isinstance(model, FunctionType | MethodType) and _is_product_model(model, options):
        from fouriershap._explainers.products import ProductExplainer

        return ProductExplainer
    if not isinstance(model, type) and (callable(model) or _can_predict(model)):
        from fouriershap._explainers.blackbox import BlackBoxExplainer

        return BlackBoxExplainer
    raise UnsupportedModelError(f"model is {_described(model)}, which cannot be explained.{_SUPPORTED}")


def _is_tree_model(model: Any) -> bool:
    from fouriershap._trees.readers import is_readable

    if isinstance(model, str | os.PathLike) and str(model).endswith(".fshap"):
        raise InputError(
            f"model is the path {short(str(model))} of a saved explainer: open it by fs.load(path)."
        )
    if descends_from(model, "sklearn", "Pipeline"):
        model = model.steps[-1][1]
    return is_readable(model) and not _has_linear_booster(model)


def _has_linear_booster(model: Any) -> bool:
    """Whether this is XGBoost's gblinear, which is no tree model."""
    if descends_from(model, "xgboost", "Booster"):
        from fouriershap._waves.readers.xgboost import is_linear

        return is_linear(model)
    return descends_from(model, "xgboost", "XGBModel") and model.booster == "gblinear"


def _is_product_model(model: Any, options: dict[str, Any]) -> bool:
    """Whether this very model is a sum of products, and nothing is asked for that only a black box has."""
    from fouriershap._waves.readers import is_readable

    if descends_from(model, "sklearn", "Pipeline"):
        model = model.steps[-1][1]
    return _OF_BLACK_BOXES.isdisjoint(options) and is_readable(model)


def _can_predict(model: Any) -> bool:
    return hasattr(model, "predict_proba") or hasattr(model, "predict")


def _described(model: Any) -> str:
    if isinstance(model, type):
        return f"the class {model.__module__}.{model.__qualname__} itself, not a fitted object"
    return f"a {type(model).__module__}.{type(model).__qualname__}"


Explainer._choose = staticmethod(explainer_class)
