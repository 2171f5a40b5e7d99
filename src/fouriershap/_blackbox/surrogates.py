"""Surrogates: fitted representations on codes, and their exact SHAP values against a background."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.files import Contents
from fouriershap._blackbox.bit_code import BitCode
from fouriershap._explainers.trees import TreeExplainer
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import to_rows
from fouriershap._shapley import Tables, compile  # noqa: A004
from fouriershap._shapley.pairs import NoPairs, PairEngine, RenamedPairs, key_pairs, pair_keys
from fouriershap._shapley.trees.files import engine_to_contents
from fouriershap._trees import TreeEnsemble

Floats = NDArray[np.float64]


class Compiled(Protocol):
    """A surrogate against one background."""

    def shap_values(self, codes: Floats, n_jobs: int | None) -> Floats:
        """Values (n_rows, n_players, n_outputs)."""

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        """What gives the interactions of the pairs with these keys, None for all."""

    def pair_rows(self, codes: Floats) -> NDArray[Any]:
        """Rows as this engine takes them."""

    @property
    def expected(self) -> Floats:
        """Mean output (n_outputs,) over the background."""

    def with_background(self, codes: Floats, weights: Floats | None) -> Compiled:
        """The same against another background."""

    def build(self) -> None:
        """Build the tables now, if they are not built yet."""

    def to(self, device: str) -> Compiled:
        """The same, explaining by the native kernels ("cpu") or under XLA ("jax")."""

    def to_contents(self, interactions: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and header for a file."""


class Surrogate(Protocol):
    """A representation of the model on codes."""

    @property
    def representation(self) -> TreeEnsemble | Spectrum: ...

    def predict(self, codes: Floats) -> Floats:
        """Outputs (n_rows, n_outputs)."""

    def compile(
        self, background: Floats, weights: Floats | None, n_jobs: int | None, index: str = "shapley"
    ) -> Compiled: ...


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

    def compile(
        self, background: Floats, weights: Floats | None, n_jobs: int | None, index: str = "shapley"
    ) -> CompiledTrees:
        groups = [str(player) for player in self.player]
        settings: dict[str, Any] = {"weights": weights, "index": index, "n_jobs": n_jobs}
        return CompiledTrees(TreeExplainer(self.ensemble, background, groups=groups, **settings))


@dataclass(frozen=True, eq=False)
class CompiledTrees:
    """Trees against one background."""

    explainer: TreeExplainer

    def shap_values(self, codes: Floats, n_jobs: int | None) -> Floats:
        values = self.explainer.shap_values(codes, n_jobs=n_jobs)
        return values[:, :, None] if values.ndim == 2 else values

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        return self.explainer._engine.interactions(wanted)

    def pair_rows(self, codes: Floats) -> NDArray[Any]:
        return to_rows(codes, self.explainer.ensemble)

    @property
    def expected(self) -> Floats:
        return np.atleast_1d(np.asarray(self.explainer.expected_value, dtype=np.float64))

    def with_background(self, codes: Floats, weights: Floats | None) -> CompiledTrees:
        return CompiledTrees(self.explainer.with_background(codes, weights=weights))

    def build(self) -> None:
        self.explainer.compile()

    def to(self, device: str) -> CompiledTrees:
        return CompiledTrees(self.explainer.to(device))

    def to_contents(self, interactions: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        self.explainer.compile()
        arrays, header = engine_to_contents(self.explainer._engine, interactions)
        names = {"feature_names": self.explainer.feature_names, "player_names": self.explainer.player_names}
        return arrays, header | names

    @classmethod
    def from_contents(cls, contents: Contents, player: NDArray[np.int32]) -> tuple[TreeSurrogate, Compiled]:
        """The inverse of `to_contents`."""
        explainer = TreeExplainer._from_contents(contents)
        return TreeSurrogate(explainer.ensemble, player), cls(explainer)


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

    def compile(
        self, background: Floats, weights: Floats | None, n_jobs: int | None, index: str = "shapley"
    ) -> CompiledSpectrum:
        bits = self.code.bits(background, "background")
        return CompiledSpectrum(self, bits, weights, self._tables(bits, weights, index), index)

    def _tables(self, bits: NDArray[np.uint8], weights: Floats | None, index: str) -> Tables | None:
        if not bits.shape[1]:
            return None
        players = self.code.compact_players
        return compile(self.spectrum, bits, players=players, weights=weights, index=index)


@dataclass(frozen=True, eq=False)
class CompiledSpectrum:
    """A spectrum against one background; no tables where no player varies."""

    surrogate: SpectrumSurrogate
    background: NDArray[np.uint8]
    weights: Floats | None
    tables: Tables | None
    index: str = "shapley"

    def shap_values(self, codes: Floats, n_jobs: int | None) -> Floats:
        code = self.surrogate.code
        out = np.zeros((len(codes), code.n_players, max(self.surrogate.spectrum.n_outputs, 1)))
        bits = code.bits(codes)
        if self.tables is not None:
            values = self.tables.shap_values(bits, n_jobs=n_jobs)
            out[:, code.varying] = values.reshape(len(codes), len(code.varying), -1)
        return out

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        code = self.surrogate.code
        if self.tables is None:
            return NoPairs(max(self.surrogate.spectrum.n_outputs, 1))
        n, n_varying = code.n_players, len(code.varying)
        if wanted is not None:
            position = np.full(n, -1)
            position[code.varying] = np.arange(n_varying)
            both = position[key_pairs(wanted, n)]
            both = both[(both >= 0).all(axis=1)]
            wanted = pair_keys(both[:, 0], both[:, 1], n_varying)
        engine = self.tables.interactions(wanted)
        return RenamedPairs(engine, code.varying[engine.pairs].astype(np.int32))

    def pair_rows(self, codes: Floats) -> NDArray[Any]:
        return self.surrogate.code.bits(codes)

    @property
    def expected(self) -> Floats:
        if self.tables is None:
            return np.atleast_1d(self.surrogate.spectrum(self.background[:1])[0])
        return np.atleast_1d(np.asarray(self.tables.expected_value, dtype=np.float64))

    def with_background(self, codes: Floats, weights: Floats | None) -> CompiledSpectrum:
        return self.surrogate.compile(codes, weights, None, self.index)

    def build(self) -> None:
        """Nothing: they are there from the beginning."""

    def to(self, device: str) -> CompiledSpectrum:
        return self if self.tables is None else replace(self, tables=self.tables.to(device))

    def to_contents(self, interactions: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        del interactions  # spectrum and background are in the file: nothing more is needed
        spectrum, header = self.surrogate.spectrum._to_contents()
        code, code_header = self.surrogate.code.to_contents()
        arrays = {f"spectrum.{name}": array for name, array in spectrum.items()} | code
        arrays["background"] = self.background
        if self.weights is not None:
            arrays["weights"] = self.weights
        return arrays, {"spectrum": header, "code": code_header, "index": self.index}

    @classmethod
    def from_contents(cls, contents: Contents) -> tuple[SpectrumSurrogate, Compiled]:
        """The inverse of `to_contents`."""
        arrays, header = contents.arrays, contents.header
        parts = {name[9:]: array for name, array in arrays.items() if name.startswith("spectrum.")}
        spectrum = Spectrum._from_contents(Contents("spectrum", parts, header["spectrum"]))
        surrogate = SpectrumSurrogate(spectrum, BitCode.from_contents(arrays, header["code"]))
        background, weights = arrays["background"], arrays.get("weights")
        index = header.get("index", "shapley")
        tables = surrogate._tables(background, weights, index)
        return surrogate, cls(surrogate, background, weights, tables, index)
