"""What `Explainer(model, background)` builds: the library adapter of the model decides."""

from __future__ import annotations

import os
from types import FunctionType, MethodType
from typing import Any

from fouriershap._base.errors import InputError, ModelWarning, UnsupportedModelError
from fouriershap._base.short import short, short_list
from fouriershap._base.warn import warn
from fouriershap._explainers.arguments import call_builder, is_what_black_boxes_explain, parameters_of
from fouriershap._explainers.blackbox import black_box_parts
from fouriershap._explainers.parts import Parts
from fouriershap._explainers.products import product_parts
from fouriershap._explainers.spectrum import spectrum_parts
from fouriershap._explainers.trees import refuse_single_precision, tree_parts
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._libraries import Reading, UnknownModelError, read, supported_text, warn_transformed_target


def build_parts(model: Any, background: Any, options: dict[str, Any]) -> Parts:
    """Find out what a model is, and build the parts of its explainer."""
    if model is None:
        given = f" (keywords given: {short_list(list(options))})" if options else ""
        raise InputError(f"the model comes first: fs.Explainer(model, background){given}.")
    if background is None and options.get("background") is None and "data" in options:
        options["background"] = options.pop("data")  # shap's name for it
    args = (model,) if background is None else (model, background)
    if isinstance(model, Spectrum):
        return call_builder(spectrum_parts, args, options)
    if isinstance(model, FunctionType | MethodType):
        return call_builder(black_box_parts, args, options)
    if isinstance(model, type):
        raise UnsupportedModelError(
            f"model is the class {model.__module__}.{model.__qualname__}, not a fitted object. {_supported()}"
        )
    if isinstance(model, str | os.PathLike) and str(model).endswith(".fshap"):
        raise InputError(
            f"model is the path {short(str(model))} of a saved explainer: open it by fs.load(path)."
        )
    try:
        reading = read(model)
        if not reading.is_trees and _asks_for_black_box(options):
            return call_builder(black_box_parts, args, options)
        _refuse_what_is_not_exact(reading, args, options)
    except UnknownModelError:
        return _unknown(model, args, options)
    except UnsupportedModelError as refusal:
        return _fitted_instead(model, args, options, refusal)
    return call_builder(tree_parts if reading.is_trees else product_parts, (reading, *args[1:]), options)


def _asks_for_black_box(options: dict[str, Any]) -> bool:
    """Return whether there is an option that only black boxes have."""
    return any(
        name in parameters_of(black_box_parts) and name not in parameters_of(product_parts)
        for name in options
    )


def _refuse_what_is_not_exact(reading: Reading, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise `UnsupportedModelError` if the response, or the rows of the background, cannot be explained exactly."""
    if options.get("output", options.get("model_output")) == "response":
        warn_transformed_target(reading, "response")
    background = args[1] if len(args) > 1 else options.get("background", options.get("masker"))
    if reading.is_trees and background is not None:
        refuse_single_precision(reading, background)


def _unknown(model: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Parts:
    if callable(model) or hasattr(model, "predict_proba") or hasattr(model, "predict"):
        return call_builder(black_box_parts, args, options)
    raise UnsupportedModelError(
        f"model is a {type(model).__module__}.{type(model).__qualname__}, which cannot be explained. {_supported()}"
    )


def _supported() -> str:
    return (
        f"{supported_text()}\n- a function of rows, or any object with predict_proba or predict: fitted "
        "(BlackBoxExplainer);\n- a Spectrum, with a background of bits: exact (SpectrumExplainer)."
    )


def _fitted_instead(
    model: Any, args: tuple[Any, ...], options: dict[str, Any], refusal: UnsupportedModelError
) -> Parts:
    """Fit a model that cannot be read as a black box, with a warning; if it cannot be one either, say why."""
    if isinstance(model, str | bytes | os.PathLike):
        raise UnsupportedModelError(
            f"{refusal} Load the model with its library and give fs.Explainer that: it is then fitted as a black box."
        ) from refusal
    if not (callable(model) or hasattr(model, "predict_proba") or hasattr(model, "predict")):
        raise refusal
    if len(args) < 2 and options.get("background", options.get("masker")) is None:
        raise UnsupportedModelError(
            f"{refusal} With a background fs.Explainer fits it as a black box: give one."
        ) from refusal
    known = {*parameters_of(black_box_parts), "masker"}
    if is_what_black_boxes_explain(args, options):
        known |= {"output", "model_output"}
    foreign = [name for name in options if name not in known]
    if foreign:
        raise UnsupportedModelError(
            f"{refusal} It would be fitted as a black box, which does not take {short_list(foreign)}: leave that out."
        ) from refusal
    warn(
        f"{refusal} So it is fitted as a black box; `fidelity` tells how well. fs.BlackBoxExplainer does the same "
        "without this warning.",
        ModelWarning,
    )
    return call_builder(black_box_parts, args, options)
