"""What notebooks show, rows in the forms that people have at hand, and the advice in errors."""

from __future__ import annotations

import inspect
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fouriershap as fs

HOSTILE = "<script>alert('x')</script> & \"co\""
rng = np.random.default_rng(0)
X = pd.DataFrame({HOSTILE: rng.normal(size=80), "age": rng.integers(20, 70, 80), "debt": rng.normal(size=80)})
X = X.assign(**{f"more {k}": rng.normal(size=80) for k in range(10)})
Y = X[HOSTILE] + X["age"] / 20 + X["debt"] * X["more 1"]


class Cells(HTMLParser):
    """Cells of the tables of some HTML, and the tags in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.lines: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.lines.append([])
        if tag in ("td", "th"):
            self.lines[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.lines[-1][-1] += data


def results() -> dict[str, Any]:
    explainer = fs.Explainer(RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y), X)
    classes = fs.Explainer(RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, Y > 2), X)
    return {
        "explainer": explainer,
        "black box": fs.Explainer(lambda rows: rows["age"] * 1.0, X),
        "path-dependent": fs.Explainer(RandomForestRegressor(3, max_depth=2).fit(X, Y)),
        "plan": explainer.plan(100),
        "effects": explainer.effects(X),
        "partial dependence": explainer.partial_dependence(["age", HOSTILE]),
        "importance": explainer.importance(X),
        "several outputs": classes.importance(X),
        "drift": explainer.drift(X[:40]),
        "cohorts": explainer.cohorts(X, by=X["age"] > 40),
        "interactions": explainer.interactions(X[:20]),
        "reasons": explainer.reasons(X[:3], direction="both"),
        "game": fs.explain_game(lambda z: z @ np.arange(4.0), 4, player_names=[HOSTILE, *"bcd"]),
    }


RESULTS = results()


@pytest.mark.parametrize("name", RESULTS)
def test_html_is_escaped_and_folded(name: str) -> None:
    text = RESULTS[name]._repr_html_()
    cells = Cells(text)
    assert cells.tags <= {
        "div",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "td",
        "th",
        "details",
        "summary",
        "p",
        "code",
    }
    if "explainer" not in name and name not in ("black box", "path-dependent", "plan"):
        frame = RESULTS[name].frame()
        n_heads = 1 + (len(frame) > 10)
        assert len(cells.lines) == min(len(frame), 200) + n_heads
        assert ("details" in cells.tags) == (len(frame) > 10)
        assert any(HOSTILE in cell for line in cells.lines for cell in line)


def test_bars_are_as_long_as_the_values() -> None:
    text = RESULTS["game"]._repr_html_()
    widths = [float(share) for share in re.findall(r"width: ([\d.]+)%", text)]
    assert widths == [50.0, 33.3, 16.7, 0.0]  # of 3, 2, 1, 0
    largest = [line[0] for line in Cells(RESULTS["importance"]._repr_html_()).lines[1:11]]
    assert largest == RESULTS["importance"].frame()["feature"].tolist()[:10]


def test_an_explainer_says_what_it_is() -> None:
    lines = dict(line for line in Cells(RESULTS["explainer"]._repr_html_()).lines)
    assert lines["Model"] == "sklearn.RandomForestRegressor" and lines["Quality"] == "exact"
    assert lines["Background"] == "80 rows" and "on one core" in lines["1,000 rows"]
    assert dict(Cells(RESULTS["plan"]._repr_html_()).lines)["strategy"] == RESULTS["plan"].strategy
    assert "2%" in dict(Cells(RESULTS["black box"]._repr_html_()).lines)["Quality"]
    assert "path-dependent" in dict(Cells(RESULTS["path-dependent"]._repr_html_()).lines)["Background"]


def test_importance_is_sorted_by_value() -> None:
    for name in ("importance", "several outputs"):
        found = RESULTS[name]
        frame = found.frame()
        parts = [frame] if name == "importance" else [part for _, part in frame.groupby("output", sort=False)]
        for o, part in enumerate(parts):
            assert part["importance"].is_monotonic_decreasing
            own = dict(zip(found.names, found.low[:, o], strict=True))
            assert [own[feature] for feature in part["feature"]] == part["low"].tolist()


def people() -> tuple[pd.DataFrame, np.ndarray]:
    frame = X[["age", "debt"]].assign(city=rng.choice(["Bern", "Basel", "Zug"], 80))
    return frame, frame["age"] * (frame["city"] == "Zug") + frame["debt"]


def explainers() -> dict[str, Any]:
    frame, y = people()
    steps = make_column_transformer((OneHotEncoder(), ["city"]), remainder=StandardScaler())
    forest = RandomForestRegressor(4, max_depth=4, random_state=0)
    numbers = frame[["age", "debt"]]
    return {
        "pipeline": (fs.Explainer(make_pipeline(steps, forest).fit(frame, y), frame), frame),
        "linear": (fs.Explainer(make_pipeline(steps, LinearRegression()).fit(frame, y), frame), frame),
        "trees": (fs.Explainer(clone(forest).fit(numbers, y), numbers), numbers),
        "black box": (fs.Explainer(lambda rows: rows["age"] * (rows["city"] == "Zug"), frame), frame),
    }


EXPLAINERS = explainers()


@pytest.mark.parametrize("name", EXPLAINERS)
def test_rows_as_dicts_and_series(name: str) -> None:
    explainer, frame = EXPLAINERS[name]
    rows = frame[:3]
    want = explainer.shap_values(rows)
    records = [dict(reversed(record.items())) for record in rows.to_dict("records")]
    np.testing.assert_allclose(explainer.shap_values(records), want)
    np.testing.assert_allclose(explainer.shap_values(records[1]), want[1])
    np.testing.assert_allclose(explainer.shap_values(rows.iloc[1]), want[1])
    np.testing.assert_allclose(explainer.predict(records), explainer.predict(rows))
    np.testing.assert_allclose(explainer(records[2]).values, want[2])
    np.testing.assert_allclose(
        explainer.frame(records[2])["contribution"], explainer.frame(rows[2:])["contribution"]
    )
    assert explainer.reasons(records).sentences(1) == explainer.reasons(rows).sentences(1)
    assert explainer.reasons(rows.iloc[1]).sentences(0) == explainer.reasons(rows).sentences(1)
    for wrong, message in (
        ([records[0], {"age": 3.0}], "row 1 does not have the same names"),
        ({"age": [1, 2], "debt": [1, 2], "city": ["Zug", "Zug"]}, "'age' is a list"),
        ({"age": 1.0}, "column"),
        (records[0] | {"id": 7}, "'id'|4 columns|3 columns"),
    ):
        with pytest.raises(fs.InputError, match=message):
            explainer.shap_values(wrong)


def test_dicts_need_names() -> None:
    explainer = fs.Explainer(LinearRegression().fit(X.to_numpy(), Y), X.to_numpy())
    with pytest.raises(fs.InputError, match="have none: give lists of numbers"):
        explainer.shap_values({"a": 1.0})


def test_gaps_are_named_by_column() -> None:
    gaps = X.assign(age=X["age"].astype(float))
    gaps.loc[3, "age"] = np.nan
    with pytest.raises(fs.InputError, match="row 3, column 'age'"):
        fs.Explainer(LinearRegression().fit(X, Y), X).shap_values(gaps)
    frame, y = people()
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(frame[["age", "debt"]], y)
    with pytest.raises(fs.InputError, match="missing or infinite values: 'debt'"):
        fs.Explainer(pipeline, frame[["age", "debt"]]).shap_values(frame[["age"]].assign(debt=np.inf))


def network(package: str, name: str) -> Any:
    """An object whose class has a base of that name in that package."""
    base = type(name, (), {"__module__": f"{package}.inner", "__call__": lambda self, rows: rows})
    return type("Network", (base,), {"predict": lambda self, rows: rows})()


def test_advice_for_networks_images_and_texts() -> None:
    with pytest.raises(fs.UnsupportedModelError, match=r"PyTorch module.*torch\.as_tensor"):
        fs.Explainer(network("torch", "Module"), X)
    for package in ("keras", "tf_keras", "tensorflow"):
        with pytest.raises(fs.UnsupportedModelError, match=r"Keras model.*verbose=0"):
            fs.Explainer(network(package, "Model"), X)
    ask = lambda rows: np.zeros(len(rows))  # noqa: E731
    for background in (np.zeros((4, 8, 8, 3)), ["a text", "another"], np.array(["a text", "another"])):
        with pytest.raises(fs.InputError, match=r"fs\.explain_game\(value, n_parts\)"):
            fs.Explainer(ask, background)
    with pytest.raises(fs.InputError, match="did you mean output"):
        fs.Explainer(ask, X, ouptut="probability")
    with pytest.raises(fs.InputError, match="Did you mean output"):
        fs.Explainer(LinearRegression().fit(X, Y), X, model_outpt="raw")


def test_the_docstring_names_the_options_that_there_are() -> None:
    from fouriershap._explainers import blackbox, products, spectrum, trees
    from fouriershap._explainers.arguments import parameters_of

    builders = (trees.tree_parts, products.product_parts, blackbox.black_box_parts, spectrum.spectrum_parts)
    taken = {name for build in builders for name in list(parameters_of(build))[2:]}
    named = re.search(r"Parameters\n    -+\n(.*?)\n\n    Attributes", fs.Explainer.__doc__ or "", re.S)
    assert named is not None
    described = {
        name for line in re.findall(r"^    (\w.*)$", named[1], re.M) for name in re.findall(r"\w+", line)
    }
    assert taken <= described
    assert taken <= set(inspect.signature(fs.Explainer).parameters)
