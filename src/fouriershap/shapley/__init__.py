"""Stage 2: from terms and a background to SHAP values."""

from fouriershap.shapley._compile import Tables, compile, plan, shap_values  # noqa: A004
from fouriershap.shapley._cost import Plan

__all__ = ["Plan", "Tables", "compile", "plan", "shap_values"]
