"""Black boxes: SHAP values with errors, by the default call. How accurate, how honest, at what cost?

    python benchmarks/blackbox.py                     # what is not in results/blackbox.json yet
    python benchmarks/blackbox.py --only network spike
    python benchmarks/blackbox.py --peers             # and samplers of other packages, on some of the models
    python benchmarks/blackbox.py --list

Settings were chosen on models of other seeds and on other functions.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import time
import unittest.mock
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine
from blackbox_models import MODELS, N_BACKGROUND, N_ROWS, Asked, Truth, r_squared, truth

SEEDS = (2,)
PACKAGES = ("scikit-learn", "shap", "lightshap", "shapiq")
COMPARED = (
    "network",
    "network, overfitted",
    "maximum and minimum",
    "quantile boosting",
    "parity of 3 in 8",
    "spike",
)
FEW = 10  # rows that are compared
OURS = "fouriershap"
GOALS = (0.99, 0.999)  # R^2
TOLERANCES = (0.3, 0.2, 0.1, 0.05, 0.025, 0.012, 0.006)
COALITIONS = (32, 64, 128, 256, 512, 1024, 2048)  # of a row, each against every background row
PACES = {"1 µs": 1e-6, "1 ms": 1e-3}  # CPU seconds of a query
SIZES = (10, 100, 1000)  # rows
MOST_SECONDS = 40.0  # of a curve


@cache
def known(name: str, seed: int) -> Truth:
    """Return the true values of a model."""
    return truth(MODELS[name](seed))


def own_cell(name: str, seed: int) -> dict[str, Any]:
    """Measure the default call, and a fit that is saved."""
    subject = MODELS[name](seed)
    true, uncertain, ceiling = known(name, seed)
    rows, background, data = (subject.frame(subject.part(part)) for part in ("rows", "background", "data"))
    asked = Asked(subject)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.process_time()
        explainer = fs.Explainer(asked, background, random_state=seed, n_jobs=1)
        values, errors = explainer.shap_values(rows, errors=True)
        seconds = time.process_time() - begin - asked.seconds
    values, errors = values.reshape(true.shape), errors.reshape(true.shape)
    noise = np.abs(values - true) > 1e-9 * np.abs(true).max()
    within = np.abs(values - true) <= 1.96 * np.sqrt(errors**2 + uncertain**2)
    cell = {
        "n_columns": true.shape[1],
        "ceiling": ceiling,
        "r2": r_squared(values, true),
        "covered": float(within[noise].mean()) if noise.any() else 1.0,
        "queries": asked.queries / N_ROWS,
        "seconds": seconds,
        "model_seconds": asked.seconds,
        "fitted": explainer.engine.memory.fitted is not None,
        "largest_error": float((errors.max(axis=(1, 2)) / np.abs(values).max(axis=(1, 2))).max()),
        "warned": [type(warning.message).__name__ for warning in caught],
    }
    asked = Asked(subject)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.process_time()
        fitted = fs.Explainer(asked, background, data=data, random_state=seed, n_jobs=1).fit()
        cell["fit_seconds"] = time.process_time() - begin - asked.seconds
    cell["saved_r2"] = r_squared(fitted.shap_values(rows).reshape(true.shape), true)
    shap = fitted.fidelity.shap
    cell["claimed"] = None if shap is None else list(shap)
    cell["saved_warned"] = any(issubclass(warning.category, fs.FidelityWarning) for warning in caught)
    return cell


def curve_cell(name: str, method: str, seed: int) -> dict[str, Any]:
    """Measure R^2, queries and own CPU seconds of a row, with more and more queries."""
    subject = MODELS[name](seed)
    true = known(name, seed).values[:FEW, :, 0]
    rows, background = subject.part("rows")[:FEW], subject.part("background")
    points: list[list[float]] = []
    began = time.process_time()
    for size in TOLERANCES if method == OURS else COALITIONS:
        asked = Asked(subject)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values = METHODS[method](asked, rows, background, size)
            except (ValueError, ZeroDivisionError):  # too few for it
                continue
        seconds = time.process_time() - begin - asked.seconds
        r2 = r_squared(np.asarray(values).reshape(true.shape), true)
        points.append([r2, asked.queries / FEW, seconds / FEW])
        if r2 > GOALS[-1] + 5e-4 or time.process_time() - began > MOST_SECONDS:
            break
    return {"points": points}


def cost_cell(name: str, pace: str, n_rows: int, seed: int, tolerance: float) -> dict[str, Any]:
    """Measure CPU seconds of our call, of a model that takes so long; its time is added to the clock, not spent."""
    subject = MODELS[name](seed)
    true = known(name, seed).values[:FEW, :, 0]
    rows = np.concatenate([subject.part("rows")[:FEW], subject.part("data")])[:n_rows]
    asked, clock = Asked(subject), time.perf_counter
    late = lambda: clock() + PACES[pace] * asked.queries  # noqa: E731
    with unittest.mock.patch("time.perf_counter", late):
        begin = time.process_time()
        options: dict[str, Any] = {
            "tolerance": tolerance,
            "max_seconds": None,
            "random_state": seed,
            "n_jobs": 1,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            explainer = fs.BlackBoxExplainer(asked, subject.part("background"), **options)
            values = explainer.shap_values(rows)
        own = time.process_time() - begin - asked.seconds
    fitted = explainer.engine.memory.fitted is not None
    r2 = r_squared(values[:FEW].reshape(true.shape), true)
    return {"r2": r2, "queries": asked.queries, "own": own, "fitted": fitted}


def _ours(asked: Asked, rows: np.ndarray, background: np.ndarray, tolerance: float) -> np.ndarray:
    options: dict[str, Any] = {"tolerance": tolerance, "random_state": 0, "n_jobs": 1}
    return np.asarray(fs.BlackBoxExplainer(asked, background, **options).shap_values(rows))


def _kernel(asked: Asked, rows: np.ndarray, background: np.ndarray, n: int) -> np.ndarray:
    import shap

    explainer = shap.KernelExplainer(asked, background)
    return np.asarray(explainer.shap_values(rows, nsamples=n, l1_reg=0, silent=True))


def _permutation(asked: Asked, rows: np.ndarray, background: np.ndarray, n: int) -> np.ndarray:
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    explainer = shap.explainers.Permutation(asked, masker, seed=0)
    least = 2 * rows.shape[1] + 1
    return np.asarray(explainer(rows, max_evals=max(n // least, 1) * least, silent=True).values)


def _light(asked: Asked, rows: np.ndarray, background: np.ndarray, n: int) -> np.ndarray:
    import lightshap

    found = lightshap.explain_any(
        asked, rows, background, method="kernel", how="sampling", tol=1.0 / n, verbose=False, random_state=0
    )
    return np.asarray(found.shap_values)


def _of_shapiq(name: str) -> Callable[..., np.ndarray]:
    def explain(asked: Asked, rows: np.ndarray, background: np.ndarray, n: int) -> np.ndarray:
        from shapiq import approximator

        out = np.empty(rows.shape)
        for k, row in enumerate(rows):

            def game(coalitions: np.ndarray, row: np.ndarray = row) -> np.ndarray:
                member = np.asarray(coalitions, dtype=bool)[:, None]
                hybrids = np.where(member, row, background).reshape(-1, len(row))
                return np.asarray(asked(hybrids)).reshape(len(coalitions), -1).mean(axis=1)

            with contextlib.redirect_stdout(io.StringIO()):
                found = getattr(approximator, name)(n=len(row), random_state=k).approximate(
                    budget=n, game=game
                )
            out[k] = [found.dict_values.get((j,), 0.0) for j in range(len(row))]
        return out

    return explain


METHODS: dict[str, Callable[..., np.ndarray]] = {
    OURS: _ours,
    "KernelSHAP": _kernel,
    "PermutationSHAP": _permutation,
    "LightSHAP": _light,
    "LeverageSHAP": _of_shapiq("LeverageSHAP"),
    "OddSHAP": _of_shapiq("OddSHAP"),
}


def needed(points: list[list[float]], goal: float) -> tuple[float, float] | None:
    """Return queries and own seconds of a row for an R^2, between two points on a scale of logarithms."""
    before = None
    for r2, queries, seconds in points:
        if r2 >= goal:
            if before is None or before[0] >= goal:
                return queries, seconds
            missed = [math.log(max(1 - each, 1e-9)) for each in (before[0], r2, goal)]
            share = (missed[0] - missed[2]) / max(missed[0] - missed[1], 1e-9)
            return tuple(
                math.exp((1 - share) * math.log(a) + share * math.log(b))
                for a, b in zip(  # type: ignore[return-value]
                    before[1:], (queries, seconds), strict=True
                )
            )
        before = (r2, queries, seconds)
    return None


def cells() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return every cell by name."""
    own = {f"own/{name}/{seed}": partial(own_cell, name, seed) for seed in SEEDS for name in MODELS}
    curves = {
        f"{method}/{name}/{seed}": partial(curve_cell, name, method, seed)
        for seed in SEEDS
        for name in COMPARED
        for method in METHODS
    }
    return own | curves


def cost_cells(found: dict[str, dict[str, Any]]) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the cells of our costs: with the tolerance that is enough for R^2 .99, by the curve."""
    made = {}
    for name in COMPARED:
        points = found.get(f"{OURS}/{name}/{SEEDS[0]}", {}).get("points", [])
        enough = next((t for t, point in zip(TOLERANCES, points, strict=False) if point[0] >= GOALS[0]), None)
        for pace in PACES if enough is not None else ():
            for n_rows in SIZES:
                made[f"{pace}, {n_rows}/{name}/{SEEDS[0]}"] = partial(
                    cost_cell, name, pace, n_rows, SEEDS[0], enough
                )
    return made


def page(found: dict[str, dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    own = {
        name.split("/")[1]: cell for name, cell in found.items() if name.startswith("own/") and "r2" in cell
    }
    if not own:
        return ""
    r2, covered = (np.array([cell[key] for cell in own.values()]) for key in ("r2", "covered"))
    seconds = np.array([cell["seconds"] for cell in own.values()])
    lines = [
        "# Black boxes",
        "",
        f"Written by `benchmarks/blackbox.py`. The default call explains {N_ROWS} rows against {N_BACKGROUND} "
        "background rows; the rows are in neither background nor data. True values are those of the definition up to "
        "10 columns, beyond those of many permutations against every background row. Settings were chosen on other "
        "seeds and functions.",
        "",
        f"{len(own)} models: median R² {np.median(r2):.4f}, {int((r2 >= 0.99).sum())} at .99 or more; values within "
        f"1.96 standard errors {covered.mean():.3f} on average, {covered.min():.3f} at least; CPU seconds beyond the "
        f"model's own {seconds.mean():.1f} on average, {seconds.max():.1f} at most.",
        "",
        "| model | columns | R² | within 1.96 errors | queries a row | CPU s | model's own | fitted |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, cell in own.items():
        lines.append(
            f"| {name} | {cell['n_columns']} | {cell['r2']:.4f} | {cell['covered']:.3f} | {cell['queries']:,.0f} | "
            f"{cell['seconds']:.1f} | {cell['model_seconds']:.1f} | {'yes' if cell['fitted'] else ''} |"
        )
    judged = [cell for cell in own.values() if cell.get("claimed")]
    held = sum(cell["claimed"][1] <= cell["saved_r2"] <= cell["claimed"][2] for cell in judged)
    missed = sum(cell["saved_r2"] < 0.95 and not cell["saved_warned"] for cell in own.values())
    false = sum(cell["saved_r2"] >= 0.95 and cell["saved_warned"] for cell in own.values())
    lines += [
        "",
        "## Fitted and saved",
        "",
        f"`fit()` with 20,000 queries and `data=`: the interval of `fidelity.shap` held the R² of the {N_ROWS} rows in "
        f"{held} of {len(judged)} models; {missed} values of R² below .95 came without a warning, {false} warnings "
        "without need.",
        "",
        "| model | R² of the rows | claimed | CPU s |",
        "| --- | ---: | --- | ---: |",
    ]
    for name, cell in own.items():
        claim = "" if not cell.get("claimed") else "{:.3f} [{:.3f}, {:.3f}]".format(*cell["claimed"])
        lines.append(f"| {name} | {cell['saved_r2']:.4f} | {claim} | {cell['fit_seconds']:.1f} |")
    return "\n".join([*lines, *_compared(found)]) + "\n"


def _compared(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return the lines about other samplers."""
    compared = [name for name in COMPARED if f"{OURS}/{name}/{SEEDS[0]}" in found]
    if not compared:
        return []
    curves = {
        (name, method): found.get(f"{method}/{name}/{SEEDS[0]}", {}).get("points", [])
        for name in compared
        for method in METHODS
    }
    lines = ["", "## Queries a row", "", f"For R² .99 and .999 on {FEW} rows; – if not reached.", ""]
    lines += ["| model | " + " | ".join(METHODS) + " |", "| --- |" + " --- |" * len(METHODS)]
    for name in compared:
        texts = []
        for method in METHODS:
            each = [needed(curves[name, method], goal) for goal in GOALS]
            texts.append(" / ".join("–" if one is None else f"{one[0]:,.0f}" for one in each))
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    lines += [
        "",
        "## CPU seconds for R² .99",
        "",
        "Of so many rows, of a model that takes so long for a query (its time is added, not spent). Ours were "
        f"measured; those of others are their own time and queries for {FEW} rows, times the number of rows.",
        "",
        "| model | query | rows | ours | fitted | best of the others | its seconds |",
        "| --- | --- | ---: | ---: | --- | --- | ---: |",
    ]
    for name in compared:
        for pace in PACES:
            for n_rows in SIZES:
                costs = whole_seconds(found, name, pace, n_rows)
                mine = costs.pop(OURS, None)
                if mine is None or not costs:
                    continue
                fitted = "yes" if found[f"{pace}, {n_rows}/{name}/{SEEDS[0]}"]["fitted"] else ""
                best = min(costs, key=lambda m: costs[m])
                lines.append(
                    f"| {name} | {pace} | {n_rows:,} | {mine:,.2f} | {fitted} | {best} | {costs[best]:,.2f} |"
                )
    return lines


def whole_seconds(found: dict[str, dict[str, Any]], name: str, pace: str, n_rows: int) -> dict[str, float]:
    """Return the CPU seconds of every method for R^2 .99 of so many rows, those of the model among them."""
    second, out = PACES[pace], {}
    for method in METHODS:
        points = found.get(f"{method}/{name}/{SEEDS[0]}", {}).get("points", [])
        cost = needed(points, GOALS[0])
        if cost is not None:
            out[method] = n_rows * (cost[0] * second + cost[1])
    out.pop(OURS, None)  # measured
    ours = found.get(f"{pace}, {n_rows}/{name}/{SEEDS[0]}")
    return out | ({} if ours is None else {OURS: ours["own"] + ours["queries"] * second})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="MODEL")
    parser.add_argument("--peers", action="store_true", help="those of other packages, too")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    every = cells()
    if arguments.list:
        print("\n".join(every))
        return
    print_machine(PACKAGES)
    fs.Explainer(lambda X: X[:, 0], np.eye(4)).shap_values(np.eye(4)[:1])  # imports what the first does
    cost_names = [f"{p}, {n}/{name}/{SEEDS[0]}" for name in COMPARED for p in PACES for n in SIZES]
    kept = Cells(
        RESULTS / "blackbox.json",
        PACKAGES,
        math.inf,
        where=("results", "cells"),
        wanted=[*every, *cost_names],
    )
    kept.page = lambda: page(kept.found)
    for name, run in every.items():
        way, model, _ = name.split("/")
        if (arguments.only and model not in arguments.only) or (way != "own" and not arguments.peers):
            continue
        kept.measure(name, run)
    for name, run in cost_cells(kept.found).items() if arguments.peers else ():
        if not arguments.only or name.split("/")[1] in arguments.only:
            kept.measure(name, run)


if __name__ == "__main__":
    main()
