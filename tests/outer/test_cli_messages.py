"""What the command line says holds at most 80 characters of any argument, name or cell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner
from xgboost import XGBRegressor

import fouriershap as fs
from fouriershap.cli import _errors
from fouriershap.cli._app import app

LONG = "x" * 10_000
NAME = "x" * 240  # as long as a file may be called


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and an explainer of columns with long names, rows, and bad ones."""
    folder = tmp_path_factory.mktemp("messages")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=[LONG, "b"])
    model = XGBRegressor(n_estimators=2, max_depth=2).fit(X, X["b"])
    model.save_model(folder / "model.json")
    fs.TreeExplainer(model, X).save(folder / "m.fshap")
    X.to_csv(folder / "rows.csv", index=False)
    X.to_parquet(folder / "rows.parquet")
    X.assign(b=LONG).to_csv(folder / "text.csv", index=False)
    X.assign(b=LONG).to_parquet(folder / "text.parquet")
    X.rename(columns={"b": "y" + LONG}).to_csv(folder / "other.csv", index=False)
    X.assign(**{"y" + LONG: 1}).to_parquet(folder / "more.parquet")
    (folder / "twice.csv").write_text(f"{LONG},{LONG}\n1,2\n")
    (folder / "cells.csv").write_text(f"{LONG},b\n1,2,{LONG}\n")
    (folder / "noise.parquet").write_text(LONG)
    (folder / "noise.fshap").write_text(LONG)
    (folder / "noise.json").write_text(f'{{"{LONG}": 1}}')
    (folder / f"{NAME}.csv").write_text("a,b\n1,2\n")
    return folder


COMMANDS = [
    LONG,
    f"--{LONG}",
    f"info m.fshap {LONG}",
    f"info --{LONG}",
    f"info {LONG}",
    f"info {NAME}.csv",
    f"explain {LONG} rows.csv -o y.csv",
    f"explain m.fshap {LONG}.csv -o y.csv",
    f"explain m.fshap {LONG} -o y.csv",
    f"explain m.fshap rows.csv -o {LONG}.csv",
    f"explain m.fshap rows.csv -o {LONG}",
    f"explain m.fshap rows.csv -o {NAME}/y.csv",
    f"explain m.fshap {NAME}.csv -o {NAME}.csv",
    f"explain m.fshap {NAME}.csv -o y.csv",
    f"explain m.fshap rows.csv -o y.csv --id {LONG}y",
    f"explain m.fshap rows.csv -o y.csv --id {LONG}",
    f"explain m.fshap rows.csv -o y.csv --drop {LONG}y",
    f"explain m.fshap rows.csv -o y.csv --drop {LONG}",
    f"explain m.fshap rows.csv -o y.csv --top-k {LONG}",
    f"explain m.fshap rows.csv -o y.csv --n-jobs {LONG}",
    f"explain m.fshap rows.csv -o y.csv --format {LONG}",
    "explain m.fshap text.csv -o y.csv",
    "explain m.fshap text.parquet -o y.csv",
    "explain m.fshap other.csv -o y.csv",
    "explain m.fshap more.parquet -o y.csv",
    "explain m.fshap twice.csv -o y.csv",
    "explain m.fshap cells.csv -o y.csv",
    "explain m.fshap noise.parquet -o y.csv",
    "explain noise.fshap rows.csv -o y.csv",
    f"fit {LONG}.json -b rows.csv -o y.fshap",
    f"fit model.json -b rows.csv -o y.fshap --precision {LONG}",
    f"fit model.json -b rows.csv -o {LONG}.fshap",
    f"fit model.json -b {LONG}.csv -o y.fshap",
    "fit model.json -b other.csv -o y.fshap",
    "fit noise.json -b rows.csv -o y.fshap",
    f"report m.fshap rows.csv -o {LONG}.html",
    "report m.fshap other.csv -o y.html",
    f"check m.fshap rows.csv --model {LONG}",
    "check m.fshap text.parquet --model model.json",
]


def check(text: str) -> None:
    flat = re.sub(r"[\s│]", "", text)  # what rich has wrapped
    assert "x" * 81 not in flat, text[:2000]
    assert len(text) < 2500, text[:2000]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: re.sub("x{9,}", "LONG", c))
def test_no_message_holds_a_long_value(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code in (1, 2) and result.output
    check(result.output)


def test_descriptions_are_short_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    check(CliRunner().invoke(app, ["info", "m.fshap"]).output)
    result = CliRunner().invoke(app, ["explain", "m.fshap", "rows.csv", "-o", f"{NAME[:200]}.csv"])
    assert result.exit_code == 0, result.output
    check(result.output)


@pytest.mark.parametrize(
    ("warning", "most"), [(UserWarning(f"{LONG} " * 100), 450), (fs.FidelityWarning("word " * 200), 1100)]
)
def test_warnings_of_libraries(capsys: pytest.CaptureFixture[str], warning: Warning, most: int) -> None:
    with warnings.catch_warnings():
        warnings.showwarning = _errors._show_warning
        warnings.warn(warning, stacklevel=1)
    text = capsys.readouterr().err
    assert len(text) < most and text.startswith("fouriershap: warning: ") and text.count("\n") == 1
    check(text)


def test_errors_of_the_system(folder: Path) -> None:
    """A real process, whose options the shell gives: one line on standard error."""
    command: list[Any] = [sys.executable, "-m", "fouriershap.cli", "info", LONG[:3000]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    check(done.stderr)
