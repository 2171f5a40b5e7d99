"""Conditional, asymmetric and causal values against those that shapr keeps for its own tests.

    python benchmarks/shapr_snapshots.py CHECKOUT HOUSING

CHECKOUT is one of https://github.com/NorskRegnesentral/shapr, HOUSING a CSV of California housing with the columns of
scikit-learn's source (longitude, ..., median_house_value). Needs rdata. shapr's numbers come from few coalitions and 5
or 1,000 draws of each: gaps are in multiples of what these draws let expect, and of its own errors of coalitions.
"""

from __future__ import annotations

import argparse
import re
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from _cells import Cells
from _common import RESULTS
from _pages import markdown_table

PACKAGES = ("scikit-learn", "rdata")
AIR = ["Solar.R", "Wind", "Temp", "Month", "Day"]
AIR_CHAIN = [AIR[:2], AIR[2:3], AIR[3:]]
ORDERED = {"coalitions": "ordered"}
FLAGS = {"TRUE": True, "FALSE": False, "mix": [True, False, False]}
AIR_CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "asym_cond_reg": (0, {"causal_order": AIR_CHAIN}),
    "asymmetric_conditional": (5, {"causal_order": AIR_CHAIN}),
    "symmetric_conditional": (5, {}),
    "symmetric_marginal_gaussian": (5, {"causal_order": [AIR], "confounded": True}),
    **{
        f"sym_caus_conf_{name}": (5, {"causal_order": AIR_CHAIN, "confounded": flag})
        for name, flag in FLAGS.items()
    },
    **{
        f"asym_caus_conf_{name}": (5, {"causal_order": AIR_CHAIN, "confounded": flag, **ORDERED})
        for name, flag in FLAGS.items()
    },
}
HOUSES = ["MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude"]
HOUSE_CHAIN = [HOUSES[:1], HOUSES[1:3], HOUSES[3:]]
HOUSE_CASES: dict[str, dict[str, Any]] = {
    "gaussian_basic": {"dependence": "gaussian"},
    "copula_basic": {"dependence": "copula"},
    "gaussian_with_groups": {
        "dependence": "gaussian",
        "groups": {"A": HOUSES[:3], "B": HOUSES[3:6], "C": HOUSES[6:]},
    },
    "gaussian_causal_asymmetric": {"dependence": "gaussian", "causal_order": HOUSE_CHAIN},
    "copula_causal_asymmetric_confounding": {
        "dependence": "copula",
        "causal_order": HOUSE_CHAIN,
        "confounded": [True, False, True],
        **ORDERED,
    },
}


def spread_of_draws(explainer: Any, codes: Any, masks: np.ndarray, n_draws: int) -> np.ndarray:
    """Return the variance of conditional means from so many draws, (n_coalitions, n_rows)."""
    plain = replace(explainer.engine.game(codes.dtype), control=None)
    found = plain.means(
        np.asarray(codes, dtype=np.float64), masks, 999, 0
    )  # odd: draws that do not mirror each other
    return np.asarray(found.variances[:, :, 0] * 999 / n_draws)


def gaps(found: np.ndarray, theirs: np.ndarray, spread: np.ndarray | None) -> dict[str, float]:
    gap = np.abs(found - theirs)
    out = {"largest": float(gap.max()), "size": float(np.abs(theirs).mean())}
    if spread is None:
        return out
    z = gap / spread
    shares = {f"within {k}": float((z <= k).mean()) for k in (1, 2, 3)}
    return out | {"spread": float(spread.mean()), "z": float(np.sqrt((z**2).mean()))} | shares


def air(folder: Path, name: str) -> dict[str, Any]:
    """The linear model of the air quality in New York: its coalitions, and values by shapr's weights of these."""
    import rdata
    from sklearn.linear_model import LinearRegression

    import fouriershap as fs

    def read(name: str) -> Any:
        return rdata.read_rds(folder / f"tests/testthat/_snaps/asymmetric-causal-output/output_{name}.rds")

    with_outputs, kept = read("asym_cond_reg")["internal"]["data"], read(name)
    X, Q = (with_outputs[part][AIR].astype(float) for part in ("x_train", "x_explain"))
    model = LinearRegression().fit(X, np.asarray(with_outputs["x_train_y_hat"]))
    n_draws, options = AIR_CASES[name]
    explainer = fs.Explainer(
        model, X, feature_perturbation="conditional", dependence="gaussian", check=False, **options
    )
    about = kept["internal"]["objects"]
    weights, masks = np.asarray(about["W"])[1:], np.asarray(about["S"]).astype(bool)[1:-1]
    codes = explainer.inputs.encode(Q).codes
    game = explainer.engine.game(codes.dtype)  # type: ignore[attr-defined]
    means = game.means(np.asarray(codes, dtype=np.float64), masks, 2, 0).values[:, :, 0]
    start = np.full(len(Q), float(kept["internal"]["parameters"]["phi0"][0]))
    values = (weights @ np.vstack([start, means, model.predict(Q)])).T
    theirs = kept["shapley_values_est"].iloc[:, 2:].to_numpy(float)
    of_means = kept["internal"]["output"]["dt_vS"].iloc[1:-1, 1:].to_numpy(float)
    if not n_draws:
        return {"means": gaps(means, of_means, None), "values": gaps(values, theirs, None)}
    spread = spread_of_draws(explainer, codes, masks, n_draws)
    of_values = np.sqrt((weights[:, 1:-1] ** 2) @ spread).T
    return {"means": gaps(means, of_means, np.sqrt(spread)), "values": gaps(values, theirs, of_values)}


def houses(folder: Path, housing: Path, name: str) -> dict[str, Any]:
    """The forest of California housing; shapr starts at the mean of the target, to which our first values are moved."""
    import pandas as pd
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import train_test_split

    import fouriershap as fs
    from fouriershap._shapley.coalitions import coalition_weights

    d = pd.read_csv(housing)
    per_house = (d[name] / d["households"] for name in ("total_rooms", "total_bedrooms", "population"))
    rooms, bedrooms, people = per_house
    columns = (
        d["median_income"],
        d["housing_median_age"],
        rooms,
        bedrooms,
        d["population"],
        people,
        d["latitude"],
        d["longitude"],
    )
    parts = train_test_split(
        pd.concat(columns, axis=1, keys=HOUSES),
        d["median_house_value"] / 1e5,
        test_size=0.99,
        random_state=42,
    )
    X, Q, y = parts[0], parts[1][:5], parts[2]
    forest = RandomForestRegressor(random_state=1).fit(X, y)
    theirs, errors = snapshot(folder, f"test_rf_regressor_{name}")
    explainer = fs.Explainer(
        forest, X, feature_perturbation="conditional", tolerance=0.003, progress=False, **HOUSE_CASES[name]
    )
    values, own = explainer.shap_values(Q, errors=True)
    engine: Any = explainer.engine
    n = values.shape[1]
    masks = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)
    weights = coalition_weights(masks, engine.index)
    values = values + (y.mean() - explainer.expected_value) * weights[:, 0]
    codes = explainer.inputs.encode(Q).codes
    drawn = weights[:, 1:-1] ** 2 @ spread_of_draws(explainer, codes, masks[1:-1], 1000)
    return {"values": gaps(values, theirs, np.sqrt(drawn.T + errors**2 + own**2))}


def snapshot(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return values and standard deviations of a test of pyshapr."""
    for path in sorted(folder.glob("python/tests/output/__snapshots__/*.ambr")):
        found = re.search(rf"# name: \w+\.{name}\n(.*?)\n# ---", path.read_text(), flags=re.DOTALL)
        if found:
            tables = re.findall(r"'shapley_values_(?:est|sd)': '''\n(.*?)'''", found[1], flags=re.DOTALL)
            lines = [[line.strip("| ").split("|") for line in t.strip().splitlines()[2:]] for t in tables]
            values, errors = (np.array(each, dtype=float)[:, 3:] for each in lines)
            return values, errors
    raise SystemExit(f"{folder} has no snapshot of {name}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("housing", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    work = {f"air quality, {name}": partial(air, options.checkout, name) for name in AIR_CASES}
    work |= {
        f"California, {name}": partial(houses, options.checkout, options.housing, name)
        for name in HOUSE_CASES
    }
    cells = Cells(RESULTS / "shapr_snapshots.json", PACKAGES, wanted=work)
    for name, make in work.items():
        print(name, cells.measure(name, make), flush=True)
    cells.page = lambda: page(cells)
    cells.write()


def page(cells: Cells) -> str:
    """A line for each snapshot."""
    lines = []
    for name, cell in cells.found.items():
        for what in ("means", "values"):
            if what in cell:
                found = cell[what]
                told = (found.get(key) for key in ("spread", "z", "within 1", "within 2", "within 3"))
                numbers = ["" if each is None else f"{each:.3g}" for each in told]
                lines.append((name, what, f"{found['size']:.3g}", f"{found['largest']:.2g}", *numbers))
    header = ("snapshot", "of", "mean size", "largest gap", "sd", "rms z", "z <= 1", "z <= 2", "z <= 3")
    text = (
        "# shapr's snapshots\n\nValues that shapr keeps for its own tests, of a linear model of the air quality in New "
        "York and of a forest of California housing. sd: the standard deviation of shapr's numbers, from its draws (5 "
        "for the first model, 1,000 for the second; `asym_cond_reg` regresses, and has none) and its own errors of "
        "sampled coalitions; z: the gap over it. `means` are v(S); values of the first model are by shapr's weights of "
        "coalitions, which for asymmetric values are not those of the definition (.64 and .36 in a group of two, in "
        "place of .5).\n"
        f"{cells.told()}\n\n"
    )
    return text + markdown_table(header, lines) + "\n"


if __name__ == "__main__":
    main()
