"""`ProductLookup`: waves and what their background was compiled to, for a page that explains one row at a time.

The page computes as `columns.py`, `components.py`, `mixture.py` and `subsets.py` do, by the same names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.products.components import Pairs, exact_points
from fouriershap._shapley.products.engine import ProductEngine
from fouriershap._shapley.products.mixture import Mixture, inner_points
from fouriershap._shapley.products.subsets import Subsets
from fouriershap._waves.columns import LABEL_VALUE
from fouriershap._waves.waves import Waves

_COLUMNS = ("center", "scale", "low", "high", "least", "most", "n_levels", "player")


@dataclass(frozen=True, eq=False)
class ProductLookup:
    """Everything that explaining one row needs."""

    waves: Waves
    engine: ProductEngine

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def header(self) -> dict[str, Any]:
        """Single numbers."""
        waves, road = self.waves, self.engine.road
        found: dict[str, Any] = {
            "kind": "products",
            "road": road.name,
            "n_players": waves.n_players,
            "n_outputs": waves.n_outputs,
            "n_waves": len(waves),
            "label_value": LABEL_VALUE,
        }
        if isinstance(road, Mixture):
            where, end = inner_points(road.index, road.n_points)
            found |= {"points": where.points.tolist(), "point_weights": where.weights.tolist(), "end": end}
            found |= {"kappa": road.kappa, "mean": road.mean.tolist(), "constant": waves.constant.tolist()}
        elif isinstance(road, Pairs):
            where = exact_points(road.index, waves.n_players)
            found |= {"points": where.points.tolist(), "point_weights": where.weights.tolist()}
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by the names that Python gives them; what is large in single precision, without padding."""
        waves, road, n = self.waves, self.engine.road, len(self.waves)
        columns = waves.columns
        found: dict[str, NDArray[Any]] = {name: _bounded(getattr(columns, name)) for name in _COLUMNS}
        found |= {"first": columns.first, "frequencies": waves.frequencies, "linear": waves.linear}
        found |= {"coefficients": waves.coefficients[..., :n], "centre": self.engine.centre}
        if isinstance(road, Subsets):
            return found | {"table": road.table[..., :n].astype(np.float32)}
        if isinstance(road, Mixture):
            found |= {"near": road.near[..., :n].astype(np.float32), "whole": road.whole[..., :n]}
        assert isinstance(road, Mixture | Pairs)
        return found | {"components": road.components[..., :n].astype(np.float32), "weights": road.weights}


def _bounded(array: NDArray[Any]) -> NDArray[Any]:
    """Without infinities, which no number that is entered exceeds anyway."""
    return np.nan_to_num(array, posinf=1e300, neginf=-1e300) if array.dtype.kind == "f" else array


def product_lookup(engine: ProductEngine) -> ProductLookup | None:
    """Of an engine of waves; None where it explains something else."""
    return ProductLookup(engine.model, engine) if isinstance(engine.model, Waves) else None
