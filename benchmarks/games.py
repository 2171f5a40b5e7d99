"""One game alone: `explain_game` against shapiq's approximators, on games of shapiq with exact values.

The error is the sum of squared errors by that of squares, the median over seeds; CPU seconds are the quickest run's, on
one thread, the game's own answers included. Most constants were chosen on games of the same kinds with other seeds,
rows and sizes; when to regress the answers themselves was decided after a look at these.

    python benchmarks/games.py
"""

from __future__ import annotations

import contextlib
import io
import itertools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine, print_table, seconds
from _pages import markdown_table

BUDGETS, SEEDS = (200, 1000, 4000), (0, 1, 2)
MODEL_SEED, ROW = 1001, 17
PACKAGES = ("shapiq", "lightgbm", "xgboost", "scikit-learn")
OURS = "explain_game"
HEADER = (
    "game",
    "players",
    "queries",
    "error",
    "coverage",
    "CPU",
    "best of shapiq",
    "error",
    "CPU",
    "by error",
)


def games() -> dict[str, Callable[[], Any]]:
    from shapiq_benchmark import setups
    from shapiq_games import SOUM

    cancer = {"dataset": "breast_cancer", "random_state": MODEL_SEED, "x": ROW}
    trees = {"dataset": "corrgroups60", "random_state": MODEL_SEED, "x": ROW, "n_reference": 20}
    return {
        "100 unanimity games": lambda: SOUM(n=30, n_basis_games=100, random_state=MODEL_SEED),
        "200 unanimity games of up to 5 players": lambda: SOUM(
            n=60, n_basis_games=200, max_interaction_size=5, random_state=MODEL_SEED
        ),
        "XGBoost": setups.InterventionalTreeSetup(model="xgboost", n_reference=20, **cancer).build,
        "LightGBM": setups.InterventionalTreeSetup(model="lightgbm", **trees).build,
        "forest, path-dependent": setups.PathDependentTreeSetup(model="random_forest", **cancer).build,
        "nearest neighbours": setups.KNNSetup(n_train=40, model_params={"n_neighbors": 5}, **cancer).build,
        "support vector machine": setups.ProductKernelSetup(model="svm", n_train=200, **cancer).build,
        "trees of a forest": setups.RandomForestEnsembleSelectionSetup(
            dataset="breast_cancer", random_state=MODEL_SEED, n_members=12
        ).build,
    }


def approximators(n: int, budget: int, seed: int) -> dict[str, Callable[[], Any]]:
    from shapiq import approximator as library

    few = n * (n + 1) // 2 >= budget // 2  # PolySHAP needs two coalitions per pair of players
    most = {"max_terms": max(n + 1, budget // 2)} if few else {}
    plain = ("KernelSHAP", "LeverageSHAP", "OddSHAP", "PermutationSamplingSV", "SVARM")
    found = {name: (lambda name=name: getattr(library, name)(n=n, random_state=seed)) for name in plain}
    found["PolySHAP"] = lambda: library.PolySHAP(n=n, random_state=seed, **most)
    found["ProxySHAP"] = lambda: library.ProxySHAP(n=n, index="SV", max_order=1, random_state=seed)
    found["RegressionMSR"] = lambda: library.RegressionMSR(n=n, index="SV", random_state=seed)
    return found


def singles(found: Any, n: int) -> np.ndarray:
    values = np.zeros(n)
    for players, value in found.dict_values.items():
        if len(players) == 1:
            values[players[0]] = value
    return values


def measure(name: str, budget: int) -> dict[str, Any]:
    from shapiq_benchmark import Benchmark

    game = games()[name]()
    n = game.n_players
    want = singles(Benchmark(game).exact_values("SV", 1), n)
    runs: dict[str, list[tuple[float, float, float]]] = {}
    for seed in SEEDS:
        contenders = {OURS: lambda seed=seed: fs.explain_game(game, n, max_queries=budget, random_state=seed)}
        for peer, make in approximators(n, budget, seed).items():
            contenders[peer] = lambda make=make: make().approximate(budget=budget, game=game)
        for contender, run in contenders.items():
            begin = time.process_time()
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    found = run()
            except (ValueError, ZeroDivisionError):  # too few queries for it
                continue
            cpu, covered = time.process_time() - begin, np.nan
            if contender == OURS:
                slack = 1e-9 * np.abs(want).max()
                covered = float((np.abs(found.values - want) <= 1.96 * found.error_std + slack).mean())
            values = found.values if contender == OURS else singles(found, n)
            error = float(((values - want) ** 2).sum() / (want**2).sum())
            runs.setdefault(contender, []).append((error, cpu, covered))
    return {"players": n} | {
        contender: {
            "error": float(np.median([r[0] for r in found])),
            "cpu": min(r[1] for r in found),
            "coverage": float(np.mean([r[2] for r in found])),
        }
        for contender, found in runs.items()
    }


def lines(cells: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    out = []
    for name, cell in cells.items():
        game, _, budget = name.rpartition(", ")
        peers = {peer: found for peer, found in cell.items() if isinstance(found, dict) and peer != OURS}
        best = min(peers, key=lambda peer: peers[peer]["error"])
        ours, its = cell[OURS], peers[best]
        out.append(
            (
                game,
                str(cell["players"]),
                f"{int(budget):,}",
                f"{ours['error']:.1e}",
                f"{ours['coverage']:.2f}",
                seconds(ours["cpu"]),
                best,
                f"{its['error']:.1e}",
                seconds(its["cpu"]),
                f"{ours['error'] / its['error']:.2g}",
            )
        )
    return out


def page(kept: Cells) -> str:
    title = (
        "# One game alone\n\nSum of squared errors by sum of squares, median of "
        f"{len(SEEDS)} seeds; coverage of value ± 1.96 standard errors; CPU time of the quickest run on one thread, "
        "the game's answers included. `best of shapiq` has the lowest error of its approximators, `by error` is our "
        f"error by its.\n{kept.told()}\n"
    )
    return f"{title}\n{markdown_table(HEADER, lines(kept.found))}\n"


def main() -> None:
    warnings.simplefilter("ignore")
    print_machine(PACKAGES)
    wanted = {f"{name}, {budget}": (name, budget) for name, budget in itertools.product(games(), BUDGETS)}
    kept = Cells(RESULTS / "games.json", PACKAGES, wanted=wanted)
    kept.page = lambda: page(kept)
    results = {}
    for key, (name, budget) in wanted.items():
        results[key] = kept.measure(key, lambda name=name, budget=budget: measure(name, budget))
        print(lines({key: results[key]})[0], flush=True)
    print_table(HEADER, lines(results))


if __name__ == "__main__":
    main()
