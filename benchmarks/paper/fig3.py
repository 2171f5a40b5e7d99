"""Figure 3: random forests of 20 trees, speed-up over TreeSHAP (interventional) by depth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import fouriershap as fs
from paper import models
from paper.settings import DATASETS, Settings
from paper.store import Cell
from peers import missing, trees

OURS, BASE, SPECTRUM = "fouriershap", "TreeSHAP (shap)", "FourierSHAP, pruned spectrum"
OURS_THREADS = f"fouriershap, {models.N_JOBS} threads"
# In every round each contender runs twice, so that a busy moment hits all; the quickest of all runs counts. The first
# of the two finds the caches full of what ran before it, which is another contender, and is told beside.
ROUNDS = 5
SLOW = 1.0  # seconds; a peer beyond it runs once per cell
OPTIONAL = {"woodelf": trees.woodelf, "shapiq": trees.shapiq}
OPTIONAL |= {"fasttreeshap": trees.fasttreeshap, "pltreeshap": trees.pltreeshap}


def cells(settings: Settings) -> Iterator[Cell]:
    for name in DATASETS:
        for depth in settings.depths:
            yield Cell("fig3", f"{name}/{depth}", partial(_race, name, depth, settings))


@threadpool_limits.wrap(limits=1)  # of OpenMP and BLAS, which peers have; ours are threads of our own
def _race(name: str, depth: int, settings: Settings) -> dict[str, Any]:
    """Seconds, construction included, per contender and repeat; repeats differ in rows and background.

    One thread each, but for `OURS_THREADS`.
    """
    model = models.forest(name, settings, depth, settings.tree_trees).model
    data, size = models.split(name, settings), settings.tree_sizes
    seconds: dict[str, list[float]] = {}
    after_others: dict[str, list[float]] = {}
    r2: dict[str, float] = {}
    skipped = {peer: reason for peer in OPTIONAL if (reason := missing(peer))}
    spectrum = _spectrum(model, settings)
    for repeat in range(settings.tree_repeats):
        part = slice(repeat * size, (repeat + 1) * size)
        X, background = data.X_test[part], data.X[part]
        contenders = _contenders(model, X, background, skipped, spectrum)
        taken: dict[str, list[float]] = {who: [] for who in contenders}
        firsts: dict[str, list[float]] = {who: [] for who in contenders}
        expected = contenders[BASE]()
        for who in (who for _ in range(ROUNDS) for who in contenders):
            if who not in skipped:
                first, values = _timed(contenders[who])
                firsts[who].append(first)
                taken[who].append(first if first > SLOW else min(first, _timed(contenders[who])[0]))
                agreement = models.r_squared(expected, values)
                r2[who] = float(np.minimum(r2.get(who, 1.0), agreement))  # NaN stays NaN
                if who in OPTIONAL and taken[who][-1] > SLOW:
                    skipped[who] = f"not repeated: more than {SLOW:g} s"
        for who in contenders:
            seconds.setdefault(who, []).append(min(taken[who]))
            after_others.setdefault(who, []).append(min(firsts[who]))
    terms = None if spectrum is None else len(spectrum)
    found = {"seconds": seconds, "after_others": after_others, "r2": r2}
    return found | {"skipped": skipped, "spectrum_terms": terms}


def _timed(run: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    begin = time.perf_counter()
    values = run()
    return time.perf_counter() - begin, values


def _contenders(
    model: Any, X: np.ndarray, background: np.ndarray, skipped: dict[str, str], spectrum: fs.Spectrum | None
) -> dict[str, Any]:
    found = {BASE: trees.shap(model, X, background), OURS: trees.ours(model, X, background, 1)}
    found[OURS_THREADS] = trees.ours(model, X, background, models.N_JOBS)
    found |= {peer: build(model, X, background) for peer, build in OPTIONAL.items() if peer not in skipped}
    if spectrum is not None:
        bits, others = X.astype(np.uint8), background.astype(np.uint8)
        found[SPECTRUM] = lambda: fs.spectra.shap_values(spectrum, bits, others, n_jobs=1)
    return found


def _spectrum(model: Any, settings: Settings) -> fs.Spectrum | None:
    """The paper's way: the exact spectrum, pruned (App. E.2), made before the clock starts. None where it is large."""
    try:
        spectrum = fs.tree_spectrum(model, prune=True, max_terms=50 * settings.tree_terms)
    except fs.CapacityError:
        return None
    return spectrum if len(spectrum) <= settings.tree_terms else None
