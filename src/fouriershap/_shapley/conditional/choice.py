"""`DependenceChoice`: the model of the features' dependence that is asked for, or that held-out rows speak for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._dependence.fit import MODELS, fit_dependence
from fouriershap._dependence.mixture import Mixture
from fouriershap._shapley.conditional.game import ConditionalGame, Predict
from fouriershap._shapley.engine import DependenceReport

Floats = NDArray[np.float64]
AUTO = "auto"
_HELD_OUT, _MOST_HELD_OUT = 5, 200  # one of so many rows, and the most
_FEWEST = 50  # rows that can be split
_COALITIONS, _DRAWS = 32, 4


@dataclass(frozen=True)
class DependenceChoice:
    """Fits a dependence to rows.

    Attributes
    ----------
    name : {"auto", "gaussian", "copula", "mixture"}
    is_label : tuple of bool
        Which columns of codes hold labels.
    player : tuple of int
        Owner of each column.
    seed : int
    models : tuple of str
        Those that "auto" chooses from, the simplest first.
    """

    name: str
    is_label: tuple[bool, ...]
    player: tuple[int, ...]
    seed: int
    models: tuple[str, ...] = MODELS

    def __call__(
        self, rows: Floats, weights: Floats | None, predict: Predict
    ) -> tuple[Mixture, DependenceReport]:
        """Return the dependence, and how the candidates compare."""
        if weights is not None:  # rows without weight take no part
            rows, weights = rows[weights > 0], weights[weights > 0]
        labels = np.array(self.is_label, dtype=bool)
        report = DependenceReport(self.name)
        if self.name == AUTO:
            report = self._compare(rows, weights, predict, labels)
        return fit_dependence(report.name, rows, labels, weights, self.seed), report

    def _compare(
        self, rows: Floats, weights: Floats | None, predict: Predict, labels: NDArray[np.bool_]
    ) -> DependenceReport:
        """Compare candidates by the mean of (f(x) - v(S))^2 over held-out rows and coalitions.

        It is the least for the true conditional means, and what draws add to it is known from their variance. The
        simplest candidate is taken that is within two standard errors of the best: closer ones cannot be told apart.
        """
        player = np.array(self.player, dtype=np.int32)
        n_players = int(player.max(initial=-1)) + 1
        if len(rows) < _FEWEST or n_players < 2:
            return DependenceReport(MODELS[0])
        rng = np.random.default_rng([self.seed, 5])
        order = rng.permutation(len(rows))
        judged, others = np.split(order, [min(len(rows) // _HELD_OUT, _MOST_HELD_OUT)])
        share = None if weights is None else weights[others]
        sizes = rng.integers(1, n_players, _COALITIONS)
        masks = rng.random((_COALITIONS, n_players)).argsort(axis=1) < sizes[:, None]
        outputs = predict(rows[judged])
        of_rows = {}
        for name in self.models:
            mixture = fit_dependence(name, rows[others], labels, share, self.seed)
            game = ConditionalGame(predict, mixture, player, None, self.seed, outputs.shape[1])
            found = game.means(rows[judged], masks, 2 * _DRAWS, 0)
            of_rows[name] = ((outputs - found.values) ** 2 - found.variances).sum(axis=2).mean(axis=0)
        # Unknown features from rows that are drawn whatever is known.
        drawn = rows[rng.choice(others, _DRAWS * 2, p=None if share is None else share / share.sum())]
        mixed = np.where(masks[:, player][:, None, None], rows[judged][:, None], drawn)
        independent = predict(mixed.reshape(-1, rows.shape[1])).reshape(*mixed.shape[:3], -1)
        missed = (outputs - independent.mean(axis=2)) ** 2 - independent.var(axis=2, ddof=1) / len(drawn)
        losses = {name: float(found.mean()) for name, found in of_rows.items()}
        best = min(losses, key=losses.__getitem__)
        near = (name for name in self.models if _is_close(of_rows[name] - of_rows[best]))
        chosen = next(near, MODELS[0])  # no losses compare where outputs overflow
        return DependenceReport(chosen, losses, float(missed.sum(axis=2).mean()))


def _is_close(more: Floats) -> bool:
    """Return whether rows lose no more, on average, than by chance."""
    return bool(more.mean() <= 2 * more.std(ddof=1) / np.sqrt(len(more)))
