import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap import (
    FidelityWarning,
    InputError,
    MissingDependencyError,
    QueryError,
    Spectrum,
    sparse_walsh_hadamard,
    walsh_hadamard,
)
from fouriershap.fourier._bch import make_code
from fouriershap.fourier._sparse import Search, recover

warnings.simplefilter("error", FidelityWarning)


def random_spectrum(seed, n_bits, n_terms, *, degree=5, least_degree=1, amplitudes="uniform"):
    rng = np.random.default_rng(seed)
    lines = set()
    while len(lines) < n_terms:
        chosen = rng.choice(n_bits, rng.integers(least_degree, degree + 1), replace=False)
        lines.add(tuple(sorted(chosen.tolist())))
    frequencies = np.zeros((n_terms, n_bits), dtype=bool)
    for line, bits in zip(frequencies, sorted(lines), strict=True):
        line[list(bits)] = True
    signs = rng.choice([-1.0, 1.0], n_terms)
    return Spectrum(frequencies, signs * (rng.uniform(0.1, 1, n_terms) if amplitudes == "uniform" else 1.0))


class Model:
    """A spectrum as a black box: counts its rows, adds noise."""

    def __init__(self, spectrum, noise=0.0, seed=0):
        self.spectrum, self.count = spectrum, 0
        self.deviation = noise * np.sqrt(spectrum.variance)
        self.rng = np.random.default_rng(seed)

    def __call__(self, rows):
        self.count += len(rows)
        return self.spectrum(rows, n_jobs=1) + self.deviation * self.rng.normal(size=len(rows))


def r_squared(truth, found):
    return 1 - (truth - found).energy / truth.variance


def same_terms(truth, found):
    return np.array_equal(truth.frequencies, found.frequencies)


def assert_equal(truth, found, tolerance=1e-10):
    assert same_terms(truth, found)
    np.testing.assert_allclose(found.coefficients, truth.coefficients, atol=tolerance)


# Recovery without noise


@pytest.mark.parametrize(
    ("n_bits", "n_terms", "n_seeds", "most"),
    [(40, 100, 10, 3_200), (236, 100, 5, 4_500), (40, 1000, 2, 22_000)],
)
def test_known_number_of_terms(n_bits, n_terms, n_seeds, most):
    for seed in range(n_seeds):
        model = Model(random_spectrum(seed, n_bits, n_terms))
        found = sparse_walsh_hadamard(model, n_bits, n_terms, random_state=seed)
        assert_equal(model.spectrum, found)
        assert model.count <= most


@pytest.mark.parametrize(
    ("n_bits", "n_terms", "n_seeds", "most"), [(40, 100, 5, 5_120), (236, 100, 3, 7_200)]
)
def test_unknown_number_of_terms(n_bits, n_terms, n_seeds, most):
    for seed in range(n_seeds):
        model = Model(random_spectrum(seed, n_bits, n_terms))
        assert_equal(model.spectrum, sparse_walsh_hadamard(model, n_bits, random_state=seed))
        assert model.count <= most


def test_overloaded_bins_are_not_taken_for_noise():
    model = Model(random_spectrum(0, 40, 400))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, random_state=0))
    assert model.count <= 15_000


@pytest.mark.parametrize("n_terms", [100, None])
def test_ties(n_terms):
    for seed in range(5):
        model = Model(random_spectrum(seed, 40, 100, amplitudes="equal"))
        assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, n_terms, random_state=seed))
        assert model.count <= 4_500


def test_more_than_63_syndrome_bits():
    assert make_code(1000, 7).bit_words.shape[1] == 2
    model = Model(random_spectrum(1, 1000, 30, degree=7))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 1000, 30, max_degree=7, random_state=0))


@pytest.mark.parametrize("degree", [1, 2, 8])
def test_degrees(degree):
    model = Model(random_spectrum(2, 60, 40, degree=degree))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 60, 40, max_degree=degree, random_state=0))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n_bits=st.integers(20, 120), n_terms=st.integers(1, 60))
def test_any_size(seed, n_bits, n_terms):
    model = Model(random_spectrum(seed, n_bits, min(n_terms, n_bits), degree=4))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, n_bits, random_state=seed))


def test_tree_like_functions_from_subsets():
    """All subsets of a support occur, with equal amplitudes: an AND of bits."""
    rng = np.random.default_rng(0)
    supports = [rng.choice(100, 5, replace=False) for _ in range(12)]

    def ands(rows):
        return sum((i + 1) * rows[:, s].all(axis=1) for i, s in enumerate(supports))

    recovery = recover(Search(ands, 100, random_state=0))
    rows = (rng.random((2000, 100)) < 0.9).astype(np.uint8)
    np.testing.assert_allclose(recovery.spectrum(rows), ands(rows), atol=1e-9)
    assert recovery.n_queries < 12_000


# Noise


@pytest.mark.parametrize("n_terms", [100, None])
def test_noise_of_one_percent_keeps_the_support(n_terms):
    for seed in range(3):
        model = Model(random_spectrum(seed, 40, 100), noise=0.01)
        found = sparse_walsh_hadamard(model, 40, n_terms, random_state=seed)
        known = {f.tobytes() for f in found.frequencies}
        assert {f.tobytes() for f in model.spectrum.frequencies} <= known
        assert len(found) <= 101  # where the number is unknown, at most a tiny constant more


@pytest.mark.parametrize("n_terms", [100, None])
def test_noise_of_ten_percent_reaches_the_least_squares_limit(n_terms):
    gaps = []
    for seed in range(3):
        model = Model(random_spectrum(seed, 40, 100), noise=0.1)
        found = sparse_walsh_hadamard(model, 40, n_terms, budget=6_000, random_state=seed)
        assert model.count <= 6_000
        assert r_squared(model.spectrum, found) >= 0.9995
        assert len(found) <= 101
        gaps.append(1 - 100 * 0.01 / model.count - r_squared(model.spectrum, found))
    assert np.median(gaps) <= 2e-4


def test_pure_noise_gives_no_terms():
    rng = np.random.default_rng(0)
    with pytest.warns(FidelityWarning):
        found = sparse_walsh_hadamard(
            lambda rows: rng.normal(size=len(rows)), 40, budget=5_000, random_state=0
        )
    assert len(found) == 0


def test_a_spectrum_that_is_not_sparse_is_pruned_not_overfitted():
    """100 large terms over a sea of 2,000 small ones with 5 % of the energy."""
    large, small = random_spectrum(0, 40, 100), random_spectrum(1, 40, 2000)
    small = small * float(np.sqrt(0.05 / 0.95 * large.variance / small.variance))
    model = Model(large + small)
    recovery = recover(Search(model, 40, budget=9_000, random_state=0))
    assert r_squared(model.spectrum, recovery.spectrum) > 0.93
    assert recovery.fidelity == pytest.approx(r_squared(model.spectrum, recovery.spectrum), abs=0.03)


# Beyond the degree


def codeword(code, n_bits):
    """Bits of a word that all parities of the code miss."""
    rng = np.random.default_rng(0)
    while True:
        start = np.sort(rng.choice(n_bits, code.max_degree + 1, replace=False))
        key = np.bitwise_xor.reduce(code.bit_words[start], axis=0)[None]
        positions, valid = code.decode(key)
        if valid.any() and not np.isin(positions[0], start).any():
            return start, positions[0][positions[0] < n_bits]


@pytest.mark.parametrize("n_terms", [60, None])
def test_planted_alias_is_never_silent(n_terms):
    """A term of degree 6 with the parities of one of degree <= 5: the code alone cannot tell them apart."""
    high, low = codeword(make_code(40, 5), 40)
    alias = np.zeros((1, 40), dtype=bool)
    alias[0, high] = True
    for seed in range(4):
        spectrum = random_spectrum(seed, 40, 60) + Spectrum(alias, [2.0])
        # Given: a wrong term of degree <= 5 would fit two thirds of the signs.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FidelityWarning)
            recovery = recover(Search(Model(spectrum), 40, n_terms, budget=6_000, random_state=seed))
        assert len(low) <= 5
        assert recovery.fidelity < 0.95
        assert recovery.fidelity == pytest.approx(r_squared(spectrum, recovery.spectrum), abs=0.1)


def test_degree_above_the_limit_warns_and_leaves_the_rest_right():
    low, high = random_spectrum(0, 40, 60), random_spectrum(1, 40, 12, degree=8, least_degree=6)
    with pytest.warns(FidelityWarning, match="max_degree"):
        found = sparse_walsh_hadamard(Model(low + high), 40, 60, random_state=0, budget=8_000)
    assert {f.tobytes() for f in low.frequencies} <= {f.tobytes() for f in found.frequencies}
    assert_equal(low + high, sparse_walsh_hadamard(Model(low + high), 40, 80, max_degree=8, random_state=0))


# Invariance, determinism, counts


@pytest.mark.parametrize(
    ("scale", "offset"), [(1e6, 0.0), (1e-6, 0.0), (1.0, 1e6), (1e-3, 50.0), (-1.0, 0.0)]
)
@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_scale_and_offset(scale, offset, algorithm):
    spectrum = random_spectrum(3, 40, 50)
    plain = sparse_walsh_hadamard(Model(spectrum), 40, 50, algorithm=algorithm, random_state=0)
    moved = Model(spectrum)
    found = sparse_walsh_hadamard(
        lambda rows: scale * moved(rows) + offset, 40, 50, algorithm=algorithm, random_state=0
    )
    assert_equal(spectrum, plain)
    varying = found.degrees > 0
    np.testing.assert_array_equal(found.frequencies[varying], spectrum.frequencies)
    np.testing.assert_allclose(found.coefficients[varying] / scale, spectrum.coefficients, atol=1e-6)
    np.testing.assert_allclose(found.coefficients[~varying].sum(), offset, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_the_seed_decides_everything(algorithm):
    def once(seed):
        asked = []
        model = Model(random_spectrum(4, 40, 30))
        h = lambda rows: (asked.append(rows.copy()), model(rows))[1]  # noqa: E731
        return sparse_walsh_hadamard(h, 40, 30, algorithm=algorithm, random_state=seed), np.concatenate(asked)

    (first, rows), (second, again), (_, other) = once(5), once(np.random.default_rng(5)), once(6)
    assert first == second
    assert np.array_equal(rows, again)
    assert not np.array_equal(rows, other)


@pytest.mark.parametrize(("n_bits", "n_terms", "degree"), [(40, 100, None), (80, 20, 3), (236, 100, 5)])
def test_number_of_queries_is_the_documented_one(n_bits, n_terms, degree):
    r = len(make_code(n_bits, degree or 5).rows)
    b = max(2, int(np.ceil(np.log2(n_terms / 4))))
    model = Model(random_spectrum(0, n_bits, n_terms, degree=degree or 5))
    recovery = recover(Search(model, n_bits, n_terms, max_degree=degree, random_state=0))
    assert model.count == recovery.n_queries == 200 + 3 * 2**b * (5 + r - b)


@pytest.mark.parametrize("degree", [None, 5])
def test_number_of_queries_of_robust(degree):
    model = Model(random_spectrum(0, 40, 100), noise=0.05)
    recovery = recover(Search(model, 40, 100, max_degree=degree, algorithm="robust", random_state=0))
    r = 40 if degree is None else 27
    assert model.count == recovery.n_queries == 200 + 3 * (128 + 3 * 64) * (1 + r)


@settings(max_examples=20, deadline=None)
@given(
    budget=st.integers(800, 6_000), seed=st.integers(0, 1000), algorithm=st.sampled_from(["coded", "robust"])
)
def test_the_budget_is_kept(budget, seed, algorithm):
    model = Model(random_spectrum(seed, 30, 40), noise=0.1)
    recovery = recover(Search(model, 30, budget=budget, algorithm=algorithm, max_degree=3, random_state=seed))
    assert model.count == recovery.n_queries <= budget


# The whole cube


@settings(max_examples=25, deadline=None)
@given(n_bits=st.integers(0, 10), seed=st.integers(0, 1000), algorithm=st.sampled_from(["coded", "robust"]))
def test_small_cubes_are_exact_and_asked_once(n_bits, seed, algorithm):
    values = np.random.default_rng(seed).normal(size=2**n_bits)
    asked = []

    def h(rows):
        points = rows.astype(np.int64) @ (1 << np.arange(n_bits))
        asked.extend(points.tolist())
        return values[points]

    found = sparse_walsh_hadamard(h, n_bits, algorithm=algorithm, random_state=seed)
    expected = walsh_hadamard(values, n_bits)
    assert same_terms(expected, found)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-12)
    assert len(asked) == len(set(asked))


def test_thirteen_bits_cost_less_than_the_cube_where_the_function_is_sparse():
    model = Model(random_spectrum(0, 13, 20))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 13, random_state=0))
    assert model.count < 2**13


def test_thirteen_dense_bits_keep_the_largest_terms():
    values = np.random.default_rng(0).normal(size=2**13)
    h = lambda rows: values[rows.astype(np.int64) @ (1 << np.arange(13))]  # noqa: E731
    with pytest.warns(FidelityWarning):
        found = sparse_walsh_hadamard(h, 13, 50, budget=10_000, random_state=0)
    exact = walsh_hadamard(values, 13).prune(max_terms=50)
    assert same_terms(exact, found)


@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_constants(algorithm):
    found = sparse_walsh_hadamard(
        lambda rows: np.full(len(rows), 3.5), 40, algorithm=algorithm, random_state=0
    )
    assert found.coefficients.tolist() == [3.5]
    assert len(sparse_walsh_hadamard(lambda rows: np.zeros(len(rows)), 40, algorithm=algorithm)) == 0


def test_single_precision_answers_end_the_search():
    model = Model(random_spectrum(0, 40, 50) + 10.0)
    found = sparse_walsh_hadamard(lambda rows: model(rows).astype(np.float32), 40, random_state=0)
    assert_equal(model.spectrum, found, tolerance=1e-5)
    assert model.count < 3_000


# Robust


@pytest.mark.parametrize("degree", [None, 5])
@pytest.mark.parametrize("n_terms", [60, None])
def test_robust(degree, n_terms):
    for seed in range(3):
        model = Model(random_spectrum(seed, 40, 60))
        arguments = {"max_degree": degree, "algorithm": "robust", "random_state": seed}
        assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, n_terms, **arguments))


def test_robust_without_a_degree_finds_all_degrees():
    model = Model(random_spectrum(0, 40, 30, degree=30))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, 30, algorithm="robust", random_state=0))


def test_robust_under_noise():
    model = Model(random_spectrum(0, 40, 60), noise=0.1)
    found = sparse_walsh_hadamard(model, 40, 60, algorithm="robust", random_state=0)
    assert r_squared(model.spectrum, found) > 0.999


# Bad input


def failing(bad):
    """Answers two batches of 64 well, then ``bad(rows)``."""
    state = {"batch": -1}

    def h(rows):
        state["batch"] += 1
        return np.zeros(len(rows)) if state["batch"] < 2 else bad(rows)

    return h


def raise_it(rows):
    raise RuntimeError("no connection")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda rows: np.zeros(len(rows) - 1), r"shape \(63,\)"),
        (lambda rows: np.zeros((len(rows), 2)), r"shape \(64, 2\)"),
        (lambda rows: np.full(len(rows), np.nan), "not finite"),
        (lambda rows: np.array(["a"] * len(rows)), "dtype"),
        (raise_it, "RuntimeError: no connection"),
    ],
)
def test_failures_name_the_batch_and_keep_the_answers(bad, message):
    with pytest.raises(QueryError, match=f"batch 2 .queries 128 to 191.*{message}") as caught:
        sparse_walsh_hadamard(failing(bad), 40, batch_size=64, random_state=0)
    assert caught.value.batch == 2
    assert caught.value.rows.shape == (128, 40)
    assert caught.value.answers.shape == (128,)


@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_a_budget_that_is_too_small_says_what_would_do(algorithm):
    with pytest.raises(InputError, match="need at least") as caught:
        sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, budget=100, algorithm=algorithm)
    needed = int(str(caught.value).split("need at least ")[1].split()[0])
    sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, budget=needed, algorithm=algorithm, random_state=0)
    with pytest.raises(InputError, match="need at least"):
        sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, budget=needed - 1, algorithm=algorithm)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"h": np.zeros(8)}, "h is ndarray"),
        ({"n_bits": -1}, "n_bits"),
        ({"n_bits": 2.5}, "n_bits"),
        ({"n_terms": 0}, "n_terms"),
        ({"max_degree": 0}, "max_degree"),
        ({"budget": 0}, "budget"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": None}, "batch_size"),
        ({"algorithm": "fast"}, "algorithm"),
        ({"progress": 3}, "progress"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        sparse_walsh_hadamard(**({"h": lambda rows: rows[:, 0], "n_bits": 30} | arguments))


# Progress


def test_progress_counts_queries():
    seen = []
    model = Model(random_spectrum(0, 40, 20))
    h = lambda rows: (sizes.append(len(rows)), model(rows))[1]  # noqa: E731
    sizes = []
    progress = lambda done, total: seen.append((done, total))  # noqa: E731
    sparse_walsh_hadamard(h, 40, 20, random_state=0, batch_size=100, progress=progress)
    assert max(sizes) <= 100
    assert [done for done, _ in seen] == np.cumsum(sizes).tolist()
    assert all(done <= total for done, total in seen)


def test_progress_bar_without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(MissingDependencyError, match="pip install tqdm"):
        sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, progress=True)


def test_progress_bar(capsys):
    pytest.importorskip("tqdm")
    sparse_walsh_hadamard(lambda rows: rows[:, 0], 40, progress=True, random_state=0)
    assert "query" in capsys.readouterr().err
