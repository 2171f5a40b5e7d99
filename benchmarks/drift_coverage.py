"""How often the 95 % intervals of drift hold the truth: `python benchmarks/drift_coverage.py`, some two minutes."""

from __future__ import annotations

import math
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

import fouriershap as fs
from _cells import Cells
from _common import RESULTS
from _pages import markdown_table

N_POPULATION, N_DRAWS = 100_000, 500
SIZES = ((20, 20), (50, 70), (200, 30), (30, 1000), (1000, 1000))  # new rows, background rows
HEADER = ("parts", "weights", "new rows", "background rows", "least", "most")


@cache
def case() -> tuple[fs.Explainer, np.ndarray, np.ndarray, np.ndarray]:
    """An explainer, the populations of old and of new rows, and weights of both."""
    rng = np.random.default_rng(7)
    X = rng.exponential(size=(3000, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    model = GradientBoostingRegressor(n_estimators=25, max_depth=3, random_state=0).fit(X, y)
    old = rng.exponential(size=(N_POPULATION, 3))
    new = rng.exponential(size=(N_POPULATION, 3)) * [1.4, 1.0, 0.8]
    weights = rng.uniform(0.2, 2, size=(2, N_POPULATION))
    return fs.TreeExplainer(model, X, strategy="tables", n_jobs=1), old, new, weights


def coverage(interactions: bool, weighted: bool, n_new: int, n_old: int) -> dict[str, Any]:
    """The share of intervals that hold the truth, of the part with the fewest and of that with the most."""
    explainer, old, new, weights = case()
    rng = np.random.default_rng(
        [interactions, weighted, n_new, n_old]
    )  # its own, so that it can be tried alone

    def ask(i: Any, j: Any, level: float | None) -> Any:
        asked = explainer.with_background(old[i], weights=weights[0, i] if weighted else None)
        share = weights[1, j] if weighted else None
        return asked.drift(new[j], weights=share, interactions=interactions, level=level)

    truth = ask(slice(None), slice(None), None).values
    hits = np.zeros(truth.shape)
    for _ in range(N_DRAWS):
        drawn = rng.integers(N_POPULATION, size=n_old), rng.integers(N_POPULATION, size=n_new)
        found = ask(*drawn, 0.95)
        hits += (found.low <= truth) & (truth <= found.high)
    return {"least": float(hits.min()) / N_DRAWS, "most": float(hits.max()) / N_DRAWS}


def cells() -> dict[tuple[str, ...], tuple[bool, bool, int, int]]:
    """The words of a line, and what is asked."""
    return {
        (
            "players and pairs" if pairs else "players",
            "uneven" if weighted else "equal",
            f"{n_new:,}",
            f"{n_old:,}",
        ): (pairs, weighted, n_new, n_old)
        for pairs, weighted, (n_new, n_old) in product((False, True), (False, True), SIZES)
    }


def page(kept: Cells) -> str:
    there = {words: kept.found.get(" | ".join(words)) for words in cells()}
    lines = [(*words, f"{c['least']:.3f}", f"{c['most']:.3f}") for words, c in there.items() if c is not None]
    text = (
        f"{N_DRAWS} draws from {N_POPULATION:,} rows. Share of 95 % intervals that hold the truth, least and most of "
        "all parts."
    )
    return "\n".join(
        ["# Intervals of drift", "", kept.told(), "", text, "", markdown_table(HEADER, lines), ""]
    )


def main() -> None:
    # How often an interval holds does not depend on what else the machine does.
    kept = Cells(
        RESULTS / "drift_coverage.json", ("scikit-learn",), math.inf, wanted=map(" | ".join, cells())
    )
    kept.page = lambda: page(kept)
    for words, asked in cells().items():
        found = kept.measure(" | ".join(words), partial(coverage, *asked))
        print(*words, found["least"], found["most"], sep=" | ", flush=True)


if __name__ == "__main__":
    main()
