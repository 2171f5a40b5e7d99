"""Arguments that a public function or method does not have: an error of ours, with the name that was perhaps meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar

from fouriershap._base.errors import InputError
from fouriershap._base.messages import error_text

_SPECIAL = ("__init__", "__call__")
_QUERIES = "tolerance=, max_queries= and max_seconds= of the explainer say how much a black box is asked"
# Arguments of shap's methods, and what to do instead.
_OF_SHAP = {
    "nsamples": _QUERIES,
    "max_evals": _QUERIES,
    "npermutations": _QUERIES,
    "l1_reg": "every feature gets its value: leave it out",
    "approximate": "values are exact, and as quick: leave it out",
    "tree_limit": "give it to the explainer: fs.Explainer(model, background, tree_limit=...)",
    "silent": "give progress=False to the explainer",
    "ranked_outputs": "all outputs are explained: leave it out",
    "plot_size": "give the axes that you want: ax=",
    "max_display": "it is called top_k here",
}
C = TypeVar("C", bound=Callable[..., Any])


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known name that is close to a misspelt one, or with all of them."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f" Did you mean {close[0]}?"
    if name in _OF_SHAP:
        return f" It is an argument of shap; here, {_OF_SHAP[name]}."
    return f" Known: {', '.join(names)}." if names else " It takes no arguments."


def check_arguments(called: C) -> C:
    """Decorate a function, or the public methods of a class: a misspelt or missing argument raises `InputError`."""
    if isinstance(called, type):
        for name, method in list(vars(called).items()):
            if isinstance(method, FunctionType) and (name in _SPECIAL or not name.startswith("_")):
                setattr(called, name, check_arguments(method))
        return called

    @wraps(called)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return called(*args, **options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from inside
            taken = [name for name in signature(called).parameters if name not in ("self", "explainer")]
            unknown = [name for name in options if name not in taken]
            hint = suggest(unknown[0], taken) if unknown else ""
            raise InputError(f"{error_text(error)}.{hint}") from None

    return call  # type: ignore[return-value]
