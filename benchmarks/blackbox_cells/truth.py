"""True SHAP values of the subjects, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np

import fouriershap as fs
from blackbox_cells.models import CACHE, Rows, Subject, draw_rows, predict_of, trained

Predict = Callable[[np.ndarray], np.ndarray]
N_PAIRS = 150  # of permutations, for each pair of an explained and a background row, in each of two runs
_BATCH = 100_000


def r_squared(truth: np.ndarray, values: np.ndarray) -> float:
    """Over all rows and players, about the mean of all true values."""
    return float(1 - ((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def truth_of(subject: Subject, seed: int) -> tuple[np.ndarray, float]:
    """Values (n_explained, n_players) and their ceiling: R^2 of two independent runs, 1 where they are exact."""
    path = CACHE / f"truth_{subject.name}_{seed}.npz"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        values, ceiling = _compute(subject, draw_rows(subject, seed))
        np.savez(path, values=values, ceiling=ceiling)
    found = np.load(path)
    return found["values"], float(found["ceiling"])


def _compute(subject: Subject, rows: Rows) -> tuple[np.ndarray, float]:
    predict = predict_of(subject)
    if subject.is_tree:
        explainer = fs.TreeExplainer(trained(subject.n_bits), rows.background, precision="double")
        return np.asarray(explainer.shap_values(rows.explained)), 1.0
    if subject.name != "sgemm40":
        return enumerated(predict, rows.explained, rows.background, subject.player), 1.0
    runs = [permuted(predict, rows.explained, rows.background, N_PAIRS, seed) for seed in (1, 2)]
    return (runs[0] + runs[1]) / 2, r_squared(*runs)


def enumerated(predict: Predict, X: np.ndarray, background: np.ndarray, player: np.ndarray) -> np.ndarray:
    """SHAP values by their definition: for each pair of rows, every coalition of the players that differ."""
    out = np.zeros((len(X), int(player.max()) + 1))
    for i, x in enumerate(X):
        pairs = [(b, np.unique(player[b != x])) for b in background]
        hybrids = [_every_coalition(x, b, player, differing) for b, differing in pairs]
        answers = np.split(_in_batches(predict, hybrids), np.cumsum([len(h) for h in hybrids])[:-1])
        for (_, differing), v in zip(pairs, answers, strict=True):
            out[i, differing] += _shapley(v, len(differing)) / len(background)
    return out


def _every_coalition(x: np.ndarray, b: np.ndarray, player: np.ndarray, differing: np.ndarray) -> np.ndarray:
    """Hybrids (2^m, n_columns): row S takes the j-th differing player from x where bit j of S is set."""
    inside = (np.arange(1 << len(differing))[:, None] >> np.arange(len(differing)) & 1).astype(bool)
    position = np.searchsorted(differing, player)
    out = np.tile(b, (len(inside), 1))
    for column, j in enumerate(position):
        if j < len(differing) and differing[j] == player[column]:
            out[inside[:, j], column] = x[column]
    return out


def _shapley(v: np.ndarray, m: int) -> np.ndarray:
    """Shapley values (m,) of a game (2^m,): sum over S without i of |S|! (m - 1 - |S|)! / m! (v(S + i) - v(S))."""
    coalition = np.arange(1 << m)
    size = np.array([c.bit_count() for c in range(1 << m)])
    weight = np.array([factorial(s) * factorial(m - 1 - s) / factorial(m) for s in range(m)] + [0.0])
    out = np.empty(m)
    for i in range(m):
        without = coalition[coalition >> i & 1 == 0]
        out[i] = (weight[size[without]] * (v[without | 1 << i] - v[without])).sum()
    return out


def permuted(predict: Predict, X: np.ndarray, background: np.ndarray, n_pairs: int, seed: int) -> np.ndarray:
    """SHAP values of columns by permutations and their reverses, of the columns that differ."""
    rng = np.random.default_rng(seed)
    out = np.zeros(X.shape)
    for i, x in enumerate(X):
        for b in background:
            differing = np.flatnonzero(x != b)
            order = np.array([rng.permutation(differing) for _ in range(n_pairs)])
            order = np.concatenate([order, order[:, ::-1]])
            inside = np.arange(len(differing) + 1)[:, None] > order.argsort(axis=1)[:, None, :]
            paths = np.tile(b, (*inside.shape[:2], 1))
            paths[:, :, differing] = np.where(inside, x[differing], b[differing])
            v = predict(paths.reshape(-1, len(x))).reshape(inside.shape[:2])
            np.add.at(out[i], order, np.diff(v, axis=1) / (len(order) * len(background)))
    return out


def _in_batches(predict: Predict, parts: list[np.ndarray]) -> np.ndarray:
    rows = np.concatenate(parts)
    return np.concatenate([predict(rows[first : first + _BATCH]) for first in range(0, len(rows), _BATCH)])
