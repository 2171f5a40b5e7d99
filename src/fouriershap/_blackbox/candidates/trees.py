"""Candidate "trees": gradient boosting on codes, of which a left-out fold chooses the length, all leaves fitted again.

Boosting sets the values of a tree once and never looks back. Given the trees, the best values are a linear
least-squares problem: each row adds up one value per tree. A few steps of LSQR from the values that boosting
found solve it well enough; stopping early keeps them close to where they came from.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from fouriershap._base.checks import import_optional
from fouriershap._blackbox.fidelity import r_squared
from fouriershap._blackbox.surrogates import TreeSurrogate
from fouriershap._blackbox.task import N_FOLDS, CandidateFit, Task
from fouriershap._libraries.sklearn.trees import read_hist_gradient_boosting
from fouriershap._shapley.engine import Floats
from fouriershap._trees.arithmetic import side_by_side
from fouriershap._trees.ensemble import TreeEnsemble, find_leaves

LOOK, LOOK_LENGTH = (0.2, 31), 100  # learning rate, leaves, and number of trees of a first look
SHAPES = ((0.1, 31), (0.1, 8))  # of those that are tried; the second where answers are few
LENGTHS = (100, 200, 400, 600)  # tried, while longer is better by a twentieth
MOST_TREES = 1200  # of all outputs, unless these are many
FEW = 2000  # answers up to which all folds judge
MOST_DEPTH = 12  # at most 16 features on a path fit into tables
N_STEPS = 20  # of LSQR
DAMPING = 1.0  # a pseudo-row per leaf that asks for no change


@dataclass(frozen=True, eq=False)
class _Grown:
    """Boosted trees of one shape and length.

    Attributes
    ----------
    shape : (learning rate, leaves)
    length : int
    refitted : bool
        Whether leaf values are fitted again, all together.
    predictions : (n,) float64
        For each answer, by trees that have not seen its fold; NaN in folds that were left out.
    """

    shape: tuple[float, int]
    length: int
    refitted: bool
    predictions: Floats

    def missed(self, y: Floats) -> float:
        return float(np.nansum((self.predictions - y) ** 2))


def missed_at_a_look(task: Task) -> float:
    """Return 1 - R^2 of a few trees, for the output that varies most."""
    inside, outside = task.fold != 0, task.fold == 0
    y = task.answers[:, int(np.argmax(task.answers.var(axis=0)))]
    said = grow(task.codes[inside], y[inside], LOOK, LOOK_LENGTH, task.seed).predict(task.codes[outside])
    return 1 - r_squared(y[outside, None], said)


def fit_trees(task: Task) -> CandidateFit:
    """Fit boosted trees, one model per output, judged on a fold, or, where answers are few, on all."""
    begin = time.perf_counter()
    few = len(task.codes) <= FEW
    shapes, grown = SHAPES[: 1 + few], []
    task.progress.start(task.n_outputs * len(shapes))
    for y in np.ascontiguousarray(task.answers.T):
        tried = []
        for shape in shapes:
            tried.append(_choose_length(task, y, shape))
            task.progress.tick(1)
        best = min(tried, key=lambda each: each.missed(y))
        for k in range(1, N_FOLDS if few else 1):
            _judge_also(task, y, best, k)
        grown.append(best)
    predictions = np.column_stack([g.predictions for g in grown])

    def make() -> TreeSurrogate:
        ensembles = []
        for g, y in zip(grown, np.ascontiguousarray(task.answers.T), strict=True):
            ensemble = grow(task.codes, y, g.shape, g.length, task.seed)
            ensembles.append(refit_leaves(ensemble, task.codes, y) if g.refitted else ensemble)
        return TreeSurrogate(side_by_side(ensembles), task.encoding.player)

    sizes = ", ".join(f"{g.length} of {g.shape[1]} leaves{', refitted' * g.refitted}" for g in grown[:3])
    note = f"trees: {sizes}{', ...' * (len(grown) > 3)}"
    return CandidateFit(
        "trees", task.judge(predictions), predictions, make, time.perf_counter() - begin, note
    )


def _choose_length(task: Task, y: Floats, shape: tuple[float, int]) -> _Grown:
    """Choose the number of trees by the fold that is left out, and whether refitting their leaves helps there."""
    inside, outside = task.fold != 0, task.fold == 0
    model, loss = None, np.zeros(0)
    for length in LENGTHS:
        if length > max(MOST_TREES // task.n_outputs, LENGTHS[0]):
            break
        model = _boost(task.codes[inside], y[inside], shape, length, task.seed, model)
        with one_thread():
            staged = model.staged_predict(task.codes[outside])
            loss = np.array([((stage - y[outside]) ** 2).sum() for stage in staged])
        best = int(np.argmin(loss))
        if best < 0.9 * length or loss[length // 2 - 1] < 1.05 * loss[best]:
            break
    trees = read_hist_gradient_boosting(model).trees
    trees = trees.select(np.arange(trees.n_trees) <= best)
    refitted = refit_leaves(trees, task.codes[inside], y[inside])
    plain, fitted = (each.predict(task.codes[outside])[:, 0] for each in (trees, refitted))
    helps = bool(((fitted - y[outside]) ** 2).sum() < ((plain - y[outside]) ** 2).sum())
    predictions = np.full(len(y), np.nan)
    predictions[outside] = fitted if helps else plain
    return _Grown(shape, best + 1, helps, predictions)


def _judge_also(task: Task, y: Floats, grown: _Grown, k: int) -> None:
    """Write the predictions of one more fold, by trees of the same shape and length."""
    inside = task.fold != k
    trees = grow(task.codes[inside], y[inside], grown.shape, grown.length, task.seed)
    if grown.refitted:
        trees = refit_leaves(trees, task.codes[inside], y[inside])
    grown.predictions[~inside] = trees.predict(task.codes[~inside])[:, 0]


def grow(codes: Floats, y: Floats, shape: tuple[float, int], length: int, seed: int) -> TreeEnsemble:
    """Grow boosted trees of a shape and length."""
    return read_hist_gradient_boosting(_boost(codes, y, shape, length, seed)).trees


def _boost(
    codes: Floats, y: Floats, shape: tuple[float, int], length: int, seed: int, model: Any = None
) -> Any:
    """Return a fitted HistGradientBoostingRegressor; with ``model`` that one, grown on to ``length`` trees.

    Answers come without noise, so a single row may have a leaf: what is rare in the data (a letter at a site, a
    mutation) often matters most. Where answers are noisy, the left-out fold stops early instead.
    """
    if model is None:
        ensemble = import_optional("sklearn.ensemble", "fitting trees to a black box", "[blackbox]")
        rate, leaves = shape
        model = ensemble.HistGradientBoostingRegressor(
            learning_rate=rate,
            max_leaf_nodes=leaves,
            max_depth=MOST_DEPTH,
            max_bins=_count_bins(codes),
            min_samples_leaf=1,
            l2_regularization=1e-3,
            early_stopping=False,
            warm_start=True,
            random_state=seed,
        )
    model.set_params(max_iter=length)
    # scikit-learn finds no bins in a column without any value; one value is as useless, and it can be binned.
    codes = np.where(np.isnan(codes).all(axis=0), 0.0, codes)
    with one_thread():
        return model.fit(codes, y)


def _count_bins(codes: Floats) -> int:
    """Return as many bins as the feature with most levels has: scikit-learn clears all of them for every node."""
    most = max(len(np.unique(column[~np.isnan(column)])) for column in codes.T)
    return int(np.clip(most, 2, 255))


def one_thread() -> Any:
    """Keep scikit-learn to one thread: its work comes in crumbs, and on a busy machine threads that wait for
    each other after every crumb take many times as long.
    """
    from threadpoolctl import threadpool_limits  # scikit-learn brings it along

    # A thread's own setting: several may fit at once. Others would be the whole process's.
    return threadpool_limits(1, user_api="openmp")


def refit_leaves(ensemble: TreeEnsemble, codes: Floats, y: Floats) -> TreeEnsemble:
    """Return the same trees with values that fit answers y (n,) better; one output, no categorical nodes."""
    linalg = import_optional("scipy.sparse.linalg", "refitting leaves", "[blackbox]")
    rows = design(ensemble, codes)
    values = ensemble.values[:, 0]
    missed = y - ensemble.base[0] - rows @ values
    change = linalg.lsqr(rows, missed, damp=np.sqrt(DAMPING), iter_lim=N_STEPS)[0]
    return ensemble.replace(values=(values + change)[:, None])


def design(ensemble: TreeEnsemble, codes: Floats) -> Any:
    """Return which leaves each row reaches: a sparse matrix (n_rows, n_nodes) of ones."""
    from scipy.sparse import csr_matrix

    leaves = find_leaves(ensemble, codes.astype(ensemble.dtype, copy=False))
    ends = np.arange(len(codes) + 1) * ensemble.n_trees
    ones = np.ones(leaves.size)  # as wide as what they meet, or they would be cast each time
    return csr_matrix((ones, leaves.reshape(-1), ends), shape=(len(codes), ensemble.n_nodes))
