"""The model itself is the referee of our reading: what its library says of rows, compared with what we read.

Our own reading of a model cannot tell that it is mistaken; the library can. Explainers ask when they are made,
`fouriershap check` when it is told to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FourierShapError, UnsupportedModelError
from fouriershap._explainers.ask_formats import ASK_FORMATS
from fouriershap._explainers.referee_responses import response_of
from fouriershap._rows.frames import as_frame, densified, is_sparse
from fouriershap._rows.opening import Opened, open_model
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._trees.codes import Codebook
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.readers.sklearn import average_path_length
from fouriershap._trees.rows import to_rows

CHECKS = ("model", "off")
N_ROWS = 32
_FEWEST_TREES, _NODES_PER_TREE = 4, 200
_UNKNOWN_LABEL = "a label that no model knows"


class _Question(NamedTuple):
    """Rows as the library takes them, the same rows as we do, and what they are called in messages."""

    asked: Any
    rows: NDArray[Any]
    name: str


def check_reading(opened: Opened, engine: TreeEngine, background: Any, only: int | None = None) -> bool:
    """Compare the outputs of our reading with the model's own, on some rows; whether its library answered any.

    Nothing is compared where the model is no live one of a library (a path, a `TreeEnsemble`). Rows are those of the
    ``background``, as the model takes them; where there is none, or the library refuses it, rows at the thresholds of
    the trees. Answers that differ by more than rounding are an `UnsupportedModelError`. ``only``: the one output of
    the model that was read.
    """
    model = opened.final
    library = library_of(model)
    if library is None:
        return False
    # Of the model inside, whatever a wrapper does to what it predicts.
    read = engine.ensemble if opened.response == "same" else engine.ensemble.replace(objective="regression")
    response = response_of(model) if library == "sklearn" else None
    if response is not None and only is not None:
        return False  # what it predicts needs all outputs
    by_trees = response is None and is_forest(model)
    trees = _some_trees(engine.ensemble) if by_trees else slice(None)
    for question in _questions(library, engine, background):
        try:
            if by_trees:
                theirs = forest_output(model, question.rows, trees)
            elif response is not None:
                theirs = response.asked(model, _with_names(question.asked, _names_of(model)))
            else:
                theirs = own_output(model, question.asked, read)
        except Exception:  # noqa: BLE001, a library that takes no such rows may say so in any way
            continue
        theirs = theirs if only is None else theirs[:, [only]]
        ours = engine.predict(question.rows, n_jobs=1, trees=trees)
        if response is not None:
            ours = response.computed(model, ours, read)
        _compare(ours, theirs, engine.ensemble, question.name, library)
        return True
    return False


def _some_trees(e: TreeEnsemble) -> slice:
    """Trees of a forest that are asked: all, unless they are so small that explaining costs little more than asking.

    They are all read alike, so that a few of them show a change as well.
    """
    n_asked = min(e.n_trees, max(_FEWEST_TREES, e.n_nodes // _NODES_PER_TREE))
    step = e.n_trees // n_asked
    return slice(0, step * n_asked, step)


def _questions(library: str, engine: TreeEngine, background: Any) -> Iterator[_Question]:
    """Rows to ask about, those that show most first."""
    e = engine.ensemble
    if engine.background.rows is not None and len(engine.background.rows):
        name = "row {} of the background"
        step = max(1, len(engine.background.rows) // N_ROWS)
        rows = engine.background.rows[::step][:N_ROWS]
        if library == "sklearn" and not e.vocabularies:
            yield _Question(rows, rows, name)  # scikit-learn casts rows to these very numbers
        else:
            given = _every(background, step)
            yield _Question(given, rows, name)
            yield from _labelled(given, e, name)
    for missing in (True, False) if e.accepts_missing else (False,):
        name = "row {} of those made at the thresholds of its trees"
        rows = rows_at_thresholds(engine.model.coded.book, missing)
        if e.vocabularies and e.numbers_are_labels:
            yield from _labelled(_with_labels(rows, e), e, name)
        else:
            yield _Question(rows, e.clean_rows(rows), name)


def _every(X: Any, step: int) -> Any:
    """Every so many rows of whatever the caller has, in its own form."""
    if isinstance(X, list | tuple):
        return X[::step][:N_ROWS]
    if is_sparse(X):
        return X.tocsr()[::step][:N_ROWS]
    if hasattr(X, "iloc"):
        return X.iloc[::step].iloc[:N_ROWS]
    if np.ma.isMaskedArray(X):
        return np.ma.filled(X.astype(np.float64), np.nan)[::step][:N_ROWS]
    frame = as_frame(X)
    if frame is None:
        return np.asarray(X)[::step][:N_ROWS]
    return frame[list(range(0, len(frame), step))[:N_ROWS]].to_native()


def _labelled(X: Any, e: TreeEnsemble, name: str) -> Iterator[_Question]:
    """The rows as a pandas frame with the types of the training data, where pandas is installed."""
    try:
        import pandas as pd

        frame = as_frame(X)
        columns = e.feature_names or [str(f) for f in range(e.n_features)]
        made = pd.DataFrame(densified(X, e.absent_is_missing)) if frame is None else frame.to_pandas()
        trained = as_trained(made.set_axis(list(columns), axis=1), e)
        yield _Question(trained, to_rows(trained, e), name)
    except (ImportError, FourierShapError, ValueError, TypeError):
        return


def rows_at_thresholds(book: Codebook, missing: bool) -> NDArray[Any]:
    """Rows (32, n_features) of thresholds, their neighbours on both sides and, if wanted, missing values.

    The same for the same trees. Categories are codes that some split names.
    """
    generator = np.random.default_rng(0)
    n_levels = np.diff(book.start)
    levels = np.append(book.levels, book.dtype.type(0))  # the last is for features that no split tests
    pick = book.start[:-1] + generator.integers(0, np.maximum(n_levels, 1), (N_ROWS, book.n_features))
    level = levels[np.where(n_levels > 0, pick, len(book.levels))]
    below, above = (np.nextafter(level, book.dtype.type(end)) for end in ("-inf", "inf"))
    kind = generator.integers(0, 4 if missing else 3, level.shape)
    kind = np.where(book.categorical & (kind < 3), 0, kind)  # a category has no neighbours
    rows = np.choose(kind, [level, below, above, book.dtype.type("nan")])
    finite: NDArray[Any] = np.where(np.isinf(rows), book.dtype.type(0), rows)
    return finite


def _with_labels(rows: NDArray[Any], e: TreeEnsemble) -> NDArray[Any]:
    """Codes of categories as the labels that they stand for."""
    labelled = rows.astype(object)
    for feature, labels in e.vocabularies.items():
        codes = rows[:, feature]
        if e.hashed:  # CatBoost keeps no labels
            labelled[:, feature] = _UNKNOWN_LABEL
        else:
            labelled[:, feature] = [None if np.isnan(code) else labels[int(code)] for code in codes]
    return labelled


def _compare(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], e: TreeEnsemble, name: str, library: str
) -> None:
    if ours.shape != theirs.shape:
        raise UnsupportedModelError(
            f"the model is not read right: {version_of(library)} itself gives {theirs.shape[1]} outputs, our reading "
            f"of its trees {ours.shape[1]}. {WAYS_OUT}"
        )
    with np.errstate(invalid="ignore"):
        gap = np.abs(ours - theirs)
    # No output is larger than all leaves together: this is less than `rounding` allows, and takes a tenth of its time.
    if gap.max() < _share(e) * np.abs(ours).max():  # never so where something is infinite or missing
        return
    allowed = rounding(e)
    wrong = (gap > allowed) | (np.isnan(ours) != np.isnan(theirs))
    wrong &= ~np.isinf(theirs)  # too large for the library's precision, not for ours
    if not wrong.any():
        return
    row, output = np.unravel_index(np.where(wrong, np.nan_to_num(gap, nan=np.inf), -1.0).argmax(), gap.shape)
    raise UnsupportedModelError(
        f"the model is not read right: for {name.format(row)} (output {output}) {version_of(library)} itself says "
        f"{theirs[row, output]:.9g}, our reading of its trees {ours[row, output]:.9g}: a difference of "
        f"{gap[row, output]:.3g}, where rounding explains {allowed:.1g}. SHAP values of that reading would be wrong, "
        f"so there are none. {WAYS_OUT}"
    )


WAYS_OUT = (
    "Most likely this version of the library stores models, or takes rows, in a way that is new to us: update "
    "fouriershap, or use an older version of the library; we would like to hear of it. Until then "
    "fs.BlackBoxExplainer(model.predict, background) explains the model without reading it. check='off' skips "
    "this comparison."
)


def rounding(e: TreeEnsemble) -> float:
    """How far apart two right sums of the leaves of a row can be, in the precision of the library.

    No order of adding up can lose more than ``n_trees`` units in the last place of the sum of all sizes. On top of
    that come values that libraries print, scale, or turn into another output and back.
    """
    largest = np.maximum.reduceat(np.abs(e.values).max(axis=1), e.roots).sum()
    scale = float(largest + np.abs(e.base).max())
    share = (e.n_trees + 8) * float(np.finfo(e.computes_in).eps)
    return max(share, _share(e)) * scale + 1e-12


def _share(e: TreeEnsemble) -> float:
    """The least that `rounding` allows, as a share of all leaves together."""
    return 1e-6 if e.computes_in == np.float32 else 1e-9


def library_of(model: Any) -> str | None:
    """The library whose live model this is, by the name of its package; None for anything else (paths, arrays)."""
    packages = (base.__module__.partition(".")[0] for base in type(model).__mro__)
    return next((package for package in packages if package in _ASK), None)


def version_of(library: str) -> str:
    """Name and version of a library, for people."""
    version = getattr(sys.modules.get(library), "__version__", "of an unknown version")
    return f"{'scikit-learn' if library == 'sklearn' else library} {version}"


def own_output(model: Any, rows: Any, ensemble: TreeEnsemble) -> NDArray[np.float64]:
    """Raw output (n_rows, n_outputs), before any link, by the model itself, one that `library_of` knows.

    ``rows`` are in the form that the library takes; whatever it raises about them passes. Our reading tells what the
    library does not say: how many trees a mean is over.
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
    inside = open_model(model).final
    if response_of(inside) is not None:
        raise UnsupportedModelError(
            f"a {type(inside).__name__} does not tell its raw output, only what it predicts from it."
        )
    return own_output(inside, as_trained(rows, ensemble), ensemble)


def is_forest(model: Any) -> bool:
    """Whether this is one of scikit-learn's forests, which `forest_output` can ask."""
    return library_of(model) == "sklearn" and any(
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
    rows = _with_names(rows, _names_of(model))
    if any(base.__name__ == "IsolationForest" for base in type(model).__mro__):
        # score = -2 ** (-mean path length / c): solved for the mean path length.
        return -np.log2(-model.score_samples(rows)) * average_path_length(np.array([model._max_samples]))
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    predicted = model.predict(rows)
    return np.log(predicted) if ensemble.objective == "log" else predicted


def _names_of(model: Any) -> Any:
    return getattr(model, "feature_names_in_", None)


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


_ASK = {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost, "sklearn": _sklearn} | ASK_FORMATS
