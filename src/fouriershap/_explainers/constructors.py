"""The public constructors: one function per kind of model, each returning an `Explainer`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from fouriershap._explainers.arguments import call_builder
from fouriershap._explainers.blackbox import black_box_parts
from fouriershap._explainers.explainer import Explainer
from fouriershap._explainers.parts import Parts
from fouriershap._explainers.products import product_parts
from fouriershap._explainers.spectrum import spectrum_parts
from fouriershap._explainers.trees import tree_parts

P = ParamSpec("P")


def _constructor(build: Callable[P, Parts]) -> Callable[P, Explainer]:
    """Return a function with the signature and docstring of ``build`` that returns an `Explainer`."""

    @wraps(build)
    def construct(*args: Any, **options: Any) -> Explainer:
        return Explainer(call_builder(build, args, options))

    return construct


TreeExplainer = _constructor(tree_parts)
ProductExplainer = _constructor(product_parts)
SpectrumExplainer = _constructor(spectrum_parts)
BlackBoxExplainer = _constructor(black_box_parts)
