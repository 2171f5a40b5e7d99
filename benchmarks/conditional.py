"""Conditional values of correlated features against their definition: `python benchmarks/conditional.py`.

The truth comes from all coalitions by draws from the true conditional distribution. Beside fouriershap: 1,000 draws a
coalition from the right kind of distribution fitted to the same rows, as shapr does it; the imputers of shapiq and the
values of shap, if these are installed; interventional values, and path-dependent ones of trees. EC1 is the mean |error|
over the mean |value|, R^2 is over rows and features; CPU time on one thread, with the time of a row in calls of all
rows, without building the explainer.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from _cells import Cells
from _common import RESULTS
from _pages import markdown_table

PACKAGES = ("shap", "shapiq", "xgboost", "scikit-learn")
N, N_ROWS = 8, 1000
N_SCORED, N_EXPLAINED = 20, 50  # rows that all explain, and those that are timed
N_WIDE = 200  # rows of 30 features
DRAWS, PEER_DRAWS = 2000, 1000
GENERATIVE_ROWS = 5  # that shapiq's generative imputer explains, of the first seed
PEER_SEEDS = 2  # of shapiq's imputers
TIMED_DRAWS = (10, 100, 1000, 4000)
DEFAULT_TOLERANCE = 0.02
Function = Callable[[np.ndarray], np.ndarray]


def masks_of(n: int) -> np.ndarray:
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)


def smooth(Z: np.ndarray) -> np.ndarray:
    additive = 1 + 0.2 * Z[:, 0] - 0.8 * Z[:, 1] + 1.2 * np.cos(Z[:, 2]) + 0.8 * np.cos(Z[:, 3])
    return additive + 0.5 * np.tanh(2 * Z[:, 4]) * Z[:, 5] + 0.7 * Z[:, 6] * Z[:, 7]


def correlation(n: int, rho: float) -> np.ndarray:
    return rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def shapley(v: np.ndarray) -> np.ndarray:
    """Return values (n_rows, n_players) of games (n_coalitions, n_rows)."""
    from fouriershap._shapley.coalitions import coalition_weights
    from fouriershap._shapley.indices import find_index

    n = len(v).bit_length() - 1
    return (coalition_weights(masks_of(n), find_index("shapley")) @ v).T


def gaussian(C: np.ndarray) -> Any:
    """Return the distribution of rows with this covariance and mean 0: a `Mixture` of fouriershap."""
    from fouriershap._dependence.fit import fit_dependence

    d = len(C)
    blank = fit_dependence(
        "gaussian", np.random.default_rng(0).normal(size=(50, d)), np.zeros(d, bool), None, 0
    )
    coordinates = replace(blank.coordinates, center=np.zeros(d), scale=np.ones(d))
    return replace(blank, coordinates=coordinates, means=np.zeros((1, d)), covariances=C[None])


def true_mixture(kind: str, rho: float) -> Any:
    """Return the distribution of the rows: a `Mixture` of fouriershap with known parameters."""
    from fouriershap._dependence.fit import fit_dependence

    if kind not in ("clusters", "labels"):
        return gaussian(correlation(N, rho))
    rows = np.random.default_rng(0).normal(size=(50, N))
    is_label = np.zeros(N, dtype=bool)
    if kind == "labels":
        rows[:, 6:] = np.random.default_rng(0).integers(0, 3, (50, 2))
        is_label[6:] = True
    blank = fit_dependence("mixture", rows, is_label, None, 0)
    d = int((~is_label).sum())
    means = np.array([np.full(d, -1.2), np.full(d, 1.2)]) * np.where(np.arange(d) % 2, 1, -1)
    coordinates = replace(blank.coordinates, center=np.zeros(d), scale=np.ones(d))
    covariances = np.stack([correlation(d, rho), correlation(d, -rho)])
    shares = np.zeros((2, N, blank.shares.shape[2]))
    shares[:, :, 0] = 1.0
    if kind == "labels":
        for component, table in enumerate(([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])):
            shares[component, 6:, :3] = table
        shares[:, 0, :2] = [0.85, 0.15]  # missing values of a number
        shares[1, 0, :2] = [0.6, 0.4]
    return replace(
        blank,
        coordinates=coordinates,
        weights=np.full(2, 0.5),
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

    n = rows.shape[1]
    game = ConditionalGame(
        lambda codes: function(codes)[:, None], mixture, np.arange(n, dtype=np.int32), None, seed, 1
    )
    v = game.means(rows, masks_of(n), n_draws, 0).values[:, :, 0]
    v[0] = function(mixture.sample(200_000, np.random.default_rng(seed)).codes).mean()
    v[-1] = function(rows)
    return shapley(v)


def imputed(kind: str, function: Function, X: np.ndarray, rows: np.ndarray, n_draws: int) -> np.ndarray:
    """Return values of shapiq's imputers, from all coalitions."""
    from shapiq.imputer import GaussianCopulaImputer, GaussianImputer, GenerativeConditionalImputer

    imputer = {
        "gaussian": GaussianImputer,
        "copula": GaussianCopulaImputer,
        "generative": GenerativeConditionalImputer,
    }[kind](function, X, sample_size=n_draws, random_state=0)
    masks = masks_of(X.shape[1])
    v = np.stack([imputer.fit(row).value_function(masks) for row in rows], axis=1)
    v[-1] = function(rows)
    return shapley(v)


def scores(found: np.ndarray, want: np.ndarray) -> dict[str, float]:
    found, want = found[: len(want)], want[: len(found)]
    ec1 = np.abs(found - want).mean() / np.abs(want).mean()
    r2 = 1 - ((found - want) ** 2).sum() / ((want - want.mean(axis=0)) ** 2).sum()
    return {"ec1": float(ec1), "r2": float(r2)}


def timed(work: Callable[[], np.ndarray], n_rows: int, rounds: int = 1) -> tuple[np.ndarray, float]:
    """Return what it returns, and CPU seconds of a row."""
    best = np.inf
    for _ in range(rounds):
        begin = time.process_time()
        found = work()
        best = min(best, time.process_time() - begin)
    return found, best / n_rows


def make_model(kind: str, model: str, function: Function, X: np.ndarray, seed: int) -> tuple[Any, Function]:
    """Return what is explained, and its outputs."""
    if model == "smooth":
        return function, function
    y = function(X) + 0.3 * np.random.default_rng([seed, 3]).normal(size=len(X))
    if model == "linear":
        from sklearn.linear_model import LinearRegression

        line = LinearRegression().fit(X, y)
        return line, line.predict
    import xgboost

    import fouriershap as fs

    trees = xgboost.XGBRegressor(n_estimators=100, max_depth=4, learning_rate=0.1, n_jobs=1).fit(X, y)
    engine = fs.Explainer(trees, X, check=False).engine  # predicts quicker than XGBoost
    return trees, lambda codes: engine.predict(codes.astype(np.float32), 1)[:, 0]


def cell(kind: str, rho: float, model_name: str, seed: int, tolerance: float) -> dict[str, Any]:
    """Return EC1, R^2 and seconds of a row of every contender."""
    import fouriershap as fs
    from fouriershap._dependence.fit import MODELS, fit_dependence

    mixture = true_mixture(kind, rho)
    latent = mixture.sample(N_ROWS + N_EXPLAINED, np.random.default_rng([seed, 1])).codes
    rows = skew(latent) if kind == "skewed" else latent

    def function(codes: np.ndarray) -> np.ndarray:
        return smooth(np.nan_to_num(unskew(codes) if kind == "skewed" else codes, nan=-0.5))

    X, Q = rows[:N_ROWS], rows[N_ROWS:]
    model, predict = make_model(kind, model_name, function, X, seed)
    latent_predict: Function = (lambda codes: predict(skew(codes))) if kind == "skewed" else predict
    want = defined(latent_predict, mixture, latent[N_ROWS:][:N_SCORED], DRAWS, seed)
    found: dict[str, Any] = {}
    options: dict[str, Any] = {"n_jobs": 1}
    if model_name == "smooth":
        options |= {"progress": False} | ({"categorical": [6, 7]} if kind == "labels" else {})
    for name in ("auto", *MODELS):
        begin = time.process_time()
        explainer = fs.Explainer(
            model, X, feature_perturbation="conditional", dependence=name, tolerance=tolerance, **options
        )
        built = time.process_time() - begin
        values, row = timed(lambda e=explainer: e.shap_values(Q), len(Q), 3)  # type: ignore[misc]
        found[name] = scores(values, want) | {"row": row, "build": built}
        report = explainer.quality.dependence
        if name == "auto" and report is not None:
            found[name] |= {"chosen": report.name, "losses": report.losses, "independent": report.independent}
    some = Q[:N_SCORED]
    name = {"gaussian": "gaussian", "skewed": "copula"}.get(kind, "mixture")
    fitted = fit_dependence(name, X, mixture.is_label, None, 0)
    values, row = timed(partial(defined, predict, fitted, some, PEER_DRAWS, seed + 100), len(some))
    found[f"1,000 draws, {name}"] = scores(values, want) | {"row": row}
    if (
        seed < PEER_SEEDS and kind != "labels" and find_spec("shapiq")
    ):  # which has no imputer for missing values
        for name in ("gaussian", "copula"):
            values, row = timed(partial(imputed, name, predict, X, some, PEER_DRAWS), len(some))
            found[f"shapiq, {name}, 1,000 draws"] = scores(values, want) | {"row": row}
        if seed == 0 and kind != "gaussian":
            values, row = timed(
                partial(imputed, "generative", predict, X, Q[:GENERATIVE_ROWS], 100), GENERATIVE_ROWS
            )
            found["shapiq, generative, 100 draws"] = scores(values, want) | {"row": row}
    values = fs.Explainer(model, X, **options).shap_values(Q)
    found["interventional"] = scores(values, want)
    if find_spec("shap") and model_name != "smooth":
        import shap

        if model_name == "linear":
            theirs = shap.LinearExplainer(
                model, X, feature_perturbation="correlation_dependent", nsamples=1000
            )
            values, row = timed(lambda: theirs.shap_values(Q), len(Q))
            found["shap, correlation_dependent"] = scores(values, want) | {"row": row}
        else:
            found["shap, path-dependent"] = scores(shap.TreeExplainer(model).shap_values(Q), want)
    return found


def wide(seed: int, tolerance: float) -> dict[str, Any]:
    """30 features: five of them relevant, each correlated with four of 20 others; the means are known."""
    import fouriershap as fs
    from fouriershap._shapley.conditional.pairs import pair_coalitions

    n, rng = 30, np.random.default_rng([seed, 2])
    load = np.zeros((n, 5))
    for f in range(25):
        load[f, f % 5] = 0.8
    C = load @ load.T + np.diag(1 - (load**2).sum(axis=1))
    rows = rng.multivariate_normal(np.zeros(n), C, 5000 + N_WIDE)

    def function(Z: np.ndarray) -> np.ndarray:
        return Z[:, 0] * Z[:, 1] + Z[:, 2] ** 2 + Z[:, 3] - 0.5 * Z[:, 3] * Z[:, 4]

    X, Q = rows[:5000], rows[5000:]
    pairs = pair_coalitions(n, 8192, np.random.default_rng(99))
    chosen = pairs.first(8192)

    def means_under(C: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Return values from many coalitions, under a Gaussian."""

        def worth(mask: np.ndarray) -> np.ndarray:
            B = C[:, mask] @ np.linalg.inv(C[np.ix_(mask, mask)])
            left = C - B @ C[mask]
            expected = function(center + (Q - center)[:, mask] @ B.T)
            return expected + left[0, 1] + left[2, 2] - 0.5 * left[3, 4]

        found = np.array([worth(pairs.masks[p]) - worth(~pairs.masks[p]) for p in chosen])[:, :, None]
        mean = function(center[None])[0] + C[0, 1] + C[2, 2] - 0.5 * C[3, 4]
        total = (function(Q) - mean)[:, None]
        return pairs.solve(chosen, found, np.zeros_like(found), total)[0][:, :, 0]

    explainer = fs.Explainer(
        function,
        X,
        feature_perturbation="conditional",
        dependence="gaussian",
        tolerance=tolerance,
        progress=False,
        n_jobs=1,
    )
    want, fitted = means_under(C, np.zeros(n)), means_under(np.cov(X.T), X.mean(axis=0))
    values, row = timed(lambda: explainer.shap_values(Q), len(Q), 2)
    values, errors = explainer.shap_values(Q, errors=True)
    inside = np.abs(values - fitted) <= 1.96 * errors
    return {"gaussian": scores(values, want) | {"row": row, "coverage": float(inside.mean())}}


def explained(model: Any, X: np.ndarray, tolerance: float, **options: Any) -> Any:
    import fouriershap as fs

    options = {"n_jobs": 1} | options | ({"progress": False} if callable(model) else {})
    return fs.Explainer(
        model, X, feature_perturbation="conditional", dependence="gaussian", tolerance=tolerance, **options
    )


def game_of(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of ``n`` Gaussian features, and 100 more."""
    rows = gaussian(correlation(n, 0.6)).sample(N_ROWS + 100, np.random.default_rng([seed, 4])).codes
    return rows[:N_ROWS], rows[N_ROWS:]


def coverage(n: int, model_name: str, seed: int, tolerance: float) -> dict[str, Any]:
    """Return how often the values of a run with errors of an eighth lie within 1.96 errors, of both runs."""
    X, Q = game_of(n, seed)
    model = make_model("gaussian", model_name, smooth, X, seed)[0]
    values, errors = explained(model, X, tolerance).shap_values(Q, errors=True)
    want, left = explained(model, X, tolerance / 8, random_state=1).shap_values(Q, errors=True)
    inside = np.abs(values - want) <= 1.96 * np.sqrt(errors**2 + left**2)
    return {"gaussian": {"coverage": float(inside.mean())}}


def against_shapiq(n: int, tolerance: float) -> dict[str, Any]:
    """Return R^2 and times, under the Gaussian that all fit; of shapiq by draws and, for 14 features, coalitions."""
    import shapiq
    from shapiq.imputer import GaussianImputer

    X, Q = game_of(n, 0)
    explainer = explained(smooth, X, tolerance)
    want = explained(smooth, X, tolerance / 16, random_state=1).shap_values(Q)
    values, row = timed(lambda: explainer.shap_values(Q), len(Q), 3)
    found: dict[str, Any] = {"gaussian": scores(values, want) | {"row": row}}
    some = Q[: 10 if n <= 8 else 4]
    budgets = (1 << n,) if n <= 8 else (256, 1024, 4096)
    for budget in budgets:
        for draws in TIMED_DRAWS if n <= 8 else (30, 300):

            def explain(budget: int = budget, draws: int = draws) -> np.ndarray:
                imputer = GaussianImputer(smooth, X, sample_size=draws, random_state=0)
                if budget == 1 << n:
                    return imputed("gaussian", smooth, X, some, draws)
                out = []
                for r in some:
                    by_size = shapiq.KernelSHAP(n=n, random_state=0)
                    out.append(by_size.approximate(budget, imputer.fit(r).value_function))
                return np.array([each.get_n_order_values(1) for each in out])

            values, row = timed(explain, len(some))
            found[f"shapiq, {budget:,} coalitions, {draws:,} draws"] = scores(values, want) | {"row": row}
    return found


def xai_target(kind: str, Z: np.ndarray) -> np.ndarray:
    """Return the targets of xai-bench's data sets."""
    if kind == "linear":
        return Z @ np.arange(4.0, -1, -1)
    if kind == "additive":
        return np.sin(Z[:, 0]) + np.abs(Z[:, 1]) + Z[:, 2] ** 2 + np.exp(-Z[:, 3])
    second = np.select(
        [Z[:, 1] < -0.5, Z[:, 1] >= 0.5, Z[:, 1] >= 0], [-2.0, 2.0, 1.0]
    )  # 0 below 0, as there
    third = np.trunc(2 * np.cos(np.pi * Z[:, 2]))
    return np.where(Z[:, 0] < 0, -1.0, 1.0) + second + np.where(third == 0, 1, third)


def xai_bench(kind: str, model_name: str, tolerance: float) -> dict[str, Any]:
    """Return errors, and the mean correlation of rows, against the true conditional values of xai-bench."""
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.tree import DecisionTreeRegressor

    import fouriershap as fs

    mixture, rng = gaussian(np.full((5, 5), 0.5) + 0.5 * np.eye(5)), np.random.default_rng(7)
    X, Q = np.split(mixture.sample(1100, rng).codes, [1000])
    y = xai_target(kind, X) + 0.01 * rng.normal(size=1000)
    chosen = {
        "linear": LinearRegression(),
        "tree": DecisionTreeRegressor(random_state=0),
        "network": MLPRegressor(max_iter=1000, random_state=0),
    }
    model = chosen[model_name].fit(X, (y - y.mean()) / y.std())
    want = defined(model.predict, mixture, Q, 20_000, 0)
    found = {}
    explainer = explained(model, X, tolerance)
    path = {"path-dependent": {"feature_perturbation": "tree_path_dependent"}} if model_name == "tree" else {}
    others = {"interventional": {"n_jobs": 1}} | path
    explainers = {"gaussian": explainer} | {
        name: fs.Explainer(model, *(() if "path" in name else (X,)), **each) for name, each in others.items()
    }
    for name, each in explainers.items():
        values = each.shap_values(Q)
        related = [np.corrcoef(a, b)[0, 1] for a, b in zip(values, want, strict=True)]
        mse = float(((values - want) ** 2).mean())
        found[name] = scores(values, want) | {"correlation": float(np.mean(related)), "mse": mse}
    return found


def all_cells(seeds: int, tolerance: float) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the work of each cell, by name."""
    kinds = [
        *(("gaussian", rho, model) for model in ("smooth", "XGBoost") for rho in (0.3, 0.6, 0.9)),
        ("gaussian", 0.6, "linear"),
        *((kind, 0.6, model) for kind in ("skewed", "clusters", "labels") for model in ("smooth", "XGBoost")),
    ]
    work: dict[str, Callable[[], dict[str, Any]]] = {}
    for seed in range(seeds):
        for kind, rho, model in kinds:
            work[f"{kind} {rho:g}, {model}; {seed}"] = partial(cell, kind, rho, model, seed, tolerance)
        work[f"30 features; {seed}"] = partial(wide, seed, DEFAULT_TOLERANCE)
        for n, model in ((8, "smooth"), (8, "XGBoost"), (14, "smooth"), (14, "XGBoost")):
            name = f"coverage, {n} features, {model}; {seed}"
            work[name] = partial(coverage, n, model, seed, DEFAULT_TOLERANCE)
    if find_spec("shapiq"):
        for n in (8, 14):
            work[f"time, {n} features; 0"] = partial(against_shapiq, n, DEFAULT_TOLERANCE)
    for kind in ("linear", "additive", "piecewise"):
        for model in ("linear", "tree", "network"):
            work[f"xai-bench {kind}, {model}; 0"] = partial(xai_bench, kind, model, tolerance)
    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--only", nargs="*", default=[""], help="cells whose names begin so")
    parser.add_argument("--again", action="store_true", help="measure these cells again")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    work = all_cells(options.seeds, options.tolerance)
    cells = Cells(RESULTS / "conditional.json", PACKAGES, wanted=work)
    cells.beside = {"tolerance": options.tolerance}
    cells.page = lambda: page(cells)
    for name, make in work.items():
        if name.startswith(tuple(options.only)):
            found = cells.measure(name, make, again=options.again)
            ours = {
                who: round(each.get("ec1", 0), 4) for who, each in found.items() if isinstance(each, dict)
            }
            print(name, ours, flush=True)
    cells.write()


def page(cells: Cells) -> str:
    """Medians over seeds, a table for each kind of cell."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for name, found in cells.found.items():
        runs.setdefault(name.rpartition(";")[0], []).append(
            {who: each for who, each in found.items() if isinstance(each, dict)}
        )
    text = (
        "# Conditional values of correlated features\n\n"
        f"Medians over seeds; {N_ROWS:,} rows of data (5,000 for 30 features), tolerance "
        f"{cells.beside['tolerance']:g} in the first table, {DEFAULT_TOLERANCE:g}, the default, for 30 features, "
        "coverage and times. EC1: mean |error| over mean |value|; ms: CPU time of a row on one thread.\n"
        f"{cells.told()}\n\n"
    )
    of_means = [
        name for name in runs if name.split(" ")[0] in ("gaussian", "skewed", "clusters", "labels", "30")
    ]
    text += _table(runs, of_means, ("ec1", "r2", "row", "chosen")) + "\n\n"
    text += "## Coverage of ± 1.96 standard errors\n\nSmallest and largest of the seeds.\n\n"
    lines = []
    for name in [*(each for each in runs if each.startswith("coverage")), "30 features"]:
        rates = [run["gaussian"]["coverage"] for run in runs.get(name, [])]
        if rates:
            lines.append((name.removeprefix("coverage, "), f"{min(rates):.3f}", f"{max(rates):.3f}"))
    text += markdown_table(("values", "least", "most"), lines) + "\n\n"
    text += (
        "## Time at equal R²\n\nA smooth function; R² under the Gaussian that all fit to the rows, so that draws and "
        "coalitions are its only errors.\n\n"
    )
    text += _table(runs, [name for name in runs if name.startswith("time")], ("r2", "row")) + "\n\n"
    text += (
        "## xai-bench\n\nIts Gaussian data sets of five features with correlations of .5, and its models; the true "
        "conditional values from 20,000 draws a coalition. Correlation: mean over rows, its `shapley_corr`.\n\n"
    )
    shown = [name for name in runs if name.startswith("xai-bench")]
    return text + _table(runs, shown, ("ec1", "correlation", "mse")) + "\n"


def _table(runs: dict[str, list[dict[str, Any]]], names: list[str], keys: tuple[str, ...]) -> str:
    headers = {"ec1": "EC1", "r2": "R²", "row": "ms", "mse": "MSE"}
    lines = []
    for name in names:
        for who in runs[name][0]:
            found = [run[who] for run in runs[name] if who in run]
            lines.append((name, who, *(_shown(key, found) for key in keys)))
    return markdown_table(("data, model", "values", *(headers.get(key, key) for key in keys)), lines)


def _shown(key: str, found: list[dict[str, Any]]) -> str:
    if key == "chosen":
        return ", ".join(sorted({each[key] for each in found if key in each}))
    values = [each[key] for each in found if key in each]
    if not values:
        return ""
    middle = float(np.median(values))
    return (
        f"{middle * 1e3:.3g}"
        if key == "row"
        else f"{middle:.4f}"
        if key in ("r2", "correlation")
        else f"{middle:.3g}"
    )


if __name__ == "__main__":
    main()
