"""Smooth models of numbers, strings and missing values, trained anew by each seed: what waves are for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import fouriershap as fs
from blackbox_cells.models import CACHE, data_set
from blackbox_cells.truth import enumerated, permuted, r_squared

N_EXPLAINED, N_BACKGROUND = 20, 50
N_PAIRS = 40  # of permutations for each pair of rows, in each of two runs
N_PAIRS_ALONE = 1000  # where the background is one row, whose chance no other evens out
_MOST_ENUMERATED = 10  # players
_N_WORDS = 5  # columns of the credit table that hold strings
WORDS = ("north", "south", "east", "west", "centre", "abroad")
CLASSES = (0, 3, 8)  # of the digits, whose values are compared


@dataclass(frozen=True, eq=False)
class Network:
    """A trained model and its data.

    Attributes
    ----------
    predict : callable
        Of rows (n, n_columns) float64, by output (n,) or (n, n_outputs).
    data : (n, n_columns) float64
        Strings are numbers of `WORDS`, missing values NaN.
    words : tuple of int
        Columns that hold strings.
    exact : callable, optional
        True values of rows against a background, where they can be had without asking.
    """

    predict: Callable[[np.ndarray], np.ndarray]
    data: np.ndarray
    words: tuple[int, ...] = ()
    exact: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def frame(self, rows: np.ndarray) -> Any:
        """Rows as a user has them: a frame where there are strings."""
        if not self.words:
            return rows
        import pandas as pd

        columns = {f"c{j}": rows[:, j] for j in range(rows.shape[1])}
        for j in self.words:
            columns[f"c{j}"] = np.array(WORDS, dtype=object)[rows[:, j].astype(int)]
        return pd.DataFrame(columns)

    def asked(self, frame: Any) -> np.ndarray:
        """What the model says of such rows."""
        if not self.words:
            return self.predict(np.asarray(frame))
        rows = np.empty(frame.shape)
        for j in range(rows.shape[1]):
            column = frame.iloc[:, j]
            rows[:, j] = [WORDS.index(word) for word in column] if j in self.words else column
        return self.predict(rows)


def _standard(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _regressor(X: np.ndarray, y: np.ndarray, seed: int, layers: tuple[int, ...], **options: Any) -> Any:
    from sklearn.neural_network import MLPRegressor

    options = {"max_iter": 60, "alpha": 1e-4} | options
    return MLPRegressor(hidden_layer_sizes=layers, random_state=seed, **options).fit(X, _standard(y)).predict


def _diabetes(seed: int, **options: float) -> Network:
    from sklearn.datasets import load_diabetes
    from sklearn.svm import SVR

    X, y = load_diabetes(return_X_y=True)
    X = _standard(X)
    rows = np.random.default_rng(seed).permutation(len(X))[:400]
    return Network(SVR(**options).fit(X[rows], _standard(y[rows])).predict, X)


def _friedman(seed: int) -> Network:
    from sklearn.datasets import make_friedman1
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    X, y = make_friedman1(1500, noise=1.0, random_state=seed)
    kernel = RBF(np.full(10, 1.0)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True).fit(X[:300], y[:300])
    return Network(model.predict, X)


def _california(seed: int) -> Network:
    """Eight columns with the skewness and the dependence of a table of houses."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(4000, 8)) @ np.linalg.cholesky(0.5 * np.eye(8) + 0.5)
    X = np.column_stack([np.exp(0.6 * z[:, :3]), z[:, 3:]])
    y = np.log(X[:, 0]) + np.sin(2 * X[:, 6]) * np.cos(X[:, 7]) + X[:, 1] / X[:, 2] + 0.3 * X[:, 4] ** 2
    y += 0.1 * rng.normal(size=len(y))
    centre, scale = X.mean(axis=0), X.std(axis=0)
    inner = _regressor((X - centre) / scale, y, seed, (512,), activation="tanh")
    return Network(lambda rows: inner((rows - centre) / scale), X)


def _breast(seed: int, wide: bool) -> Network:
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    X, y = load_breast_cancer(return_X_y=True)
    X = _standard(X)
    rows = np.random.default_rng(seed).permutation(len(X))[:400]
    model = (
        MLPClassifier(hidden_layer_sizes=(256, 256), max_iter=60, random_state=seed)
        if wide
        else LogisticRegression(C=1.0)
    )
    model.fit(X[rows], y[rows])

    def exact(explained: np.ndarray, background: np.ndarray) -> np.ndarray:
        return np.asarray(fs.Explainer(model, background, output="probability").shap_values(explained))

    return Network(lambda some: model.predict_proba(some)[:, 1], X, exact=None if wide else exact)


def _credit(seed: int, n: int = 12_000, noise: float = 1.0, **options: Any) -> Network:
    """25 columns: 5 of strings, 4 numbers that are missing at times."""
    rng = np.random.default_rng(seed)
    d = 25
    X = rng.normal(size=(n, d)) @ np.linalg.cholesky(0.7 * np.eye(d) + 0.3)
    X[:, 8:14] = np.exp(0.7 * X[:, 8:14])
    X[:, :_N_WORDS] = rng.choice(len(WORDS), (n, _N_WORDS), p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    score = (
        X[:, 8] / (1 + X[:, 9])
        + np.where(X[:, 0] == 3, X[:, 14], -0.5 * X[:, 15])
        + 0.5 * X[:, 16] * X[:, 17]
    )
    score += np.array([0.0, 0.5, -0.5, 1.0, -1.0, 1.5])[X[:, 1].astype(int)] * (1 + 0.5 * X[:, 18])
    X[:, 20:24][rng.random((n, 4)) < 0.15] = np.nan
    score += np.where(np.isnan(X[:, 20]), 0.8, np.nan_to_num(X[:, 20]))
    centre, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)

    def columns(rows: np.ndarray) -> np.ndarray:
        hot = [rows[:, j, None] == np.arange(len(WORDS)) for j in range(_N_WORDS)]
        numbers = ((rows - centre) / scale)[:, _N_WORDS:]
        gone = np.isnan(rows[:, 20:24])
        return np.column_stack([*hot, np.nan_to_num(numbers), gone])

    y = (score + noise * rng.normal(size=n) > np.median(score)).astype(float)
    from sklearn.neural_network import MLPClassifier

    options = {"early_stopping": True} | options
    model = MLPClassifier(hidden_layer_sizes=(128, 64), random_state=seed, **options).fit(columns(X), y)
    return Network(lambda rows: model.predict_proba(columns(rows))[:, 1], X[:5000], tuple(range(_N_WORDS)))


def _sgemm(seed: int) -> Network:
    data = data_set(40)
    rows = np.random.default_rng(seed).permutation(len(data.X))[:30_000]
    X, y = data.X[rows].astype(np.float64), np.log(data.y[rows])
    inner = _regressor(X, y, seed, (100, 100), activation="tanh", max_iter=15)
    return Network(inner, X[:5000])


def _digits(seed: int) -> Network:
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(X))[:1400]
    model = MLPClassifier(hidden_layer_sizes=(100,), max_iter=80, random_state=seed).fit(
        X[rows] / 16, y[rows]
    )
    return Network(lambda some: model.predict_proba(some / 16), X)


NETWORKS: dict[str, tuple[str, Callable[[int], Network]]] = {
    "diabetes": ("SVR on diabetes, 10 columns", _diabetes),
    "diabetes_hard": (
        "SVR on diabetes with C = 10 and narrow kernels (gamma = 0.1)",
        lambda seed: _diabetes(seed, C=10, gamma=0.1),
    ),
    "friedman": ("Gaussian process on Friedman #1, 10 columns", _friedman),
    "california": ("wide network on a table like California's, 8 columns", _california),
    "logistic": ("logistic regression on breast cancer, 30 columns", lambda seed: _breast(seed, False)),
    "breast": ("wide network on breast cancer, 30 columns", lambda seed: _breast(seed, True)),
    "credit": ("network on a credit table with strings and missing values, 25 columns", _credit),
    "credit_hard": (
        "the same from 5,000 rows with a third of the noise, trained until it knows them by heart",
        lambda seed: _credit(seed, 5_000, 0.3, early_stopping=False, max_iter=100),
    ),
    "sgemm_tanh": ("tanh network on SGEMM, 40 columns", _sgemm),
    "digits": ("network on digits, 64 columns, 10 classes", _digits),
}


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a seed, and the true values (n_explained, n_players) or (..., n_classes) of those explained."""

    network: Network
    explained: np.ndarray
    background: np.ndarray
    data: np.ndarray
    truth: np.ndarray
    ceiling: float


@cache
def trained(name: str, seed: int) -> Network:
    """The model of a seed, trained once in a process."""
    return NETWORKS[name][1](seed)


def split(name: str, seed: int) -> Split:
    """Data and truth of a seed; the truth is kept."""
    network = trained(name, seed)
    rows = network.data[np.random.default_rng([seed, 1]).permutation(len(network.data))]
    parts = np.split(rows, [N_EXPLAINED, N_EXPLAINED + N_BACKGROUND])
    path = CACHE / f"network_{name}_{seed}{'_exact' if network.exact else ''}.npz"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        truth, ceiling = _truth(network, parts[0], parts[1])
        np.savez(path, truth=truth, ceiling=ceiling)
    found = np.load(path)
    return Split(network, *parts, found["truth"], float(found["ceiling"]))


def against(network: Network, explained: np.ndarray, background: np.ndarray) -> np.ndarray:
    """True values (n_explained, n_players) of a model of one output against one background row, not kept."""
    if network.exact:
        return network.exact(explained, background)
    if explained.shape[1] <= _MOST_ENUMERATED:
        return enumerated(network.predict, explained, background, np.arange(explained.shape[1]))
    return permuted(network.predict, explained, background, N_PAIRS_ALONE, 1)


def _truth(network: Network, explained: np.ndarray, background: np.ndarray) -> tuple[np.ndarray, float]:
    if network.exact:
        return network.exact(explained, background), 1.0
    probe = np.asarray(network.predict(background[:2]))
    outputs: list[Callable[[np.ndarray], np.ndarray]] = [network.predict]
    if probe.ndim == 2:
        outputs = [lambda rows, k=k: network.predict(rows)[:, k] for k in CLASSES]
    runs = []
    if explained.shape[1] <= _MOST_ENUMERATED:
        player = np.arange(explained.shape[1])
        runs = [[enumerated(predict, explained, background, player)] * 2 for predict in outputs]
    else:
        runs = [[permuted(p, explained, background, N_PAIRS, seed) for seed in (1, 2)] for p in outputs]
    ceiling = min(r_squared(*run) for run in runs)
    means = [np.mean(run, axis=0) for run in runs]
    return means[0] if probe.ndim == 1 else np.stack(means, axis=2), ceiling
