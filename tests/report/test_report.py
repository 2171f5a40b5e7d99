"""The report page as a file: what it holds, what it says, how large it is."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from typer.testing import CliRunner

import fouriershap as fs
from fouriershap._shapley.trees.leaves import leaf_lookup
from fouriershap.cli._app import app
from fouriershap.report._html import Page, packed, script_json
from report_pages import Parts, small, unpacked


def test_the_policy_names_exactly_the_scripts(tmp_path: Path) -> None:
    explainer, X = small()
    parts = Parts(explainer.report(X, tmp_path / "r.html"))
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in parts.scripts
    }
    rules = dict(rule.strip().split(" ", 1) for rule in parts.policy.split(";"))
    assert set(rules["script-src"].split()) == hashes
    assert len(hashes) == 2
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == "'none'"


def test_the_page_holds_the_values_of_all_rows(tmp_path: Path) -> None:
    explainer, X = small()
    data = Parts(explainer.report(X, tmp_path / "r.html", title="T")).data
    values = explainer.shap_values(X)
    shap = unpacked(data["rows"]["arrays"]["shap"]).reshape(len(X), 4)
    np.testing.assert_allclose(shap, values, rtol=1e-6)
    np.testing.assert_allclose(unpacked(data["arrays"]["importance"]), np.abs(values).mean(axis=0))
    inputs = unpacked(data["rows"]["arrays"]["inputs"]).reshape(4, len(X))
    np.testing.assert_array_equal(inputs.T, X.to_numpy())
    assert data["notes"] == []
    assert data["expected"] == [explainer.expected_value]
    assert dict(data["facts"])["Background"] == "50 rows"


def test_rows_are_sampled_then_the_tables_left_out(tmp_path: Path) -> None:
    explainer, X = small()
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(6000, 4)), columns=X.columns)
    whole = explainer.report(X, tmp_path / "r.html")
    size = whole.stat().st_size
    fewer = explainer.report(X, tmp_path / "fewer.html", max_bytes=size - 50_000)
    assert fewer.stat().st_size <= size - 50_000
    data = Parts(fewer).data
    assert data["what_if"] is not None
    kept = unpacked(data["rows"]["arrays"]["index"])
    assert 200 <= len(kept) < len(X)
    assert any("random sample" in note for note in data["notes"])
    fixed = Page("xgboost gbtree, explained").nbytes
    with pytest.warns(fs.ReportWarning, match="no what-if part"):
        without = explainer.report(X, tmp_path / "without.html", max_bytes=fixed + 14_000)
    assert without.stat().st_size <= fixed + 14_000
    data = Parts(without).data
    assert data["what_if"] is None
    assert any("no what-if part" in note for note in data["notes"])
    with pytest.raises(fs.InputError, match="max_bytes"):
        explainer.report(X, tmp_path / "none.html", max_bytes=1000)
    assert len(unpacked(Parts(explainer.report(X, whole, max_rows=7)).data["rows"]["arrays"]["index"])) == 7


def lost(explainer: fs.Explainer, folder: Path) -> Any:
    """The same explainer from a file, which has tables in place of the background."""
    explainer.save(folder / "lost.fshap")
    return fs.load(folder / "lost.fshap")


def test_a_file_remembers_what_was_explained(tmp_path: Path) -> None:
    explainer, X = small()
    with pytest.warns(fs.ReportWarning, match="no interactions"):
        page = lost(explainer, tmp_path).report(X, tmp_path / "r.html")
    facts = dict(Parts(page).data["facts"])
    assert facts["Model class"] == "xgboost.XGBRegressor"
    assert len(facts["Checksum of the explainer"]) > 8


def test_many_rows_stand_behind_the_first(tmp_path: Path) -> None:
    """What is shown first is small, whatever the page holds; the whole file keeps to its size."""
    X = np.random.default_rng(0).normal(size=(12_000, 4))
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X[:, 0])
    explainer = fs.TreeExplainer(model, X[:20])
    few = Parts(explainer.report(X, tmp_path / "few.html"))
    assert few.all_rows is None
    assert few.data["n_held"] == len(unpacked(few.data["rows"]["arrays"]["index"])) == 10_000
    many = Parts(explainer.report(X, tmp_path / "many.html", max_rows=len(X)))
    assert unpacked(many.data["rows"]["arrays"]["index"]).tolist() == list(range(200))
    assert many.data["n_held"] == 12_000
    shap = unpacked(many.all_rows["arrays"]["shap"]).reshape(12_000, 4)
    np.testing.assert_allclose(shap, explainer.shap_values(X), atol=1e-6)
    size = (tmp_path / "many.html").stat().st_size
    explainer.report(X, tmp_path / "less.html", max_rows=len(X), max_bytes=size - 20_000)
    assert (tmp_path / "less.html").stat().st_size <= size - 20_000
    assert 10_000 < Parts(tmp_path / "less.html").data["n_held"] < 12_000


def test_deep_trees_have_leaves_and_without_a_background_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    forest = RandomForestRegressor(3, random_state=0).fit(X, X.sum(axis=1))
    explainer = fs.TreeExplainer(forest, X[:20], memory=1_000)
    data = Parts(explainer.report(X[:50], tmp_path / "r.html")).data
    assert [part["kind"] for part in data["what_if"]] == ["leaves"]
    wide = np.random.default_rng(1).normal(size=(300, 60))
    deep = RandomForestRegressor(2, max_features=1, random_state=0).fit(wide, wide.sum(axis=1) ** 3)
    chain = fs.TreeExplainer(deep, wide[:20], memory=1_000)
    leaves = leaf_lookup(chain.engine.model, chain.engine.tree_background)
    assert leaves is None or leaves.most_players <= 31


def test_a_part_that_is_left_out_is_told_and_warned_of(tmp_path: Path) -> None:
    _, X = small()
    model = LogisticRegression().fit(X, X["a"] > 0)
    with pytest.warns(fs.ReportWarning, match=r"r\.html: There is no what-if part") as warned:
        data = Parts(fs.Explainer(model, X, output="probability").report(X, tmp_path / "r.html")).data
    assert all(Path(w.filename) == Path(__file__) for w in warned)
    assert data["what_if"] is None
    assert any("no what-if part" in note for note in data["notes"])


def test_a_default_boosted_classifier_has_a_small_page_with_everything(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    X, y = make_classification(1500, 30, n_informative=12, random_state=0)
    model = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1).fit(X, np.where(y, "good", "bad"))
    explainer = fs.Explainer(model, X[:100])
    path = explainer.report(X, tmp_path / "r.html")
    assert path.stat().st_size < 10_000_000
    data = Parts(path).data
    assert [part["kind"] for part in data["what_if"]] == ["leaves"]
    assert "interactions" in data["arrays"]
    assert data["outputs"] == [{"label": "log-odds of good", "scale": "log-odds of good"}]
    assert not [w for w in recwarn if issubclass(w.category, fs.ReportWarning)]
    with pytest.warns(fs.ReportWarning, match="There are no interactions"):
        path = lost(explainer, tmp_path).report(X[:300], tmp_path / "file.html")
    data = Parts(path).data
    assert path.stat().st_size < 10_000_000
    assert [part["kind"] for part in data["what_if"]] == ["tables"]
    assert any("rounded" in note and "at most" in note for note in data["notes"])


def test_of_many_features_the_strongest_pairs_are_shown(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(300, 40))
    model = xgboost.XGBRegressor(n_estimators=20, max_depth=3, n_jobs=1).fit(X, X[:, 3] * X[:, 30] + X[:, 7])
    explainer = fs.TreeExplainer(model, X[:20])
    data = Parts(explainer.report(X, tmp_path / "r.html")).data
    players = unpacked(data["arrays"]["interaction_players"])
    sizes = unpacked(data["arrays"]["interactions"]).reshape(1, 20, 20)
    assert {3, 7, 30} <= set(players.tolist())
    whole = np.abs(explainer.shap_interaction_values(X[:200])).mean(axis=0)
    off = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(sizes[0][off], whole[np.ix_(players, players)][off], atol=1e-9)
    assert np.isnan(sizes[0][~off]).all()


def test_an_explainer_that_walks_still_gets_its_what_if(tmp_path: Path) -> None:
    explainer, X = small()
    walking = fs.TreeExplainer(explainer.representation, X[:50], strategy="walk")
    assert Parts(walking.report(X, tmp_path / "r.html")).data["what_if"] is not None
    assert walking.info.n_tables == 0


def test_a_pipeline_shows_what_enters_its_trees(tmp_path: Path) -> None:
    _, X = small()
    model = make_pipeline(StandardScaler(), RandomForestRegressor(4, max_depth=3, random_state=0))
    model.fit(X, X["a"])
    data = Parts(fs.Explainer(model, X).report(X, tmp_path / "r.html")).data
    inputs = unpacked(data["rows"]["arrays"]["inputs"]).reshape(4, len(X))
    np.testing.assert_allclose(inputs.T, model[:-1].transform(X))


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=60))
def test_no_text_ends_the_data(text: str) -> None:
    written = script_json({"name": text})
    assert "<" not in written
    assert written.isascii()
    assert json.loads(written)["name"] == text


def test_title_and_template_do_not_mix(tmp_path: Path) -> None:
    explainer, X = small()
    path = explainer.report(X, tmp_path / "r.html", title="{{data}} </title> \ud800")
    text = path.read_text(encoding="utf-8")
    assert "<title>{{data}} &lt;/title&gt; ?</title>" in text
    assert Parts(path).data["title"] == "{{data}} </title> \ud800"


def test_arrays_survive_packing() -> None:
    for array in (np.array([1.5, np.nan]), np.array([True, False]), np.arange(3), np.zeros(0, np.float32)):
        np.testing.assert_array_equal(unpacked(packed(array)), array)
    with pytest.raises(OverflowError):
        packed(np.array([2**40]))
    with pytest.raises(TypeError):
        packed(np.array(["text"]))


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    explainer, X = small()
    for options in ({"max_rows": 0}, {"max_rows": True}, {"max_bytes": "big"}):
        with pytest.raises(fs.InputError, match=next(iter(options))):
            explainer.report(X, tmp_path / "r.html", **options)
    banzhaf = fs.TreeExplainer(explainer.representation, X[:50], index="banzhaf")
    with pytest.raises(fs.InputError, match="banzhaf"):
        banzhaf.report(X, tmp_path / "r.html")
    with pytest.raises(fs.InputError, match="title is 5"):
        explainer.report(X, tmp_path / "r.html", title=5)
    with pytest.raises(fs.InputError, match="0 rows"):
        explainer.report(X[:0], tmp_path / "r.html")


@pytest.mark.parametrize("exact", [False, True])
def test_probabilities_come_with_the_margin_beside_them(tmp_path: Path, exact: bool) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, X[:, 0] * X[:, 1] > 0)
    explainer = fs.TreeExplainer(model, X[:5], output="probability", exact=exact)
    margin = fs.TreeExplainer(model, X[:5])
    data = Parts(explainer.report(X, tmp_path / "r.html")).data
    assert [output["label"] for output in data["outputs"]] == ["probability of 1", "log-odds of 1"]
    assert (data["first_raw"], data["link"]) == (1, "logistic")
    shap = unpacked(data["rows"]["arrays"]["shap"]).reshape(60, 4, 2)
    np.testing.assert_allclose(shap[:, :, 0], explainer.shap_values(X), atol=1e-6)
    np.testing.assert_allclose(shap[:, :, 1], margin.shap_values(X), atol=1e-6)
    np.testing.assert_allclose(data["expected"], [explainer.expected_value, margin.expected_value])
    assert [part["n_outputs"] for part in data["what_if"]] == [1]


def test_losses_are_refused(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, X[:, 0] > 0)
    with pytest.raises(fs.InputError, match="output='log_loss'"):
        fs.TreeExplainer(model, X[:5], output="log_loss").report(X, tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_without_plotly_the_error_gives_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    explainer, X = small()
    with pytest.raises(fs.MissingDependencyError, match=r"fouriershap\[report\]"):
        explainer.report(X, tmp_path / "r.html")


def test_the_command_writes_the_same_page(tmp_path: Path) -> None:
    explainer, X = small()
    explainer.save(tmp_path / "m.fshap", interactions=True)
    X.to_parquet(tmp_path / "rows.parquet", index=False)
    arguments = ["report", tmp_path / "m.fshap", tmp_path / "rows.parquet", "-o", tmp_path / "r.html"]
    result = CliRunner().invoke(app, [*map(str, arguments), "--title", "T"])
    assert result.exit_code == 0, result.output
    by_command = Parts(tmp_path / "r.html").data
    explainer.report(X, tmp_path / "r.html", title="T")
    by_python = Parts(tmp_path / "r.html").data
    for part in ("rows", "arrays", "inputs", "players", "outputs"):
        assert by_command[part] == by_python[part]


def test_the_command_asks_the_same_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    explainer, X = small()
    explainer.save(tmp_path / "m.fshap")
    extra = X.assign(number=[f"n{k}" for k in range(300)], side=np.where(X["a"] > 0, "right", "left"))
    extra.assign(seen=X["a"] * X["b"]).to_parquet(tmp_path / "rows.parquet", index=False)
    extra[100:].to_csv(tmp_path / "new.csv", index=False)
    X[:50].to_parquet(tmp_path / "background.parquet", index=False)
    (tmp_path / "text.json").write_text('{"a": {"raises": "a is {value}"}}')
    options = ["--label", "seen", "--id", "number", "--cohorts", "side", "--unit", "€", "--title", "T"]
    options += ["--fact", "Owner = risk=team", "--fact", "Limits=none"]
    for name in ("--drift new.csv", "--background background.parquet", "--text text.json"):
        option, file = name.split()
        options += [option, str(tmp_path / file)]
    arguments = ["report", tmp_path / "m.fshap", tmp_path / "rows.parquet", "-o", tmp_path / "r.html"]
    result = CliRunner().invoke(app, [*map(str, arguments), *options])
    assert result.exit_code == 0, result.output
    by_command = Parts(tmp_path / "r.html").data
    facts = dict(by_command["facts"])
    assert facts["Rows file"] == "rows.parquet"
    assert facts["Explainer file"] == "m.fshap"
    assert dict(by_command["record"])["Owner"] == "risk=team"
    assert facts["Written"] == "2023-11-14 22:13 UTC"
    page = explainer.report(
        X,
        tmp_path / "r.html",
        X["a"] * X["b"],
        ids=extra["number"],
        drift=X[100:],
        cohorts=extra["side"],
        text={"a": {"raises": "a is {value}"}},
        unit="€",
        title="T",
    )
    by_python = Parts(page).data
    assert by_command["rows"]["names"][:2] == ["n0", "n1"]
    assert by_command["outputs"] == [{"label": "prediction", "scale": "€"}]
    assert by_command["sentences"][0][0] == [["a is ", "value", ""]]
    for part in ("what_if", "inputs", "players", "outputs", "sentences"):
        assert by_command[part] == by_python[part], part
    for name in ("shap", "inputs", "actual"):
        found, expected = (unpacked(data["rows"]["arrays"][name]) for data in (by_command, by_python))
        np.testing.assert_allclose(found, expected, atol=1e-5)
    for part in ("drift", "cohorts"):
        assert by_command[part]["groups"] == by_python[part]["groups"]
        for name in ("values", "low", "high", "means", "base"):
            found, expected = (unpacked(data[part]["arrays"][name]) for data in (by_command, by_python))
            np.testing.assert_allclose(found, expected, atol=1e-6)
    result = CliRunner().invoke(app, [*map(str, arguments), "--label", "nothing"])
    assert result.exit_code == 1
    assert "no column 'nothing', which --label names" in result.output
    result = CliRunner().invoke(app, [*map(str, arguments), "--fact", "Owner"])
    assert "--fact is 'Owner'" in result.output


def test_columns_of_the_rows_by_name(tmp_path: Path) -> None:
    explainer, X = small()
    whole = X.assign(id=range(300), seen=X["a"] * X["b"], side=X["a"] > 0)
    options: dict[str, Any] = {"ids": "id", "cohorts": "side"}
    data = Parts(explainer.report(whole, tmp_path / "r.html", "seen", **options)).data
    assert data["rows"]["names"][:3] == ["0", "1", "2"]
    np.testing.assert_allclose(unpacked(data["rows"]["arrays"]["actual"]), whole["seen"])
    assert data["cohorts"]["groups"] == ["side = False", "side = True"]
    polars = pytest.importorskip("polars")
    again = Parts(explainer.report(polars.from_pandas(whole), tmp_path / "p.html", "seen", **options)).data
    assert again["rows"] == data["rows"]
    by_feature = Parts(explainer.report(X.round(), tmp_path / "f.html", cohorts="d")).data
    assert len(by_feature["cohorts"]["groups"]) == len(np.unique(X["d"].round()))
    trees = Parts(explainer.report(X, tmp_path / "t.html", cohorts=True)).data
    assert 2 <= len(trees["cohorts"]["groups"]) <= 4


def test_answers_are_shown_as_they_are(tmp_path: Path) -> None:
    explainer, X = small()
    dates = np.datetime64("2025-01-01") + np.arange(300)
    drift = explainer.drift(X, by=dates, every="month")
    cohorts = explainer.cohorts(X, X["b"] > 0, level=None)
    data = Parts(explainer.report(X, tmp_path / "r.html", drift=drift, cohorts=cohorts)).data
    assert data["drift"]["groups"] == list(drift.groups)
    np.testing.assert_array_equal(unpacked(data["drift"]["arrays"]["values"]), drift.values.reshape(-1))
    assert data["cohorts"]["words"][-1] == "No intervals were computed."
    with pytest.raises(fs.InputError, match="drift is a result with"):
        explainer.report(X, tmp_path / "r.html", drift=explainer.drift(X, interactions=True))


def test_wishes_that_cannot_be_met_are_named(tmp_path: Path) -> None:
    explainer, X = small()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"y": "nothing"}, "y is 'nothing', which is not a column of X"),
        ({"ids": [1, 2]}, r"ids has shape \(2,\)"),
        ({"cohorts": [1, 2]}, "by has 2 entries for 300 rows"),
        ({"unit": 5}, "unit is 5"),
        ({"facts": ["a"]}, "facts is"),
        ({"text": {"nobody": "x"}}, "text names 'nobody'"),
        ({"text": lambda *_: ""}, "text is a function"),
        ({"text": "{worth}"}, "the field 'worth'"),
        ({"drift": X.drop(columns="a")}, "X_new"),
    ]
    for options, message in wrong:
        with pytest.raises(fs.InputError, match=message):
            explainer.report(X, tmp_path / "r.html", **options)
    with pytest.raises(fs.InputError, match="X has no column names"):
        explainer.report(X.to_numpy(), tmp_path / "r.html", ids="number")
    assert not list(tmp_path.iterdir())


def test_an_expected_value_that_is_no_number(tmp_path: Path) -> None:
    model = RandomForestRegressor(1, random_state=0).fit([[0.0], [1.0]], [1.0, 2.0])
    ensemble = fs.TreeExplainer(model, [[0.0]]).representation
    infinite = fs.TreeExplainer(ensemble.replace(base=[np.inf]), [[0.0]])
    with pytest.raises(fs.InputError, match="expected value"):
        infinite.report([[0.0]], tmp_path / "page.html")
    assert not list(tmp_path.iterdir())
