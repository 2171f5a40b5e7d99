"""Stage 2: from terms and a background to SHAP values."""

from fouriershap._shapley.spectrum.compile import (
    compile,  # noqa: A004
    plan,
    shap_interaction_values,
    shap_values,
)
from fouriershap._shapley.spectrum.engine import Tables
from fouriershap._shapley.spectrum.plan import Plan

__all__ = ["Plan", "Tables", "compile", "plan", "shap_interaction_values", "shap_values"]
