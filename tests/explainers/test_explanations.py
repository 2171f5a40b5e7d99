"""What explainers return for people: `shap.Explanation` for every plot, and tidy tables of reasons."""

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from models import CASES, classes, numbers, target
from shap_oracle import assert_within

shap = pytest.importorskip("shap")
mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

FORMS = {"pandas": lambda X: X, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


def forest(n_classes=0, names=("a", "b", "c", "d")):
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X = pd.DataFrame(numbers(), columns=list(names))
    kind, y = (
        (RandomForestClassifier, classes(X.to_numpy(), n_classes))
        if n_classes
        else (RandomForestRegressor, target(X.to_numpy()))
    )
    return kind(5, max_depth=4, random_state=0).fit(X, y), X


def one_hot_frame():
    rng = np.random.default_rng(0)
    X = pd.get_dummies(pd.DataFrame({"colour": rng.choice(["red", "rose", "blue"], 200)}), dtype=float)
    X["size"] = rng.normal(size=200)
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, X["size"] * X["colour_red"]), X


def explanations():
    """Explanations of every kind, each of one output."""
    model, X = forest()
    yield "numbers", fs.Explainer(model, X)(X[:30])
    model, X, _ = CASES["lightgbm"]["frame"]()
    yield "categories", fs.Explainer(model, X)(X[:30])
    model, X = one_hot_frame()
    colours = [c for c in X.columns if c.startswith("colour")]
    yield "one-hot group", fs.Explainer(model, X, groups={"colour": colours})(X[:30])
    model, X = forest()
    yield "group of numbers", fs.Explainer(model, X, groups={"ab": ["a", "b"]})(X[:30])
    model, X = forest(3)
    yield "one of three outputs", fs.Explainer(model, X)(X[:30])[..., 1]
    bits = (numbers() > 0).astype(np.uint8)
    yield "black box", fs.Explainer(lambda x: x[:, 0] * x[:, 1] + x[:, 2], bits)(bits[:30])


EXPLANATIONS = dict(explanations())
PLOTS = {
    "beeswarm": lambda e: shap.plots.beeswarm(e, show=False),
    "waterfall": lambda e: shap.plots.waterfall(e[0], show=False),
    "bar": lambda e: shap.plots.bar(e, show=False),
    "bar of a row": lambda e: shap.plots.bar(e[0], show=False),
    "scatter": lambda e: shap.plots.scatter(e[:, 1], show=False),
    "scatter in colour": lambda e: shap.plots.scatter(e[:, 1], color=e, show=False),
    "heatmap": lambda e: shap.plots.heatmap(e, show=False),
    "force": lambda e: shap.plots.force(e[0], matplotlib=True, show=False),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("kind", EXPLANATIONS)
def test_every_plot_renders(kind, plot, tmp_path):
    plt.close("all")
    PLOTS[plot](EXPLANATIONS[kind])
    figure = plt.gcf()
    assert figure.axes and any(axis.has_data() or axis.texts for axis in figure.axes)
    figure.savefig(tmp_path / "plot.png", dpi=40)
    plt.close("all")


def test_forces_of_many_rows_are_drawn_in_the_browser():
    html = shap.plots.force(EXPLANATIONS["categories"]).html()
    assert "AdditiveForceArrayVisualizer" in html and "colour" in html


def test_what_an_explanation_holds():
    explanation = EXPLANATIONS["numbers"]
    model, X = forest()
    assert isinstance(explanation, shap.Explanation)
    assert explanation.feature_names == list("abcd") and explanation.compute_time > 0
    assert np.array_equal(explanation.data, X[:30]) and explanation.display_data is None
    total = explanation.values.sum(axis=1) + explanation.base_values
    assert_within(total, model.predict(X[:30]), 1e-6)
    model, X = forest(3)
    explanation = fs.Explainer(model, X)(X[:9])
    assert explanation.output_names == ["0", "1", "2"]
    assert explanation.values.shape == (9, 4, 3) and explanation.base_values.shape == (9, 3)
    assert_within(explanation.values.sum(axis=1) + explanation.base_values, model.predict_proba(X[:9]), 1e-6)


def test_labels_are_shown_and_their_positions_drawn():
    _, X, _ = CASES["lightgbm"]["frame"]()
    explanation = EXPLANATIONS["categories"]
    colour = X["colour"][:30]
    assert explanation.data.dtype == np.float64
    shown = ["missing" if label != label else label for label in colour.astype(object)]
    assert explanation.display_data[:, 1].tolist() == shown
    for number, label in zip(explanation.data[:, 1], colour, strict=True):
        assert np.isnan(number) if label != label else colour.cat.categories[int(number)] == label


def test_one_hot_groups_are_shown_by_the_name_of_the_one():
    _, X = one_hot_frame()
    explanation = EXPLANATIONS["one-hot group"]
    colours = X.drop(columns="size")[:30]
    active = [name.removeprefix("colour_") for name in colours.idxmax(axis=1)]
    position = explanation.feature_names.index("colour")
    assert explanation.display_data[:, position].tolist() == active
    assert np.array_equal(explanation.data[:, position], colours.to_numpy().argmax(axis=1))


# Tables of reasons


@pytest.mark.parametrize("library", FORMS)
def test_reasons_come_in_the_callers_library(library):
    model, X = forest()
    explainer = fs.Explainer(model, X, strategy="tables")
    given_rows = FORMS[library](X[:6])
    table = explainer.frame(given_rows, top_k=2)
    assert isinstance(table, pa.Table) if library == "pyarrow" else type(table) is type(given_rows)
    found = table if library == "pandas" else table.to_pandas()
    pd.testing.assert_frame_equal(found, explainer.frame(X[:6], top_k=2), check_dtype=False)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.sampled_from([None, 1, 2, 3, 4, 9]), st.sampled_from([0, 3]))
def test_reasons_are_the_values(n_rows, top_k, n_classes):
    model, X = forest(n_classes)
    explainer = fs.Explainer(model, X, strategy="tables")
    rows = X[:n_rows]
    table = explainer.frame(rows, top_k)
    values = explainer.shap_values(rows).reshape(n_rows, 4, -1)
    k = min(top_k or 4, 4)
    assert len(table) == n_rows * k * values.shape[2]
    assert list(table.columns) == [
        "row",
        *(["output"] if n_classes else []),
        "feature",
        "value",
        "contribution",
        "rank",
    ]
    for line in table.itertuples():
        player, output = "abcd".index(line.feature), int(line.output) if n_classes else 0
        sizes = np.abs(values[line.row, :, output])
        assert line.contribution == values[line.row, player, output]
        assert line.value == rows.iloc[line.row, player]
        assert np.sort(sizes)[::-1][line.rank - 1] == sizes[player]


def test_reasons_of_labels_and_groups():
    model, X, _ = CASES["lightgbm"]["frame"]()
    table = fs.Explainer(model, X).frame(X[:3])
    first = table[table["row"] == 0].set_index("feature")["value"]
    assert first["colour"] == ("missing" if pd.isna(X["colour"][0]) else X["colour"][0])
    assert first["a"] == ("missing" if np.isnan(X["a"][0]) else f"{X['a'][0]:.6g}")
    model, X = forest()
    table = fs.Explainer(model, X, groups={"ab": ["a", "b"]}).frame(X[:1])
    shown = table.set_index("feature").loc["ab", "value"]
    assert shown == f"{X['a'][0]:.6g}, {X['b'][0]:.6g}"


def test_reasons_of_arrays_and_wrong_numbers_of_them(monkeypatch):
    model, X = forest()
    explainer = fs.Explainer(model, X)
    assert isinstance(explainer.frame(X.to_numpy()[:2]), pd.DataFrame)
    assert len(explainer.frame(X[:0])) == 0
    for wrong in (0, -1, 2.5, True, "all"):
        with pytest.raises(fs.InputError, match="top_k is"):
            explainer.frame(X[:2], top_k=wrong)
    from fouriershap._rows import tables

    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(fs.MissingDependencyError, match="pip install pandas"):
        explainer.frame(X.to_numpy()[:2])
    monkeypatch.setattr(tables, "find_spec", lambda name: name == "polars" or None)
    assert isinstance(explainer.frame(X.to_numpy()[:2]), pl.DataFrame)


@pytest.mark.parametrize("case", ["tree", "black box", "spectrum"])
def test_without_shap_only_the_explanation_is_missing(case, monkeypatch):
    bits = (numbers() > 0).astype(np.uint8)
    model = {
        "tree": CASES["sklearn"]["RandomForestRegressor"]()[0],
        "black box": lambda x: x[:, 0] * 1.0,
        "spectrum": fs.Spectrum([[1, 0, 0, 1]], [1.0]),
    }[case]
    explainer = fs.Explainer(model, bits)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(fs.MissingDependencyError, match=r"pip install 'fouriershap\[shap\]'"):
        explainer(bits[:3])
    assert explainer.shap_values(bits[:3]).shape == (3, 4) and len(explainer.frame(bits[:3])) == 12
