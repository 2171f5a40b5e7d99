"""Candidate "kernel": the kernel regression, distilled into trees on hybrids that it labels itself."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.candidates.conjugate import LEAST_NOISE, solve_with_folds
from fouriershap._blackbox.candidates.kernel_ridge import (
    KernelRidge,
    OneHot,
    fit_ridge,
    held_out_residuals,
    learn_theta,
    make_one_hot,
)
from fouriershap._blackbox.candidates.trees import boost
from fouriershap._blackbox.surrogates import TreeSurrogate, stack_outputs
from fouriershap._blackbox.task import Fit, Task, r_squared
from fouriershap._shapley.engine import Floats
from fouriershap._trees.readers import read_model

N_THETA = 800  # points for the likelihood: its cost grows with their cube
MOST_FACTORED = 8_000  # points of a ridge solved by a factor, likewise; beyond, by conjugate gradients
MOST_POINTS = 24_000  # points of the ridge: its matrix takes 2.3 GB then
N_LABELLED = (16, 80_000)  # hybrids per answer, and at most
N_CHECK = 4_000
STUDENT = (0.2, 31)  # labels without noise bear long steps
STUDENT_TREES = (100, 200, 400, 800)
GOOD_ENOUGH = 0.2  # what the trees may miss of the kernel, as a share of what the kernel misses of the model


def fit_kernel(task: Task) -> Fit:
    """Kernel ridge regression; `Fit.make` distils it."""
    begin = time.perf_counter()
    rng = np.random.default_rng(task.seed)
    one_hot = make_one_hot(task.pool_codes)
    chosen = rng.permutation(len(task.codes))[:MOST_POINTS]
    points, answers = one_hot(task.codes[chosen]), task.answers[chosen]
    scale = answers.std(axis=0)
    scale[scale == 0] = 1.0
    y = (answers - answers.mean(axis=0)) / scale
    theta, noise = learn_theta(points[:N_THETA], one_hot.feature, y[:N_THETA])
    if len(points) > MOST_FACTORED:
        noise = max(noise, LEAST_NOISE)
    ridge, missed = _solve(one_hot, points, y, theta, noise, task.fold[chosen])
    predictions = np.full(task.answers.shape, np.nan)
    predictions[chosen] = answers - missed * scale
    r2 = task.judge(predictions)
    mean = answers.mean(axis=0)
    full = replace(ridge, alpha=ridge.alpha * scale, mean=ridge.mean * scale + mean)
    note = f"{len(chosen)} points, noise {noise:.1e}"
    return Fit(
        "kernel",
        r2,
        predictions,
        lambda: distil(full, task, GOOD_ENOUGH * (1 - r2)),
        time.perf_counter() - begin,
        note,
    )


def _solve(
    one_hot: OneHot,
    points: NDArray[np.float32],
    y: Floats,
    theta: Floats,
    noise: float,
    fold: NDArray[np.int64],
) -> tuple[KernelRidge, Floats]:
    """The regression, and what K folds of the answers miss (n, n_outputs); NaN for rows in no fold."""
    if len(points) <= MOST_FACTORED:
        ridge, factor = fit_ridge(one_hot, points, y, theta, noise)
        return ridge, held_out_residuals(factor, ridge.alpha, fold)
    weights = theta[one_hot.feature]
    alpha, missed = solve_with_folds(points, y, weights, noise, fold)
    return KernelRidge(one_hot, points, weights, alpha, np.zeros(y.shape[1]), np.float32), missed


def distil(teacher: KernelRidge, task: Task, tolerance: float) -> TreeSurrogate:
    """Trees that repeat what the kernel says on hybrids: its answers cost no query."""
    codes = np.concatenate([task.codes, task.draw(min(N_LABELLED[0] * len(task.codes), N_LABELLED[1]))])
    labels = teacher.predict(codes)
    check = task.draw(N_CHECK)
    truth = teacher.predict(check)
    students = []
    for output in range(labels.shape[1]):
        model = None
        for length in STUDENT_TREES:
            model = boost(codes, labels[:, output], STUDENT, length, task.seed, model)
            if missed_share(truth[:, output], model.predict(check)) < tolerance:
                break
        students.append(read_model(model))
    return TreeSurrogate(stack_outputs(students), task.encoding.player)


def missed_share(truth: Floats, predictions: Floats) -> float:
    return 1.0 - r_squared(truth[:, None], predictions[:, None])
