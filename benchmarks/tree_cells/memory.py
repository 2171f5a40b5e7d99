"""Peak memory above the data, each cell in a process of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tree_cells import models
from tree_cells.child import hand_over, run_child
from tree_cells.race import OURS, Cell, Outcome, Target

GROUP = "memory"
METHOD = (
    "peak resident memory of a process that explains, less what was resident once libraries, model, rows and "
    "background were loaded; the values that come out are counted"
)
LIMIT_MB = 400.0


def run(name: str, quick: bool) -> Outcome:
    """100,000 x 100,000; woodelf beside it for the boosted models."""
    size = 10_000 if quick else 100_000
    cell = Cell(GROUP, models.NAMES[name], f"{size:,} x {size:,}", notes=[METHOD])
    peers = ["woodelf"] if name in ("xgboost", "lightgbm") else []
    with tempfile.TemporaryDirectory() as folder:
        hand_over(Path(folder), models.model(name), models.rows(size), models.background(size))
        for who in [OURS, *peers]:
            found = run_child(Path(folder), "memory", who, str(models.N_JOBS))
            cell.megabytes[who] = found["peak_above_data"] / 1e6
            if not found["exact"]:
                cell.notes.append(f"{who}: counted from the peak of loading (ru_maxrss), so perhaps too low")
    outcome = Outcome([cell])
    if name in ("xgboost", "lightgbm"):
        what = f"{models.NAMES[name]}: {cell.cell}, peak memory above the data"
        outcome.targets.append(Target(what, cell.megabytes[OURS], LIMIT_MB, at_least=False, unit="MB"))
    return outcome
