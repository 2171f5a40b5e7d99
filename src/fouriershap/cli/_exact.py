"""Estimators that are read, and not asked: linear models, kernel machines, Pipelines around them or around trees."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from fouriershap import Explainer, ModelWarning, ProductExplainer, TreeExplainer, UnsupportedModelError
from fouriershap.cli._black_box import frame_for
from fouriershap.cli._functions import OnnxModel
from fouriershap.cli._models import ModelFile


def save_exactly(
    opened: ModelFile, table: Any, options: dict[str, Any], precision: str, path: Path
) -> Explainer | None:
    """Read an estimator and save its explainer; None where it can only be asked.

    That is so, too, where the steps of a Pipeline cannot be kept in a file: what was fitted to its answers takes the
    Pipeline's own rows.
    """
    model = opened.estimator
    if isinstance(model, OnnxModel) or not hasattr(model, "predict"):
        return None
    frame = frame_for(opened, table)
    kinds: tuple[tuple[type[Explainer], dict[str, Any]], ...] = (
        (TreeExplainer, {"precision": precision}),
        (ProductExplainer, {}),
    )
    for kind, more in kinds:
        try:
            explainer = kind(model, frame, **options, **more)
            with warnings.catch_warnings():
                warnings.simplefilter("error", ModelWarning)
                explainer.save(path)
        except (UnsupportedModelError, ModelWarning):
            continue
        return explainer
    return None
