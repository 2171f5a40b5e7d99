"""Stage 2: from terms and a background to SHAP values."""

from fouriershap.shapley._compile import (
    compile,  # noqa: A004
    plan,
    shap_interaction_values,
    shap_values,
)
from fouriershap.shapley._compiled import Tables
from fouriershap.shapley._cost import Plan

__all__ = ["Plan", "Tables", "compile", "plan", "shap_interaction_values", "shap_values"]
