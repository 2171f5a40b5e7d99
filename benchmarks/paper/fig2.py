"""Figure 2: speed-up over KernelSHAP against the accuracy of the SHAP values. Table 3: FastSHAP's training.

A point is one method with one setting on some background rows and explained rows. `seconds` holds everything that
must be done for the background and the rows; what is done once per model (or, by FastSHAP, per background) is
`once_seconds` and `once_queries`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

import fouriershap as fs
from paper import models
from paper.fig1 import Counted, transform
from paper.settings import DATASETS, DEPTH, NETWORKS, Settings
from paper.store import Cell, Skipped, quickest
from paper.truth import truth
from peers import Explain, fast_shap_answers, missing
from peers.deep_lift import deep_lift
from peers.kernel_shap import kernel_shap
from peers.linreg_shap import linreg_shap
from peers.permutation import permutation
from peers.shapiq_peers import shapiq

BASE, DEEP_LIFT = "KernelSHAP", "DeepLIFT"
CLOSED_FORM, TABLES, BLACK_BOX = "FourierSHAP, closed form", "FourierSHAP, tables", "BlackBoxExplainer"
LINREG, FAST = "LinRegSHAP", "FastSHAP"
SAMPLERS: dict[str, tuple[str, Callable[..., Explain]]] = {
    "KernelSHAP, l1_reg=0": ("shap", partial(kernel_shap, all_features=True)),
    "PermutationExplainer": ("shap", permutation),
    "shapiq KernelSHAP": ("shapiq", shapiq),
    "shapiq ProxySPEX": ("shapiq", partial(shapiq, method="proxyspex")),
    "shapiq SPEX": ("galois", partial(shapiq, method="spex")),
}


def cells(settings: Settings) -> Iterator[Cell]:
    for name in DATASETS:
        yield Cell("truth", name, partial(_truth, name, settings))
        yield Cell("fig2", f"{name}/{BASE}", partial(_kernel_shap, name, settings))
        yield Cell("fig2", f"{name}/{TABLES}", partial(_fourier, name, settings))
        yield Cell("fig2", f"{name}/{BLACK_BOX}", partial(_black_box, name, settings))
        if name in NETWORKS:
            yield Cell("fig2", f"{name}/{DEEP_LIFT}", partial(_deep_lift, name, settings))
        yield Cell("fig2", f"{name}/{FAST}", partial(_fast_shap, name, settings))
        yield Cell("fig2", f"{name}/{LINREG}", partial(_linreg, name, settings))
        for peer in SAMPLERS:
            yield Cell("fig2", f"{name}/{peer}", partial(_sampler, name, peer, settings))


def _truth(name: str, settings: Settings) -> dict[str, Any]:
    trained, found = models.black_box(name, settings), truth(name, settings)
    return {
        "method": found.method,
        "ceiling": found.ceiling,
        "test_r2": trained.test_r2,
        "training_seconds": trained.seconds,
    }


def _need(*modules: str) -> None:
    if reason := missing(*modules):
        raise Skipped(reason)


def _by_row(
    name: str, settings: Settings, peer: Any, background: int, rows: int, most_seconds: float = np.inf
) -> list[dict[str, Any]]:
    """Row after row, until the rows or the time for them are at an end; a point per number of rows."""
    found = truth(name, settings).values[background]
    h = Counted(models.black_box(name, settings).predict)
    explain = peer(h, models.background(name, settings, background), settings.seed)
    built, values, spent, points = h.queries, [], 0.0, []
    for row in models.rows(name, settings, rows):
        begin = time.perf_counter()
        values.append(explain(row[None])[0])
        spent += time.perf_counter() - begin
        done, late = len(values), spent > most_seconds
        if done == rows or done in settings.sizes or late:
            r2 = models.r_squared(found[:done], np.array(values))
            points.append(_point("", background, done, spent, r2, queries=h.queries - built))
        if late:
            break
    return points


def _point(
    setting: str, background: int, rows: int, seconds: float, r2: float, **more: Any
) -> dict[str, Any]:
    return {"setting": setting, "background": background, "rows": rows, "seconds": seconds, "r2": r2, **more}


def _kernel_shap(name: str, settings: Settings) -> dict[str, Any]:
    """At its defaults, on all rows: the unit of time. Rows are independent, so fewer rows are the first ones."""
    rows = max(settings.sizes)
    return {"points": [p for b in settings.sizes for p in _by_row(name, settings, kernel_shap, b, rows)]}


def _sampler(name: str, peer: str, settings: Settings) -> dict[str, Any]:
    module, explain = SAMPLERS[peer]
    _need(module)
    b, rows = settings.sampler_background, settings.sampler_rows
    truth(name, settings)
    with _at_most(settings.sampler_limit):
        return {"points": _by_row(name, settings, explain, b, rows, settings.sampler_seconds)[-1:]}


@contextmanager
def _at_most(limit: float) -> Iterator[None]:
    """Leave out a peer that is not done in time."""

    def stop(*_: Any) -> None:
        raise Skipped(f"no result within {limit:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _linreg(name: str, settings: Settings) -> dict[str, Any]:
    points = []
    for n_samples in (*settings.linreg_samples, None):
        peer = partial(linreg_shap, n_samples=n_samples)
        setting = "until convergence" if n_samples is None else f"{n_samples} coalitions"
        for b in settings.linreg_backgrounds:
            found = _by_row(name, settings, peer, b, settings.sampler_rows, settings.sampler_seconds)[-1:]
            points += [point | {"setting": setting} for point in found]
    return {"points": points}


def _batches(
    name: str,
    settings: Settings,
    background: int,
    build: Callable[[], Explain],
    compiled: Callable[[], Explain] | None = None,
) -> Iterator[dict[str, Any]]:
    """Methods that explain all rows at once: `seconds` from a new background on, `explain_seconds` once it is compiled.

    Tables are filled at the first call that pays for them, so the first call belongs to what a background costs.
    """
    found = truth(name, settings).values[background]
    explain = (build if compiled is None else compiled)()
    for rows in settings.sizes:
        X = models.rows(name, settings, rows)
        fresh, values = quickest(lambda X=X: build()(X), repeats=5, most_seconds=0.5)
        seconds, values = quickest(partial(explain, X), repeats=20, most_seconds=0.5)
        r2 = models.r_squared(found[:rows], values)
        yield _point("", background, rows, fresh, r2, explain_seconds=seconds, queries=0)


def _fourier(name: str, settings: Settings) -> dict[str, Any]:
    """The paper's way: a sparse transform of uniform queries, pruned; closed form and tables on the same terms."""
    depth = 0 if name in NETWORKS else DEPTH
    predict = models.black_box(name, settings).predict
    spectrum, once, queries = transform(predict, name, depth, settings.terms[name], settings.seed)
    points = []
    for threshold in settings.thresholds:
        kept = spectrum.prune(min_amplitude=threshold)
        for method, label in (("direct", CLOSED_FORM), ("tables", TABLES)):
            for b in settings.sizes:
                background = models.background(name, settings, b)
                more = {"once_seconds": once, "once_queries": queries, "terms": len(kept), "method": label}
                points += [
                    point | more | {"setting": f"amplitudes >= {threshold:g}"}
                    for point in _batches(name, settings, b, partial(_stage2, kept, background, method))
                ]
    return {"points": points, "terms": len(spectrum)}


def _stage2(spectrum: fs.Spectrum, background: np.ndarray, method: str) -> Explain:
    if method == "tables":
        return fs.SpectrumExplainer(spectrum, background).shap_values
    return lambda X: fs.spectra.shap_values(spectrum, X, background, strategy="direct")


@cache
def black_box(
    name: str, settings: Settings, budget: int, method: str, known: bool = False
) -> tuple[fs.Explainer, float, int]:
    """Our explainer, which asks about hybrids of training rows; the seconds and the queries of its fit.

    ``known``: it is told the rows that will be explained, as every sampler is.
    """
    h, begin = Counted(models.black_box(name, settings).predict), time.perf_counter()
    explainer = fs.BlackBoxExplainer(
        h,
        models.background(name, settings, max(settings.sizes)),
        data=models.split(name, settings).X[: settings.data_rows],
        rows=models.rows(name, settings, max(settings.sizes)) if known else None,
        budget=budget,
        method=method,
        min_fidelity=0.0,
        random_state=settings.seed,
    )
    return explainer, time.perf_counter() - begin, h.queries


def _black_box(name: str, settings: Settings) -> dict[str, Any]:
    points = []
    for budget, known in product(settings.budgets, (False, True)):
        explainer, once, queries = black_box(name, settings, budget, "auto", known)
        more = {"once_seconds": once, "once_queries": queries, "terms": size(explainer)}
        more |= {
            "setting": f"{budget:,} queries" + (", rows known" if known else ""),
            "fitted": explainer.fit.method,
            "fidelity": explainer.fidelity.r2,
        }
        for b in settings.sizes:
            background = models.background(name, settings, b)
            build = partial(_against, explainer, background)
            found = _batches(name, settings, b, build, partial(build, compiled=True))
            points += [point | more for point in found]
    return {"points": points}


def size(explainer: fs.Explainer) -> int:
    """Terms of a spectrum, waves, or leaves of trees; of a blend waves and leaves."""
    found = explainer.representation
    return sum(_terms(part) for part in (found if isinstance(found, tuple) else (found,)))


def _terms(representation: Any) -> int:
    if isinstance(representation, fs.Spectrum):
        return len(representation)
    return (
        len(representation.frequencies)
        if isinstance(representation, fs.Waves)
        else int(representation.n_leaves)
    )


def _against(explainer: fs.Explainer, background: np.ndarray, compiled: bool = False) -> Explain:
    other = explainer.with_background(background)
    return other.compile().shap_values if compiled else other.shap_values


def _deep_lift(name: str, settings: Settings) -> dict[str, Any]:
    _need("torch")
    network, points = models.black_box(name, settings).model, []
    for b in settings.sizes:
        background = models.background(name, settings, b)
        points += _batches(name, settings, b, partial(deep_lift, network.weights, network.biases, background))
    return {"points": points}


def _fast_shap(name: str, settings: Settings) -> dict[str, Any]:
    """Three sizes, trained for one background on answers that they share."""
    _need("torch")
    from peers import fast_shap

    b, predict = settings.fastshap_background, models.black_box(name, settings).predict
    background, h, begin = models.background(name, settings, b), Counted(predict), time.perf_counter()
    X = models.split(name, settings).X[-settings.fastshap_rows :]
    answers = fast_shap_answers.ask(h, background, X, settings.fastshap_subsets, settings.seed)
    asking, points = time.perf_counter() - begin, []
    for layers in fast_shap.LAYERS:
        begin = time.perf_counter()
        network, epochs = fast_shap.train(answers, layers, settings.fastshap_epochs, settings.seed)
        more = {
            "once_seconds": asking + time.perf_counter() - begin,
            "once_queries": h.queries,
            "epochs": epochs,
        }
        explain = fast_shap_answers.explainer(network, predict, background)
        found = _batches(name, settings, b, lambda explain=explain: explain)
        points += [point | more | {"setting": layers} for point in found]
    return {"points": points}
