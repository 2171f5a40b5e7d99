"""Deeper and deeper: LightGBM, 100 trees of up to 2,024 leaves, against the peers that reach so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import fouriershap as fs
from deep_cells import models
from peers import trees as peers

GROUP = "depth"
DEPTHS = (6, 9, 12, 15, 18, 21)
SMALL, LARGE, LARGEST = 100, 20_000, 100_000
MODELS = tuple(
    f"lightgbm, deep:100:{depth} x {size}" for size in (SMALL, LARGE, LARGEST) for depth in DEPTHS
)  # peers may take an hour for one
PEERS = {"woodelf": peers.woodelf, "shap": peers.shap, "shapiq": peers.shapiq}
ASKED = {SMALL: ("shap", "shapiq", "woodelf"), LARGE: ("woodelf",), LARGEST: ()}
_MODULES = {"woodelf": "woodelf", "shap": "shap", "shapiq": "shapiq"}


def run(name: str) -> list[dict[str, Any]]:
    """CPU seconds on one thread, construction included; every peer's values compared with ours."""
    model, _, digits = name.partition(" x ")
    size = int(digits)
    X, background = models.rows(size), models.background(size)
    ours, values = min(
        (_timed(_ours(model, X, background)) for _ in range(3 if size == SMALL else 1)),
        key=lambda found: found[0],
    )
    cell: dict[str, Any] = {"model": model, "rows": size, "seconds": ours}
    for peer in ASKED[size]:
        if find_spec(_MODULES[peer]) is None:
            continue
        try:
            seconds, theirs = _timed(PEERS[peer](models.model(model), X, background))
        except (MemoryError, ValueError, NotImplementedError) as error:
            cell[peer] = f"fails: {type(error).__name__}"
            continue
        cell[peer] = seconds
        cell[f"{peer} differs"] = float(np.abs(theirs - values).max() / np.abs(values).max())
    return [cell]


def _ours(name: str, X: np.ndarray, background: np.ndarray) -> Callable[[], np.ndarray]:
    model = models.model(name)
    return lambda: fs.TreeExplainer(model, background, check="off", n_jobs=1).shap_values(X)


def _timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found
