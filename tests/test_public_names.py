"""The public names, pinned: adding one is a decision, losing one breaks somebody."""

import pytest

import fouriershap

NAMES = """
    AdditivityError CapacityError DiskFullError FidelityWarning FileAccessError FileFormatError FourierShapError
    FourierShapWarning CostWarning InputError LabelWarning MissingDependencyError MissingFileError ModelWarning
    NoiseWarning
    QueryError ReportWarning SlowKernelWarning UnsupportedModelError BlackBoxExplainer BlackBoxFit Candidate
    Explainer Fidelity Interval OnnxModel OutputColumn Plan ProductExplainer Quality Spectrum SpectrumExplainer Stage
    TopTerms TreeEnsemble TreeExplainer Waves load read_model sparse_walsh_hadamard survival_trees tree_spectrum
    walsh_hadamard Cohorts Drift Importance Interactions Reasons about analysis calibrate plots spectra Reading
    libraries explain_game GameExplanation PartialDependence Effects patch_shap patched_shap unpatch_shap
"""


def test_the_public_names_are_these() -> None:
    assert sorted(fouriershap.__all__) == sorted(NAMES.split())


def test_every_public_name_exists_and_is_documented() -> None:
    for name in fouriershap.__all__:
        assert getattr(fouriershap, name).__doc__, name


def test_the_list_is_sorted() -> None:
    assert list(fouriershap.__all__) == sorted(fouriershap.__all__)


def test_dir_shows_public_names_only() -> None:
    assert set(dir(fouriershap)) == {*fouriershap.__all__, "__version__"}


def test_explainers_of_shap_are_told_what_to_use() -> None:
    with pytest.raises(
        AttributeError, match=r"'KernelExplainer': fs\.Explainer\(model, background\) explains any"
    ):
        fouriershap.KernelExplainer  # noqa: B018
