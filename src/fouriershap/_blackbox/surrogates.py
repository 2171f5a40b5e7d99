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
from fouriershap._shapley.engine import Contents, Engine, Floats
from fouriershap._shapley.orders.sets import Keys, RecodedSets, SetEngine
from fouriershap._shapley.pairs import PairEngine, RecodedPairs
from fouriershap._shapley.spectrum.engine import SpectrumEngine, compile_spectrum
from fouriershap._shapley.spectrum.plan import Plan
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

    def compile(self, background: Floats, weights: Floats | None, index: str = "shapley") -> Engine: ...


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

    def compile(self, background: Floats, weights: Floats | None, index: str = "shapley") -> TreeEngine:
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

    def compile(self, background: Floats, weights: Floats | None, index: str = "shapley") -> LevelEngine:
        return self.compile_bits(self.code.bits(background, "background"), weights, index)

    def compile_bits(self, bits: NDArray[np.uint8], weights: Floats | None, index: str) -> LevelEngine:
        """`compile`, of a background that is bits already."""
        terms = terms_of(self.spectrum, self.code.player, self.code.n_players)
        inner = compile_spectrum(terms, bits, weights, check_memory(None), None, index=index)
        return LevelEngine(self.code, inner)


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

    def shap_values(
        self, rows: NDArray[Any], n_jobs: int | None = None, outputs: Floats | None = None
    ) -> Floats:
        return self.inner.shap_values(self.code.bits(rows), n_jobs, outputs)

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> Floats:
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

    def build(self, n_jobs: int | None = None) -> None:
        self.inner.build(n_jobs)

    def plan(self, n_rows: int | None) -> Plan:
        return self.inner.plan(n_rows)

    def describe(self) -> dict[str, Any]:
        return self.inner.describe()

    def to_contents(self, interactions: bool) -> Contents:
        return self.inner.to_contents(interactions)


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
