"""Arguments of `BlackBoxExplainer`, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.asking.file_store import make_store
from fouriershap._base.asking.store import Given, Store
from fouriershap._base.errors import InputError
from fouriershap._base.short import short
from fouriershap._blackbox.candidates.swht import Limits
from fouriershap._rows.levels import LABEL, Encoding
from fouriershap._rows.pool import Pool


def join(background: Pool, data: Any) -> tuple[Pool, NDArray[np.int64]]:
    """Background and data rows in one pool, and the rows that stand for what will be explained."""
    if data is None:
        if background.n_rows < 2:
            raise InputError(
                "background has one row, and there is nothing to mix it with: give data= with the rows that "
                "are to be explained, or training rows."
            )
        return background, np.arange(background.n_rows)
    rows = Pool(data, "data")
    background.check_like(rows, "data")
    return background.joined(rows), np.arange(background.n_rows, background.n_rows + rows.n_rows)


def check_limits(n_terms: Any, max_degree: Any, method: str) -> Limits:
    """What the caller says about the terms of "swht"; other methods have none."""
    given = {"n_terms": n_terms, "max_degree": max_degree}
    for name, value in given.items():
        if value is not None and method not in ("auto", "swht"):
            raise InputError(
                f"{name} is {short(value)}, but method={short(method)} has no use for it; leave it out."
            )
    return Limits(**{name: check_whole(name, value) for name, value in given.items() if value is not None})


def check_function(predict: Any) -> None:
    if not callable(predict):
        raise InputError(f"predict is a {type(predict).__name__}; give a function, such as `model.predict`.")


def answer_store(answers: Given, encoding: Encoding, names: tuple[str, ...]) -> Store | None:
    """Where answers about rows of these columns are kept."""
    store = make_store(answers, names)
    if store is not None:
        store.check_labels({f.name: f.levels for f in encoding.features if f.kind == LABEL})
    return store


def check_whole(name: str, value: Any) -> int:
    """``value`` as an int if it is a whole number >= 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} is {short(value)}; give a whole number >= 1.")
    return int(value)
