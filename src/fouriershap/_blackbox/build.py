"""`fit_black_box`: from a function and rows to a `BlackBoxFit`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.answer_file import open_store
from fouriershap._base.answers import AnswersOption
from fouriershap._base.checks import (
    ProgressOption,
    check_choice,
    check_device,
    check_int,
    check_number,
    check_weights,
    descends_from,
)
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.parallel import count_jobs
from fouriershap._base.queries import QueryModel
from fouriershap._base.threads import one_blas_thread
from fouriershap._blackbox.black_box_fit import BlackBoxFit, LiveModel
from fouriershap._blackbox.candidates.members import find_members
from fouriershap._blackbox.fidelity import warn_if_low
from fouriershap._blackbox.fit import CERTIFYING, COMPILING, FitResult, Fitter
from fouriershap._blackbox.hybrid_model import HybridModel
from fouriershap._blackbox.hybrids import second_rows
from fouriershap._blackbox.selection import BLEND, CANDIDATES
from fouriershap._blackbox.shap_certificate import reserved_queries
from fouriershap._blackbox.surrogates import without_compression
from fouriershap._blackbox.transform import Limits
from fouriershap._rows.frames import densified, in_order, is_sparse, unmask
from fouriershap._rows.levels import LABEL, make_encoding
from fouriershap._rows.players import check_groups
from fouriershap._rows.pool import Pool
from fouriershap._shapley.indices import find_index

Function = Callable[[Any], Any]
ENUMERATE = "enumerate"
METHODS = ("auto", ENUMERATE, *CANDIDATES, BLEND)


def fit_black_box(
    predict: Function | Any,
    background: Any,
    *,
    data: Any = None,
    rows: Any = None,
    method: str = "auto",
    budget: int = 20_000,
    categorical: Any = None,
    groups: Any = None,
    n_terms: int | None = None,
    max_degree: int | None = None,
    weights: ArrayLike | None = None,
    index: str = "shapley",
    compress_background: bool = True,
    min_fidelity: float = 0.95,
    random_state: int | None = None,
    n_jobs: int = -1,
    batch_size: int = 8192,
    progress: ProgressOption = None,
    device: str = "cpu",
    answers: AnswersOption = None,
    wrap: Callable[[BlackBoxFit], Any] = lambda fit: fit,
) -> BlackBoxFit:
    """Fit a representation to the answers of a model, and certify it; `BlackBoxExplainer` explains the parameters.

    Whatever is raised once something is fitted has a method ``finish``, which returns ``wrap(fit)`` of the best fit
    so far, without another query.
    """
    check_choice("method", method, METHODS)
    check_device(device)
    count_jobs(n_jobs)
    explained = find_index(index)
    limits = _check_limits(n_terms, max_degree, method)
    budget, min_fidelity = check_int("budget", budget), check_number("min_fidelity", min_fidelity)
    function, output_names = as_function(predict)
    if is_sparse(background):  # the model is asked in the caller's type
        function = _asked_in(function, type(background))
    against = Pool(densified(unmask(background)), "background")
    pool, first = _join(against, densified(unmask(data)))
    second = second_rows(against.n_rows, pool.n_rows)
    known = np.arange(0)
    rows = densified(unmask(rows))
    if rows is not None:
        begin = pool.n_rows
        pool = pool.joined(_like(against, rows, "rows"))
        known = np.arange(begin, pool.n_rows)
    share = check_weights(weights, against.n_rows)
    column_player, names = np.arange(len(against.names), dtype=np.int32), against.names
    if groups is not None:
        column_player, names = check_groups(groups, against.names)
    encoding = make_encoding(pool, column_player, names, categorical)
    certified = known if len(known) else first  # rows whose values are to be right
    n_certified = len(certified) if explained.adds_up else 0
    store = open_store(answers, against.names)
    if store is not None:
        store.check_labels({f.name: f.levels for f in encoding.features if f.kind == LABEL})
    queries = QueryModel(function, "predict", check_int("batch_size", batch_size), budget, progress, store)
    with queries.attach_answers():
        seed = int(np.random.default_rng(queries.resolve_seed(random_state)).integers(2**31))
        model = HybridModel(queries, column_player)
        fitter = Fitter(
            model=model,
            pool=pool,
            first_rows=first,
            second_rows=second,
            known_rows=known,
            n_background=against.n_rows,
            reserved=reserved_queries(budget, encoding.n_players, n_certified),
            encoding=encoding,
            budget=budget,
            seed=seed,
            limits=limits,
            n_jobs=n_jobs,
            members=None if callable(predict) else find_members(predict, encoding),
        )

        def compile_fit(result: FitResult) -> BlackBoxFit:
            queries.progress.enter(COMPILING)
            if not compress_background:
                result = replace(result, surrogate=without_compression(result.surrogate))
            codes = result.encoding.encode(against, "background")
            with one_blas_thread():
                engine = result.surrogate.compile(codes, share, explained)
            engine = engine if device == "cpu" else engine.to(device)
            live = LiveModel(model, pool, seed)
            return BlackBoxFit(result, engine, against.names, output_names, n_jobs, (against, share), live)

        try:
            fit = compile_fit(fitter.fit(method))
            if fitter.reserved and fit.method != ENUMERATE:
                queries.progress.enter(CERTIFYING, n_queries=fitter.reserved)
                fit.certify_fit(pool.rows(certified), fitter.reserved)
        except BaseException as error:
            if fitter.has_fits:
                with contextlib.suppress(AttributeError):  # a property of the caller's own
                    error.finish = lambda: wrap(compile_fit(fitter.finish()))  # type: ignore[attr-defined]
                error.add_note(
                    "`.finish()` of this exception makes an explainer of what is fitted already, without a query."
                )
            raise
        warn_if_low(fit.fidelity, min_fidelity, fit.method)
    return fit


def _join(background: Pool, data: Any) -> tuple[Pool, NDArray[np.int64]]:
    """Return background and data rows in one pool, and the rows that stand for those to be explained."""
    if data is None:
        if background.n_rows < 2:
            raise InputError(
                "background has one row, and there is nothing to mix it with: give data= with the rows that "
                "are to be explained, or training rows."
            )
        return background, np.arange(background.n_rows)
    rows = _like(background, data, "data")
    return background.joined(rows), np.arange(background.n_rows, background.n_rows + rows.n_rows)


def _like(background: Pool, given: Any, name: str) -> Pool:
    """Return rows with the columns of the background."""
    rows = Pool(in_order(given, background.names), name)
    rows.check_names(background.names, name)
    if background.is_frame and not rows.is_frame:
        raise InputError(f"{name} is an array, but the background is a data frame: give {name} as one, too.")
    return rows


def _check_limits(n_terms: Any, max_degree: Any, method: str) -> Limits:
    given = {"n_terms": n_terms, "max_degree": max_degree}
    for name, value in given.items():
        if value is not None and method not in ("auto", "swht"):
            raise InputError(
                f"{name} is {truncated_repr(value)}, but method={truncated_repr(method)} does not use it; leave it out."
            )
    return Limits(**{name: check_int(name, value) for name, value in given.items() if value is not None})


def _asked_in(function: Function, kind: type) -> Function:
    return lambda rows: function(kind(rows))


def as_function(model: Any) -> tuple[Function, tuple[str, ...] | None]:
    """Return the function to explain, and the names of its outputs where they are classes.

    A classifier is explained in its probabilities, or, where it has none, in its decision function; any
    other object with ``predict`` in that; a plain function as it is.
    """
    if isinstance(model, type):
        raise UnsupportedModelError(
            f"predict is the class {model.__qualname__} itself; give a function or a fitted object."
        )
    classes = getattr(model, "classes_", None)
    if classes is not None and not len(classes):  # a regressor of CatBoost
        classes = None
    names = None if classes is None else tuple(str(label) for label in classes)
    if descends_from(model, "xgboost", "Booster"):
        return _predict_of_booster(model), None
    if hasattr(model, "predict_proba"):
        return model.predict_proba, names
    if names is not None:  # labels are not numbers that could be shared out
        if hasattr(model, "decision_function"):
            return model.decision_function, names if len(names) > 2 else None
        raise UnsupportedModelError(
            f"predict is a {type(model).__name__}, a classifier that only names a class. Give a function that "
            "returns numbers, such as `lambda rows: model.predict(rows) == label`."
        )
    if hasattr(model, "predict"):
        return model.predict, None
    if not callable(model):
        raise InputError(f"predict is a {type(model).__name__}; give a function, such as `model.predict`.")
    return model, None


def _predict_of_booster(booster: Any) -> Function:
    """Return a function for a Booster of XGBoost, which takes rows in its own type only."""

    def predict(rows: Any) -> Any:
        named = hasattr(rows, "columns")
        types = None if named else booster.feature_types
        matrix = import_module("xgboost").DMatrix(rows, feature_types=types, enable_categorical=True)
        return booster.predict(matrix, validate_features=named)

    return predict
