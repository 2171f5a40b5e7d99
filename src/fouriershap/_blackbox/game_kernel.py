"""A Gaussian process on coalitions, whose Shapley values and interactions have closed forms.

A coalition is a row of signs, 1 for players that are in. The prior gives the term of a set of players the variance
``amplitude * prod(relevance of each)``, so the kernel is a product over players, of which the odd or the even part is
taken. Main effects (odd) or a constant (even) have a variance of their own, and so has each of a few chosen terms. All
variances, and that of the noise, grow or shrink until they explain as much of the answers as they expect to, where the
marginal likelihood is greatest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_LEARNT, _STEPS = 300, 15  # pairs that relevances are learnt from, and steps
_SCREENED, _TERM_STEPS, _EVERY = (
    600,
    12,
    4,
)  # pairs that terms are chosen from, steps, and how often some are added
_MOST_PLAYERS, _MOST_TERMS, _SEEDS = 64, 150, 100
_POWER = 0.45  # larger steps overshoot: a relevance counts in terms of any number of players
_DAMPING = 0.05
_PSEUDO = 3.0
_LEAST_NOISE = 1e-9  # share of the variance


class GameKernel:
    """A function of signs, odd or even, fitted to values ``y`` (m,) at ``rows`` (m, n_players) of signs.

    ``known`` is the variance of the noise of the first value, that of all players. ``dual`` (m,) are the coefficients
    of the fit, ``noise`` (m,) the variances of the noise.
    """

    def __init__(self, rows: Floats, y: Floats, is_odd: bool, known: float, rng: np.random.Generator) -> None:
        n = rows.shape[1]
        self._rows, self._is_odd, self._known = rows, is_odd, known
        self._scale = variance = float(np.mean(y[1:] ** 2)) or float(y[0] ** 2)
        self._relevance = np.full(n, min(0.9, 2.0 / n))
        self._main, self._amplitude = variance / (n if is_odd else 1), variance / np.sinh(2.0)
        self._noise = np.append(1e-5, np.full(n // 2, 0.01)) * variance
        self._terms: list[tuple[int, ...]] = []
        self._variances = np.zeros(0)
        self._learn(*_some(rows, y, _LEARNT, rng))
        self._learn_terms(*_some(rows, y, _SCREENED, rng))
        self._factor, self.dual = self._solve(rows, y, self._products(rows, rows)[0])
        self.noise = self._noises(rows)

    def left_out(self) -> tuple[Floats, Floats]:
        """Return the error at each row of a fit to all others, and the variance that this fit expects of it."""
        precision = (self._factor**2).sum(axis=0)
        return self.dual / precision, 1 / precision

    def predict(self, rows: Floats) -> Floats:
        """Return the fit at other rows."""
        parts = np.array_split(rows, len(rows) // 1000 + 1)
        return np.concatenate(
            [
                self._kernel(some, self._rows, self._products(some, self._rows)[0]) @ self.dual
                for some in parts
            ]
        )

    def shapley(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the Shapley values of half the function, and their posterior variances.

        ``shares`` (m, n_players) of the answers' deviations, which are noise to the process, belong to the values.
        """
        x, points = self._quadrature()
        scaled = self._relevance[:, None] * x
        weights = self._amplitude / 2 * points * self._relevance[:, None] / (1 - scaled**2)
        products = self._path_products(scaled)
        covariance = self._rows * (products @ weights.T) - products @ (weights * scaled).T
        covariance += self._main * self._rows
        prior = self._main + self._amplitude * self._relevance * self._others_over_squared_degree()
        columns = _characters(self._rows, self._terms)
        for term, variance, column in zip(self._terms, self._variances, columns.T, strict=True):
            covariance[:, term] += (variance / len(term) * column)[:, None]
            prior[list(term)] += variance / len(term) ** 2
        covariance += self.noise[:, None] * shares
        explained = ((self._factor @ covariance) ** 2).sum(axis=0)
        return covariance.T @ self.dual, prior - explained

    def interactions(self, size: int) -> Floats:
        """Return the Shapley interaction index of half the function, for all sets of so many (>= 2) players."""
        x, points = self._quadrature()
        products = self._path_products(self._relevance[:, None] * x) * points * self.dual[:, None]
        sets = list(combinations(range(self._rows.shape[1]), size))
        out = np.zeros(len(sets))
        for t, weights in zip(x, products.T, strict=True):
            ratio = self._relevance * self._rows / (1 + t * self._relevance * self._rows)
            out += _sum_products(ratio, weights, size)
        out *= self._amplitude * 2.0 ** (size - 2)
        place = {players: at for at, players in enumerate(sets)}
        coefficients = self._variances * (self.dual @ _characters(self._rows, self._terms))
        for term, coefficient in zip(self._terms, coefficients, strict=True):
            for players in combinations(term, size):
                out[place[players]] += 2.0 ** (size - 1) / (len(term) - size + 1) * coefficient
        return out

    def _quadrature(self) -> tuple[Floats, Floats]:
        return np.polynomial.legendre.leggauss(min(len(self._relevance) // 2 + 1, 24))

    def _path_products(self, scaled: Floats) -> Floats:
        """Return the products over players of 1 + sign * scaled, (m, n_points)."""
        return np.asarray(np.exp(0.5 * np.log1p(-(scaled**2)).sum(axis=0) + self._rows @ np.arctanh(scaled)))

    def _others_over_squared_degree(self) -> Floats:
        """Return for each player the sum over sets of others of their relevances' product by the squared degree."""
        n = len(self._relevance)
        by_number = np.eye(1, min(n, 40)).repeat(n, axis=0)
        for k, relevance in enumerate(self._relevance):
            more = relevance * by_number[:, :-1]
            more[k] = 0
            by_number[:, 1:] += more
        degree = np.arange(1, by_number.shape[1] + 1)
        return np.asarray(by_number @ (degree % 2 / degree**2))

    def _products(self, left: Floats, right: Floats) -> tuple[Floats, Floats]:
        """Return the part of the product kernel that is odd, or even, as the function is, and the other part."""
        half = 0.5 * np.exp(0.5 * np.log1p(-(self._relevance**2)).sum())
        plus = half * np.exp((left * np.arctanh(self._relevance)) @ right.T)
        minus = half**2 / plus
        return (plus - minus, plus + minus) if self._is_odd else (plus + minus, plus - minus)

    def _kernel(self, left: Floats, right: Floats, products: Floats) -> Floats:
        kernel: Floats = self._amplitude * products + self._main * (left @ right.T if self._is_odd else 1.0)
        if self._terms:
            kernel += (_characters(left, self._terms) * self._variances) @ _characters(right, self._terms).T
        return kernel

    def _noises(self, rows: Floats) -> Floats:
        noises = self._noise[_sizes(rows)]
        noises[0] += self._known
        return np.asarray(noises)

    def _solve(self, rows: Floats, y: Floats, products: Floats) -> tuple[Floats, Floats]:
        """Return the inverse of the Cholesky factor, and the dual coefficients."""
        kernel = self._kernel(rows, rows, products)
        kernel[np.diag_indices(len(y))] += self._noises(rows) + 1e-11 * kernel[0, 0]
        factor = _inverse(np.linalg.cholesky(kernel))
        return factor, factor.T @ (factor @ y)

    def _grow_noise(self, rows: Floats, factor: Floats, dual: Floats) -> None:
        """Learn the noise of each size; that of the first value if this is over three standard deviations off."""
        noises, sizes = self._noises(rows), _sizes(rows)
        precision = (factor**2).sum(axis=0)
        found, expected = (
            np.bincount(sizes, noises * each, len(self._noise)) for each in (dual**2, precision)
        )
        steps = _step((found + _PSEUDO * found[1:].sum() / expected[1:].sum()) / (expected + _PSEUDO))
        steps[0] = _step(dual[0] ** 2 / precision[0] / 9)
        self._noise = np.maximum(self._noise * steps, _LEAST_NOISE * self._scale)
        self._noise[0] = max(self._noise[0], 1e-3 * self._noise[1:].min())

    def _learn(self, rows: Floats, y: Floats) -> None:
        """Learn the relevances, of which large and small ones need evidence, and the other variances."""
        for _ in range(_STEPS):
            own, other = self._products(rows, rows)
            factor, dual = self._solve(rows, y, own)
            each = self._amplitude * self._relevance / (1 - self._relevance**2)
            found: list[Floats] = []
            expected: list[Floats] = []
            for square, out in ((np.outer(dual, dual), found), (factor.T @ factor, expected)):
                products = float((square * own).sum())
                by_player = np.einsum("ji,ji->i", rows, (square * other) @ rows) - self._relevance * products
                main = np.einsum("ji,ji->", rows, square @ rows) if self._is_odd else square.sum()
                out += [np.maximum(each * by_player, 0.0) + _DAMPING, np.asarray(products), np.asarray(main)]
            pull = np.log(self._relevance) - np.log(self._relevance).mean()
            found[0] += np.maximum(-pull, 0.0)
            expected[0] += np.maximum(pull, 0.0)
            steps = [_step(f / e) for f, e in zip(found, expected, strict=True)]
            self._relevance = np.clip(self._relevance * steps[0], 1e-4, 0.9)
            self._amplitude *= float(steps[1])
            self._main *= float(steps[2])
            self._grow_noise(rows, factor, dual)

    def _learn_terms(self, rows: Floats, y: Floats) -> None:
        """Add terms that matter more than the prior expects, learn their variances, and drop those that vanish."""
        own, _ = self._products(rows, rows)
        main = rows if self._is_odd else np.ones((len(rows), 1))
        for step in range(_TERM_STEPS):
            factor, dual = self._solve(rows, y, own)
            if step % _EVERY == 0:
                if not self._add_terms(rows, factor, dual):
                    return
                continue
            columns = _characters(rows, self._terms)
            expected = ((factor @ columns) ** 2).sum(axis=0)
            # What all parts expect adds up to the number of rows.
            rest = self._main * float(((factor @ main) ** 2).sum()) + float(self._variances @ expected)
            rest = len(y) - rest - float((factor**2).sum(axis=0) @ self._noises(rows))
            self._amplitude *= float(_step(self._amplitude * float(dual @ own @ dual) / max(rest, 1e-9)))
            self._variances *= _step((dual @ columns) ** 2 / expected)
            self._grow_noise(rows, factor, dual)
            kept = np.flatnonzero(self._variances * expected > 0.01)
            self._terms, self._variances = [self._terms[k] for k in kept.tolist()], self._variances[kept]

    def _add_terms(self, rows: Floats, factor: Floats, dual: Floats) -> bool:
        """Add terms of 3 and 5 players, or of 2 and 4, whose scores are beyond chance; return whether there are any."""
        players = np.sort(np.argsort(-self._relevance, kind="stable")[:_MOST_PLAYERS]).tolist()
        pairs = list(combinations(players, 2))
        products = _characters(rows, pairs)
        seeds = [(player,) for player in players] if self._is_odd else [()]
        candidates: list[tuple[int, ...]] = []
        n_tried = 1
        for _ in range(2):
            scores = np.abs((_characters(rows, seeds) * dual[:, None]).T @ products)
            n_tried += scores.size
            order = np.argpartition(-scores, min(10 * _SEEDS, scores.size - 1), axis=None)[: 10 * _SEEDS]
            order = order[np.argsort(-scores.flat[order], kind="stable")]
            found = {
                tuple(sorted((*seeds[s], *pairs[p]))): None
                for s, p in zip(*np.unravel_index(order, scores.shape), strict=True)
                if not set(seeds[s]) & set(pairs[p])
            }
            seeds = list(found)[:_SEEDS]
            candidates += [term for term in list(found)[: 3 * _SEEDS] if term not in self._terms]
            if not seeds:
                break
        if not candidates:
            return False
        columns = _characters(rows, candidates)
        square, expected = (dual @ columns) ** 2, ((factor @ columns) ** 2).sum(axis=0)
        most = min(_MOST_TERMS, len(rows) // 10) - len(self._terms)
        order = np.argsort(-square / expected, kind="stable")[: max(most, 0)]
        order = order[square[order] > 2 * np.log(n_tried) * expected[order]]
        self._terms += [candidates[k] for k in order.tolist()]
        new = (square - expected)[order] / expected[order] ** 2  # the most likely variance of each alone
        self._variances = np.append(self._variances, new)
        return len(order) > 0


def _step(ratio: float | Floats) -> Floats:
    """Return the factor of a variance that explains ``ratio`` times what it expects to."""
    return np.asarray(np.clip(ratio, 1e-3, 20.0) ** _POWER)


def _sizes(rows: Floats) -> NDArray[np.int64]:
    """Return how many players are on the smaller side."""
    sizes: NDArray[np.int64] = ((rows.shape[1] - np.abs(rows.sum(axis=1))) / 2).astype(np.int64)
    return sizes


def _some(rows: Floats, y: Floats, most: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the first row and some of the others."""
    chosen = np.append(0, np.sort(1 + rng.permutation(len(y) - 1)[: most - 1]))
    return rows[chosen], y[chosen]


def _characters(rows: Floats, terms: Sequence[tuple[int, ...]]) -> Floats:
    """Return the products of the signs of each term's players, (m, n_terms)."""
    columns = np.concatenate([rows.T, np.ones((1, len(rows)))])
    degree = max(map(len, terms), default=0)
    padded = np.array([term + (-1,) * (degree - len(term)) for term in terms], dtype=np.int64)
    out = np.ones((len(terms), len(rows)))
    for d in range(degree):
        out *= columns[padded[:, d]]
    return out.T


def _sum_products(columns: Floats, weights: Floats, size: int) -> Floats:
    """Return the weighted sum over rows of the product of the columns of each set of this size."""
    parts = []
    for first in combinations(range(columns.shape[1]), size - 2):
        rest = columns[:, first[-1] + 1 if first else 0 :]
        weighted = (weights * columns[:, first].prod(axis=1))[:, None] * rest
        parts.append((weighted.T @ rest)[np.triu_indices(rest.shape[1], 1)])
    return np.concatenate(parts)


def _inverse(lower: NDArray[Any]) -> Floats:
    """Return the inverse of a lower triangular matrix, by halves: mostly products of matrices."""
    if len(lower) <= 128:
        return np.asarray(np.linalg.inv(lower), dtype=np.float64)
    h = len(lower) // 2
    out = np.zeros_like(lower)
    out[:h, :h], out[h:, h:] = _inverse(lower[:h, :h]), _inverse(lower[h:, h:])
    out[h:, :h] = -out[h:, h:] @ (lower[h:, :h] @ out[:h, :h])
    return out
