"""`ConditionalGame`: v(S) = E[f(X) | X_S = x_S] of rows, by closed forms and conditional draws of what these miss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._dependence.mixture import Mixture, row_patterns
from fouriershap._shapley.conditional.control import Control

Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]
Masks = NDArray[np.bool_]
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
    """

    predict: Predict
    mixture: Mixture
    player: NDArray[np.int32]
    control: Control | None
    seed: int
    n_outputs: int

    def means(self, rows: Floats, masks: Masks, n_draws: int, key: int, with_closed: bool = True) -> Means:
        """Return v of coalitions (n_coalitions, n_players), from so many draws each.

        The same ``key`` draws the same random numbers, whatever the rows. Closed forms can be left out.
        """
        out = Means(*np.zeros((3, len(masks), len(rows), self.n_outputs)))
        features = masks[:, self.player]
        for some, gone in row_patterns(self.mixture.positions(rows)):
            control = None if gone.any() or self.mixture.has_missing_numbers else self.control
            for first in range(0, len(masks), _CHUNK):
                part = slice(first, first + _CHUNK)
                self._add(out, rows, some, features, part, gone, control, (n_draws, key, with_closed))
        return out

    def mean(self, n_draws: int) -> tuple[Floats, Floats]:
        """Return the mean output and its variance, (n_outputs,)."""
        rng = np.random.default_rng([self.seed, 1])
        rows = self.mixture.sample(n_draws, rng)
        outputs = self.predict(rows)
        if self.control is None or self.mixture.has_missing_numbers:
            return outputs.mean(axis=0), outputs.var(axis=0) / n_draws
        nothing = np.zeros((1, len(self.mixture.is_label)), dtype=bool)
        conditioned = self.mixture.condition(nothing, np.zeros(len(self.mixture.numbers), dtype=bool))
        closed = self.control.expect(conditioned, conditioned.given(rows[:1]), rows[:1])[0, 0]
        if self.control.is_exact:
            return closed, np.zeros_like(closed)
        left = outputs - self.control.predict(self.mixture, rows)
        return closed + left.mean(axis=0), left.var(axis=0) / n_draws

    def _add(
        self,
        out: Means,
        rows: Floats,
        some: NDArray[np.int64],
        features: Masks,
        part: slice,
        gone: Masks,
        control: Control | None,
        how: tuple[int, int, bool],
    ) -> None:
        """Add the means of some rows and coalitions."""
        n_draws, key, with_closed = how
        mixture, masks = self.mixture, features[part]
        conditioned = mixture.condition(masks, gone)
        draws = n_draws if control is None or not control.is_exact else 0
        # Pairs of draws that mirror each other, where nothing has taken what is nearly linear.
        mirrored = control is None and draws % 2 == 0
        n_units = draws // 2 if mirrored else draws
        noise = conditioned.noise(draws, np.random.default_rng([self.seed, key, part.start]), mirrored)
        width = len(masks) * max(draws * rows.shape[1], mixture.n_components * (rows.shape[1] + 64))
        step = max(_NUMBERS // max(width, 1), 1)
        for first in range(0, len(some), step):
            at = some[first : first + step]
            given = conditioned.given(rows[at])
            if control is not None and with_closed:
                out.closed[part, at] = control.expect(conditioned, given, rows[at])
            if not draws:
                continue
            drawn = conditioned.draw(rows[at], given, noise).reshape(-1, rows.shape[1])
            left = self.predict(drawn)
            if control is not None:
                left = left - control.predict(mixture, drawn)
            left = left.reshape(len(masks), len(at), draws, -1)
            if mirrored:
                left = (left[:, :, :n_units] + left[:, :, n_units:]) / 2
            out.drawn[part, at] = left.mean(axis=2)
            if n_units > 1:
                out.variances[part, at] = left.var(axis=2, ddof=1) / n_units
