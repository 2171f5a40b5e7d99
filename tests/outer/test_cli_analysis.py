"""Questions on the command line say what Python says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fouriershap as fs
from fouriershap.cli._app import app

xgboost = pytest.importorskip("xgboost")
runner = CliRunner()


def run(*arguments: Any, code: int = 0) -> Any:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, pd.DataFrame, pd.DataFrame]:
    """A folder with a model, a background and rows; the explainer, background and rows in Python."""
    folder, rng = tmp_path_factory.mktemp("questions"), np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["debt", "income", "age"])
    y = X["debt"] * X["income"] + X["age"]
    explainer = fs.TreeExplainer(xgboost.XGBRegressor(n_estimators=10, max_depth=3).fit(X, y), X)
    explainer.save(folder / "m.fshap")
    X.to_parquet(folder / "old.parquet")
    new = pd.DataFrame(rng.normal(size=(200, 3)) + 0.3, columns=X.columns)
    new["when"] = pd.date_range("2025-01-01", periods=200, freq="D").astype("datetime64[us]")
    new["default"] = new["debt"] * new["income"] + new["age"]
    new.to_parquet(folder / "new.parquet")
    new.to_csv(folder / "new.csv", index=False)
    return folder, explainer, X, new


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_drift(files: Any, suffix: str) -> None:
    folder, explainer, old, new = files
    rows = ("drift", folder / "m.fshap", folder / f"new.{suffix}", "--drop", "default")
    out = folder / f"drift-{suffix}.json"
    run(*rows, "--by", "when", "--every", "month", "-b", folder / "old.parquet", "-o", out)
    expected = explainer.drift(new[list(old.columns)], by=new["when"], every="month")
    found = json.loads(out.read_text())
    assert found["groups"] == list(expected.groups)
    np.testing.assert_allclose(
        [row["change"] for row in found["rows"]], expected.values.reshape(-1), atol=1e-5
    )
    np.testing.assert_allclose([row["high"] for row in found["rows"]], expected.high.reshape(-1), atol=1e-5)
    assert "alone" in run(*rows, "--drop", "when").output


def test_importance(files: Any) -> None:
    folder, explainer, old, new = files
    rows = ("importance", folder / "m.fshap", folder / "new.parquet", "--drop", "when")
    run(
        *rows,
        "--label",
        "default",
        "-b",
        folder / "old.parquet",
        "-o",
        folder / "i.parquet",
        "--budget",
        3000,
    )
    found = pd.read_parquet(folder / "i.parquet")
    expected = explainer.importance(new[list(old.columns)], new["default"], budget=3000)
    ordered = np.argsort(-expected.values[:, 0])
    np.testing.assert_allclose(found["importance"], expected.values[ordered, 0], atol=1e-4)
    np.testing.assert_allclose(found["p_value"], expected.p_values[ordered], atol=1e-4)
    assert "mean |SHAP value|" in run(*rows, "--drop", "default").output
    assert "Give background=" in run(*rows, "--label", "default", code=1).output
    assert "--label names" in run(*rows, "--label", "none", code=1).output


def test_cohorts(files: Any) -> None:
    folder, explainer, old, new = files
    pytest.importorskip("matplotlib").use("Agg")
    rows = ("cohorts", folder / "m.fshap", folder / "new.parquet", "--drop", "when", "--drop", "default")
    run(*rows, "--by", "age", "--bins", 2, "-o", folder / "c.csv", "--plot", folder / "c.png")
    expected = explainer.cohorts(new[list(old.columns)], by="age", bins=2)
    found = pd.read_csv(folder / "c.csv")
    np.testing.assert_allclose(found["difference"], expected.differences.reshape(-1), atol=1e-5)
    assert (folder / "c.png").stat().st_size > 1000
    assert "group minus all others" in run(*rows, "--max-leaves", 2).output
    assert "suffix .png" in run(*rows, "--plot", folder / "c.txt", code=1).output


def test_interactions(files: Any) -> None:
    folder, explainer, old, new = files
    pytest.importorskip("matplotlib").use("Agg")
    rows = ("interactions", folder / "m.fshap", folder / "new.parquet", "--drop", "when", "--drop", "default")
    against = ("-b", folder / "old.parquet")
    expected = explainer.interactions(new[list(old.columns)], 3, index="STII", top_k=4)
    asked = (*rows, *against, "--index", "STII", "--top-k", 4)
    for suffix, read in {"parquet": pd.read_parquet, "csv": pd.read_csv}.items():
        run(*asked, "-o", folder / f"sets.{suffix}", "--plot", folder / "sets.png")
        found = read(folder / f"sets.{suffix}")
        assert found["set"].tolist() == list(expected.names)
        np.testing.assert_allclose(found["strength"], expected.strength, atol=1e-5)
    assert (folder / "sets.png").stat().st_size > 1000
    run(*asked, "-o", folder / "sets.json")
    told = json.loads((folder / "sets.json").read_text())
    assert (told["index"], told["order"], told["n_sets"]) == ("STII", 3, expected.n_met)
    triples = run(*rows, *against, "--order", 3, "--min-order", 3).output
    assert "debt x income x age" in triples
    assert "debt x income:" not in triples
    assert "--background" in run(*rows, code=1).output
    page = ("report", *rows[1:], "-o", folder / "page.html", "--interactions", 3)
    run(*page, *against)
    assert '"sets":{"words":["Mean absolute k-SII values' in (folder / "page.html").read_text()
    assert "--background" in run(*page, code=1).output
    assert "index is 'none'" in run(*rows, *against, "--index", "none", code=1).output
    assert "min_order is 3" in run(*rows, *against, "--order", 2, "--min-order", 3, code=1).output


def test_reasons(files: Any) -> None:
    folder, explainer, _old, new = files
    (folder / "text.json").write_text('{"debt": "Your debt of {value} is high."}')
    rows = ("reasons", folder / "m.fshap", folder / "new.parquet", "--drop", "default", "--id", "when")
    run(
        *rows,
        "--text",
        folder / "text.json",
        "--actionable",
        "debt",
        "--top-k",
        2,
        "-o",
        folder / "r.parquet",
    )
    expected = explainer.reasons(
        new.drop(columns="default"),
        2,
        text={"debt": "Your debt of {value} is high."},
        actionable=["debt"],
        ids="when",
    )
    found = pd.read_parquet(folder / "r.parquet")
    assert found["text"].tolist() == list(expected.text)
    assert found["actionable"].tolist() == expected.frame()["actionable"].tolist()
    assert "direction='lowered'" in run(*rows, "--direction", "lowered").output
    (folder / "broken.json").write_text("{")
    assert "is not JSON" in run(*rows, "--text", folder / "broken.json", code=1).output
    assert "same file" in run(*rows, "-o", folder / "new.parquet", code=1).output
