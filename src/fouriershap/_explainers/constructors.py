"""The public constructors: one function per kind of model, each returning an `Explainer`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec

from fouriershap._explainers.arguments import call_builder
from fouriershap._explainers.blackbox import black_box_parts
from fouriershap._explainers.conditional import with_dependence
from fouriershap._explainers.explainer import Explainer, explaining_unfinished_fits
from fouriershap._explainers.parts import Parts, with_output_names
from fouriershap._explainers.products import product_parts
from fouriershap._explainers.spectrum import spectrum_parts
from fouriershap._explainers.trees import tree_parts

P = ParamSpec("P")


def _constructor(name: str, build: Callable[P, Parts]) -> Callable[P, Explainer]:
    """Return a function with the signature and docstring of ``build`` that returns an `Explainer`."""

    @wraps(build)
    def construct(*args: Any, **options: Any) -> Explainer:
        names = options.pop("output_names", None)
        with explaining_unfinished_fits():
            parts = with_output_names(with_dependence(partial(call_builder, build, args), options), names)
        return Explainer(parts)

    construct.__name__ = construct.__qualname__ = name
    construct.__module__ = __name__
    construct.__annotations__["return"] = "Explainer"
    return construct


TreeExplainer = _constructor("TreeExplainer", tree_parts)
ProductExplainer = _constructor("ProductExplainer", product_parts)
SpectrumExplainer = _constructor("SpectrumExplainer", spectrum_parts)
BlackBoxExplainer = _constructor("BlackBoxExplainer", black_box_parts)
