"""Surrogates: representations of a model on the codes of its levels; `compile` gives an engine on these codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_memory
from fouriershap._blackbox.bit_code import BitCode
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley.engine import BackgroundRows, Engine, Floats, PageLookup, WrappingEngine
from fouriershap._shapley.indices import SHAPLEY, Index
from fouriershap._shapley.products.engine import ProductEngine, ProductSettings, compile_products
from fouriershap._shapley.spectrum.engine import NO_TABLE, SpectrumEngine, compile_spectrum
from fouriershap._shapley.spectrum.lookups import level_lookup
from fouriershap._shapley.spectrum.terms import terms_of
from fouriershap._shapley.sum import SumEngine
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model, tables_type
from fouriershap._trees.arithmetic import scaled
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._waves.waves import Waves


class Surrogate(Protocol):
    """A representation of the model on codes (n_rows, n_features) float64."""

    @property
    def representation(self) -> Any: ...

    def predict(self, codes: Floats) -> Floats:
        """Return outputs (n_rows, n_outputs)."""

    def scaled(self, unit: float) -> Surrogate:
        """Return the same surrogate with all outputs times a number."""

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> Engine: ...


@dataclass(frozen=True, eq=False)
class TreeSurrogate:
    """Trees on codes; ``player`` (n_features,) owns them."""

    representation: TreeEnsemble
    player: NDArray[np.int32]

    def predict(self, codes: Floats) -> Floats:
        return self.representation.predict(codes)

    def scaled(self, unit: float) -> TreeSurrogate:
        return replace(self, representation=scaled(self.representation, unit))

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> TreeEngine:
        ensemble = self.representation
        model = make_model(ensemble, self.player, check_memory(None), tables_type(ensemble), index=index)
        return TreeEngine(
            model, make_background(model, background.astype(ensemble.dtype, copy=False), weights)
        )


@dataclass(frozen=True, eq=False)
class SpectrumSurrogate:
    """A spectrum on the bits into which ``code`` turns the levels of players."""

    representation: Spectrum
    code: BitCode

    def predict(self, codes: Floats) -> Floats:
        return self.representation(self.code.bits(codes)).reshape(len(codes), -1)

    def scaled(self, unit: float) -> SpectrumSurrogate:
        return replace(self, representation=self.representation * unit)

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> LevelEngine:
        bits = self.code.bits(background, "background")
        terms = terms_of(self.representation, self.code.player, self.code.n_players)
        inner = compile_spectrum(terms, bits, weights, check_memory(None), None, index=index)
        return LevelEngine(inner, self.code, BackgroundRows(background, weights))


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

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> ProductEngine:
        return compile_products(
            self.representation, background, weights, index, ProductSettings(self.tolerance, self.exact)
        )


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
    """Return the same surrogate, explained against every row of a background."""
    if isinstance(surrogate, SumSurrogate):
        return SumSurrogate(tuple(without_compression(part) for part in surrogate.parts))
    return replace(surrogate, exact=True) if isinstance(surrogate, WaveSurrogate) else surrogate


@dataclass(frozen=True, eq=False)
class LevelEngine(WrappingEngine):
    """A spectrum's engine on the codes of levels (see `Engine`); ``rows``: the background, in codes."""

    inner: SpectrumEngine
    code: BitCode
    rows: BackgroundRows | None = None

    @property
    def background(self) -> BackgroundRows | None:
        return self.rows

    def encode(self, rows: NDArray[Any], name: str = "X") -> NDArray[np.uint8]:
        return self.code.bits(rows, name)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> LevelEngine:
        inner = self.inner.with_background(self.encode(rows, "background"), weights)
        return replace(self, inner=inner, rows=BackgroundRows(rows, weights))

    def lookups(self, budget: int) -> list[PageLookup] | str:
        del budget  # what is built is used
        if self.inner.rest.n_terms:
            return NO_TABLE
        n_levels = np.array([player.n_levels for player in self.code.players])
        n_bits = np.array([player.n_bits for player in self.code.players])
        return [level_lookup(self.inner.terms, self.inner.tables, n_levels, n_bits)]
