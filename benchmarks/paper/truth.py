"""What is true: the definition for 13 bits, the exact engine for trees, converged KernelSHAP for the other network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import factorial

import numpy as np

import fouriershap as fs
from paper import models
from paper.settings import Settings
from peers.kernel_shap import kernel_shap

BLOCK = 10  # background rows at a time: SHAP values of a background are the mean over its blocks


@dataclass(frozen=True, eq=False)
class Truth:
    """SHAP values (rows, features) per background size, how they were found, and R^2 of a second run."""

    values: dict[int, np.ndarray]
    method: str
    ceiling: float


@cache
def truth(name: str, settings: Settings) -> Truth:
    if name == "entacmaea":
        return _each(name, settings, "the definition, all 2^13 coalitions", _definition)
    if name == "sgemm":
        return _converged(name, settings)
    return _each(name, settings, "the exact tree engine", _trees)


def _each(
    name: str,
    settings: Settings,
    method: str,
    explain: Callable[[models.Trained, np.ndarray, np.ndarray], np.ndarray],
) -> Truth:
    model, X = models.black_box(name, settings), models.rows(name, settings, max(settings.sizes))
    values = {b: explain(model, X, models.background(name, settings, b)) for b in settings.sizes}
    return Truth(values, method, 1.0)


def _trees(model: models.Trained, X: np.ndarray, background: np.ndarray) -> np.ndarray:
    return fs.TreeExplainer(model.model, background, precision="double").shap_values(X)


def _definition(model: models.Trained, X: np.ndarray, background: np.ndarray) -> np.ndarray:
    return by_definition(model.predict, X, background)


def by_definition(predict: models.Predict, X: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Eq. 1 of the paper over all coalitions; the model is asked every row of the cube once."""
    n = X.shape[1]
    coalitions = np.arange(1 << n)
    h = predict((coalitions[:, None] >> np.arange(n) & 1).astype(np.float32))
    sizes = np.bitwise_count(coalitions)
    weights = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)])
    without = [coalitions[(coalitions >> i & 1) == 0] for i in range(n)]
    powers = 1 << np.arange(n)
    phi = np.empty(X.shape)
    for row, out in zip(X.astype(int) @ powers, phi, strict=True):
        v = np.mean([h[coalitions & row | ~coalitions & b] for b in background.astype(int) @ powers], axis=0)
        out[:] = [weights[sizes[s]] @ (v[s | 1 << i] - v[s]) for i, s in enumerate(without)]
    return phi


def _converged(name: str, settings: Settings) -> Truth:
    """KernelSHAP with all features, twice, in blocks of background rows; the mean of the two runs is the truth."""
    sizes = "-".join(map(str, settings.sizes))
    path = models.kept_at(f"truth-{name}-{settings.truth_samples}-{sizes}.npy", settings)
    if not path.exists():
        predict = models.black_box(name, settings).predict
        X = models.rows(name, settings, max(settings.sizes))
        background = models.background(name, settings, max(settings.sizes))
        blocks = [background[i : i + BLOCK] for i in range(0, len(background), BLOCK)]
        runs = [
            [
                kernel_shap(predict, b, seed, all_features=True, n_samples=settings.truth_samples)(X)
                for b in blocks
            ]
            for seed in (settings.seed + 1, settings.seed + 2)
        ]
        unfinished = path.with_suffix(".part.npy")
        np.save(unfinished, np.array(runs))
        unfinished.replace(path)
    runs = np.load(path)
    by_size = {b: runs[:, : b // BLOCK].mean(axis=1) for b in settings.sizes}
    ceiling = min(models.r_squared(first, second) for first, second in by_size.values())
    method = (
        f"KernelSHAP, all features, {settings.truth_samples:,} coalitions per ten background rows, two runs"
    )
    return Truth({b: pair.mean(axis=0) for b, pair in by_size.items()}, method, ceiling)
