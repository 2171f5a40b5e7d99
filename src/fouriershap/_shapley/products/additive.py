"""Strategy "additive": no products at all. A player has what it adds by itself, less its mean over the background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._shapley.engine import Contents, Floats
from fouriershap._shapley.indices import Index
from fouriershap._shapley.products.model import ProductSum


@dataclass(frozen=True, eq=False)
class Additive:
    """Nothing to compile (see `Strategy`): what players add by themselves is the engine's business."""

    name: ClassVar[str] = "additive"
    error: ClassVar[float] = 0.0
    n_components: ClassVar[int] = 0
    index: Index

    def values(self, model: ProductSum, rows: NDArray[Any], kernel: Any) -> Floats:
        del kernel
        return np.zeros((len(rows), model.n_players, model.n_outputs))

    def interactions(
        self, model: ProductSum, rows: NDArray[Any], pairs: NDArray[np.int32], kernel: Any
    ) -> Floats:
        del kernel
        return np.zeros((len(rows), len(pairs), model.n_outputs))

    def to_contents(self) -> Contents:
        return {}, {}

    @classmethod
    def from_contents(
        cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: ProductSum, index: Index
    ) -> Additive:
        """Return what `to_contents` wrote."""
        del arrays, header
        require(model.coefficients.shape[2] == 0, "it has products, but no strategy for them")
        return cls(index)
