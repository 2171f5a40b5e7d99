"""Arguments of explainers: shap's names for ours, misspelt names, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any

from fouriershap._base.arguments import suggest
from fouriershap._base.checks import are_numbered_names
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._explainers.parts import Parts
from fouriershap._libraries import response_is_linked

# shap's name -> ours. One that the builder at hand does not have is explained by `_ADVICE`.
_OURS = {"data": "background", "masker": "background", "model_output": "output", "seed": "random_state"}
_NO_OUTPUTS = (
    "a black box has no outputs to choose from: give a function that returns what you want explained"
)
_ADVICE = {
    "output": _NO_OUTPUTS,
    "model_output": _NO_OUTPUTS,
    "seed": "nothing is random here: leave it out",
    "link": "output='probability' explains probabilities, output='raw' the model's own scale: leave it out",
    "algorithm": "fs.Explainer chooses the explainer that fits the model: leave it out, or call its constructor",
    "linearize_link": "nothing is linearised here: leave it out",
    "approximate": "values are exact, and as quick: leave it out",
    "nsamples": "tolerance= and max_queries= say how much a black box is asked; other models are not asked",
    "feature_names": "columns of a data frame have names: give the background as one",
    "keep_index": "frame(X) keeps the index of X: leave it out",
}


@lru_cache
def parameters_of(build: Callable[..., Parts]) -> Mapping[str, Parameter]:
    """Return the parameters of a builder; the first two are the model and the background."""
    return signature(build).parameters


def call_builder(build: Callable[..., Parts], args: tuple[Any, ...], options: dict[str, Any]) -> Parts:
    """Call a builder (model, background, *, ...) with arguments that may have shap's names."""
    refuse_swapped(*args[:2])
    taken = parameters_of(build)
    is_plain = len(args) == 2 and args[1] is not None and taken.keys() >= options.keys()
    if is_plain and "data" not in options and type(args[1]).__name__ != "DenseData":
        return build(*args, **options)  # the usual call: nothing to translate
    if len(args) > 2:
        raise InputError("only the model and the background may be positional; give options by name.")
    options = translate(args, options, taken)
    model_name, background_name = list(taken)[:2]
    if not args and model_name != "model" and "model" in options:
        options[model_name] = options.pop("model")
    if not args and model_name not in options:
        raise InputError("the model comes first: fs.Explainer(model, background).")
    if (
        len(args) < 2
        and options.get(background_name) is None
        and taken[background_name].default is Parameter.empty
    ):
        raise InputError(
            "background is missing: give rows that stand for 'feature unknown', such as the training data: "
            "fs.Explainer(model, X). All of them are used, and their number costs next to nothing."
        )
    args, options = _without_clusters(args, options)
    unknown = [name for name in options if name not in taken]
    if unknown:
        close = get_close_matches(unknown[0], [*taken, *_OURS, *_ADVICE], n=1)
        close = [ours if (ours := _OURS.get(name)) in taken and ours else name for name in close]
        if close and close[0] not in taken:
            raise InputError(
                f"{unknown[0]} is not an argument; did you mean {close[0]}? But {_ADVICE[close[0]]}."
            )
        hint = f" Did you mean {close[0]}?" if close else suggest(unknown[0], list(taken)[2:])
        raise InputError(f"{unknown[0]} is not an argument of this explainer.{hint}")
    return build(*args, **options)


def refuse_swapped(model: Any = None, background: Any = None) -> None:
    """Raise if rows are in the place of the model, and a model in that of the background."""
    if hasattr(model, "shape") and (hasattr(background, "predict") or callable(background)):
        raise InputError(
            "model and background are swapped: the model comes first, fs.Explainer(model, background)."
        )


def translate(
    args: tuple[Any, ...], options: dict[str, Any], taken: Mapping[str, Parameter]
) -> dict[str, Any]:
    """Return keyword arguments under our names; ``taken`` are those of the builder."""
    found = dict(options)
    has_background = len(args) > 1 or options.get("background") is not None
    for name in options:
        if name == "data" and (has_background or options[name] is None) and name in taken:
            continue  # of a black box: the rows that queries are made of
        ours = _OURS.get(name)
        if (
            name in ("output", "model_output")
            and "output" not in taken
            and is_what_black_boxes_explain(args, options)
        ):
            del found[name]
        elif ours is not None and ours in taken:
            value = found.pop(name)
            if value is None:
                continue
            if (ours == "background" and has_background) or ours in options:
                raise InputError(f"{ours} and {name} are the same argument; give one of them.")
            found[ours] = value
        elif name not in taken and name in _ADVICE:
            if name == "output":
                raise InputError(f"output is {truncated_repr(options[name])}, but {_NO_OUTPUTS}.")
            raise InputError(
                f"{name} is an argument of shap that fouriershap does not have; {_ADVICE[name]}."
            )
    return found


def is_what_black_boxes_explain(args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether the output asked for is what a black box made of the model explains in any case."""
    output = options.get("output", options.get("model_output"))
    model = args[0] if args else options.get("model", options.get("predict"))
    has_predict = hasattr(model, "predict")
    if output == "raw" and has_predict and not hasattr(model, "predict_proba") and response_is_linked(model):
        raise InputError(
            f"output is 'raw', but this {truncated_repr(type(model).__name__)} is explained as a black box, by "
            "what its predict "
            "returns, which is a function of its raw output (a link, or a transformed target). Give "
            "output='response', which is what predict returns."
        )
    if output is None or (output == "raw" and "model_output" in options):  # shap's default
        return True
    if hasattr(model, "predict_proba"):
        return output in ("probability", "predict_proba", "response")
    return output in ("raw", "response") and has_predict and not hasattr(model, "classes_")


def _without_clusters(
    args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Replace what ``shap.kmeans`` returns, as a background, by its rows and weights."""
    background: Any = args[1] if len(args) > 1 else options.get("background")
    if type(background).__name__ != "DenseData" or not hasattr(background, "group_names"):
        return args, options
    if options.get("weights") is not None:
        raise InputError("weights were given, but the background of shap.kmeans has its own.")
    rows = background.data
    names = tuple(str(name) for name in background.group_names)
    if (
        len(names) == rows.shape[1]
        and not are_numbered_names(names)
        and not all(name.isdigit() for name in names)
    ):
        import pandas as pd  # shap depends on it, and made this background from a frame

        rows = pd.DataFrame(rows, columns=list(background.group_names))
    options = options | {"weights": background.weights}
    if len(args) > 1:
        return (args[0], rows, *args[2:]), options
    return args, options | {"background": rows}
