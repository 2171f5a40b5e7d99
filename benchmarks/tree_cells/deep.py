"""Random forests of 20 trees of unlimited depth."""

from __future__ import annotations

from typing import Any

from peers import trees as peers
from tree_cells import models
from tree_cells.race import OURS, Cell, Contender, Outcome, by_shapiq, race

GROUP = "deep"
SIZE, PATH_ROWS = 100, 20
FEW = 5  # rows of shapiq


def run(quick: bool) -> Outcome:
    """About 12,600 leaves a tree against shap, interventional and by path; then 63,000 leaves a tree."""
    outcome = _against_shap(models.forest_of_full_depth(4_000 if quick else 20_000))
    if not quick:
        outcome.cells.append(_largest(models.forest_of_full_depth(100_000)))
    return outcome


def _against_shap(model: Any) -> Outcome:
    X, background, label = models.rows(SIZE), models.background(SIZE), _label(model)
    pairs = race(
        (GROUP, label, f"{SIZE} x {SIZE}"),
        {
            OURS: Contender(peers.ours(model, X, background, models.N_JOBS)),
            "shap": Contender(peers.shap(model, X, background)),
        }
        | by_shapiq(model, X, background, share=FEW / SIZE),
        most_seconds=15.0,
    )
    few = X[:PATH_ROWS]
    paths = race(
        (GROUP, label, f"path-dependent, {PATH_ROWS} rows"),
        {
            OURS: Contender(peers.ours(model, few, None, models.N_JOBS)),
            "shap": Contender(peers.shap(model, few, None)),
        },
        most_seconds=15.0,
    )
    many = race(
        (GROUP, label, f"path-dependent, {SIZE} rows"),
        {
            OURS: Contender(peers.ours(model, X, None, models.N_JOBS)),
            "shap": Contender(peers.shap(model, few, None), share=len(few) / SIZE),
        },
        most_seconds=15.0,
    )
    return Outcome(
        [pairs, paths, many],
        [
            pairs.target("forest of full depth: 100 x 100, times faster than shap", "shap", 8.0),
            many.target(
                f"forest of full depth: path-dependent, {SIZE} rows, times faster than shap", "shap", 30.0
            ),
        ],
    )


def _largest(model: Any) -> Cell:
    """More nodes than shap can number: checked by additivity alone."""
    X, background = models.rows(SIZE), models.background(SIZE)
    mean = float(model.predict(background).mean())
    cell = race(
        (GROUP, _label(model), f"{SIZE} x {SIZE}"),
        {
            OURS: Contender(
                peers.ours(model, X, background, models.N_JOBS), lambda values: values.sum(axis=1) + mean
            ),
            "own predict": Contender(lambda: model.predict(X)),
        },
        rounds=3,
    )
    cell.notes.append("shap: crashes on trees of more than 32,767 nodes (16-bit indices)")
    return cell


def _label(model: Any) -> str:
    leaves = [tree.get_n_leaves() for tree in model.estimators_]
    depths = [tree.get_depth() for tree in model.estimators_]
    return f"random forest, {len(leaves)} trees, about {sum(leaves) / len(leaves):,.0f} leaves, depth <= {max(depths)}"
