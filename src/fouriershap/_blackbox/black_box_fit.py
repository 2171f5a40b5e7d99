"""`BlackBoxFit`: a representation fitted to a model's answers, and how well it stands for the model."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import check_weights
from fouriershap._base.errors import InputError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr
from fouriershap._blackbox.bit_code import PlayerLevels, bit_names
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.files import result_from_contents, result_to_contents
from fouriershap._blackbox.fit import FitResult
from fouriershap._blackbox.selection import Candidate
from fouriershap._blackbox.surrogates import SpectrumSurrogate
from fouriershap._fourier.display import TopTerms
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import densified, in_order, unmask
from fouriershap._rows.levels import LABEL, Encoding
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Engine
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._waves.waves import Waves


class BlackBoxFit:
    """A representation fitted to the answers of a black box, with its certificate.

    Attributes
    ----------
    engine : Engine
        Explains rows that `encode` has turned into codes.
    feature_names : tuple of str
        Columns of the caller's rows.
    output_names : tuple of str or None
    n_jobs : int
        Threads.
    n_asked : int
        Rows that the model itself was asked. ``fidelity.n_queries`` counts those that ``answers`` knew as well.
    """

    def __init__(
        self,
        result: FitResult,
        engine: Engine,
        feature_names: tuple[str, ...],
        output_names: tuple[str, ...] | None = None,
        n_jobs: int = -1,
        n_asked: int = 0,
    ) -> None:
        self.result, self.engine, self.n_asked = result, engine, n_asked
        self.feature_names, self.output_names = feature_names, output_names
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        f = self.fidelity
        cube = "" if f.cube is None else f"{f.cube.r2:.4f} on the cube, "
        shap = "" if f.shap is None else f"SHAP R^2 {f.shap.r2:.4f} [{f.shap.low:.4f}, {f.shap.high:.4f}], "
        return (
            f"BlackBoxFit(method={self.method!r}, {shap}R^2 {f.r2:.4f} [{f.low:.4f}, {f.high:.4f}], {cube}"
            f"{f.n_queries:,} queries, {len(self.player_names)} players)"
        )

    @property
    def method(self) -> str:
        """Name of the method that was used."""
        return self.result.method

    @property
    def fidelity(self) -> Fidelity:
        """R^2 on held-out hybrids with its interval, queries used, noise."""
        return replace(self.result.fidelity, background=self.engine.quality.background_error)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The comparison: K-fold R^2 and time of each candidate."""
        return self.result.candidates

    @property
    def representation(self) -> TreeEnsemble | Spectrum | Waves | tuple[TreeEnsemble, Waves]:
        """Representation of the model: waves or trees on codes, or a spectrum on bits; of a blend trees and waves."""
        found: TreeEnsemble | Spectrum | Waves = self.result.surrogate.representation
        return found

    @property
    def encoding(self) -> Encoding:
        """How the caller's rows become codes."""
        return self.result.encoding

    @property
    def player_names(self) -> tuple[str, ...]:
        return self.encoding.player_names

    @property
    def column_player(self) -> NDArray[np.int32]:
        """Player (n_columns,) that owns each column of the caller's rows."""
        return self.encoding.column_player

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        """Labels of each column that holds labels; other columns hold numbers."""
        features = [f for f in self.encoding.features if f.kind == LABEL]
        return {self.feature_names[column]: f.levels for f in features for column in f.columns}

    @property
    def bit_names(self) -> tuple[str, ...]:
        """Name of each bit, where the representation is a spectrum, that says where it is 1.

        "age" of a column of 0 and 1, "temp=high", "gear in {2, 4}"; "weight[bit 2]" where levels are many.
        """
        return bit_names(self._spectral().code, self.encoding, self.feature_names)

    def top_terms(self, top_k: int = 10) -> TopTerms:
        """Return the largest terms of the spectrum, named by players and levels: see `Spectrum.top_terms`."""
        return self._spectral().representation.top_terms(top_k, self.bit_names)

    def _spectral(self) -> SpectrumSurrogate:
        surrogate = self.result.surrogate
        if not isinstance(surrogate, SpectrumSurrogate):
            raise InputError(
                f"method {truncated_repr(self.method)} represents the model by waves or trees, which have no bits. Use "
                "method='swht' or, where levels are few, 'enumerate'."
            )
        return surrogate

    @property
    def level_choices(self) -> tuple[PlayerLevels, ...] | None:
        """The levels of each player, if a spectrum stands for the model."""
        surrogate = self.result.surrogate
        return surrogate.code.players if isinstance(surrogate, SpectrumSurrogate) else None

    def with_engine(self, engine: Engine) -> BlackBoxFit:
        """Return the same fit with another engine of the same representation."""
        other = copy(self)
        other.engine = engine
        return other

    def with_background(self, background: Any, weights: ArrayLike | None = None) -> BlackBoxFit:
        """Return the same representation against another background; the model is not asked.

        ``fidelity.shap`` is about values against the first background, and None here.
        """
        pool = Pool(in_order(densified(unmask(background)), self.feature_names), "background")
        pool.check_names(self.feature_names, "background")
        codes = self.encoding.encode(pool, "background")
        other = self.with_engine(self.engine.with_background(codes, check_weights(weights, pool.n_rows)))
        other.result = replace(self.result, fidelity=replace(self.result.fidelity, shap=None, judged_on=""))
        return other

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and header of a file, beside those of the engine and all names."""
        return result_to_contents(self.result)

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> BlackBoxFit:
        """Return the fit of a file, which has no live model."""
        result, engine = result_from_contents(arrays, header)
        outputs = get_typed(header, "output_names", tuple[str, ...] | None)
        require(outputs is None or len(outputs) == engine.n_outputs, "it has not as many names as outputs")
        return cls(result, engine, get_typed(header, "feature_names", tuple[str, ...]), outputs)
