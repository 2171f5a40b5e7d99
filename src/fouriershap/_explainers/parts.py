"""`Parts`: what an `Explainer` is made of, and how its builders name it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fouriershap._base.checks import ProgressOption
from fouriershap._base.errors import FidelityWarning
from fouriershap._base.warn import warn
from fouriershap._libraries import Reading
from fouriershap._rows.inputs import InputAdapter
from fouriershap._shapley.engine import Engine

if TYPE_CHECKING:
    from fouriershap._blackbox.black_box_fit import BlackBoxFit


@dataclass(frozen=True, eq=False)
class Parts:
    """What builders and files give an `Explainer`; see its attributes."""

    kind: str
    inputs: InputAdapter
    engine: Engine
    output_names: tuple[str, ...] | None = None
    n_jobs: int = -1
    progress: ProgressOption = None
    fitted: BlackBoxFit | None = None
    model_name: str | None = None  # shown by report pages
    checksum: str | None = None
    # Fits a representation to rows (None: those at hand) of a model that can be asked.
    fit: Callable[[Parts, Any, dict[str, Any]], Parts] | None = None


_LARGE_ERROR = 0.01  # share of the values that a compressed background may miss without a warning


def warn_of_compression(engine: Engine) -> None:
    """Warn if products that stand for the background miss more than a little."""
    missed = engine.info.background_error
    if missed > _LARGE_ERROR:
        warn(
            f"the background was compressed to a few products of marginals, which miss {missed:.1%} of the values. "
            "Give fewer background rows, or groups= that leave fewer players. `ProductExplainer` also takes "
            "compress_background=False.",
            FidelityWarning,
        )


def name_of(model: Any) -> str | None:
    """Return where a model comes from: its class, a function's name, or the name of a file."""
    if isinstance(model, Reading):
        return model.kind if model.model is None else name_of(model.model)
    if model is None:
        return None
    if isinstance(model, str | os.PathLike):
        # A path may hold bytes that are not text, which a file's header cannot.
        return Path(model).name.encode("utf-8", "replace").decode("utf-8")
    named = model if hasattr(model, "__qualname__") else type(model)
    package = str(getattr(named, "__module__", "")).partition(".")[0]
    return f"{package}.{named.__qualname__}" if package else str(named.__qualname__)
