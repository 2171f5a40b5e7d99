"""Models that are sums of products beside LinearExplainer and KernelExplainer of shap, and KernelSHAP of shapiq.

1,000 rows, a background of 100. Every contender is built anew in each round: times are CPU seconds from the constructor
on, on one thread. KernelExplainer, with its default number of samples, and shapiq's KernelSHAP, with 2,048, explain a
few rows, and the time is multiplied. Where players are few they have enough samples for every coalition, so that values
must agree; elsewhere R^2 says how near they come. LinearExplainer must agree where it applies: with raw scores of
linear models.

    python benchmarks/linear.py             # what is missing, or was measured beside other work
    python benchmarks/linear.py SVC Ridge   # of what is there only models whose names hold one of these
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import fouriershap as fs
from _cells import Cells
from _common import (
    RESULTS,
    print_machine,
    print_table,
    seconds,
    time_interleaved,
)
from _pages import markdown_table
from peers import shapiq_peers

N_ROWS, N_BACKGROUND, N_TRAINING = 1000, 100, 1000
N_FEW = 4  # rows of what samples
MOST_SECONDS = 15.0  # of the rounds of a cell
N_ENUMERATED = 11  # players whose coalitions it has samples for
PACKAGES = ("scikit-learn", "shap", "shapiq", "statsmodels", "xgboost")
LINEAR, KERNEL, KERNEL_IQ = "LinearExplainer", "KernelExplainer", "shapiq KernelSHAP"
HEADER = (
    "model, features",
    "strategy",
    "fouriershap",
    LINEAR,
    KERNEL,
    "x",
    "its R²",
    KERNEL_IQ,
    "x",
    "its R²",
)
TOLERANCE = 1e-7  # of LinearExplainer
KERNEL_TOLERANCE = 1e-5  # of regressions with weights of 1e6


@dataclass(frozen=True)
class Cell:
    """A fitted model, what is explained, and whether LinearExplainer explains it."""

    name: str
    model: Any
    output: str
    ask: Callable[[Any], Any]
    n_features: int
    linear: bool = False


def data(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_TRAINING + N_BACKGROUND + N_ROWS, n_features))
    return X, X[:, :4].sum(axis=1) + X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X))


def cells() -> list[Cell]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.svm import SVR

    made = []
    for n in (10, 30, 200):
        X, y = (part[:N_TRAINING] for part in data(n))
        ordinary, logistic = LinearRegression().fit(X, y), LogisticRegression().fit(X, y > 0)
        made.append(Cell(f"linear regression, {n}", ordinary, "raw", ordinary.predict, n, linear=True))
        if n == 200:
            continue
        made.append(
            Cell(
                f"logistic regression, score, {n}",
                logistic,
                "raw",
                logistic.decision_function,
                n,
                linear=True,
            )
        )
        chance = Cell(f"logistic regression, probability, {n}", logistic, "probability", _second(logistic), n)
        poisson = PoissonRegressor().fit(X, np.exp(y / 4))
        machine = SVR().fit(X[:500], y[:500])
        made += [chance, Cell(f"Poisson regression, mean, {n}", poisson, "response", poisson.predict, n)]
        made.append(Cell(f"SVR, {len(machine.support_)} vectors, {n}", machine, "raw", machine.predict, n))
    X, y = (part[:N_TRAINING] for part in data(10))
    process = GaussianProcessRegressor(RBF(3.0) + WhiteKernel(0.1), optimizer=None).fit(X[:300], y[:300])
    made.append(Cell("Gaussian process, 300 points, 10", process, "raw", process.predict, 10))
    for units in ("tanh", "logistic"):
        network = MLPRegressor(hidden_layer_sizes=(16,), activation=units, random_state=0, max_iter=300)
        network.fit(X, y)
        made.append(Cell(f"network, 16 {units} units, 10", network, "raw", network.predict, 10))
    return made + more_kinds(X, y)


def more_kinds(X: np.ndarray, y: np.ndarray) -> list[Cell]:
    """Other libraries, other kernels, a Pipeline."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    from statsmodels.api import OLS
    from xgboost import XGBRegressor

    boosted = XGBRegressor(booster="gblinear", n_estimators=50).fit(X, y)
    results = OLS(y, X).fit()
    ridge = KernelRidge(kernel="rbf", gamma=0.05).fit(X[:300], y[:300])
    machine = SVC().fit(X[:500], y[:500] > 0)
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y > 0)
    name = f"SVC, decision function, {len(machine.support_)} vectors, 10"
    return [
        Cell("XGBoost gblinear, 10", boosted, "raw", boosted.predict, 10),
        Cell("statsmodels OLS, 10", results, "raw", results.predict, 10),
        Cell("scaled logistic regression, score, 10", scaled, "raw", scaled.decision_function, 10),
        Cell("KernelRidge, 300 points, 10", ridge, "raw", ridge.predict, 10),
        Cell(name, machine, "raw", machine.decision_function, 10),
    ]


def _second(model: Any) -> Callable[[Any], Any]:
    return lambda rows: model.predict_proba(rows)[:, 1]


def measure(cell: Cell) -> dict[str, Any]:
    import shap

    X, _ = data(cell.n_features)
    background, rows = X[N_TRAINING : N_TRAINING + N_BACKGROUND], X[N_TRAINING + N_BACKGROUND :]
    masker = shap.maskers.Independent(background, max_samples=N_BACKGROUND)

    def ours() -> np.ndarray:
        return fs.Explainer(cell.model, background, output=cell.output, n_jobs=1).shap_values(rows)

    def by_kernel() -> np.ndarray:
        explainer = shap.KernelExplainer(cell.ask, background)
        return np.asarray(explainer.shap_values(rows[:N_FEW], silent=True, l1_reg=0))

    def by_linear() -> np.ndarray:
        return np.asarray(shap.LinearExplainer(cell.model, masker).shap_values(rows))

    def by_shapiq() -> np.ndarray:
        return shapiq_peers.shapiq(cell.ask, background, seed=0)(rows[:N_FEW])

    values = ours()
    sampling = {KERNEL: by_kernel, KERNEL_IQ: by_shapiq}
    found: dict[str, Any] = {"r2": {}}
    for name, work in sampling.items():
        sampled = work()
        found["r2"][name] = _r2(values[:N_FEW], sampled)
        if cell.n_features <= N_ENUMERATED:
            _agree(cell.name, name, values[:N_FEW], sampled, KERNEL_TOLERANCE)
    contenders: dict[str, Callable[[], Any]] = {"fouriershap": ours, **sampling}
    if cell.linear:
        _agree(cell.name, LINEAR, values, by_linear(), TOLERANCE)
        contenders[LINEAR] = by_linear
    timed = time_interleaved(contenders, rounds=3, most_seconds=MOST_SECONDS)
    found["cpu"] = {name: timing.cpu_seconds for name, timing in timed.items()}
    for name in sampling:
        found["cpu"][name] *= N_ROWS / N_FEW
    found["plan"] = fs.Explainer(cell.model, background, output=cell.output).plan().strategy
    return found


def _r2(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(1 - ((ours - theirs) ** 2).sum() / ((ours - ours.mean()) ** 2).sum())


def _agree(name: str, other: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    gap = float(np.abs(ours - theirs).max())
    if gap > tolerance * max(1.0, float(np.abs(ours).max())):
        raise SystemExit(f"{name}: {other} differs by {gap:.2g}.")


def lines(results: dict[str, Any]) -> list[tuple[str, ...]]:
    out = []
    for name, found in results.items():
        cpu = found["cpu"]
        line = [
            name,
            found["plan"],
            seconds(cpu["fouriershap"]),
            seconds(cpu[LINEAR]) if LINEAR in cpu else "",
        ]
        for other, r2 in found["r2"].items():
            line += [f"{cpu[other]:,.0f} s", f"{cpu[other] / cpu['fouriershap']:,.0f}x", f"{r2:.4f}"]
        out.append(tuple(line))
    return out


def main() -> None:
    warnings.simplefilter("ignore")
    print_machine(PACKAGES)
    every = cells()
    kept = Cells(RESULTS / "linear.json", PACKAGES, where=("results",), wanted=[cell.name for cell in every])
    kept.found = {name: cell for name, cell in kept.found.items() if "r2" in cell}  # of today's form
    kept.page = lambda: page(kept)
    results = {}
    for cell in every:
        left_alone = sys.argv[1:] and not any(part in cell.name for part in sys.argv[1:])
        if left_alone and cell.name in kept.found:
            results[cell.name] = kept.found[cell.name]
            continue
        with threadpool_limits(1):
            results[cell.name] = kept.measure(cell.name, lambda cell=cell: measure(cell))
        print(cell.name, results[cell.name]["cpu"], flush=True)
    print_table(HEADER, lines(results))


def page(kept: Cells) -> str:
    title = (
        f"# Sums of products\n\n{N_ROWS:,} rows, background {N_BACKGROUND}; CPU time on one thread, construction "
        f"included, minimum of several rounds. `x`: what is before it (extrapolated from {N_FEW} rows) over ours. "
        f"Values of LinearExplainer agree to {TOLERANCE:g}; so do, to {KERNEL_TOLERANCE:g}, those that are sampled "
        f"with 10 features, where there are samples for all coalitions.\n{kept.told()}\n"
    )
    return f"{title}\n{markdown_table(HEADER, lines(kept.found))}\n"


if __name__ == "__main__":
    main()
