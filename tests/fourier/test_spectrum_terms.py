"""Spectra that people read: the largest terms by name, and the picture."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from strategies import spectra


@settings(max_examples=60, deadline=None)
@given(spectra(max_bits=9), st.integers(0, 20))
def test_the_largest_terms_are_those_of_the_energy_curve(h: fs.Spectrum, k: int) -> None:
    top = h.top_terms(k)
    assert len(top) == min(k, int((h.degrees > 0).sum()))
    assert (np.diff(top.share) <= 0).all()
    assert (top.share <= 1 + 1e-12).all()
    if h.variance > 0:
        np.testing.assert_allclose(np.cumsum(top.share), h.energy_curve()[:k])
    of_term = {f.tobytes(): c for f, c in zip(h.frequencies, h.coefficients, strict=True)}
    for label, frequency, coefficient in zip(top.labels, top.frequencies, top.coefficients, strict=True):
        assert label == " × ".join(f"x{bit}" for bit in np.flatnonzero(frequency))
        np.testing.assert_array_equal(of_term[frequency.tobytes()], coefficient)
    assert repr(top).startswith(f"TopTerms({len(top)} term")


def test_names_and_the_sign() -> None:
    """A named bit with the coefficient -1/2 raises the function by 1 where it is 1."""
    h = fs.walsh_hadamard(lambda rows: 1.0 * rows[:, 0] + 4.0 * rows[:, 1] * rows[:, 2], 3)
    top = h.top_terms(4, names=["pressure", "temp=high", "valve"])
    assert dict(zip(top.labels, top.coefficients.tolist(), strict=True)) == {
        "temp=high": -1.0,
        "valve": -1.0,
        "temp=high × valve": 1.0,
        "pressure": -0.5,
    }
    assert top.labels[3] == "pressure"
    assert top.share.sum() == pytest.approx(1.0)
    assert "temp=high × valve" in repr(top) and "30.8 %" in repr(top)


def test_long_tables_say_what_they_leave_out() -> None:
    h = fs.Spectrum(np.eye(30), np.arange(1.0, 31.0)[:, None] * np.ones(6))
    assert repr(h.top_terms(30)).endswith("... 10 more")
    assert repr(h.top_terms(1)).count("+30") == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top_k": -1}, "top_k is -1"),
        ({"top_k": 2.0}, "top_k is 2.0"),
        ({"names": ["a"]}, "each of the 2 bits"),
        ({"names": "ab"}, "each of the 2 bits"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(fs.InputError, match=message):
        fs.Spectrum([[1, 1]], [1.0]).top_terms(**arguments)


@pytest.mark.parametrize("n_terms", [0, 1, 2, 200])
def test_the_picture_shows_the_curve_and_the_degrees(n_terms: int) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(0)
    h = fs.Spectrum(rng.random((n_terms, 12)) < 0.3, rng.standard_normal((n_terms, 2)))
    curve, degrees = h.plot()
    np.testing.assert_array_equal(curve.lines[0].get_ydata(), h.energy_curve())
    heights = np.array([bar.get_height() for bar in degrees.patches])
    np.testing.assert_allclose(heights * h.variance, h.degree_profile()[1:])
    curve.figure.canvas.draw()
    plt.close(curve.figure)


def test_the_picture_takes_axes_and_needs_two() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, axes = plt.subplots(1, 2)
    h = fs.Spectrum([[1, 1], [0, 1]], [1.0, 2.0])
    assert h.plot(axes)[0] is axes[0]
    with pytest.raises(fs.InputError, match="two matplotlib Axes"):
        h.plot(axes[0])
    plt.close(figure)


def test_without_matplotlib_the_error_gives_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(fs.MissingDependencyError, match="pip install matplotlib"):
        fs.Spectrum([[1, 1]], [1.0]).plot()


def test_spectra_do_not_import_matplotlib() -> None:
    program = "import sys, fouriershap as fs; fs.Spectrum([[1]], [1.0]).top_terms()"
    subprocess.run([sys.executable, "-c", f"{program}; assert 'matplotlib' not in sys.modules"], check=True)
