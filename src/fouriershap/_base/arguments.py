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
C = TypeVar("C", bound=Callable[..., Any])


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known name that is close to a misspelt one, or with all of them."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]}?" if close else f" Known: {', '.join(names)}."


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
