"""Whether an installed fouriershap works, with NumPy and narwhals alone: no pytest, no model library.

``python tests/smoke.py --native`` also requires the compiled kernels; a wheel without them is no release.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from itertools import combinations
from math import factorial
from pathlib import Path

import numpy as np

import fouriershap as fs
from fouriershap import _kernels


def stump(feature: int, threshold: float, left: float, right: float) -> dict[str, object]:
    """A tree of one split, in XGBoost's JSON."""
    return {
        "tree_param": {"size_leaf_vector": "0"},
        "left_children": [1, -1, -1],
        "right_children": [2, -1, -1],
        "split_indices": [feature, 0, 0],
        "split_conditions": [threshold, left, right],
        "default_left": [1, 0, 0],
        "sum_hessian": [4.0, 2.0, 2.0],
        "categories_nodes": [],
    }


def model() -> dict[str, object]:
    """Two stumps, and a tree of two features, by hand."""
    deep = stump(0, 0.5, 0.0, 0.0) | {
        "left_children": [1, -1, 3, -1, -1],
        "right_children": [2, -1, 4, -1, -1],
        "split_indices": [0, 0, 2, 0, 0],
        "split_conditions": [0.5, -1.0, 0.25, 2.0, 5.0],
        "default_left": [1, 0, 0, 0, 0],
        "sum_hessian": [4.0, 2.0, 2.0, 1.0, 1.0],
    }
    trees = [stump(0, 0.0, -1.0, 1.0), stump(1, 0.75, 0.5, -0.25), deep]
    booster = {"name": "gbtree", "model": {"trees": trees, "tree_info": [0, 0, 0]}}
    parameters = {"num_feature": "3", "num_class": "0", "base_score": "0.5"}
    learner = {
        "gradient_booster": booster,
        "learner_model_param": parameters,
        "objective": {"name": "reg:squarederror"},
    }
    return {"learner": learner, "version": [2, 1, 0]}


def predict(rows: np.ndarray) -> np.ndarray:
    """The same trees, written out."""
    a, b, c = rows.T
    deep = np.where(a < 0.5, -1.0, np.where(c < 0.25, 2.0, 5.0))
    return 0.5 + np.where(a < 0, -1.0, 1.0) + np.where(b < 0.75, 0.5, -0.25) + deep


def by_definition(row: np.ndarray, background: np.ndarray) -> np.ndarray:
    """SHAP values by all coalitions."""
    n = len(row)

    def worth(members: tuple[int, ...]) -> float:
        mixed = background.copy()
        mixed[:, list(members)] = row[list(members)]
        return float(predict(mixed).mean())

    values = np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            share = factorial(size) * factorial(n - size - 1) / factorial(n)
            for chosen in combinations(others, size):
                values[i] += share * (worth((*chosen, i)) - worth(chosen))
    return values


def main(arguments: list[str]) -> None:
    """Explain, save, load, and ask the command for its version."""
    rng = np.random.default_rng(0)
    background, X = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
    wanted = np.array([by_definition(row, background) for row in X])
    with tempfile.TemporaryDirectory() as folder:
        file, saved = Path(folder) / "model.json", Path(folder) / "model.fshap"
        file.write_text(json.dumps(model()))
        explainer = fs.Explainer(file, background)
        np.testing.assert_allclose(explainer.shap_values(X), wanted, atol=1e-5)
        np.testing.assert_allclose(explainer.predict(X), predict(X), atol=1e-5)
        explainer.save(saved)
        np.testing.assert_allclose(fs.load(saved).shap_values(X), wanted, atol=1e-5)
    h = fs.walsh_hadamard(lambda bits: 3.0 * bits[:, 0] * bits[:, 1] - bits[:, 2], n_bits=3)
    tables = fs.SpectrumExplainer(h, background=np.zeros((1, 3)))
    np.testing.assert_allclose(tables.shap_values([[1, 1, 1]]), [[1.5, 1.5, -1.0]], atol=1e-9)
    said = subprocess.run(
        [sys.executable, "-m", "fouriershap.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert fs.__version__ in said.stdout, said
    if "--native" in arguments:
        assert _kernels.backend() == "native", "the compiled kernels are missing"
    print(f"fouriershap {fs.__version__}, {_kernels.backend()} kernels, {_kernels.instruction_set()}: works")


if __name__ == "__main__":
    main(sys.argv[1:])
