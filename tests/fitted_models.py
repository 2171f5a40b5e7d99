"""Explainers of black boxes that are fitted at once, as tests of representations need them."""

from __future__ import annotations

import inspect
from typing import Any

import fouriershap as fs

_OF_FIT = {name for name in inspect.signature(fs.Explainer.fit).parameters if name != "self"}


def explain_fitted(predict: Any, background: Any, **options: Any) -> fs.Explainer:
    """Return what `Explainer.fit` makes of a black box; options are those of both."""
    of_fit = {name: options.pop(name) for name in list(options) if name in _OF_FIT}
    return fs.BlackBoxExplainer(predict, background, **options).fit(**of_fit)
