"""What the suite of all readers has to know of the libraries in `format_models`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from format_models import INSTALLED
from fouriershap._libraries import Reading
from models import LABELS
from reader_checks import EXTREME, values_beside_thresholds


def _survival_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    return values_beside_thresholds(ensemble, f) + ([np.nan] if "missing" in name else [])


def _quantile_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    return values_beside_thresholds(ensemble, f)


def _ngboost_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    return values_beside_thresholds(ensemble, f) + ([np.nan] if "missing" in name else [])


def _ebm_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    if name == "frame" and f == 1:
        return [*LABELS, None]
    if name == "frame" and f == 3:
        return [10, 20, 30, 40, None]
    if f in ensemble.rules.vocabularies:
        return [*map(float, range(12)), -0.0, 2.5, -1.0, 1e20, np.nan]
    return [*values_beside_thresholds(ensemble, f), *EXTREME, np.nan]


def _ydf_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    if "frame" in name and f == 1:
        return [*LABELS, "unseen", "10", "", None]
    if "frame" in name and f == 3:
        return [10, 20, 30, 40, 50, -10, 0]
    return [*values_beside_thresholds(ensemble, f), *EXTREME, np.nan]


def _onnx_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    # Rows are of the type of the model's input: others are for whoever calls onnxruntime to cast.
    beside = np.array(values_beside_thresholds(ensemble, f))
    return [*beside.astype(ensemble.rules.dtype).astype(np.float64), np.inf, -np.inf, np.nan]


def _unfitted(module: str, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(import_module(module), name)() for name in names)


def _save_onnx(model: Any, path: Path) -> None:
    path.write_bytes(model.SerializeToString())


def format_readers(reader: Any) -> dict[str, Any]:
    """``reader``: the class `Reader` of the suite."""
    made: dict[str, Any] = {}
    if INSTALLED["sksurv"]:
        made["sksurv"] = reader(
            _survival_pool,
            unfitted=_unfitted("sksurv.ensemble", "RandomSurvivalForest", "GradientBoostingSurvivalAnalysis"),
        )
    if INSTALLED["quantile_forest"]:
        made["quantile_forest"] = reader(
            _quantile_pool, unfitted=_unfitted("quantile_forest", "RandomForestQuantileRegressor")
        )
    if INSTALLED["ngboost"]:
        made["ngboost"] = reader(_ngboost_pool, unfitted=_unfitted("ngboost", "NGBRegressor"))
    if INSTALLED["interpret"]:
        made["interpret"] = reader(
            _ebm_pool,
            counted=("3 features in a term",),
            unfitted=_unfitted("interpret.glassbox", "ExplainableBoostingRegressor"),
            classifier=lambda: import_module("interpret.glassbox").ExplainableBoostingClassifier(
                outer_bags=1, max_rounds=2, interactions=0, n_jobs=1
            ),
        )
    if INSTALLED["ydf"]:
        made["ydf"] = reader(
            _ydf_pool,
            files=("",),
            save=lambda model, path: model.save(str(path)),
            filed=("frame", "boosted trees"),
            rtol=2e-6,
        )
    if INSTALLED["onnx"]:
        made["onnx"] = reader(_onnx_pool, files=("onnx",), save=_save_onnx, filed=("modes",), rtol=2e-6)
    return made
