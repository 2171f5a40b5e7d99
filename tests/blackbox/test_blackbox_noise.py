"""Models that answer the same row differently: asked again, explained in the mean, certified by what repeats allow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._blackbox.fidelity import noise_of
from oracles import all_rows
from oracles import shap_values as shap_by_definition

N_BITS = 4
CUBE = all_rows(N_BITS)


class Noisy:
    """A table of 16 means, answered with noise; it counts what it is asked."""

    def __init__(self, seed, scale, draw="normal", n_bits=N_BITS):
        self.rng = np.random.default_rng(seed)
        self.table = self.rng.normal(size=1 << n_bits)
        self.scale, self.draw, self.count = scale, draw, 0

    def mean(self, rows):
        return self.table[np.asarray(rows, dtype=int) @ (1 << np.arange(np.shape(rows)[1]))]

    def __call__(self, rows):
        self.count += len(rows)
        noise = {
            "normal": lambda: self.rng.normal(size=len(rows)),
            "t3": lambda: self.rng.standard_t(3, size=len(rows)) / np.sqrt(3),
            "exponential": lambda: self.rng.exponential(size=len(rows)) - 1,
        }[self.draw]()
        return self.mean(rows) + self.scale * noise


def explain(model, budget, method="enumerate", rows=CUBE, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FourierShapWarning)
        return explain_fitted(model, rows, method=method, budget=budget, random_state=0, **settings)


def true_r2(explainer, model, rows=CUBE):
    """Against the mean, on the cube."""
    truth = model.mean(rows)
    return 1 - ((explainer.predict(rows) - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()


@pytest.mark.parametrize("method", ["enumerate", "auto"])
def test_the_budget_goes_into_repeats_and_the_mean_is_explained(method):
    model = Noisy(0, 1.5)
    with pytest.warns(fs.NoiseWarning, match="answers the same row differently"):
        explainer = explain_fitted(model, CUBE, method=method, budget=4000, random_state=0)
    found = explainer.fidelity
    assert explainer.fitted.method == "enumerate" and model.count == found.n_queries == 4000
    assert not found.exact and found.cube.low <= true_r2(explainer, model) <= found.cube.high < 1
    assert 0.9 < found.low <= found.r2 <= found.high < 1 and found.low <= found.k_fold
    assert (
        explainer.fitted.candidates[0].r2 == found.r2
        and "250 answers each" in explainer.fitted.candidates[0].note
    )
    truth = shap_by_definition(model.mean, CUBE[:3], CUBE)[:, :, 0]
    # 250 answers to each of 16 rows: a value is off by a tenth of their noise at most.
    np.testing.assert_allclose(explainer.shap_values(CUBE[:3]), truth, atol=0.15)


@pytest.mark.parametrize("draw", ["normal", "t3", "exponential"])
@pytest.mark.parametrize(("budget", "scale"), [(40, 0.3), (160, 1.0), (1000, 3.0)])
def test_the_interval_covers_the_truth(draw, budget, scale):
    covered, lows = 0, []
    for seed in range(40):
        model = Noisy(seed, scale, draw)
        explainer = explain(model, budget)
        found = explainer.fidelity.cube
        covered += found.low <= true_r2(explainer, model) <= found.high
        lows.append(found.low)
        assert not explainer.fidelity.exact
    assert covered >= 37
    assert np.median(lows) > (0.2 if scale < 3 else -np.inf)  # it says something, too


def test_noise_alone_is_not_explained():
    model = Noisy(0, 1.0)
    model.table[:] = 3.0
    explainer = explain(model, 400)
    assert explainer.fidelity.low < 0 and explainer.fidelity.r2 < 0.5


def test_without_a_query_left_nothing_is_claimed(tmp_path):
    """One answer to each combination, which may be noise and nothing else."""
    with pytest.warns(fs.FidelityWarning, match="none was left to see whether the model is noisy") as caught:
        explainer = explain_fitted(Noisy(0, 1.0), CUBE, method="enumerate", budget=16, random_state=0)
    assert caught[0].filename == __file__ and "a few more than there are combinations" in str(
        caught[0].message
    )
    found = explainer.fidelity
    assert not found.exact and found.low == found.cube.low == -np.inf and np.isnan(found.noise)
    explainer.save(tmp_path / "e.fshap")
    loaded = fs.load(tmp_path / "e.fshap").fidelity
    assert loaded.low == -np.inf and np.isnan(loaded.noise) and not loaded.exact


@pytest.mark.parametrize("budget", [17, 20, 30, 36, 40])
def test_few_repeats_say_little(budget):
    model = Noisy(0, 1.0)
    explainer = explain(model, budget)
    assert model.count == budget
    assert not explainer.fidelity.exact and explainer.fidelity.low < 0.5


def test_noise_that_hangs_on_the_place_in_the_batch():
    """A seed set anew for every call gives the same rows in the same places the same noise."""

    def predict(rows):
        return rows.sum(axis=1) + np.random.default_rng(0).normal(size=len(rows))

    assert not explain(predict, 500).fidelity.exact


def test_labels_drawn_at_random():
    rng = np.random.default_rng(0)
    rows = np.array([[0.0], [1.0]] * 5)
    explainer = explain(lambda x: rng.random(len(x)) < 0.5 + 0.2 * x[:, 0], 4000, rows=rows)
    assert not explainer.fidelity.exact
    np.testing.assert_allclose(explainer.predict(rows[:2]), [0.5, 0.7], atol=0.05)


def test_noise_of_an_output_of_small_spread():
    rng = np.random.default_rng(0)

    def predict(rows):
        return np.column_stack([1e6 * rows[:, 0], rows[:, 1] + rng.normal(size=len(rows))])

    with pytest.warns(fs.FidelityWarning, match="of that of output 1"):
        explainer = explain_fitted(predict, CUBE, budget=100, random_state=0)
    clear, hidden = explainer.fidelity.by_output
    assert clear > 0.999 and hidden < 0.9 and explainer.fidelity.noise > 0.1


def test_rounding_is_no_noise():
    """A network in single precision answers a row differently in another batch, by its last digits."""
    rng = np.random.default_rng(0)

    def predict(rows):
        answers = 1000 + rows.sum(axis=1) * 0.01
        return (answers * (1 + 1e-7 * rng.choice([-1, 0, 1], len(rows)))).astype(np.float32)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer = explain_fitted(predict, CUBE, budget=200, random_state=0)
    assert explainer.fidelity.exact and explainer.fidelity.n_queries == 36


def test_a_model_without_noise_is_asked_no_more_than_before():
    model = Noisy(0, 0.0)
    explainer = explain(model, 4000)
    found = explainer.fidelity
    assert model.count == 36 and found.exact and (found.r2, found.low, found.high) == (1, 1, 1)
    assert true_r2(explainer, model) == pytest.approx(1)


@pytest.mark.parametrize("n_terms", [None, 5])
def test_swht_of_a_whole_cube_is_certified_by_fresh_answers(n_terms):
    n_bits = 6
    rows = all_rows(n_bits)
    model = Noisy(1, 2.0, n_bits=n_bits)
    explainer = explain(model, 1000, "swht", rows, n_terms=n_terms)
    found, truth = explainer.fidelity, true_r2(explainer, model, rows)
    assert model.count == found.n_queries <= 1000
    assert found.r2 < 0.6 and found.low < truth  # answers that are held out are noisy, too
    assert found.cube.low < truth < 1 and found.cube.r2 < 0.6


def test_noise_is_measured_by_output_and_beside_rounding():
    rng = np.random.default_rng(0)
    every = rng.normal(size=(1000, 2)) * [1.0, 1e-3]
    again = every + rng.normal(size=every.shape) * [0.0, 1e-3]
    # Only one of the two answers has noise: its share of the difference is a half.
    assert noise_of(every[:200], again[:200], every) == pytest.approx(np.sqrt(0.5), rel=0.1)
    assert noise_of(every[:0], again[:0], every) == 0
    assert noise_of(every * 1e-200, again * 1e-200, every * 1e-200) == pytest.approx(
        noise_of(every, again, every)
    )
    assert noise_of(np.ones((5, 1)), np.full((5, 1), 1.5), np.ones((5, 1))) == np.inf
    assert noise_of(np.ones((5, 1)), np.ones((5, 1)), np.ones((5, 1))) == 0


def test_the_report_says_what_repeats_were_for(tmp_path):
    for budget, expected in (
        (16, "no query was left"),
        (500, "several times, since the model's answers vary"),
    ):
        explain(Noisy(0, 1.0), budget).report(CUBE, tmp_path / f"{budget}.html")
        assert expected in (tmp_path / f"{budget}.html").read_text()
