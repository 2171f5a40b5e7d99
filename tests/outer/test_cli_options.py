"""Options of the command line that Python has under the same names: groups, outputs, ids of a page; versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner
from xgboost import XGBClassifier

import fouriershap as fs
from cli_files import save_rows
from fouriershap.cli._app import app

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
IDS = [f"P{i:03d}" for i in range(len(X))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    model = XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(X, (X.a * X.b > 0).astype(int))
    model.save_model(folder / "model.json")
    X.to_csv(folder / "background.csv", index=False)
    X.assign(patient=IDS, ward="east").to_csv(folder / "rows.csv", index=False)
    return folder


def run(*arguments: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def fit(folder: Path, *options: Any, code: int = 0) -> Any:
    target = folder / "m.fshap"
    said = run(
        "fit", folder / "model.json", "-b", folder / "background.csv", "-o", target, "-q", *options, code=code
    )
    return said if code else fs.load(target)


def test_groups(folder: Path) -> None:
    explainer = fit(folder, "--group", "both=a, b")
    assert explainer.player_names == ("both", "c")
    want = fs.TreeExplainer(folder / "model.json", X, groups={"both": ["a", "b"]}).shap_values(X)
    np.testing.assert_allclose(explainer.shap_values(X), want, atol=1e-6)
    for wrong, message in (("both", "NAME=COLUMN"), ("=a", "NAME=COLUMN"), ("both=a,nowhere", "nowhere")):
        assert message in fit(folder, "--group", wrong, code=1).output
    assert "twice" in fit(folder, "--group", "g=a", "--group", "g=b", code=1).output


def test_structured_and_conditional_values(folder: Path) -> None:
    groups = ("--group", "both=a,b")
    order, chain = ("--causal-order", "a; b, c"), [["a"], ["b", "c"]]
    dependent = {"feature_perturbation": "conditional", "dependence": "gaussian"}
    cases: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        ((*groups, "--coalitions", "owen"), {"groups": {"both": ["a", "b"]}, "coalitions": "owen"}),
        (order, {"causal_order": chain}),
        (("--dependence", "gaussian"), dependent),
        (
            (*order, "--dependence", "gaussian", "--confounded", "no,yes"),
            dependent | {"causal_order": chain, "confounded": [False, True]},
        ),
    ]
    for options, arguments in cases:
        found, want = fit(folder, *options), fs.TreeExplainer(folder / "model.json", X, **arguments)
        np.testing.assert_allclose(found.shap_values(X[:9]), want.shap_values(X[:9]), atol=1e-6)
        assert found.info.which_values == want.info.which_values != ""
        assert want.info.which_values in run("info", folder / "m.fshap").output
    for options, message in (
        ((*order, "--confounded", "maybe"), "give yes or no"),
        ((*order, "--confounded", "no"), "feature_perturbation='conditional'"),
        (("--causal-order", "a;b"), "causal_order lacks 'c'"),
        (("--dependence", "normal"), "dependence is 'normal'"),
        (("--coalitions", "owen"), "give groups="),
    ):
        assert message in fit(folder, *options, code=1).output.replace("\n", " ")


def test_outputs(folder: Path) -> None:
    explainer = fit(folder, "--model-output", "probability")
    want = fs.TreeExplainer(folder / "model.json", X, output="probability")
    np.testing.assert_allclose(explainer.shap_values(X[:9]), want.shap_values(X[:9]), atol=1e-6)
    assert 0 < explainer.expected_value < 1
    assert fit(folder, "--model-output", "0").output == "raw"
    assert "probability" in fit(folder, "--model-output", "chance", code=1).output


def test_a_black_box_has_groups_and_no_outputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rules.py").write_text("def rule(rows):\n    return rows['a'] * rows['b']\n")
    (X > 0).astype(int).to_csv(folder / "bits.csv", index=False)
    monkeypatch.chdir(folder)
    common = ("fit", "rules:rule", "-b", "bits.csv", "-o", "rule.fshap", "-q")
    run(*common, "--group", "both=a,b")
    assert fs.load(folder / "rule.fshap").player_names == ("both", "c")
    assert "no --model-output" in run(*common, "--model-output", "probability", code=1).output
    assert "no --dependence" in run(*common, "--dependence", "auto", code=1).output


def test_a_page_calls_rows_by_their_ids(folder: Path) -> None:
    pytest.importorskip("plotly")
    fit(folder)
    page = folder / "page.html"
    run("report", folder / "m.fshap", folder / "rows.csv", "-o", page, "--id", "patient", "--id", "ward")
    assert "P007, east" in page.read_text(encoding="utf-8")
    said = run("report", folder / "m.fshap", folder / "rows.csv", "-o", page, "--id", "patient", code=1)
    assert "ward" in said.output


def test_versions_and_completion() -> None:
    assert run("--version").output == f"fouriershap {fs.__version__}\n"
    assert fs.__version__ in run("info").output and "numpy" in run("info").output
    assert "--install-completion" in run("--help").output
    command = [sys.executable, "-m", "fouriershap.cli", "info"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for what in (*fs.about(), *(library.name for library in fs.libraries())):
        assert f"\n{what} " in f"\n{said}"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("last", ["trees", "linear"])
def test_a_pipeline_with_known_steps_takes_its_own_rows(tmp_path: Path, last: str, suffix: str) -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(40, 9, 60), "city": rng.choice(["Bern", "007", "Zug"], 60)})
    X = X.assign(grade=rng.choice(["a", "b"], 60), rooms=rng.choice([1, 2, 5], 60))
    X.loc[2, "age"] = np.nan
    labels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    prepare = make_column_transformer(
        (labels, ["city"]),
        (OrdinalEncoder(), ["grade", "rooms"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
    )
    model = DecisionTreeRegressor(max_depth=4) if last == "trees" else Ridge()
    pipeline = make_pipeline(prepare, model).fit(X, X["rooms"] * (X["city"] == "007"))
    explainer = fs.Explainer(pipeline, X, groups="input")
    explainer.save(tmp_path / "p.fshap")
    known = fs.load(tmp_path / "p.fshap").known_labels
    assert set(known["city"]) == {"Bern", "007", "Zug"} and known["rooms"] == (1, 2, 5) and "age" not in known
    rows = save_rows(X, tmp_path / f"rows{suffix}")
    run("explain", tmp_path / "p.fshap", rows, "-o", tmp_path / "out.parquet", "--quiet")
    found = pd.read_parquet(tmp_path / "out.parquet")[list(explainer.player_names)]
    np.testing.assert_allclose(found, explainer.shap_values(X), atol=1e-5)
