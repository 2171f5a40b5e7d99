"""Exact SHAP values, fast at any scale: represent a model once, compile the background, explain."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fouriershap._base.errors import (
    AdditivityError,
    CapacityError,
    CostWarning,
    DiskFullError,
    FidelityWarning,
    FileFormatError,
    FourierShapError,
    FourierShapWarning,
    InputError,
    MissingDependencyError,
    ModelWarning,
    NoiseWarning,
    QueryError,
    ReportWarning,
    SlowKernelWarning,
    UnsupportedModelError,
)
from fouriershap._base.short import short

if TYPE_CHECKING:
    from fouriershap._base.progress import Stage
    from fouriershap._blackbox.fidelity import Fidelity, Interval
    from fouriershap._blackbox.select import Candidate
    from fouriershap._explainers.batches import OutputColumn
    from fouriershap._explainers.blackbox import BlackBoxExplainer
    from fouriershap._explainers.front_door import Explainer
    from fouriershap._explainers.load import load
    from fouriershap._explainers.products import ProductExplainer
    from fouriershap._explainers.referee import library_output
    from fouriershap._explainers.spectrum import SpectrumExplainer
    from fouriershap._explainers.trees import TreeExplainer
    from fouriershap._fourier.sparse_transform import sparse_walsh_hadamard
    from fouriershap._fourier.spectrum import Spectrum
    from fouriershap._fourier.top_terms import TopTerms
    from fouriershap._fourier.transform import walsh_hadamard
    from fouriershap._fourier.tree_spectrum import tree_spectrum
    from fouriershap._kernels.about import about
    from fouriershap._shapley.interactions import TopInteractions
    from fouriershap._shapley.products.engine import ProductPlan
    from fouriershap._shapley.spectrum.compile import (
        compile,  # noqa: A004
        plan,
        shap_interaction_values,
        shap_values,
    )
    from fouriershap._shapley.spectrum.plan import Plan
    from fouriershap._shapley.spectrum.tables import Tables
    from fouriershap._shapley.trees.plan import TreePlan
    from fouriershap._trees.ensemble import TreeEnsemble
    from fouriershap._trees.readers import read_model
    from fouriershap._trees.readers.survival import survival_trees
    from fouriershap._waves.waves import Waves
    from fouriershap.analysis.cohorts import Cohorts
    from fouriershap.analysis.drift import Drift
    from fouriershap.analysis.importance import Importance
    from fouriershap.analysis.interactions import Interactions
    from fouriershap.analysis.reasons import Reasons

# What is imported when it is first asked for, so that `import fouriershap` costs little more than NumPy.
_HOMES = {
    "BlackBoxExplainer": "_explainers.blackbox",
    "Candidate": "_blackbox.select",
    "Cohorts": "analysis.cohorts",
    "Drift": "analysis.drift",
    "Explainer": "_explainers.front_door",
    "Fidelity": "_blackbox.fidelity",
    "Importance": "analysis.importance",
    "Interactions": "analysis.interactions",
    "Interval": "_blackbox.fidelity",
    "OutputColumn": "_explainers.batches",
    "Plan": "_shapley.spectrum.plan",
    "ProductExplainer": "_explainers.products",
    "ProductPlan": "_shapley.products.engine",
    "Reasons": "analysis.reasons",
    "Spectrum": "_fourier.spectrum",
    "SpectrumExplainer": "_explainers.spectrum",
    "Stage": "_base.progress",
    "Tables": "_shapley.spectrum.tables",
    "TopInteractions": "_shapley.interactions",
    "TopTerms": "_fourier.top_terms",
    "TreeEnsemble": "_trees.ensemble",
    "TreeExplainer": "_explainers.trees",
    "TreePlan": "_shapley.trees.plan",
    "Waves": "_waves.waves",
    "about": "_kernels.about",
    "compile": "_shapley.spectrum.compile",
    "library_output": "_explainers.referee",
    "load": "_explainers.load",
    "plan": "_shapley.spectrum.compile",
    "read_model": "_trees.readers",
    "shap_interaction_values": "_shapley.spectrum.compile",
    "shap_values": "_shapley.spectrum.compile",
    "sparse_walsh_hadamard": "_fourier.sparse_transform",
    "survival_trees": "_trees.readers.survival",
    "tree_spectrum": "_fourier.tree_spectrum",
    "walsh_hadamard": "_fourier.transform",
}

__version__ = "0.1.0"

__all__ = [
    "AdditivityError",
    "BlackBoxExplainer",
    "Candidate",
    "CapacityError",
    "Cohorts",
    "CostWarning",
    "DiskFullError",
    "Drift",
    "Explainer",
    "Fidelity",
    "FidelityWarning",
    "FileFormatError",
    "FourierShapError",
    "FourierShapWarning",
    "Importance",
    "InputError",
    "Interactions",
    "Interval",
    "MissingDependencyError",
    "ModelWarning",
    "NoiseWarning",
    "OutputColumn",
    "Plan",
    "ProductExplainer",
    "ProductPlan",
    "QueryError",
    "Reasons",
    "ReportWarning",
    "SlowKernelWarning",
    "Spectrum",
    "SpectrumExplainer",
    "Stage",
    "Tables",
    "TopInteractions",
    "TopTerms",
    "TreeEnsemble",
    "TreeExplainer",
    "TreePlan",
    "UnsupportedModelError",
    "Waves",
    "about",
    "compile",
    "library_output",
    "load",
    "plan",
    "plots",
    "read_model",
    "shap_interaction_values",
    "shap_values",
    "sparse_walsh_hadamard",
    "survival_trees",
    "tree_spectrum",
    "walsh_hadamard",
]


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module(f"{__name__}.plots")
    if name not in _HOMES:
        raise AttributeError(f"module {short(__name__)} has no attribute {short(name)}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
