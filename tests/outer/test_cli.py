"""The command line on files that the real libraries saved."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import fouriershap as fs
from cli_files import MODELS, PICKLES, model_and_rows, read_answer, save_model, save_rows
from fitted_models import explain_fitted
from fouriershap._rows.batch import open_batch
from fouriershap.cli._app import app
from fouriershap.cli._check import ask_library
from fouriershap.cli._models import open_model
from models import CASES, XGBOOST_KEEPS_LABELS, raw_output

runner = CliRunner()
COMMAND = [sys.executable, "-m", "fouriershap.cli"]


def run(*arguments: Any, code: int = 0, **options: Any) -> Any:
    result = runner.invoke(app, [str(argument) for argument in arguments], **options)
    assert result.exit_code == code, result.output
    return result


def fitted(folder: Path, name: str, *options: str) -> tuple[Path, pd.DataFrame, np.ndarray]:
    """A .fshap file made by `fit`, its rows with a key, and what the library in Python says of them."""
    model, X = model_and_rows(name)
    save_model(model, folder / name)
    background = save_rows(X, folder / "background.parquet")
    file = folder / "m.fshap"
    run("fit", folder / name, "--background", background, "-o", file, "--quiet", *options)
    values = fs.TreeExplainer(model, X).compile().shap_values(X)
    return file, X.assign(key=[f"{i:04d}" for i in range(len(X))]), values


@pytest.mark.parametrize("name", MODELS)
def test_fit_explain_and_check_every_kind_of_model(tmp_path: Path, name: str) -> None:
    file, X, values = fitted(tmp_path, name)
    for suffix, out in (
        (".parquet", ".csv"),
        (".csv", ".parquet"),
        (".feather", ".feather"),
        (".arrows", ".arrow"),
    ):
        rows = save_rows(X, tmp_path / f"rows{suffix}")
        answer = tmp_path / f"answer{out}"
        run("explain", file, rows, "-o", answer, "--id", "key")
        found = read_answer(answer)
        assert found.columns.tolist() == ["key", *X.columns[:-1], "base_value"]
        assert found["key"].tolist() == X["key"].tolist()
        np.testing.assert_allclose(found.iloc[:, 1:-1].to_numpy(), values, atol=1e-6)
        checked = run("check", file, rows, "--model", tmp_path / name, "--drop", "key")
        assert checked.output.count(": ok") == 2


@pytest.mark.parametrize("name", PICKLES)
def test_pickles_need_trust(tmp_path: Path, name: str) -> None:
    model, X = model_and_rows(name)
    save_model(model, tmp_path / name)
    background = save_rows(X, tmp_path / "b.parquet")
    arguments = ("fit", tmp_path / name, "-b", background, "-o", tmp_path / "m.fshap")
    assert "arbitrary code" in run(*arguments, code=1).output
    run(*arguments, "--trust-pickle")
    np.testing.assert_allclose(
        fs.load(tmp_path / "m.fshap").shap_values(X), fs.TreeExplainer(model, X).shap_values(X), atol=1e-6
    )


def test_skops_files_with_other_functions_are_refused(tmp_path: Path) -> None:
    """`functools.partial` is let through, what it holds is not."""
    import functools
    import os

    import skops.io
    from sklearn.preprocessing import FunctionTransformer

    skops.io.dump(FunctionTransformer(functools.partial(os.system, "exit 1")), tmp_path / "m.skops")
    with pytest.raises(fs.InputError, match="system, which are not known"):
        open_model(tmp_path / "m.skops", trust_pickle=False)


def test_reasons_plots_and_several_outputs(tmp_path: Path) -> None:
    import xgboost

    case = CASES["xgboost"]["3 classes"]()
    X = pd.DataFrame(case.X, columns=list("abcd"))
    model = xgboost.XGBClassifier(n_estimators=4, n_jobs=1).fit(X, case.model.predict(case.X))
    model.save_model(tmp_path / "m.json")
    rows = save_rows(X, tmp_path / "X.parquet")
    run("fit", tmp_path / "m.json", "-b", rows, "-o", tmp_path / "m.fshap", "--precision", "double")
    run(
        "explain",
        tmp_path / "m.fshap",
        rows,
        "-o",
        tmp_path / "y.csv",
        "--top-k",
        2,
        "--plots",
        tmp_path / "pictures",
    )
    (expected,) = (
        fs.TreeExplainer(model, X, precision="double").compile().explain_batches([X], layout="top_k", top_k=2)
    )
    found = read_answer(tmp_path / "y.csv")
    assert found.columns.tolist() == expected.columns.tolist()
    pd.testing.assert_series_equal(found["feature_1__2"], expected["feature_1__2"], check_dtype=False)
    np.testing.assert_allclose(found["contribution_2__0"], expected["contribution_2__0"])
    pictures = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert pictures == sorted(
        f"{plot}-{o}.png" for plot in ("beeswarm", "bar", "waterfall") for o in range(3)
    )


def test_path_dependent(tmp_path: Path) -> None:
    model, X = model_and_rows("lightgbm.txt")
    save_model(model, tmp_path / "lightgbm.txt")
    run("fit", tmp_path / "lightgbm.txt", "--path-dependent", "-o", tmp_path / "m.fshap")
    run("explain", tmp_path / "m.fshap", save_rows(X, tmp_path / "X.csv"), "-o", tmp_path / "y.parquet")
    expected = fs.TreeExplainer(model).shap_values(X)
    np.testing.assert_allclose(read_answer(tmp_path / "y.parquet").iloc[:, :-1], expected, atol=1e-6)
    assert "path-dependent" in run("info", tmp_path / "m.fshap").output


def test_check_fails_on_another_model(tmp_path: Path) -> None:
    import lightgbm

    file, X, _ = fitted(tmp_path, "lightgbm.txt")
    X = X.drop(columns="key")
    other = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1).fit(X, np.arange(len(X)))
    other.booster_.save_model(tmp_path / "other.txt")
    rows = save_rows(X, tmp_path / "X.parquet")
    result = run("check", file, rows, "--model", tmp_path / "other.txt", code=3)
    assert "additivity: ok" in result.output
    assert "agreement with the model: FAILED" in result.output


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn"])
def test_check_asks_the_library_itself(tmp_path: Path, library: str) -> None:
    """Every kind of model that the readers are tested with, pickled: what its own library predicts."""
    for case in (make() for make in CASES[library].values()):
        if library == "xgboost" and case.name == "frame" and not XGBOOST_KEEPS_LABELS:
            continue
        (tmp_path / "model.pkl").write_bytes(pickle.dumps(case.model))
        table = open_batch(pa.Table.from_pandas(pd.DataFrame(case.X)), (), None).features
        opened = open_model(tmp_path / "model.pkl", trust_pickle=True)
        np.testing.assert_allclose(
            ask_library(opened.reading, opened.path, table),
            raw_output(case.model, case.X),
            rtol=1e-6,
            atol=1e-6,
            err_msg=case.name,
        )


def test_fit_asks_an_estimator_that_was_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lightgbm

    from fouriershap._libraries import registry

    case = CASES["lightgbm"]["frame"]()
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(case.model))
    rows = save_rows(case.X, tmp_path / "X.parquet")
    arguments = ["fit", tmp_path / "model.pkl", "--trust-pickle", "-b", rows, "-o", tmp_path / "m.fshap"]
    run(*arguments)
    read = registry._read_opened
    monkeypatch.setattr(
        registry, "_read_opened", lambda opened: (r := read(opened)).replace(base=r.trees.base + 1.0)
    )
    assert f"disagrees with LightGBM {lightgbm.__version__}" in run(*arguments, code=1).output


def test_check_finds_a_file_that_is_read_wrongly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in our reader is in the explainer and in our reading of the model alike."""
    from fouriershap.cli import _models

    def misread(path: Path) -> fs.Reading:
        right = fs.read_model(path)
        return right.replace(values=right.trees.values * 1.01)

    monkeypatch.setattr(_models, "read_model", misread)
    file, X, _ = fitted(tmp_path, "lightgbm.txt")
    rows = save_rows(X.drop(columns="key"), tmp_path / "X.parquet")
    result = run("check", file, rows, "--model", tmp_path / "lightgbm.txt", code=3)
    assert "additivity: ok" in result.output and "agreement with the model: FAILED" in result.output


def test_info_of_every_kind_of_file(tmp_path: Path) -> None:
    file, _, _ = fitted(tmp_path, "catboost.cbm")
    text = run("info", file).output
    for part in ("catboost", "300 rows", "trees", "colour", "tables", "degree"):
        assert part in text
    h = fs.Spectrum([[1, 0, 0], [1, 1, 0]], [3.0, 4.0])
    h.save(tmp_path / "h.fshap")
    text = run("info", tmp_path / "h.fshap").output
    assert "1: 36.00%" in text and "2: 64.00%" in text
    fs.Explainer(h, np.eye(3)).save(tmp_path / "e.fshap")
    text = run("info", tmp_path / "e.fshap").output
    for part in ("players", "3 rows", "2: 64.00%", "expected value"):
        assert part in text
    bits = np.random.default_rng(0).integers(0, 2, size=(200, 9))
    for method in ("enumerate", "trees"):
        explainer = explain_fitted(lambda x: x[:, 0] * x[:, 1], bits, method=method, budget=600)
        explainer.save(tmp_path / "b.fshap")
        text = run("info", tmp_path / "b.fshap").output
        assert "R² " in text and method in text and "200 rows" in text


def test_a_black_box_explains_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "who": rng.choice(["a", "b"], 200)})
    explainer = explain_fitted(lambda Z: Z["x"] * (Z["who"] == "a"), X, method="trees", budget=500)
    explainer.save(tmp_path / "b.fshap")
    run("explain", tmp_path / "b.fshap", save_rows(X, tmp_path / "X.csv"), "-o", tmp_path / "y.csv")
    np.testing.assert_allclose(
        read_answer(tmp_path / "y.csv").iloc[:, :2], explainer.shap_values(X), atol=1e-6
    )


def test_no_rows_give_an_empty_answer_with_columns(tmp_path: Path) -> None:
    file, X, _ = fitted(tmp_path, "lightgbm.txt")
    for suffix in (".parquet", ".csv", ".arrow", ".arrows"):
        rows = save_rows(X[:0], tmp_path / f"none{suffix}")
        run("explain", file, rows, "-o", tmp_path / f"y{suffix}", "--id", "key")
        answer = read_answer(tmp_path / f"y{suffix}")
        assert len(answer) == 0
        assert answer.columns.tolist() == ["key", "a", "colour", "b", "size", "base_value"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_write_that_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_jobs: int
) -> None:
    """With several threads the writer is one of them: its error must come back, from the last table, too."""
    from fouriershap.cli._output import Writer

    def full(writer: Writer, table: Any) -> None:
        raise OSError(28, "No space left on device")

    file, X, _ = fitted(tmp_path, "lightgbm.txt")
    rows = save_rows(X, tmp_path / "X.parquet")
    monkeypatch.setattr(Writer, "_write", full)
    options = ("-o", tmp_path / "y.parquet", "--id", "key", "--n-jobs", n_jobs)
    assert "No space left" in run("explain", file, rows, *options, code=1).output
    assert not [path for path in tmp_path.iterdir() if "y.parquet" in path.name]


def test_many_batches_and_a_number_that_comes_late(tmp_path: Path) -> None:
    """Types are the model's, not those of the first rows."""
    file, X, values = fitted(tmp_path, "catboost.cbm")
    many = pd.concat([X] * 500, ignore_index=True)
    many["b"] = many["b"].astype(object)
    many.loc[:140_000, "b"] = "1"
    rows = save_rows(many, tmp_path / "many.csv")
    run("explain", file, rows, "-o", tmp_path / "y.parquet", "--id", "key", "--n-jobs", 1)
    answer = read_answer(tmp_path / "y.parquet")
    assert answer["key"].tolist() == many["key"].tolist()
    np.testing.assert_allclose(answer.iloc[-len(X) :, 1:-1], values, atol=1e-6)


# Real processes


def test_ids_and_dropped_columns_are_never_interpreted(tmp_path: Path) -> None:
    file, X, values = fitted(tmp_path, "lightgbm.txt")
    keys = ["NA", "", "None", *X["key"][3:]]
    comment = [""] * (len(X) - 1) + ["text at last"]
    rows = save_rows(X.assign(key=keys, comment=comment), tmp_path / "rows.csv")
    answer = tmp_path / "answer.parquet"
    run("explain", file, rows, "-o", answer, "--id", "key", "--drop", "comment")
    found = pd.read_parquet(answer)
    assert found["key"].tolist() == keys
    np.testing.assert_allclose(found.iloc[:, 1:-1], values, atol=1e-6)


def test_a_model_without_names_takes_numbers_that_come_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from xgboost import XGBRegressor

    monkeypatch.setattr("fouriershap.cli._rows._CSV_BLOCK", 400)
    X = np.vstack([np.tile([[1.0, 2.0]], (200, 1)), [[0.25, np.nan]]])
    model = XGBRegressor(n_estimators=3, max_depth=2).fit(X, X[:, 0])
    model.save_model(tmp_path / "m.json")
    rows = save_rows(pd.DataFrame(X, columns=["u", "v"]).convert_dtypes(), tmp_path / "rows.csv")
    run("fit", tmp_path / "m.json", "--background", rows, "-o", tmp_path / "m.fshap", "--quiet")
    run("explain", tmp_path / "m.fshap", rows, "-o", tmp_path / "a.csv", "--quiet")
    expected = fs.TreeExplainer(model, X).shap_values(X)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "a.csv").iloc[:, :2], expected, atol=1e-6)


@pytest.mark.parametrize("suffix", [".arrow", ".arrows", ".parquet"])
def test_ids_of_changing_categories(tmp_path: Path, suffix: str) -> None:
    file, X, _ = fitted(tmp_path, "lightgbm.txt")
    parts = [
        pa.Table.from_pandas(
            X.iloc[first : first + 20].assign(key=pd.Categorical(X["key"].iloc[first : first + 20])),
            preserve_index=False,
        )
        for first in (0, 20)
    ]
    with pa.ipc.new_stream(tmp_path / "rows.arrows", parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    run("explain", file, tmp_path / "rows.arrows", "-o", tmp_path / f"a{suffix}", "--id", "key", "--quiet")
    assert read_answer(tmp_path / f"a{suffix}")["key"].astype(str).tolist() == X["key"].iloc[:40].tolist()


def test_check_fails_on_what_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, X, _ = fitted(tmp_path, "lightgbm.txt")
    rows = save_rows(X.drop(columns="key"), tmp_path / "rows.parquet")
    monkeypatch.setattr("fouriershap.cli._check._largest_gaps", lambda *_: (0.0, float("nan")))
    result = run("check", file, rows, "--model", tmp_path / "lightgbm.txt", code=3)
    assert "agreement with the model: FAILED" in result.output


def test_pipes(tmp_path: Path) -> None:
    file, X, values = fitted(tmp_path, "lightgbm.txt")
    for suffix, form in ((".csv", "csv"), (".arrows", "arrow")):
        rows = save_rows(X, tmp_path / f"rows{suffix}")
        with rows.open("rb") as stdin:
            command = [*COMMAND, "explain", str(file), "-", "-o", "-", "--id", "key", "--format", form]
            done = subprocess.run(command, stdin=stdin, capture_output=True, check=True)
        assert done.stderr == b""
        answer = tmp_path / f"answer{suffix}"
        answer.write_bytes(done.stdout)
        np.testing.assert_allclose(read_answer(answer).iloc[:, 1:-1].to_numpy(), values, atol=1e-6)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_run_leaves_no_half_file(tmp_path: Path, sent: signal.Signals) -> None:
    file, X, _ = fitted(tmp_path, "lightgbm.txt")
    header, *lines = save_rows(X, tmp_path / "rows.csv").read_text().splitlines(keepends=True)
    answer = tmp_path / "folder" / "answer.csv"
    answer.parent.mkdir()
    answer.write_text("what was there before")
    command = [*COMMAND, "explain", str(file), "-", "-o", str(answer), "--id", "key"]
    # Where these tests run in the background, children would be born deaf to Ctrl-C.
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listening
    )
    assert process.stdin is not None
    process.stdin.write(header + "".join(lines) * 3000)  # more than a block; then the pipe stays open
    process.stdin.flush()
    begin = time.monotonic()
    while sum(path.stat().st_size for path in answer.parent.glob(".answer*")) == 0:
        assert process.poll() is None and time.monotonic() - begin < 60
        time.sleep(0.02)
    process.send_signal(sent)
    process.wait(timeout=60)
    process.stdin.close()
    assert process.returncode == (-9 if sent == signal.SIGKILL else 130)
    assert answer.read_text() == "what was there before"
    if sent != signal.SIGKILL:
        assert list(answer.parent.iterdir()) == [answer]


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    file, X, _ = fitted(tmp_path, "catboost.cbm")
    rows = save_rows(pd.concat([X] * 300), tmp_path / "rows.parquet")
    command = " ".join([*COMMAND, "explain", str(file), str(rows), "-o", "-", "--id", "key", "| head -n 2"])
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2
    assert "Traceback" not in done.stderr


def test_without_the_extra_the_command_says_how_to_install_it() -> None:
    program = "import sys; sys.modules['typer'] = None; from fouriershap.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("pip install 'fouriershap[cli]'")


def test_debug_shows_where(tmp_path: Path) -> None:
    short = run("info", tmp_path / "none.fshap", code=1)
    assert len(short.stderr.splitlines()) == 1
    long = subprocess.run(
        [*COMMAND, "info", "none.fshap", "--debug"], capture_output=True, text=True, check=False
    )
    assert long.returncode == 1
    assert "Traceback" in long.stderr


@pytest.mark.parametrize("kind", ["pipeline of trees", "linear", "pipeline of a linear model"])
def test_check_of_pipelines_and_linear_models(tmp_path, kind):
    import joblib
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y, models = X["a"] - X["b"], {"linear": LinearRegression()}
    models["pipeline of a linear model"] = make_pipeline(StandardScaler(), LinearRegression())
    if kind == "pipeline of trees":
        X["c"] = rng.choice(["x", "y"], 60)
        before = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
        models[kind] = make_pipeline(before, DecisionTreeRegressor(max_depth=3))
    model = models[kind].fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    joblib.dump(models[kind].fit(X, y**2), tmp_path / "other.joblib")
    X.to_parquet(tmp_path / "rows.parquet")
    fs.Explainer(joblib.load(tmp_path / "m.joblib"), X).save(tmp_path / "m.fshap")
    command = [
        "check",
        str(tmp_path / "m.fshap"),
        str(tmp_path / "rows.parquet"),
        "--trust-pickle",
        "--model",
    ]
    good = CliRunner().invoke(app, [*command, str(tmp_path / "m.joblib")])
    assert good.exit_code == 0 and good.output.count("ok") == 2, good.output
    bad = CliRunner().invoke(app, [*command, str(tmp_path / "other.joblib")])
    assert bad.exit_code == 3 and "FAILED" in bad.output, bad.output
