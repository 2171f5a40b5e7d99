"""Exact SHAP values, fast at any scale: represent a model once, compile the background, explain."""

from fouriershap._errors import (
    AdditivityError,
    CapacityError,
    FidelityWarning,
    FileFormatError,
    FourierShapError,
    FourierShapWarning,
    InputError,
    MissingDependencyError,
    QueryError,
    SlowKernelWarning,
    UnsupportedModelError,
)
from fouriershap._spectrum import Spectrum
from fouriershap.fourier import sparse_walsh_hadamard, walsh_hadamard

__version__ = "0.1.0"

__all__ = [
    "AdditivityError",
    "CapacityError",
    "FidelityWarning",
    "FileFormatError",
    "FourierShapError",
    "FourierShapWarning",
    "InputError",
    "MissingDependencyError",
    "QueryError",
    "SlowKernelWarning",
    "Spectrum",
    "UnsupportedModelError",
    "sparse_walsh_hadamard",
    "walsh_hadamard",
]
