"""Draws from which SHAP values are estimated, each against one background row of its own.

A draw of `Pairs` is a coalition and its complement; values follow by a weighted regression over all draws. A draw of
`Chains` is a permutation and its reverse; values are means. Pairs win where interactions are dense, chains at kinks
and jumps. Either way an estimate is linear in the draws, so its error is a sum of one score per draw, and the same
analysis of variance (`components`) tells how much of it lies between background rows, which are finitely many, and
how much within them.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.indices import SHAPLEY, Index

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Masks = NDArray[np.bool_]
_TWICE = 4  # of the first draws, one in so many meets a background row for the second time
_REST = 0.25  # of a deck, which is dealt with the draws before it
_PRIOR = 4.0  # draws that the spread of other rows and players counts for
_FREEDOM = 20  # degrees of freedom from which a row's own spread within background rows is believed
_MOST_JUDGED = 1 << 22  # scores of players that are computed; of more draws, some tell enough
_LEAST_JUDGED = 2000
_BLOCK = 1 << 20  # cells of coalitions at a time


class Ends(NamedTuple):
    """What a function returns where nothing is drawn: for the row, for each background row, and these on average."""

    row: Floats  # (n_outputs,)
    others: Floats  # (n_background, n_outputs)
    mean: Floats  # (n_outputs,)


class Settled(NamedTuple):
    """An estimate from draws: values (n_players, n_outputs), and what some of the draws add to their error."""

    values: Floats
    scores: Floats  # (n_judged, n_players, n_outputs); with those of all draws, the error is about their sum
    judged: Ints  # which draws these are


class Draws(Protocol):
    """The draws of one row."""

    z: Ints  # the background row of each

    def __len__(self) -> int: ...

    @staticmethod
    def queries(n_players: int) -> int:
        """Return the queries of a draw."""

    @property
    def masks(self) -> Masks:
        """All coalitions that were asked, in the order of the answers."""

    def draw(self, z: Ints, rng: np.random.Generator) -> Masks:
        """Return new coalitions (n_queries, n_players), as many for each background row of ``z``."""

    def add(self, answers: Floats) -> None:
        """Add the answers (n_queries, n_outputs) to what was drawn last."""

    def settle(self, control: Floats | None, ends: Ends) -> Settled:
        """Return the estimate; ``control`` has the answers of a stand-in, which are subtracted, for all draws."""


class _Kept:
    """Draws and their answers, in the order in which they came."""

    def __init__(self, n_players: int) -> None:
        self.n_players = n_players
        self.z: Ints = np.zeros(0, dtype=np.int64)
        self.answers: Floats | None = None
        self._new: Ints = self.z

    def __len__(self) -> int:
        return len(self.z)

    def add(self, answers: Floats) -> None:
        grouped = answers.reshape(len(self._new), -1, answers.shape[1])
        self.answers = grouped if self.answers is None else np.concatenate([self.answers, grouped])
        self.z = np.concatenate([self.z, self._new])

    def _beyond(self, control: Floats | None, which: Ints | slice) -> Floats:
        """Return what the answers of some draws have beyond a control."""
        assert self.answers is not None
        found = self.answers[which]
        return found if control is None else found - control.reshape(self.answers.shape)[which]

    def _judged(self) -> Ints:
        """Return the draws that tell the error."""
        most = max(_MOST_JUDGED // self.n_players, _LEAST_JUDGED)
        return np.unique(np.linspace(0, len(self) - 1, min(len(self), most)).astype(np.int64))


class Pairs(_Kept):
    """Coalitions with their complements; a regression gives the values.

    Sizes are drawn evenly, and weights make up for it: they are those of the Shapley kernel, or, for Banzhaf values,
    coalitions are uniform and weights are equal.
    """

    def __init__(self, n_players: int, index: Index = SHAPLEY) -> None:
        super().__init__(n_players)
        self._adds_up = index.adds_up
        self.coalitions: Masks = np.zeros((0, n_players), dtype=bool)
        self._sums: tuple[int, Floats, Floats] = (0, np.zeros(0), np.zeros(0))
        self._controlled = False

    @staticmethod
    def queries(n_players: int) -> int:
        """Return the queries of a draw."""
        return 2

    def draw(self, z: Ints, rng: np.random.Generator) -> Masks:
        n, self._new = self.n_players, z
        if self._adds_up:
            size = rng.permutation(np.resize(rng.permutation(np.arange(1, n)), len(z)))
            drawn = rng.permuted(np.arange(n) < size[:, None], axis=1)
        else:
            drawn = rng.random((len(z), n)) < 0.5
        self.coalitions = np.concatenate([self.coalitions, drawn])
        return np.stack([drawn, ~drawn], axis=1).reshape(-1, n)

    @property
    def masks(self) -> Masks:
        """All coalitions that were asked, in the order of the answers."""
        return np.stack([self.coalitions, ~self.coalitions], axis=1).reshape(-1, self.n_players)

    def settle(self, control: Floats | None, ends: Ends) -> Settled:
        n, m = self.n_players, len(self)
        gram, moment = self._normal_equations(control, ends)
        inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True) if m < 2 * n else _inverse(gram)
        effects = inverse @ moment
        judged = self._judged()
        x, y, weight = self._rows(judged, control, ends)
        explained = min((n - 1 if self._adds_up else n) / m, 0.9)  # by chance; sizes and weights make it even
        residual = (y - x @ effects) * (weight / np.sqrt(1 - explained))[:, None]
        values = effects + (ends.row - ends.mean) / n if self._adds_up else effects
        return Settled(values, (x @ inverse)[:, :, None] * residual[:, None, :], judged)

    def _rows(self, which: Ints | slice, control: Floats | None, ends: Ends) -> tuple[Floats, Floats, Floats]:
        """Return regressors (m, n_players), targets (m, n_outputs) and weights (m,) of some draws."""
        n, coalitions, beyond = self.n_players, self.coalitions[which], self._beyond(control, which)
        y = (beyond[:, 0] - beyond[:, 1]) / 2
        if not self._adds_up:
            return coalitions.astype(np.float64) - 0.5, y, np.ones(len(y))
        size = coalitions.sum(axis=1)
        y = y - ((2 * size - n) / (2 * n))[:, None] * (ends.row - ends.others[self.z[which]])
        return coalitions.astype(np.float64) - (size / n)[:, None], y, 1.0 / (size * (n - size))

    def _normal_equations(self, control: Floats | None, ends: Ends) -> tuple[Floats, Floats]:
        """Return the matrix (n_players, n_players) and the right side of the regression; known draws are added up."""
        done, gram, moment = self._sums
        if done == 0 or (control is not None) != self._controlled:
            done, gram, moment = 0, np.zeros((self.n_players,) * 2), np.zeros((self.n_players, len(ends.row)))
        step = max(_BLOCK // self.n_players, 1)
        for first in range(done, len(self), step):
            x, y, weight = self._rows(slice(first, first + step), control, ends)
            weighted = x * weight[:, None]
            gram, moment = gram + weighted.T @ x, moment + weighted.T @ y
        self._sums, self._controlled = (len(self), gram, moment), control is not None
        return gram, moment


def _inverse(gram: Floats) -> Floats:
    """Return the inverse of a matrix of full rank, but for the ones vector, which may be its kernel."""
    n = len(gram)
    mean, ones = np.trace(gram) / n, np.full((n, n), 1 / n)
    has_kernel = np.abs(gram.sum(axis=0)).max() <= 1e-9 * mean * n
    try:
        inverse = np.linalg.inv(gram + mean * ones if has_kernel else gram)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(gram, rcond=1e-10, hermitian=True))
    return np.asarray(inverse - ones / mean if has_kernel else inverse)


class Chains(_Kept):
    """Permutations with their reverses; values are the means of what players add."""

    def __init__(self, n_players: int, index: Index = SHAPLEY) -> None:
        super().__init__(n_players)
        self._draw_places = index.places
        self.places: Ints = np.zeros((0, 2, n_players), dtype=np.int64)

    @staticmethod
    def queries(n_players: int) -> int:
        """Return the queries of a draw."""
        return 2 * (n_players - 1)

    def draw(self, z: Ints, rng: np.random.Generator) -> Masks:
        self._new = z
        new = self._draw_places(len(z), self.n_players, rng)
        self.places = np.concatenate([self.places, new])
        return self._masks_of(new)

    def _masks_of(self, places: Ints) -> Masks:
        inside = np.arange(1, self.n_players)[:, None] > places[:, :, None, :]
        return inside.reshape(-1, self.n_players)

    @property
    def masks(self) -> Masks:
        """All coalitions that were asked, in the order of the answers."""
        return self._masks_of(self.places)

    def settle(self, control: Floats | None, ends: Ends) -> Settled:
        n, m = self.n_players, len(self)
        beyond = self._beyond(control, slice(None)).reshape(m, 2, n - 1, -1)
        first, last = (
            np.broadcast_to(each, (m, beyond.shape[3])) for each in (ends.others[self.z], ends.row)
        )
        edges = (np.stack([each] * 2, axis=1)[:, :, None] for each in (first, last))
        added = np.diff(np.concatenate([next(edges), beyond, next(edges)], axis=2), axis=2)
        forward = np.take_along_axis(added[:, 0], self.places[:, 0, :, None], axis=1)
        backward = np.take_along_axis(added[:, 1], self.places[:, 1, :, None], axis=1)
        # Everybody's equal share of the sum is known for all background rows.
        found = (forward + backward) / 2 - ((last - first) / n)[:, None]
        mean = found.mean(axis=0)
        judged = self._judged()
        scores = (found[judged] - mean) * (np.sqrt((m + 1) / m) / max(m - 1, 1))  # few draws show too little
        return Settled(mean + (ends.row - ends.mean) / n, scores, judged)


class Decks:
    """Background rows, dealt to the draws of one row from shuffled decks, each row as often as its weight says."""

    def __init__(self, weights: Floats) -> None:
        self._weights = weights
        self._left: Ints = np.zeros(0, dtype=np.int64)
        self._early = self._left  # dealt for the second time, before their turn

    def deal(self, n: int, rng: np.random.Generator, is_first: bool = False) -> Ints:
        """Return about ``n`` background rows; of the first, some come twice, so that their own spread shows.

        What would be left of a deck that is nearly dealt is dealt as well: whole decks are balanced.
        """
        n_new = n - n // _TWICE if is_first and n >= _TWICE else n
        while len(self._left) < n_new:
            order = rng.permutation(len(self._weights))
            ends = np.floor(np.cumsum(self._weights[order]) * len(order) + rng.random() + 1e-9)
            counts = np.diff(ends, prepend=0.0).astype(np.int64)
            counts[np.isin(order, self._early) & (counts > 0)] -= 1
            self._early = self._early[:0]
            self._left = np.concatenate([self._left, rng.permutation(np.repeat(order, counts))])
        if len(self._left) - n_new < _REST * len(self._weights):
            n_new = len(self._left)
        dealt, self._left = self._left[:n_new], self._left[n_new:]
        self._early = dealt[: max(n - n_new, 0)] if is_first else self._early
        return np.concatenate([dealt, self._early]) if is_first else dealt


class Spread(NamedTuple):
    """Sums of squares of a row's scores (n_players, n_outputs)."""

    within: Floats  # about the means of their background rows
    freedom: int  # of that
    total: Floats
    n_draws: int
    imbalance: float  # sum over background rows of (times dealt - times that its weight says) ** 2


def spread_of(settled: Settled, z: Ints, weights: Floats) -> Spread:
    """Return how scores spread within background rows, and in all."""
    scores, m, met_by = settled.scores, len(z), z[settled.judged]
    order = np.argsort(met_by, kind="stable")
    counts = np.bincount(met_by, minlength=len(weights))
    met = counts[counts > 0]
    starts = np.concatenate([[0], np.cumsum(met)[:-1]])
    sums = np.add.reduceat(scores[order], starts, axis=0)
    total = np.einsum("ijk,ijk->jk", scores, scores)
    within = total - np.einsum("ijk,ijk,i->jk", sums, sums, 1 / met)
    imbalance = float(((np.bincount(z, minlength=len(weights)) - m * weights) ** 2).sum())
    return Spread(np.maximum(within, 0.0), len(met_by) - len(met), total * (m / len(met_by)), m, imbalance)


class Components(NamedTuple):
    """Variances of one draw, (n_rows, n_players, n_outputs): within background rows, and between them."""

    within: Floats
    between: Floats

    def variance(self, n_draws: Ints, imbalance: Floats) -> Floats:
        """Return the variances of the estimates."""
        count, uneven = n_draws[:, None, None], imbalance[:, None, None]
        return np.asarray(self.within / count + self.between * uneven / count**2)

    def draws_needed(self, target: Floats, n_background: float) -> Floats:
        """Return the draws (n_rows, n_players, n_outputs) after which variances are below the target."""
        with np.errstate(divide="ignore", invalid="ignore"):
            few = (self.within + self.between) / (target + self.between / n_background)
            needed = np.where(few <= n_background, few, self.within / target)
        return np.asarray(np.nan_to_num(needed, nan=0.0, posinf=np.inf))


def components(spreads: list[Spread]) -> Components:
    """Return the variances of a draw, row by row.

    A row that has seen few background rows twice takes the share of the spread that lies within them from all rows.
    Few draws tell little of their own spread, so that of other rows and of the row's other players is mixed in.
    """
    count = np.array([s.n_draws for s in spreads], dtype=float)[:, None, None]
    freedom = np.array([s.freedom for s in spreads], dtype=float)[:, None, None]
    total = np.stack([s.total for s in spreads]) * count
    squares = np.stack([s.within for s in spreads]) * count**2
    usual = np.maximum(total.mean(axis=0), 1e-300)
    pooled = squares.sum(axis=0) / np.maximum(freedom.sum(), 1)
    share = np.clip(pooled / usual, 0.0, 1.0) if freedom.sum() >= 1 else np.ones_like(usual)
    known = total if len(spreads) == 1 else usual
    total = (_PRIOR * (known + total.mean(axis=1, keepdims=True)) / 2 + count * total) / (_PRIOR + count)
    within = (_FREEDOM * share * total + squares) / (_FREEDOM + freedom)
    return Components(within, np.maximum(total - within, 0.0))
