"""Cost as work grows: rows, background, trees, depth, features, outputs, one at a time, beside every peer.

    python benchmarks/growth.py                     # goes on where it stopped
    python benchmarks/growth.py --only background   # some axes
    python benchmarks/growth.py --draw              # page and pictures alone

CPU seconds on one thread, from the model to the values. Cells are kept in results/growth.json; those that were measured
beside other work are measured again.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import fouriershap as fs
from _cells import MOST_LOAD, Cells
from _common import RESULTS, seconds
from _pages import markdown_table
from deep_cells import models
from growth_cells.draw import draw
from peers import trees as peers

PACKAGES = ("shap", "shapiq", "woodelf-explainer", "xgboost", "lightgbm", "scikit-learn")
US = "fouriershap"
PEERS = {"shap": peers.shap, "shapiq": peers.shapiq, "woodelf": peers.woodelf}
MOST_SECONDS, ROUNDS = 20.0, 3  # a contender leaves an axis when its next cell would take longer
FITTED = 4  # cells
TOLERANCE = 1e-4  # of the largest value
TENS = (1, 10, 100, 1_000, 10_000, 100_000)
# What is the same on every axis but its own.
USUAL = {"rows": 1_000, "background": 1_000, "trees": 100, "depth": 6, "features": 30, "outputs": 1}
AXES: dict[str, tuple[int, ...]] = {
    "background": TENS,
    "rows": TENS,
    "depth": (6, 9, 12, 15, 18, 21),
    "trees": (1, 10, 100, 1_000),
    "features": (1, 3, 10, 30, 100, 300, 1_000),
    "outputs": (1, 3, 10, 30),
}
# Each picture shows some axes; the first is the README's.
PICTURES = {
    "growth.png": ("background", "depth"),
    "growth_more.png": ("rows", "trees", "features", "outputs"),
}
ONE_OUTPUT = ("shapiq", "woodelf")  # these explain one class at a time
WHAT = {
    "depth": "LightGBM, 100 trees of up to 2,024 leaves, 60 features, 100 rows, 100 background rows",
} | dict.fromkeys(
    ("background", "rows", "trees", "features", "outputs"),
    "XGBoost, 100 trees of depth 6, 30 features, 1,000 rows, 1,000 background rows",
)


@cache
def _fitted(trees: int, depth: int, features: int, outputs: int) -> Any:
    import xgboost

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, features)).astype(np.float32)
    weights = rng.standard_normal((min(features, 12), 1))
    y = np.tanh(X[:, : len(weights)]) @ weights + (X[:, :1] * X[:, min(1, features - 1)][:, None])
    kind = xgboost.XGBRegressor if outputs == 1 else xgboost.XGBClassifier
    model = kind(n_estimators=trees, max_depth=depth, learning_rate=0.1, random_state=0, n_jobs=1)
    if outputs == 1:
        return model.fit(X, y[:, 0])
    return model.fit(X, y[:, 0].argsort().argsort() * outputs // len(X))  # classes of equal size


def case(axis: str, value: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Model, rows and background of a cell."""
    if axis == "depth":
        return models.model(f"lightgbm, deep:100:{value}"), models.rows(100), models.background(100)
    size = USUAL | {axis: value}
    rng = np.random.default_rng(1)
    X, background = (
        rng.standard_normal((size[name], size["features"])).astype(np.float32)
        for name in ("rows", "background")
    )
    return _fitted(*(size[name] for name in ("trees", "depth", "features", "outputs"))), X, background


def timed(work: Callable[[], np.ndarray], most: int = ROUNDS) -> tuple[float, np.ndarray]:
    """The least CPU seconds of a few runs, fewer where they are long, and the values."""
    best = math.inf
    for _ in range(most):
        begin = time.process_time()
        values = work()
        best = min(best, time.process_time() - begin)
        if best > 2.0:
            break
    return best, values


def measure(axis: str, value: int, contenders: list[str]) -> dict[str, Any]:
    """CPU seconds of each contender, its values compared with ours."""
    model, X, background = case(axis, value)
    took, ours = timed(lambda: fs.TreeExplainer(model, background, n_jobs=1).shap_values(X))
    cell: dict[str, Any] = {US: took}
    for name in contenders:
        try:
            took, theirs = timed(PEERS[name](model, X, background))
        except Exception as error:  # noqa: BLE001, peers fail in ways of their own
            cell[name] = f"fails: {type(error).__name__}"
            continue
        gap = np.abs(np.asarray(theirs).reshape(ours.shape) - ours).max(axis=tuple(range(1, ours.ndim)))
        cell |= {name: took, f"{name} differs": float(gap.max() / np.abs(ours).max())}
        cell[f"{name} rows that differ"] = int((gap > TOLERANCE * np.abs(ours).max()).sum())
    return cell


def run_axis(cells: Cells, axis: str, again: bool) -> None:
    """Value by value, upwards; peers leave when they would take too long."""
    left = [name for name in PEERS if find_spec(name) is not None]
    if axis == "outputs":
        left = [name for name in left if name not in ONE_OUTPUT]
    expected: dict[str, float] = {}
    before: dict[str, float] = {}
    values = AXES[axis]
    for k, value in enumerate(values):
        left = [name for name in left if expected.get(name, 0.0) <= MOST_SECONDS]
        print(f"{axis} {value:,}: {US}, {', '.join(left) or 'nobody else'} ...", flush=True)
        cell = cells.measure(
            f"{axis}/{value}", lambda value=value, left=left: measure(axis, value, left), again=again
        )
        left = [name for name in left if isinstance(cell.get(name), float)]
        growth = values[k + 1] / value if k + 1 < len(values) else 1.0
        # In proportion, or as it has grown last, where that was less; nobody leaves by the constant cost of one cell.
        grown = {name: cell[name] / before.get(name, cell[name]) for name in left}
        expected = {name: cell[name] * min(growth, grown[name]) for name in left}
        before = {name: cell[name] for name in left}


def series(cells: Cells, axis: str) -> dict[str, list[tuple[int, float]]]:
    """By contender: (value, seconds) of the cells that it finished."""
    found: dict[str, list[tuple[int, float]]] = {}
    for value in AXES[axis]:
        cell = cells.found.get(f"{axis}/{value}", {})
        for name in (US, *PEERS):
            if isinstance(cell.get(name), float):
                found.setdefault(name, []).append((value, cell[name]))
    return found


def exponent(points: list[tuple[int, float]], most: int) -> str:
    """The slope of log seconds over log size, of the last cells: 1 is linear, 0 costs nothing."""
    if len(points) < 2:
        return ""
    size, took = np.log(np.array(points[-most:])).T
    return f"{np.polyfit(size, took, 1)[0]:.2f}"


def page(cells: Cells) -> str:
    """The results for people."""
    text = ["# Cost as work grows", "", cells.told(), ""]
    text += [
        "CPU seconds on one thread, from the model to the SHAP values, reading the model included. Values were "
        f"compared first: differences beyond {TOLERANCE:g} of the largest value are counted. A peer leaves an axis "
        f"when its next cell would take more than {MOST_SECONDS:.0f} s. {peers.ABOUT_SHAPIQ} Exponents are slopes "
        f"of log seconds over log size: of the last {FITTED} cells, and of the last two.",
        "",
        "![Cost against background size and depth](growth.png)",
        "",
        "![Cost against rows, trees, features and outputs](growth_more.png)",
        "",
    ]
    for axis, values in AXES.items():
        found = series(cells, axis)
        if not found:
            continue
        by_value = {name: dict(points) for name, points in found.items()}
        rows = [
            (
                f"{value:,}",
                *(seconds(by_value[name][value]) if value in by_value[name] else "" for name in found),
            )
            for value in values
            if value in by_value[US]
        ]
        for name, most in (("exponent", FITTED), ("at the end", 2)):
            rows.append((name, *(exponent(points, most) for points in found.values())))
        differ = [
            f"{name} in {count} rows at {value:,}"
            for value in values
            for name in PEERS
            if (count := cells.found.get(f"{axis}/{value}", {}).get(f"{name} rows that differ", 0))
        ]
        text += [f"## {axis.capitalize()}", "", f"{WHAT[axis]}, but for the {axis}.", ""]
        text += [markdown_table((axis, *found), rows), ""]
        text += [f"Differ from us: {'; '.join(differ)}.", ""] if differ else []
        if axis == "outputs":
            text += [f"{' and '.join(ONE_OUTPUT)} explain one class at a time, and are left out.", ""]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=tuple(AXES), help="some axes")
    parser.add_argument("--again", action="store_true", help="also what has results")
    parser.add_argument("--missing", action="store_true", help="only what has no results, disturbed or not")
    parser.add_argument("--draw", action="store_true", help="page and pictures alone")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    most_load = math.inf if options.missing else MOST_LOAD
    wanted = [f"{axis}/{value}" for axis, values in AXES.items() for value in values]
    cells = Cells(RESULTS / "growth.json", PACKAGES, most_load, wanted=wanted)
    cells.page = lambda: page(cells)
    if not options.draw:
        with threadpool_limits(1):
            for axis in options.only or AXES:
                run_axis(cells, axis, options.again)
    cells.write()
    for name, axes in PICTURES.items():
        panels = {axis: found for axis in axes if (found := series(cells, axis))}
        if panels:
            draw(
                panels,
                US,
                f"a line ends where its next point would take more than {MOST_SECONDS:.0f} s",
                RESULTS / name,
            )
    print(f"written to {RESULTS / 'growth.md'}")


if __name__ == "__main__":
    main()
