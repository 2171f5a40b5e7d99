"""Malformed input: one clear line, a non-zero exit, and no output file; for constructors, one clear exception."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

import fouriershap as fs
from cli_files import model_and_rows, save_model, save_rows
from fitted_models import explain_fitted
from fouriershap.cli._app import app

EXPLAIN = "explain m.fshap {} -o out.parquet"
FIT = "fit {} -b rows.parquet -o out.fshap"
CHECK = "check {} rows.parquet --model lightgbm.txt"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that work: models, a pickle, rows, an explainer."""
    folder = tmp_path_factory.mktemp("originals")
    model, X = model_and_rows("lightgbm.txt")
    for name in ("lightgbm.txt", "model.pkl", "model.joblib"):
        save_model(model, folder / name)
    for name in ("xgboost.json", "xgboost.ubj", "catboost.cbm", "sklearn.skops"):
        save_model(model_and_rows(name)[0], folder / name)
    for name in ("rows.parquet", "rows.csv", "rows.arrow"):
        save_rows(X, folder / name)
    fs.TreeExplainer(folder / "lightgbm.txt", X).save(folder / "m.fshap")
    fs.Spectrum([[1, 0]], [1.0]).save(folder / "spectrum.fshap")
    return folder


def rows(change: Callable[[pd.DataFrame], pd.DataFrame], name: str = "bad.parquet") -> Callable[[Path], Any]:
    """Write rows that differ from good ones."""
    return lambda folder: save_rows(change(pd.read_feather(folder / "rows.arrow")), folder / name)


def cut(name: str, target: str, share: float = 0.5) -> Callable[[Path], Any]:
    def make(folder: Path) -> None:
        whole = (folder / name).read_bytes()
        (folder / target).write_bytes(whole[: int(len(whole) * share)])

    return make


def text(target: str, content: str | bytes) -> Callable[[Path], Any]:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / target).write_bytes(data)


def flip(position: int) -> Callable[[Path], Any]:
    def make(folder: Path) -> None:
        changed = bytearray((folder / "m.fshap").read_bytes())
        changed[position] ^= 1
        (folder / "bad.fshap").write_bytes(changed)

    return make


def future(folder: Path) -> None:
    metadata = {"format": "fouriershap", "version": "99", "kind": "tree explainer"}
    save_file({"a": np.ones(1)}, folder / "bad.fshap", metadata=metadata)


def nothing(folder: Path) -> None:
    """The folder as it is."""


def damaged_pages(folder: Path) -> None:
    """A parquet file whose footer is whole, but whose data are not."""
    content = bytearray((folder / "rows.parquet").read_bytes())
    content[4:400] = bytes(396)
    (folder / "bad.parquet").write_bytes(content)


def json_with(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], Any]:
    def make(folder: Path) -> None:
        document = json.loads((folder / "xgboost.json").read_text())
        change(document)
        (folder / "bad.json").write_text(json.dumps(document))

    return make


NESTED = "[" * 100_000


def nested_categories(folder: Path) -> None:
    """A model of LightGBM whose list of labels has no end."""
    whole = (folder / "lightgbm.txt").read_text()
    (folder / "bad.txt").write_text(whole.split("pandas_categorical:")[0] + "pandas_categorical:" + NESTED)


def nest_base_score(document: dict[str, Any]) -> None:
    document["learner"]["learner_model_param"]["base_score"] = NESTED


def nested_header(folder: Path) -> None:
    (folder / "bad.fshap").write_bytes(len(NESTED).to_bytes(8, "little") + NESTED.encode())


def two_of_one_name(folder: Path) -> None:
    table = pq.read_table(folder / "rows.parquet")
    pq.write_table(table.append_column("a", table["a"]), folder / "bad.parquet")


HEADER = "a,colour,b,size\n"
COMMANDS: list[tuple[str, Callable[[Path], Any], str, str]] = [
    # rows
    ("no rows file", nothing, EXPLAIN.format("none.parquet"), "does not exist"),
    ("rows in a folder", lambda f: (f / "d.parquet").mkdir(), EXPLAIN.format("d.parquet"), "d.parquet"),
    ("csv in a folder", lambda f: (f / "d.csv").mkdir(), EXPLAIN.format("d.csv"), "folder"),
    ("suffix of rows", text("rows.xlsx", "a"), EXPLAIN.format("rows.xlsx"), "'.xlsx'"),
    ("no suffix of rows", text("rows", "a"), EXPLAIN.format("rows"), "known are"),
    ("truncated parquet", cut("rows.parquet", "bad.parquet"), EXPLAIN.format("bad.parquet"), "bad.parquet"),
    ("damaged parquet", damaged_pages, EXPLAIN.format("bad.parquet"), "cannot be read"),
    ("empty parquet", text("bad.parquet", ""), EXPLAIN.format("bad.parquet"), "bad.parquet"),
    ("text as parquet", text("bad.parquet", "a,b\n1,2\n" * 9), EXPLAIN.format("bad.parquet"), "bad.parquet"),
    ("truncated arrow", cut("rows.arrow", "bad.arrow"), EXPLAIN.format("bad.arrow"), "bad.arrow"),
    ("empty arrow", text("bad.arrow", ""), EXPLAIN.format("bad.arrow"), "is empty"),
    ("text as arrow", text("bad.arrow", "a,b\n1,2\n" * 9), EXPLAIN.format("bad.arrow"), "bad.arrow"),
    ("empty csv", text("bad.csv", ""), EXPLAIN.format("bad.csv"), "bad.csv"),
    (
        "lines of a csv",
        text("bad.csv", HEADER + "1,red,2\n"),
        EXPLAIN.format("bad.csv"),
        "Expected 4 columns",
    ),
    ("bytes as csv", text("bad.csv", bytes(range(256)) * 9), EXPLAIN.format("bad.csv"), "bad.csv"),
    ("text in a csv", text("bad.csv", HEADER + "1,red,much,10\n"), EXPLAIN.format("bad.csv"), "'much'"),
    ("text in a label", text("bad.csv", HEADER + "1,red,1,big\n"), EXPLAIN.format("bad.csv"), "'big'"),
    (
        "missing column",
        rows(lambda X: X.drop(columns="b")),
        EXPLAIN.format("bad.parquet"),
        "lacks the column 'b'",
    ),
    (
        "extra column",
        rows(lambda X: X.assign(z=1)),
        EXPLAIN.format("bad.parquet"),
        "'z', which the model does not",
    ),
    ("another name", rows(lambda X: X.rename(columns={"b": "B"})), EXPLAIN.format("bad.parquet"), "'b'"),
    ("text in a number", rows(lambda X: X.assign(b="much")), EXPLAIN.format("bad.parquet"), "'b'"),
    ("dates", rows(lambda X: X.assign(b=pd.Timestamp(0))), EXPLAIN.format("bad.parquet"), "'b'"),
    ("lists", rows(lambda X: X.assign(b=[[1]] * len(X))), EXPLAIN.format("bad.parquet"), "'b'"),
    (
        "categories",
        rows(lambda X: X.assign(b=pd.Categorical(["x"] * len(X)))),
        EXPLAIN.format("bad.parquet"),
        "'b'",
    ),
    ("two of one name", two_of_one_name, EXPLAIN.format("bad.parquet"), "two columns named 'a'"),
    ("no such id", nothing, EXPLAIN.format("rows.parquet --id who"), "no column 'who'"),
    ("a feature as id", nothing, EXPLAIN.format("rows.parquet --id a"), "'a', which is a feature"),
    ("nothing to drop", nothing, EXPLAIN.format("rows.parquet --drop who"), "no column 'who' to drop"),
    ("a feature dropped", nothing, EXPLAIN.format("rows.parquet --drop a"), "lacks the column 'a'"),
    ("empty pipe", nothing, EXPLAIN.format("-"), "standard input: is empty"),
    # options
    ("no threads", nothing, EXPLAIN.format("rows.parquet --n-jobs 0"), "n_jobs is 0"),
    ("no reasons", nothing, EXPLAIN.format("rows.parquet --top-k 0"), "top-k"),
    ("format", nothing, EXPLAIN.format("rows.parquet --format xml"), "--format xml"),
    ("parquet to a pipe", nothing, "explain m.fshap rows.parquet -o - --format parquet", "a pipe takes"),
    ("suffix of the output", nothing, "explain m.fshap rows.parquet -o out.xlsx", "'.xlsx'"),
    ("folder of the output", nothing, "explain m.fshap rows.parquet -o no/out.csv", "'no' does not exist"),
    (
        "output is a folder",
        lambda f: (f / "d.csv").mkdir(),
        "explain m.fshap rows.parquet -o d.csv",
        "folder",
    ),
    ("no output", nothing, "explain m.fshap rows.parquet", "--output"),
    ("unknown option", nothing, EXPLAIN.format("rows.parquet --fast"), "--fast"),
    ("unknown command", nothing, "explode m.fshap", "explode"),
    # .fshap files
    ("no explainer", nothing, CHECK.format("none.fshap"), "does not exist"),
    ("not an explainer", nothing, CHECK.format("spectrum.fshap"), "holds a Spectrum"),
    ("tampered data", flip(-1), "explain bad.fshap rows.parquet -o out.csv", "checksum"),
    ("tampered header", flip(200), "explain bad.fshap rows.parquet -o out.csv", "bad.fshap"),
    ("tampered, info", flip(-100), "info bad.fshap", "checksum"),
    ("truncated", cut("m.fshap", "bad.fshap"), "explain bad.fshap rows.parquet -o out.csv", "truncated"),
    ("empty", text("bad.fshap", ""), "info bad.fshap", "bad.fshap"),
    ("a parquet file", nothing, "info rows.parquet", "not a .fshap file"),
    ("nested header", nested_header, "info bad.fshap", "nested too deeply"),
    ("future version", future, "explain bad.fshap rows.parquet -o out.csv", "upgrade"),
    ("a folder", lambda f: (f / "d.fshap").mkdir(), "info d.fshap", "d.fshap"),
    # models
    ("no model", nothing, FIT.format("none.json"), "does not exist"),
    ("suffix of a model", text("m.h5", "x"), FIT.format("m.h5"), "'.h5'"),
    ("no ONNX", text("m.onnx", "x"), FIT.format("m.onnx"), "m.onnx"),
    ("pickle without trust", nothing, FIT.format("model.pkl"), "--trust-pickle"),
    ("joblib without trust", nothing, FIT.format("model.joblib"), "arbitrary code"),
    ("damaged pickle", cut("model.pkl", "bad.pkl"), FIT.format("bad.pkl --trust-pickle"), "unpickled"),
    ("pickle of a number", text("bad.pkl", b"I1\n."), FIT.format("bad.pkl --trust-pickle"), "cannot be read"),
    ("truncated json", cut("xgboost.json", "bad.json"), FIT.format("bad.json"), "bad.json"),
    ("foreign json", text("bad.json", "{}"), FIT.format("bad.json"), "not a model that XGBoost"),
    ("json list", text("bad.json", "[1]"), FIT.format("bad.json"), "bad.json"),
    (
        "json without trees",
        json_with(lambda d: d["learner"].pop("gradient_booster")),
        FIT.format("bad.json"),
        "bad",
    ),
    ("truncated ubj", cut("xgboost.ubj", "bad.ubj"), FIT.format("bad.ubj"), "bad.ubj"),
    ("foreign txt", text("bad.txt", "hello"), FIT.format("bad.txt"), "LightGBM"),
    ("truncated txt", cut("lightgbm.txt", "bad.txt", 0.3), FIT.format("bad.txt"), "bad.txt"),
    ("nested json", text("bad.json", NESTED), FIT.format("bad.json"), "nested too deeply"),
    ("nested trees", text("bad.json", '{"learner":' * 100_000), FIT.format("bad.json"), "nested too deeply"),
    ("nested base score", json_with(nest_base_score), FIT.format("bad.json"), "nested too deeply"),
    ("nested ubj", text("bad.ubj", NESTED), FIT.format("bad.ubj"), "nested too deeply"),
    ("nested labels", nested_categories, FIT.format("bad.txt"), "nested too deeply"),
    ("truncated cbm", cut("catboost.cbm", "bad.cbm"), FIT.format("bad.cbm"), "bad.cbm"),
    ("truncated skops", cut("sklearn.skops", "bad.skops"), FIT.format("bad.skops"), "skops cannot read"),
    ("no background", nothing, "fit xgboost.json -o out.fshap", "--background"),
    (
        "background without rows",
        rows(lambda X: X[:0]),
        "fit lightgbm.txt -b bad.parquet -o out.fshap",
        "rows",
    ),
    ("background lacks", rows(lambda X: X[["a"]]), "fit lightgbm.txt -b bad.parquet -o out.fshap", "lacks"),
    ("suffix of the explainer", nothing, "fit lightgbm.txt -b rows.parquet -o out.bin", ".fshap"),
    ("precision", nothing, FIT.format("lightgbm.txt --precision half"), "precision is 'half'"),
    (
        "check without rows",
        rows(lambda X: X[:0]),
        "check m.fshap bad.parquet --model lightgbm.txt",
        "no rows",
    ),
]


@pytest.mark.parametrize(
    ("make", "command", "message"), [c[1:] for c in COMMANDS], ids=[c[0] for c in COMMANDS]
)
def test_commands(
    originals: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], Any],
    command: str,
    message: str,
) -> None:
    folder = tmp_path / "work"
    shutil.copytree(originals, folder)
    monkeypatch.chdir(folder)
    make(folder)
    before = {path.name for path in folder.iterdir()}
    result = CliRunner().invoke(app, command.split(), input=b"", terminal_width=200)
    assert result.exit_code in (1, 2), result.output
    assert message in result.stderr
    assert "unexpected" not in result.stderr
    if result.exit_code == 1:  # what the parser of options says comes in a box
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.startswith("fouriershap: error: ")
    assert {path.name for path in folder.iterdir()} == before


def sample() -> tuple[Any, np.ndarray]:
    from sklearn.tree import DecisionTreeRegressor

    X = np.arange(12.0).reshape(6, 2)
    return DecisionTreeRegressor(random_state=0).fit(X, X[:, 0]), X


CONSTRUCTORS: list[tuple[str, Callable[[Any, np.ndarray], Any], str]] = [
    ("no model", lambda m, X: fs.TreeExplainer(None, X), "cannot be read"),
    ("not fitted", lambda m, X: fs.TreeExplainer(type(m)(), X), "fitted"),
    ("columns of the background", lambda m, X: fs.TreeExplainer(m, X[:, :1]), "background has 1 columns"),
    ("one-dimensional background", lambda m, X: fs.TreeExplainer(m, X[0]), "background has shape"),
    ("empty background", lambda m, X: fs.TreeExplainer(m, X[:0]), "rows"),
    ("text in the background", lambda m, X: fs.TreeExplainer(m, [["a", "b"]]), "not a number"),
    ("complex background", lambda m, X: fs.TreeExplainer(m, X * 1j), "dtype"),
    ("precision", lambda m, X: fs.TreeExplainer(m, X, precision="half"), "precision is 'half'"),
    ("strategy", lambda m, X: fs.TreeExplainer(m, X, strategy="magic"), "strategy is 'magic'"),
    ("output", lambda m, X: fs.TreeExplainer(m, X, output="log"), "output is 'log'"),
    ("perturbation", lambda m, X: fs.TreeExplainer(m, X, feature_perturbation="x"), "feature_perturbation"),
    ("interventional", lambda m, X: fs.TreeExplainer(m, feature_perturbation="interventional"), "background"),
    ("names", lambda m, X: fs.TreeExplainer(m, X, feature_names=["a"]), "1 names for 2 features"),
    ("weights", lambda m, X: fs.TreeExplainer(m, X, weights=[1.0]), "weights"),
    ("negative weights", lambda m, X: fs.TreeExplainer(m, X, weights=[-1.0] * 6), "weights"),
    ("groups", lambda m, X: fs.TreeExplainer(m, X, groups={"g": ["nope"]}), "group"),
    ("memory", lambda m, X: fs.TreeExplainer(m, X, memory=-1), "memory"),
    ("threads", lambda m, X: fs.TreeExplainer(m, X, n_jobs=0), "n_jobs is 0"),
    ("device", lambda m, X: fs.TreeExplainer(m, X, device="abacus"), "device"),
    ("rows", lambda m, X: fs.TreeExplainer(m, X).shap_values(X[:, :1]), "X has 1 columns"),
    ("budget", lambda m, X: explain_fitted(m.predict, X, budget=0), "budget is 0"),
    ("black box method", lambda m, X: explain_fitted(m.predict, X, method="x"), "method is 'x'"),
    ("one row", lambda m, X: explain_fitted(m.predict, X[:1]), "one row"),
    ("no function", lambda m, X: explain_fitted(3, X), "predict"),
    ("answers", lambda m, X: explain_fitted(lambda x: x[:1, 0], X), "rows"),
    ("frequencies", lambda m, X: fs.Spectrum([[0, 2]], [1.0]), "frequencies"),
    ("coefficients", lambda m, X: fs.Spectrum([[0, 1]], [1.0, 2.0]), "coefficients"),
    ("not finite", lambda m, X: fs.Spectrum([[0, 1]], [np.nan]), "coefficients"),
    (
        "bits of the background",
        lambda m, X: fs.SpectrumExplainer(fs.Spectrum([[0, 1]], [1.0]), X),
        "background",
    ),
    (
        "players",
        lambda m, X: fs.spectra.plan(fs.Spectrum([[0, 1]], [1.0]), 1, 1, players=[0]),
        "players",
    ),
]


@pytest.mark.parametrize(("make", "message"), [c[1:] for c in CONSTRUCTORS], ids=[c[0] for c in CONSTRUCTORS])
def test_constructors(make: Callable[[Any, np.ndarray], Any], message: str) -> None:
    with pytest.raises(fs.FourierShapError, match=message) as caught:
        make(*sample())
    assert len(str(caught.value).splitlines()) == 1


def test_there_are_more_than_fifty() -> None:
    assert len(COMMANDS) + len(CONSTRUCTORS) >= 100
