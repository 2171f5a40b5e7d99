"""The arguments ``groups``, ``coalitions`` and ``causal_order`` of explainers, their errors, and what composes."""

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
import oracles
from fouriershap._base import files
from fouriershap._blackbox.sampler import Game, Sampler
from fouriershap._shapley.indices import structured_index
from structured_oracles import by_orders

NAMES = ["age", "sex", "income", "debt", "city"]
CHAIN = [["age", "sex"], ["income", "city"], ["debt"]]
GROUPS = {"person": ["age", "sex"], "money": ["income", "debt"]}
NESTED = {"all": {"person": ["age", "sex"], "money": ["debt", "income"]}}
STRUCTURES = {
    "chain": ({"causal_order": CHAIN}, "asymmetric", [[0, 1], [2, 4], [3]]),
    "owen": ({"groups": GROUPS, "coalitions": "owen"}, "owen", [[0, 1], [2, 3], 4]),
    "list": ({"groups": ["a", "b", "a", None, "b"], "coalitions": "owen"}, "owen", [[0, 2], [1, 4], 3]),
    "winter": ({"groups": NESTED, "coalitions": "owen"}, "owen", [[[0, 1], [3, 2]], 4]),
}


def frame(n_rows=80):
    return pd.DataFrame(np.random.default_rng(0).normal(size=(n_rows, 5)), columns=NAMES)


@pytest.fixture(scope="module")
def boosted():
    from sklearn.ensemble import GradientBoostingClassifier

    X = frame()
    y = X.age * X.sex - X.income * X.debt + X.city * X.age > 0
    return GradientBoostingClassifier(n_estimators=12, max_depth=4, random_state=0).fit(X, y), X


def wanted(function, rows, background, kind, tree):
    games = [
        oracles.coalition_values(function, row, background.to_numpy(), np.arange(5), None)
        for row in rows.to_numpy()
    ]
    return np.stack([by_orders(game, kind, tree) for game in games])


def named(function):
    return lambda rows: function(pd.DataFrame(rows, columns=NAMES))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_trees_and_their_files(boosted, structure, tmp_path):
    model, X = boosted
    arguments, kind, tree = STRUCTURES[structure]
    explainer = fs.Explainer(model, X[:9], precision="double", **arguments)
    values = explainer.shap_values(X[40:43], check_additivity=True)
    want = wanted(named(model.decision_function), X[40:43], X[:9], kind, tree)[:, :, 0]
    np.testing.assert_allclose(values, want, atol=1e-9)
    assert explainer.player_names == tuple(NAMES)
    assert ("asymmetric" if kind == "asymmetric" else "Owen") in repr(explainer)
    explainer.compile().save(tmp_path / "model.fshap")
    loaded = fs.load(tmp_path / "model.fshap")
    np.testing.assert_allclose(loaded.shap_values(X[40:43]), values, atol=1e-12)
    assert repr(loaded).split(",")[1:2] == repr(explainer).split(",")[1:2]
    assert loaded.engine.index is explainer.engine.index
    other = explainer.with_background(X[9:20]).shap_values(X[40:43])
    want = wanted(named(model.decision_function), X[40:43], X[9:20], kind, tree)[:, :, 0]
    np.testing.assert_allclose(other, want, atol=1e-9)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_outputs(boosted, structure):
    """Probabilities by the definition are those of the orders; rescaled ones add up."""
    model, X = boosted
    arguments, kind, tree = STRUCTURES[structure]

    def probability(rows):
        return named(model.predict_proba)(rows)[:, 1:]

    exact = fs.Explainer(model, X[:9], output="probability", exact=True, **arguments)
    want = wanted(probability, X[40:42], X[:9], kind, tree)[:, :, 0]
    np.testing.assert_allclose(exact.shap_values(X[40:42]), want, atol=1e-9)
    rescaled = fs.Explainer(model, X[:9], output="probability", precision="double", **arguments)
    values = rescaled.shap_values(X[40:42], check_additivity=True)
    one = fs.Explainer(model, X[3:4], precision="double", **arguments).shap_values(X[40:42])
    alone = fs.Explainer(model, X[3:4], output="probability", precision="double", **arguments).shap_values(
        X[40:42]
    )
    ratio = alone.sum(axis=1) / one.sum(axis=1)  # against one row, the slope is the same for all features
    np.testing.assert_allclose(alone, one * ratio[:, None], atol=1e-9)
    assert values.shape == (2, 5)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_products_and_spectra(structure, tmp_path):
    from sklearn.linear_model import LogisticRegression

    arguments, kind, tree = STRUCTURES[structure]
    X = frame()
    model = LogisticRegression().fit(X, X.age * X.sex + X.debt > 0)
    explainer = fs.Explainer(model, X[:30], **arguments)
    plain = fs.Explainer(model, X[:30]).shap_values(X)
    np.testing.assert_allclose(explainer.shap_values(X), plain, atol=1e-12)  # nothing interacts
    probability = fs.Explainer(model, X[:9], output="probability", **arguments)
    want = wanted(lambda rows: named(model.predict_proba)(rows)[:, 1:], X[40:42], X[:9], kind, tree)[:, :, 0]
    np.testing.assert_allclose(probability.shap_values(X[40:42]), want, atol=1e-8)
    probability.save(tmp_path / "model.fshap")
    np.testing.assert_allclose(fs.load(tmp_path / "model.fshap").shap_values(X[40:42]), want, atol=1e-8)
    spectrum = fs.Spectrum([[1, 1, 0, 0, 1], [0, 1, 1, 1, 0], [1, 0, 1, 0, 0]], [1.0, 0.5, -2.0])
    bits = (X > 0).astype(int)
    by_bits = fs.Explainer(spectrum, bits[:9], **arguments)
    want = wanted(spectrum, bits[40:43], bits[:9], kind, tree)[:, :, 0]
    np.testing.assert_allclose(by_bits.shap_values(bits[40:43]), want, atol=1e-12)
    by_bits.save(tmp_path / "bits.fshap")
    np.testing.assert_allclose(fs.load(tmp_path / "bits.fshap").shap_values(bits[40:43]), want, atol=1e-12)


def wavy(rows):
    rows = np.asarray(rows)
    return np.sin(rows[:, 0] * rows[:, 1]) + rows[:, 2] * rows[:, 3] * rows[:, 4] + rows[:, 0] * rows[:, 3]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_black_boxes(structure):
    """All coalitions are exact."""
    arguments, kind, tree = STRUCTURES[structure]
    X = frame()
    explainer = fs.Explainer(wavy, X[:9], **arguments)
    values, errors = explainer.shap_values(X[40:43], errors=True)
    want = wanted(wavy, X[40:43], X[:9], kind, tree)[:, :, 0]
    assert not errors.any()
    np.testing.assert_allclose(values, want, atol=1e-9)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_sampled_orders_are_within_their_errors(structure):
    _, kind, tree = STRUCTURES[structure]
    X = frame(49)
    want = wanted(wavy, X[9:], X[:9], kind, tree)
    rows, others = X[9:].to_numpy(), X[:9].to_numpy()

    def ask(owner, z, masks):
        return wavy(np.where(masks, rows[owner], others[z]))[:, None]

    answers = wavy(rows)[:, None], wavy(others)[:, None]
    game = Game(ask, structured_index(kind, tree), *answers, np.full(9, 1 / 9), 5)
    sampler = Sampler(game, 0.03, 0)
    sampler.start()
    while len(sampler.unfinished):
        sampler.advance()
    found = sampler.estimates
    np.testing.assert_allclose(found.values.sum(axis=1), want.sum(axis=1), atol=1e-9)
    error = np.abs(found.values - want)
    assert (error <= 1.96 * found.errors + 1e-12).mean() >= 0.9
    assert error.max() <= 0.15 * np.abs(want).max()


def test_sampled_probabilities():
    """Beyond what the definition can take: the orders of twenty features, against many of them drawn here."""
    from sklearn.ensemble import GradientBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20))
    model = GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=0).fit(
        X, X[:, 0] * X[:, 1] > 0
    )
    groups = {"a": list(range(7)), "b": {"c": [7, 8, 9], "d": [10, 11]}}
    explainer = fs.Explainer(model, X[:6], output="probability", exact=True, groups=groups, coalitions="owen")
    values, errors = explainer.shap_values(X[30:32], errors=True)
    place = explainer.engine.index.places(3000, 20, rng).reshape(-1, 20)
    inside = np.arange(21)[:, None] > place[:, None]
    for row, value, error in zip(X[30:32], values, errors, strict=True):
        hybrids = np.where(inside, row, X[rng.integers(6, size=len(place))][:, None])
        steps = np.diff(model.predict_proba(hybrids.reshape(-1, 20))[:, 1].reshape(len(place), 21), axis=1)
        added = np.take_along_axis(steps, place, axis=1)
        spread = np.hypot(error, added.std(axis=0) / np.sqrt(len(place) / 2))
        assert (np.abs(added.mean(axis=0) - value) <= 4 * spread + 1e-9).all()


def test_groups_are_shared_among_their_members(boosted):
    """Owen values of a group add up to the value of the group as one player."""
    model, X = boosted
    shared = fs.Explainer(model, X, groups=GROUPS, coalitions="owen", precision="double")
    whole = fs.Explainer(model, X, groups=GROUPS, precision="double")
    values = shared.shap_values(X[:20])
    sums = np.stack([values[:, :2].sum(axis=1), values[:, 2:4].sum(axis=1), values[:, 4]], axis=1)
    np.testing.assert_allclose(sums, whole.shap_values(X[:20]), atol=1e-12)


def test_input_columns_of_a_pipeline():
    """One-hot columns share the value of their input column."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"town": rng.choice(["a", "b", "c"], 90), "age": rng.normal(size=90), "sex": rng.normal(size=90)}
    )
    steps = ColumnTransformer(
        [("town", OneHotEncoder(sparse_output=False), ["town"])], remainder="passthrough"
    )
    model = make_pipeline(steps, RandomForestRegressor(6, max_depth=5, random_state=0))
    model.fit(X, (X.town == "a") * X.age + X.sex * (X.town == "b"))
    shared = fs.Explainer(model, X, groups="input", coalitions="owen", precision="double").shap_values(X[:9])
    whole = fs.Explainer(model, X, groups="input", precision="double").shap_values(X[:9])
    np.testing.assert_allclose(shared[:, :3].sum(axis=1), whole[:, 0], atol=1e-12)
    np.testing.assert_allclose(shared[:, 3:], whole[:, 1:], atol=1e-12)
    chain = [["town"], ["age", "sex"]]
    ordered = fs.Explainer(model, X, groups="input", causal_order=chain)
    assert ordered.player_names == ("town", "age", "sex")
    ordered.shap_values(X[:5], check_additivity=True)


ERRORS = [
    ({"causal_order": [["age", "sex"], ["income"]]}, "causal_order lacks 'debt', 'city'"),
    ({"causal_order": [["age", "sex"], ["age"]]}, "causal_order has 'age', which came before"),
    ({"causal_order": [["age", "wealth"]]}, "causal_order names 'wealth', which does not exist"),
    ({"causal_order": [[], ["age"]]}, "causal_order has an empty group"),
    ({"causal_order": "age"}, "causal_order is 'age'; give a list of lists"),
    ({"causal_order": CHAIN, "index": "banzhaf"}, "causal_order averages over orders"),
    ({"causal_order": CHAIN, "coalitions": "owen", "groups": GROUPS}, "exclude each other"),
    ({"coalitions": "owen"}, "give groups="),
    ({"coalitions": "own", "groups": GROUPS}, "coalitions is 'own'"),
    ({"coalitions": "owen", "groups": {"a": "age"}}, r"groups\['a'\] is 'age'; give a list of columns"),
    ({"coalitions": "owen", "groups": {"a": ["age"], "b": {"c": ["age"]}}}, "'age', which came before"),
    (
        {"causal_order": CHAIN, "strategy": "stream"},
        "asymmetric values need a background, and strategy='auto'",
    ),
    ({"causal_order": CHAIN, "feature_perturbation": "tree_path_dependent"}, "path-dependent"),
    ({"index": "owen[[0,1]]"}, "index is"),
]


@pytest.mark.parametrize("arguments, message", ERRORS)
def test_errors(boosted, arguments, message):
    model, X = boosted
    with pytest.raises(fs.InputError, match=message):
        fs.Explainer(model, X, **arguments)


@pytest.mark.parametrize("structure", ["chain", "owen"])
def test_interactions_are_refused(boosted, structure, tmp_path):
    model, X = boosted
    explainer = fs.Explainer(model, X, **STRUCTURES[structure][0])
    for ask in (
        lambda: explainer.shap_interaction_values(X[:2]),
        lambda: explainer.shap_interaction_values(X[:2], pairs=[("age", "sex")]),
        lambda: explainer.interactions(X[:2]),
        lambda: explainer.interactions(X[:2], order=3, index="STII"),
    ):
        with pytest.raises(fs.InputError, match="interactions are not defined for"):
            ask()


@pytest.mark.parametrize("structure", ["chain", "owen"])
def test_analyses_and_reports(boosted, structure, tmp_path):
    model, X = boosted
    explainer = fs.Explainer(model, X, **STRUCTURES[structure][0])
    explainer.report(X[:40], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert ("asymmetric" if structure == "chain" else "Owen values") in page
    assert len(explainer.frame(X[:2])) == 10
    assert len(explainer.importance(X).frame()) == 5
    explainer.reasons(X[:3])


@pytest.mark.parametrize("structure", STRUCTURES)
def test_conditional_values(structure):
    """The same weights of coalitions where the unknown columns follow the known ones."""
    from sklearn.linear_model import LinearRegression

    arguments, kind, tree = STRUCTURES[structure]
    X = frame()
    X["income"] += X["age"]
    model = LinearRegression().fit(X, X.age - X.sex + 2 * X.income)
    explainer = fs.Explainer(model, X, feature_perturbation="conditional", dependence="gaussian", **arguments)
    values = explainer.shap_values(X[:3])
    rows = X[:3].to_numpy()
    mean, cov = X.to_numpy().mean(axis=0), np.cov(X.to_numpy().T, bias=True)
    games = []
    for row in rows:
        v = []
        for S in range(32):
            known = np.array([S >> j & 1 == 1 for j in range(5)])
            z = row.copy()
            part = np.linalg.lstsq(cov[np.ix_(known, known)], (row - mean)[known], rcond=None)[0]
            z[~known] = mean[~known] + cov[np.ix_(~known, known)] @ part
            v.append(model.predict(pd.DataFrame([z], columns=NAMES)))
        games.append(np.array(v))
    want = np.stack([by_orders(game, kind, tree) for game in games])[:, :, 0]
    np.testing.assert_allclose(values.sum(axis=1), want.sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(values, want, atol=2e-3 * np.abs(want).max())


@pytest.mark.parametrize("structure", STRUCTURES)
def test_pages_look_up_the_same_values(boosted, structure):
    model, X = boosted
    explainer = fs.Explainer(model, X, precision="double", **STRUCTURES[structure][0])
    [lookup] = explainer.engine.lookups(1 << 30)
    rows = explainer.inputs.encode(X[:9]).codes
    np.testing.assert_allclose(lookup.shap_values(rows)[:, :, 0], explainer.shap_values(X[:9]), atol=1e-12)
    kernel = fs.Explainer(lambda rows: wavy(rows), X[:9], **STRUCTURES[structure][0]).fit(
        budget=2000, method="waves"
    )
    assert kernel.info.strategy == "subsets"
    assert "a report cannot look up" in kernel.engine.lookups(1 << 30)


def test_conditional_values_of_many_players():
    from sklearn.linear_model import LinearRegression

    X = np.random.default_rng(0).normal(size=(60, 11))
    model = LinearRegression().fit(X, X[:, 0])
    with pytest.raises(
        fs.InputError, match="asymmetric values with feature_perturbation='conditional' take all"
    ):
        fs.Explainer(
            model,
            X,
            feature_perturbation="conditional",
            dependence="gaussian",
            causal_order=[[*range(5)], [*range(5, 11)]],
        )


NAMES_IN_FILES = [
    "owen[[0,1],2]",
    "owen[[0,1],[2,3],[],4]",
    "owen[[0,1],[2,2],4]",
    "owen[[0,1],[2,3],-1]",
    "owen[[0,1],[2,3],4.0]",
    "owen" + "[" * 100 + "0,1,2,3,4" + "]" * 100,
    "owen" + "[" * 100_000,
    "asymmetric[0,1,2,3,4]",
    "asymmetric[[[0,1]],[2,3],[4]]",
    "asymmetric{}",
    "owen",
]


@pytest.mark.parametrize("name", NAMES_IN_FILES)
def test_files_with_other_structures(boosted, name, tmp_path):
    model, X = boosted
    path = tmp_path / "model.fshap"
    fs.Explainer(model, X, **STRUCTURES["owen"][0]).save(path)
    contents = files.read(path)
    header = contents.header | {"engine": contents.header["engine"] | {"index": name}}
    files.write(path, contents.kind, dict(contents.arrays), header)
    with pytest.raises(fs.FileFormatError, match="its index is"):
        fs.load(path)
