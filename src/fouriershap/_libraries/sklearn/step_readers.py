"""Transformers of scikit-learn as steps that a file can keep (`_rows/steps.py`), recognised by name.

Steps are tried out on rows before they are kept (`preprocessing.py`), so a new version of scikit-learn that behaves
differently is noticed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fouriershap._base.headers import Label
from fouriershap._base.messages import error_text, truncated_repr
from fouriershap._libraries.sklearn.column_origins import parts_of
from fouriershap._rows.preprocessing import UnknownStepError
from fouriershap._rows.steps import Fill, OneHot, Ordinal, Parts, Scale, Select, Step, Vocabulary

Steps = tuple[Step, ...]
_PLAIN = (str, int, float, bool, type(None))


def read_steps(transformer: Any, n_columns: int, name: str = "") -> Steps:
    """Return the steps of a fitted transformer with ``n_columns`` inputs; ``name`` is its place in the Pipeline."""
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return ()
    if hasattr(transformer, "fit_resample") and not hasattr(transformer, "transform"):
        return ()  # samplers of imbalanced-learn act in training only
    kind = type(transformer)
    read = _READERS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None
    if read is None and kind.__module__.startswith("sklearn.feature_selection"):
        read = _selector
    if read is None and kind.__name__ == "Pipeline":  # imbalanced-learn has its own
        read = _pipeline
    if read is None:
        raise UnknownStepError(f"the step {truncated_repr(name)} ({kind.__name__}) cannot be kept in a file")
    try:
        return read(transformer, n_columns, name)
    except (AttributeError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise UnknownStepError(
            f"the step {truncated_repr(name)} ({kind.__name__}) could not be read: {error_text(error)}"
        ) from error


def _below(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part


def _pipeline(pipeline: Any, n_columns: int, name: str) -> Steps:
    steps: Steps = ()
    for part, transformer in pipeline.steps:
        found = read_steps(transformer, n_columns, _below(name, part))
        for step in found:
            n_columns = step.check(n_columns, 0)
        steps += found
    return steps


def _column_transformer(transformer: Any, n_columns: int, name: str) -> Steps:
    placed = parts_of(transformer, n_columns)
    read = [read_steps(part, len(columns), _below(name, label)) for label, part, columns in placed]
    return (Parts(tuple(tuple(columns) for _, _, columns in placed), tuple(read)),)


def _feature_union(union: Any, n_columns: int, name: str) -> Steps:
    if any(weight != 1 for weight in (union.transformer_weights or {}).values()):
        raise ValueError("its parts have weights")
    kept = [(label, part) for label, part in union.transformer_list if not _is_drop(part)]
    read = [read_steps(part, n_columns, _below(name, label)) for label, part in kept]
    return (Parts((tuple(range(n_columns)),) * len(kept), tuple(read)),)


def _is_drop(part: Any) -> bool:
    return isinstance(part, str) and part == "drop"


def _function(transformer: Any, n_columns: int, name: str) -> Steps:
    if transformer.func is not None:
        raise ValueError("its function is unknown")
    return ()


def _selector(selector: Any, n_columns: int, name: str) -> Steps:
    return (Select(tuple(int(c) for c in selector.get_support(indices=True))),)


def _floats(values: Any) -> tuple[float, ...] | None:
    if values is None:
        return None
    found = tuple(float(value) for value in np.asarray(values, dtype=np.float64).tolist())
    if not all(map(math.isfinite, found)):
        raise ValueError("it has a number that is not finite")
    return found


def _standard(scaler: Any, n_columns: int, name: str) -> Steps:
    minus = _floats(scaler.mean_) if scaler.with_mean else None
    divisor = _floats(scaler.scale_) if scaler.with_std else None
    return (Scale(n_columns, minus, divisor, own_precision=_rounds_first(scaler, minus, divisor, n_columns)),)


def _rounds_first(scaler: Any, minus: Any, divisor: Any, n_columns: int) -> bool:
    """Return whether means are rounded to float32 for float32 rows, as in scikit-learn 1.9 but not 1.7."""
    spread = np.linspace(-3, 3, 64)[:, None] * np.ones(n_columns)
    rows = (spread * (1.0 if divisor is None else divisor) + (0.0 if minus is None else minus)).astype(
        np.float32
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without names
        want = np.asarray(scaler.transform(rows))
    made = Scale(n_columns, minus, divisor, own_precision=True).apply(list(rows.T))
    return np.array_equal(np.column_stack(made), want)


def _robust(scaler: Any, n_columns: int, name: str) -> Steps:
    minus = _floats(scaler.center_) if scaler.with_centering else None
    return (Scale(n_columns, minus=minus, divisor=_floats(scaler.scale_) if scaler.with_scaling else None),)


def _min_max(scaler: Any, n_columns: int, name: str) -> Steps:
    low, high = (float(end) for end in scaler.feature_range) if scaler.clip else (None, None)
    return (Scale(n_columns, factor=_floats(scaler.scale_), plus=_floats(scaler.min_), low=low, high=high),)


def _max_abs(scaler: Any, n_columns: int, name: str) -> Steps:
    low, high = (-1.0, 1.0) if getattr(scaler, "clip", False) else (None, None)
    return (Scale(n_columns, divisor=_floats(scaler.scale_), low=low, high=high),)


def _label(value: Any) -> Label:
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, _PLAIN) or (isinstance(plain, float) and math.isinf(plain)):
        raise ValueError(f"{truncated_repr(value)} is not a label that files keep")
    return None if isinstance(plain, float) and math.isnan(plain) else plain


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _imputer(imputer: Any, n_columns: int, name: str) -> Steps:
    numeric = imputer._fit_dtype.kind in "biuf"
    statistics = imputer.statistics_.tolist()
    kept = range(n_columns)
    if not imputer.keep_empty_features:
        kept = [c for c in range(n_columns) if not _is_nan(statistics[c])]  # type: ignore[assignment]
    indicated = () if imputer.indicator_ is None else tuple(int(c) for c in imputer.indicator_.features_)
    missing = imputer.missing_values
    values = tuple(_label(statistics[c]) for c in kept)
    return (Fill(_label(missing), _is_nan(missing), tuple(kept), values, indicated, numeric),)


def _indicator(indicator: Any, n_columns: int, name: str) -> Steps:
    missing = indicator.missing_values
    shown = tuple(int(c) for c in indicator.features_)
    return (Fill(_label(missing), _is_nan(missing), (), (), shown, _is_nan(missing)),)


def _grouped(encoder: Any, c: int, counts_nan: bool = True) -> tuple[list[int], int, int | None]:
    """Return the place of each label of a column, the number of places, and the place that rare labels share.

    NaN is always the last label. An ordinal encoder gives it a number of its own instead of a place.
    """
    labels = encoder.categories_[c].tolist()
    rare = getattr(encoder, "infrequent_categories_", None)
    few = None if rare is None or rare[c] is None else rare[c].tolist()
    if few is None:
        return list(range(len(labels))), len(labels), None
    is_rare = [
        any(label == other or (_is_nan(label) and _is_nan(other)) for other in few) for label in labels
    ]
    n_frequent = len(labels) - sum(is_rare) - (_is_nan(labels[-1]) and not counts_nan)
    places = np.cumsum([0 if one else 1 for one in is_rare]) - 1
    return (
        [n_frequent if one else int(places[k]) for k, one in enumerate(is_rare)],
        n_frequent + 1,
        n_frequent,
    )


def _labels(encoder: Any, c: int) -> tuple[tuple[Label, ...], int]:
    entries = encoder.categories_[c].tolist()
    missing = [k for k, entry in enumerate(entries) if _is_nan(entry)]
    return tuple(_label(entry) for entry in entries), missing[0] if missing else -1


def _one_hot(encoder: Any, n_columns: int, name: str) -> Steps:
    columns, widths = [], []
    for c in range(n_columns):
        places, width, rare = _grouped(encoder, c)
        drop = None if encoder.drop_idx_ is None else encoder.drop_idx_[c]
        dropped = None if drop is None else places[int(drop)]

        def moved(place: int, dropped: int | None = dropped) -> int:
            if dropped is None or place < dropped:
                return place
            return -1 if place == dropped else place - 1

        other = -1
        if encoder.handle_unknown in ("infrequent_if_exist", "warn") and rare is not None:
            other = moved(rare)
        labels, nan = _labels(encoder, c)
        numbers = tuple(float(moved(place)) for place in places)
        columns.append(Vocabulary(labels, nan, encoder.handle_unknown == "error", float(other), numbers))
        widths.append(width - (dropped is not None))
    return (OneHot(tuple(columns), tuple(widths)),)


def _ordinal(encoder: Any, n_columns: int, name: str) -> Steps:
    columns = []
    refuses = encoder.handle_unknown == "error"
    other = None if refuses or _is_nan(encoder.unknown_value) else float(encoder.unknown_value)
    for c in range(n_columns):
        places, _, _ = _grouped(encoder, c, counts_nan=False)
        labels, nan = _labels(encoder, c)
        numbers: list[float | None] = [float(place) for place in places]
        if nan >= 0:
            of_missing = encoder.encoded_missing_value
            numbers[nan] = None if _is_nan(of_missing) else float(of_missing)
        columns.append(Vocabulary(labels, nan, refuses, other, tuple(numbers)))
    return (Ordinal(tuple(columns)),)


_READERS: dict[str, Callable[[Any, int, str], Steps]] = {
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "FunctionTransformer": _function,
    "MaxAbsScaler": _max_abs,
    "MinMaxScaler": _min_max,
    "MissingIndicator": _indicator,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "Pipeline": _pipeline,
    "RobustScaler": _robust,
    "SimpleImputer": _imputer,
    "StandardScaler": _standard,
}
