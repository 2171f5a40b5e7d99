"""Sums of products against the exponential definition: every strategy, both indices, interactions, files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from fouriershap import FileFormatError
from fouriershap._shapley.indices import BANZHAF, SHAPLEY, Index
from fouriershap._shapley.interactions import interaction_matrices
from fouriershap._shapley.products.components import Pairs, compile_pairs
from fouriershap._shapley.products.engine import ProductEngine, ProductSettings, compile_products
from fouriershap._shapley.products.mixture import Mixture
from fouriershap._shapley.products.model import weighted_rows
from fouriershap._shapley.products.subsets import Subsets, compile_subsets
from oracles import banzhaf_values, coalition_values, interaction_matrix, shapley_values
from wave_models import WaveProblem, definition, random_columns, random_rows, random_waves, wave_problems

BY_DEFINITION = {SHAPLEY: shapley_values, BANZHAF: banzhaf_values}
SETTINGS = ProductSettings()


def engine_on(strategy: str, problem: WaveProblem, index: Index) -> ProductEngine:
    engine = compile_products(problem.waves, problem.background, problem.weights, index, SETTINGS)
    compile_strategy = {"pairs": compile_pairs, "subsets": compile_subsets}[strategy]
    found = compile_strategy(problem.waves, weighted_rows(problem.background, problem.weights), index)
    return replace(engine, strategy=found)


@pytest.mark.parametrize("index", [SHAPLEY, BANZHAF])
@pytest.mark.parametrize("strategy", ["pairs", "subsets"])
@given(problem=wave_problems())
@settings(max_examples=30, deadline=None)
def test_values_and_interactions_by_definition(strategy: str, index: Index, problem: WaveProblem) -> None:
    engine = engine_on(strategy, problem, index)
    outputs = np.empty((len(problem.rows), engine.n_outputs))
    values = engine.shap_values(problem.rows, outputs=outputs)
    np.testing.assert_allclose(outputs, problem.waves.predict(problem.rows), atol=1e-11)
    matrices = interaction_matrices(engine, problem.rows, 1)
    for row, found, matrix in zip(problem.rows, values, matrices, strict=True):
        worth = definition(problem, row)
        np.testing.assert_allclose(found, BY_DEFINITION[index](worth, engine.n_players), atol=1e-10)
        truth = interaction_matrix(worth, engine.n_players, index is BANZHAF)
        apart = ~np.eye(engine.n_players, dtype=bool)
        np.testing.assert_allclose(matrix[apart], truth[apart], atol=1e-9)
        np.testing.assert_allclose(engine.expected, worth[0], atol=1e-11)


@dataclass(frozen=True, eq=False)
class Bumps:
    """A kernel machine: real factors exp(-(x_j - s_j)^2), and no part that is additive."""

    centres: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def n_players(self) -> int:
        return self.centres.shape[1]

    @property
    def n_outputs(self) -> int:
        return 1

    @property
    def coefficients(self) -> NDArray[np.float64]:
        out = np.zeros((1, 2, 16))
        out[0, 0, : len(self.weights)] = self.weights
        return out

    def factors(self, rows: NDArray[Any], dtype: Any = np.float64) -> NDArray[Any]:
        out = np.zeros((len(rows), self.n_players, 2, 16), dtype)
        out[:, :, 0, : len(self.weights)] = np.exp(-((rows[:, :, None] - self.centres.T) ** 2))
        return out

    def additive(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        return np.zeros((len(rows), self.n_players, 1))

    def predict(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        distance = ((rows[:, None] - self.centres) ** 2).sum(axis=2)
        return np.exp(-distance) @ self.weights[:, None]

    def products(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        return self.predict(rows)

    def embed(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        return rows.astype(np.float32)


@pytest.mark.parametrize("exact", [False, True])
def test_real_factors_by_definition(exact: bool) -> None:
    rng = np.random.default_rng(0)
    machine = Bumps(rng.normal(size=(9, 5)), rng.normal(size=9))
    background, rows = rng.normal(size=(30, 5)), rng.normal(size=(4, 5))
    engine = compile_products(machine, background, None, SHAPLEY, ProductSettings(exact=exact))
    values = engine.shap_values(rows)
    for row, found in zip(rows, values, strict=True):
        worth = coalition_values(machine.predict, row, background, np.arange(5))
        np.testing.assert_allclose(found, shapley_values(worth, 5), atol=1e-12)


def wide_problem(n_players: int = 16, n_background: int = 300) -> WaveProblem:
    """Too many players for subsets, too many rows for pairs; players that depend on each other."""
    rng = np.random.default_rng(1)
    columns = random_columns(rng, n_players, n_players)
    waves = random_waves(rng, columns, 40, 2)
    waves = type(waves)(
        waves.frequencies / 4, waves.amplitudes, waves.phases, waves.linear, [1.0, 2.0], columns
    )
    background = random_rows(rng, columns, n_background)
    return WaveProblem(waves, random_rows(rng, columns, 40), background, rng.dirichlet(np.ones(n_background)))


@pytest.mark.parametrize("index", [SHAPLEY, BANZHAF])
def test_the_error_of_a_mixture_is_what_it_says(index: Index) -> None:
    problem = wide_problem()
    given_ = (problem.waves, problem.background, problem.weights, index)
    exact = compile_products(*given_, ProductSettings(exact=True))
    truth = exact.shap_values(problem.rows)
    missed = {}
    for tolerance in (1.0, 0.0):
        engine = compile_products(*given_, ProductSettings(tolerance))
        assert isinstance(exact.strategy, Pairs)
        assert isinstance(engine.strategy, Mixture)
        missed[tolerance] = ((engine.shap_values(problem.rows) - truth) ** 2).sum() / (truth**2).sum()
        error = engine.quality.background_error
        assert error / 4 < missed[tolerance] < 4 * error
    assert missed[0.0] <= missed[1.0]


def test_a_mixture_adds_up() -> None:
    problem = wide_problem()
    engine = compile_products(
        problem.waves, problem.background, problem.weights, SHAPLEY, ProductSettings(1.0)
    )
    values, outputs = engine.shap_values(problem.rows), problem.waves.predict(problem.rows)
    np.testing.assert_allclose(values.sum(axis=1), outputs - engine.expected, atol=1e-10)


@pytest.mark.parametrize("problem", [wide_problem(), wide_problem(5, 100), wide_problem(16, 5)])
def test_files_keep_the_engine(problem: WaveProblem) -> None:
    engine = compile_products(problem.waves, problem.background, problem.weights, SHAPLEY, SETTINGS)
    arrays, header = engine.to_contents(True)
    again = ProductEngine.from_contents(arrays, header, problem.waves)
    np.testing.assert_array_equal(again.shap_values(problem.rows), engine.shap_values(problem.rows))
    assert again.plan(None) == engine.plan(None)
    other = again.with_background(problem.background[:3], None)
    worth = problem.waves.predict(problem.background[:3]).mean(axis=0)
    np.testing.assert_allclose(other.expected, worth)
    with pytest.raises(FileFormatError):
        ProductEngine.from_contents(arrays, header | {"strategy": "by foot"}, problem.waves)
    stranger = wide_problem(4).waves
    with pytest.raises(FileFormatError):
        ProductEngine.from_contents(arrays, header, stranger)


@pytest.mark.parametrize("problem", [wide_problem(), wide_problem(5, 100), wide_problem(16, 5)])
def test_under_jax_they_are_the_same(problem: WaveProblem) -> None:
    pytest.importorskip("jax")
    native = compile_products(problem.waves, problem.background, problem.weights, SHAPLEY, SETTINGS)
    on_jax = native.to("jax")
    assert (native.device, on_jax.device) == ("cpu", "jax")
    tolerance = (
        1e-4 if isinstance(native.strategy, Mixture) else 1e-10
    )  # compressed backgrounds are in single precision
    for mine, other in ((on_jax, native), (on_jax.with_background(problem.background[:3], None), None)):
        other = other or native.with_background(problem.background[:3], None)
        values = mine.shap_values(problem.rows)
        np.testing.assert_allclose(values, other.shap_values(problem.rows), atol=tolerance)
    assert on_jax.to("cpu").device == "cpu"


def test_the_cheapest_strategy_is_chosen() -> None:
    strategies = {
        (16, 300): Mixture,
        (16, 30): Pairs,
        (6, 300): Subsets,
        (12, 1): Pairs,  # a table of 4096 coalitions against one row
    }
    for (n_players, n_background), strategy in strategies.items():
        problem = wide_problem(n_players, n_background)
        engine = compile_products(problem.waves, problem.background, None, SHAPLEY, SETTINGS)
        assert isinstance(engine.strategy, strategy)
