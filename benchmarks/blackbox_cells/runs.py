"""One cell: a subject, a way of explaining it, a budget and a seed, with what it found."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import fouriershap as fs
from blackbox_cells.models import SUBJECTS, draw_rows, predict_of
from blackbox_cells.truth import r_squared, truth_of

Cell = dict[str, Any]


class Counted:
    """A model that counts the rows it is asked, its CPU seconds and those of the clock."""

    def __init__(self, predict: Callable[[Any], np.ndarray]) -> None:
        self._predict, self.count, self.seconds, self.wall_seconds = predict, 0, 0.0, 0.0

    def __call__(self, rows: Any) -> np.ndarray:
        self.count += len(rows)
        begin, begin_wall = time.process_time(), time.perf_counter()
        answers = np.asarray(self._predict(rows))
        self.seconds += time.process_time() - begin
        self.wall_seconds += time.perf_counter() - begin_wall
        return answers


def import_fitters() -> None:
    """The first fit of a process imports these, in up to a second, which no other does: so they are imported before."""
    import lightgbm  # noqa: F401
    import sklearn.ensemble  # noqa: F401


def represented(name: str, method: str, budget: int, seed: int) -> Cell:
    """`BlackBoxExplainer` end to end, on one thread."""
    from threadpoolctl import threadpool_limits

    subject = SUBJECTS[name]
    rows, model = draw_rows(subject, seed), Counted(predict_of(subject))
    import_fitters()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        explainer = fs.BlackBoxExplainer(
            model,
            rows.background,
            data=rows.data,
            method=method,
            budget=budget,
            groups=subject.groups,
            random_state=seed,
            n_jobs=1,
        )
    fitted, fitted_cpu = time.perf_counter(), time.process_time()
    values = explainer.shap_values(rows.explained)
    explained = time.perf_counter()
    truth, ceiling = truth_of(subject, seed)
    fidelity = explainer.fidelity
    return {
        "shap_r2": r_squared(truth, values),
        "ceiling": ceiling,
        "method": explainer.fit.method,
        "fidelity": [fidelity.r2, fidelity.low, fidelity.high],
        "k_fold": fidelity.k_fold,
        "fit_seconds": fitted - begin,
        "fit_cpu_seconds": fitted_cpu - begin_cpu - model.seconds,
        "explain_seconds": explained - fitted,
        "queries": model.count,
        "candidates": {line.name: [line.r2, line.seconds, line.note] for line in explainer.fit.candidates},
    }


def coded_transform(name: str, budget: int, seed: int) -> Cell:
    """The paper's route for a sparse model: its spectrum, checked at fresh points of the cube."""
    subject = SUBJECTS[name]
    model = Counted(predict_of(subject))
    begin = time.perf_counter()
    spectrum = fs.sparse_walsh_hadamard(
        model, subject.n_bits, algorithm="coded", budget=budget, random_state=seed
    )
    seconds = time.perf_counter() - begin
    asked = model.count
    fresh = np.random.default_rng([seed, 7]).integers(0, 2, size=(20_000, subject.n_bits)).astype(np.uint8)
    rows = draw_rows(subject, seed)
    values = fs.spectra.shap_values(
        spectrum, rows.explained.astype(np.uint8), rows.background.astype(np.uint8)
    )
    truth, ceiling = truth_of(subject, seed)
    return {
        "cube_r2": r_squared(model(fresh), spectrum(fresh)),
        "shap_r2": r_squared(truth, values),
        "ceiling": ceiling,
        "terms": len(spectrum),
        "queries": asked,
        "fit_seconds": seconds,
    }
