"""Our reading of a model against the model itself, once, when an explainer is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FourierShapError, UnsupportedModelError
from fouriershap._rows.frames import as_frame, densified, is_sparse
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._trees.codes import Codebook
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.referee import (
    as_trained,
    forest_output,
    is_forest,
    library_of,
    own_output,
    version_of,
)
from fouriershap._trees.rows import to_rows

CHECKS = ("model", "off")
N_ROWS = 32
_FEWEST_TREES, _NODES_PER_TREE = 4, 200
_EXACT = 1e-14  # a share of the outputs that needs no closer look
_UNKNOWN_LABEL = "a label that no model knows"


class _Question(NamedTuple):
    """Rows as the library takes them, the same rows as we do, and what they are called in messages."""

    asked: Any
    rows: NDArray[Any]
    name: str


def check_reading(model: Any, engine: TreeEngine, background: Any) -> bool:
    """Compare the outputs of our reading with the model's own, on some rows.

    Parameters
    ----------
    model : object
        What was read; where it is no live model of a library (a path, a `TreeEnsemble`), nothing is compared.
    engine : TreeEngine
        The reading, and its background as the trees take it.
    background : array or frame or None
        The background as the model takes it. Where there is none, or the library refuses it, rows at the thresholds
        of the trees stand in.

    Returns
    -------
    bool
        Whether the library answered any of these rows.

    Raises
    ------
    UnsupportedModelError
        The answers differ by more than rounding.
    """
    library = library_of(model)
    if library is None:
        return False
    by_trees = is_forest(model)
    trees = _some_trees(engine.ensemble) if by_trees else slice(None)
    for question in _questions(library, engine, background):
        try:
            if by_trees:
                theirs = forest_output(model, question.rows, trees)
            else:
                theirs = own_output(model, question.asked, engine.ensemble)
        except Exception:  # noqa: BLE001, a library that takes no such rows may say so in any way
            continue
        ours = engine.predict(question.rows, n_jobs=1, trees=trees)
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
            f"of its trees {ours.shape[1]}. {_WAYS_OUT}"
        )
    with np.errstate(invalid="ignore"):
        gap = ours - theirs
    if np.vdot(gap, gap) <= _EXACT**2 * np.vdot(theirs, theirs):
        return
    gap, allowed = np.abs(gap), rounding(e)
    wrong = (gap > allowed) | (np.isnan(ours) != np.isnan(theirs))
    wrong &= ~np.isinf(theirs)  # too large for the library's precision, not for ours
    if not wrong.any():
        return
    row, output = np.unravel_index(np.where(wrong, np.nan_to_num(gap, nan=np.inf), -1.0).argmax(), gap.shape)
    raise UnsupportedModelError(
        f"the model is not read right: for {name.format(row)} (output {output}) {version_of(library)} itself says "
        f"{theirs[row, output]:.9g}, our reading of its trees {ours[row, output]:.9g}: a difference of "
        f"{gap[row, output]:.3g}, where rounding explains {allowed:.1g}. SHAP values of that reading would be wrong, "
        f"so there are none. {_WAYS_OUT}"
    )


_WAYS_OUT = (
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
    is_single = e.computes_in == np.float32
    share = (e.n_trees + 8) * float(np.finfo(e.computes_in).eps)
    return max(share, 1e-6 if is_single else 1e-9) * scale + 1e-12
