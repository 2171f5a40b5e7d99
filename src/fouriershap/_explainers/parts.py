"""`Parts`: what an `Explainer` is made of, and how its builders name it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fouriershap._base.checks import ProgressOption, as_array
from fouriershap._base.errors import FidelityWarning, InputError
from fouriershap._base.messages import truncated_list
from fouriershap._base.warn import warn
from fouriershap._libraries import Reading
from fouriershap._rows.inputs import InputAdapter
from fouriershap._shapley.engine import Engine

if TYPE_CHECKING:
    from fouriershap._blackbox.black_box_fit import BlackBoxFit


@dataclass(frozen=True, eq=False)
class Parts:
    """What builders and files give an `Explainer`; see its attributes.

    Attributes
    ----------
    output_names : tuple of str, optional
        Those of the model: its classes.
    given_names : tuple of str, optional
        What the caller calls the outputs instead.
    """

    kind: str
    inputs: InputAdapter
    engine: Engine
    output_names: tuple[str, ...] | None = None
    given_names: tuple[str, ...] | None = None
    n_jobs: int = -1
    progress: ProgressOption = None
    fitted: BlackBoxFit | None = None
    model_name: str | None = None  # shown by report pages
    checksum: str | None = None
    # Fits a representation to rows (None: those at hand) of a model that can be asked.
    fit: Callable[[Parts, Any, dict[str, Any]], Parts] | None = None


def with_output_names(parts: Parts, given: Any) -> Parts:
    """Return parts whose outputs have the names that the caller gave, if any; of two classes the second counts."""
    if given is None:
        return parts
    names = [given] if isinstance(given, str) else as_array(given, "output_names").reshape(-1).tolist()
    n = parts.engine.n_outputs
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
        raise InputError(f"output_names is {truncated_list(names)}; give different names, as text.")
    if n == 1 and len(names) == 2 and parts.output_names is not None:
        names = names[1:]
    if len(names) != n:
        of_classes = (
            " (of a classifier: that of the positive class, or both)" if parts.output_names and n == 1 else ""
        )
        raise InputError(
            f"output_names has {len(names)} names, but {n} {'output is' if n == 1 else 'outputs are'} explained"
            f"{of_classes}: {truncated_list(names)}."
        )
    return replace(parts, given_names=tuple(names))


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
