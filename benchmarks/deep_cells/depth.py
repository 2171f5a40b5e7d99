"""Deeper and deeper: LightGBM, 100 trees of up to 2,024 leaves, against the peers that reach so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fouriershap as fs
from deep_cells import models
from peers import trees as peers

GROUP = "depth"
DEPTHS = (6, 9, 12, 15, 18, 21)
LARGE, SMALL = 20_000, 100
_MOST_SECONDS = 600.0  # a peer that takes longer is not asked about deeper trees


def run() -> list[dict[str, Any]]:
    """CPU seconds: of us on one thread, of woodelf (one thread) and shap."""
    cells: list[dict[str, Any]] = []
    silent: set[tuple[str, int]] = set()
    for depth in DEPTHS:
        name = f"lightgbm, deep:100:{depth}"
        for size in (SMALL, LARGE):
            X, background = models.rows(size), models.background(size)
            ours, values = _timed(_ours(name, X, background))
            cell: dict[str, Any] = {"model": name, "rows": size, "seconds": ours}
            for peer, explain in _peers(size).items():
                if (peer, size) in silent:
                    continue
                try:
                    seconds, theirs = _timed(explain(models.model(name), X, background))
                except (MemoryError, ValueError, NotImplementedError) as error:
                    cell[peer] = f"fails: {type(error).__name__}"
                    silent.add((peer, size))
                    continue
                cell[peer] = seconds
                cell[f"{peer} differs"] = float(np.abs(theirs - values).max() / np.abs(values).max())
                if seconds > _MOST_SECONDS:
                    silent.add((peer, size))
            cells.append(cell)
    return cells


def _ours(name: str, X: np.ndarray, background: np.ndarray) -> Callable[[], np.ndarray]:
    model = models.model(name)
    return lambda: fs.TreeExplainer(model, background, check="off", n_jobs=1).shap_values(X)


def _peers(size: int) -> dict[str, Any]:
    return {"woodelf": peers.woodelf} if size > SMALL else {"shap": peers.shap, "woodelf": peers.woodelf}


def _timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found
