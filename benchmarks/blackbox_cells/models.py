"""The paper's four models, trained once and kept in a folder that is not tracked."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from _data import BinaryData, binary_data

CACHE = Path(__file__).parents[1] / ".cache"
N_EXPLAINED, N_BACKGROUND, N_DATA = 20, 20, 5000
SGEMM_LEVELS = (4, 4, 2, 3, 3, 3, 3, 2, 4, 4, 2, 2, 2, 2)
TRAINED_SHARE = 0.9


@dataclass(frozen=True)
class Subject:
    """A model that is explained.

    Attributes
    ----------
    name : str
    title : str
    n_bits : int
    groups : tuple of str, optional
        The player of each column; by default the columns are players.
    """

    name: str
    title: str
    n_bits: int
    groups: tuple[str, ...] | None = None

    @property
    def player(self) -> np.ndarray:
        """(n_bits,) the player that owns each column."""
        if self.groups is None:
            return np.arange(self.n_bits)
        return np.array([list(dict.fromkeys(self.groups)).index(name) for name in self.groups])

    @property
    def is_tree(self) -> bool:
        return self.n_bits in (80, 236)


_SGEMM_GROUPS = tuple(f"p{j}" for j, n in enumerate(SGEMM_LEVELS) for _ in range(n))
SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("entacmaea", "Entacmaea network, 13 columns", 13),
        Subject("sgemm14", "SGEMM network, 14 categorical players", 40, _SGEMM_GROUPS),
        Subject("sgemm40", "SGEMM network, 40 columns", 40),
        Subject("gb1", "GB1 forest, 80 columns", 80),
        Subject("avgfp", "avGFP CatBoost, 236 columns", 236),
    )
}


@dataclass(frozen=True)
class Rows:
    """What one seed explains: rows, background and the data that queries are made of, all disjoint."""

    explained: np.ndarray
    background: np.ndarray
    data: np.ndarray


@cache
def data_set(n_bits: int) -> BinaryData:
    """All rows of a data set of the paper, shuffled."""
    if not Path(os.environ.get("FOURIERSHAP_DATA", "nowhere")).is_dir():
        raise SystemExit("FOURIERSHAP_DATA must name the folder of the paper's data sets.")
    return binary_data(n_bits, n_rows=1_000_000)


def draw_rows(subject: Subject, seed: int) -> Rows:
    X = data_set(subject.n_bits).X.astype(np.float64)
    chosen = np.random.default_rng([seed, subject.n_bits]).permutation(len(X))
    ends = np.cumsum([N_EXPLAINED, N_BACKGROUND, N_DATA])
    return Rows(*(X[part] for part in np.split(chosen, ends)[:3]))


@cache
def trained(n_bits: int) -> Any:
    """The model, from the cache where it is there."""
    path = CACHE / f"model_{n_bits}.pkl"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        data = data_set(n_bits)  # rows come shuffled
        n = int(TRAINED_SHARE * len(data.X))
        model = _untrained(n_bits)
        if n_bits in (13, 40):  # a loss of the size that Adam's step is made for
            model.fit(data.X[:n], data.y[:n] / data.y.std())
        else:
            model.fit(data.X[:n], data.y[:n])
        path.write_bytes(pickle.dumps(model))
    return pickle.loads(path.read_bytes())


def predict_of(subject: Subject) -> Callable[[np.ndarray], np.ndarray]:
    """The model as the function that is explained."""
    return trained(subject.n_bits).predict


def score(subject: Subject) -> float:
    """R^2 of the model on the rows that it was not trained on."""
    data = data_set(subject.n_bits)
    n = int(TRAINED_SHARE * len(data.X))
    prediction, y = predict_of(subject)(data.X[n:].astype(np.float64)), data.y[n:]
    if not subject.is_tree:
        y = y / data.y.std()
    return float(1 - ((prediction - y) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def _untrained(n_bits: int) -> Any:
    if n_bits == 80:
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(100, max_depth=5, random_state=0)
    if n_bits == 236:
        from catboost import CatBoostRegressor

        return CatBoostRegressor(
            iterations=10, depth=5, random_seed=0, verbose=0, thread_count=2, allow_writing_files=False
        )
    from sklearn.neural_network import MLPRegressor

    layers = (300, 300, 300)
    epochs, batch = (60, 128) if n_bits == 13 else (8, 512)
    return MLPRegressor(
        hidden_layer_sizes=layers,
        learning_rate_init=0.01,
        batch_size=batch,
        max_iter=epochs,
        random_state=0,
    )
