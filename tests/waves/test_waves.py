"""`Waves` as a function, in files, and by its kernels' twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import fouriershap as fs
from fouriershap._waves.columns import Columns, columns_of
from fouriershap._waves.training import Settings, fit_waves
from reference_kernels import use_reference_kernels
from wave_models import WaveProblem, random_columns, random_rows, random_waves, wave_problems


@given(wave_problems())
@settings(max_examples=40, deadline=None)
def test_factors_multiply_to_the_function(problem: WaveProblem) -> None:
    waves, rows = problem.waves, problem.background
    factors, coefficients = waves.factors(rows), waves.coefficients
    product = (factors[:, :, 0] + 1j * factors[:, :, 1]).prod(axis=1)
    sums = (product @ (coefficients[:, 0] - 1j * coefficients[:, 1]).T).real
    by_hand = sums + waves.additive(rows).sum(axis=1) + waves.constant
    np.testing.assert_allclose(waves.predict(rows), by_hand, atol=1e-11)


def test_a_cosine_is_a_cosine() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 3))
    waves = fs.Waves([[1.0, 2.0, 0.0]], [3.0], [0.5], [0.0, 0.0, 1.0], 7.0)
    np.testing.assert_allclose(waves(x), 3 * np.cos(x[:, 0] + 2 * x[:, 1] + 0.5) + x[:, 2] + 7, atol=1e-12)
    assert repr(waves) == "Waves(1 waves, 3 features)"


def test_labels_and_missing_values_have_columns() -> None:
    columns = Columns(
        np.array([1.0, 0.0]),
        np.array([2.0, 1.0]),
        *(np.full(2, sign * np.inf) for sign in (-1, 1, -1, 1)),
        np.array([0, 3], np.int32),
        np.array([True, True]),
        np.array([0, 1], np.int32),
    )
    design = columns.design([[5.0, 2.0], [np.nan, np.nan]])
    half = np.float32(0.5**0.5)
    np.testing.assert_array_equal(design, [[2, 0, 0, 0, half, 0], [0, 1, 0, 0, 0, half]])
    with pytest.raises(fs.InputError, match="unknown label in feature 1"):
        columns.slots([[0.0, 3.0]])
    known = replace(columns, missing=np.array([True, False]))
    with pytest.raises(fs.InputError, match="missing value in feature 1"):
        known.slots([[0.0, np.nan]])


def test_columns_of_data_survive_constants_and_huge_numbers() -> None:
    codes = np.column_stack([np.full(9, 4.0), np.arange(9) * 1e300, np.arange(9.0)])
    codes[0, 2] = np.nan
    none = np.zeros(3, np.int32)
    columns = columns_of(codes, none, np.array([False, False, True]), np.arange(3, dtype=np.int32))
    values, _ = columns.slots(codes)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values[:, 1].std(), 1)  # nothing within three standard deviations is drawn in
    np.testing.assert_allclose(columns.center[2], 4.5)


def test_numbers_far_out_are_drawn_in() -> None:
    codes = np.random.default_rng(0).normal(size=(1000, 1))
    codes[:2, 0] = -20, 30
    none = np.zeros(1, np.int32)
    columns = columns_of(codes, none, np.zeros(1, bool), none)
    rows = [[columns.center[0] + k * columns.scale[0]] for k in (-2.5, 2.9, 4.0, -103.0)]
    least = (-20 - columns.center[0]) / columns.scale[0]
    values, _ = columns.slots(rows)
    np.testing.assert_allclose(values[:, 0], [-2.5, 2.9, 3 + np.log(2), -3 - np.log(1 - least - 3)])


def test_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = random_columns(rng, 5, 3)
    waves = random_waves(rng, columns, 7, 2)
    rows = random_rows(rng, columns, 20)
    waves.save(tmp_path / "waves.fshap")
    for again in (fs.load(tmp_path / "waves.fshap"), fs.Waves.load(tmp_path / "waves.fshap")):
        np.testing.assert_array_equal(again(rows), waves(rows))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0]), "frequencies has shape"),
        (([[1.0]], [1.0, 2.0]), "amplitudes has shape"),
        (([[np.nan]], [1.0]), "frequencies holds values that are not finite"),
        (([[1.0]], [1.0], [0.0, 1.0]), "phases has shape"),
    ],
)
def test_bad_parts(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(fs.InputError, match=message):
        fs.Waves(*arguments)


@pytest.mark.parametrize("native", [True, False])
def test_training_finds_waves(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        use_reference_kernels(monkeypatch)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1600, 3)).astype(np.float32)
    y = np.column_stack([np.cos(1.5 * x[:, 0] - x[:, 1]) + 0.3 * x[:, 2], np.sin(x[:, 0] * 1.2)])
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    fits = [
        fit_waves(
            x[:1200], y[:1200], Settings(32, 64, 30), np.random.default_rng(3), (x[1200:1400], y[1200:1400])
        )
        for _ in range(2)
    ]
    missed = ((fits[0].predict(x[1400:]) - y[1400:]) ** 2).mean()
    assert missed < 0.01
    np.testing.assert_array_equal(fits[0].weights, fits[1].weights)


def test_importance_adds_up_with_the_linear_part() -> None:
    rng = np.random.default_rng(0)
    columns = random_columns(rng, 5, 3)
    waves = random_waves(rng, columns, 7, 2)
    rows = random_rows(rng, columns, 300)
    outputs, linear = waves.predict(rows), waves.additive(rows).sum(axis=1)
    centred = outputs - outputs.mean(axis=0)
    rest = (centred * linear).sum() / (centred**2).sum()
    np.testing.assert_allclose(waves.importance(rows).sum() + rest, 1)
    alone = fs.Waves([[1.0, 0.0], [0.0, 1.0]], [2.0, 0.0])
    np.testing.assert_allclose(alone.importance(rng.normal(size=(50, 2))), [1, 0], atol=1e-12)
    with pytest.raises(fs.InputError, match="1 rows"):
        waves.importance(rows[:1])


def test_the_picture_names_players() -> None:
    pytest.importorskip("matplotlib")
    waves = fs.Waves([[1.0, 0.0], [0.0, 3.0]], [2.0, 0.1], linear=[0.0, 1.0])
    axes = waves.plot(np.random.default_rng(0).normal(size=(50, 2)), names=["age", "height"])
    assert [label.get_text() for label in axes[1].get_yticklabels()] == ["age", "height"]
    assert axes[0].lines[0].get_ydata()[-1] == pytest.approx(1)
    with pytest.raises(fs.InputError, match="each of the 2 players"):
        waves.plot([[0.0, 1.0], [1.0, 0.0]], names=["age"])
