"""Fits of transformed outputs, imported when one is needed: few explainers need what black boxes do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fouriershap._shapley.outputs.transformed import FittedOutput


def fit_output(margin: Any, predict: Any, asked_by: str) -> FittedOutput:
    """Fit a representation to an output; see `fouriershap._blackbox.output_fit.fit_output`."""
    from fouriershap._blackbox.output_fit import fit_output

    return fit_output(margin, predict, asked_by)
