"""Exact SHAP values, fast at any scale: represent a model once, compile the background, explain."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fouriershap._base.errors import (
    AdditivityError,
    CapacityError,
    CostWarning,
    DiskFullError,
    FidelityWarning,
    FileAccessError,
    FileFormatError,
    FourierShapError,
    FourierShapWarning,
    InputError,
    LabelWarning,
    MissingDependencyError,
    MissingFileError,
    ModelWarning,
    NoiseWarning,
    QueryError,
    ReportWarning,
    SlowKernelWarning,
    UnsupportedModelError,
)

if TYPE_CHECKING:
    from fouriershap import analysis, plots, spectra
    from fouriershap._base.progress import Stage
    from fouriershap._blackbox.black_box_fit import BlackBoxFit
    from fouriershap._blackbox.fidelity import Fidelity, Interval
    from fouriershap._blackbox.selection import Candidate
    from fouriershap._explainers.about import about
    from fouriershap._explainers.batches import OutputColumn
    from fouriershap._explainers.constructors import (
        BlackBoxExplainer,
        ProductExplainer,
        SpectrumExplainer,
        TreeExplainer,
    )
    from fouriershap._explainers.explainer import Explainer
    from fouriershap._explainers.load import load
    from fouriershap._fourier.display import TopTerms
    from fouriershap._fourier.sparse_transform import sparse_walsh_hadamard
    from fouriershap._fourier.spectrum import Spectrum
    from fouriershap._fourier.transform import walsh_hadamard
    from fouriershap._libraries import Reading, libraries, read_model, survival_trees
    from fouriershap._shapley.engine import Plan, Quality
    from fouriershap._trees.ensemble import TreeEnsemble
    from fouriershap._waves.waves import Waves
    from fouriershap.analysis.cohorts import Cohorts
    from fouriershap.analysis.dependence import PartialDependence
    from fouriershap.analysis.drift import Drift
    from fouriershap.analysis.effects import Effects
    from fouriershap.analysis.games import GameExplanation, explain_game
    from fouriershap.analysis.importance import Importance
    from fouriershap.analysis.interactions import Interactions
    from fouriershap.analysis.reasons import Reasons
    from fouriershap.integrations.shap import patch_shap, patched_shap, unpatch_shap
    from fouriershap.spectra import tree_spectrum

# Names that are imported at their first use, so that `import fouriershap` costs little more than NumPy. "" is a module.
_HOMES = {
    "BlackBoxExplainer": "_explainers.constructors",
    "BlackBoxFit": "_blackbox.black_box_fit",
    "Candidate": "_blackbox.selection",
    "Cohorts": "analysis.cohorts",
    "Drift": "analysis.drift",
    "Effects": "analysis.effects",
    "Explainer": "_explainers.explainer",
    "Fidelity": "_blackbox.fidelity",
    "GameExplanation": "analysis.games",
    "Importance": "analysis.importance",
    "Interactions": "analysis.interactions",
    "Interval": "_blackbox.fidelity",
    "OutputColumn": "_explainers.batches",
    "PartialDependence": "analysis.dependence",
    "Plan": "_shapley.engine",
    "ProductExplainer": "_explainers.constructors",
    "Quality": "_shapley.engine",
    "Reading": "_libraries",
    "Reasons": "analysis.reasons",
    "Spectrum": "_fourier.spectrum",
    "SpectrumExplainer": "_explainers.constructors",
    "Stage": "_base.progress",
    "TopTerms": "_fourier.display",
    "TreeEnsemble": "_trees.ensemble",
    "TreeExplainer": "_explainers.constructors",
    "Waves": "_waves.waves",
    "about": "_explainers.about",
    "analysis": "",
    "calibrate": "_shapley.trees.calibrate",
    "explain_game": "analysis.games",
    "libraries": "_libraries",
    "load": "_explainers.load",
    "patch_shap": "integrations.shap",
    "patched_shap": "integrations.shap",
    "plots": "",
    "read_model": "_libraries",
    "sparse_walsh_hadamard": "_fourier.sparse_transform",
    "spectra": "",
    "survival_trees": "_libraries",
    "tree_spectrum": "spectra",
    "unpatch_shap": "integrations.shap",
    "walsh_hadamard": "_fourier.transform",
}

__version__ = "0.1.0"

__all__ = [
    "AdditivityError",
    "BlackBoxExplainer",
    "BlackBoxFit",
    "Candidate",
    "CapacityError",
    "Cohorts",
    "CostWarning",
    "DiskFullError",
    "Drift",
    "Effects",
    "Explainer",
    "Fidelity",
    "FidelityWarning",
    "FileAccessError",
    "FileFormatError",
    "FourierShapError",
    "FourierShapWarning",
    "GameExplanation",
    "Importance",
    "InputError",
    "Interactions",
    "Interval",
    "LabelWarning",
    "MissingDependencyError",
    "MissingFileError",
    "ModelWarning",
    "NoiseWarning",
    "OutputColumn",
    "PartialDependence",
    "Plan",
    "ProductExplainer",
    "Quality",
    "QueryError",
    "Reading",
    "Reasons",
    "ReportWarning",
    "SlowKernelWarning",
    "Spectrum",
    "SpectrumExplainer",
    "Stage",
    "TopTerms",
    "TreeEnsemble",
    "TreeExplainer",
    "UnsupportedModelError",
    "Waves",
    "about",
    "analysis",
    "calibrate",
    "explain_game",
    "libraries",
    "load",
    "patch_shap",
    "patched_shap",
    "plots",
    "read_model",
    "sparse_walsh_hadamard",
    "spectra",
    "survival_trees",
    "tree_spectrum",
    "unpatch_shap",
    "walsh_hadamard",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    found = import_module(f"{__name__}.{home or name}")
    value = globals()[name] = getattr(found, name) if home else found
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
