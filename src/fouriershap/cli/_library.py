"""What a model file says by the library that made it: the referee of `fouriershap check`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import InputError, MissingDependencyError, library_output
from fouriershap._base.short import reason
from fouriershap.cli._models import ModelFile


def ask_library(model: ModelFile, rows: Any) -> NDArray[np.float64]:
    """Raw outputs (n_rows, n_outputs), before any link, of an Arrow table in the model's order of columns."""
    library = model.ensemble.kind.split()[0]
    try:
        live = _load(model, library) if model.estimator is None else model.estimator
        return library_output(live, rows.to_pandas(), model.ensemble)
    except ImportError as error:
        raise MissingDependencyError(
            f"check asks {library} itself, which is not installed: pip install {library}"
        ) from error
    except Exception as error:
        raise InputError(
            f"{library} itself cannot answer these rows ({type(error).__name__}: {reason(error)})."
        ) from error


def _load(model: ModelFile, library: str) -> Any:
    """The library's own model from a file of its own format."""
    package = import_module(library)
    if library == "catboost":
        form = "json" if model.path.suffix.lower() == ".json" else "cbm"
        return package.CatBoost().load_model(str(model.path), format=form)
    return package.Booster(model_file=str(model.path))
