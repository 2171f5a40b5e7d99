"""`Strategy`: how the products of a `ProductSum` are explained against one background; `Additive`: without any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._shapley.engine import Contents, Floats
from fouriershap._shapley.indices import Index
from fouriershap._shapley.products.model import ProductSum


class Strategy(Protocol):
    """What the background is compiled to.

    Attributes
    ----------
    name : str
    error : float
        Share of the square sum of the values that is missed, measured at rows of the background; 0 where exact.
    """

    name: ClassVar[str]

    @property
    def error(self) -> float: ...

    @property
    def n_components(self) -> int:
        """Products that stand for the background; 0 where nothing does."""

    def values(self, model: ProductSum, rows: NDArray[Any], kernel: Any) -> Floats:
        """Return the players' values of the products, (n_rows, n_players, n_outputs).

        ``kernel`` is the family `products` of the kernels, or the same under XLA.
        """

    def interactions(
        self, model: ProductSum, rows: NDArray[Any], index: Index, sets: NDArray[np.int64], kernel: Any
    ) -> Floats:
        """Return the interactions (n_rows, n_sets, n_outputs) of sets (n_sets, size), averaged as ``index`` says."""

    def to_contents(self) -> Contents:
        """Return named arrays and a header for a file."""


@dataclass(frozen=True, eq=False)
class Additive:
    """No products at all (see `Strategy`): the engine adds what players add by themselves."""

    name: ClassVar[str] = "additive"
    error: ClassVar[float] = 0.0
    n_components: ClassVar[int] = 0
    index: Index

    def values(self, model: ProductSum, rows: NDArray[Any], kernel: Any) -> Floats:
        del kernel
        return np.zeros((len(rows), model.n_players, model.n_outputs))

    def interactions(
        self, model: ProductSum, rows: NDArray[Any], index: Index, sets: NDArray[np.int64], kernel: Any
    ) -> Floats:
        del index, kernel
        return np.zeros((len(rows), len(sets), model.n_outputs))

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
