"""Conditional values against their definition: conditional means by formulas, by integration, or by many draws."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

import fouriershap as fs
from fouriershap import FidelityWarning, InputError
from fouriershap._shapley.engine import DependenceReport

Floats = NDArray[np.float64]
CONDITIONAL = {"feature_perturbation": "conditional"}
GAUSSIAN = CONDITIONAL | {"dependence": "gaussian"}


def correlated(n_rows: int, n: int, rho: float = 0.7, seed: int = 0) -> Floats:
    C = rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.random.default_rng(seed).multivariate_normal(np.arange(n) / n, C, n_rows)


def shapley(v: Callable[[int], Floats], n: int) -> Floats:
    """Return the values (n, n_rows) of games by the definition; v(S) takes a coalition as a number."""
    worth = [np.asarray(v(S)) for S in range(1 << n)]
    out = np.zeros((n, *worth[0].shape))
    for i in range(n):
        for S in range(1 << n):
            if S >> i & 1:
                size = S.bit_count()
                out[i] += (
                    factorial(size - 1) * factorial(n - size) / factorial(n) * (worth[S] - worth[S ^ 1 << i])
                )
    return out


def gaussian_given(X: Floats, rows: Floats, S: int) -> tuple[Floats, Floats]:
    """Return the conditional means of all features (n_rows, n), and the covariance left."""
    mean, C = X.mean(axis=0), np.cov(X.T, ddof=0).reshape(X.shape[1], -1)
    inside = [j for j in range(X.shape[1]) if S >> j & 1]
    B = C[:, inside] @ np.linalg.inv(C[np.ix_(inside, inside)])
    return mean + (rows[:, inside] - mean[inside]) @ B.T, C - B @ C[inside]


def by_formula(X: Floats, rows: Floats, mean_of: Callable[[Floats, Floats], Floats]) -> Floats:
    n = X.shape[1]
    return shapley(lambda S: mean_of(*gaussian_given(X, rows, S)), n).T


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.floats(-0.9, 0.9), st.integers(0, 99))
def test_linear_models_are_exact(n: int, rho: float, seed: int) -> None:
    X, Q = correlated(3000, n, rho, seed), correlated(4, n, rho, seed + 1)
    model = LinearRegression().fit(X, X @ np.arange(1.0, n + 1) + 3)
    explainer = fs.Explainer(model, X, **GAUSSIAN)
    want = by_formula(X, Q, lambda m, _: m @ model.coef_ + model.intercept_)
    values, errors = explainer.shap_values(Q, errors=True)
    np.testing.assert_allclose(values, want, atol=2e-4 * np.abs(want).max())
    assert not errors.any()
    assert explainer.quality.is_exact
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, model.predict(Q), atol=1e-9)


def test_exponentials_and_sigmoids_of_scores() -> None:
    X, Q = correlated(3000, 4), correlated(5, 4, seed=1)
    y = np.exp(0.3 * X[:, 0] - 0.2 * X[:, 2])
    poisson = PoissonRegressor(alpha=0).fit(X, y)
    w, c = poisson.coef_, poisson.intercept_
    want = by_formula(X, Q, lambda m, C: np.exp(m @ w + c + w @ C @ w / 2))
    values = fs.Explainer(poisson, X, output="response", **GAUSSIAN).shap_values(Q)
    np.testing.assert_allclose(values, want, atol=1e-4 * np.abs(want).max())

    logistic = LogisticRegression().fit(X, X[:, 0] + X[:, 1] > 0.3)
    w, c = logistic.coef_[0], logistic.intercept_[0]
    points = np.linspace(-9, 9, 4001)
    weights = np.exp(-(points**2) / 2)
    weights /= weights.sum()

    def mean_of(m: Floats, C: Floats) -> Floats:
        score = (m @ w + c)[:, None] + np.sqrt(max(w @ C @ w, 0)) * points
        return np.asarray((1 / (1 + np.exp(-score))) @ weights)

    explainer = fs.Explainer(logistic, X, output="probability", **GAUSSIAN)
    values, errors = explainer.shap_values(Q, errors=True)
    np.testing.assert_allclose(values, by_formula(X, Q, mean_of), atol=1e-4)
    assert errors.max() < 1e-9


def quadratic(X: Floats) -> Floats:
    """Return a function whose Gaussian means are known: E[x_i x_j] = m_i m_j + C_ij."""
    return np.asarray(X[:, 0] * X[:, 1] - X[:, 1] * X[:, -1] + X[:, -1] ** 2 + X[:, 0])


def quadratic_mean(m: Floats, C: Floats) -> Floats:
    return quadratic(m) + C[0, 1] - C[1, -1] + C[-1, -1]


@pytest.mark.parametrize("n", [3, 11])
def test_errors_of_draws_and_of_coalitions_cover(n: int) -> None:
    X, Q = correlated(2000, n, 0.6), correlated(60, n, 0.6, 1)
    want, found = by_formula(X, Q, quadratic_mean), []
    for seed in range(4):  # coalitions and draws are those of all rows
        explainer = fs.BlackBoxExplainer(quadratic, X, tolerance=0.05, random_state=seed, **GAUSSIAN)
        values, errors = explainer.shap_values(Q, errors=True)
        np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, quadratic(Q), atol=1e-9)
        found.append((np.abs(values - want) <= 1.96 * errors).mean())
    assert 0.88 <= np.mean(found) <= 0.999
    assert (errors.max(axis=1) <= 0.05 * np.abs(values).max(axis=1)).all()
    assert np.sqrt(((values - want) ** 2).mean()) <= 1.5 * np.sqrt((errors**2).mean())
    assert np.sqrt(((values - want) ** 2).mean()) <= 0.05 * np.abs(want).max(axis=1).mean()


def test_trees_by_many_draws() -> None:
    X, Q = correlated(1000, 3), correlated(40, 3, seed=1)
    model = RandomForestRegressor(20, max_depth=5, random_state=0).fit(X, quadratic(X))
    noise = np.random.default_rng(5).standard_normal((8000, 3))
    noise = np.concatenate([noise, -noise])

    def mean_of(m: Floats, C: Floats) -> Floats:
        root = np.linalg.cholesky(C + 1e-12 * np.eye(3))
        return np.array([model.predict(row + noise @ root.T).mean() for row in m])

    explainer = fs.TreeExplainer(model, X, tolerance=0.01, **GAUSSIAN)
    values, errors = explainer.shap_values(Q, errors=True, check_additivity=True)
    gap = values - by_formula(X, Q, mean_of)
    assert (np.abs(gap) <= 2.2 * errors).mean() >= 0.9
    assert np.abs(gap).mean() < 0.02 * np.abs(values).mean()
    # Not what interventional values are.
    assert np.abs(values - fs.TreeExplainer(model, X).shap_values(Q)).mean() > 0.1 * np.abs(values).mean()


def test_a_mixture_by_bayes_formula() -> None:
    """Two clusters: the component of a row, told by some features, tells the others."""
    rng = np.random.default_rng(0)
    cluster = rng.random(4000) < 0.5
    X = rng.normal(size=(4000, 3)) + np.outer(cluster, [6.0, 6.0, 0.0])
    model = LinearRegression().fit(X, X[:, 1])
    explainer = fs.Explainer(model, X, dependence="mixture", **CONDITIONAL)
    Q = np.array([[0.5, -0.5, 0.0], [6.5, 7.0, 1.0]])
    v = shapley(
        lambda S: np.where(bool(S >> 1 & 1), Q[:, 1], np.where(bool(S & 1), 6.0 * (Q[:, 0] > 3), 3.0)),
        3,
    ).T
    np.testing.assert_allclose(explainer.shap_values(Q), v, atol=0.15)
    np.testing.assert_allclose(explainer.shap_values(Q)[:, 2], 0.0, atol=0.1)


def mixed_rows(n_rows: int, seed: int = 0) -> Any:
    pd = pytest.importorskip("pandas")
    X = correlated(n_rows, 4, 0.8, seed)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["kind"] = pd.Categorical(np.where(X[:, 0] > 0.5, "high", "low"), categories=["low", "high"])
    frame.loc[np.random.default_rng(seed).random(n_rows) < 0.2, "b"] = np.nan
    return frame


def score(frame: Any) -> Floats:
    kinds = set(frame["kind"].dropna().unique())
    assert kinds <= {"low", "high"}
    assert frame["kind"].dtype == "category"
    bonus = np.where(frame["kind"] == "high", 2.0, 0.0)
    return np.asarray(frame["b"].fillna(-1.0) + frame["a"] * frame["c"] + bonus)


def test_labels_and_missing_values_follow_what_is_known() -> None:
    X, Q = mixed_rows(800), mixed_rows(6, 1)
    explainer = fs.BlackBoxExplainer(score, X, tolerance=0.05, dependence="mixture", **CONDITIONAL)
    values = explainer.shap_values(Q)
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, score(Q), atol=1e-9)
    # "kind" is told by "a" for the most part, so that "a" takes much of its credit, ...
    game = fs.BlackBoxExplainer(lambda rows: np.where(rows["kind"] == "high", 2.0, 0.0), X)
    alone = fs.BlackBoxExplainer(
        lambda rows: np.where(rows["kind"] == "high", 2.0, 0.0), X, dependence="mixture", **CONDITIONAL
    ).shap_values(Q)
    assert np.abs(game.shap_values(Q)[:, 0]).max() < 0.05
    assert np.abs(alone[:, 0]).mean() > 0.2 * np.abs(alone[:, 4]).mean()
    # ... unless labels are independent of numbers, as in a single Gaussian.
    apart = fs.BlackBoxExplainer(lambda rows: np.where(rows["kind"] == "high", 2.0, 0.0), X, **GAUSSIAN)
    np.testing.assert_allclose(apart.shap_values(Q)[:, :4], 0.0, atol=0.1)


def test_trees_on_masked_rows_are_explained_exactly(tmp_path: Path) -> None:
    X, Q = mixed_rows(300), mixed_rows(4, 1)
    explainer = fs.BlackBoxExplainer(score, X, dependence="data", **CONDITIONAL)
    engine: Any = explainer.engine
    codes = explainer.inputs.encode(Q).codes
    known = engine.encode(codes)
    assert not np.isnan(known).any()

    def v(S: int) -> Floats:
        if S == 31:
            return score(Q)
        some = np.where([S >> f & 1 for f in range(5)], known, np.nan)
        return np.asarray(engine.trees[0].predict(some)[:, 0])

    values = explainer.shap_values(Q)
    np.testing.assert_allclose(values, shapley(v, 5).T, atol=1e-5)
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, score(Q), atol=1e-5)
    np.testing.assert_allclose(engine.partial_means(codes, [(0, 4)])[:, 0, 0], v(0b10001), atol=1e-6)
    with pytest.raises(InputError, match="has no interactions"):
        explainer.shap_interaction_values(Q)

    rows = correlated(1000, 3)
    model = LinearRegression().fit(rows, rows @ [1.0, 2.0, 0.0])
    explainer = fs.Explainer(model, rows, dependence="data", **CONDITIONAL)
    near = fs.Explainer(model, rows, **GAUSSIAN).shap_values(rows[:50])
    found = explainer.shap_values(rows[:50])
    assert np.corrcoef(near.ravel(), found.ravel())[0, 1] > 0.95
    explainer.save(tmp_path / "e.fshap")
    loaded = fs.load(tmp_path / "e.fshap")
    assert isinstance(loaded, fs.Explainer)
    np.testing.assert_allclose(loaded.shap_values(rows[:5]), found[:5], atol=1e-5)
    assert loaded.quality.dependence == DependenceReport("data")
    # What is learned is neither exact nor has errors that are known.
    assert not loaded.quality.is_exact
    assert "unknown errors" in loaded._repr_html_()
    with pytest.raises(InputError, match="dependence='data', have no errors"):
        loaded.shap_values(rows[:5], errors=True)


@pytest.mark.parametrize("dependence", ["auto", "gaussian", "copula", "mixture", "data"])
def test_rows_of_the_background_count_by_their_weights(dependence: str) -> None:
    """Rows without weight might as well be absent."""
    X = correlated(300, 3)
    options = {"dependence": dependence, **CONDITIONAL}
    model = LinearRegression().fit(X, quadratic(X))
    with_others = np.concatenate([X + 5, X])
    weights = np.repeat([0.0, 2.0], 300)
    found = fs.Explainer(model, with_others, weights=weights, **options)
    want = fs.Explainer(model, X, **options)
    np.testing.assert_allclose(found.shap_values(X[:5]), want.shap_values(X[:5]), atol=1e-6)
    np.testing.assert_allclose(found.expected_value, want.expected_value, atol=1e-6)


@pytest.mark.parametrize("dependence", ["auto", "gaussian", "mixture"])
def test_numbers_whose_squares_overflow(dependence: str) -> None:
    X = correlated(100, 3)
    near, far = (
        fs.Explainer(
            LinearRegression().fit(X * unit, X @ [1.0, 2.0, 3.0]),
            X * unit,
            dependence=dependence,
            **CONDITIONAL,
        ).shap_values(X[:3] * unit)
        for unit in (1.0, 1e150)
    )
    np.testing.assert_allclose(far, near, rtol=1e-6)


@pytest.mark.parametrize("dependence", ["gaussian", "mixture"])
def test_rows_far_away(dependence: str) -> None:
    """A tree does not see how far beyond its thresholds a number is, nor do features that are independent of it."""
    X = np.random.default_rng(0).normal(size=(200, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    explainer = fs.Explainer(model, X, dependence=dependence, tolerance=0.005, **CONDITIONAL)
    mixture = explainer.engine.mixture
    Q = X[:1].copy()
    Q[0, 2] = 1e9
    want = np.empty(16)
    rng = np.random.default_rng(1)
    for S in range(15):
        given = mixture.condition(np.array([[bool(S >> f & 1) for f in range(4)]]), np.zeros(4, dtype=bool))
        want[S] = model.predict(given.draw(Q, given.given(Q), given.noise(20_000, rng)).codes).mean()
    want[15] = model.predict(Q)[0]
    np.testing.assert_allclose(explainer.shap_values(Q)[0], shapley(lambda S: want[S], 4), atol=0.03)
    Q[0, 2] = 1e30
    with pytest.raises(InputError, match="standard deviations from their mean"):
        explainer.shap_values(Q)


def test_what_is_infinite_is_refused() -> None:
    X = correlated(100, 3)
    Q = X[:3].copy()
    Q[1, 0] = np.inf
    explainer = fs.Explainer(HistGradientBoostingRegressor(max_iter=3).fit(X, X[:, 0]), X, **GAUSSIAN)
    with pytest.raises(InputError, match="row 1 of 3 has infinite values"):
        explainer.shap_values(Q)
    with pytest.raises(InputError, match="background has infinite values"):
        explainer.with_background(Q)
    with pytest.raises(InputError, match="variance overflows"):
        fs.BlackBoxExplainer(lambda rows: rows[:, 0] * 1e200, X, **GAUSSIAN)


def test_rows_do_not_depend_on_each_other() -> None:
    X = correlated(300, 3)
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, quadratic(X))
    explainer = fs.Explainer(model, X, dependence="copula", **CONDITIONAL)
    values = explainer.shap_values(X[:7])
    np.testing.assert_allclose(explainer.shap_values(X[3:5]), values[3:5], atol=1e-4)
    np.testing.assert_allclose(explainer.shap_values(X[6]), values[6], atol=1e-4)
    assert explainer.shap_values(X[:0]).shape == (0, 3)
    again = fs.Explainer(model, X, dependence="copula", random_state=0, **CONDITIONAL)
    np.testing.assert_array_equal(again.shap_values(X[:7]), values)


def test_interactions_add_up_to_values() -> None:
    X = correlated(300, 3)
    explainer = fs.BlackBoxExplainer(quadratic, X, **GAUSSIAN)
    matrices = explainer.shap_interaction_values(X[:3])
    np.testing.assert_allclose(matrices.sum(axis=2), explainer.shap_values(X[:3]), atol=1e-5)


def test_partial_means_are_conditional_means() -> None:
    X = correlated(2000, 3)
    explainer = fs.BlackBoxExplainer(quadratic, X, **GAUSSIAN)
    found = explainer.engine.partial_means(X[:5], [(0,), (2,), (0, 2)])[:, :, 0]
    for k, S in enumerate((0b001, 0b100, 0b101)):
        np.testing.assert_allclose(found[:, k], quadratic_mean(*gaussian_given(X, X[:5], S)), atol=0.05)


def test_groups_and_banzhaf() -> None:
    X, Q = correlated(2000, 4), correlated(3, 4, seed=1)
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0, 4.0])
    grouped = fs.Explainer(model, X, groups={"both": [0, 2]}, **GAUSSIAN)

    def v(S: int) -> Floats:
        features = sum(1 << f for f, player in enumerate((0, 1, 0, 2)) if S >> player & 1)
        return np.asarray(gaussian_given(X, Q, features)[0] @ model.coef_)

    np.testing.assert_allclose(grouped.shap_values(Q), shapley(v, 3).T, atol=1e-3)
    banzhaf = fs.Explainer(model, X, index="banzhaf", **GAUSSIAN).shap_values(Q)
    worth = [gaussian_given(X, Q, S)[0] @ model.coef_ for S in range(16)]
    want = np.mean([worth[S | 1] - worth[S] for S in range(0, 16, 2)], axis=0)
    np.testing.assert_allclose(banzhaf[:, 0], want, atol=1e-3)


def test_auto_takes_the_simplest_dependence_near_the_least_loss() -> None:
    rng = np.random.default_rng(0)
    z = correlated(600, 3, 0.9)
    X = np.exp(1.5 * (z - z.mean(axis=0)))
    explainer = fs.BlackBoxExplainer(
        lambda rows: np.log(np.maximum(rows, 1e-3)).sum(axis=1), X, **CONDITIONAL
    )
    report = explainer.quality.dependence
    assert report is not None
    assert set(report.losses) == {"gaussian", "copula", "mixture"}
    assert report.losses[report.name] == min(report.losses.values())
    assert report.name == "copula"
    assert report.independent is not None
    assert report.independent > 1.5 * report.losses["copula"]
    simple = fs.BlackBoxExplainer(quadratic, z, **CONDITIONAL).quality.dependence
    assert simple is not None and simple.name == "gaussian"
    assert max(simple.losses.values()) < 1.2 * min(simple.losses.values())
    halves = z * np.where(rng.random(600) < 0.5, 1.0, -1.0)[:, None] ** np.arange(
        3
    )  # correlated in one way or the other
    clusters = fs.BlackBoxExplainer(quadratic, halves, **CONDITIONAL).quality.dependence
    assert clusters is not None and clusters.name == "mixture"
    few = fs.BlackBoxExplainer(quadratic, rng.normal(size=(20, 3)), **CONDITIONAL)
    assert few.quality.dependence == DependenceReport("gaussian")


def test_data_takes_the_place_of_the_background() -> None:
    X, Q = correlated(2000, 3), correlated(3, 3, seed=1)
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    by_data = fs.Explainer(model, X[:5], data=X, **GAUSSIAN).shap_values(Q)
    np.testing.assert_allclose(by_data, fs.Explainer(model, X, **GAUSSIAN).shap_values(Q), atol=1e-9)
    explainer = fs.Explainer(model, X[:500], **GAUSSIAN)
    other = explainer.with_background(X)
    np.testing.assert_allclose(other.shap_values(Q), by_data, atol=1e-9)


@pytest.mark.parametrize("kind", ["forest", "linear", "logistic"])
def test_files(kind: str, tmp_path: Path) -> None:
    X = correlated(300, 3)
    models: dict[str, tuple[Any, dict[str, Any]]] = {
        "forest": (RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, quadratic(X)), {}),
        "linear": (LinearRegression().fit(X, quadratic(X)), {}),
        "logistic": (LogisticRegression().fit(X, quadratic(X) > 0), {"output": "probability"}),
    }
    model, options = models[kind]
    explainer = fs.Explainer(model, X, dependence="auto", **options, **CONDITIONAL)
    explainer.save(tmp_path / "e.fshap")
    loaded = fs.load(tmp_path / "e.fshap")
    assert isinstance(loaded, fs.Explainer)
    assert loaded.feature_perturbation == "conditional"
    np.testing.assert_array_equal(loaded.shap_values(X[:4]), explainer.shap_values(X[:4]))
    assert loaded.quality.dependence == explainer.quality.dependence
    loaded.save(tmp_path / "again.fshap")
    with pytest.raises(InputError, match="keeps no rows"):
        loaded.with_background(X)


def test_a_tolerance_out_of_reach_is_said() -> None:
    X = correlated(100, 3)
    explainer = fs.BlackBoxExplainer(
        lambda rows: np.sign(rows[:, 0] - rows[:, 1]), X, tolerance=1e-6, **GAUSSIAN
    )
    with pytest.warns(FidelityWarning, match="1 of 1 rows stopped at the most draws"):
        explainer.shap_values(X[:1])


def test_refusals() -> None:
    X = correlated(100, 12)
    few, model = X[:, :3], LinearRegression().fit(X[:, :3], X[:, 0])
    forest = RandomForestRegressor(3, max_depth=2, random_state=0).fit(few, X[:, 0])
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: fs.Explainer(model, few, dependence="gaussian"), "dependence belongs to"),
        (
            lambda: fs.Explainer(model, few, dependence="gauss", **CONDITIONAL),
            "dependence is 'gauss'; choose",
        ),
        (lambda: fs.Explainer(model, few, tolerance=0, **CONDITIONAL), "tolerance is 0"),
        (lambda: fs.Explainer(model, few[:1], **CONDITIONAL), "background has 1 row"),
        (lambda: fs.Explainer(model, few, data=few[:1], **CONDITIONAL), "data has 1 row"),
        (lambda: fs.Explainer(forest, **CONDITIONAL), "needs a background"),
        (lambda: fs.Explainer(forest, few, device="jax", **CONDITIONAL), "on 'cpu' only"),
        (lambda: fs.Explainer(forest, few, **GAUSSIAN).to("jax"), "on 'cpu' only"),
        (lambda: fs.Explainer(lambda x: x[:, 0], X, index="banzhaf", **GAUSSIAN), "up to 10 players"),
        (
            lambda: fs.Explainer(lambda x: x[:, 0], X, **GAUSSIAN).shap_interaction_values(X[:1]),
            "up to 10 players",
        ),
        (lambda: fs.Explainer(lambda x: x[:, 0], few, **GAUSSIAN).save("x.fshap"), "cannot be saved"),
        (lambda: fs.Explainer(model, few, missing=1, **CONDITIONAL), "missing is not an argument"),
    ]
    for call, words in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(InputError, match=words):
                call()


def test_explainers_say_what_their_values_are() -> None:
    X = correlated(100, 3)
    forest = RandomForestRegressor(3, max_depth=2, random_state=0).fit(X, X[:, 0])
    cases: list[tuple[dict[str, Any], str]] = [
        (GAUSSIAN, "conditional values"),
        ({"causal_order": [[0], [1, 2]]}, "asymmetric values"),
    ]
    for options, words in cases:
        explainer = fs.Explainer(forest, X, **options)
        assert words in repr(explainer) and words in explainer._repr_html_()
    assert "values," not in repr(fs.Explainer(forest, X))
