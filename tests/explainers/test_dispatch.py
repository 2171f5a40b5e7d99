"""`Explainer(model, background)`: every model goes to the explainer that fits it."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
import oracles
from models import CASES, classes, numbers, target
from shap_oracle import assert_within, brute_force, with_outputs

TREES = [
    ("sklearn", "RandomForestRegressor"),
    ("xgboost", "frame"),
    ("lightgbm", "frame"),
    ("catboost", "frame"),
]


def linear():
    """Rows of bits, so that black boxes are enumerated, which is quick."""
    from sklearn.linear_model import LinearRegression

    X = (numbers() > 0).astype(np.uint8)
    return LinearRegression().fit(X, target(X)), X


@pytest.mark.parametrize(("library", "name"), TREES)
def test_tree_models(library, name):
    model, X, _ = CASES[library][name]()
    explainer = fs.Explainer(model, X[:50], n_jobs=1)
    assert explainer.kind == "trees" and explainer.n_jobs == 1
    assert np.array_equal(explainer.shap_values(X), fs.TreeExplainer(model, X[:50]).shap_values(X))
    assert fs.Explainer(explainer.representation).kind == "trees"


def test_model_files(tmp_path):
    import lightgbm

    X = numbers()
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(X, target(X))
    model.booster_.save_model(tmp_path / "m.txt")
    for path in (tmp_path / "m.txt", str(tmp_path / "m.txt")):
        assert np.array_equal(fs.Explainer(path, X).shap_values(X), fs.Explainer(model, X).shap_values(X))
    with pytest.raises(fs.InputError, match=r"saved explainer: open it by fs\.load"):
        fs.Explainer(tmp_path / "m.fshap", X)
    with pytest.raises(fs.InputError, match="suffix"):
        fs.Explainer("model.pkl", X)


def test_anything_that_predicts_is_a_black_box():
    from sklearn.linear_model import RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    class Cubed(RidgeClassifier):
        def decision_function(self, rows):
            return super().decision_function(rows) ** 3

    _, X = linear()
    model = KNeighborsRegressor().fit(X, target(X))
    by_model = fs.Explainer(model, X[:40], random_state=0)
    assert by_model.kind == "black box"
    by_function = fs.Explainer(model.predict, X[:40], random_state=0)
    values = by_model.shap_values(X[:9])  # exact or sampled, as the time of a query has it
    np.testing.assert_allclose(values, by_function.shap_values(X[:9]), atol=0.1 * np.abs(values).max())

    y = np.array(["low", "mid", "high"])[classes(X, 3)]
    pipeline = make_pipeline(StandardScaler(), KNeighborsClassifier()).fit(X, y)
    explainer = fs.Explainer(pipeline, X[:40])
    assert explainer.output_names == ("high", "low", "mid")
    assert explainer.feature_names == tuple(f"Feature {i}" for i in range(4))
    np.testing.assert_allclose(
        explainer.expected_value, pipeline.predict_proba(X[:40]).mean(axis=0), atol=0.02
    )
    assert explainer.with_background(X[:5]).output_names == explainer.output_names

    margins = fs.Explainer(Cubed().fit(X, classes(X, 2)), X[:40])
    assert margins.output_names is None and margins.shap_values(X[:3]).shape == (3, 4)


def test_labels_are_not_explained_as_numbers():
    class Labeller:
        classes_ = np.array([3, 7])

        def predict(self, X):
            return np.full(len(X), 7)

    with pytest.raises(fs.UnsupportedModelError, match="only names a class"):
        fs.Explainer(Labeller(), numbers())


@pytest.mark.parametrize("model", [3, {"trees": []}, object()])
def test_what_is_unsupported(model):
    with pytest.raises(fs.UnsupportedModelError, match=r"(?s)cannot be explained.*Supported:.*Spectrum"):
        fs.Explainer(model, numbers())


def test_calls_that_make_no_explainer():
    from sklearn.ensemble import RandomForestRegressor

    with pytest.raises(fs.UnsupportedModelError, match=r"the class .*RandomForestRegressor"):
        fs.Explainer(RandomForestRegressor, numbers())
    with pytest.raises(fs.InputError, match=r"the model comes first.*keywords given: .modle"):
        fs.Explainer(modle=linear()[0])
    with pytest.raises(fs.InputError, match="background is missing"):
        fs.Explainer(model=linear()[0])
    with pytest.raises(fs.InputError, match="the model comes first"):
        fs.Explainer(None, numbers())
    with pytest.raises(fs.InputError, match="depth is not an argument"):
        fs.Explainer(lambda rows: rows[:, 0], numbers(), depth=3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3))
def test_spectra(seed, n_bits, n_outputs):
    rng = np.random.default_rng(seed)
    frequencies = rng.random((5, n_bits)) < 0.5
    h = fs.Spectrum(frequencies, rng.normal(size=(5, n_outputs)))
    X, background = rng.integers(0, 2, (4, n_bits)), rng.integers(0, 2, (3, n_bits))
    groups = [f"g{rng.integers(3)}" for _ in range(n_bits)]
    explainer = fs.Explainer(h, background, groups=groups)
    assert explainer.kind == "spectrum"
    owner = np.array([explainer.player_names.index(group) for group in groups])
    want = oracles.shap_values(lambda x: h(x), X, background, owner)
    np.testing.assert_allclose(with_outputs(explainer.shap_values(X)), want, atol=1e-10)
    total = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, h(X).reshape(total.shape), atol=1e-10)


def test_spectra_in_frames_and_files(tmp_path):
    h = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
    X = pd.DataFrame([[1, 1, 0], [0, 1, 1]], columns=list("abc"))
    explainer = fs.Explainer(h, X, groups={"bc": ["b", "c"]})
    assert explainer.player_names == ("a", "bc")
    assert np.array_equal(explainer.shap_values(X[["b", "a", "c"]]), explainer.shap_values(X))
    with pytest.raises(fs.InputError, match="2 columns, but the spectrum has 3 bits"):
        fs.Explainer(h, X[["a", "b"]])
    with pytest.raises(fs.InputError, match="spectrum is a list"):
        fs.SpectrumExplainer([1], X)
    sparse = scipy.sparse.csr_array(X.to_numpy())
    assert np.array_equal(explainer.shap_values(sparse), explainer.shap_values(X))
    explainer.save(tmp_path / "h.fshap")
    for loaded in (fs.load(tmp_path / "h.fshap"), fs.load(tmp_path / "h.fshap")):
        assert loaded.kind == "spectrum" and loaded.feature_names == tuple("abc")
        assert np.array_equal(loaded.shap_values(X), explainer.shap_values(X))
        assert loaded(X).display_data is not None
    with pytest.raises(fs.FileFormatError, match="not a 'spectrum'"):
        fs.Spectrum.load(tmp_path / "h.fshap")


def every_explainer():
    X = numbers()
    model = CASES["sklearn"]["RandomForestRegressor"]()[0]
    bits = (X > 0).astype(np.uint8)
    yield fs.Explainer(model, X[:30]), X[:5]
    yield fs.Explainer(_row_sums, bits), bits[:5]
    yield fs.Explainer(fs.Spectrum([[1, 0, 0, 1]], [1.0]), bits), bits[:5]


def _row_sums(rows):
    return rows.sum(axis=1)


def test_copies_pickles_and_files(tmp_path):
    for explainer, X in every_explainer():
        path = tmp_path / f"{explainer.kind}.fshap"
        explainer.save(path)  # compiles
        if explainer.kind == "black box" and explainer.fitted is None:
            explainer = explainer.fit()
        want = explainer.shap_values(X)
        for other in (copy.copy(explainer), copy.deepcopy(explainer), pickle.loads(pickle.dumps(explainer))):
            assert type(other) is type(explainer) and np.array_equal(other.shap_values(X), want)
        loaded = fs.load(path)
        assert loaded.kind == explainer.kind and isinstance(loaded, fs.Explainer)
        assert np.array_equal(loaded.shap_values(X), want)


def test_maskers_of_shap():
    shap = pytest.importorskip("shap")
    rows = (numbers() > 0).astype(np.uint8)
    for background in (rows, pd.DataFrame(rows, columns=list("abcd"))):
        masker = shap.maskers.Independent(background, max_samples=40)
        kept = pd.DataFrame(masker.data, columns=list("abcd")) if background is not rows else masker.data
        assert len(kept) == 40
        model = CASES["sklearn"]["RandomForestRegressor"]()[0]
        tree, named = fs.Explainer(model, masker), fs.Explainer(model, kept)
        assert tree.feature_names == named.feature_names
        assert np.array_equal(tree.shap_values(rows), named.shap_values(rows))
        ask = fs.Explainer(lambda x: np.asarray(x).sum(axis=1), masker, random_state=0)
        same = fs.Explainer(lambda x: np.asarray(x).sum(axis=1), kept, random_state=0)
        assert ask.feature_names == same.feature_names
        assert np.array_equal(ask.shap_values(kept), same.shap_values(kept))
        again = ask.with_background(masker)
        assert np.array_equal(again.shap_values(kept), ask.shap_values(kept))
    h = fs.Spectrum([[1, 0, 0, 1]], [1.0])
    masker = shap.maskers.Independent(rows, max_samples=1000)
    assert np.array_equal(fs.Explainer(h, masker).shap_values(rows), fs.Explainer(h, rows).shap_values(rows))


# Sparse matrices: what is not stored is what each library itself takes it for.


def stored(X):
    """A sparse matrix of which some stored values are zero."""
    rng = np.random.default_rng(5)
    kept = rng.random(X.shape) < 0.6
    matrix = scipy.sparse.csr_matrix(np.where(kept, X + 1000, 0))
    matrix.data -= 1000
    matrix.data[rng.random(matrix.nnz) < 0.1] = 0.0
    return matrix


def sparse_models():
    import catboost
    import lightgbm
    import xgboost
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

    yield RandomForestRegressor(5, max_depth=5, random_state=0), "predict", 0.0
    yield GradientBoostingRegressor(n_estimators=5, random_state=0), "predict", 0.0
    yield lightgbm.LGBMRegressor(n_estimators=5, verbose=-1), "predict", 0.0
    yield lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, zero_as_missing=True), "predict", 0.0
    yield xgboost.XGBRegressor(n_estimators=5, max_depth=4), "predict", np.nan
    yield xgboost.XGBRegressor(n_estimators=5, max_depth=4, missing=0.5), "predict", np.nan
    yield catboost.CatBoostRegressor(n_estimators=5, verbose=0, allow_writing_files=False), "predict", 0.0


@pytest.mark.parametrize(("model", "method", "absent"), list(sparse_models()), ids=lambda x: type(x).__name__)
def test_sparse_rows(model, method, absent):
    X = stored(numbers())
    model.fit(X, target(X.toarray()))
    explainer = fs.Explainer(model, X[:40])
    for form in (X, X.tocsc(), scipy.sparse.coo_array(X)):
        values = explainer.shap_values(form)
        total = values.sum(axis=1) + explainer.expected_value
        assert_within(total, np.asarray(getattr(model, method)(X), dtype=float), 1e-5)
    dense = np.full(X.shape, absent)
    cells = X.tocoo()
    dense[cells.row, cells.col] = cells.data
    want, _ = brute_force(model, dense[:6], dense[:20])
    assert_within(with_outputs(fs.Explainer(model, X[:20]).shap_values(X[:6])), want, 2e-6)
    explanation = explainer(X[:7])
    assert np.array_equal(explanation.data, dense[:7], equal_nan=True)


def test_sparse_rows_of_black_boxes():
    X = scipy.sparse.csr_matrix(linear()[1])
    asked = []

    def predict(rows):
        asked.append(type(rows))
        return rows.sum(axis=1)

    explainer = fs.Explainer(predict, X[:50])
    assert np.array_equal(explainer.shap_values(X[:5]), explainer.shap_values(X[:5].toarray()))
    assert set(asked) == {type(X)}
