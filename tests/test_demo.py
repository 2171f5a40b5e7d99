"""The demo runs, and what it shows is true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fouriershap as fs
import oracles
from fouriershap import demo


def test_the_demo_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    demo.main()
    shown = capsys.readouterr().out
    assert "share of the variance" in shown
    for feature in demo.FEATURES:
        assert feature in shown
    assert (tmp_path / "demo" / "spectrum.png").stat().st_size > 10_000


def test_the_demos_values_are_the_exponential_definition() -> None:
    people, background = demo.random_people(2, 1), demo.random_people(20, 0)
    spectrum = fs.walsh_hadamard(demo.risk, n_bits=11)
    found = fs.shap_values(spectrum, people, background, players=demo.PLAYERS)
    expected = oracles.shap_values(demo.risk, people, background, demo.PLAYERS)[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-9)
