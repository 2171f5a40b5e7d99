"""Exact SHAP values, fast at any scale: represent a model once, compile the background, explain."""

from fouriershap._errors import (
    AdditivityError,
    CapacityError,
    FileFormatError,
    FourierShapError,
    FourierShapWarning,
    InputError,
    MissingDependencyError,
    SlowKernelWarning,
    UnsupportedModelError,
)
from fouriershap._spectrum import Spectrum
from fouriershap.fourier import walsh_hadamard

__version__ = "0.1.0"

__all__ = [
    "AdditivityError",
    "CapacityError",
    "FileFormatError",
    "FourierShapError",
    "FourierShapWarning",
    "InputError",
    "MissingDependencyError",
    "SlowKernelWarning",
    "Spectrum",
    "UnsupportedModelError",
    "walsh_hadamard",
]
