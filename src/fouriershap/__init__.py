"""Exact SHAP values, fast at any scale: represent a model once, compile the background, explain."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fouriershap._base.errors import AdditivityError as AdditivityError
from fouriershap._base.errors import CapacityError as CapacityError
from fouriershap._base.errors import CostWarning as CostWarning
from fouriershap._base.errors import DiskFullError as DiskFullError
from fouriershap._base.errors import FidelityWarning as FidelityWarning
from fouriershap._base.errors import FileAccessError as FileAccessError
from fouriershap._base.errors import FileFormatError as FileFormatError
from fouriershap._base.errors import FourierShapError as FourierShapError
from fouriershap._base.errors import FourierShapWarning as FourierShapWarning
from fouriershap._base.errors import InputError as InputError
from fouriershap._base.errors import LabelWarning as LabelWarning
from fouriershap._base.errors import MissingDependencyError as MissingDependencyError
from fouriershap._base.errors import MissingFileError as MissingFileError
from fouriershap._base.errors import ModelWarning as ModelWarning
from fouriershap._base.errors import NoiseWarning as NoiseWarning
from fouriershap._base.errors import QueryError as QueryError
from fouriershap._base.errors import ReportWarning as ReportWarning
from fouriershap._base.errors import SlowKernelWarning as SlowKernelWarning
from fouriershap._base.errors import UnsupportedModelError as UnsupportedModelError

if TYPE_CHECKING:
    from fouriershap import analysis as analysis
    from fouriershap import plots as plots
    from fouriershap import spectra as spectra
    from fouriershap._base.progress import Stage as Stage
    from fouriershap._blackbox.black_box_fit import BlackBoxFit as BlackBoxFit
    from fouriershap._blackbox.fidelity import Fidelity as Fidelity
    from fouriershap._blackbox.fidelity import Interval as Interval
    from fouriershap._blackbox.selection import Candidate as Candidate
    from fouriershap._explainers.about import about as about
    from fouriershap._explainers.batches import OutputColumn as OutputColumn
    from fouriershap._explainers.constructors import BlackBoxExplainer as BlackBoxExplainer
    from fouriershap._explainers.constructors import ProductExplainer as ProductExplainer
    from fouriershap._explainers.constructors import SpectrumExplainer as SpectrumExplainer
    from fouriershap._explainers.constructors import TreeExplainer as TreeExplainer
    from fouriershap._explainers.explainer import Explainer as Explainer
    from fouriershap._explainers.load import load as load
    from fouriershap._fourier.display import TopTerms as TopTerms
    from fouriershap._fourier.sparse_transform import sparse_walsh_hadamard as sparse_walsh_hadamard
    from fouriershap._fourier.spectrum import Spectrum as Spectrum
    from fouriershap._fourier.transform import walsh_hadamard as walsh_hadamard
    from fouriershap._libraries import Reading as Reading
    from fouriershap._libraries import libraries as libraries
    from fouriershap._libraries import read_model as read_model
    from fouriershap._libraries import survival_trees as survival_trees
    from fouriershap._libraries.onnx.network import OnnxModel as OnnxModel
    from fouriershap._shapley.engine import Plan as Plan
    from fouriershap._shapley.engine import Quality as Quality
    from fouriershap._trees.ensemble import TreeEnsemble as TreeEnsemble
    from fouriershap._waves.waves import Waves as Waves
    from fouriershap.analysis.cohorts import Cohorts as Cohorts
    from fouriershap.analysis.dependence import PartialDependence as PartialDependence
    from fouriershap.analysis.drift import Drift as Drift
    from fouriershap.analysis.effects import Effects as Effects
    from fouriershap.analysis.games import GameExplanation as GameExplanation
    from fouriershap.analysis.games import explain_game as explain_game
    from fouriershap.analysis.importance import Importance as Importance
    from fouriershap.analysis.interactions import Interactions as Interactions
    from fouriershap.analysis.reasons import Reasons as Reasons
    from fouriershap.integrations.shap import patch_shap as patch_shap
    from fouriershap.integrations.shap import patched_shap as patched_shap
    from fouriershap.integrations.shap import unpatch_shap as unpatch_shap
    from fouriershap.spectra import tree_spectrum as tree_spectrum

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
    "OnnxModel": "_libraries.onnx.network",
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

__all__ = sorted([*_HOMES, *(name for name in globals() if name.endswith(("Error", "Warning")))])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        hint = ": fs.Explainer(model, background) explains any model" if name.endswith("Explainer") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    home = _HOMES[name]
    found = import_module(f"{__name__}.{home or name}")
    value = globals()[name] = getattr(found, name) if home else found
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
