"""Causal values against their definition: means after interventions, group by group."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import fouriershap as fs
from causal_oracle import step_by_step
from fouriershap import InputError

Floats = NDArray[np.float64]
GAUSSIAN: dict[str, Any] = {"feature_perturbation": "conditional", "dependence": "gaussian"}
CHAIN = [[3, 1], [0, 4], [2]]
N = 5


def rows_of(n_rows: int) -> Floats:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(N, N))
    return np.asarray(rng.normal(size=(n_rows, N)) @ mixing / 2 + np.arange(N) / 4)


def by_definition(
    X: Floats, Q: Floats, confounded: list[bool], mean_of: Callable[[Floats, Floats], float]
) -> Floats:
    center, C = X.mean(axis=0), np.cov(X.T, ddof=0)
    out = np.zeros((len(Q), N))
    for row, values in zip(Q, out, strict=True):
        worth = []
        for S in range(1 << N):
            known = [bool(S >> j & 1) for j in range(N)]
            mean, left = step_by_step(C, row - center, known, CHAIN, confounded)
            worth.append(mean_of(center + mean, left))
        for i in range(N):
            for S in range(1 << N):
                if S >> i & 1:
                    size = S.bit_count()
                    share = factorial(size - 1) * factorial(N - size) / factorial(N)
                    values[i] += share * (worth[S] - worth[S ^ 1 << i])
    return out


@pytest.mark.parametrize("confounded", [True, False, [True, False, True], [False, True, False]])
def test_linear_models_are_exact(confounded: Any) -> None:
    X = rows_of(3000)
    model = LinearRegression().fit(X, X @ np.arange(1.0, N + 1) + 3)
    explainer = fs.Explainer(model, X, causal_order=CHAIN, confounded=confounded, **GAUSSIAN)
    flags = [confounded] * 3 if isinstance(confounded, bool) else confounded
    want = by_definition(X, X[:3], flags, lambda m, _: float(m @ model.coef_ + model.intercept_))
    values, errors = explainer.shap_values(X[:3], errors=True)
    np.testing.assert_allclose(values, want, atol=1e-4 * np.abs(want).max())
    assert not errors.any()
    assert "causal values" in repr(explainer)
    # Not what conditional values are.
    assert np.abs(values - fs.Explainer(model, X, **GAUSSIAN).shap_values(X[:3])).max() > 0.05


def quadratic(X: Floats) -> Floats:
    return np.asarray(X[:, 0] * X[:, 1] - X[:, 1] * X[:, 4] + X[:, 2] ** 2 + X[:, 3])


def quadratic_mean(m: Floats, C: Floats) -> float:
    return float(quadratic(m[None])[0] + C[0, 1] - C[1, 4] + C[2, 2])


def test_draws_follow_interventions() -> None:
    X, flags = rows_of(2000), [False, True, False]
    explainer = fs.BlackBoxExplainer(
        quadratic, X, causal_order=CHAIN, confounded=flags, tolerance=0.01, **GAUSSIAN
    )
    values, errors = explainer.shap_values(X[:4], errors=True)
    want = by_definition(X, X[:4], flags, quadratic_mean)
    assert (np.abs(values - want) <= 3.5 * errors + 1e-3).all()
    assert np.abs(values - want).max() < 0.04 * np.abs(want).max()
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, quadratic(X[:4]), atol=1e-9)


def test_ordered_coalitions() -> None:
    """Without confounding, setting causes and knowing them is the same, so that asymmetric values are equal."""
    X = rows_of(500)
    model = LinearRegression().fit(X, X @ np.arange(1.0, N + 1))
    options = {"causal_order": CHAIN, **GAUSSIAN}
    seen = fs.Explainer(model, X, **options).shap_values(X[:3])
    ordered = fs.Explainer(model, X, confounded=False, coalitions="ordered", **options).shap_values(X[:3])
    np.testing.assert_allclose(ordered, seen, atol=1e-9)
    confounded = fs.Explainer(model, X, confounded=True, coalitions="ordered", **options)
    assert "causal asymmetric values" in repr(confounded)
    assert np.abs(confounded.shap_values(X[:3]) - seen).max() > 0.05


def test_the_cause_of_everything() -> None:
    """Heskes et al.: where one feature causes the other, its value has the indirect effect; an effect gets its own."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=5000)
    X = np.column_stack([cause, 0.8 * cause + 0.6 * rng.normal(size=5000)])
    model = LinearRegression().fit(X, X[:, 1])
    row = np.array([[1.0, 1.0]])
    slope = np.cov(X.T)[0, 1] / np.cov(X.T)[0, 0]

    def values(order: Any, confounded: bool) -> Floats:
        return np.asarray(
            fs.Explainer(model, X, causal_order=order, confounded=confounded, **GAUSSIAN).shap_values(row)[0]
        )

    gap = row[0] - X.mean(axis=0)
    chain = [slope * gap[0] / 2, gap[1] - slope * gap[0] / 2]
    np.testing.assert_allclose(values([[0], [1]], False), chain, atol=1e-3)
    np.testing.assert_allclose(values([[1], [0]], False), [0.0, gap[1]], atol=1e-3)  # an effect tells nothing
    np.testing.assert_allclose(values([[0, 1]], True), [0.0, gap[1]], atol=1e-3)  # neither causes the other


def test_files_and_auto(tmp_path: Path) -> None:
    X = rows_of(300)
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, quadratic(X))
    explainer = fs.Explainer(
        forest, X, feature_perturbation="conditional", causal_order=CHAIN, confounded=True
    )
    assert explainer.quality.dependence is not None
    assert set(explainer.quality.dependence.losses) == {"gaussian", "copula"}
    explainer.save(tmp_path / "e.fshap")
    loaded = fs.load(tmp_path / "e.fshap")
    assert isinstance(loaded, fs.Explainer)
    np.testing.assert_array_equal(loaded.shap_values(X[:4]), explainer.shap_values(X[:4]))
    assert "causal values" in repr(loaded)
    explainer.report(X[:50], tmp_path / "page.html")
    assert "follows its causes" in (tmp_path / "page.html").read_text()


def test_refusals() -> None:
    X = rows_of(100)
    model = LinearRegression().fit(X, X[:, 0])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"causal_order": CHAIN, "confounded": True}, "confounded belongs to feature_perturbation"),
        ({"confounded": True, **GAUSSIAN}, "about the groups of causal_order"),
        ({"causal_order": CHAIN, "confounded": [True], **GAUSSIAN}, "each of the 3 groups"),
        ({"causal_order": CHAIN, "confounded": "yes", **GAUSSIAN}, "confounded is 'yes'"),
        ({"causal_order": CHAIN[:2], "confounded": True, **GAUSSIAN}, "causal_order lacks"),
        (
            {"causal_order": CHAIN, "confounded": True, **GAUSSIAN, "dependence": "mixture"},
            "take 'gaussian' or 'copula'",
        ),
    ]
    for options, words in cases:
        with pytest.raises(InputError, match=words):
            fs.Explainer(model, X, **options)
