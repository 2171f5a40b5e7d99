"""What users of shap write, in the words of this library; what has no word here is answered with what to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec

from fouriershap._base.checks import are_numbered
from fouriershap._base.errors import InputError

P = ParamSpec("P")

# shap's word -> ours; one that the explainer at hand does not have is answered by `_ANSWERS`.
_OURS = {"data": "background", "masker": "background", "model_output": "output", "seed": "random_state"}
_ANSWERS = {
    "model_output": "a black box has no outputs to choose from: give a function that returns what you want explained",
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


def in_shap_words(init: Callable[P, None]) -> Callable[P, None]:
    """An ``__init__`` that also takes shap's arguments: (self, model, background, *, ...)."""
    parameters = list(signature(init).parameters.values())[1:]
    taken = {parameter.name for parameter in parameters}
    model, background = parameters[:2]

    @wraps(init)
    def understood(self: Any, *args: Any, **options: Any) -> None:
        options = translated(args, options, taken)
        if not args and model.name != "model" and "model" in options:
            options[model.name] = options.pop("model")
        if len(args) < 2 and "background" not in options and background.default is Parameter.empty:
            raise InputError(
                "background is missing: give rows that stand for 'feature unknown', such as the training data: "
                f"fs.{type(self).__name__}(model, X). All of them are used, and their number costs next to nothing."
            )
        args, options = _unclustered(args, options)
        init(self, *args, **options)

    return understood  # type: ignore[return-value]


def translated(args: tuple[Any, ...], options: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    """Keyword arguments under our names; ``taken`` are those of the explainer."""
    found = dict(options)
    has_background = len(args) > 1 or options.get("background") is not None
    for name in options:
        if name == "data" and (has_background or options[name] is None) and name in taken:
            continue  # of a black box that is another thing; `TreeExplainer` says that one is enough
        ours = _OURS.get(name)
        if name == "model_output" and options[name] in (None, "raw") and ours not in taken:
            del found[name]  # shap's default: what the function returns
        elif ours in taken:
            value = found.pop(name)
            if (ours == "background" and has_background) or ours in options:
                raise InputError(f"{ours} and {name} are the same argument; give one of them.")
            if value is not None:
                found[ours] = value
        elif name not in taken and name in _ANSWERS:
            raise InputError(f"{name} is an argument of shap that has no place here; {_ANSWERS[name]}.")
    return found


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
