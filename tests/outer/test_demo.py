"""The demo runs, and what it shows is true."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import demo_spectrum as spectrum
import fouriershap as fs
import oracles
from demo_section import Section, show

DEMO = Path(__file__).parents[2] / "examples" / "demo"


def test_the_demo_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(DEMO), run_name="__main__")
    shown = capsys.readouterr().out
    for text in ("shap.TreeExplainer", "every coalition", *spectrum.FEATURES):
        assert text in shown
    for page in ("trees.html", "blackbox.html", "spectrum.html"):
        assert page in shown
        assert (tmp_path / "demo" / page).stat().st_size > 1_000_000
    # What it says about the network is true: its values agree with an enumeration of all coalitions.
    agreement = re.search(r"enumeration to R² (-?[0-9.]+)", " ".join(shown.split()))
    assert agreement is not None and float(agreement[1].rstrip(".")) > 0.9


def test_tables_without_rich(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    show(Section("title", "text", [("", "time"), ("we", "1 s"), ("they", "22 s")], Path("p.html")))
    assert capsys.readouterr().out.splitlines()[-3:-1] == ["we     1 s", "they  22 s"]


def test_the_demos_values_are_the_exponential_definition() -> None:
    people, background = spectrum.random_people(2, 1), spectrum.random_people(20, 0)
    groups = [spectrum.FEATURES[player] for player in spectrum.PLAYERS]
    found = fs.Explainer(fs.walsh_hadamard(spectrum.risk, n_bits=11), background, groups=groups).shap_values(
        people
    )
    expected = oracles.shap_values(spectrum.risk, people, background, spectrum.PLAYERS)[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-9)
