"""Interactions of order 3 of sums of cosines of 20 players: `python benchmarks/wave_orders.py`.

CPU time a row on one thread, by the compressed background that is the default and by all of its rows. The exact values
are compared with the definition where ten players allow it, the default ones with the exact ones.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from itertools import combinations
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine
from _pages import markdown_table
from fouriershap._blackbox.surrogates import WaveSurrogate
from fouriershap._shapley.indices import SII
from fouriershap._shapley.sets import key_sets

N_PLAYERS, N_WAVES, ORDER, N_ROWS, TOLERANCE = 20, 128, 3, 64, 0.01
CASES = {
    f"{n:,} background rows, {word}": (n, scale)
    for n in (100, 1_000)
    for word, scale in (("steep", 1.0), ("smooth", 0.2))
}


def problem(n_players: int, n_background: int, scale: float) -> tuple[fs.Waves, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    frequencies = scale * rng.normal(size=(N_WAVES, n_players))
    waves = fs.Waves(frequencies, rng.normal(size=N_WAVES), rng.uniform(0, 6, N_WAVES))
    return waves, rng.normal(size=(n_background, n_players)), rng.normal(size=(N_ROWS, n_players))


def interactions(engine: Any, rows: np.ndarray, n_players: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    found = engine.interactions(SII, ORDER)
    out = np.zeros((len(rows), len(found.keys), 1))
    found.add(rows, out)
    return key_sets(found.keys, n_players), out[:, :, 0]


def from_definition() -> float:
    """How far exact values of triples of ten players are from all coalitions, as a share of the largest."""
    n = 10
    waves, background, rows = problem(n, 5, 1.0)
    sets, found = interactions(WaveSurrogate(waves, TOLERANCE, True).compile(background, None), rows[:1], n)
    masks = np.arange(1 << n)
    member = (masks[:, None] >> np.arange(n) & 1).astype(bool)
    hybrids = np.where(member[:, None], rows[0], background)
    worth = waves(hybrids.reshape(-1, n)).reshape(len(masks), -1).mean(axis=1)
    moebius = worth.copy()
    for player in range(n):
        inside = masks[member[:, player]]
        moebius[inside] -= moebius[inside ^ 1 << player]
    gaps = []
    for players, value in zip(sets, found[0], strict=True):
        mine = sum(1 << player for player in players)
        above = masks[masks & mine == mine]
        want = (moebius[above] / (member[above].sum(axis=1) - len(players) + 1)).sum()
        gaps.append(abs(value - want))
    assert len(sets) == sum(len(list(combinations(range(n), size))) for size in range(1, ORDER + 1))
    return float(max(gaps) / np.abs(found).max())


def one_cell(n_background: int, scale: float, rounds: int) -> dict[str, Any]:
    waves, background, rows = problem(N_PLAYERS, n_background, scale)
    cell: dict[str, Any] = {"definition": from_definition()}
    values = {}
    for name, is_exact, some in (("default", False, rows), ("all rows", True, rows[:2])):
        engine = WaveSurrogate(waves, TOLERANCE, is_exact).compile(background, None)
        taken = []
        for _ in range(rounds):
            begin = time.process_time()
            values[name] = interactions(engine, some, N_PLAYERS)[1]
            taken.append((time.process_time() - begin) / len(some))
        cell |= {name: min(taken), f"{name}, products": engine.info.n_components}
    differs = np.abs(values["default"][:2] - values["all rows"]).max() / np.abs(values["all rows"]).max()
    return cell | {"differs": float(differs)}


def told(cell: dict[str, Any]) -> tuple[str, ...]:
    milliseconds = [f"{1e3 * cell[name]:.2f}" for name in ("default", "all rows")]
    products = str(cell["default, products"])
    return milliseconds[0], products, milliseconds[1], f"{cell['differs']:.0e}", f"{cell['definition']:.0e}"


def page(cells: Cells) -> str:
    """A line for each cell that there is."""
    header = (
        "problem",
        "default, ms a row",
        "products",
        "all rows, ms a row",
        "default differs",
        "from definition",
    )
    text = (
        f"# Interactions of sums of cosines\n\n{N_PLAYERS} players, {N_WAVES} cosines, all sets of up to {ORDER}; CPU "
        f"time on one thread.\n{cells.told()}\n"
        "By default, products of marginals stand for the background. `default differs`: the largest difference from "
        "the values against all rows, as a share of the largest; `from definition`: that of such values of ten players "
        "from all coalitions.\n\n"
    )
    return text + markdown_table(header, [(name, *told(cell)) for name, cell in cells.found.items()]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="measure all cells again")
    options = parser.parse_args()
    print_machine()
    cells = Cells(RESULTS / "wave_orders.json", (), wanted=CASES)
    cells.page = lambda: page(cells)
    for name, case in CASES.items():
        cell = cells.measure(name, partial(one_cell, *case, options.rounds), again=options.again)
        print(" | ".join((name, *told(cell))), flush=True)
    cells.write()


if __name__ == "__main__":
    main()
