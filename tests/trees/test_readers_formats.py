"""What is peculiar to scikit-survival, quantile-forest, interpret and YDF; each skips where it is missing."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
from format_models import INSTALLED, survival_target
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import LOGISTIC
from fouriershap._libraries.protobuf import Message
from models import CASES, classes, frame, frame_target, numbers, rows_of, target
from shap_oracle import assert_within, brute_force, take, with_outputs

ONE_OF_EACH = {
    "sksurv": "GradientBoostingSurvivalAnalysis dropout",
    "quantile_forest": "RandomForestQuantileRegressor 2 targets",
    "interpret": "frame",
    "ydf": "frame",
    "onnx": "imputed",
}
PRESENT = [(library, name) for library, name in ONE_OF_EACH.items() if library in CASES]


def needs(library: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not INSTALLED[library], reason=f"{library} is not installed")


@pytest.mark.parametrize(("library", "name"), PRESENT)
def test_shap_values_by_brute_force(library, name):
    """Every coalition, by the library's own predictions, with missing values where it takes them."""
    model, X, _ = CASES[library][name]()
    rows, background = take(X, np.arange(6)), take(X, np.arange(100, 112))
    explainer = fs.Explainer(model, background, precision="double")
    assert isinstance(explainer.representation, fs.TreeEnsemble) and explainer.checked
    want, expected = brute_force(model, rows, background)
    tolerance = 1e-5 if fs.read_model(model).computes_in == np.float32 else 1e-9
    assert_within(with_outputs(explainer.shap_values(rows)), want, tolerance)
    np.testing.assert_allclose(np.atleast_1d(explainer.expected_value), expected, rtol=1e-5)


# scikit-survival


@needs("sksurv")
@pytest.mark.parametrize(
    "name", ["SurvivalTree missing", "RandomSurvivalForest missing", "ExtraSurvivalTrees"]
)
def test_curves_at_chosen_times(name):
    model, X, _ = CASES["sksurv"][name]()
    last = model.unique_times_[-1]
    times = [0.0, 0.001, model.unique_times_[3], 0.3, last]
    for curve in ("survival", "cumulative_hazard"):
        read = fs.survival_trees(model, times, curve=curve)
        functions = getattr(model, f"predict_{curve}_function")(X)
        want = np.array([function(times) for function in functions])
        np.testing.assert_allclose(read.predict(X), want, rtol=1e-12, atol=1e-12)
    assert read.output_names == tuple(f"H({time:g})" for time in times)

    rows, background = X[:4], X[50:58]
    explainer = fs.TreeExplainer(fs.survival_trees(model, times[2:4]), background, precision="double")

    def survival(model, X):
        return np.array([function(times[2:4]) for function in model.predict_survival_function(X)])

    want, _ = brute_force(model, rows, background, output=survival)
    assert_within(with_outputs(explainer.shap_values(rows)), want, 1e-9)


@needs("sksurv")
def test_curves_that_are_not_there():
    model = CASES["sksurv"]["RandomSurvivalForest missing"]().model
    for times, message in (
        ([-1.0], "go from 0 to"),
        ([1e9], "go from 0 to"),
        ([np.nan], "go from 0 to"),
        (0.5, r"shape \(\)"),
        ([], r"shape \(0,\)"),
        (["soon"], "give numbers"),
    ):
        with pytest.raises(InputError, match=message):
            fs.survival_trees(model, times)
    with pytest.raises(InputError, match="curve"):
        fs.survival_trees(model, [0.1], curve="hazard")
    with pytest.raises(UnsupportedModelError, match="low_memory=False"):
        fs.survival_trees(CASES["sksurv"]["RandomSurvivalForest low memory"]().model, [0.1])
    with pytest.raises(UnsupportedModelError, match="SurvivalTree"):
        fs.survival_trees(CASES["sksurv"]["GradientBoostingSurvivalAnalysis"]().model, [0.1])
    with pytest.raises(InputError, match="not fitted"):
        fs.survival_trees(type(model)(), [0.1])


@needs("sksurv")
def test_boosting_takes_no_missing_values_and_models_of_other_kinds_are_no_trees():
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    X = numbers()
    with pytest.raises(UnsupportedModelError, match="cannot be read"):
        fs.read_model(CoxPHSurvivalAnalysis().fit(X, survival_target(X)))
    model, _, _ = CASES["sksurv"]["GradientBoostingSurvivalAnalysis"]()
    with pytest.raises(InputError, match="missing value"):
        fs.TreeExplainer(model, numbers(missing=True))


# quantile-forest


@needs("quantile_forest")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "default_quantiles=0.5"),
        ({"default_quantiles": [0.1, 0.9]}, "default_quantiles="),
        ({"default_quantiles": "mean", "max_samples_leaf": None}, "max_samples_leaf=None"),
    ],
)
def test_quantiles_are_no_sum_of_trees(options, said):
    from quantile_forest import RandomForestQuantileRegressor

    X = numbers()
    model = RandomForestQuantileRegressor(n_estimators=3, random_state=0, **options).fit(X, target(X))
    with pytest.raises(UnsupportedModelError, match=re.escape(said)) as caught:
        fs.TreeExplainer(model, X)
    assert "BlackBoxExplainer" in str(caught.value)


# NGBoost


@needs("ngboost")
def test_parameters_of_a_distribution_have_names_and_other_learners_are_refused():
    from ngboost import NGBRegressor
    from sklearn.linear_model import Ridge

    model, X, _ = CASES["ngboost"]["NGBRegressor"]()
    explainer = fs.Explainer(model, X)
    assert explainer.output_names == ("mean", "log of the standard deviation")
    distribution = model.pred_dist(X[:20])
    values = explainer.shap_values(X[:20], check_additivity=True)
    want = np.stack([distribution.params["loc"], np.log(distribution.params["scale"])], axis=1)
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, want, atol=1e-6)
    model = NGBRegressor(Base=Ridge(), n_estimators=2, verbose=False).fit(X, target(X))
    with pytest.raises(UnsupportedModelError, match="Ridge learners"):
        fs.TreeExplainer(model, X)


# interpret


@needs("interpret")
def test_labels_that_training_has_not_seen():
    model, X, _ = CASES["interpret"]["frame"]()
    ensemble = fs.read_model(model)
    rows = X.astype({"colour": object, "size": object})[:8].copy()
    rows.loc[:1, "colour"], rows.loc[2:3, "size"], rows.loc[4, "size"] = "never seen", 55, "30"
    want = model.eval_terms(rows).sum(axis=1) + model.intercept_
    np.testing.assert_allclose(ensemble.predict(rows)[:, 0], want, rtol=1e-12)


@needs("interpret")
def test_probabilities_of_a_boosting_machine():
    model, X, _ = CASES["interpret"]["classifier"]()
    explainer = fs.TreeExplainer(model, X, output="probability")
    sums = explainer.shap_values(X[:20]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(sums, model.predict_proba(X[:20])[:, 1], atol=1e-5)
    assert fs.TreeExplainer(model).shap_values(X[:3]).shape == (3, 4)  # its bins count training rows


# YDF


@needs("ydf")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosted_classifiers_by_their_probabilities(n_classes):
    import ydf

    X = pd.DataFrame(numbers(missing=True), columns=list("abcd"))
    y = np.array(["c", "a", "b"])[classes(X.to_numpy(), n_classes)]
    model = ydf.GradientBoostedTreesLearner(label="y", num_trees=8).train(X.assign(y=y))
    explainer = fs.TreeExplainer(model, X)
    assert explainer.checked == (n_classes == 2)
    margin = fs.read_model(model).predict(X)
    if n_classes == 2:
        assert fs.read_model(model).link is LOGISTIC
        np.testing.assert_allclose(1 / (1 + np.exp(-margin[:, 0])), model.predict(X), atol=1e-6)
        return
    assert explainer.output_names == tuple(model.label_classes())
    share = np.exp(margin)
    np.testing.assert_allclose(share / share.sum(axis=1, keepdims=True), model.predict(X), atol=1e-6)


@needs("ydf")
def test_folders_of_tensorflow_have_a_prefix_and_lie_in_assets(tmp_path):
    model, X, _ = CASES["ydf"]["frame"]()
    import ydf

    model.set_node_format(ydf.NodeFormat.BLOB_SEQUENCE_GZIP)
    model.save(str(tmp_path / "plain"))
    model.set_node_format(ydf.NodeFormat.BLOB_SEQUENCE)
    assets = tmp_path / "saved" / "assets"
    assets.mkdir(parents=True)
    for file in (tmp_path / "plain").iterdir():
        shutil.copy(file, assets / f"0123456789abcdef{file.name}")
    want = fs.read_model(model)
    for path in (tmp_path / "plain", tmp_path / "saved"):
        read = fs.read_model(path)
        rows = rows_of(want, X)
        np.testing.assert_array_equal(read.predict(rows), want.predict(rows))
    (tmp_path / "plain" / "nodes-00000-of-00001").write_bytes(b"BS\x01\x00\x00\x00\x00\x00")
    with pytest.raises(InputError, match="lacks nodes"):
        fs.read_model(tmp_path / "plain")
    with pytest.raises(InputError, match="not a model that"):
        fs.read_model(tmp_path)


def _field(number, payload):
    """A field of a message of Protocol Buffers: a whole number, or bytes."""
    if isinstance(payload, int):
        return bytes([number << 3, payload])
    size = len(payload)
    return (
        bytes([number << 3 | 2])
        + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7]))
        + payload
    )


@needs("ydf")
def test_whole_numbers_that_tensorflow_took_as_they_are(tmp_path):
    """TensorFlow Decision Forests writes columns of whole numbers, the label above all, without a dictionary."""
    import ydf

    X = pd.DataFrame(numbers(), columns=list("abcd"))
    X["d"] = np.random.default_rng(0).integers(0, 4, len(X)).astype(str)
    y = (target(numbers()) > 0) ^ (X["d"] == "2")
    spec = [("d", ydf.Semantic.CATEGORICAL), *"abc"]
    model = ydf.RandomForestLearner(
        label="y", num_trees=5, features=spec, min_vocab_frequency=1, random_seed=1
    ).train(X.assign(y=y.astype(int).astype(str)))
    assets = tmp_path / "saved" / "assets"
    model.save(str(assets))
    want, labels = model.predict(X), {}

    def without_dictionaries(shifted: bytes) -> bytes:
        whole = b""
        for column in Message((tmp_path / "data_spec.pb").read_bytes()).messages(1):
            name = column.text(2)
            about = _field(1, column.whole(1)) + _field(2, name.encode())
            if name in ("d", "y"):
                dictionary = {i.text(1): i.message(2).whole(1) for i in column.message(6).messages(7)}
                labels[name] = sorted(dictionary, key=dictionary.get)[1:]  # the first is what is unknown
                about += _field(6, _field(2, len(dictionary)) + _field(5, 1) + shifted)
            whole += _field(1, about)
        return whole

    for file in assets.iterdir():
        shutil.copy(file, tmp_path / file.name)
    (assets / "data_spec.pb").write_bytes(without_dictionaries(_field(8, 1)))
    ensemble = fs.read_model(tmp_path / "saved")
    assert ensemble.output_names == ("0", "1")
    # The number of a label is now its place in the dictionary that was there.
    rows = X.assign(d=[labels["d"].index(label) for label in X["d"]])[list(ensemble.feature_names)]
    classes = ensemble.trees.predict(ensemble.rules.clean(rows_of(ensemble, rows)))
    np.testing.assert_allclose(classes[:, 1], want, atol=1e-6)
    (tmp_path / "data_spec.pb").write_bytes(without_dictionaries(b""))
    with pytest.raises(UnsupportedModelError, match="took as they are"):
        fs.read_model(tmp_path)


@needs("ydf")
def test_trees_that_are_not_plain_are_refused():
    import ydf

    X = pd.DataFrame(numbers(), columns=list("abcd"))
    y = target(X.to_numpy())
    learner = ydf.RandomForestLearner(
        label="y", task=ydf.Task.REGRESSION, num_trees=2, split_axis="SPARSE_OBLIQUE"
    )
    with pytest.raises(UnsupportedModelError, match=r"oblique.*BlackBoxExplainer"):
        fs.read_model(learner.train(X.assign(y=y)))
    forest = ydf.IsolationForestLearner(num_trees=2).train(X)
    with pytest.raises(UnsupportedModelError, match="neither a random forest"):
        fs.read_model(forest)


@needs("ydf")
def test_truth_values_and_labels_of_any_type():
    import ydf

    rng = np.random.default_rng(0)
    X = frame(missing=True).assign(flag=rng.random(300) < 0.5)
    X = X.assign(colour=X["colour"].astype(object), size=X["size"].astype(int))
    y = frame_target(frame(missing=True)) + 2 * X["flag"]
    features = ["a", "colour", "b", ydf.Feature("size", ydf.Semantic.CATEGORICAL), "flag"]
    learner = ydf.RandomForestLearner(
        label="y", task=ydf.Task.REGRESSION, num_trees=5, features=features, min_vocab_frequency=1
    )
    model = learner.train(X.assign(y=y))
    X.loc[:20, "colour"], X.loc[15:40, "size"] = "unseen", 77
    explainer = fs.TreeExplainer(model, X)
    assert explainer.checked
    got = explainer.shap_values(X[:20]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(got, model.predict(X[:20]), rtol=1e-5)
