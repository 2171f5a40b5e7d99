"""The paper's grid: random forests of 20 trees on bits, 100 rows x 100 background rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import fouriershap as fs
from _data import BinaryData, binary_data
from peers import trees as peers
from tree_cells import models
from tree_cells.race import OURS, Cell, Contender, Outcome, by_shapiq, race

GROUP = "grid"
READ = f"{OURS}, model read before"
UNCHECKED = f"{OURS}, check off"
N_TREES, SIZE = 20, 100
DEPTHS = (3, 4, 5, 6, 7, 8)


@cache
def _data(n_bits: int) -> BinaryData:
    return binary_data(n_bits)


def run(n_bits: int, quick: bool) -> Outcome:
    """All depths for one data set."""
    outcome = Outcome()
    for depth in (3, 8) if quick else DEPTHS:
        cell = _race(n_bits, depth)
        outcome.cells.append(cell)
        others = [who for who in cell.wall if who not in (OURS, READ, UNCHECKED)]
        quickest = min(others, key=cell.wall.__getitem__)
        where = f"{cell.model}, {cell.cell}"
        outcome.targets += [
            cell.target(f"grid, {where}: times faster than shap", "shap", 5.0),
            cell.target(f"grid, {where}: times faster than shap, model read before", "shap", 10.0, ours=READ),
            cell.target(f"grid, {where}: times faster than the quickest peer ({quickest})", quickest, 1.0),
            cell.target(f"grid, {where}: as a multiple of check=False", UNCHECKED, 1.1, at_least=False),
        ]
    return outcome


def _race(n_bits: int, depth: int) -> Cell:
    data = _data(n_bits)
    background, X = data.X[-SIZE:], data.X[-2 * SIZE : -SIZE]
    model = _forest(data, depth)
    reading = fs.read_model(model)
    contenders = {
        OURS: Contender(peers.ours(model, X, background, models.N_JOBS)),
        UNCHECKED: Contender(peers.ours(model, X, background, models.N_JOBS, check=False)),
        READ: Contender(peers.ours(reading, X, background, models.N_JOBS, check=False)),
        "shap": Contender(peers.shap(model, X, background)),
        "woodelf": Contender(peers.woodelf(model, X, background)),
    }
    contenders |= by_shapiq(model, X, background)
    found, missing = peers.importable()
    contenders |= {name: Contender(peer(model, X, background)) for name, peer in found.items()}
    name = GROUP, f"n = {n_bits} ({data.label})", f"depth {depth}"
    cell = race(name, contenders, rounds=40, most_seconds=1.5, in_a_row=2)
    cell.notes += missing
    cell.notes.append(f"{OURS}: {fs.TreeExplainer(reading, background).plan(SIZE).strategy}")
    return cell


def _forest(data: BinaryData, depth: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(N_TREES, max_depth=depth, random_state=0, n_jobs=models.N_JOBS)
    return forest.fit(data.X[: -2 * SIZE], data.y[: -2 * SIZE])
