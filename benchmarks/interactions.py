"""Interaction values of all pairs: XGBoost, 100 trees of depth 6, 30 features; 1,000 rows, background of 1,000.

Interventional ones against woodelf and shapiq, path-dependent ones against shap, shapiq and XGBoost itself. Every
contender has a process of its own and is built there: the time of the first call counts from the constructor on. Each
is called a second time. Memory is what the process gained while it worked, at its peak. The results are compared.

    python benchmarks/interactions.py
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _cells import Cells
from _common import RESULTS, cores, print_machine, print_table
from _pages import markdown_table
from peers.trees import ABOUT_SHAPIQ

N_ROWS, N_BACKGROUND, N_FEATURES, N_TREES, DEPTH = 1000, 1000, 30, 100, 6
PACKAGES = ("xgboost", "shap", "shapiq", "woodelf-explainer")
INTERVENTIONAL = ("fouriershap", "woodelf", "shapiq")
PATH_DEPENDENT = ("fouriershap, by path", "shap, by path", "shapiq, by path", "xgboost, by path")
CELL = f"{N_TREES} trees, depth {DEPTH}"
TOLERANCE = 1e-4  # of the largest value: all but woodelf add up in float32


def make_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_BACKGROUND + N_ROWS + 8000, N_FEATURES)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) * X[:, 3] + (X[:, 4] > 0) * X[:, 5:10].sum(axis=1)
    return X, y + 0.1 * rng.normal(size=len(X))


def contender(name: str, model: Any, background: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Build the explainer; what is returned gives matrices (n_rows, n_features, n_features)."""
    if name.startswith("fouriershap"):
        import fouriershap as fs

        by_path = name.endswith("by path")
        return fs.TreeExplainer(model, None if by_path else background).shap_interaction_values  # type: ignore
    if name == "woodelf":
        import pandas as pd
        from woodelf import WoodelfExplainer

        columns = [f"f{i}" for i in range(N_FEATURES)]
        explainer = WoodelfExplainer(model.get_booster(), pd.DataFrame(background, columns=columns))

        def explain(X: np.ndarray) -> np.ndarray:
            frame = pd.DataFrame(X, columns=columns)
            return np.asarray(explainer.shap_interaction_values(frame, verbose=False))

        return explain
    if name.startswith("shapiq"):
        return _by_shapiq(model, None if name.endswith("by path") else background)
    if name.startswith("shap"):
        import shap

        return shap.TreeExplainer(model).shap_interaction_values  # type: ignore[no-any-return]
    import xgboost

    booster = model.get_booster()
    return lambda X: booster.predict(xgboost.DMatrix(X), pred_interactions=True)[:, :-1, :-1]


def _by_shapiq(model: Any, background: np.ndarray | None) -> Callable[[np.ndarray], np.ndarray]:
    """Its own C++; a pair's value, which it tells once, is written to both halves of the matrix, as shap does."""
    import shapiq

    options: dict[str, Any] = {"index": "SII", "max_order": 2, "min_order": 2, "backend": "shapiq"}
    if background is not None:
        options |= {"mode": "interventional", "reference_dataset": background.astype(np.float64)}
    explainer = shapiq.TreeExplainer(model, **options)

    def explain(X: np.ndarray) -> np.ndarray:
        matrices = np.zeros((len(X), N_FEATURES, N_FEATURES))
        for players, values in explainer.explain_X(X.astype(np.float64)).values.items():
            if len(players) == 2:
                first, second = players
                matrices[:, first, second] = matrices[:, second, first] = np.asarray(values) / 2
        return matrices

    return explain


def run_one(name: str, folder: Path) -> None:
    """In a process of its own: time, memory and result of one contender."""
    import xgboost

    data = np.load(folder / "data.npz")
    model = xgboost.XGBRegressor()
    model.load_model(folder / "model.json")
    contender(name, model, data["background"][:5])(data["rows"][:2])  # imports and warm-up
    before, measured = _peak(), {}
    wall, cpu = time.perf_counter(), time.process_time()
    explain = contender(name, model, data["background"])
    for call in ("first", "again"):
        values = explain(data["rows"])
        measured[call] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        wall, cpu = time.perf_counter(), time.process_time()
    measured["megabytes"] = (_peak() - before) / 1e3
    np.save(folder / "values.npy", np.asarray(values, dtype=np.float64))
    (folder / "measured.json").write_text(json.dumps(measured))


def _peak() -> float:
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def measure() -> dict[str, Any]:
    import xgboost

    X, y = make_data()
    given = {"n_estimators": N_TREES, "max_depth": DEPTH}
    model = xgboost.XGBRegressor(**given).fit(X[N_BACKGROUND + N_ROWS :], y[N_BACKGROUND + N_ROWS :])
    results: dict[str, Any] = {}  # by contender
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save_model(folder / "model.json")
        rows = X[N_BACKGROUND : N_BACKGROUND + N_ROWS]
        np.savez(folder / "data.npz", background=X[:N_BACKGROUND], rows=rows)
        for group in (INTERVENTIONAL, PATH_DEPENDENT):
            reference = None
            for contender_name in group:
                command = [sys.executable, __file__, "--only", contender_name, "--folder", str(folder)]
                subprocess.run(command, check=True, env=os.environ)
                values = np.load(folder / "values.npy")
                reference = values if reference is None else reference
                found = json.loads((folder / "measured.json").read_text())
                found["difference"] = float(np.abs(_pairs_of(values) - _pairs_of(reference)).max())
                found["largest"] = float(np.abs(_pairs_of(reference)).max())
                results[contender_name] = found
                if found["difference"] > TOLERANCE * found["largest"]:
                    raise SystemExit(f"{contender_name} differs by {found['difference']:.2g}.")
    return {"contenders": results}


def _pairs_of(values: np.ndarray) -> np.ndarray:
    """Off the diagonal: main effects are what is left of the SHAP values, and compared with them elsewhere."""
    off = ~np.eye(values.shape[1], dtype=bool)
    return np.asarray(values[:, off])


def lines(results: dict[str, Any]) -> list[tuple[str, ...]]:
    out = []
    for name, found in results.items():
        ours = results["fouriershap, by path" if name.endswith("by path") else "fouriershap"]
        ratio = "" if ours is found else f"{found['first']['cpu'] / ours['first']['cpu']:.1f}"
        again = "" if ours is found else f"{found['again']['cpu'] / ours['again']['cpu']:.0f}"
        seconds = [f"{found[call][clock]:.2f}" for call in ("first", "again") for clock in ("wall", "cpu")]
        difference = f"{found['difference'] / found['largest']:.0e}"
        out.append((name, *seconds, ratio, again, f"{found['megabytes']:.0f}", difference))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        run_one(given.only, given.folder)
        return
    print_machine(PACKAGES)
    cells = Cells(RESULTS / "interactions.json", PACKAGES, where=("results",), wanted=(CELL,))
    # One cell: contenders are compared with one another.
    results = cells.measure(CELL, measure, threads=cores())["contenders"]
    header = (
        "contender",
        "first s",
        "first CPU s",
        "again s",
        "again CPU s",
        "x first",
        "x again",
        "MB",
        "differs",
    )
    print_table(header, lines(results))
    what = f"XGBoost, {N_TREES} trees, depth {DEPTH}, {N_FEATURES} features"
    title = (
        f"# Interactions\n\n{what}; {N_ROWS:,} rows, background {N_BACKGROUND:,}.\n"
        f"{cells.told()} `x`: CPU time over ours; `first` includes building. {ABOUT_SHAPIQ}\n"
    )
    (RESULTS / "interactions.md").write_text(f"{title}\n{markdown_table(header, lines(results))}\n")


if __name__ == "__main__":
    main()
