"""Outputs of sums of products: exact where they are sums of products again, else by definition or sampled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr
from fouriershap._shapley.engine import Engine, Floats
from fouriershap._shapley.indices import Index
from fouriershap._shapley.outputs.kinds import Output, Raw
from fouriershap._shapley.outputs.transformed import explain_exactly
from fouriershap._shapley.products.engine import ProductEngine, ProductSettings
from fouriershap._shapley.products.ridges import RidgeEngine, make_engine
from fouriershap._waves.products import Products
from fouriershap._waves.responses import respond


def explain_products(
    model: Products,
    output: Output,
    rows: NDArray[Any],
    weights: Floats | None,
    index: Index,
    settings: ProductSettings,
    kind: str,
) -> Engine:
    """Return what explains this output of a model against a background.

    Parameters
    ----------
    model : Products
        The raw output, with its players.
    kind : str
        Library and class of the model, for messages.
    """
    if output.needs_labels or (not output.is_raw and output.function is None):
        raise UnsupportedModelError(
            f"model is a {kind}, which has no known output={truncated_repr(output.name)}. Use output='raw', or give "
            "fs.BlackBoxExplainer a function that returns what you want explained, such as model.predict_proba."
        )
    what = model if output.is_raw else respond(model, output.link, np.average(rows, axis=0, weights=weights))
    if what is not None:
        return make_engine(what, rows, weights, index, settings, output)
    engine = make_engine(model, rows, weights, index, settings, Raw(output.link))
    return explain_exactly(engine, output, f"output={truncated_repr(output.name)}")


def load_products(arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: Products) -> Engine:
    """Return the engine that `to_contents` wrote of an explainer of products."""
    engine: ProductEngine | RidgeEngine
    if model.ridges is not None:
        engine = RidgeEngine.from_contents(arrays, header, model)
    else:
        engine = ProductEngine.from_contents(arrays, header, model)
    if not get_typed(header, "exact", bool, False):
        return engine
    require(engine.background is not None, "its output needs a background, which is not there")
    output = engine.output
    require(output.function is not None, "its output is unknown")
    raw = replace(engine, output=Raw(output.link))
    return explain_exactly(raw, output, f"output={truncated_repr(output.name)}")
