"""A Gaussian process on coalitions, whose Shapley values and interactions have closed forms.

A coalition is a row of signs, 1 for players that are in. The prior gives a term of players f the variance
``amplitude * prod(relevance[i] for i in f)``, so the kernel is a product over players; of it the odd or the even part
is taken. Main effects (odd) or a constant (even) have a variance of their own, and so has each of a few chosen terms.
All variances, and that of the noise, maximise the marginal likelihood.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Term = tuple[int, ...]
_LEARNT = 300  # pairs that relevances are learnt from: a step takes time of the third power
_SCREENED = 600  # pairs that terms are chosen from
_STEPS, _TERM_STEPS, _ROUNDS = 15, 3, 3
_SPREAD, _DAMPING, _POWER = 1.0, 0.05, 0.45
_MOST_PLAYERS, _MOST_TERMS, _SEEDS = 64, 150, 100
_LEAST_NOISE = 1e-9  # share of the variance
_BLOCK = 128
_LOGS = 2.0


class GameKernel:
    """A function of signs, odd or even, fitted to values ``y`` (m,) at ``rows`` (m, n_players) of signs.

    ``known`` is the variance of the noise of the first value, that of the whole coalition.
    """

    def __init__(self, rows: Floats, y: Floats, is_odd: bool, known: float, rng: np.random.Generator) -> None:
        n = rows.shape[1]
        self._is_odd, self._known, self.rows = is_odd, known, rows
        self._variance = variance = float(np.mean(y**2))
        total = 2.0  # sum of relevances: terms of few players dominate
        self._relevance = np.full(n, min(0.9, total / n))
        self._main, self._amplitude = variance / (n if is_odd else 1), variance / np.sinh(total)
        self._noise = 0.01 * variance
        self._terms: list[Term] = []
        self._term_variance = np.zeros(0)
        self._learn(*_some(rows, y, _LEARNT, rng))
        some = _some(rows, y, _SCREENED, rng)
        for _ in range(_ROUNDS):
            if not self._choose_terms(*some):
                break
            self._learn_terms(*some)
        self._odd_even, self._factor, self.dual = self._solve(rows, y)
        self.noise = self._noises(len(y))

    @property
    def left_out(self) -> tuple[Floats, Floats]:
        """Return the error at each row of a fit to all others, and the variance that the fit expects of it."""
        precision = (self._factor**2).sum(axis=0)
        return self.dual / precision, 1 / precision

    def predict(self, rows: Floats) -> Floats:
        """Return the fit at other rows."""
        parts = [
            self._kernel(rows[i : i + _SCREENED], self.rows)[0] @ self.dual
            for i in range(0, len(rows), _SCREENED)
        ]
        return np.concatenate(parts)

    def shapley(self) -> tuple[Floats, Floats]:
        """Return the Shapley values of half the function, and their posterior variances."""
        x, points = self._points()
        weights = points * self._relevance[:, None] / (1 - (self._relevance[:, None] * x) ** 2)
        products = self._products(x)
        covariance = (
            self.rows * (products @ weights.T) - products @ (weights * self._relevance[:, None] * x).T
        )
        covariance *= self._amplitude / 2
        covariance += self._main * self.rows
        prior = self._main + self._amplitude * self._relevance * self._mean_inverse_square()
        for term, variance, column in zip(
            self._terms, self._term_variance, _characters(self.rows, self._terms).T, strict=True
        ):
            covariance[:, term] += (variance / len(term) * column)[:, None]
            prior[list(term)] += variance / len(term) ** 2
        explained = ((self._factor @ covariance) ** 2).sum(axis=0)
        return covariance.T @ self.dual, np.maximum(prior - explained, 0.0)

    def interactions(self, size: int) -> Floats:
        """Return the Shapley interaction index of half the function, for sets of so many players in turn."""
        n = self.rows.shape[1]
        place = {chosen: at for at, chosen in enumerate(combinations(range(n), size))}
        out = np.zeros(len(place))
        x, points = self._points()
        products = self._products(x) * points * self.dual[:, None]
        for q, t in enumerate(x):
            ratio = self._relevance * self.rows / (1 + t * self._relevance * self.rows)
            out += _products_of_columns(ratio, products[:, q], size)
        out *= self._amplitude * 2.0 ** (size - 2)
        coefficients = self._term_variance * (self.dual @ _characters(self.rows, self._terms))
        for term, coefficient in zip(self._terms, coefficients, strict=True):
            for chosen in combinations(term, size):
                out[place[chosen]] += 2.0 ** (size - 1) / (len(term) - size + 1) * coefficient
        if self._is_odd and size == 1:
            out += self._main * (self.dual @ self.rows)
        return out

    def _points(self) -> tuple[Floats, Floats]:
        return np.polynomial.legendre.leggauss(min(len(self._relevance) // 2 + 1, 24))

    def _products(self, x: Floats) -> Floats:
        """Return the products over players of 1 + relevance * sign * x, (m, len(x))."""
        scaled = self._relevance[:, None] * x
        return np.exp(0.5 * np.log1p(-(scaled**2)).sum(axis=0) + self.rows @ np.arctanh(scaled))

    def _mean_inverse_square(self) -> Floats:
        """Return, for each player, the sum of products of other players' relevances over squared degrees."""
        n = len(self._relevance)
        by_degree = np.zeros((n, min(n, 40)))  # by the number of others
        by_degree[:, 0] = 1
        for k, relevance in enumerate(self._relevance):
            more = relevance * by_degree[:, :-1]
            more[k] = 0
            by_degree[:, 1:] += more
        degree = np.arange(1, by_degree.shape[1] + 1)
        return np.asarray((by_degree * (degree % 2) / degree**2).sum(axis=1))

    def _kernel(self, left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the kernel, and the part of the product of its own parity and of the other."""
        scale = np.exp(0.5 * np.log1p(-(self._relevance**2)).sum())
        plus = np.exp((left * np.arctanh(self._relevance)) @ right.T) * (scale / 2)
        minus = (scale / 2) ** 2 / plus
        own, other = (plus - minus, plus + minus) if self._is_odd else (plus + minus, plus - minus)
        kernel = self._amplitude * own + self._main * (left @ right.T if self._is_odd else 1.0)
        if self._terms:
            kernel += (_characters(left, self._terms) * self._term_variance) @ _characters(
                right, self._terms
            ).T
        return kernel, own, other

    def _noises(self, m: int) -> Floats:
        noise = np.full(m, self._noise)
        noise[0] = self._known + 1e-3 * self._noise
        return noise

    def _solve(self, rows: Floats, y: Floats) -> tuple[tuple[Floats, Floats], Floats, Floats]:
        """Return both parts of the product, the inverse Cholesky factor, and the dual coefficients."""
        kernel, own, other = self._kernel(rows, rows)
        kernel[np.diag_indices(len(y))] += self._noises(len(y)) + 1e-11 * kernel[0, 0]
        factor = _inverse(np.linalg.cholesky(kernel))
        return (own, other), factor, factor.T @ (factor @ y)

    def _learn(self, rows: Floats, y: Floats) -> None:
        """Let every variance grow or shrink by how much of the answers it explains against what it expects."""
        for _ in range(_STEPS):
            (own, other), factor, dual = self._solve(rows, y)
            inverse = factor.T @ factor
            found, expected = [], []
            each = self._amplitude * self._relevance / (1 - self._relevance**2)
            for square, out in ((np.outer(dual, dual), found), (inverse, expected)):
                products = float((square * own).sum())
                by_player = np.einsum("ji,ji->i", rows, (square * other) @ rows) - self._relevance * products
                main = np.einsum("ji,ji->", rows, square @ rows) if self._is_odd else square.sum()
                out += [each * by_player, products, main, np.trace(square) - square[0, 0]]
            logarithm = np.log(self._relevance)
            pull = (logarithm - logarithm.mean()) / _SPREAD
            found[0] = np.maximum(found[0], 0.0) + np.maximum(-pull, 0.0) + _DAMPING
            expected[0] = np.maximum(expected[0], 0.0) + np.maximum(pull, 0.0) + _DAMPING
            ratio = [
                np.clip(a / np.maximum(b, 1e-300), 0.05, 20.0) ** _POWER
                for a, b in zip(found, expected, strict=True)
            ]
            self._relevance = np.clip(self._relevance * ratio[0], 1e-4, 0.9)
            self._amplitude *= float(ratio[1])
            self._main *= float(ratio[2])
            self._noise = max(self._noise * float(ratio[3]), _LEAST_NOISE * self._variance)

    def _choose_terms(self, rows: Floats, y: Floats) -> bool:
        """Add terms that matter more than the prior expects; return whether there are any.

        The square of a score beyond its variance is chance with probability 1 / number of candidates.
        """
        _, factor, dual = self._solve(rows, y)
        players = np.sort(np.argsort(-self._relevance, kind="stable")[:_MOST_PLAYERS])
        pairs = list(combinations(players.tolist(), 2))
        if not pairs:
            return False
        products = _characters(rows, pairs)
        seeds = [(player,) for player in players.tolist()] if self._is_odd else [()]
        candidates: list[Term] = []
        n_candidates = 0
        for _ in range(2):  # degrees 3 and 5, or 2 and 4
            scores = (_characters(rows, seeds) * dual[:, None]).T @ products
            order = np.argsort(-np.abs(scores), axis=None)[: 10 * _MOST_TERMS]
            found = {
                tuple(sorted((*seeds[s], *pairs[p]))): None
                for s, p in zip(*np.unravel_index(order, scores.shape), strict=True)
                if not set(seeds[s]) & set(pairs[p])
            }
            seeds = list(found)[:_SEEDS]
            candidates += list(found)[: 2 * _MOST_TERMS]
            n_candidates += scores.size
            if not seeds:
                break
        known = set(self._terms)
        candidates = [term for term in candidates if term not in known]
        if not candidates:
            return False
        columns = _characters(rows, candidates)
        square, expected = (dual @ columns) ** 2, ((factor @ columns) ** 2).sum(axis=0)
        most = min(_MOST_TERMS, len(y) // 10) - len(self._terms)
        order = np.argsort(-square / expected, kind="stable")[: max(most, 0)]
        order = order[(square > _LOGS * np.log(n_candidates) * expected)[order]]
        self._terms += [candidates[k] for k in order.tolist()]
        new = (square - expected)[order] / expected[order] ** 2
        self._term_variance = np.append(self._term_variance, new)
        return len(order) > 0

    def _learn_terms(self, rows: Floats, y: Floats) -> None:
        """Learn the variances of the chosen terms, of the other terms and of the noise; drop terms that vanish."""
        for _ in range(_TERM_STEPS):
            (own, _), factor, dual = self._solve(rows, y)
            columns = _characters(rows, self._terms)
            expected = ((factor @ columns) ** 2).sum(axis=0)
            self._term_variance *= np.clip((dual @ columns) ** 2 / expected, 1e-3, 20.0) ** 0.5
            # Expectations of all parts add up to the number of rows.
            main = rows if self._is_odd else rows[:, :1] ** 2
            rest = self._main * float(((factor @ main) ** 2).sum()) + float(self._term_variance @ expected)
            rest += float((factor**2).sum(axis=0) @ self._noises(len(y)))
            ratio = self._amplitude * float(dual @ own @ dual) / max(len(y) - rest, 1e-9)
            self._amplitude *= float(np.clip(ratio, 0.05, 20.0) ** 0.5)
            ratio = float((dual[1:] ** 2).sum() / (factor[:, 1:] ** 2).sum())
            self._noise = max(
                self._noise * float(np.clip(ratio, 0.05, 20.0)) ** 0.5, _LEAST_NOISE * self._variance
            )
            kept = self._term_variance * expected > 0.01
            self._terms = [term for term, keep in zip(self._terms, kept.tolist(), strict=True) if keep]
            self._term_variance = self._term_variance[kept]
            if not self._terms:
                break


def _some(rows: Floats, y: Floats, most: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the first row and some of the others."""
    if len(y) <= most:
        return rows, y
    chosen = np.append(0, np.sort(rng.choice(np.arange(1, len(y)), most - 1, replace=False)))
    return rows[chosen], y[chosen]


def _characters(rows: Floats, terms: list[Term]) -> Floats:
    """Return the product of the signs of each term's players, (m, n_terms)."""
    out = np.ones((len(rows), len(terms)))
    by_degree: dict[int, list[int]] = {}
    for k, term in enumerate(terms):
        by_degree.setdefault(len(term), []).append(k)
    for degree, which in by_degree.items():
        players = np.array([terms[k] for k in which], dtype=np.int64).reshape(len(which), degree)
        columns = out[:, which]
        for d in range(degree):
            columns *= rows[:, players[:, d]]
        out[:, which] = columns
    return out


def _products_of_columns(columns: Floats, weights: Floats, size: int) -> Floats:
    """Return the weighted sum over rows of the product of the columns of each set of this size, in turn."""
    if size == 1:
        return weights @ columns
    n = columns.shape[1]
    parts = []
    for first in combinations(range(n), size - 2):
        rest = columns[:, first[-1] + 1 if first else 0 :]
        weighted = (weights * columns[:, first].prod(axis=1))[:, None] * rest
        parts.append((weighted.T @ rest)[np.triu_indices(rest.shape[1], 1)])
    return np.concatenate(parts)


def _inverse(lower: Floats) -> Floats:
    """Return the inverse of a lower triangular matrix, by halves: mostly products of matrices."""
    n = len(lower)
    if n <= _BLOCK:
        return np.linalg.inv(lower)
    h = n // 2
    out = np.zeros_like(lower)
    out[:h, :h], out[h:, h:] = _inverse(lower[:h, :h]), _inverse(lower[h:, h:])
    out[h:, :h] = -out[h:, h:] @ (lower[h:, :h] @ out[:h, :h])
    return out
