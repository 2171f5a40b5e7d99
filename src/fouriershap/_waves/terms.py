"""Kinds of terms that are products over features: exponentials (waves among them), bells and monomials.

Each kind is a frozen dataclass of arrays, with coefficients (n_outputs, 2, n_terms) as in `ProductSum`: real parts,
and negated imaginary parts. A player's factor is the product over its features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require

Floats = NDArray[np.float64]
Owners = NDArray[np.int32]


class Terms(Protocol):
    """Terms of one kind."""

    name: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]]  # beside the coefficients

    @property
    def coefficients(self) -> Floats: ...

    def factors(self, rows: Floats, player: Owners, out: NDArray[Any]) -> None:
        """Write the factors of rows into ``out`` (n_rows, n_players, 2, n_terms)."""

    def predict(self, rows: Floats) -> Floats:
        """Return the sum of all terms, (n_rows, n_outputs)."""

    def strength(self) -> Floats:
        """Return how much each feature moves the terms, (n_features,), for distances between rows."""


@dataclass(frozen=True, eq=False)
class Exponentials:
    """Exponentials along a direction: growth where the exponent is real, waves where it is imaginary.

    Attributes
    ----------
    rates : (2, n_terms, n_features) float64
        Rates of growth, and frequencies.
    origin : (n_features,) float64
        The point where every factor is 1.
    coefficients : (n_outputs, 2, n_terms) float64
    """

    name: ClassVar[str] = "exponentials"
    arrays: ClassVar[tuple[str, ...]] = ("rates", "origin")
    rates: Floats
    origin: Floats
    coefficients: Floats

    def factors(self, rows: Floats, player: Owners, out: NDArray[Any]) -> None:
        moved, grows = rows - self.origin, bool(self.rates[0].any())
        angle = np.zeros((len(rows), out.shape[1], out.shape[3]))
        growth = np.zeros(angle.shape if grows else (1, 1, 1))
        for f, owner in enumerate(player):
            angle[:, owner] += moved[:, f, None] * self.rates[1, :, f]
            if grows:
                growth[:, owner] += moved[:, f, None] * self.rates[0, :, f]
        size = np.exp(growth)
        out[:, :, 0] = size * np.cos(angle)
        out[:, :, 1] = size * np.sin(angle)

    def predict(self, rows: Floats) -> Floats:
        moved = rows - self.origin
        size, angle = np.exp(moved @ self.rates[0].T), moved @ self.rates[1].T
        cosines, sines = size * np.cos(angle), size * np.sin(angle)
        return np.asarray(cosines @ self.coefficients[:, 0].T + sines @ self.coefficients[:, 1].T)

    def strength(self) -> Floats:
        weight = (self.coefficients**2).sum(axis=(0, 1))
        return np.asarray(np.sqrt(((self.rates**2).sum(axis=0) * weight[:, None]).sum(axis=0)))


@dataclass(frozen=True, eq=False)
class Bells:
    """Bells around points: exp of minus squared distances (RBF), or distances (Laplace), weighted by feature.

    Attributes
    ----------
    points : (n_terms, n_features) float64
    squares, sizes : (n_terms, n_features) float64
        Weights of the squared distance, and of the distance.
    coefficients : (n_outputs, 2, n_terms) float64
    """

    name: ClassVar[str] = "bells"
    arrays: ClassVar[tuple[str, ...]] = ("points", "squares", "sizes")
    points: Floats
    squares: Floats
    sizes: Floats
    coefficients: Floats

    def factors(self, rows: Floats, player: Owners, out: NDArray[Any]) -> None:
        fall = np.zeros((len(rows), out.shape[1], out.shape[3]))
        for f, owner in enumerate(player):
            fall[:, owner] += self._fall(rows, f)
        out[:, :, 0] = np.exp(-fall)
        out[:, :, 1] = 0.0

    def _fall(self, rows: Floats, f: int) -> Floats:
        """Return what a feature takes from the exponent, (n_rows, n_terms)."""
        distance = rows[:, f, None] - self.points[:, f]
        fall = distance**2 * self.squares[:, f]
        if self.sizes[:, f].any():
            fall += np.abs(distance) * self.sizes[:, f]
        return np.asarray(fall)

    def predict(self, rows: Floats) -> Floats:
        fall = np.zeros((len(rows), len(self.points)))
        for f in range(rows.shape[1]):
            fall += self._fall(rows, f)
        return np.asarray(np.exp(-fall) @ self.coefficients[:, 0].T)

    def strength(self) -> Floats:
        weight = np.abs(self.coefficients).sum(axis=(0, 1))
        total = max(float(weight.sum()), np.finfo(float).tiny)
        return np.asarray(weight @ (np.sqrt(2 * self.squares) + self.sizes) / total)


@dataclass(frozen=True, eq=False)
class Monomials:
    """Products of powers of features.

    Attributes
    ----------
    powers : (n_terms, n_features) float64
        Integers.
    coefficients : (n_outputs, 2, n_terms) float64
    """

    name: ClassVar[str] = "monomials"
    arrays: ClassVar[tuple[str, ...]] = ("powers",)
    powers: Floats
    coefficients: Floats

    def factors(self, rows: Floats, player: Owners, out: NDArray[Any]) -> None:
        product = np.ones((len(rows), out.shape[1], out.shape[3]))
        for f, owner in enumerate(player):
            product[:, owner] *= rows[:, f, None] ** self.powers[:, f]
        out[:, :, 0] = product
        out[:, :, 1] = 0.0

    def predict(self, rows: Floats) -> Floats:
        product = np.ones((len(rows), len(self.powers)))
        for f in range(rows.shape[1]):
            product *= rows[:, f, None] ** self.powers[:, f]
        return np.asarray(product @ self.coefficients[:, 0].T)

    def strength(self) -> Floats:
        return np.asarray(np.abs(self.coefficients).sum(axis=(0, 1)) @ self.powers)


KINDS: dict[str, type[Any]] = {kind.name: kind for kind in (Exponentials, Bells, Monomials)}


def terms_to_arrays(parts: tuple[Terms, ...]) -> dict[str, NDArray[Any]]:
    """Return named arrays for a file."""
    return {
        f"terms{k}.{name}": getattr(part, name)
        for k, part in enumerate(parts)
        for name in (*part.arrays, "coefficients")
    }


def terms_from_arrays(
    arrays: dict[str, NDArray[Any]], names: tuple[str, ...], n_features: int, n_outputs: int
) -> tuple[Terms, ...]:
    """Build the terms of these kinds from what `terms_to_arrays` returned."""
    parts = []
    for k, name in enumerate(names):
        require(name in KINDS, "it has terms of an unknown kind")
        fields = (*KINDS[name].arrays, "coefficients")
        found = {field: arrays[f"terms{k}.{field}"] for field in fields}
        n_terms = found["coefficients"].shape[-1]
        shapes = {
            "coefficients": (n_outputs, 2, n_terms),
            "rates": (2, n_terms, n_features),
            "origin": (n_features,),
        }
        for field, array in found.items():
            fits = array.shape == shapes.get(field, (n_terms, n_features)) and array.dtype == np.float64
            require(fits and np.isfinite(array).all(), f"{field} does not match its terms")
        parts.append(KINDS[name](**found))
    return tuple(parts)
