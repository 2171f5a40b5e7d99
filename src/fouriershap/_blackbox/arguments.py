"""Arguments of `BlackBoxExplainer`, checked."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.asking.file_store import make_store
from fouriershap._base.asking.store import Given, Store
from fouriershap._base.checks import check_whole, descends_from
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.short import short
from fouriershap._blackbox.candidates.swht import Limits
from fouriershap._rows.frames import in_order, is_sparse
from fouriershap._rows.levels import LABEL, Encoding
from fouriershap._rows.pool import Pool

Function = Callable[[Any], Any]


def join(background: Pool, data: Any) -> tuple[Pool, NDArray[np.int64]]:
    """Background and data rows in one pool, and the rows that stand for what will be explained."""
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
    """Rows with the columns of the background."""
    rows = Pool(in_order(given, background.names), name)
    rows.check_names(background.names, name)
    if background.is_frame and not rows.is_frame:
        raise InputError(f"{name} is an array, but the background is a data frame: give {name} as one, too.")
    return rows


def with_known(pool: Pool, background: Pool, known: Any) -> tuple[Pool, NDArray[np.int64]]:
    """The pool with rows that will be explained at its end, and where these are."""
    if known is None:
        return pool, np.arange(0)
    rows = _like(background, known, "rows")
    return pool.joined(rows), np.arange(pool.n_rows, pool.n_rows + rows.n_rows)


def check_limits(n_terms: Any, max_degree: Any, method: str) -> Limits:
    """What the caller says about the terms of "swht"; other methods have none."""
    given = {"n_terms": n_terms, "max_degree": max_degree}
    for name, value in given.items():
        if value is not None and method not in ("auto", "swht"):
            raise InputError(
                f"{name} is {short(value)}, but method={short(method)} has no use for it; leave it out."
            )
    return Limits(**{name: check_whole(name, value) for name, value in given.items() if value is not None})


def answer_store(answers: Given, encoding: Encoding, names: tuple[str, ...]) -> Store | None:
    """Where answers about rows of these columns are kept."""
    store = make_store(answers, names)
    if store is not None:
        store.check_labels({f.name: f.levels for f in encoding.features if f.kind == LABEL})
    return store


def as_function(model: Any) -> tuple[Function, tuple[str, ...] | None]:
    """The function to explain, and the names of its outputs where they are classes.

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
    if names is not None:  # labels are no quantity that could be shared out
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
    """A Booster of XGBoost for rows as everybody has them; it takes them in its own form alone."""

    def predict(rows: Any) -> Any:
        named = hasattr(rows, "columns")
        types = None if named else booster.feature_types
        matrix = import_module("xgboost").DMatrix(rows, feature_types=types, enable_categorical=True)
        return booster.predict(matrix, validate_features=named)

    return predict


def asked_in(function: Function, background: Any) -> Function:
    """The function, for rows that are dense here, but in which the caller's own are sparse."""
    if not is_sparse(background):
        return function
    kind = type(background)
    return lambda rows: function(kind(rows))
