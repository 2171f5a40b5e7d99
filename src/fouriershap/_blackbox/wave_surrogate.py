"""A surrogate of waves (see `Surrogate`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fouriershap._shapley.engine import Floats
from fouriershap._shapley.indices import SHAPLEY, Index
from fouriershap._shapley.products.engine import ProductEngine, ProductSettings, compile_products
from fouriershap._waves.waves import Waves


@dataclass(frozen=True, eq=False)
class WaveSurrogate:
    """Waves on codes.

    Attributes
    ----------
    waves : Waves
    tolerance : float
        What a compressed background may miss of the values, as a share of their square sum.
    exact : bool
        Whether no background is compressed.
    """

    waves: Waves
    tolerance: float
    exact: bool = False

    @property
    def representation(self) -> Waves:
        return self.waves

    def predict(self, codes: Floats) -> Floats:
        return self.waves.predict(codes)

    def scaled(self, unit: float) -> WaveSurrogate:
        return replace(self, waves=self.waves.scaled(unit))

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> ProductEngine:
        return compile_products(
            self.waves, background, weights, index, ProductSettings(self.tolerance, self.exact)
        )
