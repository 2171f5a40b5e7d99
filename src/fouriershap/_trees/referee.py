"""What a live model says by the library that made it: the referee of our reading.

Our own reading of a model cannot tell that it is mistaken; the library can. Explainers ask when they are made,
`fouriershap check` when it is told to.
"""

from __future__ import annotations

import math
import sys
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._trees.ensemble import TreeEnsemble


def library_of(model: Any) -> str | None:
    """The library whose live model this is, by the name of its package; None for anything else (paths, arrays)."""
    packages = (base.__module__.partition(".")[0] for base in type(model).__mro__)
    return next((package for package in packages if package in _ASK), None)


def version_of(library: str) -> str:
    """Name and version of a library, for people."""
    version = getattr(sys.modules.get(library), "__version__", "of an unknown version")
    return f"{'scikit-learn' if library == 'sklearn' else library} {version}"


def own_output(model: Any, rows: Any, ensemble: TreeEnsemble) -> NDArray[np.float64]:
    """Raw output (n_rows, n_outputs), before any link, by the model itself.

    Parameters
    ----------
    model : estimator or booster
        One that `library_of` knows.
    rows : array, lists, sparse matrix or data frame
        In the form that the library takes. Whatever it raises about them passes.
    ensemble : TreeEnsemble
        Our reading, for what the library does not say: how many trees a mean is over.
    """
    raw = _ASK[str(library_of(model))](model, rows, ensemble)
    return np.asarray(raw, dtype=np.float64).reshape(np.shape(rows)[0], -1)


def library_output(model: Any, rows: Any, ensemble: TreeEnsemble) -> NDArray[np.float64]:
    """What a model's own library says of a pandas frame of rows: raw outputs (n_rows, n_outputs), before any link.

    Parameters
    ----------
    model : estimator or booster
        A live model of scikit-learn, XGBoost, LightGBM or CatBoost.
    rows : pandas.DataFrame
        Columns in the model's order; labels may be texts.
    ensemble : TreeEnsemble
        The same model as `read_model` reads it.

    Examples
    --------
    >>> import fouriershap as fs, numpy as np, pandas as pd
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = pd.DataFrame({"a": [0.0, 1.0, 2.0]})
    >>> model = DecisionTreeRegressor().fit(X, [1.0, 2.0, 4.0])
    >>> np.array_equal(fs.library_output(model, X, fs.read_model(model)), fs.read_model(model).predict(X))
    True
    """
    return own_output(model, as_trained(rows, ensemble), ensemble)


def is_forest(model: Any) -> bool:
    """Whether this is one of scikit-learn's forests, which `forest_output` can ask."""
    return any(
        base.__name__ in ("ForestRegressor", "ForestClassifier") and base.__module__.startswith("sklearn.")
        for base in type(model).__mro__
    )


def forest_output(model: Any, rows: NDArray[np.float32], trees: slice) -> NDArray[np.float64]:
    """The part of some of its trees in the raw output (n_rows, n_outputs) of a forest.

    ``predict`` of a forest of 20 trees takes 2 ms, and 12 ms on two threads: longer than explaining a hundred rows.
    """
    asked = model.estimators_[trees]
    total: NDArray[np.float64] = sum([tree.tree_.predict(rows) for tree in asked]).reshape(len(rows), -1)
    if hasattr(model, "classes_") and abs(total[0].sum() / len(asked) - 1) > 1e-6:
        # What the inner trees say is no longer what the forest takes the mean of.
        total = sum([tree.predict_proba(rows) for tree in asked])
    total /= len(model.estimators_)
    return total


def as_trained(frame: Any, ensemble: TreeEnsemble) -> Any:
    """A pandas frame whose columns of labels are categories again: CSV has none, Arrow has them at will."""
    pandas = import_module("pandas")
    made = {}
    for feature, name in enumerate(frame.columns):
        column, labels = frame[name], ensemble.vocabularies.get(feature)
        if labels is None:
            made[name] = column.astype(np.float64)  # null and True, too, are numbers to every library
        elif ensemble.hashed:
            made[name] = column.astype(object).where(column.notna(), "nan").astype(str)
        else:
            unknown = [label for label in column.dropna().unique() if label not in labels]
            made[name] = pandas.Categorical(column.astype(object), categories=[*labels, *unknown])
    return pandas.DataFrame(made, index=frame.index)


def _xgboost(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    xgboost = import_module("xgboost")
    if type(rows).__module__.startswith("polars") and xgboost.__version__.startswith("2."):
        raise TypeError("XGBoost 2 makes sparse matrices of such frames, in which zeros are missing values")
    named = hasattr(rows, "columns")
    if hasattr(model, "get_booster"):
        return model.predict(rows, output_margin=True, validate_features=named)
    types = None if named else model.feature_types
    matrix = xgboost.DMatrix(rows, feature_types=types, enable_categorical=True, nthread=1)
    return model.predict(matrix, output_margin=True, validate_features=named)


def _lightgbm(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    if hasattr(rows, "columns") and not hasattr(rows, "iloc"):
        raise TypeError("LightGBM prints its complaints about labels in other frames than those of pandas")
    booster = model
    if hasattr(model, "booster_"):
        # As estimators do, which would warn about arrays where they were trained on frames.
        booster = model.booster_
        rows = rows.astype(np.float64) if getattr(rows, "dtype", None) == np.dtype(object) else rows
    raw = booster.predict(rows, raw_score=True, num_threads=1)
    # A forest predicts a mean, but its raw scores are sums.
    return raw / (ensemble.n_trees // ensemble.n_outputs) if ensemble.kind == "lightgbm rf" else raw


def _catboost(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    return model.predict(rows, prediction_type="RawFormulaVal", thread_count=1)


def _sklearn(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    rows = _with_names(rows, getattr(model, "feature_names_in_", None))
    if any(base.__name__ == "IsolationForest" for base in type(model).__mro__):
        # score = -2 ** (-mean path length / c): solved for the mean path length.
        return -np.log2(-model.score_samples(rows)) * _usual_path(model._max_samples)
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    predicted = model.predict(rows)
    return np.log(predicted) if getattr(model, "loss", "") in ("poisson", "gamma") else predicted


def _with_names(rows: Any, names: Any) -> Any:
    """Rows with names where the model has some, and without where not: scikit-learn warns otherwise."""
    if type(rows).__module__.startswith("pyarrow"):
        raise TypeError(
            "scikit-learn takes null for a label, and not for a missing value, in tables of pyarrow"
        )
    if hasattr(rows, "columns"):
        return rows if names is not None else rows.to_numpy(dtype=np.float64)
    if names is None:
        return rows
    return import_module("pandas").DataFrame(rows, columns=names)


def _usual_path(n: int) -> float:
    """Mean path length to a leaf of a random tree on n rows."""
    return 2 * (math.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n if n > 2 else float(n == 2)


_ASK = {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost, "sklearn": _sklearn}
