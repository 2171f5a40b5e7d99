"""Labels of categorical features as the category codes that an ensemble's splits name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._rows.frames import is_missing
from fouriershap._trees.cityhash import cityhash64
from fouriershap._trees.ensemble import TreeEnsemble

UNKNOWN = -1.0  # no set names a negative category


def category_codes(ensemble: TreeEnsemble, feature: int, column: ArrayLike) -> NDArray[np.float64]:
    """Codes (n_rows,) of one column of labels of a feature that has a vocabulary.

    NaN where a label is missing; -1 where the model does not know it. Where ``ensemble.numbers_are_labels`` is
    false, a column of numbers is taken as codes, as XGBoost and LightGBM take it.
    """
    labels = np.asarray(column)
    if labels.dtype.kind in "iuf" and not ensemble.numbers_are_labels:
        return labels.astype(np.float64)
    if labels.dtype.kind == "f" and ensemble.casting == "onnx":
        labels = labels.astype(ensemble.dtype)  # equal is what is equal after the cast
    codes = {label: float(c) for c, label in enumerate(ensemble.vocabularies[feature])}
    if ensemble.casting == "ydf":
        codes[""] = float("nan")  # YDF's own way to say that a label is missing
    # Few distinct labels, many rows: each distinct label is looked up once.
    seen: dict[Any, float] = {}
    result = np.empty(len(labels))
    for i, label in enumerate(labels.tolist()):
        try:
            result[i] = seen[label]
        except KeyError:
            result[i] = seen[label] = _code(label, codes, ensemble.hashed)
    return result


def _code(label: Any, codes: dict[Any, float], hashed: bool) -> float:
    if not hashed and label in codes:
        return codes[label]
    if is_missing(label):
        return float("nan")
    return codes.get(catboost_hash(label), UNKNOWN) if hashed else UNKNOWN


def catboost_hash(label: Any) -> int:
    """The 32-bit number by which CatBoost knows a categorical value: a string, or a number as text."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return cityhash64(str(label).encode()) & 0xFFFFFFFF
