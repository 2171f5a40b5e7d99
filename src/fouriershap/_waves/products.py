"""`Products`: a model of numbers as a sum of products over players."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import get_typed, require
from fouriershap._base.links import LINKS
from fouriershap._waves.ridges import Ridges, expand
from fouriershap._waves.terms import Terms, terms_from_arrays, terms_to_arrays

Floats = NDArray[np.float64]
_PADDING = 16  # kernels take this many terms at a time
_ROWS_PER_BLOCK = 4096
_RIDGES = ("directions", "offsets", "weights")


@dataclass(frozen=True, eq=False)
class Products:
    """A constant, a linear part, products of one factor per feature, and functions of one direction (`Ridges`).

    Linear models have only the first two; a kernel machine has a product for each support vector; the probability of a
    logistic regression is a ridge, and a network with one hidden layer is a sum of several. With its ridges as sines
    (`expanded`) it is a `ProductSum`.

    Attributes
    ----------
    player : (n_features,) int32
        The owner of each feature.
    linear : (n_features, n_outputs) float64
    constant : (n_outputs,) float64
    terms : tuple of Terms
    ridges : Ridges, optional
    """

    player: NDArray[np.int32]
    linear: Floats
    constant: Floats
    terms: tuple[Terms, ...] = ()
    ridges: Ridges | None = None

    def __repr__(self) -> str:
        parts = ["linear"] * bool(self.linear.any())
        parts += [f"{part.coefficients.shape[2]:,} {part.name}" for part in self.terms]
        parts += [f"{len(self.ridges):,} ridges"] if self.ridges is not None else []
        what = " + ".join(parts) or "constant"
        return f"Products({what}: {self.n_features} features, {self.n_outputs} outputs)"

    @property
    def n_features(self) -> int:
        return len(self.player)

    @property
    def n_players(self) -> int:
        return int(self.player.max(initial=-1)) + 1

    @property
    def n_outputs(self) -> int:
        return len(self.constant)

    @cached_property
    def coefficients(self) -> Floats:
        """Coefficients (n_outputs, 2, n_terms), padded; no terms at all where the model is linear."""
        n_terms = sum(part.coefficients.shape[2] for part in self.terms)
        out = np.zeros((self.n_outputs, 2, -(-n_terms // _PADDING) * _PADDING))
        if n_terms:
            out[:, :, :n_terms] = np.concatenate([part.coefficients for part in self.terms], axis=2)
        return out

    def factors(self, rows: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """Return the factor of each player in each term, (n_rows, n_players, 2, n_terms)."""
        n_terms = self.coefficients.shape[2]
        out = np.empty((len(rows), self.n_players, 2, n_terms), dtype)
        first = 0
        for part in self.terms:
            last = first + part.coefficients.shape[2]
            part.factors(rows, self.player, out[..., first:last])
            first = last
        out[..., first:] = 1.0
        return out

    def additive(self, rows: Any) -> Floats:
        """Return what each player adds by itself, (n_rows, n_players, n_outputs)."""
        if np.array_equal(self.player, np.arange(self.n_features)):
            return np.asarray(rows[:, :, None] * self.linear)
        out = np.zeros((len(rows), self.n_players, self.n_outputs))
        for f, owner in enumerate(self.player):
            out[:, owner] += rows[:, f, None] * self.linear[f]
        return out

    def products(self, rows: Any) -> Floats:
        """Return the constant, all terms and ridges, (n_rows, n_outputs)."""
        out = np.zeros((len(rows), self.n_outputs)) + self.constant
        for part in self.terms:
            out += part.predict(rows)
        return out if self.ridges is None else out + self.ridges.predict(rows)

    def predict(self, rows: Any) -> Floats:
        """Return the outputs of rows, (n_rows, n_outputs)."""
        out = np.empty((len(rows), self.n_outputs))
        for first in range(0, len(rows), _ROWS_PER_BLOCK):
            some = rows[first : first + _ROWS_PER_BLOCK]
            out[first : first + len(some)] = some @ self.linear + self.products(some)
        return out

    def embed(self, rows: Any) -> NDArray[np.float32]:
        """Return rows scaled by how much each feature moves the terms."""
        strength = np.sum([part.strength() for part in self.terms], axis=0)
        size = float(np.abs(rows * strength).max(initial=0.0)) or 1.0
        return np.asarray(rows * strength / size, dtype=np.float32)

    def with_players(self, player: NDArray[np.int32]) -> Products:
        """Return the same with other owners of the features."""
        return replace(self, player=np.asarray(player, dtype=np.int32))

    def expanded(self, low: Floats, high: Floats, origin: Floats) -> tuple[Products, Floats]:
        """Return the same with sines for ridges whose scores lie between two bounds, and the largest error of that."""
        if self.ridges is None:
            return self, np.zeros(self.n_outputs)
        constant, linear, sines, error = expand(self.ridges, low, high, origin)
        whole = replace(
            self,
            linear=self.linear + linear,
            constant=self.constant + constant,
            terms=(*self.terms, sines),
            ridges=None,
        )
        return whole, error

    # Files

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return named arrays and a header for a file."""
        arrays: dict[str, Any] = {"player": self.player, "linear": self.linear, "constant": self.constant}
        arrays |= terms_to_arrays(self.terms)
        header: dict[str, Any] = {"terms": [part.name for part in self.terms], "ridges": None}
        if self.ridges is not None:
            arrays |= {f"ridges.{name}": getattr(self.ridges, name) for name in _RIDGES}
            header["ridges"] = self.ridges.link.name
        return {f"model.{name}": array for name, array in arrays.items()}, {"model": header}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> Products:
        """Build from what `to_contents` returned; ``header`` is its part "model"."""
        own = {name.removeprefix("model."): a for name, a in arrays.items() if name.startswith("model.")}
        player, linear, constant = own["player"], own["linear"], own["constant"]
        players = np.unique(player)
        numbered = player.ndim == 1 and player.dtype == np.int32
        require(
            numbered and np.array_equal(players, np.arange(len(players))),
            "its players are not numbered from 0",
        )
        for array, shape in ((constant, (len(constant),)), (linear, (len(player), len(constant)))):
            fits = array.shape == shape and array.dtype == np.float64 and np.isfinite(array).all()
            require(fits and len(constant) > 0, "its linear part has the wrong arrays")
        terms = terms_from_arrays(own, get_typed(header, "terms", tuple[str, ...]), *linear.shape)
        link, ridges = get_typed(header, "ridges", str | None), None
        if link is not None:
            require(link in LINKS, "its ridges are of an unknown function")
            directions, offsets, weights = (own[f"ridges.{name}"] for name in _RIDGES)
            ridges = Ridges(directions, offsets, weights, LINKS[link])
            ridges.verify(*linear.shape)
        return cls(player, linear, constant, terms, ridges)
