"""`BlackBoxFit`: a representation fitted to a model's answers, and what the live model can still be asked."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import check_int, check_weights
from fouriershap._base.errors import InputError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr
from fouriershap._blackbox.bit_code import PlayerLevels, bit_names
from fouriershap._blackbox.fidelity import Fidelity, Interval
from fouriershap._blackbox.files import result_from_contents, result_to_contents
from fouriershap._blackbox.fit import FitResult
from fouriershap._blackbox.hybrid_model import HybridModel
from fouriershap._blackbox.refine import (
    WeightedPool,
    cube_fidelity,
    refine_cost,
    refined_values,
    true_outputs,
    values_against_all,
)
from fouriershap._blackbox.selection import Candidate
from fouriershap._blackbox.shap_certificate import MOST_ROWS, certify_values
from fouriershap._blackbox.surrogates import SpectrumSurrogate
from fouriershap._fourier.display import TopTerms
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import as_rows, densified, in_order, unmask
from fouriershap._rows.levels import LABEL, Encoding
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Engine, Floats
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._waves.waves import Waves


@dataclass(frozen=True, eq=False)
class LiveModel:
    """A model that can still be asked; files hold none of it.

    Attributes
    ----------
    model : HybridModel
    pool : Pool
        Rows from which queries are put together.
    seed : int
    """

    model: HybridModel
    pool: Pool
    seed: int


class BlackBoxFit:
    """A representation fitted to the answers of a black box, with its certificate.

    `refine`, `gap`, `spread_gap`, `certify` and `cube_fidelity` ask the model again, which a loaded fit does not have.
    Rows are the caller's own.

    Attributes
    ----------
    engine : Engine
        Explains rows that `encode` has turned into codes.
    feature_names : tuple of str
        Columns of the caller's rows.
    output_names : tuple of str or None
    n_jobs : int
        Threads.
    background : (Pool, weights) or None
        The background rows as the caller gave them; None after loading.
    """

    def __init__(
        self,
        result: FitResult,
        engine: Engine,
        feature_names: tuple[str, ...],
        output_names: tuple[str, ...] | None = None,
        n_jobs: int = -1,
        background: WeightedPool | None = None,
        live: LiveModel | None = None,
    ) -> None:
        self._result, self._live = result, live
        self.engine, self.background = engine, background
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
        return self._result.method

    @property
    def fidelity(self) -> Fidelity:
        """R^2 on held-out hybrids with its interval, queries used, noise."""
        return replace(self._result.fidelity, background=self.engine.quality.background_error)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The comparison: K-fold R^2 and time of each candidate."""
        return self._result.candidates

    @property
    def representation(self) -> TreeEnsemble | Spectrum | Waves | tuple[TreeEnsemble, Waves]:
        """Representation of the model: waves or trees on codes, or a spectrum on bits; of a blend trees and waves."""
        found: TreeEnsemble | Spectrum | Waves = self._result.surrogate.representation
        return found

    @property
    def n_asked(self) -> int:
        """Number of rows that the model itself was asked so far.

        ``fidelity.n_queries`` counts those of the fit, also where ``answers`` knew them already.
        """
        return 0 if self._live is None else self._live.model.queries.n_asked

    @property
    def encoding(self) -> Encoding:
        """How the caller's rows become codes."""
        return self._result.encoding

    @property
    def player_names(self) -> tuple[str, ...]:
        return self.encoding.player_names

    @property
    def column_player(self) -> NDArray[np.int32]:
        """Player (n_columns,) that owns each column of the caller's rows."""
        return self.encoding.column_player

    @property
    def background_codes(self) -> tuple[Floats, Floats | None] | None:
        """Background rows as the engine takes them, and their weights; None after loading."""
        if self.background is None:
            return None
        pool, weights = self.background
        return self.encoding.encode(pool, "background"), weights

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
        surrogate = self._result.surrogate
        if not isinstance(surrogate, SpectrumSurrogate):
            raise InputError(
                f"method {truncated_repr(self.method)} represents the model by waves or trees, which have no bits. Use "
                "method='swht' or, where levels are few, 'enumerate'."
            )
        return surrogate

    @property
    def level_choices(self) -> tuple[PlayerLevels, ...] | None:
        """The levels of each player, if a spectrum stands for the model."""
        surrogate = self._result.surrogate
        return surrogate.code.players if isinstance(surrogate, SpectrumSurrogate) else None

    def encode(self, X: Any, name: str = "X") -> tuple[Pool, Floats]:
        """Return the caller's rows as a pool, and as the codes that the engine takes."""
        pool = Pool(in_order(densified(X), self.feature_names), name)
        pool.check_names(self.feature_names, name)
        return pool, self.encoding.encode(pool, name)

    def predict(self, codes: Floats) -> Floats:
        """Return the representation's outputs (n_rows, n_outputs) for codes."""
        return self._result.surrogate.predict(codes)

    def with_engine(self, engine: Engine) -> BlackBoxFit:
        """Return the same fit with another engine of the same representation."""
        other = copy(self)
        other.engine = engine
        return other

    def with_background(self, background: Any, weights: ArrayLike | None = None) -> BlackBoxFit:
        """Return the same representation against another background; the model is not asked.

        ``fidelity.shap`` is about values against the first background, and None here; `certify` measures it again.
        """
        rows, codes = self.encode(unmask(background), "background")
        share = check_weights(weights, rows.n_rows)
        other = self.with_engine(self.engine.with_background(codes, share))
        other.background = (rows, share)
        other._result = replace(self._result, fidelity=replace(self._result.fidelity, shap=None))
        return other

    def refine(self, X: Any, *, pairs: int, n_jobs: int | None = None) -> Floats:
        """Return SHAP values of the model itself, estimated with the representation as a control variate.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
            Or one row, as an array (n_columns,) or a pandas Series: its values come back without the first axis.
        pairs : int
            Pairs of permutations for which the model is asked, per row. Accuracy does not end at the representation,
            nor at a compressed background. Against three background rows or more values are exact from two pairs on
            where players interact in pairs only (against two rows from three on, against one from four). Costs
            `refine_cost` queries.
        n_jobs : int, optional
            Threads; by default those of the fit.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        self._check_adds_up("refine")
        X, is_one = as_rows(X)
        live, background = self._ask("refine")
        pairs = check_int("pairs", pairs)
        jobs = self.n_jobs if n_jobs is None else n_jobs
        pool, codes = self.encode(X)
        if self.engine.quality.background_error > 0:
            values = values_against_all(self._result, codes, background, jobs)
        else:
            values = self.engine.shap_values(codes, jobs)
        rng = np.random.default_rng(live.seed)
        with live.model.queries.attach_answers():
            values = refined_values(live.model, self._result, pool, codes, background, values, pairs, rng)
        return _squeezed(values, is_one)

    def refine_cost(self, n_rows: int, pairs: int) -> int:
        """Return the most queries that ``refine(X, pairs=pairs)`` asks for ``n_rows`` rows."""
        _, (background, _) = self._ask("refine_cost")
        return refine_cost(n_rows, pairs, len(self.player_names), background.n_rows)

    def gap(self, X: Any) -> Floats:
        """Return, per row, the model's f(x) - mean f(background) minus the sum of the SHAP values.

        Asks the model once per row and, the first time, once per background row.
        """
        X, is_one = as_rows(X)
        return _squeezed(self._gap(X)[1], is_one)

    def spread_gap(self, X: Any) -> Floats:
        """Return SHAP values with the `gap` of each row shared among its players, in proportion to their size."""
        X, is_one = as_rows(X)
        values, gap = self._gap(X)
        size = np.abs(values) + 1e-300
        return _squeezed(values + gap[:, None] * size / size.sum(axis=1, keepdims=True), is_one)

    def _gap(self, X: Any) -> tuple[Floats, Floats]:
        """Return values (n_rows, n_players, n_outputs) and gaps (n_rows, n_outputs)."""
        self._check_adds_up("gap")
        live, background = self._ask("gap")
        pool, codes = self.encode(X)
        values = self.engine.shap_values(codes, self.n_jobs)
        with live.model.queries.attach_answers():
            outputs, expected = true_outputs(live.model, self.encoding, pool, codes, background)
        return values, np.asarray(outputs - expected - values.sum(axis=1))

    def certify(self, X: Any, *, queries: int) -> Interval:
        """Return R^2 of the SHAP values of rows against the model's own, estimated without bias from the model itself.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        queries : int
            Most queries: about ``4 * n_players`` for a row; where they are too few for all rows, some are left out.

        Returns
        -------
        Interval
            ``r2``, about the mean of all values, and the ends ``low`` and ``high`` of a 95 % interval.
        """
        self._check_adds_up("certify")
        live, _ = self._ask("certify")
        pool, _ = self.encode(X)
        with live.model.queries.attach_answers():
            return self._certify(pool, check_int("queries", queries), [live.seed, 4])

    def cube_fidelity(self, n: int = 1000) -> Interval:
        """Return R^2 at uniform points of the cube, for which the model is asked up to ``n`` times.

        Each level of each player is as likely as the next. It says nothing about SHAP values (`fidelity` does); it
        is what the literature on spectra reports.
        """
        live, _ = self._ask("cube_fidelity")
        rng = np.random.default_rng([live.seed, 1])
        with live.model.queries.attach_answers():
            return cube_fidelity(live.model, self._result, live.pool, check_int("n", n), rng)

    def certify_fit(self, rows: Pool, queries: int) -> None:
        """Spend what fitting left of the budget on ``fidelity.shap``, from some of these rows."""
        live, _ = self._ask("certify")
        some = np.random.default_rng([live.seed, 2]).permutation(rows.n_rows)[:MOST_ROWS]
        interval = self._certify(rows.rows(some), queries, [live.seed, 3], is_sample=True)
        fidelity = replace(self._result.fidelity, shap=interval, n_queries=live.model.count)
        self._result = replace(self._result, fidelity=fidelity)

    def _certify(self, rows: Pool, queries: int, seed: list[int], is_sample: bool = False) -> Interval:
        live, background = self._ask("certify")
        values = self.engine.shap_values(self.encoding.encode(rows, "X"), self.n_jobs)
        settings = (queries, self.engine.quality.background_error, np.random.default_rng(seed), is_sample)
        return certify_values(live.model, self._result, rows, background, values, *settings)

    def _check_adds_up(self, what: str) -> None:
        if not self.engine.index.adds_up:
            raise InputError(
                f"{what} needs values that add up: Shapley values, not index={truncated_repr(self.engine.index.name)}."
            )

    def _ask(self, what: str) -> tuple[LiveModel, WeightedPool]:
        if self._live is None or self.background is None:
            raise InputError(f"{what} asks the model, which a loaded explainer does not have.")
        return self._live, self.background

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and header of a file, beside those of the engine and all names."""
        return result_to_contents(self._result)

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> BlackBoxFit:
        """Return the fit of a file, which has no live model."""
        result, engine = result_from_contents(arrays, header)
        outputs = get_typed(header, "output_names", tuple[str, ...] | None)
        require(outputs is None or len(outputs) == engine.n_outputs, "it has not as many names as outputs")
        return cls(result, engine, get_typed(header, "feature_names", tuple[str, ...]), outputs)


def _squeezed(values: Floats, is_one: bool) -> Floats:
    """Return values without the last axis of a single output, and without the first of one row."""
    values = values[..., 0] if values.shape[-1] == 1 else values
    return np.asarray(values[0] if is_one else values)
