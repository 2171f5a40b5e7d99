"""What users of shap write, in the words of this library; what has no word here is answered with what to do."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from fouriershap._base.checks import are_numbered
from fouriershap._base.errors import InputError
from fouriershap._base.short import short
from fouriershap._libraries import open_model

# shap's word -> ours; one that the explainer at hand does not have is answered by `_ANSWERS`.
_OURS = {"data": "background", "masker": "background", "model_output": "output", "seed": "random_state"}
_NO_OUTPUTS = (
    "a black box has no outputs to choose from: give a function that returns what you want explained"
)
_ANSWERS = {
    "model_output": _NO_OUTPUTS,
    "seed": "nothing is random here: leave it out",
    "link": "output='probability' explains probabilities, output='raw' the model's own scale: leave it out",
    "algorithm": "fs.Explainer takes the explainer that fits the model: leave it out, or name its class",
    "linearize_link": "nothing is linearised here: leave it out",
    "approximate": "values are exact, and as quick: leave it out",
    "output_names": "they are those of the model's classes: leave it out",
    "nsamples": "budget= is how often a black box is asked; other models are not asked at all",
    "feature_names": "columns of a data frame have names: give the background as one",
    "keep_index": "frame(X) keeps the index of X: leave it out",
}


# Where regressors say what they were trained for, and what those names have in common that predict through a link.
_LOSSES = ("loss", "objective", "objective_", "loss_function", "family", "link")
_LINKED = ("poisson", "gamma", "tweedie", "log", "binary", "cross", "survival", "cox")


def in_our_words(
    class_name: str, args: tuple[Any, ...], options: dict[str, Any], taken: dict[str, bool]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of an explainer as its ``__init__`` has them.

    ``taken`` are the names there, the model's and the background's first, and whether they must be given.
    """
    options = translated(args, options, taken)
    model = next(iter(taken))
    if not args and model != "model" and "model" in options:
        options[model] = options.pop("model")
    if len(args) < 2 and "background" not in options and taken["background"]:
        raise InputError(
            "background is missing: give rows that stand for 'feature unknown', such as the training data: "
            f"fs.{class_name}(model, X). All of them are used, and their number costs next to nothing."
        )
    return _unclustered(args, options)


def translated(args: tuple[Any, ...], options: dict[str, Any], taken: Container[str]) -> dict[str, Any]:
    """Keyword arguments under our names; ``taken`` are those of the explainer."""
    found = dict(options)
    has_background = len(args) > 1 or options.get("background") is not None
    for name in options:
        if name == "data" and (has_background or options[name] is None) and name in taken:
            continue  # of a black box that is another thing
        ours = _OURS.get(name)
        if name in ("output", "model_output") and "output" not in taken and says(args, options):
            del found[name]  # what the function returns
        elif ours is not None and ours in taken:
            value = found.pop(name)
            if value is None:
                continue
            if (ours == "background" and has_background) or ours in options:
                raise InputError(f"{ours} and {name} are the same argument; give one of them.")
            found[ours] = value
        elif name == "output" and name not in taken:
            raise InputError(f"output is {short(options[name])}, but {_NO_OUTPUTS}.")
        elif name not in taken and name in _ANSWERS:
            raise InputError(f"{name} is an argument of shap that has no place here; {_ANSWERS[name]}.")
    return found


def says(args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether the output that was asked for is what a black box made of the model explains in any case."""
    output = options.get("output", options.get("model_output"))
    model = args[0] if args else options.get("model", options.get("predict"))
    if output == "raw":
        _refuse_linked(model)
    if output is None or (output == "raw" and "model_output" in options):  # shap's default
        return True
    if hasattr(model, "predict_proba"):
        return output in ("probability", "predict_proba", "response")
    return output in ("raw", "response") and hasattr(model, "predict") and not hasattr(model, "classes_")


def _refuse_linked(model: Any) -> None:
    """Raise where a regressor predicts something else than its raw output, which a black box cannot ask for."""
    if not hasattr(model, "predict") or hasattr(model, "predict_proba") or isinstance(model, type):
        return
    opened = open_model(model)
    losses = [str(getattr(opened.final, word, "")).lower() for word in _LOSSES]
    if opened.target_link is not None or any(name in loss for loss in losses for name in _LINKED):
        raise InputError(
            f"output is 'raw', but this {short(type(model).__name__)} is fitted as a black box, by what its predict "
            "returns, and that is a function of its raw output (a link, or a transformed target). Give "
            "output='response', which is what predict returns."
        )


def _unclustered(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Rows and weights where the background is what ``shap.kmeans`` returns."""
    background: Any = args[1] if len(args) > 1 else options.get("background")
    if type(background).__name__ != "DenseData" or not hasattr(background, "group_names"):
        return args, options
    if options.get("weights") is not None:
        raise InputError("weights were given, but the background is one of shap.kmeans, which has its own.")
    rows = background.data
    names = tuple(str(name) for name in background.group_names)
    if len(names) == rows.shape[1] and not are_numbered(names) and not all(name.isdigit() for name in names):
        import pandas as pd  # shap needs it, and has made this from a frame of it

        rows = pd.DataFrame(rows, columns=list(background.group_names))
    options = options | {"weights": background.weights}
    if len(args) > 1:
        return (args[0], rows, *args[2:]), options
    return args, options | {"background": rows}
