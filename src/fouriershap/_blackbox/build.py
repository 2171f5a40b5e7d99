"""`fit_representation`: from a model that can be asked to a `BlackBoxFit`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice, check_int
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.threads import one_blas_thread
from fouriershap._blackbox.black_box import BlackBox
from fouriershap._blackbox.black_box_fit import BlackBoxFit
from fouriershap._blackbox.candidates.waves import expected_seconds
from fouriershap._blackbox.certificate import certify_values, reserved_queries
from fouriershap._blackbox.fidelity import Interval, warn_if_low
from fouriershap._blackbox.fit import CERTIFYING, COMPILING, TREE_SECONDS, FitResult, Fitter
from fouriershap._blackbox.hybrid_model import HybridModel
from fouriershap._blackbox.hybrids import second_rows
from fouriershap._blackbox.selection import BLEND, CANDIDATES
from fouriershap._blackbox.transform import EXACT, Limits
from fouriershap._rows.levels import make_encoding
from fouriershap._rows.pool import Pool

ENUMERATE = "enumerate"
METHODS = ("auto", ENUMERATE, *CANDIDATES, BLEND)
BUDGET = 20_000  # queries of a representation that is to stand alone
FIRST_BUDGET = 5_000  # of one that only helps to sample
_SECONDS = 0.3  # of a fit, however small
_MOST_HELD_OUT, _HELD_OUT = 64, 5  # rows that judge a fit: one of so many


def fit_representation(
    box: BlackBox,
    rows: Pool | None,
    budget: int = BUDGET,
    method: str = "auto",
    n_terms: int | None = None,
    max_degree: int | None = None,
    wrap: Callable[[BlackBoxFit], Any] = lambda fit: fit,
) -> BlackBoxFit:
    """Fit a representation to the answers of a model; `Explainer.fit` explains the parameters.

    Some rows of the data (or else of the background) take no part, and certify its SHAP values.
    Whatever is raised once something is fitted has a method ``finish``, which returns ``wrap(fit)`` of the best fit so
    far, without another query.
    """
    check_choice("method", method, METHODS)
    limits, budget = _check_limits(n_terms, max_degree, method), check_int("budget", budget)
    queries = box.queries
    queries.begin(budget)
    before = queries.n_asked
    with queries.attach_answers():
        held_out = _held_out(box)
        fitter = _make_fitter(box, rows, budget, limits, held_out)

        def compile_fit(result: FitResult) -> BlackBoxFit:
            queries.progress.enter(COMPILING)
            codes = result.encoding.encode(box.background, "background")
            with one_blas_thread():
                engine = result.surrogate.compile(codes, box.weights, box.index)
            names, n_asked = box.background.names, queries.n_asked - before
            return BlackBoxFit(result, engine, names, box.output_names, box.n_jobs, n_asked)

        try:
            result = fitter.fit(method)
            if fitter.reserved and result.method != ENUMERATE:
                queries.progress.enter(CERTIFYING, n_queries=fitter.reserved)
                result = _judged(box, result, fitter.pool.rows(held_out), fitter)
            fit = compile_fit(result)
        except BaseException as error:
            if fitter.has_fits:
                with contextlib.suppress(AttributeError):  # a property of the caller's own
                    error.finish = lambda: wrap(compile_fit(fitter.finish()))  # type: ignore[attr-defined]
                error.add_note(
                    "`.finish()` of this exception makes an explainer of what is fitted already, without a query."
                )
            raise
    warn_if_low(fit.fidelity, fit.method)
    return fit


def fit_stand_in(box: BlackBox, rows: Pool, budget: int) -> FitResult:
    """Fit a representation that helps to sample these rows; it is not judged."""
    return _make_fitter(box, rows, budget, Limits(), np.arange(0)).fit("auto")


def _held_out(box: BlackBox) -> NDArray[np.int64]:
    """Return the rows, of background and data in one, that take no part in a fit."""
    n_background = box.background.n_rows
    rows = np.arange(n_background) if box.data is None else n_background + np.arange(box.data.n_rows)
    order = np.random.default_rng([box.seed, 2]).permutation(rows)
    return order[: min(len(rows) // _HELD_OUT, _MOST_HELD_OUT)]


def _judged(box: BlackBox, result: FitResult, rows: Pool, fitter: Fitter) -> FitResult:
    """Return a fit with its certificate at rows that took no part."""
    if result.fidelity.low >= EXACT:  # also where nothing was seen before
        interval, judged_on = Interval(1.0, 1.0, 1.0), "held-out queries, which it answers exactly"
    else:
        interval, n_rows = certify_values(box, fitter.model, result, rows, fitter.reserved)
        source = "the background" if box.data is None else "data"
        judged_on = f"{n_rows} rows of {source} that took no part"
    fidelity = replace(
        result.fidelity,
        shap=interval,
        judged_on=judged_on,
        n_queries=fitter.model.count,
    )
    return replace(result, fidelity=fidelity)


def _make_fitter(
    box: BlackBox, rows: Pool | None, budget: int, limits: Limits, held_out: NDArray[np.int64]
) -> Fitter:
    n_background = box.background.n_rows
    pool = box.background if box.data is None else box.background.joined(box.data)
    first, second = (
        np.arange(0 if box.data is None else n_background, pool.n_rows),
        second_rows(n_background, pool.n_rows),
    )
    known = np.arange(0)
    if rows is not None:
        known = np.arange(pool.n_rows, pool.n_rows + rows.n_rows)
        pool = pool.joined(rows)
        if box.data is None:
            first = np.concatenate([first, known])
    elif pool.n_rows < 2:
        raise InputError(
            "background has one row, and there is nothing to mix it with: give data= with the rows that are to be "
            "explained, or training rows."
        )
    encoding = make_encoding(pool, box.column_player, box.encoding.player_names, box.categorical)
    return Fitter(
        model=HybridModel(box.queries, box.column_player),
        pool=pool,
        first_rows=first[~np.isin(first, held_out)],
        second_rows=second[~np.isin(second, held_out)],
        known_rows=known,
        known_others=np.setdiff1d(np.arange(n_background), held_out),
        reserved=reserved_queries(budget, encoding.n_players, len(held_out), n_background),
        encoding=encoding,
        budget=budget,
        seed=box.seed,
        limits=limits,
        n_jobs=box.n_jobs,
    )


def expected_fit_seconds(box: BlackBox, n_outputs: int, budget: int, query: float) -> float:
    """Estimate the seconds of `fit_representation`, of queries that take ``query`` seconds each."""
    n_features = len(box.encoding.features)
    trees = TREE_SECONDS * budget * n_features * n_outputs
    return _SECONDS + budget * query + expected_seconds(budget, n_features) + trees


def _check_limits(n_terms: Any, max_degree: Any, method: str) -> Limits:
    given = {"n_terms": n_terms, "max_degree": max_degree}
    for name, value in given.items():
        if value is not None and method not in ("auto", "swht"):
            raise InputError(
                f"{name} is {truncated_repr(value)}, but method={truncated_repr(method)} does not use it; leave it out."
            )
    return Limits(**{name: check_int(name, value) for name, value in given.items() if value is not None})
