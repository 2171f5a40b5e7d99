"""What the command line writes: never over its inputs, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner
from xgboost import XGBRegressor

from fouriershap.cli._app import app
from fouriershap.cli._output import escape_formulas

COMMAND = [sys.executable, "-m", "fouriershap.cli"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, rows with columns and ids that look like formulas, and the explainer of both."""
    folder = tmp_path_factory.mktemp("outputs")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"=a": rng.normal(size=40), "b": rng.normal(size=40)})
    XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(X, X["=a"] * X["b"]).save_model(
        folder / "model.json"
    )
    X.to_csv(folder / "background.csv", index=False)
    ids = ["=HYPERLINK(1)", "+1+1", "-cmd", "@sum", "\ttab", "plain", "-3.5", "+41791234567"]
    ids = [*ids, *(f"P{i}" for i in range(len(ids), len(X)))]
    X.assign(patient=ids).to_parquet(folder / "rows.parquet")
    run("fit", folder / "model.json", "-b", folder / "background.csv", "-o", folder / "m.fshap", "-q")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may do to what it likes."""
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def run(*arguments: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def spellings(path: Path, suffix: str) -> list[Path]:
    """The same file under other names that end in ``suffix``."""
    hard, soft = path.with_name(f"hard{suffix}"), path.with_name(f"soft{suffix}")
    os.link(path, hard)
    soft.symlink_to(path.name)
    through = path.parent / "folder"
    through.symlink_to(path.parent)
    return [hard, soft, through / hard.name, path.parent / "folder" / ".." / path.parent.name / soft.name]


COMMANDS = {
    "fit": (["fit", "model.json", "-b", "background.csv"], ".fshap", ("model.json", "background.csv")),
    "explain": (["explain", "m.fshap", "rows.parquet"], ".csv", ("m.fshap", "rows.parquet")),
    "report": (["report", "m.fshap", "rows.parquet"], ".html", ("m.fshap", "rows.parquet")),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_input_is_written_over(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(folder)
    arguments, suffix, inputs = COMMANDS[command]
    for name in inputs:
        before = (folder / name).read_bytes()
        for other in spellings(folder / name, suffix):
            result = run(*arguments, "-o", other, code=1)
            assert "is the same file as the input" in result.output and name in result.output
            assert (folder / name).read_bytes() == before
        for made in ("hard" + suffix, "soft" + suffix, "folder"):
            (folder / made).unlink()


def test_neither_by_the_same_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for spelled in ("rows.parquet", "./rows.parquet", str(folder / "rows.parquet")):
        assert "is the same file" in run("explain", "m.fshap", spelled, "-o", "rows.parquet", code=1).output
    run("fit", "model.json", "-b", "background.csv", "-o", "again.fshap")
    run("fit", "model.json", "-b", "background.csv", "-o", "again.fshap")  # an old output may go


@pytest.mark.parametrize(
    "command",
    [
        "explain m.fshap - -o background.csv < background.csv",
        "explain m.fshap background.csv -o - >> background.csv",
        "explain m.fshap - -o - < background.csv >> background.csv",
    ],
)
def test_nor_by_the_shell(folder: Path, command: str) -> None:
    before = (folder / "background.csv").read_bytes()
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(COMMAND)} {command}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "is the same file as the input" in done.stderr
    assert (folder / "background.csv").read_bytes() == before


def test_devices_and_pipes_are_no_files(folder: Path) -> None:
    """A file that is put in the place of one would look like success."""
    os.mkfifo(folder / "pipe.csv")
    output = run("explain", folder / "m.fshap", folder / "background.csv", "-o", folder / "pipe.csv", code=1)
    assert "is a device or a pipe" in output.output
    assert stat.S_ISFIFO((folder / "pipe.csv").stat().st_mode)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_holds_nothing_that_a_spreadsheet_runs(folder: Path) -> None:
    """Ids, names of columns, reasons and their values; numbers stay numbers."""
    common = ("explain", folder / "m.fshap", folder / "rows.parquet", "--id", "patient")
    run(*common, "-o", folder / "columns.csv")
    columns = rows_of(folder / "columns.csv")
    assert list(columns[0]) == ["patient", "'=a", "b", "base_value"]
    assert [row["patient"] for row in columns[:8]] == [
        "'=HYPERLINK(1)",
        "'+1+1",
        "'-cmd",
        "'@sum",
        "'\ttab",
        "plain",
        "-3.5",
        "+41791234567",
    ]
    assert any(float(row["b"]) < 0 for row in columns)
    run(*common, "-o", folder / "reasons.csv", "--top-k", 2)
    reasons = rows_of(folder / "reasons.csv")
    assert {row["feature_1"] for row in reasons} == {"'=a", "b"}
    assert any(row["value_1"].startswith("-") for row in reasons)
    assert all(float(row["value_1"]) for row in reasons)
    piped = run(*common, "-o", "-").output
    assert "'=HYPERLINK" in piped and '"\'=a"' in piped


def test_raw_text_leaves_all_as_it_is(folder: Path) -> None:
    common = ("explain", folder / "m.fshap", folder / "rows.parquet", "--id", "patient")
    run(*common, "-o", folder / "raw.csv", "--raw-text")
    rows = rows_of(folder / "raw.csv")
    assert list(rows[0]) == ["patient", "=a", "b", "base_value"] and rows[0]["patient"] == "=HYPERLINK(1)"
    run(*common, "-o", folder / "plain.parquet")  # no spreadsheet opens these as text
    assert pd.read_parquet(folder / "plain.parquet")["patient"][0] == "=HYPERLINK(1)"


RUN = [
    "=1",
    "+x",
    "-x",
    "@x",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    "-",
    "-1-2",
    "+1 2",
    "-1\n",
    "+.",
]
LEFT = [
    "",
    "x",
    "x=1",
    "'=1",
    "1-2",
    "-1",
    "+1.5",
    "-.5",
    "-1.",
    "-2.5e-07",
    "+1E5",
    "-inf",
    "inf",
    "1@2",
    None,
]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
def test_texts_of_every_type(kind: Any) -> None:
    table = escape_formulas(pa.table({"x": pa.array([*RUN, *LEFT]).cast(kind)}))
    assert table["x"].cast(pa.string()).to_pylist() == [*(f"'{text}" for text in RUN), *LEFT]
    empty = escape_formulas(pa.table({"=x": pa.array([], kind)}))
    assert empty.column_names == ["'=x"] and empty.num_rows == 0


def test_what_is_no_text_stays() -> None:
    table = pa.table({"x": [-1.5, float("-inf")], "k": [-1, 2], "b": [True, None]})
    assert escape_formulas(table).equals(table)
