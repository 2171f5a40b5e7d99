"""Bad input: an error that names the argument and says what to do, or a documented meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fouriershap as fs

H = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
GOOD = np.zeros((2, 3))

BAD_ROWS: list[tuple[Any, str]] = [
    (np.zeros((2, 4)), "4 columns, but the spectrum has 3 bits"),
    (np.zeros((2, 0)), "0 columns"),
    (np.zeros(3), r"X\[None, :\]"),
    (np.zeros((1, 2, 3)), "matrix of rows"),
    ([[0, 1, 2]], "row 0, column 2 is 2"),
    ([[0, 0, 0], [0, -1, 0]], "row 1, column 1 is -1"),
    ([[0, 1, 256]], "column 2 is 256"),
    ([[0.0, 0.5, 1.0]], "column 1 is 0.5"),
    ([[0.0, np.nan, 1.0]], "column 1 is nan"),
    ([[0.0, np.inf, 1.0]], "column 1 is inf"),
    ([["0", "1", "0"]], "dtype"),
    (np.array([[0, 1, None]]), "dtype object"),
    ([[0, 1j, 1]], "dtype complex"),
    ([[0, 1, 1], [0]], "is not an array"),
    (None, "shape"),
]


def callers(rows: Any) -> dict[str, Any]:
    return {
        "X": [
            lambda: H(rows),
            lambda: fs.spectra.shap_values(H, rows, GOOD),
        ],
        "background": [
            lambda: fs.spectra.shap_values(H, GOOD, rows),
            lambda: fs.SpectrumExplainer(H, rows),
        ],
    }


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_rows(rows: Any, message: str) -> None:
    for name, calls in callers(rows).items():
        for call in calls:
            with pytest.raises(fs.InputError, match=message.replace("X", name)) as caught:
                call()
            assert str(caught.value).startswith(name)


def test_empty_background() -> None:
    for call in (
        lambda: fs.SpectrumExplainer(H, np.zeros((0, 3))),
        lambda: fs.spectra.shap_values(H, GOOD, np.zeros((0, 3))),
    ):
        with pytest.raises(fs.InputError, match="background has no rows"):
            call()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"weights has shape \(1,\)"),
        ([[1.0, 2.0]], "one weight per background row"),
        ([1.0, -1.0], ">= 0"),
        ([0.0, 0.0], "not all zero"),
        ([1.0, np.nan], "finite"),
        ([1.0, np.inf], "finite"),
        (["a", "b"], "weights cannot be read"),
    ],
)
def test_weights(weights: Any, message: str) -> None:
    with pytest.raises(fs.InputError, match=message):
        fs.SpectrumExplainer(H, GOOD, weights=weights)
    with pytest.raises(fs.InputError, match=message):
        fs.spectra.shap_values(H, GOOD, GOOD, weights=weights)


@pytest.mark.parametrize(
    ("frequencies", "coefficients", "message"),
    [
        ([1, 0], [1.0], r"frequencies has shape \(2,\)"),
        ([[0, 2]], [1.0], "frequencies must hold only 0 and 1"),
        ([[0.0, np.nan]], [1.0], "is nan"),
        ([[0, 1]], [1.0, 2.0], r"coefficients has shape \(2,\)"),
        ([[0, 1]], 1.0, r"coefficients has shape \(\)"),
        ([[0, 1]], [[[1.0]]], "coefficients has shape"),
        ([[0, 1]], np.zeros((1, 0)), "coefficients has shape"),
        ([[0, 1]], [np.nan], "1 values that are not finite"),
        ([[0, 1]], [np.inf], "not finite"),
        ([[0, 1]], ["one"], "coefficients cannot be read"),
        ([[0, 1], [0]], [1.0, 2.0], "frequencies is not an array"),
    ],
)
def test_spectra(frequencies: Any, coefficients: Any, message: str) -> None:
    with pytest.raises(fs.InputError, match=message):
        fs.Spectrum(frequencies, coefficients)


def test_arithmetic_of_what_does_not_fit() -> None:
    other = fs.Spectrum([[1, 0]], [1.0])
    two = fs.Spectrum([[1, 0, 0]], [[1.0, 2.0]])
    for call in (lambda: H + other, lambda: H * other, lambda: H - two, lambda: H * two):
        with pytest.raises(fs.InputError, match="different numbers of bits or outputs"):
            call()
    for strange in ("a", None, np.ones(3), [1.0], 1j):
        for call in (
            lambda s=strange: H + s,
            lambda s=strange: H * s,
            lambda s=strange: s * H,
            lambda s=strange: H - s,
            lambda s=strange: H / s,
        ):
            with pytest.raises(fs.InputError, match="a Spectrum or a number"):
                call()
    with pytest.raises(fs.InputError, match="not finite"):
        H * float("nan")
    wide = fs.Spectrum(np.eye(8000), np.ones(8000))
    with pytest.raises(fs.CapacityError, match="prune the factors"):
        wide * wide


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"energy": 0.0}, "energy"),
        ({"energy": 1.5}, "energy"),
        ({"energy": np.nan}, "energy"),
        ({"min_amplitude": -1.0}, "min_amplitude"),
        ({"min_amplitude": np.nan}, "min_amplitude"),
        ({"max_terms": -1}, "max_terms"),
        ({"max_terms": 1.5}, "max_terms"),
        ({"max_terms": True}, "max_terms"),
    ],
)
def test_pruning(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fs.InputError, match=message):
        H.prune(**options)


@pytest.mark.parametrize("memory", [-1, float("nan"), float("inf"), "1 GB", True])
def test_memory(memory: Any) -> None:
    for call in (
        lambda: fs.SpectrumExplainer(H, GOOD, memory=memory),
        lambda: fs.spectra.shap_values(H, GOOD, GOOD, memory=memory),
        lambda: fs.spectra.plan(H, 1, 1, memory=memory),
    ):
        with pytest.raises(fs.InputError, match="memory"):
            call()


def test_strategies_and_jobs() -> None:
    with pytest.raises(fs.InputError, match="'auto', 'tables', 'direct'"):
        fs.spectra.shap_values(H, GOOD, GOOD, strategy="magic")
    for n_jobs in (0, 1.5, "all"):
        with pytest.raises(fs.InputError, match="n_jobs"):
            fs.spectra.shap_values(H, GOOD, GOOD, n_jobs=n_jobs)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n_rows", "n_background"), [(-1, 1), (1, 0), (1.5, 1), (1, None)])
def test_plans(n_rows: Any, n_background: Any) -> None:
    with pytest.raises(fs.InputError, match=r"n_rows|n_background"):
        fs.spectra.plan(H, n_rows, n_background)


def test_the_tree_of_exceptions() -> None:
    parents = {
        fs.InputError: ValueError,
        fs.UnsupportedModelError: TypeError,
        fs.CapacityError: MemoryError,
        fs.FileFormatError: ValueError,
        fs.AdditivityError: Exception,
        fs.MissingDependencyError: ImportError,
    }
    for error, builtin in parents.items():
        assert issubclass(error, fs.FourierShapError)
        assert issubclass(error, builtin)
    assert issubclass(fs.SlowKernelWarning, fs.FourierShapWarning)
    assert issubclass(fs.FourierShapWarning, UserWarning)
