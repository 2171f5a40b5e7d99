"""`ProductExplainer`: linear models, kernel machines, small networks against the definition, by their own predict."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
import oracles
from product_models import FAMILIES, data
from shap_oracle import with_outputs

SINGLE = {"gblinear"}  # libraries that compute in single precision


def kind_of(model, rows, **options):
    """Return the kind of explainer that a model gets; a black box of few queries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        try:
            return fs.Explainer(model, rows, **options).kind
        except fs.QueryError:
            return "black box"


@pytest.fixture(autouse=True)
def quiet():
    """Fitting tiny models may not converge, which is nobody's business here."""
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning, RuntimeWarning):
            warnings.simplefilter("ignore", category)
        warnings.simplefilter("error", fs.FourierShapWarning)
        yield


def cases(family):
    if family == "statsmodels":
        pytest.importorskip("statsmodels", reason="statsmodels is not installed")
    return FAMILIES[family]()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_definition_by_the_models_own_predict(family, tmp_path):
    X, _ = data()
    rng = np.random.default_rng(1)
    rows, background = np.concatenate([X[30:32], 6 * X[32:33]]), X[:9]
    for k, (name, case) in enumerate(cases(family).items()):
        players = np.array([0, 1, 1, 0]) if k % 3 == 2 else np.arange(4)
        groups = [f"g{p}" for p in players] if k % 3 == 2 else None
        weights = rng.random(9) if k % 2 else None
        explainer = fs.Explainer(case.model, background, output=case.output, groups=groups, weights=weights)
        assert explainer.kind == "products" and explainer.checked, name
        games = [oracles.coalition_values(case.ask, row, background, players, weights) for row in rows]
        n = int(players.max()) + 1
        want = np.stack([oracles.shapley_values(game, n) for game in games])
        tolerance = (1e-5 if family in SINGLE else 1e-9) * max(1.0, np.abs(want).max())
        values = explainer.shap_values(rows)
        np.testing.assert_allclose(with_outputs(values), want, atol=tolerance, rtol=0, err_msg=name)
        matrices = explainer.shap_interaction_values(rows).reshape(len(rows), n, n, -1)
        wanted = np.stack([oracles.interaction_matrix(game, n) for game in games])
        np.testing.assert_allclose(matrices, wanted, atol=2 * tolerance, rtol=0, err_msg=name)
        said = np.asarray(case.ask(rows)).reshape(len(rows), -1)
        np.testing.assert_allclose(
            explainer.predict(rows).reshape(said.shape), said, atol=3 * tolerance, rtol=0
        )
        explainer.save(tmp_path / "model.fshap")
        loaded = fs.load(tmp_path / "model.fshap")
        assert np.array_equal(loaded.shap_values(rows), values), name
        assert loaded.output_names == explainer.output_names and loaded.kind == explainer.kind


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 7),
    st.sampled_from(["logistic", "probit"]),
    st.sampled_from(["shapley", "banzhaf"]),
    st.floats(0.01, 12.0),
)
def test_ridges_against_the_definition(seed, n_columns, n_background, shape, index, scale):
    """Any scores, small or saturated, near or far from the background; every column may be constant."""
    from fouriershap._base.links import find_link
    from fouriershap._shapley.indices import find_index
    from fouriershap._shapley.outputs.kinds import Raw
    from fouriershap._shapley.products.engine import ProductSettings
    from fouriershap._shapley.products.ridges import make_engine
    from fouriershap._waves.products import Products
    from fouriershap._waves.ridges import Ridges

    rng = np.random.default_rng(seed)
    player = np.unique(rng.integers(0, 4, n_columns), return_inverse=True)[1].astype(np.int32)
    n_ridges, n_outputs = rng.integers(1, 4), rng.integers(1, 3)
    ridges = Ridges(
        scale * rng.normal(size=(n_ridges, n_columns)),
        rng.normal(size=n_ridges),
        rng.normal(size=(n_ridges, n_outputs)),
        find_link(shape),
    )
    linear = rng.normal(size=(n_columns, n_outputs))
    model = Products(player, linear, rng.normal(size=n_outputs), ridges=ridges)
    background = rng.normal(size=(n_background, n_columns)).round(1)
    background[:, rng.integers(n_columns)] = 0.5
    rows = np.concatenate([rng.normal(size=(2, n_columns)), 5 * rng.normal(size=(1, n_columns))])
    settings = ProductSettings(1e-4, False, 1 << 26)
    engine = make_engine(model, background, None, find_index(index), settings, Raw())
    values = engine.shap_values(rows, 1)
    n = model.n_players
    by_index = oracles.shapley_values if index == "shapley" else oracles.banzhaf_values
    for k, row in enumerate(rows):
        game = oracles.coalition_values(model.predict, row, background, player)
        np.testing.assert_allclose(values[k], by_index(game, n), atol=1e-8, rtol=0)
        # Whatever rows it comes with.
        alone = engine.shap_values(rows[k : k + 1], 1)[0]
        np.testing.assert_allclose(alone, values[k], rtol=0, atol=1e-12 * max(1.0, np.abs(values).max()))


def many_columns(n_columns, n_rows=300):
    X, _ = data(n_rows, n_columns, seed=3)
    return X, X[:, 0] + X[:, 1] * X[:, 2] - 0.5 * X[:, 3:].sum(axis=1)


def test_more_players_than_tables_hold():
    from sklearn.linear_model import LogisticRegression, PoissonRegressor
    from sklearn.svm import SVR

    X, y = many_columns(13)
    models = [
        (
            model := LogisticRegression().fit(X, y > 0),
            "probability",
            lambda rows: model.predict_proba(rows)[:, 1],
        ),
        (PoissonRegressor().fit(X, np.exp(y / 5)), "response", None),
        (SVR().fit(X[:60], y[:60]), "raw", None),
    ]
    for estimator, output, ask in models:
        explainer = fs.Explainer(estimator, X[:6], output=output)
        assert explainer.plan().strategy == "pairs" and explainer.plan().error == 0
        want = oracles.shap_values(ask or estimator.predict, X[50:52], X[:6])[:, :, 0]
        np.testing.assert_allclose(explainer.shap_values(X[50:52]), want, atol=1e-9)


def test_a_compressed_background_says_what_it_misses(monkeypatch):
    from sklearn.linear_model import LogisticRegression

    X, y = many_columns(14)
    model = LogisticRegression().fit(X, y > 0)
    exact = fs.ProductExplainer(model, X[:80], output="probability")
    assert exact.plan().strategy == "pairs"
    monkeypatch.setattr("fouriershap._explainers.products._BUDGET", 1 << 10)
    quick = fs.ProductExplainer(model, X[:80], output="probability")
    assert quick.plan().strategy == "mixture" and 0 < quick.plan().error < 1e-3
    want, got = exact.shap_values(X[200:212]), quick.shap_values(X[200:212])
    assert ((got - want) ** 2).sum() < 10 * quick.plan().error * (want**2).sum()
    np.testing.assert_allclose(got.sum(axis=1), want.sum(axis=1), atol=1e-6)
    with pytest.warns(fs.FidelityWarning, match=r"% of the interactions of 91 pairs") as caught:
        approximate = quick.shap_interaction_values(X[:2])
    share = float(re.search(r"miss ([\d.]+)%", str(caught[0].message))[1]) / 100
    pairs = ~np.eye(14, dtype=bool)
    true, found = (np.asarray(each)[:, pairs] for each in (exact.shap_interaction_values(X[:2]), approximate))
    np.testing.assert_allclose(np.sqrt(((found - true) ** 2).sum() / (true**2).sum()), share, rtol=0.05)
    forced = fs.ProductExplainer(model, X[:80], output="probability", compress_background=False)
    np.testing.assert_allclose(forced.shap_values(X[200:212]), want, atol=1e-12)
    monkeypatch.setattr("fouriershap._explainers.parts._LARGE_ERROR", 1e-12)
    with pytest.warns(fs.FidelityWarning, match="compress_background=False"):
        quick.with_background(X[:60])


def test_linear_models_of_any_width_are_instant():
    from sklearn.linear_model import Ridge

    X = np.random.default_rng(0).normal(size=(300, 2000))
    model = Ridge().fit(X, X[:, 0])
    explainer = fs.Explainer(model, X)
    assert explainer.plan().strategy == "additive"
    np.testing.assert_allclose(
        explainer.shap_values(X[:5]), model.coef_ * (X[:5] - X.mean(axis=0)), atol=1e-12
    )
    top = explainer.shap_interaction_values(X[:2], pairs=[(0, 1)])
    assert not top.any()


def frame(n_rows=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.normal(40, 12, n_rows).round(), "town": rng.choice(["Bern", "Lugano", "Chur"], n_rows)}
    )
    X["income"] = rng.lognormal(10, 0.5, n_rows)
    y = (X["age"] / 12 + (X["town"] == "Bern") + np.log(X["income"]) + rng.normal(size=n_rows)) > 14
    return X, y


def test_pipelines_in_their_input_columns(tmp_path):
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = frame()
    columns = make_column_transformer((StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["town"]))
    model = make_pipeline(columns, LogisticRegression(C=10)).fit(X, y)
    background, rows = X[:8], X[50:53]
    explainer = fs.Explainer(model, background, output="probability", groups="input")
    assert explainer.kind == "products" and explainer.checked and explainer.has_pipeline
    assert explainer.player_names == ("age", "town", "income")

    def ask(cells):
        made = pd.DataFrame(cells, columns=X.columns).astype(X.dtypes)
        return model.predict_proba(made)[:, 1]

    want = oracles.shap_values(ask, rows.to_numpy(dtype=object), background.to_numpy(dtype=object))[:, :, 0]
    np.testing.assert_allclose(explainer.shap_values(rows), want, atol=1e-9)
    table = explainer.frame(rows, top_k=2)
    assert set(table["feature"]) <= {"age", "town", "income"} and len(table) == 6
    inner = fs.Explainer(model, background, groups="encoded")  # in what enters the final model
    assert len(inner.player_names) == 5 and "onehotencoder__town_Bern" in inner.player_names
    explainer.save(tmp_path / "pipeline.fshap")
    loaded = fs.load(tmp_path / "pipeline.fshap")
    assert loaded.has_pipeline
    np.testing.assert_array_equal(loaded.shap_values(rows), explainer.shap_values(rows))
    pd.testing.assert_frame_equal(loaded.frame(rows, top_k=2), table)


def test_missing_values_add_nothing_to_gblinear_and_are_refused_elsewhere():
    import xgboost
    from sklearn.linear_model import Ridge

    X, y = data()
    holes = X.copy()
    holes[::3, 1] = np.nan
    model = xgboost.XGBRegressor(booster="gblinear", n_estimators=4).fit(holes, y)
    explainer = fs.Explainer(model, holes[:10])
    want = oracles.shap_values(model.predict, holes[30:34], holes[:10])[:, :, 0]
    np.testing.assert_allclose(explainer.shap_values(holes[30:34]), want, atol=1e-5)
    with pytest.raises(fs.InputError, match="background has a missing value in row 0, column 1"):
        fs.Explainer(Ridge().fit(X, y), holes)
    with pytest.raises(fs.InputError, match="X has a missing value in row 2, column 1"):
        fs.Explainer(Ridge().fit(X, y), X).shap_values(holes[28:])


def test_one_column_one_row_and_a_constant_column():
    from sklearn.linear_model import LinearRegression, LogisticRegression

    X, y = data()
    one = LogisticRegression().fit(X[:, :1], y > 0)
    explainer = fs.Explainer(one, X[:1, :1], output="probability")
    change = one.predict_proba(X[:3, :1])[:, 1] - one.predict_proba(X[:1, :1])[:, 1]
    np.testing.assert_allclose(explainer.shap_values(X[:3, :1])[:, 0], change, atol=1e-9)
    X[:, 2] = 7.0
    model = LinearRegression().fit(X, y)
    assert not fs.Explainer(model, X).shap_values(X)[:, 2].any()
    assert fs.Explainer(model, X).shap_values(X[:0]).shape == (0, 4)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X.drop(columns="c1"), "has 3 columns, but the model has 4 features. Missing: 'c1'"),
        (lambda X: X.rename(columns={"c2": "d"}), "a column 'd' where the model has the feature 'c2'"),
        (lambda X: X.assign(c3="a"), "a column 'c3' of type String"),
        (lambda X: X.assign(c3=pd.Categorical(["a"] * len(X))), "categorical column 'c3'"),
        (lambda X: X.assign(c0=np.inf), "has inf in row 0, column 'c0'"),
        (lambda X: X.to_numpy()[:, :3], "has 3 columns, but the model has 4 features"),
        (lambda X: X.to_numpy()[None], "has shape"),
        (lambda X: X.to_numpy().astype(str), "is not a number"),
    ],
)
def test_wrong_rows(spoil, message):
    from sklearn.linear_model import Ridge

    X, y = data()
    X = pd.DataFrame(X, columns=[f"c{i}" for i in range(4)])
    explainer = fs.Explainer(Ridge().fit(X, y), X[:10])
    with pytest.raises(fs.InputError, match=f"X .*{message}"):
        explainer.shap_values(spoil(X))
    with pytest.raises(fs.InputError, match="background "):
        fs.Explainer(Ridge().fit(X, y), spoil(X))


def test_frames_of_any_library_and_sparse_rows():
    import polars
    import scipy.sparse
    from sklearn.linear_model import Ridge

    X, y = data()
    named = pd.DataFrame(X, columns=list("abcd"))
    explainer = fs.Explainer(Ridge().fit(named, y), named)
    want = explainer.shap_values(X[:5])
    assert explainer.feature_names == tuple("abcd")
    nullable = named[:5].astype("Float64")
    for rows in (
        named[:5],
        nullable,
        polars.DataFrame(named[:5].to_dict("list")),
        scipy.sparse.csr_matrix(X[:5]),
    ):
        np.testing.assert_array_equal(explainer.shap_values(rows), want)
    (batch,) = explainer.explain_batches([named[:5].assign(id=range(5))], ids=["id"])
    assert list(batch.columns) == ["id", *"abcd", "base_value"]
    np.testing.assert_allclose(batch[list("abcd")].to_numpy(), want)


def test_what_every_explainer_can_do(tmp_path):
    import pickle

    from sklearn.linear_model import LogisticRegression

    X, y = data()
    model = LogisticRegression().fit(X, y > 0)
    explainer = fs.Explainer(
        model, X[:20], output="probability", feature_names=list("abcd"), n_jobs=1
    ).compile()
    values = explainer.shap_values(X)
    explanation = explainer(X)
    assert explanation.feature_names == list("abcd") and np.array_equal(explanation.values, values)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(explainer)).shap_values(X), values)
    other = explainer.with_background(X[20:40], weights=np.arange(20) + 1.0)
    fresh = fs.Explainer(model, X[20:40], output="probability", weights=np.arange(20) + 1.0)
    np.testing.assert_array_equal(other.shap_values(X), fresh.shap_values(X))
    assert explainer.info.expansion_error < 1e-9
    assert explainer.fidelity is None and "LogisticRegression" in repr(explainer)
    with pytest.warns(fs.ReportWarning, match="no what-if part"):
        page = explainer.report(X[:10], tmp_path / "page.html")
    assert page.read_text(encoding="utf-8").count("probability")
    banzhaf = fs.Explainer(model, X[:20], output="probability", index="banzhaf")
    game = [
        oracles.coalition_values(lambda r: model.predict_proba(r)[:, 1], x, X[:20], np.arange(4))
        for x in X[:3]
    ]
    want = np.stack([oracles.banzhaf_values(v, 4)[:, 0] for v in game])
    np.testing.assert_allclose(banzhaf.shap_values(X[:3]), want, atol=1e-9)


def test_under_jax():
    pytest.importorskip("jax")
    from sklearn.linear_model import LinearRegression, LogisticRegression

    X, y = data()
    for model, output in (
        (LinearRegression().fit(X, y), "raw"),
        (LogisticRegression().fit(X, y > 0), "probability"),
    ):
        explainer = fs.Explainer(model, X[:20], output=output)
        moved = fs.Explainer(model, X[:20], output=output, device="jax")
        for other in (moved, explainer.to("jax")):
            np.testing.assert_allclose(other.shap_values(X), explainer.shap_values(X), atol=1e-9)


def test_several_classes_are_sampled_where_the_definition_is_too_long(tmp_path, monkeypatch):
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr("fouriershap._shapley.outputs.transformed._MOST_HYBRIDS", 0)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 7)).astype(float)
    model = LogisticRegression().fit(X, rng.integers(0, 3, 60))
    explainer = fs.Explainer(model, X[:20], output="probability")
    assert explainer.plan().strategy == "sampled" and explainer.fidelity is None
    want = oracles.shap_values(model.predict_proba, X[30:31], X[:20])
    np.testing.assert_allclose(explainer.shap_values(X[30:31]), want, atol=0.04 * np.abs(want).max())
    explainer.save(tmp_path / "sampled.fshap")
    np.testing.assert_array_equal(
        fs.load(tmp_path / "sampled.fshap").shap_values(X[:4]), explainer.shap_values(X[:4])
    )


def test_what_is_no_sum_of_products_goes_to_the_black_box():
    from sklearn.ensemble import BaggingRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import (
        RBF,
        DotProduct,
        GenericKernelMixin,
        Matern,
        StationaryKernelMixin,
    )
    from sklearn.gaussian_process.kernels import Kernel as AnyKernel
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.svm import SVC, SVR

    X, y = data(30)

    class Words(GenericKernelMixin, StationaryKernelMixin, AnyKernel):
        def __init__(self):
            pass

        def __call__(self, first, second=None, eval_gradient=False):
            same = [[float(a == b) for b in (first if second is None else second)] for a in first]
            return np.array(same)

        def diag(self, rows):
            return np.ones(len(rows))

    class Clipped(LinearRegression):
        def predict(self, rows):
            return np.clip(super().predict(rows), 0, 1)

    refused = [
        (GaussianProcessRegressor(Matern(), optimizer=None), "Matern is not a product"),
        (GaussianProcessRegressor(RBF() * DotProduct(), optimizer=None), "bells by scalar products"),
        (SVR(kernel=lambda a, b: a @ b.T), "kernel function is not a product"),
        (MLPRegressor(hidden_layer_sizes=(3,)), "relu"),
        (MLPRegressor(hidden_layer_sizes=(3, 3), activation="tanh"), "2 hidden layers"),
        (MLPRegressor(hidden_layer_sizes=(200,), activation="tanh"), "200 hidden units"),
        (SVC(), "decision_function_shape='ovo'"),
        (BaggingRegressor(Clipped(), n_estimators=2), ""),
        (Clipped(), "own predict"),
    ]
    for estimator, message in refused:
        target = np.digitize(y, np.quantile(y, [0.3, 0.6])) if isinstance(estimator, SVC) else y
        model = estimator.fit(X, target)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", fs.ModelWarning)
            assert kind_of(model, X) == "black box"
        said = [str(warning.message) for warning in caught]
        if message:  # else of another kind, as most models are
            assert len(said) == 1 and message in said[0] and "is asked" in said[0]
        with pytest.raises(fs.UnsupportedModelError, match=message):
            fs.ProductExplainer(model, X)
    wide = SVR(kernel="poly", degree=3).fit(np.random.default_rng(0).normal(size=(20, 40)), np.arange(20.0))
    with pytest.raises(fs.UnsupportedModelError, match=r"monomials.*BlackBoxExplainer"):
        fs.ProductExplainer(wide, np.zeros((1, 40)))
    words = GaussianProcessRegressor(Words(), optimizer=None).fit(["a", "bb", "cc"], [1.0, 2.0, 3.0])
    assert kind_of(words, X) == "black box"  # of rows that are no numbers
    linear = LinearRegression().fit(X, y)
    assert kind_of(linear, X, progress=False) == "products"
    assert kind_of(linear, X) == "products"
    assert kind_of(linear, X, max_queries=300) == "black box"  # whoever speaks of queries wants them
    assert kind_of(linear.predict, X) == "black box"


def test_results_of_statsmodels_that_are_no_linear_models():
    sm = pytest.importorskip("statsmodels.api")

    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    by_formula = sm.OLS.from_formula("y ~ a + b", frame).fit()
    series = sm.tsa.ARIMA(y, order=(1, 0, 0)).fit()
    for results, message in ((by_formula, "formula"), (series, "not a linear model that is known here")):
        with pytest.warns(fs.ModelWarning, match=message):
            assert kind_of(results, frame) == "black box"
        with pytest.raises(fs.UnsupportedModelError, match=f"{message}.*results.predict"):
            fs.ProductExplainer(results, frame)
    with_constant = sm.OLS(y, sm.add_constant(frame[["a", "b"]])).fit()
    with pytest.raises(fs.InputError, match=r"has 2 columns, but the model has 3 features. Missing: 'const'"):
        fs.Explainer(with_constant, frame[["a", "b"]])
    explainer = fs.Explainer(with_constant, sm.add_constant(frame[["a", "b"]]))
    assert explainer.player_names == ("const", "a", "b")
    np.testing.assert_allclose(explainer.shap_values(with_constant.model.exog)[:, 0], 0.0, atol=1e-12)


def test_wrong_arguments():
    from sklearn.linear_model import Perceptron, PoissonRegressor, Ridge, SGDClassifier

    X, y = data()
    with pytest.raises(fs.InputError, match="Ridge that is not fitted"):
        fs.Explainer(Ridge(), X)
    model = Ridge().fit(X, y)
    for options, message in [
        ({"output": "log_loss"}, "output is 'log_loss'; choose one of"),
        ({"index": "owen"}, "index is 'owen'"),
        ({"groups": "input"}, "needs a Pipeline"),
        ({"compress_background": "yes"}, "compress_background is 'yes'"),
        ({"feature_names": ["a"]}, "feature_names has 1 names for 4 features"),
        ({"weights": [1.0]}, "weights has shape"),
        ({"progress": 3}, "progress is 3"),
    ]:
        with pytest.raises(fs.InputError, match=message):
            fs.Explainer(model, X, **options)
    with pytest.raises(fs.InputError, match="background is missing"):
        fs.Explainer(model, None)
    for other in (model, Perceptron().fit(X, y > 0), PoissonRegressor().fit(X, np.exp(y))):
        with pytest.raises(fs.UnsupportedModelError, match="has no known output='probability'"):
            fs.Explainer(other, X, output="probability")
    huber = SGDClassifier(loss="modified_huber").fit(X, y > 0)
    with pytest.raises(fs.UnsupportedModelError, match="such as model"):
        fs.Explainer(huber, X, output="probability")


def test_scores_beyond_all_sines():
    from sklearn.linear_model import LogisticRegression, PoissonRegressor

    X, y = data()
    model = LogisticRegression().fit(X, y > 0)
    explainer = fs.Explainer(model, X[:10], output="probability")
    far = X[:3] * np.array([[1.0], [1e9], [1.0]])
    with pytest.raises(fs.InputError, match=r"row 1 lies far outside the background.*output='raw'"):
        explainer.shap_values(far)
    assert np.isfinite(fs.Explainer(model, X[:10]).shap_values(far)).all()
    counts = PoissonRegressor().fit(X, np.exp(y / 3))
    with pytest.raises(fs.InputError, match="output='response' of row 1 overflows"):
        fs.Explainer(counts, X[:10], output="response").shap_values(
            far * np.sign(counts.coef_) * np.sign(X[:3])
        )
    with pytest.raises(fs.InputError, match=r"raw output of .* whose exponential overflows"):
        fs.Explainer(counts, np.abs(far[1:2]) * np.sign(counts.coef_), output="response")


def test_a_model_that_says_otherwise_is_not_explained():
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVR

    X, y = data()
    model = LogisticRegression().fit(X, y > 0)
    model.decision_function = lambda rows: (rows @ model.coef_.T + model.intercept_)[:, 0] + 1e-6
    with pytest.raises(
        fs.UnsupportedModelError, match=r"disagrees with scikit-learn.* on row \d+ of the background"
    ):
        fs.Explainer(model, X)
    assert not fs.Explainer(model, X, check=False).checked
    machine = SVR().fit(X, y)
    machine.predict = lambda rows: np.zeros((len(rows), 2))
    with pytest.raises(fs.UnsupportedModelError, match="gives 2 outputs, the copy 1"):
        fs.Explainer(machine, X)


@pytest.mark.parametrize("kind", ["RidgeClassifier", "LinearRegression"])
def test_weights_of_single_precision(kind):
    """scikit-learn fits and predicts rows of single precision in single precision."""
    from sklearn import linear_model

    X = np.random.default_rng(0).random((1_500, 20)).astype(np.float32)
    model = getattr(linear_model, kind)().fit(X, (3 * X[:, 0]).astype(int))
    explainer = fs.Explainer(model, X)
    raw = model.decision_function(X[:5]) if kind == "RidgeClassifier" else model.predict(X[:5])
    values = explainer.shap_values(X[:5])
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, raw, atol=1e-4)
