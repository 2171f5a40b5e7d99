"""`ConditionalGame`: v(S) = E[f(X) | X_S = x_S] of rows, by closed forms and conditional draws of what these miss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._dependence.causes import Chain, Intervened
from fouriershap._dependence.mixture import Conditioned, Draws, Mixture, row_patterns
from fouriershap._shapley.conditional.control import Control

Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]
Masks = NDArray[np.bool_]
_FARTHEST = 1e10  # standard deviations
_CHUNK = 32  # coalitions at a time; random numbers depend on it
_NUMBERS = 1 << 21  # that are drawn at a time


class Means(NamedTuple):
    """Estimates of v(S), (n_coalitions, n_rows, n_outputs): the closed form, what is drawn, and its variances."""

    closed: Floats
    drawn: Floats
    variances: Floats

    @property
    def values(self) -> Floats:
        return self.closed + self.drawn


@dataclass(frozen=True, eq=False)
class ConditionalGame:
    """The games of rows of codes.

    Attributes
    ----------
    predict : callable
        Rows of codes (n, n_features) to outputs (n, n_outputs).
    mixture : Mixture
    player : (n_features,) int32
    control : Control, optional
        What is subtracted from the outputs before they are drawn, and added as a closed form.
    seed : int
    chain : Chain, optional
        Features are set, in place of known, and act along this chain.
    """

    predict: Predict
    mixture: Mixture
    player: NDArray[np.int32]
    control: Control | None
    seed: int
    n_outputs: int
    chain: Chain | None = None

    def means(self, rows: Floats, masks: Masks, n_draws: int, key: int, with_closed: bool = True) -> Means:
        """Return v of coalitions (n_coalitions, n_players), from so many draws each.

        The same ``key`` draws the same random numbers, whatever the rows. Closed forms can be left out.
        """
        out = Means(*np.zeros((3, len(masks), len(rows), self.n_outputs)))
        features = masks[:, self.player]
        is_closed = self.control is not None and self.control.is_exact
        draws = 0 if is_closed else n_draws
        positions = self.mixture.positions(rows)
        far = np.isinf(positions) if is_closed else np.abs(positions) > _FARTHEST
        if far.any():
            raise InputError(
                f"row {int(far.any(axis=1).argmax())} of {len(rows)} has infinite values, or some that are more than "
                f"{_FARTHEST:g} standard deviations from their mean, of which this dependence knows nothing. Leave "
                "such rows out, or use dependence='copula'."
            )
        for some, gone in row_patterns(positions):
            for first in range(0, len(masks), _CHUNK):
                part = slice(first, first + _CHUNK)
                conditioned = self._condition(features[part], gone)
                self._add(out, rows, some, part, conditioned, draws, key, with_closed)
        return out

    def mean(self, sample: Draws, outputs: Floats) -> tuple[Floats, Floats]:
        """Return the mean output and its variance, (n_outputs,); ``outputs`` are those of a sample of the mixture."""
        closed, left = np.zeros(self.n_outputs), outputs
        if self.control is not None:
            nothing = np.zeros((1, len(self.mixture.is_label)), dtype=bool)
            conditioned = self.mixture.condition(nothing, np.zeros(len(self.mixture.numbers), dtype=bool))
            row = sample.codes[:1]
            closed = self.control.expect(conditioned, conditioned.given(row), row)[0, 0]
            left = (
                np.zeros((2, self.n_outputs))
                if self.control.is_exact
                else outputs - self.control.predict(sample)
            )
        return closed + left.mean(axis=0), left.var(axis=0) / len(left)

    def _condition(self, features: Masks, gone: Masks) -> Conditioned:
        if self.chain is None:
            return self.mixture.condition(features, gone)
        return Intervened(self.mixture, features, gone, self.chain)

    def _add(
        self,
        out: Means,
        rows: Floats,
        some: NDArray[np.int64],
        part: slice,
        conditioned: Conditioned,
        draws: int,
        key: int,
        with_closed: bool,
    ) -> None:
        """Add the means of some rows and coalitions."""
        n_masks, n = conditioned.masks.shape
        # Pairs of draws that mirror each other, where nothing has taken what is nearly linear.
        mirrored = self.control is None and draws % 2 == 0
        n_units = draws // 2 if mirrored else draws
        noise = conditioned.noise(draws, np.random.default_rng([self.seed, key, part.start]), mirrored)
        step = max(_NUMBERS // max(n_masks * max(draws * n, self.mixture.n_components * (n + 64)), 1), 1)
        for first in range(0, len(some), step):
            at = some[first : first + step]
            given = conditioned.given(rows[at])
            if self.control is not None and with_closed:
                out.closed[part, at] = self.control.expect(conditioned, given, rows[at])
            if not draws:
                continue
            drawn = conditioned.draw(rows[at], given, noise)
            left = self.predict(drawn.codes)
            if self.control is not None:
                left = left - self.control.predict(drawn)
            left = left.reshape(n_masks, len(at), draws, -1)
            if mirrored:
                left = (left[:, :, :n_units] + left[:, :, n_units:]) / 2
            out.drawn[part, at] = left.mean(axis=2)
            if n_units > 1:
                out.variances[part, at] = left.var(axis=2, ddof=1) / n_units
