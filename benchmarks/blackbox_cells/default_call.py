"""Cells of the default call, ``fs.Explainer(predict, X)``: all cores, a budget of 20,000, X as background and data."""

from __future__ import annotations

import time
import warnings
from typing import Any

import fouriershap as fs
from blackbox_cells.models import SUBJECTS, draw_rows, predict_of
from blackbox_cells.networks import split
from blackbox_cells.runs import Counted

N_ROWS = 1000
MOST_SECONDS = 15.0  # of the clock, beyond the model's own time


def default_cell(name: str, seed: int) -> dict[str, Any]:
    """Seconds of the call by the clock and of all processors, each without the model's own."""
    options: dict[str, Any] = {}
    if name in SUBJECTS:
        subject = SUBJECTS[name]
        model, X = Counted(predict_of(subject)), draw_rows(subject, seed).data[:N_ROWS]
        options = {"groups": subject.groups} if subject.groups else {}
    else:
        network = split(name, seed).network
        model, X = Counted(network.asked), network.frame(network.data[:N_ROWS])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        begin, begin_cpu = time.perf_counter(), time.process_time()
        explainer = fs.Explainer(model, X, random_state=seed, **options)
        wall, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    return {
        "wall_seconds": wall - model.wall_seconds,
        "cpu_seconds": cpu - model.seconds,
        "model_wall_seconds": model.wall_seconds,
        "queries": model.count,
        "method": explainer.fit.method,
        "fidelity": [explainer.fidelity.r2, explainer.fidelity.low, explainer.fidelity.high],
    }
