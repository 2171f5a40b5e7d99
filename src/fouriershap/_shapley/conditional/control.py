"""`Control`: a sum of waves in the coordinates of a dependence, whose conditional means have a closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._base.threads import one_blas_thread
from fouriershap._dependence.mixture import Conditioned, Given, Mixture
from fouriershap._waves.columns import LABEL_VALUE
from fouriershap._waves.products import Products
from fouriershap._waves.terms import Exponentials
from fouriershap._waves.training import Settings, fit_waves

Floats = NDArray[np.float64]
_ARRAYS = ("frequencies", "phases", "amplitudes", "linear", "constant", "symbol_angles", "symbol_effects")
_SIZES = (64, 256)  # waves that are tried
_WORTH_MORE = 0.7  # of what few waves miss: many must miss less
_HELD_OUT = 8  # one of so many rows
_BLOCK = 2048  # rows at a time, which stay in the cache
_REACH = 12.0  # standard deviations within which sines stand for a ridge


@dataclass(frozen=True, eq=False)
class Control:
    """A sum of cosines of coordinates and labels, with a linear part.

    Attributes
    ----------
    frequencies : (n_waves, n_numbers)
    phases : (n_waves,)
    amplitudes : (n_waves, n_outputs)
    linear : (n_numbers, n_outputs)
    constant : (n_outputs,)
    symbol_angles : (n_labels, n_symbols + 1, n_waves)
        What each symbol of a label adds to the angles; the last is unknown and adds nothing.
    symbol_effects : (n_labels, n_symbols + 1, n_outputs)
        What it adds to the outputs.
    growth : (n_waves, n_numbers), optional
        Rates at which waves grow.
    is_exact : bool
        Whether this is the function itself.
    """

    frequencies: NDArray[Any]
    phases: NDArray[Any]
    amplitudes: NDArray[Any]
    linear: Floats
    constant: Floats
    symbol_angles: NDArray[Any]
    symbol_effects: Floats
    growth: Floats | None = None
    is_exact: bool = False

    def to_contents(self) -> dict[str, NDArray[Any]]:
        """Return named arrays for a file."""
        growth = {} if self.growth is None else {"growth": self.growth}
        return {name: getattr(self, name) for name in _ARRAYS} | growth

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], is_exact: bool, n_numbers: int) -> Self:
        """Build from what `to_contents` returned."""
        own = {name: arrays[name] for name in _ARRAYS}
        found = cls(**own, growth=arrays.get("growth"), is_exact=is_exact)
        w, o = len(found.phases), len(found.constant)
        shapes = {"frequencies": (w, n_numbers), "amplitudes": (w, o), "linear": (n_numbers, o)}
        for name, shape in shapes.items():
            require(getattr(found, name).shape == shape, f"{name} of its control has the wrong shape")
        require(found.growth is None or found.growth.shape == (w, n_numbers), "its control grows otherwise")
        angles, effects = found.symbol_angles, found.symbol_effects
        require(
            angles.ndim == effects.ndim == 3 and angles.shape[:2] == effects.shape[:2], "its labels differ"
        )
        require(angles.shape[2] == w and effects.shape[2] == o, "its labels have the wrong shape")
        for array in arrays.values():
            require(array.dtype.kind == "f" and np.isfinite(array).all(), "its control is not of numbers")
        return found

    def predict(self, mixture: Mixture, rows: Floats) -> Floats:
        """Return outputs (n_rows, n_outputs) of rows of codes."""
        if len(rows) > _BLOCK:
            starts = range(0, len(rows), _BLOCK)
            return np.concatenate([self.predict(mixture, rows[i : i + _BLOCK]) for i in starts])
        positions, symbols = mixture.positions(rows), mixture.symbols(rows)
        angles = positions.astype(self.phases.dtype) @ self.frequencies.T + self.phases
        out = positions @ self.linear + self.constant
        for k, f in enumerate(mixture.labels.tolist()):
            angles += self.symbol_angles[k, symbols[:, f]]
            out += self.symbol_effects[k, symbols[:, f]]
        waves = np.cos(angles)
        if self.growth is not None:
            waves *= np.exp(positions @ self.growth.T)
        return np.asarray(out + waves @ self.amplitudes)

    def expect(self, conditioned: Conditioned, given: Given, rows: Floats) -> Floats:
        """Return conditional means (n_coalitions, n_rows, n_outputs).

        The mean of exp(i u.z) of a Gaussian is exp(i u.m - u'Cu / 2); that of independent labels is a product.
        """
        mixture, dtype = conditioned.mixture, self.phases.dtype
        known = conditioned.masks[:, mixture.labels].astype(dtype)
        labels = np.arange(len(mixture.labels))
        symbols = mixture.symbols(rows)[:, mixture.labels]
        own = np.tensordot(known, self.symbol_angles[labels, symbols], (1, 1)) + self.phases
        effects = np.tensordot(known, self.symbol_effects[labels, symbols], (1, 1)) + self.constant
        out = np.zeros((*given.shares.shape[1:], len(self.constant)))
        for k in range(mixture.n_components):
            shares = mixture.shares[k, mixture.labels][:, :, None]
            n_symbols = shares.shape[1]
            means = (shares * np.exp(1j * self.symbol_angles[:, :n_symbols])).sum(axis=1)
            turned = (1 - known) @ np.angle(means).astype(dtype)
            damped = (1 - known) @ np.log(np.maximum(np.abs(means), 1e-300)).astype(dtype)
            spread = (self.frequencies @ conditioned.covariances[k].astype(dtype)) * self.frequencies
            damped -= spread.sum(axis=2) / 2
            angles = given.means[k].astype(dtype) @ self.frequencies.T + own
            if self.growth is None:
                waves = np.cos(angles + turned[:, None]) * np.exp(damped)[:, None]
            else:  # exp((r + iu).z)
                spread = self.growth @ conditioned.covariances[k]
                turned += (spread * self.frequencies).sum(axis=2)
                damped += (spread * self.growth).sum(axis=2) / 2
                waves = np.cos(angles + turned[:, None])
                waves *= np.exp(given.means[k] @ self.growth.T + damped[:, None])
            part = waves @ self.amplitudes + given.means[k] @ self.linear
            mean_effects = (shares * self.symbol_effects[:, :n_symbols]).sum(axis=1)
            part += effects + ((1 - known) @ mean_effects)[:, None]
            out += given.shares[k][..., None] * part
        return out


def fit_control(outputs: Floats, mixture: Mixture, rows: Floats, seed: int) -> Control:
    """Fit waves to the outputs (n_rows, n_outputs) of rows of codes."""
    positions, symbols = mixture.positions(rows), mixture.symbols(rows)
    n_symbols = mixture.n_symbols[mixture.labels]
    places = np.concatenate([[0], np.cumsum(n_symbols)])
    inputs = np.zeros((len(rows), positions.shape[1] + places[-1]), dtype=np.float32)
    inputs[:, : positions.shape[1]] = positions
    for k, f in enumerate(mixture.labels.tolist()):
        inputs[np.arange(len(rows)), positions.shape[1] + places[k] + symbols[:, f]] = LABEL_VALUE
    mean, scale = outputs.mean(axis=0), outputs.std(axis=0)
    scale = np.where(scale > 1e-12 * np.abs(mean), scale, 1.0)
    targets = (outputs - mean) / scale
    held_out = np.arange(len(rows)) % _HELD_OUT == 0
    train, judge = (inputs[~held_out], targets[~held_out]), (inputs[held_out], targets[held_out])
    with one_blas_thread():
        fits = [
            fit_waves(*train, Settings(n, 256, 20, 1e-2), np.random.default_rng([seed, n]), judge)
            for n in _SIZES
        ]
    few, many = (float(((each.predict(judge[0]) - judge[1]) ** 2).sum()) for each in fits)
    fitted = fits[int(many < _WORTH_MORE * few)]
    n_waves, d = len(fitted.phases), positions.shape[1]
    amplitudes, linear, constant = np.split(fitted.weights * scale, [n_waves, n_waves + inputs.shape[1]])
    most = int(n_symbols.max(initial=0)) + 1
    angles = np.zeros((len(n_symbols), most, n_waves), dtype=np.float32)
    effects = np.zeros((len(n_symbols), most, len(scale)))
    for k, n in enumerate(n_symbols.tolist()):
        columns = slice(d + places[k], d + places[k] + n)
        angles[k, :n] = LABEL_VALUE * fitted.frequencies[:, columns].T
        effects[k, :n] = LABEL_VALUE * linear[columns]
    frequencies = np.ascontiguousarray(fitted.frequencies[:, :d])
    single = amplitudes.astype(np.float32)
    return Control(frequencies, fitted.phases, single, linear[:d], constant[0] + mean, angles, effects)


def exact_control(model: object, mixture: Mixture) -> Control | None:
    """Return a model that is linear, of exponentials or of ridges as a control; None for any other."""
    if not isinstance(model, Products) or mixture.coordinates.are_ranks or len(mixture.labels):
        return None
    center, scale = mixture.coordinates.center, mixture.coordinates.scale
    products = model
    if model.ridges is not None:
        mean = mixture.weights @ mixture.means
        moved = mixture.means - mean
        covariance = np.einsum("k,kij->ij", mixture.weights, mixture.covariances)
        covariance += (mixture.weights[:, None] * moved).T @ moved
        directions = model.ridges.directions * scale
        middle = directions @ mean + model.ridges.directions @ center + model.ridges.offsets
        reach = _REACH * np.sqrt(((directions @ covariance) * directions).sum(axis=1))
        products, _ = model.expanded(middle - reach, middle + reach, center)
    waves = [part for part in products.terms if isinstance(part, Exponentials)]
    if len(waves) < len(products.terms):
        return None
    d, o = products.linear.shape
    growth, frequencies, amplitudes, phases = (
        [np.zeros((0, d))],
        [np.zeros((0, d))],
        [np.zeros((0, o))],
        [np.zeros(0)],
    )
    for part in waves:
        start = np.exp(part.rates[0] @ (center - part.origin))
        for of_sine in (0, 1):
            growth.append(part.rates[0] * scale)
            frequencies.append(part.rates[1] * scale)
            phases.append(part.rates[1] @ (center - part.origin) - of_sine * np.pi / 2)
            amplitudes.append(part.coefficients[:, of_sine].T * start[:, None])
    rates = np.concatenate(growth)
    return Control(
        np.concatenate(frequencies),
        np.concatenate(phases),
        np.concatenate(amplitudes),
        products.linear * scale[:, None],
        products.constant + center @ products.linear,
        np.zeros((0, 1, len(rates))),
        np.zeros((0, 1, o)),
        rates if rates.any() else None,
        is_exact=model.ridges is None,
    )
