"""`Strategy`: a way to explain the products of a `ProductSum` against one background."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.engine import Contents, Floats
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
        self, model: ProductSum, rows: NDArray[Any], pairs: NDArray[np.int32], kernel: Any
    ) -> Floats:
        """Return the interactions of pairs of players, (n_rows, n_pairs, n_outputs)."""

    def to_contents(self) -> Contents:
        """Return named arrays and a header for a file."""
