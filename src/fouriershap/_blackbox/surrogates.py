"""Surrogates: representations of a model on the codes of its levels; `compile` gives an engine on these codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_memory
from fouriershap._blackbox.bit_code import BitCode
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley.engine import Contents, Engine, Floats
from fouriershap._shapley.orders.sets import Keys, RecodedSets, SetEngine
from fouriershap._shapley.pairs import PairEngine, RecodedPairs
from fouriershap._shapley.products.engine import ProductEngine, compile_products
from fouriershap._shapley.spectrum.engine import SpectrumEngine, compile_spectrum
from fouriershap._shapley.spectrum.plan import Plan
from fouriershap._shapley.spectrum.terms import terms_of
from fouriershap._shapley.sum import SumEngine
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model
from fouriershap._trees.arithmetic import scaled
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._waves.waves import Waves

_SINGLE = (1e-25, 1e25)  # sizes of values that tables in single precision can hold with room to spare


class Surrogate(Protocol):
    """A representation of the model on codes (n_rows, n_features) float64."""

    @property
    def representation(self) -> Any: ...

    def predict(self, codes: Floats) -> Floats:
        """Return outputs (n_rows, n_outputs)."""

    def scaled(self, unit: float) -> Surrogate:
        """Return the same surrogate with all outputs times a number."""

    def compile(self, background: Floats, weights: Floats | None, index: str = "shapley") -> Engine: ...


@dataclass(frozen=True, eq=False)
class TreeSurrogate:
    """Trees on codes; ``player`` (n_features,) owns them."""

    representation: TreeEnsemble
    player: NDArray[np.int32]

    def predict(self, codes: Floats) -> Floats:
        return self.representation.predict(codes)

    def scaled(self, unit: float) -> TreeSurrogate:
        return replace(self, representation=scaled(self.representation, unit))

    def compile(self, background: Floats, weights: Floats | None, index: str = "shapley") -> TreeEngine:
        ensemble = self.representation
        largest = float(np.abs(ensemble.values).max(initial=0.0))
        is_usual = not largest or _SINGLE[0] < largest < _SINGLE[1]
        dtype = np.dtype(np.float32 if is_usual else np.float64)
        model = make_model(ensemble, self.player, check_memory(None), dtype, index=index)
        return TreeEngine(model, make_background(model, ensemble.clean_rows(background), weights))


@dataclass(frozen=True, eq=False)
class SpectrumSurrogate:
    """A spectrum on the bits into which ``code`` turns the levels of players."""

    representation: Spectrum
    code: BitCode

    def predict(self, codes: Floats) -> Floats:
        return self.representation(self.code.bits(codes)).reshape(len(codes), -1)

    def scaled(self, unit: float) -> SpectrumSurrogate:
        return replace(self, representation=self.representation * unit)

    def compile(self, background: Floats, weights: Floats | None, index: str = "shapley") -> LevelEngine:
        bits = self.code.bits(background, "background")
        terms = terms_of(self.representation, self.code.player, self.code.n_players)
        inner = compile_spectrum(terms, bits, weights, check_memory(None), None, index=index)
        return LevelEngine(self.code, inner)


@dataclass(frozen=True, eq=False)
class WaveSurrogate:
    """Waves on codes.

    Attributes
    ----------
    representation : Waves
    tolerance : float
        Share of the values' square sum that a compressed background may miss.
    exact : bool
        Whether no background is compressed.
    """

    representation: Waves
    tolerance: float
    exact: bool = False

    def predict(self, codes: Floats) -> Floats:
        return self.representation.predict(codes)

    def scaled(self, unit: float) -> WaveSurrogate:
        return replace(self, representation=self.representation.scaled(unit))

    def compile(self, background: Floats, weights: Floats | None, index: str = "shapley") -> ProductEngine:
        return compile_products(self.representation, background, weights, index, self.tolerance, self.exact)


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

    def compile(self, background: Floats, weights: Floats | None, index: str = "shapley") -> SumEngine:
        return SumEngine(tuple(part.compile(background, weights, index) for part in self.parts))


def without_compression(surrogate: Surrogate) -> Surrogate:
    """Return the same surrogate, explained against every row of a background."""
    if isinstance(surrogate, SumSurrogate):
        return SumSurrogate(tuple(without_compression(part) for part in surrogate.parts))
    return replace(surrogate, exact=True) if isinstance(surrogate, WaveSurrogate) else surrogate


@dataclass(frozen=True, eq=False)
class LevelEngine:
    """A spectrum's engine on the codes of levels (see `Engine`)."""

    code: BitCode
    inner: SpectrumEngine

    @property
    def n_players(self) -> int:
        return self.inner.n_players

    @property
    def n_outputs(self) -> int:
        return self.inner.n_outputs

    @property
    def index(self) -> str:
        return self.inner.index

    @property
    def expected(self) -> Floats:
        return self.inner.expected

    @property
    def device(self) -> str:
        return self.inner.device

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        return self.inner.shap_values(self.code.bits(rows), n_jobs, outputs)

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        return self.inner.predict(self.code.bits(rows), n_jobs)

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        return RecodedPairs(self.inner.pairs(wanted), self.code.bits)

    def sets(self, index: str, order: int, wanted: Keys | None) -> SetEngine:
        """See `HigherOrders`."""
        return RecodedSets(self.inner.sets(index, order, wanted), self.code.bits)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> LevelEngine:
        return replace(self, inner=self.inner.with_background(self.code.bits(rows, "background"), weights))

    def to(self, device: str) -> LevelEngine:
        return replace(self, inner=self.inner.to(device))

    def build(self, n_jobs: int = -1) -> None:
        self.inner.build(n_jobs)

    def plan(self, n_rows: int | None) -> Plan:
        return self.inner.plan(n_rows)

    def describe(self) -> dict[str, Any]:
        return self.inner.describe()

    def to_contents(self, interactions: bool) -> Contents:
        return self.inner.to_contents(interactions)
