"""The register of models, by library and name; each is trained once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple


def version_of(library: str) -> tuple[int, ...]:
    """The first two numbers of a library's version."""
    return tuple(int(part) for part in version(library).split(".")[:2])


# Before 3.1 XGBoost took the codes of a frame's categories as they came, and kept no labels.
XGBOOST_KEEPS_LABELS = version_of("xgboost") >= (3, 1)


class Case(NamedTuple):
    model: Any
    X: Any
    name: str


CASES: dict[str, dict[str, Callable[[], Case]]] = {
    "sklearn": {},
    "xgboost": {},
    "lightgbm": {},
    "catboost": {},
}


def case(library: str, name: str) -> Callable[[Callable[[], tuple[Any, Any]]], Callable[[], Case]]:
    """Register a function that returns (model, X); models are trained once."""

    def register(function: Callable[[], tuple[Any, Any]]) -> Callable[[], Case]:
        trained = cache(lambda: Case(*function(), name))
        CASES[library][name] = trained
        return trained

    return register
