"""Cells of results: a run goes on where it stopped, and measures again what was disturbed or is of another commit."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import _cells
import _common
from _cells import MOST_LOAD, ONE_COMMIT, Cells

QUIET, BUSY = MOST_LOAD / 2, MOST_LOAD * 2


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    monkeypatch.delenv(ONE_COMMIT, raising=False)
    monkeypatch.setattr(_cells, "PATIENCE", 0.0)
    return lambda value: monkeypatch.setattr(os, "getloadavg", lambda: (value, value, value))


def answer(number: float) -> Callable[[], dict[str, Any]]:
    return lambda: {"number": number}


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, load: Callable[[float], None]) -> None:
    load(QUIET)
    path = tmp_path / "x.json"
    cells = Cells(path, ("numpy",), where=("results", "cells"))
    cells.beside = {"method": "as told"}
    assert cells.measure("a", answer(1.0))["number"] == 1.0
    later = Cells(path, ("numpy",), where=("results", "cells"))
    assert later.measure("a", answer(2.0))["number"] == 1.0
    assert later.measure("b", answer(math.inf))["number"] == math.inf
    assert later.measure("a", answer(3.0), again=True)["number"] == 3.0
    document = json.loads(path.read_text())
    assert document["results"]["cells"]["b"]["number"] is None
    cell = document["results"]["cells"]["a"]
    assert {"commit", "source", "versions", "date", "load"} < set(cell)
    assert f"numpy {np.__version__}" in cell["versions"] and "Python" in cell["versions"]


def test_what_was_disturbed_is_measured_again_and_the_quieter_one_stays(
    tmp_path: Path, load: Callable[[float], None]
) -> None:
    cells = Cells(tmp_path / "x.json", ())
    load(BUSY)
    cells.measure("a", answer(1.0))
    load(BUSY + 1)
    assert cells.measure("a", answer(2.0))["number"] == 1.0  # measured, and thrown away
    assert "1 of 1 cells were measured beside other work" in cells.told()
    load(QUIET)
    assert cells.measure("a", answer(3.0))["number"] == 3.0
    assert cells.measure("a", answer(4.0))["number"] == 3.0
    assert "beside other work" not in cells.told()


def test_cells_without_a_note_of_load_are_measured_again(
    tmp_path: Path, load: Callable[[float], None]
) -> None:
    load(QUIET)
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"machine": {}, "cells": {"a": {"number": 1.0}}}))
    cells = Cells(path, ())
    assert "without a note" in cells.told()
    assert cells.measure("a", answer(2.0))["number"] == 2.0


def test_threads_of_its_own_disturb_nobody(tmp_path: Path, load: Callable[[float], None]) -> None:
    cells = Cells(tmp_path / "x.json", ())
    load(MOST_LOAD + 0.8)
    cells.measure("a", answer(1.0), threads=2)
    cells.measure("b", answer(1.0))
    assert cells.is_good("a") and not cells.is_good("b")


def test_a_run_on_one_commit_waits_for_quiet_as_long_as_it_has_patience(
    tmp_path: Path, load: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(BUSY)
    monkeypatch.setenv(ONE_COMMIT, "1")
    monkeypatch.setattr(_cells, "source", lambda: "first")
    monkeypatch.setattr(_cells, "PATIENCE", 20.0)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        load(QUIET if len(slept) == 2 else BUSY)

    monkeypatch.setattr(_cells.time, "sleep", sleep)
    cells = Cells(tmp_path / "x.json", ())
    assert cells.measure("a", answer(1.0))["load"] == QUIET and len(slept) == 2
    load(BUSY)
    assert cells.measure("b", answer(1.0))["load"] == BUSY and sum(slept) == 20.0


def test_one_commit_leaves_out_what_nobody_wants_and_the_page_follows_each_cell(
    tmp_path: Path, load: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(QUIET)
    path = tmp_path / "x.json"
    monkeypatch.setattr(_cells, "source", lambda: "first")
    cells = Cells(path, (), wanted=("b", "a"))
    cells.measure("old", answer(1.0))
    cells.measure("a", answer(1.0))
    cells.page = lambda: " ".join(cells.found)
    cells.measure("b", answer(1.0))
    assert path.with_suffix(".md").read_text() == "b a old"
    assert list(Cells(path, (), wanted=("b", "a")).found) == ["b", "a", "old"]
    monkeypatch.setenv(ONE_COMMIT, "1")
    assert list(Cells(path, (), wanted=("b", "a")).found) == ["b", "a"]


def test_one_commit_counts_what_was_measured_on_other_sources_as_missing(
    tmp_path: Path, load: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(QUIET)
    path = tmp_path / "x.json"
    monkeypatch.setattr(_cells, "source", lambda: "first")
    Cells(path, ()).measure("a", answer(1.0))
    monkeypatch.setattr(_cells, "source", lambda: "second")
    assert Cells(path, ()).measure("a", answer(2.0))["number"] == 1.0
    monkeypatch.setenv(ONE_COMMIT, "1")
    load(BUSY)  # even so: what there is, is of another commit
    assert Cells(path, ()).measure("a", answer(3.0))["number"] == 3.0
    load(QUIET)
    assert Cells(path, ()).measure("a", answer(4.0))["number"] == 4.0
    assert Cells(path, ()).measure("a", answer(5.0))["number"] == 4.0
    assert not Cells(path, ("pytest",)).is_good("a")  # other libraries were noted


@pytest.mark.parametrize(("state", "word"), [("abc+", "changed"), ("unknown", "in no clone")])
def test_one_commit_refuses_what_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, word: str
) -> None:
    monkeypatch.setenv(ONE_COMMIT, "1")
    monkeypatch.setattr(_cells, "source", lambda: state)
    with pytest.raises(SystemExit, match=word):
        Cells(tmp_path / "x.json", ())


def test_the_source_is_that_of_the_package_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    for folder in ("src", "benchmarks/results"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("1")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    monkeypatch.setattr(_common, "RESULTS", tmp_path / "benchmarks" / "results")
    first = (_common.source(), _common.commit())
    (tmp_path / "benchmarks" / "results" / "x.json").write_text("{}")
    git("add", ".")
    git("commit", "-m", "results")
    assert (_common.source(), _common.commit()) == first
    (tmp_path / "src" / "a.py").write_text("2")
    assert _common.source() == f"{first[0]}+"
    git("commit", "-am", "two")
    assert _common.source() not in (first[0], f"{first[0]}+")
    assert _common.commit() not in (first[1], f"{first[1]}+")
