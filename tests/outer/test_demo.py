"""The demo runs, and what it shows is true."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fouriershap as fs
import oracles
from fouriershap.demo import __main__, spectrum
from fouriershap.demo._page import Section, show


def test_the_demo_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    __main__.main()
    shown = capsys.readouterr().out
    for text in ("shap.TreeExplainer", "every coalition", *spectrum.FEATURES):
        assert text in shown
    assert "report.html" in shown and (tmp_path / "demo" / "report.html").stat().st_size > 1_000_000
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    for picture in ("trees.png", "blackbox.png", "spectrum.png"):
        assert (tmp_path / "demo" / picture).stat().st_size > 10_000
        assert f'src="{picture}"' in page
    # What it says of the network is true: its values agree with an enumeration of all coalitions.
    agreement = re.search(r"enumeration to R² (-?[0-9.]+)", page)
    assert agreement is not None and float(agreement[1].rstrip(".")) > 0.9


def test_tables_without_rich(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    show(Section("title", "text", [("", "time"), ("we", "1 s"), ("they", "22 s")], Path("p.png")))
    assert capsys.readouterr().out.splitlines()[-3:] == ["we     1 s", "they  22 s", ""]


def test_the_demos_values_are_the_exponential_definition() -> None:
    people, background = spectrum.random_people(2, 1), spectrum.random_people(20, 0)
    found = fs.spectra.shap_values(
        fs.walsh_hadamard(spectrum.risk, n_bits=11), people, background, players=spectrum.PLAYERS
    )
    expected = oracles.shap_values(spectrum.risk, people, background, spectrum.PLAYERS)[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-9)
