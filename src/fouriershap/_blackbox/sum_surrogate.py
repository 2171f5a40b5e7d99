"""A surrogate that is the sum of others (see `Surrogate`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fouriershap._blackbox.surrogates import Surrogate
from fouriershap._blackbox.wave_surrogate import WaveSurrogate
from fouriershap._shapley.engine import Floats
from fouriershap._shapley.indices import SHAPLEY, Index
from fouriershap._shapley.sum import SumEngine


@dataclass(frozen=True, eq=False)
class SumSurrogate:
    """Representations whose outputs add up."""

    parts: tuple[Surrogate, ...]

    @property
    def representation(self) -> tuple[Any, ...]:
        return tuple(part.representation for part in self.parts)

    def predict(self, codes: Floats) -> Floats:
        return np.asarray(np.sum([part.predict(codes) for part in self.parts], axis=0))

    def scaled(self, unit: float) -> SumSurrogate:
        return replace(self, parts=tuple(part.scaled(unit) for part in self.parts))

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> SumEngine:
        return SumEngine(tuple(part.compile(background, weights, index) for part in self.parts))


def without_compression(surrogate: Surrogate) -> Surrogate:
    """The same, explained against every row of a background, however long that takes."""
    if isinstance(surrogate, SumSurrogate):
        return SumSurrogate(tuple(without_compression(part) for part in surrogate.parts))
    return replace(surrogate, exact=True) if isinstance(surrogate, WaveSurrogate) else surrogate
