"""The model itself is the referee of our reading as a sum of products (see `referee` for trees)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._explainers.links import PRODUCT_LINKS
from fouriershap._explainers.referee import N_ROWS, WAYS_OUT, version_of
from fouriershap._waves.products import Products
from fouriershap._waves.readers.reading import Reading

Floats = NDArray[np.float64]


def check_products(model: Any, reading: Reading, rows: Floats) -> bool:
    """Compare the outputs of our reading with the model's own on some rows; whether its library answered.

    A difference beyond rounding is an `UnsupportedModelError`.
    """
    step = max(1, len(rows) // N_ROWS)
    some = rows[::step][:N_ROWS]
    raw = reading.model.predict(some)
    checked = False
    for what, theirs in _answers(model, reading, some):
        ours = raw
        if what == "response":
            if PRODUCT_LINKS[reading.link].response is None:
                continue
            with np.errstate(over="ignore"):
                ours = PRODUCT_LINKS[reading.link].response(raw)
        _compare(ours, theirs, some, reading, model)
        checked = True
    return checked


def _answers(model: Any, reading: Reading, rows: Floats) -> list[tuple[str, Floats]]:
    """What the model says of rows: its raw output, its response, or both."""
    try:
        return [(what, _columns(array, len(rows))) for what, array in _ask(model, reading, rows)]
    except Exception:  # noqa: BLE001, a library that takes no such rows may say so in any way
        return []


def _ask(model: Any, reading: Reading, rows: Floats) -> list[tuple[str, Any]]:
    if reading.kind.startswith("xgboost"):
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        matrix = import_module("xgboost").DMatrix(
            rows, feature_names=booster.feature_names, feature_types=booster.feature_types, nthread=1
        )
        return [("raw", booster.predict(matrix, output_margin=True))]
    if reading.kind.startswith("statsmodels"):
        return [("response", model.predict(rows))]
    if reading.feature_names is not None and hasattr(model, "feature_names_in_"):
        given: Any = import_module("pandas").DataFrame(rows, columns=list(model.feature_names_in_))
    else:
        given = rows
    answers = []
    if hasattr(model, "decision_function"):
        answers.append(("raw", model.decision_function(given)))
    if hasattr(model, "predict_proba"):
        probability = np.asarray(model.predict_proba(given))
        binary = reading.model.n_outputs == 1 and probability.shape[1] == 2
        answers.append(("response", probability[:, 1] if binary else probability))
    return answers or [("response", model.predict(given))]


def _columns(array: Any, n_rows: int) -> Floats:
    return np.asarray(array, dtype=np.float64).reshape(n_rows, -1)


def _compare(ours: Floats, theirs: Floats, rows: Floats, reading: Reading, model: Any) -> None:
    library = reading.kind.partition(" ")[0].replace("scikit-learn", "sklearn")
    if ours.shape != theirs.shape:
        raise UnsupportedModelError(
            f"the model ({reading.kind}) is not read right: {version_of(library)} itself gives {theirs.shape[1]} "
            f"outputs, our reading {ours.shape[1]}. {WAYS_OUT}"
        )
    with np.errstate(invalid="ignore"):
        gap = np.abs(ours - theirs)
    allowed = rounding(reading, rows, theirs)
    wrong = ((gap > allowed) | (np.isnan(ours) != np.isnan(theirs))) & ~np.isinf(theirs)
    if not wrong.any():
        return
    row, output = np.unravel_index(np.where(wrong, np.nan_to_num(gap, nan=np.inf), -1.0).argmax(), gap.shape)
    raise UnsupportedModelError(
        f"the model ({reading.kind}) is not read right: for row {row} of the background (output {output}) "
        f"{version_of(library)} itself says {theirs[row, output]:.9g}, our reading {ours[row, output]:.9g}: a "
        f"difference of {gap[row, output]:.3g}, where rounding explains {allowed:.1g}. SHAP values of that reading "
        f"would be wrong, so there are none. {WAYS_OUT}"
    )


def rounding(reading: Reading, rows: Floats, theirs: Floats) -> float:
    """How far apart two right sums can be, in the precision of the library."""
    size = _size(reading.model, rows) + float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0))
    return (1e-5 if reading.single else 1e-9) * size + 1e-12


def _size(model: Products, rows: Floats) -> float:
    """The sum of the sizes of all that is added up."""
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
