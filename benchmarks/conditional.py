"""Conditional values of correlated features against their definition: `python benchmarks/conditional.py`.

The truth comes from all coalitions by draws from the true conditional distribution. Beside fouriershap: 1,000 draws a
coalition from a Gaussian fitted to the same rows, as shapr and shapiq do it; interventional values, and path-dependent
ones of trees. EC1 is the mean |error| over the mean |value|, R^2 is over rows and features; CPU time on one thread,
with the time of a row in calls of all rows, without building the explainer.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from _common import RESULTS, commit, describe_machine, print_table

N, N_ROWS, N_EXPLAINED = 8, 1000, 20
DRAWS, PEER_DRAWS = 2000, 1000
MASKS = (np.arange(1 << N)[:, None] >> np.arange(N) & 1).astype(bool)
Function = Callable[[np.ndarray], np.ndarray]


def smooth(Z: np.ndarray) -> np.ndarray:
    additive = 1 + 0.2 * Z[:, 0] - 0.8 * Z[:, 1] + 1.2 * np.cos(Z[:, 2]) + 0.8 * np.cos(Z[:, 3])
    return additive + 0.5 * np.tanh(2 * Z[:, 4]) * Z[:, 5] + 0.7 * Z[:, 6] * Z[:, 7]


def correlation(n: int, rho: float) -> np.ndarray:
    return rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def weights() -> np.ndarray:
    from fouriershap._shapley.coalitions import coalition_weights
    from fouriershap._shapley.indices import find_index

    return coalition_weights(MASKS, find_index("shapley"))


def true_mixture(kind: str, rho: float) -> Any:
    """Return the distribution of the rows: a `Mixture` of fouriershap with known parameters."""
    from fouriershap._dependence.fit import fit_dependence

    rows = np.random.default_rng(0).normal(size=(50, N))
    is_label = np.zeros(N, dtype=bool)
    if kind == "labels":
        rows[:, 6:] = np.random.default_rng(0).integers(0, 3, (50, 2))
        is_label[6:] = True
    blank = fit_dependence(
        "mixture" if kind in ("clusters", "labels") else "gaussian", rows, is_label, None, 0
    )
    d = int((~is_label).sum())
    k = 2 if kind in ("clusters", "labels") else 1
    means = np.zeros((k, d))
    if k == 2:
        means = np.array([np.full(d, -1.2), np.full(d, 1.2)]) * np.where(np.arange(d) % 2, 1, -1)
    coordinates = replace(blank.coordinates, center=np.zeros(d), scale=np.ones(d))
    covariances = np.stack([correlation(d, rho), correlation(d, -rho)][:k])
    shares = np.zeros((k, N, blank.shares.shape[2]))
    shares[:, :, 0] = 1.0
    if kind == "labels":
        for component, table in enumerate(([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])):
            shares[component, 6:, :3] = table
        shares[:, 0, :2] = [0.85, 0.15]  # missing values of a number
        shares[1, 0, :2] = [0.6, 0.4]
    return replace(
        blank,
        coordinates=coordinates,
        weights=np.full(k, 1 / k),
        means=means,
        covariances=covariances,
        shares=shares,
    )


def skew(rows: np.ndarray) -> np.ndarray:
    return np.exp(1.2 * rows)


def unskew(rows: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(rows, 1e-12)) / 1.2


def defined(function: Function, mixture: Any, rows: np.ndarray, n_draws: int, seed: int) -> np.ndarray:
    """Return values (n_rows, n_features) by the definition, from draws of every coalition."""
    from fouriershap._shapley.conditional.game import ConditionalGame

    game = ConditionalGame(
        lambda codes: function(codes)[:, None], mixture, np.arange(N, dtype=np.int32), None, seed, 1
    )
    v = game.means(rows, MASKS, n_draws, 0).values[:, :, 0]
    v[0] = function(mixture.sample(200_000, np.random.default_rng(seed)).codes).mean()
    v[-1] = function(rows)
    return (weights() @ v).T


def scores(found: np.ndarray, want: np.ndarray) -> tuple[float, float]:
    ec1 = np.abs(found - want).mean() / np.abs(want).mean()
    return float(ec1), float(1 - ((found - want) ** 2).sum() / ((want - want.mean(axis=0)) ** 2).sum())


def cell(kind: str, rho: float, of_trees: bool, seed: int, tolerance: float) -> dict[str, Any]:
    """Return EC1, R^2 and seconds of a row of every contender."""
    import xgboost

    import fouriershap as fs
    from fouriershap._dependence.fit import fit_dependence

    mixture = true_mixture("gaussian" if kind == "skewed" else kind, rho)
    rng = np.random.default_rng([seed, 1])
    latent = mixture.sample(N_ROWS + N_EXPLAINED, rng).codes
    rows = skew(latent) if kind == "skewed" else latent

    def function(codes: np.ndarray) -> np.ndarray:
        latent = unskew(codes) if kind == "skewed" else codes
        return smooth(np.nan_to_num(latent, nan=-0.5))

    X, Q = rows[:N_ROWS], rows[N_ROWS:]
    model: Any = function
    predict: Function = function
    if of_trees:
        y = function(X) + 0.3 * rng.normal(size=N_ROWS)
        model = xgboost.XGBRegressor(n_estimators=100, max_depth=4, learning_rate=0.1, n_jobs=1).fit(X, y)
        engine = fs.Explainer(model, X, check=False).engine
        predict = lambda codes: engine.predict(codes.astype(np.float32), 1)[:, 0]  # noqa: E731
    latent_predict: Function = (lambda codes: predict(skew(codes))) if kind == "skewed" else predict
    want = defined(latent_predict, mixture, latent[N_ROWS:], DRAWS, seed)
    found: dict[str, Any] = {}
    is_label = mixture.is_label
    options: dict[str, Any] = {"n_jobs": 1}
    if kind == "labels" and not of_trees:
        options["categorical"] = [6, 7]
    if not of_trees:
        options["progress"] = False
    names = ("auto", "gaussian", "copula", "mixture") if kind != "gaussian" else ("gaussian", "auto")
    for name in names:
        begin = time.process_time()
        explainer = fs.Explainer(
            model, X, feature_perturbation="conditional", dependence=name, tolerance=tolerance, **options
        )
        built = time.process_time() - begin
        best = np.inf
        for _ in range(2):
            begin = time.process_time()
            values, errors = explainer.shap_values(Q, errors=True)
            best = min(best, time.process_time() - begin)
        ec1, r2 = scores(values, want)
        found[name] = {
            "ec1": ec1,
            "r2": r2,
            "row": best / len(Q),
            "build": built,
            "error": float(errors.mean()),
        }
        if name == "auto":
            report = explainer.quality.dependence
            assert report is not None
            found[name] |= {"chosen": report.name, "losses": report.losses, "independent": report.independent}
    for name in ("gaussian", "copula"):
        begin = time.process_time()
        values = defined(predict, fit_dependence(name, X, is_label, None, 0), Q, PEER_DRAWS, seed + 100)
        spent = time.process_time() - begin
        ec1, r2 = scores(values, want)
        found[f"1,000 draws, {name}"] = {"ec1": ec1, "r2": r2, "row": spent / len(Q)}
    values = fs.Explainer(model, X, **options).shap_values(Q)
    found["interventional"] = dict(zip(("ec1", "r2"), scores(values, want), strict=True))
    if of_trees:
        by_path = fs.TreeExplainer(model, feature_perturbation="tree_path_dependent").shap_values(Q)
        found["path-dependent"] = dict(zip(("ec1", "r2"), scores(by_path, want), strict=True))
    return found


def wide(seed: int) -> dict[str, Any]:
    """30 features: five of them relevant, each correlated with four of 20 others; the means are known."""
    import fouriershap as fs
    from fouriershap._shapley.conditional.pairs import pair_coalitions

    n, rng = 30, np.random.default_rng([seed, 2])
    load = np.zeros((n, 5))
    for f in range(25):
        load[f, f % 5] = 0.8
    C = load @ load.T + np.diag(1 - (load**2).sum(axis=1))
    rows = rng.multivariate_normal(np.zeros(n), C, 5000 + N_EXPLAINED)

    def function(Z: np.ndarray) -> np.ndarray:
        return Z[:, 0] * Z[:, 1] + Z[:, 2] ** 2 + Z[:, 3] - 0.5 * Z[:, 3] * Z[:, 4]

    X, Q = rows[:5000], rows[5000:]
    pairs = pair_coalitions(n, 8192, np.random.default_rng(99))
    chosen = pairs.first(8192)

    def worth(mask: np.ndarray) -> np.ndarray:
        B = C[:, mask] @ np.linalg.inv(C[np.ix_(mask, mask)])
        left = C - B @ C[mask]
        return function(Q[:, mask] @ B.T) + left[0, 1] + left[2, 2] - 0.5 * left[3, 4]

    differences = np.array([worth(pairs.masks[p]) - worth(~pairs.masks[p]) for p in chosen])[:, :, None]
    total = (function(Q) - 1.0 - C[0, 1] + 0.5 * C[3, 4])[:, None]
    want, spread = pairs.solve(chosen, differences, np.zeros_like(differences), total)
    out: dict[str, Any] = {"error of the truth": float(spread.mean() / np.abs(want).mean())}
    explainer = fs.Explainer(
        function, X, feature_perturbation="conditional", dependence="gaussian", progress=False
    )
    begin = time.process_time()
    values, errors = explainer.shap_values(Q, errors=True)
    spent = time.process_time() - begin
    ec1, r2 = scores(values, want[:, :, 0])
    inside = np.abs(values - want[:, :, 0]) <= 1.96 * errors
    return out | {"ec1": ec1, "r2": r2, "row": spent / len(Q), "coverage": float(inside.mean())}


CELLS = [
    *(("gaussian", rho, trees) for trees in (False, True) for rho in (0.3, 0.6, 0.9)),
    *((kind, 0.6, trees) for kind in ("skewed", "clusters", "labels") for trees in (False, True)),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tolerance", type=float, default=0.01)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    path = RESULTS / "conditional.json"
    about = {"machine": describe_machine(("xgboost",)), "commit": commit(), "seeds": args.seeds}
    for seed in range(args.seeds):
        results.setdefault("wide", []).append(wide(seed))
        for kind, rho, of_trees in CELLS:
            name = f"{kind} {rho:g}, {'XGBoost' if of_trees else 'smooth'}"
            results.setdefault(name, []).append(cell(kind, rho, of_trees, seed, args.tolerance))
            path.write_text(json.dumps(about | {"tolerance": args.tolerance, "results": results}, indent=1))
            print(name, seed, flush=True)
    table(results)


def table(results: dict[str, Any]) -> None:
    """Print the medians over seeds."""
    lines = []
    for name, runs in results.items():
        if name == "wide":
            shown = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
            print(f"30 features: {shown}\n")
            continue
        for who in runs[0]:
            ec1, r2, row = (
                np.median([run[who].get(key, np.nan) for run in runs]) for key in ("ec1", "r2", "row")
            )
            chosen = ", ".join(sorted({run[who].get("chosen", "") for run in runs}))
            lines.append(
                (name, who, f"{ec1:.3f}", f"{r2:.4f}", "" if row != row else f"{row * 1e3:.2f} ms", chosen)
            )
    print_table(("data, model", "values", "EC1", "R2", "a row", "chosen"), lines)


if __name__ == "__main__":
    main()
