"""How explainers are called: signatures that editors show, shap's words, what a model is called."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, ParamSpec


class SignatureOfInit:
    """What `inspect.signature` says of an explainer's class: of its ``__init__``, not of the common ``__new__``."""

    def __get__(self, instance: Any, owner: type) -> Signature:
        if instance is not None:
            raise AttributeError("__signature__")  # of an object that is its `__call__`
        whole = signature(owner.__init__)  # type: ignore[misc]
        return whole.replace(parameters=list(whole.parameters.values())[1:])


P = ParamSpec("P")


def in_shap_words(init: Callable[P, None]) -> Callable[P, None]:
    """An ``__init__`` (self, model, background, *, ...) that also takes shap's arguments, see `shap_words`."""
    parameters = list(signature(init).parameters.values())[1:]
    taken = {parameter.name: parameter.default is Parameter.empty for parameter in parameters}
    ours = taken.keys() - {"data"}

    @wraps(init)
    def understood(self: Any, *args: Any, **options: Any) -> None:
        background = args[1] if len(args) > 1 else options.get("background")
        if background is None or not options.keys() <= ours or type(background).__name__ == "DenseData":
            from fouriershap._explainers.shap_words import in_our_words

            args, options = in_our_words(type(self).__name__, args, options, taken)
        init(self, *args, **options)

    return understood  # type: ignore[return-value]


def name_of(model: Any) -> str | None:
    """Where a model comes from: its class, a function's name, or the name of a file."""
    if model is None:
        return None
    if isinstance(model, str | os.PathLike):
        # It may hold bytes that are no text, which no file could.
        return Path(model).name.encode("utf-8", "replace").decode("utf-8")
    named = model if hasattr(model, "__qualname__") else type(model)
    package = str(getattr(named, "__module__", "")).partition(".")[0]
    return f"{package}.{named.__qualname__}" if package else str(named.__qualname__)
