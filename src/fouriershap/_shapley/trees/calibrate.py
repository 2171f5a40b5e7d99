"""`calibrate`: how quick this machine is, measured on random trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fouriershap._base.parallel import cpu_seconds
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import Background, TreeModel, make_background, make_model
from fouriershap._shapley.trees.speed import NEUTRAL, SPEED, Factors, save_factors
from fouriershap._trees.ensemble import TreeEnsemble

_N_TREES, _DEPTH, _N_FEATURES = 100, 6, 20
_WALKED, _ROWS = 200, 10_000
_REPEATS = 3


def calibrate() -> dict[str, float]:
    """Measure how quick this machine is, in a second or two: tree explainers then choose their strategies accordingly.

    It holds for this process and, from a file in the user's cache folder, for those that start later.

    Returns
    -------
    dict
        By what the time assumed is multiplied, for ``"tables"``, their ``"build"``, ``"stream"`` and ``"walk"``.
    """
    factors = measure_factors()
    save_factors(factors)
    SPEED.start(factors)
    return factors._asdict()


def measure_factors() -> Factors:
    """Return what strategies take on this machine, relative to the time assumed."""
    rng = np.random.default_rng(0)
    model = _random_trees(rng)
    rows = rng.normal(size=(_ROWS, _N_FEATURES)).astype(np.float32)
    background = make_background(model, rows[:1000])
    found = [_measure(model, background, rows) for _ in range(_REPEATS)]
    return Factors(*(float(f"{min(factor):.2g}") for factor in zip(*found, strict=True)))


def _measure(model: TreeModel, background: Background, rows: np.ndarray) -> Factors:
    """Return the measured over the estimated seconds of each way, once."""
    choice = TreeEngine(model, background).choice
    tables, direct = choice.table_costs, replace(choice.direct_costs, factors=NEUTRAL)
    taken: dict[str, float] = {}
    for way, part in (("walk", rows[:_WALKED]), ("stream", rows), ("tables", rows)):
        begin = cpu_seconds()
        engine = TreeEngine(replace(model, strategy=way), background)
        taken["build"] = cpu_seconds() - begin  # in the end that of tables
        begin = cpu_seconds()
        engine.shap_values(part, n_jobs=1)
        taken[way] = cpu_seconds() - begin
    return Factors(
        tables=taken["tables"] / tables.look_up(_ROWS) * tables.factors.tables,
        build=taken["build"] / tables.build * tables.factors.build,
        stream=taken["stream"] / direct.stream(_ROWS),
        walk=taken["walk"] / direct.walk(_WALKED),
    )


def _random_trees(rng: np.random.Generator) -> TreeModel:
    """Return whole trees of random features and thresholds."""
    n_inner, n_nodes = 2**_DEPTH - 1, 2 ** (_DEPTH + 1) - 1
    node = np.arange(n_nodes * _N_TREES)
    within, root = node % n_nodes, node // n_nodes * n_nodes
    inner = within < n_inner
    left = np.where(inner, root + 2 * within + 1, -1)
    ensemble = TreeEnsemble(
        n_features=_N_FEATURES,
        n_outputs=1,
        dtype=np.dtype(np.float32),
        roots=np.arange(0, len(node), n_nodes),
        tree_output=np.zeros(_N_TREES, dtype=np.int32),
        feature=np.where(inner, rng.integers(0, _N_FEATURES, len(node)), -1),
        threshold=rng.normal(size=len(node)).astype(np.float32),
        left=left,
        right=np.where(inner, left + 1, -1),
        missing_left=np.zeros(len(node), dtype=bool),
        category_set=np.full(len(node), -1),
        set_start=np.zeros(1, dtype=np.int64),
        set_categories=np.zeros(0, dtype=np.int64),
        cover=np.ones(len(node)),
        values=np.where(inner, 0.0, rng.normal(size=len(node)))[:, None],
        base=np.zeros(1),
    )
    player = np.arange(_N_FEATURES, dtype=np.int32)
    return make_model(ensemble, player, 1 << 30, np.dtype(np.float32))
