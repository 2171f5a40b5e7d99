"""The model check: our copy of a model against the live model, on some rows.

A reader cannot tell that it is mistaken; the library can. Explainers ask it when they are made, and
``fouriershap check`` when it is told to.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FourierShapError, UnsupportedModelError
from fouriershap._libraries.reading import Answer, Floats, Question, Reading
from fouriershap._rows.frames import as_frame, is_sparse
from fouriershap._trees.ensemble import TreeEnsemble, find_leaves
from fouriershap._waves.products import Products

N_ROWS = 32
_UNKNOWN_LABEL = "a label that no model knows"
_ADVICE = (
    "Most likely this version of the library stores models, or reads rows, in a new way: update fouriershap, use an "
    "older version of the library, and please report it. Until then fs.BlackBoxExplainer(model.predict, background) "
    "explains the model without reading it. check=False skips this comparison."
)


def check_model(reading: Reading, rows: NDArray[Any] | None = None, given: Any = None) -> bool:
    """Compare our copy of a model with the live model on some rows.

    Parameters
    ----------
    reading : Reading
        The whole model, with all its outputs and trees.
    rows : (n_rows, n_features) array, optional
        The background, encoded by ``reading.rules``. Where there is none, or the library refuses it, rows at the
        thresholds of the trees are compared.
    given : array or data frame, optional
        The same background as the model takes it.

    Returns
    -------
    bool
        Whether the library answered. It is not asked where there is no live model (a path, a `TreeEnsemble`).

    Raises
    ------
    UnsupportedModelError
        Outputs differ by more than rounding.
    """
    library = reading.library
    if reading.model is None or library is None or library.ask is None:
        return False
    for question in _questions(reading, rows, given):
        try:
            answers = list(library.ask(reading, question))
        except Exception:  # noqa: BLE001, a library that does not take such rows may say so in any way
            continue
        for answer in answers:
            theirs = np.asarray(answer.outputs, dtype=np.float64).reshape(len(question.rows), -1)
            ours = _predict(reading, question.rows, answer)
            _compare(ours, theirs, reading, question)
        if answers:
            return True
    return False


def _predict(reading: Reading, rows: NDArray[Any], answer: Answer) -> Floats:
    if isinstance(reading.representation, TreeEnsemble):
        e = reading.representation
        raw = e.sum_leaves(find_leaves(e, rows), answer.trees)
    else:
        raw = reading.representation.predict(rows)
    if answer.transform is None:
        return raw
    with np.errstate(over="ignore"):
        return answer.transform(raw)


def _questions(reading: Reading, rows: NDArray[Any] | None, given: Any) -> Iterator[Question]:
    """Yield rows to ask about, those that show most first."""
    rules, library = reading.rules, reading.library
    if rows is not None and len(rows):
        name, step = "row {} of the background", max(1, len(rows) // N_ROWS)
        some = rows[::step][:N_ROWS]
        if rules.finite_only or (library is not None and library.cast_alike and not rules.vocabularies):
            yield Question(some, some, name)
        else:
            asked = _every(given, step)
            yield Question(asked, some, name)
            yield from _labelled(asked, reading, name)
    if not reading.is_trees:
        return
    for missing in (True, False) if rules.accepts_missing else (False,):
        name = "row {} of those made at the thresholds of its trees"
        made = rows_at_thresholds(reading.trees, missing)
        if rules.vocabularies and rules.numbers_are_labels:
            yield from _labelled(_with_labels(made, reading), reading, name)
        else:
            yield Question(made, rules.clean(made), name)


def _every(X: Any, step: int) -> Any:
    """Return every ``step``-th row in the caller's own form."""
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


def _labelled(X: Any, reading: Reading, name: str) -> Iterator[Question]:
    """Yield the rows as a pandas frame with the types of the training data, if pandas is installed."""
    try:
        pandas, frame = import_module("pandas"), as_frame(X)
        columns = reading.feature_names or [str(f) for f in range(reading.n_features)]
        made = pandas.DataFrame(reading.rules.densify(X)) if frame is None else frame.to_pandas()
        trained = reading.rules.as_trained(made.set_axis(list(columns), axis=1))
        yield Question(trained, reading.rules.encode(trained), name)
    except (ImportError, FourierShapError, ValueError, TypeError):
        return


def rows_at_thresholds(e: TreeEnsemble, missing: bool) -> NDArray[Any]:
    """Return rows (32, n_features) of thresholds, their neighbours on both sides and, if wanted, missing values.

    The same for the same trees. Categories are codes that some split names.
    """
    generator = np.random.default_rng(0)
    inner = np.flatnonzero((e.feature >= 0) & ~np.isnan(e.threshold))
    order = inner[np.argsort(e.feature[inner], kind="stable")]
    start = np.searchsorted(e.feature[order], np.arange(e.n_features + 1))
    level = e.threshold[order].astype(e.dtype)
    for place in np.flatnonzero(e.category_set[order] >= 0):
        s = e.category_set[order[place]]
        named = e.set_categories[e.set_start[s] : e.set_start[s + 1]]
        level[place] = generator.choice(named) if len(named) else 0
    n_levels = np.diff(start)
    pick = start[:-1] + generator.integers(0, np.maximum(n_levels, 1), (N_ROWS, e.n_features))
    level = np.append(level, e.dtype.type(0))[np.where(n_levels > 0, pick, len(level))]
    below, above = (np.nextafter(level, e.dtype.type(end)) for end in ("-inf", "inf"))
    kind = generator.integers(0, 4 if missing else 3, level.shape)
    kind = np.where(e.is_categorical & (kind < 3), 0, kind)  # a category has no neighbours
    rows = np.choose(kind, [level, below, above, e.dtype.type("nan")])
    finite: NDArray[Any] = np.where(np.isinf(rows), e.dtype.type(0), rows)
    return finite


def _with_labels(rows: NDArray[Any], reading: Reading) -> NDArray[Any]:
    """Return rows with labels in place of the codes of categories."""
    labelled = rows.astype(object)
    for feature, labels in reading.rules.vocabularies.items():
        if reading.rules.hashed:  # which keeps no labels
            labelled[:, feature] = _UNKNOWN_LABEL
        else:
            codes = rows[:, feature]
            labelled[:, feature] = [None if np.isnan(code) else labels[int(code)] for code in codes]
    return labelled


def _compare(ours: Floats, theirs: Floats, reading: Reading, question: Question) -> None:
    assert reading.library is not None
    version = reading.library.version
    if ours.shape != theirs.shape:
        raise UnsupportedModelError(
            f"fouriershap's copy of the model ({reading.kind}) disagrees with {version}, which gives "
            f"{theirs.shape[1]} outputs, the copy {ours.shape[1]}. {_ADVICE}"
        )
    with np.errstate(invalid="ignore"):
        gap = np.abs(ours - theirs)
    # No output is larger than all leaves together: less than `rounding` allows, in a tenth of its time.
    if gap.max(initial=0.0) < _share(reading) * np.abs(ours).max(initial=0.0):  # false for NaN
        return
    allowed = rounding(reading, question.rows, theirs)
    wrong = ((gap > allowed) | (np.isnan(ours) != np.isnan(theirs))) & ~np.isinf(theirs)  # which may overflow
    if not wrong.any():
        return
    row, output = np.unravel_index(np.where(wrong, np.nan_to_num(gap, nan=np.inf), -1.0).argmax(), gap.shape)
    raise UnsupportedModelError(
        f"fouriershap's copy of the model ({reading.kind}) disagrees with {version} on {question.name.format(row)} "
        f"(output {output}): {version} gives {theirs[row, output]:.9g}, the copy {ours[row, output]:.9g}, a difference "
        f"of {gap[row, output]:.3g} where rounding explains {allowed:.1g}. SHAP values of the copy would be wrong. "
        f"{_ADVICE}"
    )


def rounding(reading: Reading, rows: NDArray[Any], theirs: Floats) -> float:
    """Return how far apart two right sums can be, in the precision of the library.

    No order of adding up loses more than ``n_trees`` units in the last place of the sum of all sizes. On top of that
    come values that libraries print, scale, or turn into another output and back.
    """
    if isinstance(reading.representation, TreeEnsemble):
        e = reading.representation
        largest = np.maximum.reduceat(np.abs(e.values).max(axis=1), e.roots).sum()
        share = max((e.n_trees + 8) * float(np.finfo(reading.computes_in).eps), _share(reading))
        return share * float(largest + np.abs(e.base).max()) + 1e-12
    size = _size(reading.representation, rows) + float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0))
    return (1e-5 if reading.computes_in == np.float32 else 1e-9) * size + 1e-12


def _share(reading: Reading) -> float:
    """Return the least that `rounding` allows, as a share of all leaves together."""
    return 1e-6 if reading.computes_in == np.float32 else 1e-9


def _size(model: Products, rows: NDArray[Any]) -> float:
    """Return the sum of the sizes of all terms."""
    size = (np.abs(rows) @ np.abs(model.linear)).max(initial=0.0) + np.abs(model.constant).max()
    for part in model.terms:
        heights = np.abs(part.coefficients).sum(axis=(0, 2)).max()
        largest = 1.0
        if part.name == "monomials":
            largest = float(np.abs(rows).max(initial=1.0)) ** float(part.powers.sum(axis=1).max())  # type: ignore[attr-defined]
        size += heights * largest
    if model.ridges is not None:
        size += np.abs(model.ridges.weights).sum()
    return float(size)
