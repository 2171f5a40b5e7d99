"""Black boxes: SHAP values with errors, by the default call. How accurate, how honest, at what cost?

    python benchmarks/blackbox.py                     # what is not in results/blackbox.json yet
    python benchmarks/blackbox.py --only network spike
    python benchmarks/blackbox.py --peers             # samplers of other packages, on some of the models
    python benchmarks/blackbox.py --list

Settings were chosen on models of seed 0 and on other functions; what is reported is of seeds 1 and later.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine
from blackbox_models import MODELS, N_BACKGROUND, N_ROWS, Asked, r_squared, truth

SEEDS = (1,)
PACKAGES = ("scikit-learn", "shap", "lightshap")
COMPARED = (
    "network",
    "network, overfitted",
    "maximum and minimum",
    "quantile boosting",
    "parity of 3 in 8",
    "spike",
)
PEERS = ("KernelSHAP", "PermutationSHAP", "LightSHAP")
FEW = 10  # rows that peers explain


def own_cell(name: str, seed: int) -> dict[str, Any]:
    """Measure the default call, and a fit that is saved."""
    subject = MODELS[name](seed)
    true, ceiling = truth(subject)
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
    within = np.abs(values - true) <= 1.96 * errors
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


def peer_cell(name: str, peer: str, seed: int) -> dict[str, Any]:
    """Measure a sampler of another package by its defaults, on fewer rows."""
    subject = MODELS[name](seed)
    true, _ = truth(subject)
    rows, background = subject.part("rows")[:FEW], subject.part("background")
    asked = Asked(subject)
    begin = time.process_time()
    values = _PEERS[peer](asked, rows, background)
    seconds = time.process_time() - begin - asked.seconds
    return {"r2": r_squared(values, true[:FEW, :, 0]), "queries": asked.queries / FEW, "seconds": seconds}


def _kernel(asked: Asked, rows: np.ndarray, background: np.ndarray) -> np.ndarray:
    import shap

    return np.asarray(shap.KernelExplainer(asked, background).shap_values(rows, l1_reg=0, silent=True))


def _permutation(asked: Asked, rows: np.ndarray, background: np.ndarray) -> np.ndarray:
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    return np.asarray(shap.explainers.Permutation(asked, masker, seed=0)(rows, silent=True).values)


def _light(asked: Asked, rows: np.ndarray, background: np.ndarray) -> np.ndarray:
    import lightshap

    found = lightshap.explain_any(
        asked, rows, bg_X=background, method="kernel", how="sampling", verbose=False
    )
    return np.asarray(found.shap_values)


_PEERS: dict[str, Callable[..., np.ndarray]] = {
    "KernelSHAP": _kernel,
    "PermutationSHAP": _permutation,
    "LightSHAP": _light,
}


def cells() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return every cell by name."""
    own = {f"own/{name}/{seed}": partial(own_cell, name, seed) for seed in SEEDS for name in MODELS}
    peers = {
        f"{peer}/{name}/{seed}": partial(peer_cell, name, peer, seed)
        for seed in SEEDS
        for name in COMPARED
        for peer in PEERS
    }
    return own | peers


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
    compared = [
        name
        for name in COMPARED
        if name in own and any(f"{peer}/{name}/{SEEDS[0]}" in found for peer in PEERS)
    ]
    if compared:
        lines += [
            "",
            "## Other samplers",
            "",
            f"By their defaults, on {FEW} rows: R² and queries a row.",
            "",
        ]
        lines += ["| model | ours | " + " | ".join(PEERS) + " |", "| --- |" + " --- |" * (len(PEERS) + 1)]
        for name in compared:
            theirs = [found.get(f"{peer}/{name}/{SEEDS[0]}", {}) for peer in PEERS]
            shown = [
                f"{cell['r2']:.4f}, {cell['queries']:,.0f}" if "r2" in cell else ""
                for cell in (own[name], *theirs)
            ]
            lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


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
    kept = Cells(RESULTS / "blackbox.json", PACKAGES, math.inf, where=("results", "cells"), wanted=every)
    kept.page = lambda: page(kept.found)
    for name, run in every.items():
        way, model, _ = name.split("/")
        if (arguments.only and model not in arguments.only) or (way != "own" and not arguments.peers):
            continue
        kept.measure(name, run)


if __name__ == "__main__":
    main()
