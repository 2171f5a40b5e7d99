"""Probabilities and losses: shap's rescaled values, and the SHAP values of the probability itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fouriershap as fs
import oracles
from fouriershap._shapley.outputs import hybrids, sampled, transformed

OPTIONS = {"n_estimators": 10, "max_depth": 3}


def data(n_classes: int = 2, missing: bool = True) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)).astype(np.float32)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X)
    y = Z[:, 0] * Z[:, 1] + Z[:, 2] + rng.normal(size=400) * 0.3
    return X, np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y) if n_classes else y


def model_of(name: str, n_classes: int = 2) -> tuple[Any, np.ndarray, np.ndarray]:
    X, y = data(n_classes, missing=name != "GradientBoostingClassifier")
    if name.startswith("XGB"):
        import xgboost

        return getattr(xgboost, name)(**OPTIONS).fit(X, y), X, y
    if name.startswith("LGBM"):
        import lightgbm

        return getattr(lightgbm, name)(**OPTIONS, verbose=-1).fit(X, y), X, y
    if name.startswith("CatBoost"):
        import catboost

        given = {"iterations": 10, "depth": 3, "verbose": False, "allow_writing_files": False}
        return getattr(catboost, name)(**given).fit(X, y), X, y
    from sklearn import ensemble

    own = {"max_iter": 10, "max_depth": 3} if name.startswith("Hist") else OPTIONS
    return getattr(ensemble, name)(random_state=0, **own).fit(X, y), X, y


def close(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


BINARY = [
    "XGBClassifier",
    "LGBMClassifier",
    "CatBoostClassifier",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
]


@pytest.mark.parametrize("name", BINARY)
def test_probabilities_as_in_shap(name: str) -> None:
    shap = pytest.importorskip("shap")
    model, X, _ = model_of(name)
    explainer = fs.TreeExplainer(model, X[:40], output="probability", precision="double")
    got = explainer.shap_values(X[100:130], check_additivity=True)
    probability = model.predict_proba(X[100:130])[:, 1]
    np.testing.assert_allclose(got.sum(axis=1) + explainer.expected_value, probability, atol=1e-5)
    if name.startswith("Hist"):  # shap gives up where values are missing
        return
    theirs = shap.TreeExplainer(model, X[:40], model_output="probability")
    close(got, np.asarray(theirs.shap_values(X[100:130])), 1e-5)
    assert np.isclose(explainer.expected_value, theirs.expected_value, atol=1e-6)


@pytest.mark.parametrize("name", ["XGBClassifier", "LGBMClassifier", "XGBRegressor", "LGBMRegressor"])
def test_losses_as_in_shap(name: str) -> None:
    shap = pytest.importorskip("shap")
    model, X, y = model_of(name, 0 if name.endswith("Regressor") else 2)
    rows, labels = X[100:130], y[100:130].astype(float)
    explainer = fs.TreeExplainer(model, X[:40], output="log_loss", precision="double")
    got = explainer.shap_values(rows, labels, check_additivity=True)
    theirs = shap.TreeExplainer(model, X[:40], model_output="log_loss")
    close(got, np.asarray(theirs.shap_values(rows, labels)), 1e-5)
    assert np.isclose(explainer.expected_loss(labels[0]), theirs.expected_value(labels[0]), rtol=1e-5)
    explanation = explainer(rows, labels)
    expected = [explainer.expected_loss(label) for label in labels]
    np.testing.assert_allclose(explanation.base_values, expected)


def test_forests_hold_probabilities_already() -> None:
    model, X, _ = model_of("RandomForestClassifier", 3)
    raw = fs.TreeExplainer(model, X[:40]).shap_values(X[100:110])
    for exact in (False, True):
        explainer = fs.TreeExplainer(model, X[:40], output="probability", exact=exact)
        np.testing.assert_array_equal(explainer.shap_values(X[100:110]), raw)
        assert explainer.fidelity is None


def test_weights_groups_and_files(tmp_path: Path) -> None:
    model, X, _ = model_of("XGBClassifier")
    weights = np.random.default_rng(0).integers(1, 4, size=20)
    given = {"output": "probability", "groups": {"g": [0, 1]}, "precision": "double"}
    weighted = fs.TreeExplainer(model, X[:20], weights=weights, **given)
    repeated = fs.TreeExplainer(model, np.repeat(X[:20], weights, axis=0), **given)
    got = weighted.shap_values(X[50:60])
    np.testing.assert_allclose(got, repeated.shap_values(X[50:60]), atol=1e-10)
    weighted.save(tmp_path / "p.fshap")
    loaded = fs.load(tmp_path / "p.fshap")
    np.testing.assert_allclose(loaded.shap_values(X[50:60]), got, atol=1e-10)  # by tables
    assert loaded.expected_value == weighted.expected_value
    np.testing.assert_allclose(weighted.shap_values(X[50:60], n_jobs=2), got)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_exact_probabilities_match_brute_force(n_classes: int, index: str) -> None:
    model, X, _ = model_of("XGBClassifier", n_classes)
    given = {"output": "probability", "exact": True, "index": index, "groups": {"g": [0, 4]}}
    explainer = fs.TreeExplainer(model, X[:15], **given)
    got, pairs = explainer.shap_values(X[50:52]), explainer.shap_interaction_values(X[50:52])
    owner = explainer.inputs.player

    def probability(rows: np.ndarray) -> np.ndarray:
        raw = explainer.representation.predict(rows)
        if n_classes == 2:
            return 1 / (1 + np.exp(-raw))
        return np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)

    np.testing.assert_allclose(probability(X[:9])[:, -1], model.predict_proba(X[:9])[:, -1], atol=1e-5)
    for row, values, found in zip(X[50:52], got, pairs, strict=True):
        v = oracles.coalition_values(probability, row, X[:15], owner)
        want = oracles.interaction_matrix(v, 5, index == "banzhaf")
        want = want if n_classes > 2 else want[..., 0]
        close(found, want, 1e-8)
        close(values, want.sum(axis=1), 1e-8)
    assert explainer.fidelity is None


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_sampled_probabilities_are_as_near_as_their_errors_say(
    n_classes: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against all coalitions; with several outputs, weights, groups and missing values."""
    model, X, _ = model_of("LGBMClassifier", n_classes)
    weights = np.random.default_rng(1).random(60) if weighted else None
    given = {"output": "probability", "exact": True, "groups": {"g": [0, 4]}, "weights": weights}
    enumerated = fs.TreeExplainer(model, X[:60], **given)
    assert enumerated.plan().strategy == "definition" and enumerated.quality.is_exact
    monkeypatch.setattr(transformed, "_MOST_PLAYERS", 2)
    explainer = fs.TreeExplainer(model, X[:60], **given)
    assert explainer.plan().strategy == "sampled"
    assert explainer.quality.tolerance == 0.01 and not explainer.quality.is_exact
    rows = explainer.inputs.encode(X[100:140]).codes
    values, errors = explainer.engine.estimate(rows)
    want = enumerated.engine.shap_values(rows)
    assert (errors.max(axis=(1, 2)) <= 0.01 * np.maximum(np.abs(values).max(axis=(1, 2)), 0.05)).all()
    wrong = (values - want)[errors > 0] / errors[errors > 0]
    assert np.sqrt((wrong**2).mean()) < 1.2 and np.abs(wrong).max() < 5.5
    sums = values.sum(axis=1) + explainer.engine.expected
    np.testing.assert_allclose(sums, explainer.engine.predict(rows), atol=1e-12)
    # The same whatever rows are beside it, in any number of threads.
    np.testing.assert_allclose(explainer.engine.shap_values(rows[7:9], 2), values[7:9], atol=1e-9)
    with pytest.raises(fs.InputError, match="exact=True: interactions need all coalitions, and 5 players"):
        explainer.shap_interaction_values(X[:1])
    with pytest.raises(fs.InputError, match=r"exact=True with 5 players.*index='banzhaf'.*groups="):
        fs.TreeExplainer(model, X[:60], index="banzhaf", **given)


def test_exact_probabilities_of_input_columns_belong_to_their_players() -> None:
    """The encoder puts its columns first, so that players do not come in the order of the features."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 17)), columns=[f"x{j}" for j in range(17)])
    frame.insert(1, "city", rng.choice(["a", "b", "c"], 300))
    encode = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    model = make_pipeline(encode, GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0))
    model.fit(frame, frame["x0"] > 0)
    given = {"groups": "input", "output": "probability"}
    explainer = fs.TreeExplainer(model, frame[:50], exact=True, **given)
    assert explainer.player_names[:2] == ("x0", "city") and explainer.quality.tolerance == 0.01
    strength = np.abs(explainer.shap_values(frame[60:80])).mean(axis=0)
    assert strength[0] > 0.2 and strength[1:].max() < 0.05


def test_exact_probabilities_against_one_background_row() -> None:
    import xgboost

    X = np.random.default_rng(0).normal(size=(100, 20)).astype(np.float32)
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(X, X[:, 0] > 0)
    explainer = fs.TreeExplainer(model, X[:1], output="probability", exact=True)
    total = explainer.shap_values(X[:5]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict_proba(X[:5])[:, 1], atol=1e-6)


def test_what_is_not_there_is_refused() -> None:
    model, X, y = model_of("XGBClassifier", 3)
    with pytest.raises(fs.UnsupportedModelError, match="exact=True"):
        fs.TreeExplainer(model, X[:20], output="probability")
    with pytest.raises(fs.UnsupportedModelError, match="BlackBoxExplainer"):
        fs.TreeExplainer(model, X[:20], output="log_loss")
    with pytest.raises(fs.InputError, match="background"):
        fs.TreeExplainer(model, output="probability", exact=True)
    with pytest.raises(fs.InputError, match="'raw', 'probability', 'response', 'log_loss'"):
        fs.TreeExplainer(model, X[:20], output="odds")
    with pytest.raises(fs.InputError, match="exact=True is for"):
        fs.TreeExplainer(model, X[:20], exact=True)
    binary, X, y = model_of("XGBClassifier")
    loss = fs.TreeExplainer(binary, X[:20], output="log_loss")
    with pytest.raises(fs.InputError, match="needs the labels"):
        loss.shap_values(X[:3])
    with pytest.raises(fs.InputError, match="2 labels for 3 rows"):
        loss.shap_values(X[:3], y[:2])
    with pytest.raises(fs.InputError, match="other than 0 and 1"):
        loss.shap_values(X[:3], [1, 2, 1])
    with pytest.raises(fs.InputError, match="expected_loss"):
        _ = loss.expected_value
    with pytest.raises(fs.InputError, match="no interactions"):
        loss.shap_interaction_values(X[:3])
    probability = fs.TreeExplainer(binary, X[:20], output="probability")
    with pytest.raises(fs.InputError, match="log_loss"):
        probability.shap_values(X[:3], y[:3])
    with pytest.raises(fs.InputError, match="do not; use output='raw'"):
        fs.TreeExplainer(binary, X[:20], output="probability", index="banzhaf")


# Responses: log links.


def _log_links() -> dict[str, Any]:
    import catboost
    import lightgbm
    import xgboost
    from sklearn.ensemble import HistGradientBoostingRegressor

    boost = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}
    cat = {"iterations": 6, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    models = {
        f"xgboost {name}": xgboost.XGBRegressor(objective=name, **boost)
        for name in ("count:poisson", "reg:gamma", "reg:tweedie")
    }
    for name in ("poisson", "gamma", "tweedie"):
        models[f"lightgbm {name}"] = lightgbm.LGBMRegressor(objective=name, verbose=-1, **boost)
    for name in ("Poisson", "Tweedie:variance_power=1.5"):
        models[f"catboost {name}"] = catboost.CatBoostRegressor(loss_function=name, **cat)
    for name in ("poisson", "gamma"):
        models[f"hist {name}"] = HistGradientBoostingRegressor(loss=name, max_iter=6, max_depth=3)
    return models


def _counted() -> tuple[np.ndarray, np.ndarray]:
    X, y = data(0)
    return X[:, :4], np.floor(np.exp(y / 2)) + 1


@pytest.mark.parametrize("name", _log_links())
def test_responses_of_log_links(name: str) -> None:
    """Rescaled per background row, as shap does to probabilities; exact by the definition."""
    X, y = _counted()
    model = _log_links()[name].fit(X, y)
    background, rows = X[:12], X[50:54]
    explainer = fs.TreeExplainer(model, background, output="response", precision="double")
    got = explainer.shap_values(rows, check_additivity=True)
    np.testing.assert_allclose(got.sum(axis=1) + explainer.expected_value, model.predict(rows), rtol=1e-5)
    want = np.zeros(got.shape)
    for other in background:
        one = fs.TreeExplainer(model, other[None], precision="double")
        margin, base = one.predict(rows), one.expected_value
        change = margin - base
        same = np.abs(change) < 1e-12
        slope = np.where(same, 1.0, (np.exp(margin) - np.exp(base)) / np.where(same, 1.0, change))
        want += slope[:, None] * one.shap_values(rows) / len(background)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
    exact = fs.TreeExplainer(model, background, output="response", exact=True)
    by_definition = oracles.shap_values(lambda Z: np.asarray(model.predict(Z)), rows, background)[..., 0]
    np.testing.assert_allclose(exact.shap_values(rows), by_definition, rtol=1e-4, atol=1e-5)
    with pytest.raises(fs.UnsupportedModelError, match="output='response'"):
        fs.TreeExplainer(model, background, output="probability")


def test_risks_and_times_of_survival_models(tmp_path: Path) -> None:
    import catboost
    import xgboost

    X, y = _counted()
    lived = np.where(X[:, 3] > 0, 1, -1) * y
    cox = xgboost.XGBRegressor(objective="survival:cox", n_estimators=5, max_depth=3).fit(X, lived)
    matrix = xgboost.DMatrix(X)
    matrix.set_float_info("label_lower_bound", y)
    matrix.set_float_info("label_upper_bound", np.where(X[:, 3] > 0, y, np.inf))
    aft = xgboost.train({"objective": "survival:aft", "max_depth": 3}, matrix, 5)
    for model, said in ((cox, cox.predict(X[:9])), (aft, aft.predict(matrix)[:9])):
        explainer = fs.TreeExplainer(model, X[:20], output="response")
        values = explainer.shap_values(X[:9], check_additivity=True)
        np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, said, rtol=1e-5)
        explainer.save(tmp_path / "response.fshap")
        loaded = fs.load(tmp_path / "response.fshap")
        assert loaded.output == "response" and np.allclose(loaded.shap_values(X[:9]), values)
    risk = catboost.CatBoostRegressor(loss_function="Cox", iterations=5, verbose=0, allow_writing_files=False)
    risk.fit(X, lived)
    explainer = fs.TreeExplainer(risk, X[:20], output="response")
    total = explainer.shap_values(X[:9]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, np.exp(risk.predict(X[:9])), rtol=1e-6)  # it predicts the logarithm


def test_responses_without_a_link() -> None:
    """What predict returns is the raw output, or the probability: the same values by another name."""
    from sklearn.ensemble import RandomForestClassifier

    regressor, X, _ = model_of("XGBRegressor", 0)
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(np.nan_to_num(X), X[:, 0] > 0)
    for model in (regressor, forest):
        Z = np.nan_to_num(X[:20])
        for background in (Z, None):
            raw, response = (fs.TreeExplainer(model, background, output=o) for o in ("raw", "response"))
            assert np.array_equal(response.shap_values(Z), raw.shap_values(Z))
    classifier, X, _ = model_of("LGBMClassifier")
    a, b = (
        fs.TreeExplainer(classifier, X[:20], output=o).shap_values(X[:5]) for o in ("response", "probability")
    )
    assert np.array_equal(a, b)


def test_transformed_targets() -> None:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import RandomForestRegressor

    X, y = _counted()
    X = np.nan_to_num(X)
    forest = RandomForestRegressor(4, max_depth=3, random_state=0)
    for there, back in ((np.log, np.exp), (np.log1p, np.expm1)):
        model = TransformedTargetRegressor(forest, func=there, inverse_func=back).fit(X, y)
        with pytest.warns(fs.ModelWarning, match=r"units of the transformed target.*output='response'"):
            raw = fs.Explainer(model, X[:20])
        np.testing.assert_allclose(back(raw.predict(X[:9])), model.predict(X[:9]), rtol=1e-6)
        response = fs.Explainer(model, X[:20], output="response")
        values = response.shap_values(X[:9], check_additivity=True)
        total = values.sum(axis=1) + response.expected_value
        np.testing.assert_allclose(total, model.predict(X[:9]), rtol=1e-6)
    other = TransformedTargetRegressor(forest, func=np.sqrt, inverse_func=np.square).fit(X, y)
    with pytest.warns(fs.ModelWarning, match="BlackBoxExplainer"):
        fs.Explainer(other, X[:20])
    same = TransformedTargetRegressor(forest).fit(X, y)
    assert np.allclose(fs.Explainer(same, X[:20]).predict(X[:5]), same.predict(X[:5]))


@pytest.mark.parametrize("name", ["LGBMClassifier", "XGBClassifier", "CatBoostClassifier"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_hybrids_by_bits_are_those_that_are_predicted(name: str, n_classes: int) -> None:
    model, X, _ = model_of(name, n_classes)
    explainer = fs.TreeExplainer(model, X[:9], output="probability", exact=True, groups={"g": [0, 4]})
    raw = explainer.engine.raw
    rows = explainer.inputs.encode(X[20:23]).codes
    by_bits = hybrids.hybrids_of(raw, raw.player, rows)
    predicted = hybrids._Predicted(raw, raw.player, rows, raw.background.rows)
    assert type(by_bits) is hybrids._Trees
    rng = np.random.default_rng(0)
    places = rng.permuted(np.tile(np.arange(5), (30, 2, 1)), axis=2)
    others = rng.integers(0, 9, 30)
    close(by_bits.chains(1, others, places), predicted.chains(1, others, places), 1e-12)
    close(by_bits.coalitions(2, slice(3, 8)), predicted.coalitions(2, slice(3, 8)), 1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_plan_counts_the_draws_of_sampled_values(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds are those of a draw, as measured, times these draws."""
    model, X, _ = model_of("LGBMClassifier", n_classes)
    monkeypatch.setattr(transformed, "_MOST_PLAYERS", 2)
    explainer = fs.TreeExplainer(model, X[:60], output="probability", exact=True, n_jobs=1)
    drawn, draw = [], sampled._draw

    def counted(task: Any, row: int, n_draws: int, rng: np.random.Generator) -> Any:
        drawn.append(n_draws)
        return draw(task, row, n_draws, rng)

    monkeypatch.setattr(sampled, "_draw", counted)
    monkeypatch.setattr(transformed, "cpu_seconds", lambda: float(sum(drawn)))
    planned = 40 * explainer.engine._seconds[1]
    monkeypatch.undo()
    monkeypatch.setattr(sampled, "_draw", counted)
    drawn.clear()
    explainer.shap_values(X[100:140])
    assert sum(drawn) / 2 < planned < 2 * sum(drawn)
    assert np.isnan(explainer.plan().seconds)


def test_explainers_say_how_exact_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, _ = model_of("LGBMClassifier")
    assert "probability (rescaled)" in repr(fs.Explainer(model, X[:9], output="probability"))
    given = {"output": "probability", "exact": True}
    assert "probability (exact)" in repr(fs.Explainer(model, X[:9], **given))
    monkeypatch.setattr(transformed, "_MOST_PLAYERS", 2)
    assert "probability (± 1%)" in repr(fs.Explainer(model, X[:9], **given))
    assert "probability" not in repr(fs.Explainer(model, X[:9]))
