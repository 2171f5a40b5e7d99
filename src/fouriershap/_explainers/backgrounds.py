"""The rows of a background, where an engine keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.engine import Engine
from fouriershap._shapley.products.ridges import RidgeEngine
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.sum import SumEngine
from fouriershap._shapley.trees.engine import TreeEngine

Kept = tuple[NDArray[Any], NDArray[np.float64] | None]


def kept_background(engine: Engine) -> Kept | None:
    """Rows and weights (None for equal ones); None where there are none, or only tables of them."""
    if isinstance(engine, SumEngine):
        return next(filter(None, map(kept_background, engine.parts)), None)
    if isinstance(engine, SpectrumEngine):
        found: Kept | None = (engine.background, engine.weights)
    elif isinstance(engine, TreeEngine | RidgeEngine):
        rows = engine.background.rows
        found = None if rows is None else (rows, engine.background.weights)
    else:  # an output beyond the margin has the engine of the margin, or its background, inside
        inner = getattr(engine, "engine", None)
        if inner is None:
            return None
        if isinstance(inner, TreeEngine):
            return kept_background(inner)
        found = (inner.background.rows, inner.background.weights)
    return found if found is not None and len(found[0]) else None
