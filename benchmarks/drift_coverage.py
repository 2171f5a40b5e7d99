"""How often the 95 % intervals of drift hold the truth: `python benchmarks/drift_coverage.py`, some two minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

import fouriershap as fs

N_POPULATION, N_DRAWS = 100_000, 500
SIZES = ((20, 20), (50, 70), (200, 30), (30, 1000), (1000, 1000))  # new rows, background rows


def main() -> None:
    rng = np.random.default_rng(7)
    X = rng.exponential(size=(3000, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    model = GradientBoostingRegressor(n_estimators=25, max_depth=3, random_state=0).fit(X, y)
    explainer = fs.TreeExplainer(model, X, method="tables", n_jobs=1)
    old = rng.exponential(size=(N_POPULATION, 3))
    new = rng.exponential(size=(N_POPULATION, 3)) * [1.4, 1.0, 0.8]
    weights = rng.uniform(0.2, 2, size=(2, N_POPULATION))
    lines = [
        "# Intervals of drift",
        "",
        "Share of 95 % intervals that hold the truth, least and most of all parts.",
        "",
    ]
    lines += [
        "| parts | weights | new rows | background rows | least | most |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for interactions in (False, True):
        for weighted in (False, True):
            for n_new, n_old in SIZES:

                def ask(i: Any, j: Any, level: float | None) -> Any:
                    share = weights[0, i] if weighted else None  # noqa: B023
                    other = weights[1, j] if weighted else None  # noqa: B023
                    asked = explainer.with_background(old[i], weights=share)
                    return asked.drift(new[j], weights=other, interactions=interactions, level=level)  # noqa: B023

                truth = ask(slice(None), slice(None), None).values
                hits = np.zeros(truth.shape)
                for _ in range(N_DRAWS):
                    found = ask(
                        rng.integers(N_POPULATION, size=n_old), rng.integers(N_POPULATION, size=n_new), 0.95
                    )
                    hits += (found.low <= truth) & (truth <= found.high)
                share = hits / N_DRAWS
                what = "players and pairs" if interactions else "players"
                lines.append(
                    f"| {what} | {'uneven' if weighted else 'equal'} | {n_new:,} | {n_old:,} | {share.min():.3f} | "
                    f"{share.max():.3f} |"
                )
                print(lines[-1], flush=True)
    (Path(__file__).parent / "results" / "drift_coverage.md").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
