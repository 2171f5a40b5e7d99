"""Random waves on numbers, labels, missing values and groups, with rows for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from fouriershap import Waves
from fouriershap._waves.columns import Columns
from strategies import generators, random_players


class WaveProblem(NamedTuple):
    """Waves, rows to explain, a background and its weights."""

    waves: Waves
    rows: NDArray[np.float64]
    background: NDArray[np.float64]
    weights: NDArray[np.float64] | None


def random_columns(rng: np.random.Generator, n_features: int, n_players: int) -> Columns:
    """Numbers and labels, some of which may be missing, owned by players."""
    return Columns(
        center=rng.normal(size=n_features),
        scale=rng.uniform(0.5, 2, n_features),
        low=rng.uniform(-2, 0, n_features),
        high=rng.uniform(0, 2, n_features),
        least=rng.uniform(-3, -2, n_features),
        most=rng.uniform(2, 3, n_features),
        n_levels=rng.choice([0, 0, 1, 3], n_features).astype(np.int32),
        missing=rng.random(n_features) < 0.4,
        player=random_players(rng, n_features, n_players).astype(np.int32),
    )


def random_rows(rng: np.random.Generator, columns: Columns, n: int) -> NDArray[np.float64]:
    labels = rng.integers(0, np.maximum(columns.n_levels, 1), (n, columns.n_features))
    rows = np.where(columns.n_levels > 0, labels, rng.normal(size=labels.shape).round(1))
    rows[columns.missing & (rng.random(rows.shape) < 0.3)] = np.nan
    return rows


def random_waves(rng: np.random.Generator, columns: Columns, n_waves: int, n_outputs: int = 1) -> Waves:
    return Waves(
        rng.normal(size=(n_waves, columns.n_columns)),
        rng.normal(size=(n_waves, n_outputs)),
        rng.uniform(0, 6, n_waves),
        rng.normal(size=(columns.n_columns, n_outputs)),
        rng.normal(size=n_outputs),
        columns,
    )


@st.composite
def wave_problems(draw: st.DrawFn, most_players: int = 6) -> WaveProblem:
    rng = draw(generators())
    n_players = draw(st.integers(1, most_players))
    columns = random_columns(rng, n_players + draw(st.integers(0, 2)), n_players)
    waves = random_waves(rng, columns, draw(st.integers(0, 20)), draw(st.integers(1, 3)))
    n_background = draw(st.sampled_from([1, 3, 40]))
    weights = rng.random(n_background) if draw(st.booleans()) else None
    if weights is not None:
        weights /= weights.sum()
    rows, background = (random_rows(rng, columns, n) for n in (draw(st.integers(0, 3)), n_background))
    return WaveProblem(waves, rows, background, weights)


def definition(problem: WaveProblem, row: NDArray[np.float64]) -> NDArray[Any]:
    """The worth of every coalition of a row."""
    from oracles import coalition_values

    waves = problem.waves
    return coalition_values(waves.predict, row, problem.background, waves.columns.player, problem.weights)
