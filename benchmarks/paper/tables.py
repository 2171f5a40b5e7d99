"""Figure 5 and Tables 2 and 4. (Table 1 is KernelSHAP's times of Figure 2, Table 3 FastSHAP's training there.)"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import fouriershap as fs
from paper import models
from paper.fig1 import transform
from paper.fig2 import black_box, size
from paper.settings import Settings
from paper.store import Cell, quickest
from paper.truth import by_definition, truth
from peers import Explain
from peers.kernel_shap import kernel_shap

FIGURE_5 = TABLE_4 = 10  # rows, and background rows
PAPER = "the paper's setting"  # uniform queries, the closed form's terms


def cells(settings: Settings) -> Iterator[Cell]:
    yield Cell("fig5", "entacmaea", partial(_figure_5, settings))
    for b in settings.table2_sizes:
        yield Cell("table2", f"KernelSHAP/{b}", partial(_kernel_shap, b, settings))
    yield Cell("table2", PAPER, partial(_paper_setting, settings))
    for method, budget in settings.table2_methods:
        yield Cell("table2", f"{method}/{budget}", partial(_ours, method, budget, settings))
    for factor in settings.factors:
        yield Cell("table4", f"{factor:g}", partial(_sample_factor, factor, settings))


def _figure_5(settings: Settings) -> dict[str, Any]:
    name = "entacmaea"
    predict = models.black_box(name, settings).predict
    X, background = models.rows(name, settings, FIGURE_5), models.background(name, settings, FIGURE_5)
    exact = by_definition(predict, X, background)
    found = {
        "KernelSHAP, l1_reg=0": kernel_shap(predict, background, settings.seed, all_features=True)(X),
        "FourierSHAP": black_box(name, settings, max(settings.budgets), "auto")[0]
        .with_background(background)
        .shap_values(X),
        "Eq. 1, all coalitions": exact,
    }
    default = kernel_shap(predict, background, settings.seed)(X)
    return {
        "values": {who: values.tolist() for who, values in found.items()},
        "r2": {
            who: models.r_squared(exact, values) for who, values in (found | {"KernelSHAP": default}).items()
        },
        "largest_difference": {who: float(abs(values - exact).max()) for who, values in found.items()},
        "largest_value": float(abs(exact).max()),
    }


def _kernel_shap(b: int, settings: Settings) -> dict[str, Any]:
    predict = models.black_box("sgemm", settings).predict
    explain = kernel_shap(predict, models.background("sgemm", settings, b), settings.seed)
    X = models.rows("sgemm", settings, settings.table2_rows)
    begin = time.perf_counter()
    explain(X)
    return {"seconds_per_row": (time.perf_counter() - begin) / len(X), "rows_timed": len(X)}


def _ours(method: str, budget: int, settings: Settings) -> dict[str, Any]:
    """One representation for every background; its R^2 is that at the largest sizes of Figure 2."""
    explainer, once, queries = black_box("sgemm", settings, budget, method)
    found = _timed(
        settings,
        lambda background: explainer.with_background(background).shap_values,
        lambda background: explainer.with_background(background).compile().shap_values,
    )
    return found | {
        "terms": size(explainer),
        "representation": type(explainer.representation).__name__,
        "fitted": explainer.fit.method,
        "once_seconds": once,
        "once_queries": queries,
    }


def _paper_setting(settings: Settings) -> dict[str, Any]:
    """The spectrum of Figure 2, found at uniform points."""
    predict = models.black_box("sgemm", settings).predict
    spectrum, once, queries = transform(predict, "sgemm", 0, settings.terms["sgemm"], settings.seed)

    def compiled(background: np.ndarray) -> Explain:
        return fs.SpectrumExplainer(spectrum, background).shap_values

    return _timed(settings, compiled, compiled) | {
        "terms": len(spectrum),
        "representation": type(spectrum).__name__,
        "fitted": PAPER,
        "once_seconds": once,
        "once_queries": queries,
    }


def _timed(
    settings: Settings, fresh: Callable[[np.ndarray], Explain], compiled: Callable[[np.ndarray], Explain]
) -> dict[str, Any]:
    """Seconds of all sizes, from a new background on (first) and once it is compiled; R^2 at Figure 2's largest."""
    points, largest = [], max(settings.sizes)
    for b in settings.table2_sizes:
        background = models.background("sgemm", settings, b)
        explain = compiled(background)
        for q in settings.table2_sizes:
            X = models.rows("sgemm", settings, q)
            first = quickest(lambda X=X, background=background: fresh(background)(X), repeats=5)[0]
            seconds = quickest(partial(explain, X), repeats=20)[0]
            points.append({"background": b, "rows": q, "explain_seconds": seconds, "first_seconds": first})
    values = fresh(models.background("sgemm", settings, largest))(models.rows("sgemm", settings, largest))
    return {"points": points, "r2": models.r_squared(truth("sgemm", settings).values[largest], values)}


def _sample_factor(factor: float, settings: Settings) -> dict[str, Any]:
    name = "gb1"
    predict = models.black_box(name, settings).predict
    background, X = models.background(name, settings, TABLE_4), models.rows(name, settings, TABLE_4)
    explain = kernel_shap(predict, background, settings.seed, sample_factor=factor)
    begin = time.perf_counter()
    values = explain(X)
    seconds = time.perf_counter() - begin
    exact = truth(name, settings).values[TABLE_4][: len(X)]
    return {
        "seconds": seconds,
        "r2_exact": models.r_squared(exact, values),
        "values": values.round(7).tolist(),
    }
