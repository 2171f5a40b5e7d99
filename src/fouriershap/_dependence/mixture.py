"""`Mixture`: Gaussians with full covariances for numbers, with labels and missing values independent within each.

One component is a Gaussian; with ranks as coordinates it is a Gaussian copula.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._dependence import coordinates
from fouriershap._dependence.coordinates import Coordinates

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]
_ARRAYS = ("is_label", "codes", "n_symbols", "weights", "means", "covariances", "shares")
LEAST_VARIANCE = 1e-9  # of a coordinate, whose variance is about 1


@dataclass(frozen=True, eq=False)
class Mixture:
    """A distribution of rows of codes, NaN where missing.

    A feature has a *symbol* in each row: the position of its label, or 0 for a number; the last one stands for a
    missing value.

    Attributes
    ----------
    coordinates : Coordinates
    is_label : (n_features,) bool
    codes : (n_features, n_codes) float64
        Codes of the labels of each feature in ascending order, padded with infinity.
    n_symbols : (n_features,) int64
    weights : (n_components,) float64
    means : (n_components, n_numbers) float64
    covariances : (n_components, n_numbers, n_numbers) float64
    shares : (n_components, n_features, most symbols) float64
        How often each symbol comes.
    """

    coordinates: Coordinates
    is_label: NDArray[np.bool_]
    codes: Floats
    n_symbols: NDArray[np.int64]
    weights: Floats
    means: Floats
    covariances: Floats
    shares: Floats

    @property
    def n_components(self) -> int:
        return len(self.weights)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Positions of the features that are numbers."""
        return np.flatnonzero(~self.is_label)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Positions of the features that are labels."""
        return np.flatnonzero(self.is_label)

    @cached_property
    def precisions(self) -> Floats:
        """Inverses of the covariances."""
        return np.asarray(np.linalg.inv(self.covariances))

    @cached_property
    def varied(self) -> NDArray[np.int64]:
        """Positions of the features whose symbols are drawn: labels, and numbers that may be missing."""
        missing = self.shares[:, np.arange(len(self.is_label)), self.n_symbols - 1].any(axis=0)
        return np.flatnonzero(self.is_label | missing)

    @cached_property
    def log_shares(self) -> Floats:
        """Logarithms of shares, with one more symbol, of which nothing is known: it tells no components apart."""
        known = (self.shares > 0).any(axis=0)
        logs = np.log(np.where(known, np.maximum(self.shares, 1e-300), 1.0))
        return np.concatenate([logs, np.zeros((*logs.shape[:2], 1))], axis=2)

    def symbols(self, rows: Floats) -> NDArray[np.int64]:
        """Return the symbol of each feature in rows of codes, (n_rows, n_features); -1 for unknown labels."""
        out = np.zeros(rows.shape, dtype=np.int64)
        for f in self.labels.tolist():
            place = np.searchsorted(self.codes[f], rows[:, f])
            place = np.minimum(place, self.codes.shape[1] - 1)
            out[:, f] = np.where(self.codes[f][place] == rows[:, f], place, -1)
        return np.where(np.isnan(rows), self.n_symbols - 1, out)

    def symbol_codes(self, f: int, symbols: NDArray[np.int64]) -> Floats:
        """Return the codes of symbols of a label, NaN for missing ones."""
        missing = symbols == self.n_symbols[f] - 1
        known = self.codes[f][np.minimum(symbols, self.codes.shape[1] - 1)]
        return np.asarray(np.where(missing, np.nan, known))

    def positions(self, rows: Floats) -> Floats:
        """Return the coordinates of the numbers in rows of codes."""
        return self.coordinates.forward(rows[:, self.numbers])

    def condition(self, masks: Masks, gone: Masks) -> Conditioned:
        """Condition on the features of each coalition (n_coalitions, n_features).

        ``gone`` (n_numbers,): numbers that the rows lack.
        """
        return Conditioned(self, masks, gone)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Draws:
        """Draw rows."""
        nothing = self.condition(
            np.zeros((1, len(self.is_label)), dtype=bool), np.zeros(len(self.numbers), bool)
        )
        row = np.full((1, len(self.is_label)), np.nan)
        return nothing.draw(row, nothing.given(row), nothing.noise(n_rows, rng))

    def log_density(self, rows: Floats) -> Floats:
        """Return log densities of rows: of the coordinates of their numbers, and of their symbols."""
        out = np.empty(len(rows))
        for some, gone in row_patterns(self.positions(rows)):
            everything = self.condition(np.ones((1, rows.shape[1]), dtype=bool), gone)
            log = everything.log_joint(self.positions(rows[some]), self.symbols(rows[some]))[:, 0]
            out[some] = _log_sum(log)
        return out

    # Files

    def to_contents(self) -> dict[str, NDArray[Any]]:
        """Return named arrays for a file."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        own = {name: getattr(self.coordinates, name) for name in coordinates.ARRAYS}
        return arrays | {f"coordinates.{name}": array for name, array in own.items()}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Build from what `to_contents` returned."""
        scale = Coordinates(**{name: arrays[f"coordinates.{name}"] for name in coordinates.ARRAYS})
        found = cls(scale, **{name: arrays[name] for name in _ARRAYS})
        n, k = len(found.is_label), len(found.weights)
        require(found.is_label.dtype == np.bool_ and found.n_symbols.dtype == np.int64, "it has other types")
        d = len(found.numbers)
        scale.verify(d)
        shapes = {"weights": (k,), "means": (k, d), "covariances": (k, d, d), "n_symbols": (n,)}
        for name, shape in shapes.items():
            require(getattr(found, name).shape == shape, f"{name} has the wrong shape")
            require(np.isfinite(getattr(found, name)).all(), f"{name} is not finite")
        most = int(found.n_symbols.max(initial=1))
        require(k > 0 and found.shares.shape == (k, n, most), "shares has the wrong shape")
        require(found.codes.shape == (n, max(most - 1, 1)), "codes has the wrong shape")
        require((found.n_symbols > 0).all(), "a feature has no values")
        return found


class Given(NamedTuple):
    """What rows tell of each coalition's other features.

    Attributes
    ----------
    shares : (n_components, n_coalitions, n_rows)
        Probability of each component.
    means : (n_components, n_coalitions, n_rows, n_numbers)
        Coordinates: those of the row where they are known, and the means of the others.
    """

    shares: Floats
    means: Floats


class Noise(NamedTuple):
    """Random numbers that all rows share.

    Attributes
    ----------
    numbers : (n_components, n_coalitions, n_draws, n_numbers)
        Deviations from the means, 0 for what is known.
    uniform : (n_coalitions, n_draws)
        Choose components.
    symbols : (n_components, n_coalitions, n_draws, n_varied)
    """

    numbers: Floats
    uniform: Floats
    symbols: NDArray[np.int64]


class Draws(NamedTuple):
    """Rows that are drawn: n_coalitions times n_rows times n_draws.

    Attributes
    ----------
    codes : (n, n_features)
    positions : (n, n_numbers)
        Coordinates, also of numbers that are missing.
    symbols : (n, n_varied)
    """

    codes: Floats
    positions: Floats
    symbols: NDArray[np.int64]


class Conditioned:
    """A mixture, conditioned on the features of coalitions; everything that all rows share."""

    def __init__(self, mixture: Mixture, masks: Masks, gone: Masks) -> None:
        self.mixture, self.masks = mixture, masks
        known = self.known = masks[:, mixture.numbers] & ~gone
        # (n_components, n_coalitions, n_numbers, n_numbers), 0 for what is known: the inverse of a block of the
        # inverse is the covariance given the rest.
        left = inverse_blocks(mixture.precisions, ~known)
        self.covariances = (left + left.swapaxes(2, 3)) / 2

    def log_joint(self, positions: Floats, symbols: NDArray[np.int64]) -> Floats:
        """Return log densities of components and what is known of rows, (n_components, n_coalitions, n_rows)."""
        return self._log_joint(self._moved(positions), symbols)

    def given(self, rows: Floats) -> Given:
        """Return what rows of codes tell."""
        mixture = self.mixture
        moved = self._moved(mixture.positions(rows))
        means = self._means(moved)
        if mixture.n_components == 1:
            return Given(np.ones(means.shape[:3]), means)
        log = self._log_joint(moved, mixture.symbols(rows))
        return Given(np.exp(log - _log_sum(log)), means)

    def means_of(self, positions: Floats) -> Floats:
        """Return coordinates with means in place of what is not known, see `Given`."""
        return self._means(self._moved(positions))

    def noise(self, n_draws: int, rng: np.random.Generator, antithetic: bool = False) -> Noise:
        """Draw random numbers; ``antithetic``: the second half mirrors the first."""
        mixture, (n_coalitions, n_numbers) = self.mixture, self.known.shape
        drawn = n_draws // 2 if antithetic else n_draws
        normal = rng.standard_normal((n_coalitions, drawn, n_numbers))
        choices = rng.random((n_coalitions, drawn, 1 + len(mixture.varied)))
        if antithetic:
            normal, choices = (
                np.concatenate(pair, axis=1) for pair in ((normal, -normal), (choices, 1 - choices))
            )
        lifted = self.covariances + (self.known[:, :, None] + LEAST_VARIANCE / 10) * np.eye(n_numbers)
        roots = np.where(self.known[:, :, None], 0.0, np.linalg.cholesky(lifted))
        symbols = np.empty((mixture.n_components, *choices.shape[:2], len(mixture.varied)), dtype=np.int64)
        for v, f in enumerate(mixture.varied.tolist()):
            upper = mixture.shares[:, f].cumsum(axis=1)[:, None, None, :-1]
            symbols[..., v] = (choices[None, :, :, 1 + v, None] > upper).sum(axis=3)
        return Noise(normal @ roots.swapaxes(2, 3), choices[..., 0], symbols)

    def draw(self, rows: Floats, given: Given, noise: Noise) -> Draws:
        """Draw, for each row of codes and each coalition, what is not known given what is."""
        mixture = self.mixture
        shape = (len(self.masks), len(rows), noise.uniform.shape[1])
        component: Any = 0
        if mixture.n_components > 1:
            upper = np.moveaxis(given.shares, 0, -1).cumsum(axis=2)[:, :, None, :-1]
            component = (noise.uniform[:, None, :, None] > upper).sum(axis=3)
        c, r, m = np.ogrid[tuple(map(slice, shape))]
        positions = given.means[component, c, r] + noise.numbers[component, c, m]
        own = mixture.symbols(rows)[:, None, mixture.varied]
        symbols = np.where(self.masks[:, None, None, mixture.varied], own, noise.symbols[component, c, m])
        codes = np.empty((*shape, rows.shape[1]))
        codes[..., mixture.numbers] = mixture.coordinates.back(positions)
        for v, f in enumerate(mixture.varied.tolist()):
            if mixture.is_label[f]:
                codes[..., f] = mixture.symbol_codes(f, symbols[..., v])
            else:
                codes[..., f] = np.where(symbols[..., v] == 0, codes[..., f], np.nan)
        codes = np.where(self.masks[:, None, None], rows[:, None], codes)
        n = int(np.prod(shape))
        flat = (np.reshape(each, (n, each.shape[3])) for each in (codes, positions, symbols))
        return Draws(*flat)

    def _moved(self, positions: Floats) -> Floats:
        """Return deviations of what is known from the means."""
        moved = positions - self.mixture.means[:, None]
        return np.where(self.known[None, :, None], moved[:, None], 0.0)

    def _means(self, moved: Floats) -> Floats:
        mixture = self.mixture
        drawn = moved @ mixture.precisions[:, None] @ self.covariances
        return np.asarray(mixture.means[:, None, None] + np.where(self.known[None, :, None], moved, -drawn))

    def _log_joint(self, moved: Floats, symbols: NDArray[np.int64]) -> Floats:
        mixture = self.mixture
        precision = inverse_blocks(mixture.covariances, self.known)
        identity = np.eye(self.known.shape[1]) * ~self.known[:, :, None]
        log_det = -np.linalg.slogdet(precision + identity)[1]
        distance = ((moved @ precision) * moved).sum(axis=3)
        n_known = self.known.sum(axis=1)[:, None]
        log = -0.5 * (distance + log_det[..., None] + n_known * np.log(2 * np.pi))
        log += np.log(mixture.weights)[:, None, None]
        features = np.arange(symbols.shape[1])
        told = mixture.log_shares[:, features, symbols]  # (n_components, n_rows, n_features)
        return np.asarray(log + self.masks.astype(float) @ told.swapaxes(1, 2))


def inverse_blocks(matrices: Floats, kept: Masks) -> Floats:
    """Return inverses of blocks of matrices (n_components, n, n), 0 elsewhere, for each of some masks."""
    both = kept[:, :, None] & kept[:, None, :]
    blocks = np.where(both, matrices[:, None], 0.0) + ~kept[:, :, None] * np.eye(kept.shape[1])
    return np.where(both, np.linalg.inv(blocks), 0.0)


def row_patterns(positions: Floats) -> list[tuple[NDArray[np.int64], Masks]]:
    """Return rows that lack the same numbers, and which these are."""
    gone = np.isnan(positions)
    if not gone.any():
        return [(np.arange(len(gone)), np.zeros(gone.shape[1], dtype=bool))] if len(gone) else []
    patterns, place = np.unique(gone, axis=0, return_inverse=True)
    return [(np.flatnonzero(place.reshape(-1) == p), pattern) for p, pattern in enumerate(patterns)]


def _log_sum(log: Floats) -> Floats:
    most = log.max(axis=0)
    return np.asarray(most + np.log(np.exp(log - most).sum(axis=0)))
