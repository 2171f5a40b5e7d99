"""One quick fit of trees, where waves may be better: by LightGBM if it is there, else by scikit-learn."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fouriershap._blackbox.candidates.trees import (
    MOST_DEPTH,
    SHAPES,
    Grown,
    as_fit,
    boost,
    count_bins,
    fit_trees,
    loss_by_length,
    one_thread,
    refit_leaves,
)
from fouriershap._blackbox.fidelity import r_squared
from fouriershap._blackbox.task import N_FOLDS, CandidateFit, Task
from fouriershap._libraries import read_model
from fouriershap._libraries.sklearn.trees import read_hist_gradient_boosting
from fouriershap._shapley.engine import Floats
from fouriershap._trees.ensemble import TreeEnsemble

Tick = Callable[[float], None]
LOOK, LOOK_LENGTH = (0.2, 31), 100  # shape and length of a first look
SHAPE, LENGTH = (0.1, 31), 300
LONGEST = 600  # where trees are worth some care


def missed_at_a_look(task: Task) -> float:
    """Return 1 - R^2 of a few trees, for the output that varies most."""
    inside, outside = task.fold != 0, task.fold == 0
    y = task.answers[:, int(np.argmax(task.answers.var(axis=0)))]
    booster = _boost_lightgbm if _has_lightgbm() else boost
    with one_thread():
        said = booster(task.codes[inside], y[inside], LOOK, LOOK_LENGTH, task.seed).predict(
            task.codes[outside]
        )
    return 1 - r_squared(y[outside, None], said[:, None])


def fit_quick_trees(task: Task) -> CandidateFit:
    """Fit boosted trees of one shape, judged on one fold."""
    return _fit(task, (SHAPE,), LENGTH, (0,))


def fit_best_trees(task: Task, folds: Sequence[int]) -> CandidateFit:
    """Fit boosted trees of several shapes, judged on these folds; by LightGBM on all of them or on the first."""
    if not _has_lightgbm():
        return fit_trees(task, folds)
    return _fit(task, SHAPES, LONGEST, folds if len(folds) == N_FOLDS else folds[:1])


def _fit(task: Task, shapes: Sequence[tuple[float, int]], longest: int, folds: Sequence[int]) -> CandidateFit:
    begin = time.perf_counter()
    grown: list[Grown] = []
    task.progress.start(task.n_outputs * len(shapes) * longest)
    for y in np.ascontiguousarray(task.answers.T):
        tried = [(*_best_length(task, y, shape, longest, task.progress.tick), shape) for shape in shapes]
        _, trees, shape = min(tried, key=lambda each: each[0])
        grown.append(_judged(task, y, shape, trees))
        for k in folds[1:]:
            _judge_also(task, y, grown[-1], k)
    return as_fit(task, grown, begin, grow)


def _best_length(
    task: Task, y: Floats, shape: tuple[float, int], longest: int, tick: Tick
) -> tuple[float, TreeEnsemble]:
    """Return the lowest loss on the fold that is left out, and the trees that have it.

    ``tick`` is called with the number of trees grown, now and then.
    """
    inside, outside = task.fold != 0, task.fold == 0
    codes, others = task.codes[inside], task.codes[outside]
    if _has_lightgbm():
        losses: list[float] = []
        judges = others, y[outside], losses, tick
        trees = read_model(_boost_lightgbm(codes, y[inside], shape, longest, task.seed, judges)).trees
        loss = np.array(losses)
    else:
        model = boost(codes, y[inside], shape, longest, task.seed)
        tick(longest)
        loss = loss_by_length(model, others, y[outside])
        trees = read_hist_gradient_boosting(model).trees
    best = int(np.argmin(loss))
    return float(loss[best]), trees.select(np.arange(trees.n_trees) <= best)


def _judged(task: Task, y: Floats, shape: tuple[float, int], trees: TreeEnsemble) -> Grown:
    """Judge trees on the fold that is left out; refit their leaves where that helps there."""
    inside, outside = task.fold != 0, task.fold == 0
    refitted = refit_leaves(trees, task.codes[inside], y[inside])
    plain, fitted = (each.predict(task.codes[outside])[:, 0] for each in (trees, refitted))
    helps = bool(((fitted - y[outside]) ** 2).sum() < ((plain - y[outside]) ** 2).sum())
    predictions = np.full(len(y), np.nan)
    predictions[outside] = fitted if helps else plain
    return Grown(shape, trees.n_trees, helps, predictions)


def _judge_also(task: Task, y: Floats, grown: Grown, k: int) -> None:
    """Write the predictions of one more fold, by trees of the same shape and length."""
    inside = task.fold != k
    trees = grow(task.codes[inside], y[inside], grown.shape, grown.length, task.seed)
    if grown.refitted:
        trees = refit_leaves(trees, task.codes[inside], y[inside])
    grown.predictions[~inside] = trees.predict(task.codes[~inside])[:, 0]


def grow(codes: Floats, y: Floats, shape: tuple[float, int], length: int, seed: int) -> TreeEnsemble:
    """Grow boosted trees of a shape and length."""
    if _has_lightgbm():
        return read_model(_boost_lightgbm(codes, y, shape, length, seed)).trees
    return read_hist_gradient_boosting(boost(codes, y, shape, length, seed)).trees


def _has_lightgbm() -> bool:
    return importlib.util.find_spec("lightgbm") is not None


def _boost_lightgbm(
    codes: Floats,
    y: Floats,
    shape: tuple[float, int],
    length: int,
    seed: int,
    judges: tuple[Floats, Floats, list[float], Tick] | None = None,
) -> Any:
    """Return a Booster; with ``judges``, append the loss on their answers after each tree to their list, and tick.

    As by scikit-learn, a single row may have a leaf (see `boost`).
    """
    import lightgbm

    rate, leaves = shape
    settings = {
        "objective": "regression",
        "learning_rate": rate,
        "num_leaves": leaves,
        "max_depth": MOST_DEPTH,
        "max_bin": count_bins(codes),
        "min_data_in_bin": 1,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "lambda_l2": 1e-3,
        "feature_pre_filter": False,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "seed": seed,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(codes, y, params=settings)
    if judges is None:
        return lightgbm.train(settings, data, length)
    found: dict[str, Any] = {}
    others = lightgbm.Dataset(judges[0], judges[1], reference=data, params=settings)
    recording = [lightgbm.record_evaluation(found), lambda _: judges[3](1)]
    booster = lightgbm.train(settings, data, length, [others], ["judges"], callbacks=recording)
    judges[2].extend(found["judges"]["l2"])
    return booster
