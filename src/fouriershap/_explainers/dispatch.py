"""What `Explainer(model, background)` builds: the library adapter of the model decides."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from fouriershap._base.errors import InputError, ModelWarning, UnsupportedModelError
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._base.warn import warn
from fouriershap._blackbox.black_box import as_function
from fouriershap._explainers.arguments import (
    call_builder,
    is_what_black_boxes_explain,
    parameters_of,
    refuse_swapped,
)
from fouriershap._explainers.blackbox import black_box_parts
from fouriershap._explainers.conditional import with_dependence
from fouriershap._explainers.parts import Parts, name_of, with_output_names
from fouriershap._explainers.products import product_parts
from fouriershap._explainers.spectrum import spectrum_parts
from fouriershap._explainers.trees import refuse_single_precision, tree_parts
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._libraries import Reading, UnknownModelError, read, supported_text, warn_transformed_target
from fouriershap._libraries.networks import open_network


def build_parts(model: Any, background: Any, options: dict[str, Any]) -> Parts:
    """Find out what a model is, and build the parts of its explainer."""
    names = options.pop("output_names", None)
    return with_output_names(with_dependence(partial(_build_parts, model, background), options), names)


def _build_parts(model: Any, background: Any, options: dict[str, Any]) -> Parts:
    if model is None:
        given = f" (keywords given: {truncated_list(list(options))})" if options else ""
        raise InputError(f"the model comes first: fs.Explainer(model, background){given}.")
    if background is None and options.get("background") is None and "data" in options:
        options["background"] = options.pop("data")  # shap's name for it
    refuse_swapped(model, background)
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
            f"model is the path {truncated_repr(str(model))} of a saved explainer: open it by fs.load(path)."
        )
    refusal: UnsupportedModelError | None = None
    try:
        reading = read(model)
        # Options that only black boxes have ask for one; trees are read in any case.
        of_black_boxes = parameters_of(black_box_parts).keys() - parameters_of(product_parts).keys()
        is_read = reading.is_trees or not of_black_boxes & options.keys()
        if is_read:
            _refuse_what_is_not_exact(reading, args, options)
    except UnsupportedModelError as error:
        refusal, is_read = error, False
    if is_read:
        build = tree_parts if reading.is_trees else product_parts
        return replace(call_builder(build, (reading, *args[1:]), options), model_name=name_of(model))
    if isinstance(refusal, UnknownModelError):
        if not can_predict(model):
            raise UnsupportedModelError(
                f"model is a {type(model).__module__}.{type(model).__qualname__}, which cannot be explained. "
                f"{_supported()}"
            )
    elif refusal is not None:
        _warn_fitted_instead(model, args, options, refusal)
    return call_builder(black_box_parts, args, options)


def can_predict(model: Any) -> bool:
    """Return whether a model can be a black box."""
    return callable(model) or hasattr(model, "predict_proba") or hasattr(model, "predict")


def _refuse_what_is_not_exact(reading: Reading, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise `UnsupportedModelError` if the response, or the rows of the background, cannot be explained exactly."""
    if options.get("output", options.get("model_output")) == "response":
        warn_transformed_target(reading, "response")
    background = args[1] if len(args) > 1 else options.get("background", options.get("masker"))
    if reading.is_trees and background is not None:
        refuse_single_precision(reading, background)


def _supported() -> str:
    return (
        f"Supported:\n{supported_text()}\n- a function of rows, or any object with predict_proba or predict: asked "
        "(BlackBoxExplainer);\n- a Spectrum, with a background of bits: exact (SpectrumExplainer)."
    )


def _warn_fitted_instead(
    model: Any, args: tuple[Any, ...], options: dict[str, Any], refusal: UnsupportedModelError
) -> None:
    """Warn that a model that cannot be read is explained as a black box; raise if it cannot be one either."""
    network = open_network(model)
    if network is None and isinstance(model, str | bytes | os.PathLike):
        raise UnsupportedModelError(
            f"{refusal} Load the model with its library and give fs.Explainer that: it is explained as a black box."
        ) from refusal
    try:
        function, _ = (network, None) if network is not None else as_function(model)
    except UnsupportedModelError:
        raise refusal from None
    if len(args) < 2 and options.get("background", options.get("masker")) is None:
        raise UnsupportedModelError(
            f"{refusal} With a background fs.Explainer explains it as a black box: give one."
        ) from refusal
    known = {*parameters_of(black_box_parts), "masker"}
    if is_what_black_boxes_explain(args, options):
        known |= {"output", "model_output"}
    foreign = [name for name in options if name not in known]
    if foreign:
        raise UnsupportedModelError(
            f"{refusal} It would be explained as a black box, which does not take {truncated_list(foreign)}: "
            "leave that out."
        ) from refusal
    asked = getattr(function, "__name__", "predict")
    warn(
        f"{refusal} So it is explained as a black box, in what {asked} returns: it is asked, and values have errors. "
        "fs.BlackBoxExplainer does the same without this warning.",
        ModelWarning,
    )
