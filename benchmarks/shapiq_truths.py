"""Interactions of order 1 to 8 against the values that shapiq keeps for its own tests.

    python benchmarks/shapiq_truths.py CHECKOUT

CHECKOUT is one of https://github.com/mmschlk/shapiq. Its files hold two games of eight players (California housing, by
an imputer and by trees). Their Moebius coefficients are the game; it is given to two of our engines, as a tree and as a
spectrum, and every other file is compared with what they compute. One file of 103 holds a game of another kind alone
(players are left out of a product), which nothing else tells: it is not compared.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from _cells import Cells
from _common import RESULTS
from _pages import markdown_table

PACKAGES = ("scikit-learn",)
FOLDER = Path("tests/shapiq/data/interaction_values/california_housing")
N_PLAYERS = 8
MASKS = np.arange(1 << N_PLAYERS)
ROWS = MASKS[:, None] >> np.arange(N_PLAYERS) & 1
INDICES = {"SV": "shapley", "BV": "banzhaf"}


def stored(path: Path) -> dict[tuple[int, ...], float]:
    """The values of sets; that of nobody has no players."""
    document = json.loads(path.read_text())
    values = {k: v for k, v in document["data"].items() if k != "Empty"}
    sets = {tuple(map(int, players.split(","))): value for players, value in values.items()}
    return {(): document["metadata"]["baseline_value"]} | sets


def game_of(moebius: dict[tuple[int, ...], float]) -> np.ndarray:
    """The worth of all coalitions."""
    worth = np.zeros(len(MASKS))
    for players, value in moebius.items():
        mine = sum(1 << player for player in players)
        worth[MASKS & mine == mine] += value
    return worth


def explainers(worth: np.ndarray, index: str) -> dict[str, Any]:
    tree = DecisionTreeRegressor(random_state=0).fit(ROWS, worth)
    characters = 1 - 2 * (ROWS @ ROWS.T % 2)
    spectrum = fs.Spectrum(ROWS, characters @ worth / len(MASKS))
    nobody = np.zeros((1, N_PLAYERS), dtype=np.int64)
    return {
        "tree": fs.TreeExplainer(tree, nobody, precision="double", index=index),
        "spectrum": fs.SpectrumExplainer(spectrum, nobody, index=index),
    }


def compare(files: list[Path], index: str) -> dict[str, Any]:
    """The largest differences, over all orders and sets of both games."""
    gaps = {"tree": 0.0, "spectrum": 0.0}
    for path in files:
        name, order = re.fullmatch(rf"(.*)_index={re.escape(index)}_order=(\d)\.json", path.name).groups()
        worth = game_of(stored(path.with_name(f"{name}_index=Moebius_order={N_PLAYERS}.json")))
        everybody = np.ones((1, N_PLAYERS), dtype=np.int64)
        for kind, explainer in explainers(worth, INDICES.get(index, "shapley")).items():
            if index in INDICES:
                ours = {(j,): value for j, value in enumerate(explainer.shap_values(everybody)[0])}
            else:
                found = explainer.interactions(everybody, order=int(order), index=index)
                ours = dict(zip(found.positions, found.values[0], strict=True))
            theirs = {players: value for players, value in stored(path).items() if players}
            gap = max(abs(ours.get(players, 0.0) - theirs.get(players, 0.0)) for players in ours | theirs)
            gaps[kind] = max(gaps[kind], gap)
    return {"files": len(files), **gaps}


def page(cells: Cells) -> str:
    lines = [
        (name, str(cell["files"]), f"{cell['tree']:.0e}", f"{cell['spectrum']:.0e}")
        for name, cell in cells.found.items()
    ]
    text = (
        "# Values of shapiq's own tests\n\nInteractions of two games of eight players, orders 1 to 8, as shapiq keeps "
        f"them for its tests; the largest difference over all sets and orders.\n{cells.told()}\n"
        "shapiq solves FSII by least squares with large weights, ours is a closed form.\n\n"
    )
    return text + markdown_table(("index", "files", "as a tree", "as a spectrum"), lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="of shapiq")
    files = sorted((parser.parse_args().checkout / FOLDER).glob("*.json"))
    by_index: dict[str, list[Path]] = {}
    for path in files:
        if "product_kernel" not in path.name:
            by_index.setdefault(path.name.split("index=")[1].split("_")[0], []).append(path)
    cells = Cells(RESULTS / "shapiq_truths.json", PACKAGES, wanted=by_index)
    cells.page = lambda: page(cells)
    for index, mine in by_index.items():
        print(index, cells.measure(index, lambda index=index, mine=mine: compare(mine, index), again=True))
    cells.write()


if __name__ == "__main__":
    main()
