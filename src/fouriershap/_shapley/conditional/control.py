"""`Control`: a sum of waves in the coordinates of a dependence, whose conditional means have a closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._base.threads import one_blas_thread
from fouriershap._dependence.mixture import Conditioned, Draws, Given, Mixture
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
_FAR = 1e3  # standard deviations beyond which angles need double precision
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
    symbol_angles : (n_varied, n_symbols + 1, n_waves)
        What each symbol of a label, or a missing number, adds to the angles; the last is unknown and adds nothing.
    symbol_effects : (n_varied, n_symbols + 1, n_outputs)
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
    def from_contents(cls, arrays: dict[str, NDArray[Any]], is_exact: bool, mixture: Mixture) -> Self:
        """Build from what `to_contents` returned."""
        own = {name: arrays[name] for name in _ARRAYS}
        w, o, d = len(own["phases"]), len(own["constant"]), len(mixture.numbers)
        labels = len(mixture.varied), int(mixture.n_symbols[mixture.varied].max(initial=0)) + 1
        shapes = {
            "frequencies": (w, d),
            "phases": (w,),
            "amplitudes": (w, o),
            "linear": (d, o),
            "constant": (o,),
        }
        shapes |= {"symbol_angles": (*labels, w), "symbol_effects": (*labels, o), "growth": (w, d)}
        for name, array in arrays.items():
            fits = array.shape == shapes.get(name) and array.dtype.kind == "f" and np.isfinite(array).all()
            require(fits, f"{name} of its control is not what belongs to its features")
        return cls(**own, growth=arrays.get("growth"), is_exact=is_exact)

    def predict(self, draws: Draws) -> Floats:
        """Return outputs (n_draws, n_outputs)."""
        out = np.empty((len(draws.codes), len(self.constant)))
        for first in range(0, len(out), _BLOCK):
            _, positions, symbols = (each[first : first + _BLOCK] for each in draws)
            angles = positions.astype(self._dtype(positions)) @ self.frequencies.T + self.phases
            found = positions @ self.linear + self.constant
            for v, mine in enumerate(symbols.T):
                angles += self.symbol_angles[v, mine]
                found += self.symbol_effects[v, mine]
            waves = np.cos(angles)
            if self.growth is not None:
                waves *= np.exp(positions @ self.growth.T)
            out[first : first + len(found)] = found + waves @ self.amplitudes
        return out

    def expect(self, conditioned: Conditioned, given: Given, rows: Floats) -> Floats:
        """Return conditional means (n_coalitions, n_rows, n_outputs).

        The mean of exp(i u.z) of a Gaussian is exp(i u.m - u'Cu / 2); that of independent labels is a product.
        """
        mixture, dtype = conditioned.mixture, self._dtype(given.means)
        known = conditioned.masks[:, mixture.varied].astype(dtype)
        varied = np.arange(len(mixture.varied))
        symbols = mixture.symbols(rows)[:, mixture.varied]
        own = np.tensordot(known, self.symbol_angles[varied, symbols], (1, 1)) + self.phases
        effects = np.tensordot(known, self.symbol_effects[varied, symbols], (1, 1)) + self.constant
        out = np.zeros((*given.shares.shape[1:], len(self.constant)))
        for k in range(mixture.n_components):
            shares = mixture.shares[k, mixture.varied, : self.symbol_angles.shape[1] - 1][:, :, None]
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

    def _dtype(self, positions: NDArray[Any]) -> np.dtype[Any]:
        """Return the precision of angles at these coordinates."""
        is_far = np.abs(positions).max(initial=0.0) > _FAR
        return np.dtype(np.float64) if is_far else self.phases.dtype


def fit_control(draws: Draws, outputs: Floats, mixture: Mixture, seed: int) -> Control:
    """Fit waves to the outputs (n_draws, n_outputs) of draws from the mixture."""
    n_symbols, d = mixture.n_symbols[mixture.varied], draws.positions.shape[1]
    places = d + np.concatenate([[0], np.cumsum(n_symbols)])
    inputs = np.zeros((len(outputs), places[-1]), dtype=np.float32)
    inputs[:, :d] = draws.positions
    for v, place in enumerate(places[:-1]):
        inputs[np.arange(len(inputs)), place + draws.symbols[:, v]] = LABEL_VALUE
    mean, scale = outputs.mean(axis=0), outputs.std(axis=0)
    scale = np.where(scale > 1e-12 * np.abs(mean), scale, 1.0)
    targets = (outputs - mean) / scale
    held_out = np.arange(len(inputs)) % _HELD_OUT == 0
    train, judge = (inputs[~held_out], targets[~held_out]), (inputs[held_out], targets[held_out])
    with one_blas_thread():
        fits = [
            fit_waves(*train, Settings(n, 256, 20, 1e-2), np.random.default_rng([seed, n]), judge)
            for n in _SIZES
        ]
    few, many = (float(((each.predict(judge[0]) - judge[1]) ** 2).sum()) for each in fits)
    fitted = fits[int(many < _WORTH_MORE * few)]
    n_waves = len(fitted.phases)
    amplitudes, linear, constant = np.split(fitted.weights * scale, [n_waves, n_waves + inputs.shape[1]])
    most = int(n_symbols.max(initial=0)) + 1
    angles = np.zeros((len(n_symbols), most, n_waves), dtype=np.float32)
    effects = np.zeros((len(n_symbols), most, len(scale)))
    for k, n in enumerate(n_symbols.tolist()):
        columns = slice(places[k], places[k] + n)
        angles[k, :n] = LABEL_VALUE * fitted.frequencies[:, columns].T
        effects[k, :n] = LABEL_VALUE * linear[columns]
    frequencies = np.ascontiguousarray(fitted.frequencies[:, :d])
    single = amplitudes.astype(np.float32)
    return Control(frequencies, fitted.phases, single, linear[:d], constant[0] + mean, angles, effects)


def exact_control(model: object, mixture: Mixture) -> Control | None:
    """Return a model that is linear, of exponentials or of ridges as a control; None for any other."""
    if not isinstance(model, Products) or mixture.coordinates.are_ranks or len(mixture.varied):
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
