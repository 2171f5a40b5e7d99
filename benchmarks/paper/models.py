"""The models of the paper, trained once and kept: networks, random forests, CatBoost."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import paper_data
from paper.settings import DEPTH, NETWORKS, Settings

CACHE = Path(__file__).parents[1] / ".cache"
TEST_SHARE = 0.1
N_JOBS = 2

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Network:
    """A ReLU network as plain weights, so that NumPy, torch and shap see the same one."""

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        X = np.asarray(X, dtype=np.float32)
        return np.concatenate([self._forward(X[i : i + 8192]) for i in range(0, max(len(X), 1), 8192)])

    def _forward(self, x: np.ndarray) -> np.ndarray:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = x @ weight
            x += bias
            np.maximum(x, 0, out=x)
        return (x @ self.weights[-1] + self.biases[-1])[:, 0].astype(np.float64)


@dataclass(frozen=True, eq=False)
class Split:
    """A data set with standardised targets, cut into training and test rows by the seed."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups: list[str]


@dataclass(frozen=True, eq=False)
class Trained:
    """A model, how good it is on test rows, and how long training took."""

    model: Any
    predict: Predict
    test_r2: float
    seconds: float


@cache
def split(name: str, settings: Settings) -> Split:
    data = paper_data.load(name)
    order = np.random.default_rng(settings.seed).permutation(len(data.X))
    n_test = int(TEST_SHARE * len(order))
    test, train = order[:n_test], order[n_test:][: settings.most_training_rows]
    X, y = data.X.astype(np.float32), (data.y - data.y[train].mean()) / data.y[train].std()
    return Split(X[train], y[train], X[test], y[test], data.groups)


def rows(name: str, settings: Settings, n_rows: int) -> np.ndarray:
    """Test rows to explain."""
    return split(name, settings).X_test[:n_rows]


def background(name: str, settings: Settings, n_rows: int) -> np.ndarray:
    """Training rows; a smaller background is the beginning of a larger one."""
    return split(name, settings).X[:n_rows]


@cache
def black_box(name: str, settings: Settings, depth: int = DEPTH) -> Trained:
    """The model that the paper trains on the data set; the depth is that of the tree models."""
    if name in NETWORKS:
        return _kept(
            f"network-{name}", settings, lambda s: _network(s, settings.epochs[name], settings.seed), name
        )
    if name == "gb1":
        return forest(name, settings, depth, settings.forest_trees)
    return _kept(f"catboost-{name}-{depth}", settings, lambda s: _catboost(s, depth, settings.seed), name)


def forest(name: str, settings: Settings, depth: int, n_trees: int) -> Trained:
    def fit(data: Split) -> Any:
        from sklearn.ensemble import RandomForestRegressor

        model = RandomForestRegressor(n_trees, max_depth=depth, random_state=settings.seed, n_jobs=N_JOBS)
        return model.fit(data.X, data.y)

    return _kept(f"forest-{name}-{depth}-{n_trees}", settings, fit, name)


def _network(data: Split, epochs: int, seed: int) -> Network:
    """Three hidden layers of 300, squared loss, Adam with learning rate 0.01 (App. E.1)."""
    from sklearn.neural_network import MLPRegressor

    model = MLPRegressor(
        hidden_layer_sizes=(300, 300, 300),
        learning_rate_init=0.01,
        batch_size=512,
        max_iter=epochs,
        random_state=seed,
    )
    model.fit(data.X, data.y.astype(np.float32))
    return Network(tuple(model.coefs_), tuple(model.intercepts_))


def _catboost(data: Split, depth: int, seed: int) -> Any:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        iterations=10,
        depth=depth,
        random_seed=seed,
        thread_count=N_JOBS,
        verbose=False,
        allow_writing_files=False,
    )
    return model.fit(data.X, data.y)


def _kept(key: str, settings: Settings, fit: Callable[[Split], Any], name: str) -> Trained:
    """Train, or read what an earlier run with the same settings trained."""
    path = kept_at(f"{key}.joblib", settings)
    if path.exists():
        model, seconds, test_r2 = joblib.load(path)
        return Trained(model, predictor(model), test_r2, seconds)
    data, begin = split(name, settings), time.perf_counter()
    model = fit(data)
    seconds = time.perf_counter() - begin
    test_r2 = r_squared(data.y_test, predictor(model)(data.X_test))
    unfinished = path.with_suffix(".part")
    joblib.dump((model, seconds, test_r2), unfinished)
    unfinished.replace(path)
    return Trained(model, predictor(model), test_r2, seconds)


def kept_at(name: str, settings: Settings) -> Path:
    """A file for what follows from the settings that training and the choice of rows depend on."""
    decisive = (settings.seed, settings.most_training_rows, sorted(settings.epochs.items()))
    folder = CACHE / f"{settings.name}-{hashlib.sha256(repr(decisive).encode()).hexdigest()[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def predictor(model: Any) -> Predict:
    if isinstance(model, Network):
        return model
    return lambda X: np.asarray(model.predict(np.asarray(X, dtype=np.float32)), dtype=np.float64)


def r_squared(truth: np.ndarray, found: np.ndarray) -> float:
    """Over all rows and features at once."""
    truth, found = np.ravel(truth), np.ravel(found)
    return float(1 - ((truth - found) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
