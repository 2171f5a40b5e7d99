"""Look-ups of a report page for waves and for linear models.

The page computes as `_waves/columns.py`, `components.py`, `mixture.py` and `subsets.py` do, by the same names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.lookups import WholeLookup
from fouriershap._shapley.products.components import Pairs, exact_points
from fouriershap._shapley.products.mixture import Mixture, inner_points
from fouriershap._shapley.products.strategy import Strategy
from fouriershap._shapley.products.subsets import Subsets
from fouriershap._waves.columns import LABEL_VALUE
from fouriershap._waves.waves import Waves

Floats = NDArray[np.float64]
_COLUMNS = ("center", "scale", "low", "high", "least", "most", "n_levels", "player")


@dataclass(frozen=True, eq=False)
class WaveLookup(WholeLookup):
    """Waves and what their background was compiled to; ``centre`` as in `ProductEngine`."""

    waves: Waves
    strategy: Strategy
    centre: Floats

    def header(self) -> dict[str, Any]:
        """Return single numbers."""
        waves, strategy = self.waves, self.strategy
        found: dict[str, Any] = {
            "kind": "products",
            "strategy": strategy.name,
            "n_players": waves.n_players,
            "n_outputs": waves.n_outputs,
            "n_waves": len(waves),
            "label_value": LABEL_VALUE,
        }
        if isinstance(strategy, Mixture):
            where, end = inner_points(strategy.index, strategy.n_points)
            found |= {"points": where.points.tolist(), "point_weights": where.weights.tolist(), "end": end}
            found |= {
                "kappa": strategy.kappa,
                "mean": strategy.mean.tolist(),
                "constant": waves.constant.tolist(),
            }
        elif isinstance(strategy, Pairs):
            where = exact_points(strategy.index, waves.n_players)
            found |= {"points": where.points.tolist(), "point_weights": where.weights.tolist()}
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays by the names that Python gives them; what is large in single precision, without padding."""
        waves, strategy, n = self.waves, self.strategy, len(self.waves)
        columns = waves.columns
        found: dict[str, NDArray[Any]] = {name: _bounded(getattr(columns, name)) for name in _COLUMNS}
        found |= {"first": columns.first, "frequencies": waves.frequencies, "linear": waves.linear}
        found |= {"coefficients": waves.coefficients[..., :n], "centre": self.centre}
        if isinstance(strategy, Subsets):
            return found | {"table": strategy.table[..., :n].astype(np.float32)}
        if isinstance(strategy, Mixture):
            found |= {"near": strategy.near[..., :n].astype(np.float32), "whole": strategy.whole[..., :n]}
        assert isinstance(strategy, Mixture | Pairs)
        return found | {
            "components": strategy.components[..., :n].astype(np.float32),
            "weights": strategy.weights,
        }


def _bounded(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array without infinities, which no entered number exceeds anyway."""
    return np.nan_to_num(array, posinf=1e300, neginf=-1e300) if array.dtype.kind == "f" else array


@dataclass(frozen=True, eq=False)
class LinearLookup(WholeLookup):
    """Slopes of a linear model and the means of a background."""

    player: NDArray[np.int32]  # (n_features,)
    linear: NDArray[np.float64]  # (n_features, n_outputs)
    centre: NDArray[np.float64]  # (n_players, n_outputs)

    def header(self) -> dict[str, Any]:
        """Return single numbers."""
        return {"kind": "linear", "n_outputs": self.centre.shape[1]}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays by name."""
        return {"player": self.player, "linear": self.linear, "centre": self.centre}
