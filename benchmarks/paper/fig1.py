"""Figure 1: how well a sparse transform represents a model, against its run time, for growing numbers of terms.

Figure 4: how good the tree models are, by depth.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import fouriershap as fs
from paper import models
from paper.settings import DATASETS, N_BITS, NETWORKS, Settings
from paper.store import Cell


class Counted:
    """A model that counts the rows it is asked."""

    def __init__(self, predict: models.Predict) -> None:
        self._model, self.queries = predict, 0  # not `predict`: what has one is taken for an estimator

    def __call__(self, X: Any) -> np.ndarray:
        self.queries += len(X)
        return self._model(np.asarray(X))


def cells(settings: Settings) -> Iterator[Cell]:
    for name in DATASETS:
        depths = (0,) if name in NETWORKS else settings.transform_depths
        for depth in depths:
            label = f"{name}/network" if depth == 0 else f"{name}/depth {depth}"
            yield Cell("fig1", label, partial(_transforms, name, depth, settings))
    for name in ("gb1", "avgfp"):
        for depth in settings.accuracy_depths:
            yield Cell("fig4", f"{name}/{depth}", partial(_accuracy, name, depth, settings))


def transform(
    predict: models.Predict, name: str, depth: int, terms: int, seed: int
) -> tuple[fs.Spectrum, float, int]:
    """The spectrum, the seconds that it took, and the number of queries. Of a tree model the degree is known."""
    h, begin = Counted(predict), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        spectrum = fs.sparse_walsh_hadamard(
            h, N_BITS[name], terms, max_degree=depth or None, random_state=seed
        )
    return spectrum, time.perf_counter() - begin, h.queries


def _transforms(name: str, depth: int, settings: Settings) -> dict[str, Any]:
    predict = models.black_box(name, settings, *([depth] if depth else [])).predict
    rng = np.random.default_rng(settings.seed + 100)
    cube = (rng.random((settings.cube_points, N_BITS[name])) < 0.5).astype(np.uint8)
    truth, points = predict(cube), []
    transform(
        predict, name, depth, min(settings.transform_terms), settings.seed
    )  # imports are not on the clock
    for terms in settings.transform_terms:
        spectrum, seconds, queries = transform(predict, name, depth, terms, settings.seed)
        r2 = models.r_squared(truth, spectrum(cube))
        points.append({"k": terms, "terms": len(spectrum), "seconds": seconds, "queries": queries, "r2": r2})
        if r2 > 1 - 1e-9:
            break
    return {"points": points}


def _accuracy(name: str, depth: int, settings: Settings) -> dict[str, Any]:
    trained = models.black_box(name, settings, depth)
    return {"test_r2": trained.test_r2, "training_seconds": trained.seconds}
