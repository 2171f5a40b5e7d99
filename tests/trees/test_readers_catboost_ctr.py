"""CatBoost's target statistics (CTRs) as splits on labels, against CatBoost's own predictions."""

import json

import catboost
import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
from fouriershap import read_model
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._libraries import catboost_ctr, catboost_tables
from fouriershap._libraries.catboost import read_document
from fouriershap._shapley.trees.plan import profile
from fouriershap._trees.codes import code_trees
from models import raw_output
from oracles import shap_values

QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
LABELS = ["town", "job", "make", "plan"]
ALL_TYPES = [
    "Borders:TargetBorderCount=3",
    "Buckets:TargetBorderCount=3",
    "BinarizedTargetMeanValue",
    "Counter",
]


def table(n_rows=600, cardinality=(12, 5, 40, 3), seed=0, numbers=2, missing=False):
    """Rows with columns of labels, numbers between them, and a target that depends on combinations."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, n_rows) for k in cardinality], axis=1)
    x = rng.normal(size=(n_rows, numbers)).round(2)
    mixed = codes[:, 0] * 5 + codes[:, -1] * 3 + codes[:, len(cardinality) // 2]
    y = np.sin(mixed) + 0.5 * np.cos(codes).sum(axis=1) + 0.1 * rng.normal(size=n_rows)
    columns = {}
    for f in range(len(cardinality)):
        columns[LABELS[f]] = np.array([f"{LABELS[f]} {c}" for c in range(max(cardinality))])[codes[:, f]]
        if f < numbers:
            columns[f"x{f}"] = x[:, f]
            y = y + x[:, f] * (codes[:, f] % 2)
    X = pd.DataFrame(columns)
    if missing:
        X.loc[rng.random(n_rows) < 0.1, "x0"] = np.nan
    return X, y


def labels_of(X):
    return [name for name in X.columns if name in LABELS]


def trained(X, y, kind="CatBoostRegressor", **options):
    settings = (
        {"iterations": 12, "depth": 4, "max_ctr_complexity": 3, "one_hot_max_size": 2} | QUIET | options
    )
    return getattr(catboost, kind)(**settings).fit(X, y, cat_features=labels_of(X))


def with_unseen(X, seed=1):
    """The same rows, with labels that training lacks in some of the cells."""
    rng = np.random.default_rng(seed)
    X = X.copy()
    for name in labels_of(X):
        X[name] = np.where(rng.random(len(X)) < 0.2, "unseen", rng.permutation(X[name]))
    return X


def combinations(model):
    """The features of each CTR in the model, as CatBoost's JSON names them."""
    return [ctr["elements"] for ctr in document(model)["features_info"].get("ctrs", [])]


def document(model):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return json.loads(path.read_text(encoding="utf-8"))


def assert_reads(model, *frames):
    reading = read_model(model)
    for X in frames:
        expected = raw_output(model, X)
        np.testing.assert_allclose(reading.predict(X), expected, rtol=1e-10, atol=1e-10)
    return reading


@pytest.mark.parametrize("complexity", [1, 2, 3, 4])
@pytest.mark.parametrize("one_hot", [2, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_combinations(complexity, one_hot, seed):
    X, y = table(seed=seed)
    model = trained(X, y, max_ctr_complexity=complexity, one_hot_max_size=one_hot, model_size_reg=0)
    assert_reads(model, X, with_unseen(X))
    lengths = [len(elements) for elements in combinations(model)]
    assert max(lengths) >= 1 and (max(lengths) > 1) == (complexity > 1)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_missing_numbers_in_combinations(policy, nan_mode):
    X, y = table(missing=True)
    model = trained(X, y, grow_policy=policy, nan_mode=nan_mode, model_size_reg=0, iterations=30)
    assert_reads(model, X, with_unseen(X))
    kinds = {(e["combination_element"]) for elements in combinations(model) for e in elements}
    assert policy != "SymmetricTree" or kinds >= {"cat_feature_value", "float_feature"}


def test_one_hot_elements_in_combinations():
    X, y = table(cardinality=(12, 2, 40, 3))
    y = y + 4.0 * (X["job"] == "job 1") * np.sin(X["town"].str[5:].astype(int) * 7)
    model = trained(X, y, one_hot_max_size=3, model_size_reg=0, iterations=40)
    assert_reads(model, X, with_unseen(X))
    assert any(e["combination_element"] == "cat_feature_exact_value" for c in combinations(model) for e in c)


@pytest.mark.parametrize("kind", ALL_TYPES)
@pytest.mark.parametrize("task", ["regression", "binary", "classes"])
def test_types(kind, task):
    X, y = table()
    settings = {"simple_ctr": [kind], "combinations_ctr": [kind], "model_size_reg": 0}
    if task == "regression":
        model = trained(X, y, **settings)
    else:
        cuts = np.quantile(y, [0.5] if task == "binary" else [0.3, 0.7])
        if task == "binary":
            settings = {key: [kind.split(":")[0]] if "ctr" in key else 0 for key in settings}
        model = trained(X, np.searchsorted(cuts, y), "CatBoostClassifier", **settings)
    reading = assert_reads(model, X, with_unseen(X))
    assert reading.n_outputs == (3 if task == "classes" else 1)
    found = {ctr["ctr_type"] for ctr in document(model)["features_info"]["ctrs"]}
    assert found == {kind.split(":")[0]}


def test_several_borders_of_the_target():
    X, y = table()
    for kind in ("Borders", "Buckets"):
        model = trained(
            X, y, simple_ctr=[f"{kind}:TargetBorderCount=4"], combinations_ctr=[f"{kind}:TargetBorderCount=4"]
        )
        assert_reads(model, X, with_unseen(X))
        assert max(ctr["target_border_idx"] for ctr in document(model)["features_info"]["ctrs"]) > 1


@pytest.mark.parametrize("labels", ["integers", "booleans", "category", "words"])
def test_kinds_of_labels(labels):
    X, y = table()
    X["town"] = X["town"].str[5:].astype(int)
    if labels == "booleans":
        X["plan"] = X["plan"] == "plan 1"
    if labels == "category":
        X["job"] = X["job"].astype("category")
    if labels == "words":
        X["job"] = X["job"].str.replace("job", "å label of more than sixteen bytes, and of thirty-two")
    model = trained(X, y, one_hot_max_size=1)
    assert_reads(model, X)


def test_labels_alone():
    X, y = table(numbers=0)
    assert_reads(trained(X, y, model_size_reg=0), X, with_unseen(X))


def test_labels_that_only_combinations_have():
    # Their hashes then follow from those of combinations.
    X, y = table(n_rows=2000, cardinality=(12, 5, 40), numbers=1)
    town, job, make = (X[name].str.split().str[1].astype(int) % 2 for name in ("town", "job", "make"))
    y = np.where(make == job, 1.0, -1.0) + np.where(town == job, 0.9, -0.9)
    model = trained(X, y, iterations=1, depth=3, model_size_reg=0)
    reading = assert_reads(model, X, with_unseen(X))
    alone = {c[0]["cat_feature_index"] for c in combinations(model) if len(c) == 1}
    together = {e["cat_feature_index"] for c in combinations(model) for e in c if "cat_feature_index" in e}
    assert together > alone
    assert reading.n_features == 4


def test_many_labels():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "town": rng.integers(0, 10_000, 30_000),
            "x": rng.normal(size=30_000),
            "job": rng.integers(0, 50, 30_000),
        }
    )
    y = np.sin(X["town"]) + X["x"] * (X["job"] % 2) + np.cos(X["job"] + X["town"] % 3)
    model = trained(X, y, iterations=40, depth=6, max_ctr_complexity=1)
    reading = assert_reads(model, X[:3000])
    assert len(reading.rules.vocabularies[0]) > 9_000
    X[:5] = X[:5].assign(town=99_999)
    explainer = fs.Explainer(model, X[:100])
    values = explainer(X[:50])
    np.testing.assert_allclose(
        values.values.sum(axis=1) + values.base_values, raw_output(model, X[:50])[:, 0], atol=1e-6
    )


def brute_force(model, X, background):
    columns = list(X.columns)

    def predict(rows):
        frame = pd.DataFrame(rows, columns=columns).astype(dict(X.dtypes))
        return raw_output(model, frame)

    return shap_values(predict, X.to_numpy(dtype=object), background.to_numpy(dtype=object))


@pytest.mark.parametrize("task", ["regression", "binary", "classes", "deep"])
def test_shap_values_by_definition(task):
    X, y = table(n_rows=800, missing=True)
    settings = {"model_size_reg": 0, "iterations": 25}
    if task == "deep":
        settings |= {"grow_policy": "Depthwise", "depth": 5}
    if task in ("binary", "classes"):
        y, kind = (
            np.searchsorted(np.quantile(y, [0.5] if task == "binary" else [0.3, 0.7]), y),
            "CatBoostClassifier",
        )
    else:
        kind = "CatBoostRegressor"
    model = trained(X, y, kind, **settings)
    rows, background = with_unseen(X[:8]), with_unseen(X[100:120], seed=2)
    explainer = fs.Explainer(model, background)
    assert explainer.fidelity is None or explainer.fidelity.exact
    found = explainer(rows)
    values = np.asarray(found.values).reshape(len(rows), X.shape[1], -1)
    np.testing.assert_allclose(values, brute_force(model, rows, background), atol=1e-6)
    total = values.sum(axis=1) + np.reshape(found.base_values, (len(rows), -1))
    np.testing.assert_allclose(total, raw_output(model, rows), atol=1e-6)


def test_groups():
    X, y = table()
    model = trained(X, y, model_size_reg=0)
    groups = {"labels": labels_of(X), "numbers": ["x0", "x1"]}
    explainer = fs.TreeExplainer(model, X[:15], groups=groups)
    players = np.array([0 if name in LABELS else 1 for name in X.columns])

    def predict(rows):
        return raw_output(model, pd.DataFrame(rows, columns=X.columns).astype(dict(X.dtypes)))

    rows = X[20:25]
    expected = shap_values(predict, rows.to_numpy(object), X[:15].to_numpy(object), players)
    np.testing.assert_allclose(explainer(rows).values, expected[..., 0], atol=1e-6)


@pytest.mark.parametrize("suffix", ["json", "cbm"])
def test_files(suffix, tmp_path):
    X, y = table()
    model = trained(X, y, model_size_reg=0)
    path = tmp_path / f"model.{suffix}"
    model.save_model(str(path), format=suffix)
    reading = read_model(str(path))
    np.testing.assert_allclose(reading.predict(with_unseen(X)), raw_output(model, with_unseen(X)), atol=1e-10)


def test_saved_explainer(tmp_path):
    X, y = table()
    explainer = fs.TreeExplainer(trained(X, y, model_size_reg=0), X[:50])
    explainer.save(tmp_path / "e.fshap")
    rows = with_unseen(X[:20])
    np.testing.assert_allclose(
        fs.load(tmp_path / "e.fshap")(rows).values, explainer(rows).values, rtol=1e-12, atol=1e-12
    )


def test_path_dependent_values_without_combinations_are_those_of_catboost():
    X, y = table()
    model = trained(X, y, max_ctr_complexity=1, iterations=30)
    pool = catboost.Pool(X, y, cat_features=labels_of(X))
    expected = model.get_feature_importance(pool, type="ShapValues")
    found = fs.TreeExplainer(model)(X)
    np.testing.assert_allclose(found.values, expected[:, :-1], atol=1e-6)
    np.testing.assert_allclose(found.base_values, expected[:, -1], atol=1e-6)


def test_path_dependent_values_of_combinations_need_a_background():
    X, y = table()
    with pytest.raises(InputError, match="Give a background"):
        fs.TreeExplainer(trained(X, y, model_size_reg=0))


def test_a_tree_that_is_too_large(monkeypatch):
    X, y = table()
    model = trained(X, y, model_size_reg=0)
    monkeypatch.setattr(catboost_ctr, "MOST_NODES", 20)
    with pytest.raises(UnsupportedModelError, match=r"more than 20 nodes.*max_ctr_complexity"):
        read_model(model)
    with pytest.warns(fs.ModelWarning, match="target statistics"):
        explainer = fs.Explainer(model, X[:20])
    assert explainer.kind == "black box"


def test_unknown_types_are_refused():
    X, y = table()
    damaged = document(trained(X, y))
    damaged["features_info"]["ctrs"][0]["ctr_type"] = "Median"
    with pytest.raises(UnsupportedModelError, match="unknown type 'Median'"):
        read_document(damaged)


def test_labels_that_cannot_be_found_are_refused(monkeypatch):
    X, y = table()
    model = trained(X, y, model_size_reg=0)
    monkeypatch.setattr(catboost_tables, "_MOST_COMBINATIONS", 3)
    with pytest.raises(UnsupportedModelError, match="hashes"):
        read_model(model)


def test_means_of_the_target(tmp_path):
    # Only GPUs train these; CatBoost predicts with their tables as with those of BinarizedTargetMeanValue.
    X, y = table()
    kind = ["BinarizedTargetMeanValue"]
    written = json.dumps(document(trained(X, y, simple_ctr=kind, combinations_ctr=kind)))
    path = tmp_path / "model.json"
    path.write_text(written.replace("BinarizedTargetMeanValue", "FloatTargetMeanValue"))
    model = catboost.CatBoost().load_model(str(path), format="json")
    reading = read_model(str(path))
    np.testing.assert_allclose(reading.predict(with_unseen(X)), raw_output(model, with_unseen(X)), atol=1e-10)


def test_cuts_of_category_sets():
    # The cost of tables counts them: labels of combinations fall into many intervals of codes.
    X, y = table()
    coded = code_trees(read_model(trained(X, y, model_size_reg=0)).trees)
    e = coded.ensemble
    expected = np.zeros(e.n_trees)
    for node in np.flatnonzero(e.category_set >= 0):
        sides = [0, *coded.goes_left(node).astype(int), 0]
        expected[e.tree_of_node[node]] += np.abs(np.diff(sides)).sum()
    np.testing.assert_array_equal(profile(coded)[:, 4], expected)
    assert expected.any()
