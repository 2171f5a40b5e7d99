"""Models of the sizes that are in use: default forests, boosters of many and of large trees."""

from __future__ import annotations

import os
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

CACHE = Path(__file__).parent.parent / ".cache" / "deep"
TRAINING_ROWS, N_FEATURES = 20_000, 60
DIGITS = "@digits"  # at the end of a model's name: on the second data set
N_PIXELS = 20
DATA = (
    "60 normal features, y = the sum of 30 terms of one to three of them (products, sines, steps) + noise of a "
    "quarter of its spread; or, where a name ends in @digits, the 20 pixels of scikit-learn's digits that vary most, "
    "drawn again with a step of noise up or down, y = the digit + noise"
)


@cache
def data(n_rows: int, random_state: int, digits: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows float32 and targets; the function is always the same."""
    if digits:
        return _digits(n_rows, np.random.default_rng(random_state))
    terms, rng = np.random.default_rng(99), np.random.default_rng(random_state)
    X = rng.standard_normal((n_rows, N_FEATURES)).astype(np.float32)
    y = np.zeros(n_rows)
    for k in range(30):
        columns = X[:, terms.choice(N_FEATURES, size=1 + k % 3, replace=False)].astype(np.float64)
        shape = (np.sin, np.tanh, np.abs)[int(terms.integers(3))]
        y += terms.uniform(0.5, 1.5) * shape(1.5 * columns).prod(axis=1)
    return X, (y + 0.25 * y.std() * rng.standard_normal(n_rows)).astype(np.float32)


def _digits(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    pixels = np.argsort(-X.var(axis=0), kind="stable")[:N_PIXELS]
    drawn = rng.integers(len(X), size=n_rows)
    steps = rng.integers(-1, 2, size=(n_rows, N_PIXELS))
    rows = np.clip(X[drawn][:, pixels] + steps, 0, 16)
    return rows.astype(np.float32), (y[drawn] + rng.standard_normal(n_rows)).astype(np.float32)


def rows(n_rows: int, model: str = "") -> np.ndarray:
    """Fresh rows to explain, of the data that the model was trained on."""
    return data(n_rows, 1, model.endswith(DIGITS))[0]


def background(n_rows: int, model: str = "") -> np.ndarray:
    return data(n_rows, 2, model.endswith(DIGITS))[0]


def _forest(kind: str, n_trees: int, **settings: Any) -> Any:
    import sklearn.ensemble

    return getattr(sklearn.ensemble, kind)(n_trees, random_state=0, n_jobs=os.cpu_count(), **settings)


def _lightgbm(n_trees: int, leaves: int, **settings: Any) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        n_estimators=n_trees,
        num_leaves=leaves,
        learning_rate=0.05,
        random_state=0,
        n_jobs=1,
        verbose=-1,
        **settings,
    )


def _xgboost(n_trees: int, depth: int) -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=n_trees, max_depth=depth, learning_rate=0.05, random_state=0, n_jobs=1)


def _unfitted(name: str) -> Any:
    match name.removesuffix(DIGITS).split(":"):
        case ["forest classifier", n]:
            return _forest("RandomForestClassifier", int(n))
        case ["forest regressor, leaves of 5", n]:
            return _forest("RandomForestRegressor", int(n), min_samples_leaf=5)
        case ["extra trees", n]:
            return _forest("ExtraTreesRegressor", int(n), max_features=0.3)
        case ["forest, depth 8", n]:
            return _forest("RandomForestRegressor", int(n), max_depth=8, max_features=0.3)
        case ["lightgbm", n, leaves]:
            return _lightgbm(int(n), int(leaves))
        case ["lightgbm, deep", n, depth]:
            return _lightgbm(int(n), 2024, max_depth=int(depth), min_child_samples=5)
        case ["xgboost", n, depth]:
            return _xgboost(int(n), int(depth))
    raise ValueError(name)


@cache
def model(name: str) -> Any:
    """A model by its name, trained once and kept."""
    path = CACHE / f"{name.replace(':', '-').replace(', ', '_').replace(' ', '_')}.pickle"
    if path.exists():
        return pickle.loads(path.read_bytes())
    X, y = data(TRAINING_ROWS, 0, name.endswith(DIGITS))
    fitted = _unfitted(name).fit(X, y > np.median(y) if "classifier" in name else y)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(fitted))
    return fitted
