"""SHAP values of spectra against the exponential definition, and the axioms that they must obey."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import fouriershap as fs
import oracles
from fouriershap._shapley.spectrum.engine import make_engine
from reference_kernels import use_reference_kernels
from strategies import Problem, generators, problems, random_frequencies, random_players, spectra

STRATEGIES = ("tables", "direct", "auto")
TOLERANCE = 1e-10


def by_every_strategy(problem: Problem) -> dict[str, NDArray[np.float64]]:
    """The values by every strategy, and by tables that are too small for all terms."""
    given = (problem.spectrum, problem.X, problem.background)
    found = {
        strategy: fs.spectra.shap_values(*given, **problem.stage_two, strategy=strategy)
        for strategy in STRATEGIES
    }
    whole = make_engine(problem.spectrum, problem.background, **problem.stage_two)
    memory = whole.tables.nbytes // 2
    halved = make_engine(problem.spectrum, problem.background, memory=memory, **problem.stage_two)
    assert halved.tables.nbytes <= memory
    n_terms = halved.made_by.n_table_terms + halved.made_by.n_direct_terms
    assert n_terms == (problem.spectrum.degrees > 0).sum()
    for name, engine in (("compiled", whole), ("mixed", halved)):
        values = engine.shap_values(problem.X)
        found[name] = values[:, :, 0] if problem.spectrum.is_single else values
    return found


def stacked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_rows, n_players, n_outputs), whether or not the spectrum has an axis of outputs."""
    return values if values.ndim == 3 else values[:, :, None]


def assert_close(found: NDArray[Any], expected: NDArray[Any], scale: float | None = None) -> None:
    """Equal to 1e-10 of the largest value, or of ``scale``."""
    largest = np.abs(expected).max(initial=0.0) if scale is None else scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * max(largest, 1e-300))


def size_of(spectrum: fs.Spectrum) -> float:
    """What rounding errors are relative to where the values themselves may cancel."""
    return float(np.abs(spectrum.coefficients).sum())


@settings(max_examples=120, deadline=None)
@given(problems(max_players=8))
def test_every_strategy_is_the_exponential_definition(problem: Problem) -> None:
    expected = oracles.shap_values(problem.spectrum, problem.X, problem.background, **problem.stage_two)
    # Where everything cancels, what is left is rounding: a few ulps of the coefficients.
    largest = max(np.abs(expected).max(), 1e-5 * size_of(problem.spectrum))
    for name, found in by_every_strategy(problem).items():
        assert found.dtype == np.float64, name
        assert_close(stacked(found), expected, scale=largest)


@settings(max_examples=12, deadline=None)
@given(generators(), st.sampled_from([11, 12]), st.booleans(), st.booleans())
def test_twelve_players(rng: np.random.Generator, n_players: int, blocks: bool, weighted: bool) -> None:
    n_bits = n_players + 6 * blocks
    spectrum = fs.Spectrum(random_frequencies(rng, 60, n_bits, n_bits), rng.standard_normal((60, 2)))
    X, background = (rng.integers(0, 2, size=(n, n_bits)).astype(np.uint8) for n in (1, 5))
    players = random_players(rng, n_bits, n_players) if blocks else None
    problem = Problem(spectrum, X, background, players, rng.random(5) if weighted else None)
    expected = oracles.shap_values(spectrum, X, background, **problem.stage_two)
    for found in by_every_strategy(problem).values():
        assert_close(found, expected)


@settings(max_examples=60, deadline=None)
@given(problems(max_players=13))
def test_efficiency(problem: Problem) -> None:
    """The values of a row sum to h(x) - mean h(background)."""
    h = problem.spectrum
    engine = make_engine(h, problem.background, **problem.stage_two)
    mean = np.average(h(problem.background), axis=0, weights=problem.weights)
    found_mean = engine.expected[0] if h.is_single else engine.expected
    np.testing.assert_allclose(found_mean, mean, rtol=0, atol=TOLERANCE * (size_of(h) + 1e-300))
    for found in by_every_strategy(problem).values():
        assert found.shape == (len(problem.X), problem.n_players, *h.coefficients.shape[1:])
        assert_close(found.sum(axis=1), h(problem.X) - mean, scale=size_of(h))


@settings(max_examples=60, deadline=None)
@given(problems(max_players=12))
def test_dummy(problem: Problem) -> None:
    """A player whose bits no frequency reads gets exactly nothing."""
    n_bits = problem.spectrum.n_bits
    owner = np.arange(n_bits) if problem.players is None else problem.players
    read = np.zeros(problem.n_players, dtype=bool)
    read[owner[problem.spectrum.frequencies.any(axis=0)]] = True
    for found in by_every_strategy(problem).values():
        assert not found[:, ~read].any()


@pytest.mark.parametrize(("twins", "most_bits"), [(False, 13), (True, 6)], ids=["native", "numpy"])
@settings(max_examples=40, deadline=None)
@given(st.data(), generators(), st.booleans(), st.sampled_from(["shapley", "banzhaf"]))
def test_a_bit_that_is_the_same_everywhere_gets_exactly_nothing(
    twins: bool, most_bits: int, data: st.DataObject, rng: np.random.Generator, weighted: bool, index: str
) -> None:
    """A row whose bit is that of every background row: 0, not rounding errors, whatever the weights of the others."""
    n_bits, n_rows = data.draw(st.integers(1, most_bits)), data.draw(st.integers(1, 12))
    h = data.draw(spectra(n_bits=n_bits))
    X, background = (rng.integers(0, 2, size=(n, n_bits)).astype(np.uint8) for n in (20, n_rows))
    same = rng.permutation(n_bits)[: rng.integers(1, n_bits + 1)]
    X[:, same] = background[:, same] = rng.integers(0, 2, size=len(same))
    options: dict[str, Any] = {"weights": rng.random(n_rows) + 1e-3 if weighted else None, "index": index}
    with pytest.MonkeyPatch.context() as patch:
        if twins:
            use_reference_kernels(patch)
        for strategy in STRATEGIES:
            assert not fs.spectra.shap_values(h, X, background, **options, strategy=strategy)[:, same].any()
        assert not fs.SpectrumExplainer(h, background, **options).shap_interaction_values(X)[:, same].any()


@settings(max_examples=60, deadline=None)
@given(problems(max_players=10), st.randoms(use_true_random=False))
def test_symmetry(problem: Problem, random: Any) -> None:
    """Renaming bits and players renames the values; interchangeable bits get the same value."""
    n_bits = problem.spectrum.n_bits
    order = np.array(random.sample(range(n_bits), n_bits))
    h = fs.Spectrum(problem.spectrum.frequencies[:, order], problem.spectrum.coefficients)
    owner = np.arange(n_bits) if problem.players is None else problem.players
    for name, found in by_every_strategy(problem).items():
        if name not in STRATEGIES:
            continue
        renamed = fs.spectra.shap_values(
            h,
            problem.X[:, order],
            problem.background[:, order],
            players=owner[order],
            weights=problem.weights,
            strategy=name,
        )
        assert_close(renamed, found, scale=size_of(h))


@settings(max_examples=40, deadline=None)
@given(spectra(max_bits=9, outputs=False), generators())
def test_interchangeable_bits_get_the_same(h: fs.Spectrum, rng: np.random.Generator) -> None:
    """h with bits 0 and 1 exchanged, added to h, on data that does not tell them apart."""
    swapped = np.arange(h.n_bits)
    swapped[:2] = swapped[:2][::-1]
    both = h + fs.Spectrum(h.frequencies[:, swapped], h.coefficients)
    rows = rng.integers(0, 2, size=(6, h.n_bits))
    rows[:, : min(2, h.n_bits)] = rows[:, :1]
    background = np.concatenate([rows, rng.integers(0, 2, size=(4, h.n_bits))])
    background = np.concatenate([background, background[:, swapped]])
    for strategy in STRATEGIES:
        found = fs.spectra.shap_values(both, rows, background, strategy=strategy)
        assert_close(found[:, swapped], found, scale=size_of(both))


@settings(max_examples=60, deadline=None)
@given(problems(max_players=10), st.floats(-3, 3))
def test_linearity(problem: Problem, factor: float) -> None:
    """phi(factor * h + g) = factor * phi(h) + phi(g)."""
    h = problem.spectrum
    rng = np.random.default_rng(len(h))
    g = fs.Spectrum(
        random_frequencies(rng, 15, h.n_bits, h.n_bits), rng.standard_normal((15, *h.coefficients.shape[1:]))
    )
    for strategy in STRATEGIES:

        def phi(spectrum: fs.Spectrum, strategy: str = strategy) -> NDArray[np.float64]:
            return fs.spectra.shap_values(
                spectrum, problem.X, problem.background, **problem.stage_two, strategy=strategy
            )

        scale = (abs(factor) + 1.0) * (size_of(h) + size_of(g))
        assert_close(phi(factor * h + g), factor * phi(h) + phi(g), scale=scale)


@settings(max_examples=60, deadline=None)
@given(problems(max_players=8, outputs=False))
def test_whole_weights_count_as_repetitions(problem: Problem) -> None:
    counts = np.arange(1, len(problem.background) + 1) % 4
    counts[0] = 1
    repeated = np.repeat(problem.background, counts, axis=0)
    for strategy in STRATEGIES:
        one = fs.spectra.shap_values(
            problem.spectrum,
            problem.X,
            problem.background,
            players=problem.players,
            weights=7.5 * counts,
            strategy=strategy,
        )
        other = fs.spectra.shap_values(
            problem.spectrum, problem.X, repeated, players=problem.players, strategy=strategy
        )
        assert_close(one, other, scale=size_of(problem.spectrum))


@settings(max_examples=40, deadline=None)
@given(generators(), st.integers(1, 9))
def test_lemma_one_of_the_paper(rng: np.random.Generator, n_bits: int) -> None:
    frequency = rng.integers(0, 2, size=n_bits)
    row, background = rng.integers(0, 2, size=n_bits), rng.integers(0, 2, size=(6, n_bits))
    h = fs.Spectrum(frequency[None], [1.0])
    expected = oracles.lemma_one(frequency, row, background)
    for strategy in STRATEGIES:
        assert_close(
            fs.spectra.shap_values(h, row[None], background, strategy=strategy)[0], expected, scale=1.0
        )


def test_a_block_of_bits_is_one_player_not_the_sum_of_its_bits() -> None:
    """x0 x1 x2 as characters; the first two bits are one player."""
    h = fs.walsh_hadamard(lambda x: x[:, 0] & x[:, 1] & x[:, 2], 3)
    row, background, players = np.ones((1, 3)), np.zeros((1, 3)), np.array([0, 0, 1])
    bits = fs.spectra.shap_values(h, row, background)
    expected = oracles.shap_values(h, row, background, players)[:, :, 0]
    np.testing.assert_allclose(expected, [[1 / 2, 1 / 2]], atol=1e-12)
    for strategy in STRATEGIES:
        block = fs.spectra.shap_values(h, row, background, players=players, strategy=strategy)
        np.testing.assert_allclose(block, expected, atol=1e-12)
        assert abs(bits[0, :2].sum() - block[0, 0]) > 0.16  # 2 / 3, not 1 / 2


@settings(max_examples=60, deadline=None)
@given(generators())
def test_the_sum_over_a_blocks_bits_is_not_the_block(rng: np.random.Generator) -> None:
    """On random spectra the two differ, and ours is the block's."""
    n_bits, n_players = 9, 3
    h = fs.Spectrum(random_frequencies(rng, 40, n_bits, n_bits), rng.standard_normal(40))
    X, background = rng.integers(0, 2, size=(2, n_bits)), rng.integers(0, 2, size=(5, n_bits))
    players = random_players(rng, n_bits, n_players)
    summed = np.stack(
        [fs.spectra.shap_values(h, X, background)[:, players == j].sum(axis=1) for j in range(3)], axis=1
    )
    expected = oracles.shap_values(h, X, background, players)[:, :, 0]
    assert np.abs(summed - expected).max() > 1e-6
    assert_close(fs.spectra.shap_values(h, X, background, players=players), expected)


def test_players_that_own_one_bit_each_in_another_order() -> None:
    h = fs.Spectrum([[1, 0, 0], [1, 1, 0], [1, 1, 1]], [1.0, 2.0, 4.0])
    X, background, order = np.array([[1, 0, 1]]), np.array([[0, 0, 1], [1, 1, 0]]), np.array([2, 0, 1])
    expected = oracles.shap_values(h, X, background, order)[:, :, 0]
    for strategy in STRATEGIES:
        assert_close(fs.spectra.shap_values(h, X, background, players=order, strategy=strategy), expected)


def test_terms_wider_than_any_table_are_exact() -> None:
    """Degree 40: no brute force, but every differing player has the same share of chi(x*) - chi(x)."""
    n_bits = 60
    frequency = np.arange(n_bits) < 40
    row, other = np.zeros(n_bits), np.zeros(n_bits)
    other[:7] = 1
    other[50:] = 1  # outside the frequency
    h = fs.Spectrum(frequency[None], [1.0])
    tables = fs.SpectrumExplainer(h, other[None])
    assert tables.plan().strategy == "direct"
    expected = np.where(np.arange(n_bits) < 7, 2 / 7, 0.0)
    np.testing.assert_allclose(tables.shap_values(row[None])[0], expected, atol=1e-12)
    with pytest.raises(fs.CapacityError, match="memory"):
        fs.spectra.shap_values(h, row[None], other[None], strategy="tables")


@pytest.mark.parametrize("degree", [9, 13, 16])
def test_tables_wider_than_a_byte(degree: int) -> None:
    """Blocks of more than 256 patterns, and of more than 8 players, against the closed form."""
    rng = np.random.default_rng(degree)
    frequencies = np.concatenate([random_frequencies(rng, 5, 18, degree), np.arange(18)[None] < degree])
    h = fs.Spectrum(frequencies, rng.standard_normal((6, 2)))
    X, background = (rng.integers(0, 2, size=(n, 18)) for n in (130, 90))
    tables = fs.spectra.shap_values(h, X, background, strategy="tables")
    assert_close(tables, fs.spectra.shap_values(h, X, background, strategy="direct"), scale=size_of(h))


def test_many_bits_many_players() -> None:
    """300 bits, in 90 blocks: both strategies agree, and efficiency holds."""
    rng = np.random.default_rng(1)
    h = fs.Spectrum(random_frequencies(rng, 400, 300, 6), rng.standard_normal(400))
    X, background = (rng.integers(0, 2, size=(n, 300)) for n in (70, 130))
    for players in (None, random_players(rng, 300, 90)):
        one = fs.spectra.shap_values(h, X, background, players=players, strategy="tables")
        other = fs.spectra.shap_values(h, X, background, players=players, strategy="direct")
        assert_close(one, other, scale=size_of(h))
        assert_close(one.sum(axis=1), h(X) - h(background).mean(), scale=size_of(h))


def test_plans_say_what_is_done() -> None:
    rng = np.random.default_rng(0)
    h = fs.Spectrum(random_frequencies(rng, 300, 30, 5), rng.standard_normal(300))
    few = fs.spectra.plan(h, n_rows=1, n_background=1)
    assert few.strategy == "direct"
    assert "few" in few.reason
    many = fs.spectra.plan(h, n_rows=10**6, n_background=10**4)
    assert many.strategy == "tables"
    assert many.table_seconds < many.direct_seconds
    background = rng.integers(0, 2, size=(50, 30))
    whole = fs.SpectrumExplainer(h, background)
    assert whole.plan().strategy == "tables"
    assert whole.plan().table_bytes == whole.info.table_bytes
    small = fs.SpectrumExplainer(h, background, memory=whole.info.table_bytes / 3)
    assert small.plan().strategy == "tables+direct"
    assert 0 < small.plan().n_table_terms < whole.plan().n_table_terms
    assert small.plan().table_bytes == small.info.table_bytes <= whole.info.table_bytes / 3
    assert fs.SpectrumExplainer(h, background, memory=0).plan().strategy == "direct"


def test_no_rows_and_constant_functions() -> None:
    h = fs.Spectrum([[0, 0], [1, 0]], [3.0, 1.0])
    background = np.zeros((2, 2))
    for strategy in STRATEGIES:
        assert fs.spectra.shap_values(h, np.zeros((0, 2)), background, strategy=strategy).shape == (0, 2)
        constant = fs.spectra.shap_values(
            fs.Spectrum([[0, 0]], [3.0]), np.ones((3, 2)), background, strategy=strategy
        )
        np.testing.assert_array_equal(constant, np.zeros((3, 2)))
    assert fs.SpectrumExplainer(fs.Spectrum([[0, 0]], [3.0]), background).expected_value == 3.0


def test_several_outputs_are_the_outputs_one_by_one() -> None:
    rng = np.random.default_rng(5)
    frequencies, values = random_frequencies(rng, 80, 14, 5), rng.standard_normal((80, 4))
    X, background = (rng.integers(0, 2, size=(n, 14)) for n in (9, 30))
    for strategy in STRATEGIES:
        together = fs.spectra.shap_values(fs.Spectrum(frequencies, values), X, background, strategy=strategy)
        for output in range(4):
            alone = fs.spectra.shap_values(
                fs.Spectrum(frequencies, values[:, output]), X, background, strategy=strategy
            )
            assert_close(together[:, :, output], alone)
