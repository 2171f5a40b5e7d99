"""What a drawn model is to the checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fuzz_cells.rows import Admits, Rows, Table

SINGLE, DOUBLE = 1e-5, 1e-9  # relative differences that rounding explains, by how a library adds up leaves


class Trial(NamedTuple):
    """A trained model with the rows it was trained on, and its library's own answer."""

    kind: str
    model: Any
    table: Table
    admits: Admits
    X: Rows
    margin: Callable[[Rows], np.ndarray]  # rows -> (n_rows,) or (n_rows, n_outputs)
    tolerance: float
    suffix: str = ""  # of a file by which the library saves the whole of the model
    save: Callable[[str], Any] | None = None
    has_steps: bool = False  # whether its trees have other columns than its rows


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def settings(rng: np.random.Generator, **choices: tuple[Any, ...]) -> dict[str, Any]:
    """One of the values of each setting; ``...`` stands for the library's own default."""
    drawn = {name: pick(rng, *values) for name, values in choices.items()}
    return {name: value for name, value in drawn.items() if value is not ...}
