"""Tree ensembles against every peer: shap, shapiq, woodelf, and what XGBoost, LightGBM and CatBoost bring themselves.

    python benchmarks/trees.py                       # about a quarter of an hour; goes on where it stopped
    python benchmarks/trees.py --quick               # small cells, to see that all works; writes nothing
    python benchmarks/trees.py --only scale grid.13  # groups or single members, again
    python benchmarks/trees.py --list

The grid runs on the data sets of `paper_data`; where these cannot be had, on
synthetic bits, and says so.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from _cells import Cells
from _common import RESULTS, print_machine
from _data import REGRESSION
from peers import trees as peers
from tree_cells import builds, deep, explain, grid, latency, memory, models, probability, report, scale
from tree_cells.race import Outcome

PACKAGES = ("shap", "shapiq", "woodelf-explainer", "xgboost", "lightgbm", "catboost", "scikit-learn")
METHOD = (
    f"Models are trained on {models.TRAINING_ROWS:,} rows of a synthetic regression: {REGRESSION}. Explained rows "
    "and background rows are fresh, and float32. The grid uses the data sets that it names.",
    "Every contender's values are compared with ours first (1e-4 of the largest value; a difference ends the run, "
    "but for faults of a peer that a third party confirms, which are noted). Times are wall-clock minima of runs in "
    "turn (in the grid of two in a row); in brackets, multiples of our time. shap, shapiq and CatBoost's own, where "
    "they would take more than half a minute, are extrapolated from fewer rows (marked ~) or left out.",
    f"{models.N_JOBS} threads for us and for peers that have threads: shap has none, shapiq and woodelf use two in "
    f"parts of their work. {peers.ABOUT_SHAPIQ} Additivity "
    "is not checked, by anyone; our times include asking the model whether it is read right. shap gets the whole "
    "background (`maskers.Independent(B, max_samples=len(B))`).",
)


def members() -> dict[str, Callable[[bool], Outcome]]:
    """What can be run, by name."""
    found: dict[str, Callable[[bool], Outcome]] = {}
    for group in (scale, explain, latency, memory):
        names = explain.NAMES if group is explain else models.NAMES
        found |= {f"{group.GROUP}.{name}": partial(group.run, name) for name in names}
    found |= {f"{probability.GROUP}.{name}": partial(probability.run, name) for name in probability.NAMES}
    found |= {f"{grid.GROUP}.{n_bits}": partial(grid.run, n_bits) for n_bits in (13, 40, 80, 236)}
    return found | {deep.GROUP: deep.run, builds.GROUP: builds.run}


def choose(only: list[str] | None) -> dict[str, Callable[[bool], Outcome]]:
    everything = members()
    if only is None:
        return everything
    unknown = [
        name for name in only if name not in {m for full in everything for m in (full, full.split(".")[0])}
    ]
    if unknown:
        raise SystemExit(f"--only: no {', '.join(unknown)}; there are {', '.join(everything)}.")
    return {name: run for name, run in everything.items() if name in only or name.split(".")[0] in only}


def run_member(run: Callable[[bool], Outcome], quick: bool) -> dict[str, Any]:
    outcome = run(quick)
    return {
        "cells": [cell.as_dict() for cell in outcome.cells],
        "targets": [target.as_dict() for target in outcome.targets],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small cells only; writes nothing")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="groups or members (see --list)")
    parser.add_argument("--list", action="store_true", help="the names, and no run")
    arguments = parser.parse_args()
    chosen = choose(arguments.only)
    if arguments.list:
        print("\n".join(chosen))
        return
    warnings.filterwarnings("ignore", category=UserWarning, module="sklearn|lightgbm|xgboost")
    print_machine(PACKAGES)
    print("\n".join(METHOD) + "\n")
    if arguments.quick:
        print("Quick: cells smaller than those that the targets are about.\n")
    kept = Cells(RESULTS / "trees.json", PACKAGES, where=("results", "members"), wanted=members())
    kept.beside = {"method": METHOD}
    kept.page = lambda: report.markdown(kept, METHOD)
    found, begin = {}, time.perf_counter()
    for name, run in chosen.items():
        print(f"--- {name} (at {time.perf_counter() - begin:.0f} s)\n")
        if arguments.quick:
            found[name] = run_member(run, quick=True)
        else:
            found[name] = kept.measure(
                name,
                lambda run=run: run_member(run, quick=False),
                again=bool(arguments.only),
                threads=models.N_JOBS,
            )
        report.print_report(found[name]["cells"], found[name]["targets"])
    if not arguments.quick:
        kept.write()
    missed = [t["name"] for member in found.values() for t in member["targets"] if not t["held"]]
    n_targets = sum(len(member["targets"]) for member in found.values())
    print(
        f"{n_targets - len(missed)} of {n_targets} targets held, {time.perf_counter() - begin:.0f} s in all"
    )
    for name in missed:
        print(f"MISSED  {name}")


if __name__ == "__main__":
    main()
