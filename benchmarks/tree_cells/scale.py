"""Rows x background rows from 100 x 100 to 100,000 x 100,000, construction included."""

from __future__ import annotations

from typing import Any

import numpy as np

import fouriershap as fs
from peers import trees as peers
from tree_cells import models
from tree_cells.race import OURS, Contender, Outcome, by_shapiq, race

GROUP = "scale"
SIZES = (100, 1_000, 10_000, 100_000)
MOST_SECONDS = 30.0  # a peer that would take longer is extrapolated from fewer rows, or left out

# (model, peer, size) -> at least so many times faster
TARGETS = {
    ("xgboost", "shap", 100): 15.0,
    ("xgboost", "woodelf", 100_000): 25.0,
    ("lightgbm", "woodelf", 100_000): 25.0,
    ("forest", "woodelf", 100_000): 20.0,
}


def run(name: str, quick: bool) -> Outcome:
    """Race the peers on one model, size after size."""
    outcome = Outcome()
    own_seconds = 0.0  # CatBoost's own at the size before
    for size in SIZES[:2] if quick else SIZES:
        contenders = _contenders(name, size, own_seconds, quick)
        cell = race(
            (GROUP, models.NAMES[name], f"{size:,} x {size:,}"), contenders, rounds=15 if size == 100 else 5
        )
        own_seconds = cell.wall.get("catboost's own", float("inf"))
        outcome.cells.append(cell)
        outcome.targets += [
            cell.target(f"{models.NAMES[name]}: {cell.cell}, times faster than {peer}", peer, limit)
            for (model, peer, at), limit in TARGETS.items()
            if (model, at) == (name, size) and peer in cell.wall
        ]
    return outcome


def _contenders(name: str, size: int, own_seconds: float, quick: bool) -> dict[str, Contender]:
    model, X, background = models.model(name), models.rows(size), models.background(size)
    contenders = {OURS: Contender(peers.ours(model, X, background, models.N_JOBS))}
    if size == 100:
        contenders["shap"] = Contender(peers.shap(model, X, background))
        contenders |= by_shapiq(model, X, background)
    elif size == 1_000:
        few = X[:20]
        contenders["shap"] = Contender(peers.shap(model, few, background), share=len(few) / size)
        contenders |= by_shapiq(model, X, background, share=len(few) / size)
    if not (quick and name == "forest"):
        contenders["woodelf"] = Contender(
            peers.woodelf(model, X, background),
            rows_off=1e-3,
            why="values within a rounding of a threshold",
            referee=lambda which: _distance_to_model(model, X[which], background[:100]),
        )
    # Its cost grows with rows + background at best: ten times the size before decides.
    if name == "catboost" and own_seconds * 10 <= MOST_SECONDS:
        contenders["catboost's own"] = Contender(peers.catboost_own(model, X, background, models.N_JOBS))
    return contenders


def _distance_to_model(model: Any, X: np.ndarray, background: np.ndarray) -> float:
    """Who is right about a value next to a threshold? The model: it is asked about hybrids of these rows.

    SHAP values are made of the model's answers to hybrids. So what we explain must answer them as the model
    does, and both our engines must make the same values of that. (shap is no referee here: it rounds
    thresholds to float32 itself.) Few background rows suffice: whether a row ties does not depend on them.
    """
    rng = np.random.default_rng(0)
    row, other = rng.integers(len(X), size=4096), rng.integers(len(background), size=4096)
    hybrids = np.where(rng.random((4096, X.shape[1])) < 0.5, X[row], background[other])
    own, ours = model.predict(hybrids), fs.read_model(model).predict(hybrids)[:, 0]
    tables, walk = (
        fs.TreeExplainer(model, background, strategy=strategy).shap_values(X)
        for strategy in ("tables", "walk")
    )
    engines = np.abs(tables - walk).max() / np.abs(walk).max()
    return float(max(np.abs(own - ours).max() / np.abs(own).max(), engines))
