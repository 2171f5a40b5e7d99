"""Models of models that are no sums of trees: members are read, the rest is fitted, and the certificate tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVR

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._blackbox.candidates import members as candidate
from fouriershap._blackbox.candidates.members import MOST_LEAVES, members_on_codes
from fouriershap._libraries import arithmetic, read_members
from fouriershap._rows.levels import make_encoding
from fouriershap._rows.pool import Pool
from fouriershap._trees.through_steps import before_steps
from shap_oracle import assert_within, brute_force, with_outputs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 5))
SCORE = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3]
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.5, 0.5])
BACKGROUND, ROWS = X[:30], X[100:112]


def forest(kind=RandomForestClassifier, **options):
    return kind(12, max_depth=5, random_state=0, **options)


def boosting(kind=GradientBoostingClassifier):
    return kind(n_estimators=15, random_state=0)


def stacked(final, **options):
    members = [("a", forest(RandomForestRegressor)), ("b", boosting(GradientBoostingRegressor))]
    return StackingRegressor(members, final_estimator=final, cv=3, **options)


MODELS = {
    "isotonic": (CalibratedClassifierCV(forest(), method="isotonic", cv=3), TWO, 0.97),
    "sigmoids": (CalibratedClassifierCV(boosting(), method="sigmoid", cv=3), TWO, 0.98),
    "isotonic, 3 classes": (CalibratedClassifierCV(forest(), method="isotonic", cv=2), THREE, 0.95),
    "sigmoids, 3 classes": (CalibratedClassifierCV(boosting(), cv=2), THREE, 0.98),
    "forest last": (stacked(forest(RandomForestRegressor, min_samples_leaf=10)), SCORE, 0.95),
    "columns pass": (stacked(boosting(GradientBoostingRegressor), passthrough=True), SCORE, 0.95),
    "some members are no trees": (
        StackingRegressor(
            [("a", forest(RandomForestRegressor)), ("b", SVR())],
            final_estimator=boosting(GradientBoostingRegressor),
        ),
        SCORE,
        0.9,
    ),
    "logits last, 3 classes": (
        StackingClassifier([("a", boosting()), ("b", forest())], final_estimator=LogisticRegression(), cv=2),
        THREE,
        0.98,
    ),
    "votes": (
        VotingClassifier([("a", forest()), ("b", boosting())], voting="soft", weights=[1, 2]),
        TWO,
        0.98,
    ),
    "bags": (BaggingClassifier(boosting(), n_estimators=3, max_features=0.6, random_state=0), TWO, 0.98),
    "median": (AdaBoostRegressor(n_estimators=12, random_state=0), SCORE, 0.95),
    "search": (
        GridSearchCV(CalibratedClassifierCV(forest(), method="isotonic", cv=2), {"cv": [2]}, cv=2),
        TWO,
        0.97,
    ),
}


def by_definition(model, rows, background, player=None):
    """SHAP values of what the model predicts, over all coalitions."""
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return brute_force(predict, rows, background, player, output=lambda ask, X: ask(X))[0]


def share_explained(got, want):
    return 1 - ((got - want) ** 2).sum() / (want**2).sum()


@pytest.mark.parametrize("name", MODELS)
def test_values_of_the_model_itself(name):
    model, y, least = MODELS[name]
    model = model.fit(X, y)
    with pytest.warns(fs.ModelWarning, match="explained as a black box"):
        explainer = fs.Explainer(model, BACKGROUND, data=X, random_state=0)
    explainer = explainer.fit(budget=2000)
    assert explainer.fitted.method == "members"
    line = explainer.fitted.candidates[0]
    assert line.chosen and "members' outputs" in line.note
    want = by_definition(model, ROWS, BACKGROUND)
    got = with_outputs(explainer.shap_values(ROWS))
    assert share_explained(got, want) > least
    low = explainer.fidelity.shap.low if explainer.fidelity.shap else explainer.fidelity.low
    assert low < share_explained(got, want) + 0.02  # the certificate does not promise what is not there


def test_members_are_worth_reading():
    """Of the same answers they make more than trees that are boosted on rows."""
    model = MODELS["sigmoids"][0].fit(X, TWO)
    missed = {
        method: 1 - explain_fitted(model, X, budget=800, method=method, random_state=0).fidelity.r2
        for method in ("members", "trees")
    }
    assert missed["members"] < 0.7 * missed["trees"]


def test_a_sum_of_members_is_found():
    members = [("a", forest(RandomForestRegressor)), ("b", boosting(GradientBoostingRegressor))]
    model = VotingRegressor(members, weights=[1, 3]).fit(X, SCORE)
    explainer = explain_fitted(model, BACKGROUND, data=X, budget=1000)
    assert explainer.fitted.method == "members" and explainer.fidelity.r2 > 1 - 1e-9
    assert_within(explainer.shap_values(ROWS), fs.TreeExplainer(model, BACKGROUND).shap_values(ROWS), 1e-5)


def test_probabilities_add_up_to_one():
    model = MODELS["isotonic, 3 classes"][0].fit(X, THREE)
    explainer = explain_fitted(model, BACKGROUND, data=X, budget=1000)
    assert explainer.output_names == ("0", "1", "2")
    np.testing.assert_allclose(explainer.shap_values(ROWS).sum(axis=2), 0, atol=1e-6)
    assert explainer.expected_value.sum() == pytest.approx(1, abs=1e-6)


def test_groups_frames_files_and_other_backgrounds(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = MODELS["isotonic"][0].fit(frame, TWO)
    groups = {"left": ["d", "a"], "right": ["b", "c", "e"]}
    options = {"budget": 2000, "random_state": 0}
    explainer = explain_fitted(model, frame[:30], data=frame, groups=groups, **options)
    assert explainer.fitted.method == "members" and explainer.player_names == ("left", "right")
    rows = frame[100:112]
    want = by_definition(model, rows, frame[:30], np.array([0, 1, 1, 0, 1]))
    assert share_explained(explainer.shap_values(rows), want) > 0.97
    explainer.save(tmp_path / "m.fshap")
    loaded = fs.load(tmp_path / "m.fshap")
    assert loaded.fitted.method == "members" and loaded.fitted.candidates == explainer.fitted.candidates
    assert_within(loaded.shap_values(rows), explainer.shap_values(rows), 1e-6)
    other = explainer.with_background(frame[50:60])
    want = by_definition(model, rows, frame[50:60], np.array([0, 1, 1, 0, 1]))
    assert share_explained(other.shap_values(rows), want) > 0.95


def test_missing_values_ties_and_one_column():
    rows = np.round(X, 1)
    rows[::7, 0] = np.nan
    model = CalibratedClassifierCV(HistGradientBoostingClassifier(max_iter=15), cv=2).fit(rows, TWO)
    explainer = explain_fitted(model, rows[:30], data=rows, budget=2000, random_state=0)
    assert explainer.fitted.method == "members"
    want = by_definition(model, rows[98:110], rows[:30])
    assert share_explained(explainer.shap_values(rows[98:110]), want) > 0.95
    one = CalibratedClassifierCV(forest(), cv=2).fit(X[:, :1], TWO)
    with pytest.warns(fs.ModelWarning):
        alone = explain_fitted(one, X[:30, :1], data=X[:, :1], budget=400)
    want = one.predict_proba(ROWS[:, :1]) - one.predict_proba(X[:30, :1]).mean(axis=0)
    np.testing.assert_allclose(alone.shap_values(ROWS[:, :1])[:, 0], want, atol=0.05)


def test_wrong_columns():
    model = MODELS["isotonic"][0].fit(X, TWO)
    with pytest.raises((ValueError, fs.FourierShapError)), pytest.warns(fs.ModelWarning):
        explain_fitted(model, X[:30, :3], budget=500)


PEOPLE = pd.DataFrame(X[:, :3], columns=list("abc")).assign(
    city=RNG.choice(["Bern", "Basel", "Zug", "Chur"], len(X)), size=RNG.choice(list("SML"), len(X))
)
CHOSEN = (PEOPLE["a"] * PEOPLE["b"] + 2 * (PEOPLE["city"] == "Zug") - (PEOPLE["size"] == "L") > 0.3).astype(
    int
)


def prepared(model):
    labels = (OneHotEncoder(), ["city"]), (OrdinalEncoder(), ["size"])
    return make_pipeline(make_column_transformer(*labels, (StandardScaler(), list("abc"))), model)


@pytest.mark.parametrize(
    "model",
    [
        CalibratedClassifierCV(prepared(forest()), method="isotonic", cv=2),
        prepared(CalibratedClassifierCV(boosting(), cv=2)),
        VotingClassifier([("a", prepared(forest())), ("b", prepared(boosting()))], voting="soft"),
    ],
    ids=["inside", "around", "votes"],
)
def test_members_behind_steps_and_labels(model, tmp_path):
    model = model.fit(PEOPLE, CHOSEN)
    with pytest.warns(fs.ModelWarning, match="explained as a black box"):
        explainer = fs.Explainer(model, PEOPLE[:30], data=PEOPLE, random_state=0)
    explainer = explainer.fit(budget=2000)
    assert explainer.fitted.method == "members"
    known = float(explainer.fitted.candidates[0].note.partition("R^2 ")[2].partition(";")[0])
    assert known > 0.93  # read wrongly, members would say next to nothing
    rows = PEOPLE[100:112]
    want = by_definition(model, rows, PEOPLE[:30])
    assert share_explained(with_outputs(explainer.shap_values(rows)), want) > 0.95
    explainer.save(tmp_path / "m.fshap")
    assert_within(fs.load(tmp_path / "m.fshap").shap_values(rows), explainer.shap_values(rows), 1e-6)


def test_members_that_know_labels():
    frame = PEOPLE.astype({"city": "category", "size": "category"})
    member = HistGradientBoostingClassifier(max_iter=15, categorical_features="from_dtype")
    model = CalibratedClassifierCV(member, cv=2).fit(frame, CHOSEN)
    explainer = explain_fitted(model, frame[:30], data=frame, budget=2000, random_state=0)
    assert explainer.fitted.method == "members"
    want = by_definition(model, frame[100:112], frame[:30])
    assert share_explained(with_outputs(explainer.shap_values(frame[100:112])), want) > 0.97


def test_what_members_cannot_be_read_for():
    encoding = make_encoding(Pool(X, "X"), np.arange(5, dtype=np.int32), tuple("abcde"), None)
    labels = make_encoding(Pool(np.round(X), "X"), np.arange(5, dtype=np.int32), tuple("abcde"), [0])
    model = MODELS["isotonic"][0].fit(X, TWO)
    reading = read_members(model, {})
    members = reading.trees
    assert members_on_codes(members, encoding).n_outputs == members.n_outputs == 3
    assert members_on_codes(members, labels) is None  # column 0 is a label there
    assert members_on_codes(None, encoding) is None
    zeros = replace(reading, rules=reading.rules.replace(zero_as_missing=tuple(range(5))))
    for found, is_found in ((reading, True), (zeros, False)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(candidate, "read_members", lambda *_, found=found: found)
            assert (candidate.find_members(model, encoding) is not None) == is_found
    turned = make_pipeline(PCA(), MODELS["isotonic"][0]).fit(X, TWO)
    for model in (turned, len, "model.onnx"):
        assert read_members(model, {}) is None
    inside = CalibratedClassifierCV(make_pipeline(PCA(), forest()), cv=2).fit(X, TWO)
    assert read_members(inside, {}) is None
    with pytest.raises(fs.InputError, match="members"):
        explain_fitted(turned, X, budget=500, method="members")
    assert members.n_leaves < MOST_LEAVES


def test_members_with_too_many_leaves_are_not_taken_through_steps(monkeypatch):
    asked = []

    def counted(trees, *rest):
        asked.append(trees.n_leaves)
        return before_steps(trees, *rest)

    monkeypatch.setattr(arithmetic, "before_steps", counted)
    member = make_pipeline(StandardScaler(), forest())
    model = CalibratedClassifierCV(member, method="isotonic", cv=3).fit(X, TWO)
    total = read_members(model, {}).trees.n_leaves
    assert len(asked) == 3 and sum(asked) == total
    assert read_members(model, {}, total).trees.n_leaves == total
    first, second = asked[:2]
    for most, n_read in ((first - 1, 0), (first, 1), (first + second, 2), (total - 1, 2)):
        asked.clear()
        assert read_members(model, {}, most) is None and len(asked) == n_read
    monkeypatch.setattr(candidate, "MOST_LEAVES", first - 1)
    asked.clear()
    encoding = make_encoding(Pool(X, "X"), np.arange(5, dtype=np.int32), tuple("abcde"), None)
    assert candidate.find_members(model, encoding) is None and not asked
