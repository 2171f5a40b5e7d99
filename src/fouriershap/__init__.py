"""Exact SHAP values, fast at any scale: represent a model once, compile the background, explain."""

from fouriershap._blackbox_explainer import BlackBoxExplainer
from fouriershap._errors import (
    AdditivityError,
    CapacityError,
    FidelityWarning,
    FileFormatError,
    FourierShapError,
    FourierShapWarning,
    InputError,
    MissingDependencyError,
    NoiseWarning,
    QueryError,
    SlowKernelWarning,
    UnsupportedModelError,
)
from fouriershap._explainer import TreeExplainer
from fouriershap._load import load
from fouriershap._spectrum import Spectrum
from fouriershap.fourier import sparse_walsh_hadamard, walsh_hadamard
from fouriershap.shapley import Plan, Tables, compile, plan, shap_values  # noqa: A004
from fouriershap.trees._spectrum import tree_spectrum

__version__ = "0.1.0"

__all__ = [
    "AdditivityError",
    "BlackBoxExplainer",
    "CapacityError",
    "FidelityWarning",
    "FileFormatError",
    "FourierShapError",
    "FourierShapWarning",
    "InputError",
    "MissingDependencyError",
    "NoiseWarning",
    "Plan",
    "QueryError",
    "SlowKernelWarning",
    "Spectrum",
    "Tables",
    "TreeExplainer",
    "UnsupportedModelError",
    "compile",
    "load",
    "plan",
    "shap_values",
    "sparse_walsh_hadamard",
    "tree_spectrum",
    "walsh_hadamard",
]
