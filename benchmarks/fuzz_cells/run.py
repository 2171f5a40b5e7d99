"""Models by number: the same seed is the same settings, rows and questions."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

from fuzz_cells import state as states
from fuzz_cells.checks import Outcome, examine
from fuzz_cells.trial import Trial, pick

_LIBRARIES = ("sklearn", "xgboost", "xgboost", "lightgbm", "lightgbm", "catboost", "pipelines")
_ATTEMPTS = 20
_SECONDS_BETWEEN_SAVES = 5.0


def draw(seed: int) -> tuple[np.random.Generator, str, Trial]:
    """A generator for the questions, the library, and the model."""
    rng = np.random.default_rng(seed)
    library = pick(rng, *_LIBRARIES)
    make: Callable[[np.random.Generator], Trial] = import_module(f"fuzz_cells.{library}_models").draw
    for _ in range(_ATTEMPTS):
        try:
            return rng, library, make(rng)
        except Exception as error:  # noqa: BLE001, libraries raise what they like at settings that they refuse
            last = error
    raise RuntimeError(f"seed {seed}: {library} trained none of {_ATTEMPTS} models") from last


def try_one(seed: int) -> tuple[str, Outcome]:
    rng, library, trial = draw(seed)
    with tempfile.TemporaryDirectory() as folder:
        return library, examine(rng, trial, Path(folder))


def try_many(path: Path, first: int, step: int, until: int) -> None:
    """The seeds first, first + step, ... below ``until``, from where the state at ``path`` stopped."""
    state = states.load(path, states.identity(first, step))
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = saved = time.perf_counter()
    before = state["seconds"]
    try:
        for seed in range(first + step * state["done"], until, step):
            path.with_suffix(".seed").write_text(str(seed))  # where a crash of the process would be
            states.add(state, seed, *try_one(seed))
            state["done"] += 1
            state["seconds"] = before + time.perf_counter() - begin
            if time.perf_counter() - saved > _SECONDS_BETWEEN_SAVES:
                states.save(path, state)
                saved = time.perf_counter()
    finally:
        states.save(path, state)
