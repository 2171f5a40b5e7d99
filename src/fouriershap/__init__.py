"""Exact SHAP values, fast at any scale: represent a model once, compile the background, explain."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from fouriershap._blackbox_explainer import BlackBoxExplainer
    from fouriershap._explainer import Explainer
    from fouriershap._load import load
    from fouriershap._spectrum import Spectrum
    from fouriershap._spectrum_explainer import SpectrumExplainer
    from fouriershap._tree_explainer import TreeExplainer
    from fouriershap.fourier import sparse_walsh_hadamard, walsh_hadamard
    from fouriershap.shapley import (
        Plan,
        Tables,
        compile,  # noqa: A004
        plan,
        shap_interaction_values,
        shap_values,
    )
    from fouriershap.shapley._interactions import TopInteractions
    from fouriershap.trees._spectrum import tree_spectrum

# What is imported when it is first asked for, so that `import fouriershap` costs little more than NumPy.
_HOMES = {
    "BlackBoxExplainer": "_blackbox_explainer",
    "Explainer": "_explainer",
    "Plan": "shapley",
    "Spectrum": "_spectrum",
    "SpectrumExplainer": "_spectrum_explainer",
    "Tables": "shapley",
    "TopInteractions": "shapley._interactions",
    "TreeExplainer": "_tree_explainer",
    "compile": "shapley",
    "load": "_load",
    "plan": "shapley",
    "shap_interaction_values": "shapley",
    "shap_values": "shapley",
    "sparse_walsh_hadamard": "fourier",
    "tree_spectrum": "trees._spectrum",
    "walsh_hadamard": "fourier",
}

__version__ = "0.1.0"

__all__ = [
    "AdditivityError",
    "BlackBoxExplainer",
    "CapacityError",
    "Explainer",
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
    "SpectrumExplainer",
    "Tables",
    "TopInteractions",
    "TreeExplainer",
    "UnsupportedModelError",
    "compile",
    "load",
    "plan",
    "shap_interaction_values",
    "shap_values",
    "sparse_walsh_hadamard",
    "tree_spectrum",
    "walsh_hadamard",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
