"""The paper's four versions and the tables on JAX, against the native kernels."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._shapley import jax as versions
from fouriershap._shapley.spectrum.engine import make_engine
from strategies import Problem, generators, random_frequencies, random_players

jax = pytest.importorskip("jax")

TOLERANCE = {"double": 1e-10, "single": 1e-5}
N_PLAYERS = 12


def make_problem(
    rng: np.random.Generator,
    *,
    blocks: bool = False,
    n_outputs: int | None = None,
    weighted: bool = False,
    degree: int = 10,
    n_players: int = N_PLAYERS,
    n_rows: int = 13,
) -> Problem:
    """Shapes are few and fixed, because each new one is compiled."""
    n_bits = n_players * (2 if blocks else 1)
    frequencies = random_frequencies(rng, 60, n_bits, degree)
    frequencies[0] = False
    frequencies[0, :degree] = True
    shape = (60,) if n_outputs is None else (60, n_outputs)
    X, background = (rng.integers(0, 2, size=(n, n_bits)).astype(np.uint8) for n in (n_rows, 33))
    players = random_players(rng, n_bits, n_players) if blocks else None
    weights = rng.random(33) * (rng.random(33) < 0.8) + 1e-3 if weighted else None
    return Problem(fs.Spectrum(frequencies, rng.standard_normal(shape)), X, background, players, weights)


def explain(problem: Problem, **settings: Any) -> NDArray[np.float64]:
    """Double unless told otherwise: the default of an accelerator is single."""
    settings = {"precision": "double"} | settings
    return fs.spectra.shap_values(
        problem.spectrum, problem.X, problem.background, **problem.stage_two, **settings
    )


def assert_close(found: NDArray[Any], expected: NDArray[Any], precision: str = "double") -> None:
    assert found.dtype == np.float64
    assert found.shape == expected.shape
    largest = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[precision] * largest)


@pytest.mark.parametrize("strategy", versions.VERSIONS)
@settings(max_examples=15, deadline=None)
@given(rng=generators())
def test_every_version_is_the_closed_form(strategy: str, rng: np.random.Generator) -> None:
    problem = make_problem(rng)
    assert_close(explain(problem, strategy=strategy), explain(problem, strategy="direct"))


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("strategy", versions.VERSIONS)
def test_blocks_outputs_and_weights(strategy: str, precision: str) -> None:
    problem = make_problem(np.random.default_rng(3), blocks=True, n_outputs=3, weighted=True)
    found = explain(problem, strategy=strategy, precision=precision)
    assert_close(found, explain(problem, strategy="direct"), precision)


@pytest.mark.parametrize("strategy", ["precompute", "sparse", "positional"])
def test_degrees_beyond_a_word(strategy: str) -> None:
    problem = make_problem(np.random.default_rng(4), n_players=70, degree=70)
    assert_close(explain(problem, strategy=strategy), explain(problem, strategy="direct"))


@pytest.mark.parametrize("strategy", versions.VERSIONS)
def test_chunks_of_terms_background_and_rows(strategy: str) -> None:
    """A budget that is too small for everything at once changes chunks, not values."""
    problem = make_problem(np.random.default_rng(5), n_rows=90)
    expected = explain(problem, strategy="direct")
    prepared = versions.prepare(
        problem.spectrum, problem.background, strategy=strategy, memory=300_000, precision="double"
    )
    n_units = prepared._layout.n_units
    assert prepared.chunk[0] < n_units or prepared.chunk[1] < 33
    assert prepared._rows_per_chunk(90) < 90
    assert_close(prepared.shap_values(problem.X)[:, :, 0], expected)
    assert_close(prepared.shap_values(problem.X[:1])[:, :, 0], expected[:1])


@pytest.mark.parametrize("strategy", versions.VERSIONS)
def test_a_budget_for_not_even_one_chunk(strategy: str) -> None:
    problem = make_problem(np.random.default_rng(5))
    with pytest.raises(fs.CapacityError, match=r"needs about [\d,]+ bytes .* memory is 1,000"):
        explain(problem, strategy=strategy, memory=1000)


@pytest.mark.parametrize("strategy", versions.VERSIONS)
def test_a_new_batch_size_does_not_recompile(strategy: str) -> None:
    problem = make_problem(np.random.default_rng(6), n_rows=40)
    prepared = versions.prepare(problem.spectrum, problem.background, strategy=strategy)
    prepared.shap_values(problem.X)
    compiled = prepared._version.explain._cache_size()
    for n_rows in range(33, 40):
        prepared.shap_values(problem.X[:n_rows])
    assert prepared._version.explain._cache_size() == compiled
    prepared.shap_values(problem.X[:20])  # the count does see a new shape
    assert prepared._version.explain._cache_size() == compiled + 1


@pytest.fixture
def as_on_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take the branches that only other devices than a CPU take."""
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *arrays, cpu, default: default(*arrays))
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("as_on_an_accelerator")
def test_what_an_accelerator_runs() -> None:
    problem = make_problem(np.random.default_rng(12), n_outputs=2, weighted=True)
    expected = explain(problem, strategy="direct")
    for strategy in versions.VERSIONS:
        assert_close(explain(problem, strategy=strategy), expected)
    tables = make_engine(problem.spectrum, problem.background, **problem.stage_two).to("jax", "double")
    assert_close(tables.shap_values(problem.X), expected)


def test_versions_as_engines() -> None:
    from fouriershap._shapley.jax.engine import VersionEngine

    problem = make_problem(np.random.default_rng(13), n_outputs=2)
    tables = make_engine(problem.spectrum, problem.background)
    engine = VersionEngine(
        tables, versions.prepare(problem.spectrum, problem.background, strategy="sparse", precision="double")
    )
    outputs = np.empty((len(problem.X), 2))
    assert_close(engine.shap_values(problem.X, outputs=outputs), tables.shap_values(problem.X))
    np.testing.assert_array_equal(outputs, tables.predict(problem.X))
    assert engine.device == "jax"
    for change in (lambda: engine.to("cpu"), lambda: engine.with_background(problem.X, None)):
        with pytest.raises(fs.InputError, match="one background and device"):
            change()


def test_nothing_to_explain() -> None:
    constant = fs.Spectrum(np.zeros((1, 3)), [2.0])
    term = fs.Spectrum([[1, 1, 0]], [1.0])
    for strategy in versions.VERSIONS:
        assert not fs.spectra.shap_values(
            constant, np.ones((2, 3)), np.zeros((2, 3)), strategy=strategy
        ).any()
        assert fs.spectra.shap_values(term, np.ones((0, 3)), np.zeros((2, 3)), strategy=strategy).shape == (
            0,
            3,
        )


def test_the_precision_and_the_users_own_setting() -> None:
    problem = make_problem(np.random.default_rng(7))
    before = jax.numpy.ones(3, dtype=np.float32).dtype, jax.config.jax_enable_x64
    by_default = versions.prepare(problem.spectrum, problem.background, strategy="sparse")
    accelerated = jax.default_backend() != "cpu"
    assert by_default.dtype == (np.float32 if accelerated else np.float64)
    single = versions.prepare(problem.spectrum, problem.background, strategy="sparse", precision="single")
    assert single.dtype == np.float32
    values = single.shap_values(problem.X)[:, :, 0]
    assert np.abs(values - explain(problem, strategy="direct")).max() > 0  # it was indeed single
    assert (jax.numpy.ones(3, dtype=np.float32).dtype, jax.config.jax_enable_x64) == before


# Tables


@pytest.mark.parametrize("precision", ["single", "double"])
def test_tables_of_spectra(precision: str) -> None:
    problem = make_problem(np.random.default_rng(8), blocks=True, n_outputs=3, weighted=True)
    tables = make_engine(problem.spectrum, problem.background, **problem.stage_two).to("jax", precision)
    assert_close(tables.shap_values(problem.X), explain(problem, strategy="direct"), precision)


def test_tables_with_terms_too_wide_for_them() -> None:
    problem = make_problem(np.random.default_rng(9), n_players=30, degree=20)
    tables = fs.SpectrumExplainer(problem.spectrum, problem.background, device="jax", precision="double")
    assert tables.plan().strategy == "tables+direct"
    assert_close(tables.shap_values(problem.X), explain(problem, strategy="direct"))


def test_tables_from_a_file_and_from_a_pickle(tmp_path: Path) -> None:
    problem = make_problem(np.random.default_rng(10))
    tables = fs.SpectrumExplainer(problem.spectrum, problem.background, device="jax", precision="double")
    expected = tables.shap_values(problem.X)
    tables.save(tmp_path / "tables.fshap")
    loaded = fs.load(tmp_path / "tables.fshap").to("jax")
    for other in (loaded, pickle.loads(pickle.dumps(tables)), tables.to("cpu")):
        assert_close(other.shap_values(problem.X), expected)


def test_tables_in_chunks_of_rows_and_beyond_the_budget() -> None:
    problem = make_problem(np.random.default_rng(11), n_rows=500)
    native = make_engine(problem.spectrum, problem.background)
    n_bytes = native.tables.nbytes
    tables = native.to("jax", precision="double", memory=n_bytes + 400_000)
    assert_close(tables.shap_values(problem.X), native.shap_values(problem.X))
    with pytest.raises(fs.CapacityError, match="needs about"):
        native.to("jax", memory=n_bytes // 2).shap_values(problem.X)


@cache
def tree_models() -> dict[str, Any]:
    """Model, rows and settings: several outputs, missing values, more than 256 thresholds, groups, no tables."""
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2])
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    classes = RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, np.digitize(y, [-0.5, 0.5]))
    boosted = LGBMRegressor(n_estimators=20, num_leaves=12, verbose=-1).fit(gaps, y)
    wide = ExtraTreesRegressor(40, max_depth=6, random_state=0).fit(X, y)
    return {
        "several outputs": (classes, X, {}),
        "single precision": (classes, X, {"precision": "single"}),
        "missing values": (boosted, gaps, {}),
        "many thresholds": (wide, X, {}),
        "groups": (boosted, gaps, {"groups": ["a", "a", "b", "c", "c"]}),
        "path-dependent": (boosted, gaps, {"feature_perturbation": "tree_path_dependent"}),
    }


@pytest.mark.parametrize(
    "name",
    ["several outputs", "single precision", "missing values", "many thresholds", "groups", "path-dependent"],
)
def test_trees(name: str) -> None:
    model, X, settings = tree_models()[name]
    settings = {"precision": "double"} | settings
    precision = settings["precision"]
    native = fs.TreeExplainer(model, X[:100], strategy="tables", **settings)
    on_jax = fs.TreeExplainer(model, X[:100], device="jax", **settings)
    for n_rows in (300, 5):
        expected = native.shap_values(X[:n_rows])
        assert_close(on_jax.shap_values(X[:n_rows]), expected, precision)
    assert_close(native.to("jax").shap_values(X[:5]), expected, precision)
    assert_close(np.atleast_1d(on_jax.expected_value), np.atleast_1d(native.expected_value))
    if "feature_perturbation" not in settings:
        again = on_jax.with_background(X[100:150])
        assert again.engine.device == "jax"
        expected = native.with_background(X[100:150]).shap_values(X[:5])
        assert_close(again.shap_values(X[:5]), expected, precision)


def test_trees_too_deep_for_tables() -> None:
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    chain = DecisionTreeRegressor(random_state=0).fit(X, rng.normal(size=400))
    walk = fs.TreeExplainer(chain, X[:20], strategy="walk")
    on_jax = fs.TreeExplainer(chain, X[:20], memory=2_000, device="jax")
    assert not on_jax.engine.in_tables.any()
    assert_close(on_jax.shap_values(X[:9]), walk.shap_values(X[:9]))


def test_more_than_256_thresholds_are_wide_codes() -> None:
    model, X, _ = tree_models()["many thresholds"]
    explainer = fs.TreeExplainer(model, X[:100], strategy="tables")
    assert (explainer.engine.compiled.columns.column < 0).any()


# Black boxes


@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
@pytest.mark.parametrize("method", ["enumerate", "trees", "waves"])
def test_black_boxes(method: str, index: str) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, (200, 5)), np.ones(200)])

    def predict(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack(
            [rows[:, 0] * rows[:, 1] + rows[:, 5], rows[:, 2] - (rows[:, 3] == rows[:, 4])]
        )

    settings = {"method": method, "budget": 300, "random_state": 0, "index": index}
    native = explain_fitted(predict, X[:40], data=X, **settings)
    on_jax = explain_fitted(predict, X[:40], data=X, **settings).to("jax")
    precision = "single" if method == "trees" else "double"  # of the tables of fitted trees
    expected = native.shap_values(X)
    assert expected.shape == (200, 6, 2) and np.abs(expected).max() > 0.1
    assert_close(on_jax.shap_values(X), expected, precision)
    assert_close(native.to("jax").shap_values(X[:7]), expected[:7], precision)
    assert_close(on_jax.to("cpu").shap_values(X[:7]), expected[:7], precision)
    expected = native.with_background(X[100:120]).shap_values(X[:7])
    assert_close(on_jax.with_background(X[100:120]).shap_values(X[:7]), expected, precision)
    assert_close(on_jax.shap_interaction_values(X[:3]), native.shap_interaction_values(X[:3]), precision)


def test_a_black_box_in_which_nothing_varies() -> None:
    constant = explain_fitted(lambda x: np.full(len(x), 3.0), np.ones((5, 2))).to("jax")
    assert not constant.shap_values(np.ones((2, 2))).any()


# Errors


def test_devices_of_black_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.eye(4)
    explainer = explain_fitted(lambda x: x[:, 0], X)
    with pytest.raises(fs.InputError, match="device is 'gpu'"):
        explainer.to("gpu")
    with pytest.raises(fs.InputError, match=r"device is 'jax'.*explainer\.fit\(\)\.to"):
        fs.Explainer(lambda x: x[:, 0], X).to("jax")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(fs.MissingDependencyError, match=r"pip install 'fouriershap\[jax\]'"):
        explainer.to("jax")


def test_wrong_arguments() -> None:
    h, row = fs.Spectrum([[1, 1]], [1.0]), [[0, 1]]
    with pytest.raises(fs.InputError, match="device is 'gpu'"):
        fs.SpectrumExplainer(h, row, device="gpu")
    with pytest.raises(fs.InputError, match="precision is 'half'"):
        fs.spectra.shap_values(h, row, row, strategy="base", precision="half")
    with pytest.raises(fs.InputError, match="only JAX takes one"):
        fs.spectra.shap_values(h, row, row, precision="single")
    with pytest.raises(fs.InputError, match="strategy is 'fast'"):
        versions.prepare(h, row, strategy="fast")
    with pytest.raises(fs.InputError, match="'precompute'"):
        fs.spectra.shap_values(h, row, row, strategy="fast")


def test_trees_that_are_to_be_walked_are_not_read_from_tables() -> None:
    model, X, _ = tree_models()["groups"]
    with pytest.raises(fs.InputError, match="strategy='walk' does not build"):
        fs.TreeExplainer(model, X, strategy="walk", device="jax")


def test_without_jax_the_error_gives_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    h, row = fs.Spectrum([[1, 1]], [1.0]), [[0, 1]]
    for strategy in versions.VERSIONS:
        with pytest.raises(fs.MissingDependencyError, match=r"pip install 'fouriershap\[jax\]'"):
            fs.spectra.shap_values(h, row, row, strategy=strategy)
    with pytest.raises(fs.MissingDependencyError, match=r"pip install 'fouriershap\[jax\]'"):
        fs.SpectrumExplainer(h, row, device="jax")


def test_native_strategies_do_not_import_jax() -> None:
    program = """
import sys, fouriershap as fs
h = fs.Spectrum([[1, 1]], [1.0])
fs.spectra.shap_values(h, [[0, 1]], [[0, 0]])
fs.SpectrumExplainer(h, [[0, 0]]).shap_values([[0, 1]])
assert "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("strategy", versions.VERSIONS)
def test_explainers_of_spectra_take_the_versions(strategy):
    rng = np.random.default_rng(5)
    h = fs.Spectrum(rng.random((30, 8)) < 0.3, rng.standard_normal((30, 2)))
    X, background = rng.integers(0, 2, (7, 8)), rng.integers(0, 2, (9, 8))
    groups = {"two": [0, 3]}
    native = fs.Explainer(h, background, groups=groups)
    explainer = fs.Explainer(h, background, groups=groups, strategy=strategy, precision="double")
    assert np.abs(explainer.shap_values(X) - native.shap_values(X)).max() < 1e-10
    assert np.allclose(explainer.shap_interaction_values(X), native.shap_interaction_values(X))


def test_explainers_of_spectra_refuse_other_strategies():
    h = fs.Spectrum([[1, 0]], [1.0])
    with pytest.raises(fs.InputError, match="strategy is 'walk'"):
        fs.Explainer(h, [[0, 0]], strategy="walk")
    with pytest.raises(fs.InputError, match="no index 'banzhaf'"):
        fs.Explainer(h, [[0, 0]], strategy="sparse", index="banzhaf")
