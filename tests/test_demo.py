"""The demo runs, and what it shows is true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fouriershap as fs
import oracles
from fouriershap.demo import __main__, spectrum


def test_the_demo_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    __main__.main()
    shown = capsys.readouterr().out
    assert "share of the variance" in shown
    assert "shap.TreeExplainer" in shown
    for feature in (*spectrum.FEATURES, "worst area"):
        assert feature in shown
    for picture in ("trees.png", "spectrum.png"):
        assert (tmp_path / "demo" / picture).stat().st_size > 10_000


def test_the_demos_values_are_the_exponential_definition() -> None:
    people, background = spectrum.random_people(2, 1), spectrum.random_people(20, 0)
    found = fs.shap_values(
        fs.walsh_hadamard(spectrum.risk, n_bits=11), people, background, players=spectrum.PLAYERS
    )
    expected = oracles.shap_values(spectrum.risk, people, background, spectrum.PLAYERS)[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-9)
