"""Candidate "trees": gradient boosting on codes, its length chosen by K folds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._errors import MissingDependencyError
from fouriershap.blackbox._surrogates import Floats, TreeSurrogate
from fouriershap.blackbox._task import N_FOLDS, Fit, Task, r_squared
from fouriershap.trees import TreeEnsemble, read_model

FIRST = 100  # trees
LONGEST = (200, 1600)  # trees: at least, at most; between them one per eight answers
SHAPE = (0.1, 16)  # learning rate, leaves
_MOST_DEPTH = 12  # at most 16 features on a path fit into tables


def fit_trees(task: Task) -> Fit:
    """Boosted trees, one model per output."""
    begin = time.perf_counter()
    found = [
        _cross_validate(task.codes, y, task.fold, SHAPE, task.seed)
        for y in np.ascontiguousarray(task.answers.T)
    ]
    held_out = np.column_stack([predictions for _, predictions in found])

    def make() -> TreeSurrogate:
        models = [
            boost(task.codes, task.answers[:, output], SHAPE, length, task.seed)
            for output, (length, _) in enumerate(found)
        ]
        return TreeSurrogate(stack_outputs([read_model(model) for model in models]), task.encoding.player)

    note = f"{', '.join(str(length) for length, _ in found[:5])} trees of {SHAPE[1]} leaves"
    return Fit("trees", r_squared(task.answers, held_out), make, time.perf_counter() - begin, note)


def _cross_validate(
    codes: Floats, y: Floats, fold: NDArray[np.int64], shape: tuple[float, int], seed: int
) -> tuple[int, Floats]:
    """Best number of trees by the summed loss over all folds, and the predictions at that number.

    One validation split stops far too early on heavy tails; the sum over folds does not.
    """
    models: list[Any] = [None] * N_FOLDS
    length, longest = FIRST, int(np.clip(len(y) // 8, *LONGEST))
    while True:
        stages = [np.empty((length, int((fold == k).sum()))) for k in range(N_FOLDS)]
        for k in range(N_FOLDS):
            inside = fold != k
            models[k] = boost(codes[inside], y[inside], shape, length, seed, models[k])
            with one_thread():
                for stage, predictions in enumerate(models[k].staged_predict(codes[~inside])):
                    stages[k][stage] = predictions
        loss = sum(((stages[k] - y[fold == k]) ** 2).sum(axis=1) for k in range(N_FOLDS))
        best = int(np.argmin(loss))
        # Twice as long while the end is where it is best, and still gets better by a twentieth.
        if length >= longest or best < 0.9 * length or loss[length // 2 - 1] < 1.05 * loss[best]:
            break
        length = min(2 * length, longest)
    held_out = np.empty(len(y))
    for k in range(N_FOLDS):
        held_out[fold == k] = stages[k][best]
    return best + 1, held_out


def boost(
    codes: Floats, y: Floats, shape: tuple[float, int], length: int, seed: int, model: Any = None
) -> Any:
    """A fitted HistGradientBoostingRegressor; with ``model`` that one, grown on to ``length`` trees."""
    if model is None:
        rate, leaves = shape
        model = _regressor()(
            learning_rate=rate,
            max_leaf_nodes=leaves,
            max_depth=_MOST_DEPTH,
            min_samples_leaf=5,
            l2_regularization=1e-3,
            early_stopping=False,
            warm_start=True,
            random_state=seed,
        )
    model.set_params(max_iter=length)
    with one_thread():
        return model.fit(codes, y)


def one_thread() -> Any:
    """Keep scikit-learn to one thread: its work comes in crumbs, and on a busy machine threads that wait for
    each other after every crumb take many times as long.
    """
    _regressor()
    from threadpoolctl import threadpool_limits  # scikit-learn brings it along

    return threadpool_limits(1)


def _regressor() -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
    except ImportError as error:
        raise MissingDependencyError(
            "fitting trees to a black box needs scikit-learn: pip install 'fouriershap[blackbox]'"
        ) from error
    return HistGradientBoostingRegressor


def stack_outputs(ensembles: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """Ensembles of one output each, without categorical nodes, as one ensemble of several outputs."""
    sizes = np.array([e.n_nodes for e in ensembles])
    start = np.cumsum(sizes) - sizes
    first = ensembles[0]

    def shifted(name: str) -> NDArray[Any]:
        parts = [
            np.where(getattr(e, name) < 0, -1, getattr(e, name) + s)
            for e, s in zip(ensembles, start, strict=True)
        ]
        return np.concatenate(parts)

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(e, name) for e in ensembles])

    same = ("feature", "threshold", "missing_left", "category_set", "cover", "values")
    return first.replace(
        n_outputs=len(ensembles),
        tree_output=np.repeat(np.arange(len(ensembles)), [e.n_trees for e in ensembles]),
        base=joined("base"),
        output_names=None,
        kind="surrogate " + first.kind.removeprefix("scikit-learn "),
        **{name: shifted(name) for name in ("roots", "left", "right")},
        **{name: joined(name) for name in same},
    )
