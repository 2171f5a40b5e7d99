"""The roads: in which of our files a function runs, from a model to its explanation. ``python tests/roads.py``."""

from __future__ import annotations

import inspect
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import xgboost
from sklearn.neural_network import MLPRegressor

import fouriershap as fs

SOURCE = Path(fs.__file__).parent
N_ROWS = 20_000  # enough for tables
N_ASKED, BUDGET = 5000, 1000


def files_on_the_way(work: Callable[[], Any]) -> list[str]:
    """Files of ours in which a function runs, in the order of their first call.

    Importing a module is not walking through it: a first time, without looking, imports what is needed.
    """
    found: dict[str, None] = {}
    name = str(SOURCE)
    work()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if (
            event != "call"
            or not code.co_filename.startswith(name)
            or not code.co_flags & inspect.CO_OPTIMIZED
        ):
            return
        found[str(Path(code.co_filename).relative_to(SOURCE))] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def roads() -> dict[str, list[str]]:
    """The road of a tree model, and that of a black box."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    trees = xgboost.XGBRegressor(n_estimators=20, max_depth=3, n_jobs=1).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0).fit(X, y)
        return {
            "fs.Explainer(xgboost_model, X)(X)": files_on_the_way(lambda: fs.Explainer(trees, X)(X)),
            "fs.Explainer(network.predict, X, budget=...)(X)": files_on_the_way(
                lambda: fs.Explainer(
                    network.predict, X[:N_ASKED], budget=BUDGET, random_state=0, progress=False
                )(X[:N_ASKED])
            ),
        }


if __name__ == "__main__":
    for road, files in roads().items():
        print(f"{road}: {len(files)} files")
        for file in files:
            print(f"    {file}")
