"""Which explainer a model goes to: the rule behind `Explainer(model, background)`."""

from __future__ import annotations

import os
from inspect import signature
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from fouriershap._base.checks import descends_from
from fouriershap._base.errors import InputError, ModelWarning, UnsupportedModelError
from fouriershap._base.short import short, short_list, short_text
from fouriershap._base.warn import warn
from fouriershap._explainers.base import Explainer

if TYPE_CHECKING:
    from fouriershap._rows.opening import Opened
    from fouriershap._trees.ensemble import TreeEnsemble

__all__ = ["Explainer"]

_SUPPORTED = """
Supported:
- a tree model of scikit-learn, XGBoost, LightGBM, CatBoost and others, or the path of one: exact (TreeExplainer);
- sums of such models (Bagging, soft Voting, MultiOutput, OneVsRest, AdaBoost, linear Stacking): exact (TreeExplainer);
- a linear model, a support vector machine, a Gaussian process, KernelRidge or a small network of scikit-learn, results
  of statsmodels, XGBoost's gblinear: exact where they are sums of products (ProductExplainer);
- a scikit-learn Pipeline, search or other wrapper around any of these: exact;
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


def bare_explainer(*args: Any, **options: Any) -> Explainer:
    """An object of the class for what `Explainer` was called with, not yet initialised; only that class is imported."""
    if not args and "model" in options:
        args = (options.pop("model"),)
    if not args:
        given = f" (keywords given: {short_text(', '.join(options))})" if options else ""
        raise InputError(f"the model comes first: fs.Explainer(model, background){given}.")
    model = args[0]
    if len(args) < 2 and options.get("background") is None and "data" in options:
        options["background"] = options.pop("data")  # as shap calls it
    from fouriershap._fourier.spectrum import Spectrum

    if isinstance(model, Spectrum):
        from fouriershap._explainers.spectrum import SpectrumExplainer

        return object.__new__(SpectrumExplainer)
    if not isinstance(model, FunctionType | MethodType) and _is_tree_model(model):
        return _tree_explainer(model, args[1:], options)
    if not isinstance(model, FunctionType | MethodType) and _OF_BLACK_BOXES.isdisjoint(options):
        found = _product_explainer(model, args[1:], options)
        if found is not None:
            return found
    if not isinstance(model, type) and (callable(model) or _can_predict(model)):
        from fouriershap._explainers.blackbox import BlackBoxExplainer

        return object.__new__(BlackBoxExplainer)
    raise UnsupportedModelError(f"model is {_described(model)}, which cannot be explained.{_SUPPORTED}")


def _is_tree_model(model: Any) -> bool:
    from fouriershap._rows.opening import open_model
    from fouriershap._trees.readers import is_readable

    if isinstance(model, str | os.PathLike) and str(model).endswith(".fshap"):
        raise InputError(
            f"model is the path {short(str(model))} of a saved explainer: open it by fs.load(path)."
        )
    if isinstance(model, type):
        return False
    if is_readable(model):
        return not _has_linear_booster(model)
    final = open_model(model).final
    return is_readable(final) and not _has_linear_booster(final)


def _tree_explainer(model: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Explainer:
    """A `TreeExplainer` with the model read; a black box, with a warning, where it cannot be."""
    from fouriershap._explainers.links import say_what_is_explained
    from fouriershap._explainers.trees import TreeExplainer
    from fouriershap._trees.readers import read_inside

    try:
        reading = read_inside(model)
        _refuse_single(reading, _background(args, options))
        opened, trees = reading
        if opened.response != "same" and _output(options) == "response":
            say_what_is_explained(trees.objective == opened.response, "response")
    except UnsupportedModelError as refusal:
        return _fitted_instead(model, args, options, refusal)
    explainer = object.__new__(TreeExplainer)
    explainer._reading = reading
    return explainer


def _background(args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return args[0] if args else options.get("background", options.get("masker"))


def _output(options: dict[str, Any]) -> Any:
    return options.get("output", options.get("model_output"))


def _refuse_single(reading: tuple[Opened, TreeEnsemble], background: Any) -> None:
    """Raise where trees were read through steps that compute in single precision with such a background."""
    from fouriershap._explainers.tree_setup import entered_background
    from fouriershap._trees.ensemble import BEHIND_STEPS
    from fouriershap._trees.rows import is_in_single

    opened, ensemble = reading
    if background is None or ensemble.casting not in BEHIND_STEPS:
        return
    _, rows = entered_background(background, ensemble, opened.before)
    if is_in_single(rows, ensemble, "background"):
        raise UnsupportedModelError(
            "background has float32 numbers, which the steps before the trees of the model "
            f"({short_text(ensemble.kind)}) would round in their own way; with float64 values are exact."
        )


def _fitted_instead(
    model: Any, args: tuple[Any, ...], options: dict[str, Any], refusal: UnsupportedModelError
) -> Explainer:
    """A black box in place of trees that cannot be read; where it cannot be one either, the reason of the reader."""
    from fouriershap._blackbox.build import as_function
    from fouriershap._explainers.blackbox import BlackBoxExplainer
    from fouriershap._explainers.shap_words import says

    if isinstance(model, str | bytes | os.PathLike):
        raise UnsupportedModelError(
            f"{refusal} Load the model by its library and give fs.Explainer that: it is then fitted as a black box."
        ) from refusal
    try:
        function, _ = as_function(model)
    except UnsupportedModelError:
        raise refusal from None
    if _background(args, options) is None:
        raise UnsupportedModelError(
            f"{refusal} With a background fs.Explainer fits it as a black box: give one."
        ) from refusal
    taken = signature(BlackBoxExplainer.__init__).parameters
    answered = ("output", "model_output") if says((model,), options) else ()
    foreign = [name for name in options if name not in taken and name not in answered]
    if foreign:
        raise UnsupportedModelError(
            f"{refusal} It would be fitted as a black box, which takes no {short_list(foreign)}: leave that out."
        ) from refusal
    asked = getattr(function, "__name__", "predict")
    warn(
        f"{refusal} So it is fitted as a black box, in what {asked} returns; `fidelity` tells how well. "
        "fs.BlackBoxExplainer does the same without this warning.",
        ModelWarning,
    )
    return object.__new__(BlackBoxExplainer)


def _has_linear_booster(model: Any) -> bool:
    """Whether this is XGBoost's gblinear, which is no tree model."""
    if descends_from(model, "xgboost", "Booster"):
        from fouriershap._waves.readers.xgboost import is_linear

        return is_linear(model)
    return descends_from(model, "xgboost", "XGBModel") and model.booster == "gblinear"


def _product_explainer(model: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Explainer | None:
    """A `ProductExplainer`; a black box, with a warning, where such a model is no sum of products; None for others."""
    from fouriershap._rows.opening import open_model
    from fouriershap._waves.readers import is_readable, read_products

    if isinstance(model, type):
        return None
    try:
        opened = open_model(model)
        if not is_readable(opened.final):
            return None
        from fouriershap._explainers.links import say_what_is_explained
        from fouriershap._explainers.products import ProductExplainer, behind_target

        if opened.response != "same" and _output(options) == "response":
            reading = behind_target(read_products(opened.final), opened.response)
            say_what_is_explained(reading.link != "other", "response")
    except UnsupportedModelError as refusal:
        return _fitted_instead(model, args, options, refusal)

    return object.__new__(ProductExplainer)


def _can_predict(model: Any) -> bool:
    return hasattr(model, "predict_proba") or hasattr(model, "predict")


def _described(model: Any) -> str:
    if isinstance(model, type):
        return f"the class {model.__module__}.{model.__qualname__} itself, not a fitted object"
    return f"a {type(model).__module__}.{type(model).__qualname__}"


Explainer._choose = staticmethod(bare_explainer)
