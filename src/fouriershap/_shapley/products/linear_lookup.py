"""`LinearLookup`: slopes and the means of a background, by which a page explains a row of a linear model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.engine import Engine
from fouriershap._shapley.products.additive import Additive
from fouriershap._shapley.products.engine import ProductEngine
from fouriershap._waves.products import Products


@dataclass(frozen=True, eq=False)
class LinearLookup:
    """Everything that explaining one row needs."""

    player: NDArray[np.int32]  # (n_features,)
    linear: NDArray[np.float64]  # (n_features, n_outputs)
    centre: NDArray[np.float64]  # (n_players, n_outputs)

    @property
    def nbytes(self) -> int:
        return self.linear.nbytes + self.centre.nbytes + self.player.nbytes

    def header(self) -> dict[str, Any]:
        """Single numbers."""
        return {"kind": "linear", "n_outputs": self.centre.shape[1]}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name."""
        return {"player": self.player, "linear": self.linear, "centre": self.centre}


def linear_lookup(engine: Engine) -> LinearLookup | None:
    """Of an engine whose players add up by themselves; None for others."""
    if not (isinstance(engine, ProductEngine) and isinstance(engine.road, Additive)):
        return None
    model = engine.model
    return LinearLookup(model.player, model.linear, engine.centre) if isinstance(model, Products) else None
