"""Deep trees and large backgrounds: production-size models, whether `auto` chooses well, and depth without end.

    python benchmarks/deep_trees.py                      # everything, some hours; goes on where it stopped
    python benchmarks/deep_trees.py --only sizes regret
    python benchmarks/deep_trees.py --only "sizes/lightgbm:1000:63" --again

CPU seconds on one thread. Finished cells are kept in benchmarks/results/deep_trees.json. A peer is stopped when
it has taken 40 seconds, and 16 times what we take.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from _cells import Cells
from _common import RESULTS
from deep_cells import depth, models, regret, serving, sizes
from peers import trees as peers

PACKAGES = ("lightgbm", "xgboost", "scikit-learn", "shap", "shapiq", "woodelf-explainer")
PATH = RESULTS / "deep_trees.json"


def members() -> dict[str, Callable[[], list[dict[str, Any]]]]:
    """What can be run, by name."""
    found: dict[str, Callable[[], list[dict[str, Any]]]] = {}
    for group in (sizes, serving, regret, depth):
        found |= {f"{group.GROUP}/{name}": partial(group.run, name) for name in group.MODELS}
    return found


def page(cells: Cells) -> str:
    """The results for people."""
    found = cells.found
    text = ["# Deep trees, large backgrounds", "", f"CPU seconds on one thread. {cells.told()}", ""]
    text += [
        f"Models are trained on {models.TRAINING_ROWS:,} rows: {models.DATA}. `lightgbm:500:255` has 500 trees of 255 "
        "leaves, `xgboost:1000:8` 1,000 of depth 8, `lightgbm, deep:100:12` 100 of depth 12 and at most 2,024 leaves. "
        "Values were compared first.",
        "",
    ]
    text += _sizes(found) + _serving(found) + _regret(found) + _depth(found)
    return "\n".join(text)


def _cells(found: dict[str, Any], group: str) -> list[dict[str, Any]]:
    return [cell for name, member in found.items() if name.split("/")[0] == group for cell in member["cells"]]


def _table(head: str, rows: list[tuple[Any, ...]]) -> list[str]:
    """Markdown; the first column is text."""
    names = head.split(" | ")
    line = "|---|" + "---:|" * (len(names) - 1)
    return [f"| {head} |", line, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def _sizes(found: dict[str, Any]) -> list[str]:
    head = "model | rows = background | strategy | first call | again | walk, extrapolated | times the walk"
    head += " | own predict"
    rows = [
        (
            *(c["model"], f"{c['rows']:,}", c["chosen"], f"{c['seconds']:.2f}", f"{c['again']:.2f}"),
            *(f"{c['walk']:.1f}", f"{c['walk'] / c['seconds']:.1f}", f"{c['predict']:.3f}"),
            *(f"{c['seconds'] / c['predict']:.1f}", f"{c['megabytes']:.0f}"),
        )
        for c in _cells(found, sizes.GROUP)
    ]
    table = _table(f"{head} | times predict | MB", rows)
    text = (
        "The first call builds what it needs; the model was read before. The walk, pair by pair, is our own "
        '`strategy="walk"`, measured on 64 rows.'
    )
    return ["## Sizes in use", "", text, "", *table, "MB: beyond model, data and answer.", ""]


def _serving(found: dict[str, Any]) -> list[str]:
    rows = [
        (
            *(c["model"], c["road"], f"{c['milliseconds']:.3f}", f"{c['predict']:.3f}"),
            *(f"{c['build']:.2f}", f"{c['megabytes']:.0f}"),
        )
        for c in _cells(found, serving.GROUP)
    ]
    head = "model | strategy | ms a row | own predict, ms | seconds of building | MB of tables"
    text = (
        f"Built before, against {serving.N_BACKGROUND:,} background rows: the median of {serving.N_ROWS} rows. Own "
        "predict is the booster's, which is quicker than that of its scikit-learn wrapper."
    )
    return ["## One row at a time", "", text, "", *_table(head, rows)] if rows else []


def _regret(found: dict[str, Any]) -> list[str]:
    cells = _cells(found, regret.GROUP)
    if not cells:
        return []
    bad = [c for c in cells if c["regret"] > 1.5]
    text = (
        f"{len(cells)} combinations of {len({c['model'] for c in cells})} models with 1 to 10,000 rows and background "
        "rows. What was chosen takes at most 1.5 times the quickest strategy (each forced, tables built) in "
        f"{len(cells) - len(bad)} of them, and never more than {max(c['regret'] for c in cells):.2f} times."
    )
    rows = [
        (c["model"], f"{c['rows']:,}", f"{c['background']:,}", c["chosen"], f"{c['regret']:.2f}") for c in bad
    ]
    table = _table("model | rows | background | chosen | times the best", rows) if bad else []
    return ["## Does `auto` choose well?", "", text, "", *table]


def _depth(found: dict[str, Any]) -> list[str]:
    rows = [
        (
            c["model"],
            f"{c['rows']:,}",
            f"{c['seconds']:.2f}",
            *(_against(c.get(peer), c["seconds"]) for peer in depth.PEERS),
        )
        for c in sorted(_cells(found, depth.GROUP), key=lambda c: (int(c["model"].split(":")[-1]), c["rows"]))
    ]
    table = _table(f"model | rows = background | fouriershap | {' | '.join(depth.PEERS)}", rows)
    text = (
        "From the model to the values. woodelf chooses itself between its method for high depths (WoodelfHD) and, "
        f"beyond depth 12, a sparse one. {peers.ABOUT_SHAPIQ}"
    )
    return ["## Depth", "", text, "", *table] if rows else []


def _against(theirs: Any, ours: float) -> str:
    if isinstance(theirs, str) and theirs.startswith(depth.NOT_FINISHED):
        stopped = float(theirs.removeprefix(depth.NOT_FINISHED).split()[0])
        return f"> {stopped:.0f}, stopped (> {stopped / ours:.0f}x)"
    return f"{theirs:.1f} ({theirs / ours:.0f}x)" if isinstance(theirs, float) else str(theirs or "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="groups or members (see --list)")
    parser.add_argument("--again", action="store_true", help="also what has results")
    parser.add_argument("--list", action="store_true", help="the names, and no run")
    options = parser.parse_args()
    chosen = {
        name: run
        for name, run in members().items()
        if options.only is None or name in options.only or name.split("/")[0] in options.only
    }
    if options.list:
        print("\n".join(chosen))
        return
    warnings.filterwarnings("ignore", category=UserWarning)
    cells = Cells(PATH, PACKAGES, where=("members",), wanted=members())
    cells.page = lambda: page(cells)
    for name, run in chosen.items():
        if options.again or not cells.is_good(name):
            print(f"{name} ...", flush=True)
        cells.measure(name, lambda run=run: {"cells": run()}, again=options.again)
    print(f"written to {PATH.with_suffix('.md')}")


if __name__ == "__main__":
    main()
