"""How the .fshap files beside this script were written, once, at version 0.1.0: `python write_files.py`.

They stay as they are. What later versions cannot read, or read otherwise, breaks the files of every user.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fouriershap as fs

FOLDER = Path(__file__).parent


def trees() -> tuple[fs.TreeExplainer, pd.DataFrame]:
    """Numbers, texts and numbers as categories, missing values; a group; interactions against a background."""
    from lightgbm import LGBMRegressor

    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue", "a label of more than sixteen bytes"], 300)
    X = pd.DataFrame({"a": rng.normal(size=300).round(1), "colour": pd.Categorical(colour)})
    X["b"] = rng.normal(size=300).round(1)
    X["size"] = pd.Categorical(rng.choice([10, 20, 30, 40], 300))
    X.loc[rng.random(300) < 0.1, "a"] = np.nan
    y = np.nan_to_num(X["a"], nan=1.0) * (X["colour"].cat.codes % 3) + X["b"] * (X["size"].cat.codes % 2)
    model = LGBMRegressor(
        n_estimators=12, num_leaves=6, learning_rate=0.4, min_child_samples=5, n_jobs=1, verbose=-1
    ).fit(X, y)
    return fs.TreeExplainer(model, X[:100], groups={"numbers": ["a", "b"]}, n_jobs=1), X[100:105]


def black_box() -> tuple[fs.BlackBoxExplainer, pd.DataFrame]:
    """A spectrum of labels, intervals and a one-hot group, two outputs."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"grade": rng.choice(list("abc"), 120), "age": rng.normal(size=120).round(2)})
    hot = np.eye(3)[rng.integers(0, 3, 120)]
    X[["kind_x", "kind_y", "kind_z"]] = hot

    def predict(rows: pd.DataFrame) -> np.ndarray:
        high = rows["age"].to_numpy() > 0
        letter = rows["grade"].map({"a": 0.0, "b": 1.0, "c": 3.0}).to_numpy()
        return np.column_stack([letter * high + rows["kind_y"], rows["kind_z"] - letter])

    groups = {"kind": ["kind_x", "kind_y", "kind_z"]}
    options: dict[str, Any] = {"method": "swht", "groups": groups, "budget": 3000, "random_state": 0}
    return fs.BlackBoxExplainer(predict, X, min_fidelity=-np.inf, **options), X[:5]


def tables() -> tuple[fs.spectra.Tables, np.ndarray]:
    """Some terms in tables, some without; players of several bits, weights, two outputs."""
    rng = np.random.default_rng(2)
    frequencies = rng.random((30, 10)) < 0.3
    spectrum = fs.Spectrum(frequencies, rng.standard_normal((30, 2)))
    players = [0, 1, 2, 3, 4, 5, 6, 6, 7, 7]
    background, weights = rng.integers(0, 2, size=(40, 10)), rng.random(40)
    return fs.spectra.compile(
        spectrum, background, players=players, weights=weights, memory=30_000
    ), rng.integers(0, 2, size=(5, 10))


def main() -> None:
    """Write the files, and what they said when they were written."""
    said = {}
    for name, make in {"trees": trees, "black_box": black_box, "tables": tables}.items():
        explainer, rows = make()
        explainer.save(FOLDER / f"{name}.fshap", interactions=True)
        said[name] = {
            "rows": json.loads(rows.to_json(orient="split"))
            if isinstance(rows, pd.DataFrame)
            else rows.tolist(),
            "expected_value": np.asarray(explainer.expected_value).tolist(),
            "values": explainer.shap_values(rows).tolist(),
            "interactions": np.asarray(explainer.shap_interaction_values(rows)).tolist(),
        }
    (FOLDER / "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main()
