"""Rows in forms that only their libraries know: what XGBoost and CatBoost make of rows."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from numpy.typing import NDArray

from fouriershap._base.checks import descends_from
from fouriershap._base.errors import InputError
from fouriershap._base.short import reason
from fouriershap._rows.frames import densified


def given_back(X: Any, name: str) -> Any:
    """Rows of a ``xgboost.DMatrix`` or a ``catboost.Pool`` as a matrix, or a frame where they have names."""
    if descends_from(X, "xgboost", "DMatrix"):
        if "c" in (X.feature_types or ()):
            raise InputError(
                f"{name} is a DMatrix with categories, of which it keeps codes, and not their labels. "
                "Give the rows that it was made from."
            )
        cells = densified(_asked(X.get_data, "DMatrix", name), absent_is_missing=True)
        return _with_names(cells, X.feature_names)
    if descends_from(X, "catboost", "Pool"):
        names = X.get_feature_names()
        made_up = not any(names) or names == [str(i) for i in range(len(names))]
        return _with_names(_asked(X.get_features, "Pool", name), None if made_up else names)
    return X


def _with_names(cells: NDArray[Any], names: Any) -> Any:
    """A frame, so that names are checked; the array alone where there are no names, or no library for frames."""
    if names is None or find_spec("pandas") is None:
        return cells
    return import_module("pandas").DataFrame(cells, columns=list(names))


def _asked(get: Any, kind: str, name: str) -> Any:
    try:
        return get()
    except Exception as error:  # libraries have errors of their own
        raise InputError(
            f"{name} is a {kind} that does not give its rows back ({reason(error)}). Give those that it was made from."
        ) from error
