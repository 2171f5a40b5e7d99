"""Candidate "trees": gradient boosting on codes, its shape and length chosen by K folds, all leaves fitted again.

Boosting sets the values of a tree once and never looks back. Given the trees, the best values are a linear
least-squares problem: each row adds up one value per tree. A few steps of LSQR from the values that boosting
found solve it well enough; stopping early keeps them close to where they came from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fouriershap._base.checks import import_optional
from fouriershap._base.parallel import for_each_block
from fouriershap._blackbox.surrogates import TreeSurrogate
from fouriershap._blackbox.task import N_FOLDS, CandidateFit, Task
from fouriershap._libraries.sklearn.trees import read_hist_gradient_boosting
from fouriershap._shapley.engine import Floats
from fouriershap._trees.arithmetic import side_by_side
from fouriershap._trees.ensemble import TreeEnsemble, find_leaves

FIRST = 100  # trees
LONGEST = (200, 600)  # trees: at least, at most; between them one per four answers. Refitted, more add little
SHAPES = ((0.1, 6), (0.1, 14), (0.1, 31))  # learning rate, leaves
TRIED_ON, TRIED_LENGTH = (0, 1), 300  # folds that choose the shape, and most trees for that
_MANY = 200_000  # codes from which folds are fitted at once; with fewer, threads wait for Python's lock
MOST_DEPTH = 12  # at most 16 features on a path fit into tables
N_STEPS = 20  # of LSQR
DAMPING = 1.0  # a pseudo-row per leaf that asks for no change


Grow = Callable[[Floats, Floats, tuple[float, int], int, int], TreeEnsemble]


@dataclass(frozen=True, eq=False)
class Grown:
    """Boosted trees of one shape and length, judged on folds.

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


def fit_trees(task: Task, folds: Sequence[int] = range(N_FOLDS)) -> CandidateFit:
    """Fit boosted trees, one model per output, judged on some folds."""
    begin = time.perf_counter()
    grown = [_best_shape(task, y, folds) for y in np.ascontiguousarray(task.answers.T)]
    return as_fit(task, grown, begin, _grow)


def _grow(codes: Floats, y: Floats, shape: tuple[float, int], length: int, seed: int) -> TreeEnsemble:
    return read_hist_gradient_boosting(boost(codes, y, shape, length, seed)).trees


def as_fit(task: Task, grown: list[Grown], begin: float, grow: Grow) -> CandidateFit:
    """Return trees of some shape and length by output as a candidate; ``grow`` grows them from all answers."""
    held_out = np.column_stack([g.predictions for g in grown])

    def make() -> TreeSurrogate:
        ensembles = []
        for g, y in zip(grown, np.ascontiguousarray(task.answers.T), strict=True):
            ensemble = grow(task.codes, y, g.shape, g.length, task.seed)
            ensembles.append(refit_leaves(ensemble, task.codes, y) if g.refitted else ensemble)
        return TreeSurrogate(side_by_side(ensembles), task.encoding.player)

    sizes = ", ".join(f"{g.length} of {g.shape[1]} leaves{', refitted' * g.refitted}" for g in grown[:3])
    note = f"trees: {sizes}{', ...' * (len(grown) > 3)}"
    return CandidateFit("trees", task.judge(held_out), held_out, make, time.perf_counter() - begin, note)


def _best_shape(task: Task, y: Floats, folds: Sequence[int]) -> Grown:
    """Choose the shape that does best on some folds, and judge it on all that are asked for."""
    tried_on = [k for k in TRIED_ON if k in folds][: max(len(folds) // 2, 1)]
    inside = np.isin(task.fold, tried_on)

    def loss(grown: Grown) -> float:
        return float(((grown.predictions - y)[inside] ** 2).sum())

    longest = int(np.clip(len(y) // 4, *LONGEST))
    tried = [_cross_validate(task, y, shape, tried_on, min(longest, TRIED_LENGTH)) for shape in SHAPES]
    return _cross_validate(task, y, min(tried, key=loss).shape, folds, longest)


def _cross_validate(
    task: Task, y: Floats, shape: tuple[float, int], folds: Sequence[int], longest: int
) -> Grown:
    """Find the best number of trees by the summed loss over folds, and whether refitting their leaves helps.

    One validation split stops far too early on heavy tails; the sum over folds does not.
    """
    models: dict[int, Any] = dict.fromkeys(folds)
    losses: dict[int, Floats] = {}
    length = FIRST

    def grow(first: int, last: int) -> None:
        for k in folds[first:last]:
            inside, outside = task.fold != k, task.fold == k
            models[k] = boost(task.codes[inside], y[inside], shape, length, task.seed, models[k])
            losses[k] = loss_by_length(models[k], task.codes[outside], y[outside])

    while True:
        for_each_block(grow, len(folds), 1, task.n_jobs if task.codes.size >= _MANY else 1)
        loss = np.sum([losses[k] for k in folds], axis=0)
        best = int(np.argmin(loss))
        # Twice as long while the end is where it is best, and still gets better by a twentieth.
        if length >= longest or best < 0.9 * length or loss[length // 2 - 1] < 1.05 * loss[best]:
            break
        length = min(2 * length, longest)
    return _judge(task, y, shape, best + 1, models)


def loss_by_length(model: Any, codes: Floats, y: Floats) -> Floats:
    with one_thread():
        return np.array([((stage - y) ** 2).sum() for stage in model.staged_predict(codes)])


def _judge(task: Task, y: Floats, shape: tuple[float, int], length: int, models: dict[int, Any]) -> Grown:
    """Predict each fold by the first ``length`` trees, refitted or not, whichever is better."""
    plain, refitted = np.full((2, len(y)), np.nan)
    for k, model in models.items():
        inside = task.fold != k
        ensemble = read_hist_gradient_boosting(model).trees
        ensemble = ensemble.select(np.arange(ensemble.n_trees) < length)
        again = refit_leaves(ensemble, task.codes[inside], y[inside])
        plain[~inside] = ensemble.predict(task.codes[~inside])[:, 0]
        refitted[~inside] = again.predict(task.codes[~inside])[:, 0]
    helps = bool(np.nansum((refitted - y) ** 2) < np.nansum((plain - y) ** 2))
    return Grown(shape, length, helps, refitted if helps else plain)


def boost(
    codes: Floats, y: Floats, shape: tuple[float, int], length: int, seed: int, model: Any = None
) -> Any:
    """Return a fitted HistGradientBoostingRegressor; with ``model`` that one, grown on to ``length`` trees.

    Answers come without noise, so a single row may have a leaf: what is rare in the data (a letter at a site, a
    mutation) often matters most. Where answers are noisy, K folds stop early instead.
    """
    if model is None:
        rate, leaves = shape
        model = _regressor()(
            learning_rate=rate,
            max_leaf_nodes=leaves,
            max_depth=MOST_DEPTH,
            max_bins=count_bins(codes),
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


def count_bins(codes: Floats) -> int:
    """Return as many bins as the feature with most levels has: scikit-learn clears all of them for every node."""
    most = max(len(np.unique(column[~np.isnan(column)])) for column in codes.T)
    return int(np.clip(most, 2, 255))


def one_thread() -> Any:
    """Keep scikit-learn to one thread: its work comes in crumbs, and on a busy machine threads that wait for
    each other after every crumb take many times as long.
    """
    _regressor()
    from threadpoolctl import threadpool_limits  # scikit-learn brings it along

    # A thread's own setting: several may fit at once. Others would be the whole process's.
    return threadpool_limits(1, user_api="openmp")


def _regressor() -> Any:
    ensemble = import_optional("sklearn.ensemble", "fitting trees to a black box", "[blackbox]")
    return ensemble.HistGradientBoostingRegressor


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
