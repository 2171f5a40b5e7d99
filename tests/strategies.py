"""Hypothesis strategies: random spectra, rows, backgrounds, players and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import fouriershap as fs


def generators() -> st.SearchStrategy[np.random.Generator]:
    """Seeded generators: large arrays come from them, their shapes from Hypothesis."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


def random_frequencies(
    rng: np.random.Generator, n_terms: int, n_bits: int, max_degree: int
) -> NDArray[np.bool_]:
    """Frequencies of every degree from 0 to max_degree, repetitions included."""
    degrees = rng.integers(0, min(max_degree, n_bits) + 1, size=n_terms)
    ranks = rng.random((n_terms, n_bits)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks < degrees[:, None])


def random_players(rng: np.random.Generator, n_bits: int, n_players: int) -> NDArray[np.int64]:
    """A player for each bit, every player with at least one, in no particular order."""
    first = np.arange(n_players)
    rest = rng.integers(0, n_players, size=n_bits - n_players)
    return rng.permutation(np.concatenate([first, rest]))


@st.composite
def spectra(
    draw: st.DrawFn, *, n_bits: int | None = None, outputs: bool = True, max_bits: int = 12
) -> fs.Spectrum:
    n = draw(st.integers(1, max_bits)) if n_bits is None else n_bits
    rng = draw(generators())
    frequencies = random_frequencies(rng, draw(st.integers(0, 40)), n, draw(st.integers(0, n)))
    n_outputs = draw(st.sampled_from([None, 1, 3])) if outputs else None
    shape = (len(frequencies),) if n_outputs is None else (len(frequencies), n_outputs)
    scale = 10.0 ** draw(st.integers(-6, 6))
    return fs.Spectrum(frequencies, scale * rng.standard_normal(shape))


@dataclass
class Problem:
    """Everything that `shap_values` takes."""

    spectrum: fs.Spectrum
    X: NDArray[np.uint8]
    background: NDArray[np.uint8]
    players: NDArray[Any] | None
    weights: NDArray[np.float64] | None

    @property
    def stage_two(self) -> dict[str, Any]:
        return {"players": self.players, "weights": self.weights}

    @property
    def n_players(self) -> int:
        return self.spectrum.n_bits if self.players is None else int(self.players.max()) + 1


@st.composite
def problems(draw: st.DrawFn, *, max_players: int = 12, outputs: bool = True) -> Problem:
    """At most ``max_players`` players: one bit each, or blocks of bits; weighted or not."""
    n_players = draw(st.integers(1, max_players))
    blocks = draw(st.booleans())
    n_bits = n_players + (draw(st.integers(0, 12)) if blocks else 0)
    rng = draw(generators())
    spectrum = draw(spectra(n_bits=n_bits, outputs=outputs))
    background = rng.integers(0, 2, size=(draw(st.integers(1, 70)), n_bits)).astype(np.uint8)
    weights = None
    if draw(st.booleans()):
        weights = rng.random(len(background)) + 1e-3
        weights[rng.random(len(background)) < 0.2] = 0.0
        weights[0] = 1.0
    players = random_players(rng, n_bits, n_players) if blocks else None
    X = rng.integers(0, 2, size=(draw(st.integers(1, 3)), n_bits)).astype(np.uint8)
    return Problem(spectrum, X, background, players, weights)
