"""`fouriershap fit` of models that can only be asked, and of the formats of trees that are files or folders."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fouriershap as fs
import oracles
from cli_files import read_answer, save_rows
from fouriershap.cli._app import app
from models import CASES, numbers
from onnx_models import random_ensemble, run_onnx, save_network

runner = CliRunner()
FAST = ("--budget", 600, "--random-state", 0)  # for rows of few levels: every combination is asked


def run(*arguments: Any, code: int = 0) -> Any:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def rows_file(folder: Path, X: Any = None) -> Path:
    """By default of three columns with the levels 0, 1 and 2."""
    few = np.random.default_rng(0).integers(0, 3, (80, 3)).astype(np.float64)
    return save_rows(pd.DataFrame(few, columns=["a", "b", "c"]) if X is None else X, folder / "rows.parquet")


def network(path: Path, **options: Any) -> Path:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    return save_network(path, **options)


def asked(model: Path, rows: Path) -> np.ndarray:
    import onnx

    return run_onnx(onnx.load(str(model)), pd.read_parquet(rows))


def explained(folder: Path, file: Path, rows: Path) -> np.ndarray:
    run("explain", file, rows, "-o", folder / "values.csv", "-q")
    return read_answer(folder / "values.csv").to_numpy()


def test_a_network_of_onnx(tmp_path: Path) -> None:
    rows = rows_file(tmp_path, pd.DataFrame(numbers()[:80, :3], columns=["a", "b", "c"]))
    model, file = network(tmp_path / "net.onnx"), tmp_path / "net.fshap"
    said = run("fit", model, "-b", rows, "-o", file, "--budget", 1500, "--random-state", 0).output
    assert "0 ensembles of trees" in said and "certificate: R²" in said
    assert "fidelity: R² " in said and "queries" in said
    explainer = fs.load(file)
    assert explainer.fidelity.shap.r2 > 0.95 and explainer.fidelity.n_queries <= 1500
    want = asked(model, rows)[:, 0]
    sums = explained(tmp_path, file, rows).sum(axis=1)
    assert 1 - ((sums - want) ** 2).mean() / want.var() > 0.95


@pytest.mark.parametrize("batch", [None, 7])
def test_networks_exported_for_batches_of_one_size(tmp_path: Path, batch: int | None) -> None:
    """The last batch is filled up."""
    model, rows = network(tmp_path / "net.onnx", batch=batch), rows_file(tmp_path)
    run("fit", model, "-b", rows, "-o", tmp_path / "m.fshap", *FAST, "-q")
    want = asked(network(tmp_path / "any.onnx"), rows)[:, 0]
    np.testing.assert_allclose(explained(tmp_path, tmp_path / "m.fshap", rows).sum(axis=1), want, atol=1e-5)


def test_answers_are_kept_and_not_asked_for_again(tmp_path: Path) -> None:
    rows, kept = rows_file(tmp_path), tmp_path / "said.sqlite"
    values = []
    for seed in (0, 1):  # another network, but it is not asked any more
        model = network(tmp_path / "net.onnx", n_outputs=2, seed=seed)
        run("fit", model, "-b", rows, "-o", tmp_path / "m.fshap", *FAST, "--answers", kept)
        values.append(explained(tmp_path, tmp_path / "m.fshap", rows))
    assert kept.read_bytes().startswith(b"SQLite format 3")
    np.testing.assert_array_equal(*values)


def test_an_estimator_of_skops(tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io")
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = rows_file(tmp_path)
    X = pd.read_parquet(rows)
    net = MLPRegressor(hidden_layer_sizes=(5,), max_iter=50, random_state=0)
    for name, model, table in (
        ("framed", make_pipeline(StandardScaler(), net), X),
        ("plain", net, X.to_numpy()),
    ):
        model.fit(table, X["a"] * X["b"])
        skops.dump(model, tmp_path / f"{name}.skops")
        said = run("fit", tmp_path / f"{name}.skops", "-b", rows, "-o", tmp_path / "m.fshap", *FAST).output
        assert "fidelity: R² 1.0000" in said and "warning" not in said
        sums = explained(tmp_path, tmp_path / "m.fshap", rows).sum(axis=1)
        np.testing.assert_allclose(sums, model.predict(table), atol=1e-5)
    wide = rows_file(tmp_path, X.assign(extra=1.0))
    said = run("fit", tmp_path / "framed.skops", "-b", wide, "-o", tmp_path / "m.fshap", code=1)
    assert "'extra'" in said.output and "--drop" in said.output


MODULE = """
def score(rows):
    return rows["a"] * rows["b"] + (rows["colour"] == "red")

def broken(rows):
    raise ValueError("out of order")

number = 3
"""


def test_functions_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found in the folder of now, as `python -m` finds them."""
    (tmp_path / "functions_to_ask.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    few = pd.read_parquet(rows_file(tmp_path))
    rows = rows_file(tmp_path, few[["a", "b"]].assign(colour=np.resize(["red", "blue", "green"], len(few))))
    options = ("-b", rows, "-o", "m.fshap", *FAST)
    assert "fidelity: R² 1.0000" in run("fit", "functions_to_ask:score", *options).output
    explainer = fs.load(tmp_path / "m.fshap")
    assert explainer.known_labels.keys() == {"colour"} and explainer.fitted.method == "enumerate"
    for name, said in (
        ("functions_to_ask:nothing", "cannot be imported"),
        ("not_there:score", "cannot be imported"),
        ("functions_to_ask:number", "is a int, which cannot be called"),
        ("functions_to_ask:broken", "out of order"),
    ):
        assert said in " ".join(run("fit", name, *options, code=1).output.split())


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    rows, out = rows_file(tmp_path), tmp_path / "m.fshap"
    net = network(tmp_path / "net.onnx")
    trees = tmp_path / "trees.onnx"
    trees.write_bytes(random_ensemble(n_features=3).SerializeToString())
    for arguments, said in (
        ((net, "--path-dependent"), "needs --background"),
        ((net, "-b", rows, "--precision", "double"), "no --precision"),
        (
            (trees, "-b", rows, "--budget", 10, "--random-state", 1),
            "is read exactly; --budget, --random-state",
        ),
        ((trees, "--path-dependent"), "training rows"),
        ((net, "-b", rows, "--drop", "a"), "rows have 2 columns"),
        ((tmp_path / "model.h5", "-b", rows), "package.module:function"),
    ):
        assert said in " ".join(run("fit", *arguments, "-o", out, code=1).output.split())
    assert not out.exists()


@pytest.mark.skipif("onnx" not in CASES, reason="onnx or onnxruntime is not installed")
def test_trees_of_onnx_are_exact_and_checked(tmp_path: Path) -> None:
    model = random_ensemble(n_features=3, tracks=True)
    (tmp_path / "trees.onnx").write_bytes(model.SerializeToString())
    rows, file = rows_file(tmp_path), tmp_path / "m.fshap"
    assert "Explainer(trees" in run("fit", tmp_path / "trees.onnx", "-b", rows, "-o", file).output
    sums = explained(tmp_path, file, rows).sum(axis=1)
    np.testing.assert_allclose(sums, run_onnx(model, pd.read_parquet(rows))[:, 0], atol=1e-5)
    assert run("check", file, rows, "--model", tmp_path / "trees.onnx").output.count(": ok") == 2
    said = run("check", file, rows, "--model", network(tmp_path / "net.onnx"), code=1)
    assert "black box" in said.output


@pytest.mark.skipif("ydf" not in CASES, reason="ydf is not installed")
def test_a_folder_of_ydf(tmp_path: Path) -> None:
    model, X, _ = CASES["ydf"]["boosted trees"]()
    model.save(str(tmp_path / "model"))
    rows, file = rows_file(tmp_path, X), tmp_path / "m.fshap"
    run("fit", tmp_path / "model", "-b", rows, "-o", file)
    assert run("check", file, rows, "--model", tmp_path / "model").output.count(": ok") == 2


def test_estimators_that_are_read_are_not_asked(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    y = (frame["a"] - frame["b"] > 0).astype(int)
    frame.to_parquet(tmp_path / "X.parquet")
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, y)
    trees = make_pipeline(StandardScaler(), RandomForestRegressor(5, max_depth=3, random_state=0)).fit(
        frame, y
    )
    strange = make_pipeline(FunctionTransformer(np.tanh), LogisticRegression()).fit(frame, y)
    for name, model in {"linear": linear, "trees": trees, "strange": strange}.items():
        (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps(model))
    fit = ("-b", tmp_path / "X.parquet", "-o", tmp_path / "m.fshap", "--trust-pickle")
    said = run("fit", tmp_path / "linear.pkl", *fit, "--model-output", "probability").output
    assert "Explainer(products" in said
    explainer = fs.load(tmp_path / "m.fshap")
    np.testing.assert_allclose(explainer.predict(frame), linear.predict_proba(frame)[:, 1], atol=1e-9)
    assert "Explainer(trees" in run("fit", tmp_path / "trees.pkl", *fit).output
    np.testing.assert_allclose(fs.load(tmp_path / "m.fshap").predict(frame), trees.predict(frame), atol=1e-6)
    for name, more in {"linear": FAST, "strange": FAST}.items():
        assert "fidelity" in run("fit", tmp_path / f"{name}.pkl", *fit, *more).output
    assert (
        "is a black box"
        in run("fit", tmp_path / "strange.pkl", *fit, "--model-output", "probability", code=1).output
    )


@pytest.mark.parametrize("file", ["rows.csv", "rows.parquet", "categories.parquet"])
@pytest.mark.parametrize("encoder", ["ignores", "refuses", "imputed"])
def test_labels_that_a_file_lacks_are_those_that_the_encoder_lacked(
    tmp_path: Path, encoder: str, file: str
) -> None:
    """A null of a file is what the Pipeline was trained on, read from the same file by pandas."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    cities = rng.choice(np.array(["Bern", "Zug", None], dtype=object), 120)
    rows = pd.DataFrame({"city": cities, "age": rng.normal(size=120).round(1)})
    if file.startswith("categories"):
        rows = rows.astype({"city": "category"})
    path = tmp_path / file
    if file.endswith("csv"):
        rows.to_csv(path, index=False)
        X = pd.read_csv(path)
    else:
        rows.to_parquet(path, index=False)
        X = pd.read_parquet(path)
    if encoder == "imputed" and any(city is None for city in X["city"]):
        pytest.skip("pandas before 3 reads None here, which this imputer does not take for missing")
    y = X["city"].astype(object).map({"Bern": 0.0, "Zug": 5.0}).fillna(-10.0).astype(float) + X["age"]
    by_word = SimpleImputer(strategy="constant", fill_value="none", missing_values=np.nan)
    steps = {
        "ignores": OneHotEncoder(handle_unknown="ignore"),
        "refuses": OneHotEncoder(),
        "imputed": make_pipeline(by_word, OneHotEncoder(handle_unknown="ignore")),
    }
    first = make_column_transformer((steps[encoder], ["city"]), remainder="passthrough")
    pipeline = make_pipeline(first, RandomForestRegressor(10, random_state=0)).fit(X, y)
    (tmp_path / "p.pkl").write_bytes(pickle.dumps(pipeline))
    saved, answer = tmp_path / "p.fshap", tmp_path / "answer.csv"
    run("fit", tmp_path / "p.pkl", "--trust-pickle", "--background", path, "-o", saved)
    run("explain", saved, path, "-o", answer)
    sums = pd.read_csv(answer).sum(axis=1).to_numpy()
    np.testing.assert_allclose(sums, pipeline.predict(X), rtol=0, atol=1e-4)


@pytest.mark.parametrize("form", ["path", "bytes", "model"])
def test_a_network_of_onnx_through_the_explainer(form: str, tmp_path: Path) -> None:
    import onnx

    frame = pd.DataFrame(numbers()[:40, :3], columns=["a", "b", "c"])
    path = network(tmp_path / "net.onnx", n_outputs=2)
    model = {"path": path, "bytes": path.read_bytes(), "model": onnx.load(str(path))}[form]
    with pytest.warns(fs.ModelWarning, match="explained as a black box"):
        explainer = fs.Explainer(model, frame, tolerance=0.001)
    want = run_onnx(onnx.load(str(path)), frame)
    np.testing.assert_allclose(explainer.predict(frame), want, atol=1e-5)
    values, errors = explainer.shap_values(frame[:3], errors=True)
    ask = lambda rows: run_onnx(onnx.load(str(path)), rows)  # noqa: E731
    exact = oracles.shap_values(ask, frame[:3].to_numpy(), frame.to_numpy())
    assert (np.abs(values - exact) <= 5 * errors + 1e-5).all()
    arrays = fs.BlackBoxExplainer(model, frame.to_numpy(), tolerance=0.001)
    np.testing.assert_allclose(arrays.predict(frame.to_numpy()), want, atol=1e-5)
    with pytest.raises(fs.InputError, match="but rows have 2"):
        fs.BlackBoxExplainer(model, frame[["a", "b"]]).predict(frame[["a", "b"]])
