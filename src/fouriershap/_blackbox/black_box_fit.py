"""What asks the model again, after fitting: values of the model itself for few rows, certificates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_whole
from fouriershap._base.errors import InputError
from fouriershap._base.short import short
from fouriershap._blackbox.fidelity import Interval
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.oracle import Oracle
from fouriershap._blackbox.refine import (
    Background,
    cube_fidelity,
    refine_cost,
    refined_values,
    true_outputs,
    values_against_all,
)
from fouriershap._blackbox.shap_certificate import MOST_ROWS, certify_values
from fouriershap._explainers.base import Explainer
from fouriershap._explainers.explanation import without_single_output
from fouriershap._rows.frames import as_rows, densified, in_order
from fouriershap._rows.pool import Pool
from fouriershap._shapley.sum import background_error


class AskingAgain(Explainer):
    """An explainer that has a fitted representation and, unless it was loaded, the model itself to ask."""

    _fitted: Fitted
    # What asking takes; files keep none of it.
    _oracle: Oracle | None
    _background: Background | None
    _pool: Pool | None  # rows from which queries are put together
    _seed: int

    @property
    def n_asked(self) -> int:
        return 0 if self._oracle is None else self._oracle.n_asked

    def shap_values(
        self, X: Any, *, refine: int | None = None, spread_gap: bool = False, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Explain rows.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
            Or one row, as an array (n_columns,) or a pandas Series: its values come back without the first axis.
        refine : int, optional
            Pairs of permutations for which the model itself is asked, per row: accuracy does not end at the
            representation, nor at a compressed background. Against three background rows or more values are exact
            from two pairs on where players interact in pairs only (against two rows from three on, against one from
            four). Costs `refine_cost` queries.
        spread_gap : bool
            Share the `gap` of each row among its players, in proportion to the size of their values. Costs a
            query per row and, once, per background row.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        if self._engine.index != "shapley" and (refine is not None or spread_gap):
            raise InputError(
                f"refine and spread_gap are for Shapley values; this explainer has {short(self._engine.index)}."
            )
        X, is_one = as_rows(X)
        pool, codes = self._encode(X)
        values = self._engine.shap_values(codes, self._jobs(n_jobs))
        if refine is not None:
            oracle, background = self._model("refine")
            pairs = check_whole("refine", refine)
            if background_error(self._engine) > 0:
                values = values_against_all(self._fitted, codes, background, self._jobs(n_jobs))
            rng = np.random.default_rng(self._seed)
            with oracle.keeping():
                values = refined_values(oracle, self._fitted, pool, codes, background, values, pairs, rng)
        elif spread_gap:
            gap = self._gap(pool, codes, values)
            size = np.abs(values) + 1e-300
            values = values + gap[:, None] * size / size.sum(axis=1, keepdims=True)
        values = without_single_output(values)
        return values[0] if is_one else values

    def gap(self, X: Any) -> NDArray[np.float64]:
        """Per row, the model's f(x) - mean f(background) less the sum of the values.

        Only Shapley values add up to the model. Asks it once per row and, the first time, once per background row.
        """
        pool, codes = self._encode(X)
        return without_single_output(self._gap(pool, codes, self._engine.shap_values(codes, self.n_jobs)))

    def _gap(
        self, pool: Pool, codes: NDArray[np.float64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self._engine.index != "shapley":
            raise InputError(
                f"only Shapley values add up; this explainer has index={short(self._engine.index)}."
            )
        oracle, background = self._model("gap")
        with oracle.keeping():
            outputs, expected = true_outputs(oracle, self._fitted.encoding, pool, codes, background)
        return np.asarray(outputs - expected - values.sum(axis=1))

    def refine_cost(self, n_rows: int, pairs: int) -> int:
        """Most queries that ``shap_values(X, refine=pairs)`` asks for ``n_rows`` rows."""
        _, (background, _) = self._model("refine_cost")
        return refine_cost(n_rows, pairs, len(self.player_names), background.n_rows)

    def certify(self, X: Any, *, queries: int) -> Interval:
        """R^2 of the SHAP values of rows against the model's own, estimated without bias from the model itself.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        queries : int
            Most that the model is asked: about ``4 * n_players`` for a row; where they are too few for all rows, some
            are left out.

        Returns
        -------
        Interval
            ``r2``, about the mean of all values, and the ends ``low`` and ``high`` of a 95 % interval.
        """
        if self._engine.index != "shapley":
            raise InputError(
                f"certify is for Shapley values; this explainer has {short(self._engine.index)}."
            )
        oracle, _ = self._model("certify")
        pool, _ = self._encode(X)
        with oracle.keeping():
            return self._certify(
                pool, check_whole("queries", queries), np.random.default_rng([self._seed, 4])
            )

    def cube_fidelity(self, n: int = 1000) -> Interval:
        """R^2 at uniform points of the cube, for which the model is asked up to ``n`` times.

        Each level of each player is as likely as the next. It says nothing about SHAP values (`fidelity` does); it
        is what the literature on spectra reports.
        """
        oracle, _ = self._model("cube_fidelity")
        assert self._pool is not None
        rng = np.random.default_rng([self._seed, 1])
        with oracle.keeping():
            return cube_fidelity(oracle, self._fitted, self._pool, check_whole("n", n), rng)

    def _certify_fit(self, rows: Pool, queries: int) -> None:
        """What fitting left of the budget tells how good the values of rows are."""
        oracle, _ = self._model("certify")
        some = np.random.default_rng([self._seed, 2]).permutation(rows.n_rows)[:MOST_ROWS]
        interval = self._certify(rows.rows(some), queries, np.random.default_rng([self._seed, 3]), True)
        fidelity = replace(self._fitted.fidelity, shap=interval, n_queries=oracle.count)
        self._fitted = replace(self._fitted, fidelity=fidelity)

    def _certify(
        self, rows: Pool, queries: int, rng: np.random.Generator, is_sample: bool = False
    ) -> Interval:
        oracle, background = self._model("certify")
        values = self._engine.shap_values(self._fitted.encoding.encode(rows, "X"), self.n_jobs)
        settings = (queries, background_error(self._engine), rng, is_sample)
        return certify_values(oracle, self._fitted, rows, background, values, *settings)

    def _encode(self, X: Any, name: str = "X") -> tuple[Pool, NDArray[np.float64]]:
        pool = Pool(in_order(densified(X), self.feature_names), name)
        pool.check_names(self.feature_names, name)
        return pool, self._fitted.encoding.encode(pool, name)

    def _model(self, what: str) -> tuple[Oracle, Background]:
        if self._oracle is None or self._background is None:
            raise InputError(f"{what} asks the model, which a loaded explainer does not have.")
        return self._oracle, self._background
