"""The NumPy kernels, which are the specification of the native ones."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from fouriershap import _kernels as kernels


def reference_of(family: str) -> ModuleType:
    return import_module(f"{kernels.__name__}.{family}_numpy")


def functions(module: ModuleType) -> set[str]:
    """The kernels of a family, without classes and what they are made of."""
    return {
        name
        for name, value in vars(module).items()
        if callable(value) and name[0].islower() and getattr(value, "__module__", "") == module.__name__
    }


class Bound(NamedTuple):
    """An object of a kernel class, made anew for each side: ``Bound("walk.Trees", nodes, ...)``."""

    name: str
    arguments: tuple[Any, ...]

    def make(self, family_of: Callable[[str], Any]) -> Any:
        family, name = self.name.split(".")
        return getattr(family_of(family), name)(*make_all(self.arguments, family_of))


def make_all(arguments: tuple[Any, ...], family_of: Callable[[str], Any]) -> list[Any]:
    """The arguments of a call, with bound objects made of the same classes."""
    return [a.make(family_of) if isinstance(a, Bound) else a for a in arguments]


def use_reference_kernels(patch: pytest.MonkeyPatch) -> None:
    """Run everything on the NumPy kernels."""
    for family in kernels.FAMILIES:
        patch.setattr(kernels, family, reference_of(family))
