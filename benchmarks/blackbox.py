"""Black boxes: how accurate are SHAP values from a fixed number of model calls, and what do they cost?

    python benchmarks/blackbox.py                        # what is not in results/blackbox.json yet
    python benchmarks/blackbox.py --only gb1 avgfp.auto  # subjects, or ways of a subject
    python benchmarks/blackbox.py --force --only sgemm14 # again
    python benchmarks/blackbox.py --seeds 0 1            # of these seeds alone
    python benchmarks/blackbox.py --part own             # ours alone, or "samplers" alone
    python benchmarks/blackbox.py --quick                # one small cell of each kind; writes nothing
    python benchmarks/blackbox.py --list

FOURIERSHAP_DATA names the folder of the paper's data sets. Models and true values are kept in
benchmarks/.cache. Cells are kept one by one (`_cells.py`): a run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from _cells import Cells
from _common import RESULTS, cores, print_machine
from blackbox_cells import amortised, report
from blackbox_cells.default_call import default_cell
from blackbox_cells.models import SUBJECTS
from blackbox_cells.network_runs import BUDGETS as NETWORK_BUDGETS
from blackbox_cells.network_runs import network_cell, refine_cell
from blackbox_cells.runs import coded_transform, represented
from blackbox_cells.samplers import SAMPLERS, can_run, sampler_cell

PACKAGES = ("shap", "shapiq", "lightshap", "scikit-learn", "scipy", "lightgbm", "catboost")
SEEDS, FEW_SEEDS = range(5), range(2)
BUDGETS = {
    "entacmaea": (2_000, 8_192),
    "sgemm14": (5_000, 20_000),
    "sgemm40": (20_000,),
    "gb1": (20_000,),
    "avgfp": (5_000,),
}
NAMED = {"entacmaea": 2_000, "sgemm14": 5_000, "sgemm40": 5_000, "gb1": 5_000, "avgfp": 5_000}
CODED = {"avgfp": 10_000, "gb1": 45_000}
METHOD = (
    "The paper's models: 20 rows are explained against 20 background rows; queries are made of 5,000 other "
    "rows. A seed draws rows, background, data and queries anew; the model stays. Truth: the definition for "
    "13 and for 14 players, our exact tree explainer for trees, twice 150 pairs of permutations for each pair "
    "of rows for the 40 columns of SGEMM, whose two runs agree to the R^2 that `ceiling` in the JSON gives.",
    "Smooth models are trained anew by each seed: 20 rows against 50 background rows, and truth by the "
    "definition up to 10 players, else by permutations. Of a fit `a row` is timed against 1,000 background "
    "rows, of a sampler against the 50, the model's own time left out.",
    "Samplers ask about the whole background: KernelExplainer (KernelSHAP) with all features (`l1_reg=0`) and its "
    "default of 2,048 coalitions and two for each feature, PermutationExplainer with at least ten rounds, shapiq's "
    "with 2,048 coalitions (PolySHAP with pairs of features, as many as these tell apart), LightSHAP by its defaults.",
)
Run = Callable[[], dict[str, Any]]


def cells() -> dict[str, Run]:
    """Every cell by name: subject.way.budget.seed; `auto` first, samplers last."""
    found: dict[str, Run] = {}
    for name, budgets in NETWORK_BUDGETS.items():
        for budget in budgets:
            for seed in SEEDS:
                found[f"{name}.auto.{budget}.{seed}"] = partial(network_cell, name, "auto", budget, seed)
    for name, budgets in BUDGETS.items():
        for budget in budgets:
            for seed in SEEDS:
                found[f"{name}.auto.{budget}.{seed}"] = partial(represented, name, "auto", budget, seed)
    for name, budget in CODED.items():
        for seed in SEEDS:
            found[f"{name}.coded.{budget}.{seed}"] = partial(coded_transform, name, budget, seed)
    for name, budget in NAMED.items():
        for way in ("waves", "trees", "blend", "swht"):
            found[f"{name}.{way}.{budget}.0"] = partial(represented, name, way, budget, 0)
    for name, budgets in NETWORK_BUDGETS.items():
        if name != "digits":  # ten classes: the queries of 64 players against 50 rows
            for seed in FEW_SEEDS:
                found[f"refine.{name}.{budgets[0]}.{seed}"] = partial(refine_cell, name, budgets[0], seed)
    for name in (*SUBJECTS, *NETWORK_BUDGETS):
        found[f"default.{name}.20000.0"] = partial(default_cell, name, 0)
    found["amortised"] = partial(amortised.many_rows, False)
    columns = [
        name for name, subject in SUBJECTS.items() if subject.groups is None
    ]  # samplers know no groups
    for name in (*columns, *NETWORK_BUDGETS):
        for way in SAMPLERS:
            found[f"{name}.{way}.0.0"] = partial(sampler_cell, name, way, 0)
    return found


def quick_cells() -> dict[str, Run]:
    return {
        "avgfp.auto.1000.0": partial(represented, "avgfp", "auto", 1000, 0),
        "california.auto.1000.0": partial(network_cell, "california", "auto", 1000, 0),
        "avgfp.coded.10000.0": partial(coded_transform, "avgfp", 10_000, 0),
        "entacmaea.PermutationSHAP.0.0": partial(sampler_cell, "entacmaea", "PermutationSHAP", 0),
        "amortised": partial(amortised.many_rows, True),
    }


def way_of(key: str) -> str:
    return key.split(".")[1] if "." in key else key


def choose(
    found: dict[str, Run], only: list[str] | None, seeds: list[int] | None, part: str | None
) -> dict[str, Run]:
    """The cells whose names begin so, of these seeds, of ours or of the samplers."""
    chosen = {
        key: run
        for key, run in found.items()
        if (only is None or any(f"{key}.".startswith(f"{name}.") for name in only))
        and (seeds is None or key.rpartition(".")[2] in map(str, seeds))
        and (part is None or (way_of(key) in SAMPLERS) == (part == "samplers"))
    }
    if not chosen:
        raise SystemExit(f"--only, --seeds: no cell of {only or 'all'}, {seeds or 'all'}; see --list.")
    return chosen


def why_not(key: str) -> str | None:
    """Why a cell cannot be measured here."""
    way = way_of(key)
    return can_run(way) if way in SAMPLERS else None


def threads_of(key: str) -> int:
    """The default call, and what is explained after it, take all cores; the rest has one."""
    return cores() if key.split(".")[0] in ("default", "amortised") else 1


def limited(run: Run, threads: int) -> dict[str, Any]:
    """The cell, training of its model included, with so many threads of BLAS and OpenMP."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        return run()


def draw(done: dict[str, Any]) -> None:
    """The picture, where its numbers are there."""
    ways = {"KernelSHAP": "sgemm40.KernelSHAP.0.0", "PermutationExplainer": "sgemm40.PermutationSHAP.0.0"}
    per_row = {label: done[key]["queries_per_row"] for label, key in ways.items() if key in done}
    if per_row and "amortised" in done:
        amortised.plot(done["amortised"]["queries"], per_row, RESULTS / "blackbox_calls.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small cells only; writes nothing")
    parser.add_argument("--force", action="store_true", help="run finished cells again")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="beginnings of names of cells (see --list)")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help="of these seeds alone")
    parser.add_argument("--part", choices=("own", "samplers"), help="our cells, or those of samplers, alone")
    parser.add_argument("--list", action="store_true", help="the names, and no run")
    arguments = parser.parse_args()
    every = quick_cells() if arguments.quick else cells()
    chosen = choose(every, arguments.only, arguments.seeds, arguments.part)
    if arguments.list:
        print("\n".join(chosen))
        return
    warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
    print_machine(PACKAGES)
    kept = Cells(RESULTS / "blackbox.json", PACKAGES, where=("results", "cells"), wanted=every)
    kept.beside = {"method": METHOD}
    kept.page = lambda: report.markdown(kept, METHOD)
    for key, run in chosen.items():
        if arguments.quick:
            print(key, _brief(run()), flush=True)
            continue
        reason = why_not(key)
        if reason is not None:
            print(f"{key}: left out, {reason}", flush=True)
        elif arguments.force or not kept.is_good(key):
            work, threads = partial(limited, run, threads_of(key)), threads_of(key)
            found = kept.measure(key, work, again=arguments.force, threads=threads)
            print(key, _brief(found), flush=True)
    if not arguments.quick:
        kept.write()
        draw(kept.found)


def _brief(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cell.items() if name != "candidates"}


if __name__ == "__main__":
    main()
