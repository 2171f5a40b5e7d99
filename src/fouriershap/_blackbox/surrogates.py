"""Surrogates: what stands for a model, on the codes of its levels; `compile` gives an engine on these codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_memory
from fouriershap._blackbox.bit_code import BitCode
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley.engine import BackgroundRows, Engine, Floats, PageLookup, WrappingEngine
from fouriershap._shapley.indices import SHAPLEY, Index
from fouriershap._shapley.spectrum.engine import NO_TABLE, SpectrumEngine, compile_spectrum
from fouriershap._shapley.spectrum.lookups import level_lookup
from fouriershap._shapley.spectrum.terms import terms_of
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model
from fouriershap._trees.ensemble import TreeEnsemble

_SAME = ("feature", "threshold", "missing_left", "category_set", "cover")
_SINGLE = (1e-25, 1e25)  # sizes of values that tables in single precision can hold with room to spare


class Surrogate(Protocol):
    """A representation of the model on codes (n_rows, n_features) float64."""

    @property
    def representation(self) -> Any: ...

    def predict(self, codes: Floats) -> Floats:
        """Outputs (n_rows, n_outputs)."""

    def scaled(self, unit: float) -> Surrogate:
        """The same with all outputs times a number."""

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> Engine: ...


@dataclass(frozen=True, eq=False)
class TreeSurrogate:
    """Trees on codes; ``player`` (n_features,) owns them."""

    ensemble: TreeEnsemble
    player: NDArray[np.int32]

    @property
    def representation(self) -> TreeEnsemble:
        return self.ensemble

    def predict(self, codes: Floats) -> Floats:
        return self.ensemble.predict(codes)

    def scaled(self, unit: float) -> TreeSurrogate:
        return replace(self, ensemble=weighted_sum([self.ensemble], [unit]))

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> TreeEngine:
        largest = float(np.abs(self.ensemble.values).max(initial=0.0))
        is_usual = not largest or _SINGLE[0] < largest < _SINGLE[1]
        dtype = np.dtype(np.float32 if is_usual else np.float64)
        model = make_model(self.ensemble, self.player, check_memory(None), dtype, index=index)
        return TreeEngine(model, make_background(model, background.astype(self.ensemble.dtype, copy=False), weights))


@dataclass(frozen=True, eq=False)
class SpectrumSurrogate:
    """A spectrum on the bits into which ``code`` turns the levels of players."""

    spectrum: Spectrum
    code: BitCode

    @property
    def representation(self) -> Spectrum:
        return self.spectrum

    def predict(self, codes: Floats) -> Floats:
        return self.spectrum(self.code.bits(codes)).reshape(len(codes), -1)

    def scaled(self, unit: float) -> SpectrumSurrogate:
        return replace(self, spectrum=self.spectrum * unit)

    def compile(self, background: Floats, weights: Floats | None, index: Index = SHAPLEY) -> LevelEngine:
        made = self.compile_bits(self.code.bits(background, "background"), weights, index)
        return replace(made, rows=BackgroundRows(background, weights))

    def compile_bits(self, bits: NDArray[np.uint8], weights: Floats | None, index: Index) -> LevelEngine:
        """`compile`, of a background that is bits already."""
        terms = terms_of(self.spectrum, self.code.player, self.code.n_players)
        inner = compile_spectrum(terms, bits, weights, check_memory(None), None, index=index)
        return LevelEngine(inner, self.code)


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


def stack_outputs(ensembles: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """Ensembles of one output each as one ensemble of several outputs."""
    return _joined(
        ensembles,
        n_outputs=len(ensembles),
        tree_output=np.repeat(np.arange(len(ensembles)), [e.n_trees for e in ensembles]),
        base=np.concatenate([e.base for e in ensembles]),
        values=np.concatenate([e.values for e in ensembles]),
    )


def weighted_sum(ensembles: Sequence[TreeEnsemble], weights: Sequence[float]) -> TreeEnsemble:
    """The ensemble that predicts the weighted sum of what the others do."""
    pairs = list(zip(ensembles, weights, strict=True))
    return _joined(
        ensembles,
        tree_output=np.concatenate([e.tree_output for e in ensembles]),
        base=np.sum([weight * e.base for e, weight in pairs], axis=0),
        values=np.concatenate([weight * e.values for e, weight in pairs]),
    )


def _joined(ensembles: Sequence[TreeEnsemble], **changes: Any) -> TreeEnsemble:
    """All nodes in one numbering."""
    sizes = np.array([e.n_nodes for e in ensembles])
    start = np.cumsum(sizes) - sizes
    first = ensembles[0]

    def shifted(name: str) -> NDArray[Any]:
        parts = [
            np.where(getattr(e, name) < 0, -1, getattr(e, name) + s)
            for e, s in zip(ensembles, start, strict=True)
        ]
        return np.concatenate(parts)

    changes |= {name: shifted(name) for name in ("roots", "left", "right")}
    changes |= {name: np.concatenate([getattr(e, name) for e in ensembles]) for name in _SAME}
    kind = first.kind.removeprefix("surrogate ").removeprefix("scikit-learn ")
    return first.replace(output_names=None, kind="surrogate " + kind, **changes)
