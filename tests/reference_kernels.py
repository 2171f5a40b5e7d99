"""The NumPy twins of the native kernels."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest

from fouriershap import _kernels as kernels


def twin_of(family: str) -> ModuleType:
    return import_module(f"{kernels.__name__}.{family}_numpy")


def functions(module: ModuleType) -> set[str]:
    """The kernels of a family, on either side: its functions, without what they are made of."""
    return {
        name
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
    }


def use_twins(patch: pytest.MonkeyPatch) -> None:
    """Run everything on the NumPy kernels."""
    for family in kernels.FAMILIES:
        patch.setattr(kernels, family, twin_of(family))
