"""The model check: our copy of a model against the live model, on some rows.

A reader cannot tell that it is mistaken; the library can. Explainers ask it about the caller's own rows, in the
caller's own form, and ``fouriershap check`` when it is told to.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.messages import truncated_text
from fouriershap._libraries.reading import Answer, CannotAskError, Floats, Question, Reading
from fouriershap._rows.frames import (
    as_frame,
    column_of,
    column_types,
    dtype_holds_labels,
    is_sparse,
    take_rows,
)
from fouriershap._rows.labels import UNKNOWN
from fouriershap._trees.ensemble import TreeEnsemble, find_leaves
from fouriershap._trees.linear import LinearTrees
from fouriershap._waves.products import Products

N_ROWS = 32
_UNKNOWN_LABEL = "a label that no model knows"
_ADVICE = (
    "Most likely this version of the library stores models, or reads rows, in a new way: update fouriershap, use an "
    "older version of the library, and please report it. Until then fs.BlackBoxExplainer(model.predict, background) "
    "explains the model without reading it. check=False skips this comparison."
)


class ModelCheck:
    """Asks a live model about rows in each form in which they first come, and compares our copy with its answers.

    A form is a container, the types of its columns, and the kinds of labels in them. What the library refuses is an
    error, with its reason. Rows in a form that was seen before cost a look at their types.

    Attributes
    ----------
    answered : bool
        Whether the library answered some of the caller's rows.
    """

    def __init__(self, reading: Reading) -> None:
        self.answered = False
        self._reading = reading
        self._seen: set[Hashable] = set()

    def __call__(self, X: Any, rows: NDArray[Any], name: str, is_stream: bool = False) -> None:
        """Compare some rows: ``X`` as the caller gave them, ``rows`` as our copy reads them; errors call them ``name``.

        ``is_stream`` as for `InputAdapter.encode`.

        Raises
        ------
        InputError
            The library refuses them.
        UnsupportedModelError
            Outputs differ by more than rounding.
        """
        kinds = [_kinds_of(X, rows, f) for f in self._reading.rules.vocabularies]
        form = is_stream, form_of(X, tuple(found for found, _ in kinds))
        if form in self._seen or not len(rows):
            return
        positions = _telling(rows, [first for _, first in kinds])
        some = take_rows(X, positions)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the caller's own call of the library would say the same
                where = f"row {{}} of {name if name == 'X' else f'the {name}'}"
                self._ask(some, rows[positions], where, positions, is_stream)
        except CannotAskError:
            pass
        else:
            self.answered = True
        self._seen.add(form)

    def ask_made_up_rows(self) -> None:
        """Compare rows at the thresholds of the trees, where there is no background."""
        reading, rules = self._reading, self._reading.rules
        name = "row {} of those made at the thresholds of its trees"
        for missing in (True, False) if rules.accepts_missing else (False,):
            made = rows_at_thresholds(reading.trees, missing)
            try:
                if rules.vocabularies:
                    frame = _as_frame(_with_labels(made, reading), reading)
                    return self._compare(frame, rules.of_streams().encode(frame), name)
                return self._compare(made, rules.clean(made), name)
            except UnsupportedModelError:
                raise
            except Exception:  # noqa: BLE001, a library may refuse such made-up rows
                continue
        return None

    def _ask(
        self, X: Any, rows: NDArray[Any], name: str, positions: NDArray[np.intp], is_stream: bool
    ) -> None:
        library = self._reading.library
        assert library is not None
        try:
            asked = self._in_known_form(X, rows, is_stream)
            try:
                self._compare(asked, rows, name, positions)
            except (UnsupportedModelError, CannotAskError, ImportError, MemoryError):
                raise
            except Exception:
                frame = as_frame(X) if asked is X else None
                if frame is None or frame.implementation.is_pandas():
                    raise
                # Older versions of the library do not know this kind of frame; its columns hold no labels.
                self._compare(frame.to_pandas(), rows, name, positions)
        except (CannotAskError, ImportError) as error:
            raise CannotAskError from error
        except (UnsupportedModelError, MemoryError):
            raise
        except Exception as error:
            reason = truncated_text(" ".join(str(error).partition("Stack trace")[0].split()))  # of XGBoost
            raise InputError(
                f"{library.version} refuses rows such as {name.format(positions[0])} "
                f"({type(error).__name__}: {reason}). Give them as its own predict takes them; check=False "
                "explains them without asking."
            ) from error

    def _in_known_form(self, X: Any, rows: NDArray[Any], is_stream: bool) -> Any:
        """Return rows as they are, but frames that the library does not know in the form of its training data.

        So, too, where a frame holds labels, which each library takes from other frames than those of pandas in a way of
        its own, and some only by crashing.
        """
        library, rules = self._reading.library, self._reading.rules
        frame = None if isinstance(X, np.ndarray) else as_frame(X)
        assert library is not None
        if frame is None:
            return X
        if not (is_stream and rules.vocabularies):
            known = frame.implementation.name.lower() in library.frames
            if frame.implementation.is_pandas() or (
                known and not any(dtype_holds_labels(dtype) for dtype in frame.schema.values())
            ):
                return X
        trained = rules.as_trained(frame.to_pandas())
        try:
            same = np.array_equal(rules.encode(trained), rows, equal_nan=True)
        except InputError:
            same = False
        if not same:
            raise CannotAskError  # numbers that are codes
        return trained

    def _compare(
        self, asked: Any, rows: NDArray[Any], name: str, positions: NDArray[np.intp] | None = None
    ) -> None:
        reading = self._reading
        assert reading.library is not None and reading.library.ask is not None
        question = Question(asked, rows, name)
        answers = list(reading.library.ask(reading, question))
        for answer in answers:
            theirs = np.asarray(answer.outputs, dtype=np.float64).reshape(len(rows), -1)
            _compare(_predict(reading, rows, answer), theirs, reading, question, positions)
        if not answers:
            raise CannotAskError


def model_check(reading: Reading) -> ModelCheck | None:
    """Return what compares our copy of a model with the live model; None where there is none to ask."""
    library = reading.library
    return None if reading.model is None or library is None or library.ask is None else ModelCheck(reading)


def form_of(X: Any, labels: tuple[Hashable, ...]) -> Hashable:
    """Return the form of rows: what decides how a library reads them; ``labels`` are kinds of labels by column."""
    if isinstance(X, np.ndarray):
        types: Hashable = X.dtype if X.dtype != object else frozenset(map(type, X.ravel().tolist()))
        return type(X), types, labels
    if isinstance(X, list | tuple):
        return list, frozenset(type(entry) for row in X for entry in row), labels
    if is_sparse(X):
        return type(X), X.dtype, labels
    return type(X), column_types(X, in_order=bool(labels)), labels


def _kinds_of(X: Any, rows: NDArray[Any], f: int) -> tuple[Hashable, NDArray[Any]]:
    """Return the kinds of labels in a column, and the first row of each."""
    column = column_of(X, f)
    missing, unknown = np.isnan(rows[:, f]), rows[:, f] == UNKNOWN
    if column is not None:  # objects, each of which has a type
        known = np.where(missing, 0, np.where(unknown, 1, 2))
        types = {type_: k for k, type_ in enumerate(dict.fromkeys(map(type, column)))}
        known = 3 * np.array([types[type(entry)] for entry in column], dtype=np.intp) + known
        kinds = [(type_.__name__, k) for type_ in types for k in range(3)]
        found, first = np.unique(known, return_index=True)
        return frozenset(kinds[k] for k in found.tolist()), first
    each = (missing, unknown, ~(missing | unknown))
    there = [k for k, mask in enumerate(each) if mask.any()]
    return frozenset(there), np.array([each[k].argmax() for k in there])


def _telling(rows: NDArray[Any], of_each_kind: list[NDArray[Any]]) -> NDArray[np.intp]:
    """Return positions of up to 32 rows: of each kind of label and of missing values, and spread over the others."""
    chosen = [0, int(np.isnan(rows).any(axis=1).argmax())] if rows.dtype.kind == "f" else [0]
    for first in of_each_kind:
        chosen += first.tolist()
    spread = np.arange(0, len(rows), max(1, len(rows) // N_ROWS))
    return np.sort(np.array(list(dict.fromkeys([*chosen, *spread.tolist()]))[:N_ROWS], dtype=np.intp))


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


def _as_frame(rows: NDArray[Any], reading: Reading) -> Any:
    """Return rows as a pandas frame with the types of the training data."""
    columns = reading.feature_names or [str(f) for f in range(reading.n_features)]
    return reading.rules.as_trained(import_module("pandas").DataFrame(rows, columns=list(columns)))


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
        if reading.rules.labels.hashed:  # which keeps no labels
            labelled[:, feature] = _UNKNOWN_LABEL
        else:
            codes = rows[:, feature]
            labelled[:, feature] = [None if np.isnan(code) else labels[int(code)] for code in codes]
    return labelled


def _compare(
    ours: Floats, theirs: Floats, reading: Reading, question: Question, positions: NDArray[np.intp] | None
) -> None:
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
    where = question.name.format(row if positions is None else positions[row])
    raise UnsupportedModelError(
        f"fouriershap's copy of the model ({reading.kind}) disagrees with {version} on {where} "
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
    of_model = reading.representation
    size = of_model.size(rows) if isinstance(of_model, LinearTrees) else _size(of_model, rows)
    size += float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0))
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
