"""Calls one kernel with less memory than its scratch needs: ``python out_of_memory.py walk.predict``.

A program of its own, since a limit of memory holds for a whole process. Prints what the kernel raises.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy import int32 as i32
from numpy import int64 as i64
from numpy import ones, zeros
from numpy import uint32 as u32
from numpy import uint64 as u64

from fouriershap._shapley.indices import SHAPLEY, quadrature

# Scratch of hundreds of megabytes. The arguments are as large, but they are pages that nobody ever touches.
BIG = 1 << 26
SPARE = 64 << 20  # what the process may still get


def whole(*values: int, dtype: Any = i32) -> Any:
    return np.array(values, dtype=dtype)


def direct() -> tuple[Any, ...]:
    """A term of very many atoms."""
    rows, background = zeros((1, 1), np.uint8), zeros((1, 1), u64)
    terms = whole(0, BIG, dtype=i64), zeros(BIG, i32)
    return rows, background, 64, zeros(0), *terms, zeros(1, i32), ones((1, 1)), zeros((1, 1, 1))


def cover() -> tuple[Any, ...]:
    """Very many atoms."""
    terms = whole(0, 1, dtype=i64), zeros(1, i32)
    return *terms, BIG, 8, ones(9, i64), zeros(1, i32), zeros(2, i64), zeros(8, i32)


def group() -> tuple[Any, ...]:
    """Very many players."""
    return whole(0, 1, dtype=i64), zeros(1, i32), zeros(1, i32), BIG, 8, 8, zeros(1, i32), zeros((1, 8), i32)


def spectrum_tables() -> tuple[Any, ...]:
    """A block of 26 bits, without outputs."""
    blocks = whole(26), whole(0, BIG, dtype=i64), zeros(BIG), zeros(2, i64), zeros(0, u32), zeros((0, 0))
    return *blocks, zeros((1, 1, 2)), zeros(1, i32), zeros(1, i64), zeros((1, 26), i32), 1, 0, 1, zeros(0)


def explain() -> tuple[Any, ...]:
    """Very many players."""
    codes = zeros((1, 64), np.uint8), zeros((0, 64), np.uint16), 8, False
    blocks = zeros(2, i32), zeros(1, i32), zeros(0, i32), zeros(0, np.uint16), zeros(0, i32)
    groups = whole(0, 1), zeros((1, 8), i32), zeros(1, i32), ones(1, i32)
    tables = zeros(1, i32), zeros(1, i64), *groups, zeros(8)
    return *codes, *blocks, zeros(1, i32), ones(1, i32), *tables, 64, zeros((8, BIG // 16, 1))


def cut_trees() -> tuple[Any, ...]:
    """Very many nodes."""
    nodes = zeros(BIG, i32), zeros(BIG, i32), zeros(BIG, bool), *zeros((3, BIG), i32)
    features = zeros((0, 1), u64), ones(1, i32), zeros(1, i32), zeros(BIG), ones(1, bool)
    return zeros(1, i32), *nodes, *features, 256, 8, 1.0, 1.0, 1.0


def profile_trees() -> tuple[Any, ...]:
    """Very many nodes."""
    return zeros(1, i32), *zeros((3, BIG), i32), zeros(1, i32), zeros((1, 4))


def fill() -> tuple[Any, ...]:
    """A block of very many patterns, with one leaf and no players."""
    leaves = zeros(2, i64), zeros(0, i32), whole(0, 1, dtype=i64), zeros(1, i32), zeros(2, i64), zeros(0, i32)
    rest = zeros(0), zeros(2, i64), zeros(0, u32), ones((1, 1)), zeros(8), whole(0, 8, dtype=i64)
    tables = zeros(1, i32), zeros(1, i64), zeros((1, 1), i32), 1, 0, 1, zeros(8 * BIG), zeros(1)
    return zeros(BIG), whole(0, BIG, dtype=i64), whole(BIG), *leaves, *rest, *tables


def components() -> tuple[Any, ...]:
    """Very many players, without terms."""
    factors = zeros((0, BIG, 2, 0))
    return factors, factors, zeros(0), zeros(0), zeros(0), zeros((1, 2, 0)), zeros((0, BIG, 1))


def subsets() -> tuple[Any, ...]:
    """26 players, without terms."""
    return zeros((0, 26, 2, 0)), zeros(0), zeros((BIG, 2, 0))


def train() -> tuple[Any, ...]:
    """Very many waves: what a batch needs is worked out for some of its rows at a time."""
    answers, n_waves = (zeros((1, 1), np.float32), zeros((1, 1), np.float32)), BIG // 64
    parameters = zeros(3 * n_waves + 2, np.float32), zeros((2, 3 * n_waves + 2), np.float32)
    return (*answers, zeros((0, 16), i32), zeros((0, 3), np.float32), n_waves, *parameters)


EIGHT = zeros((1, 8), i32), 0, 8
ROWS = zeros((1, 1), i32), 0, 1
AGAINST = *ROWS, zeros((1, 1), i32), ones(1), ones((2, 2))
PATHS = ones(3), whole(4), zeros(1, i64), np.full(4, 0.5), ones(4)
STREAMED = (
    *EIGHT,
    zeros((1, 8), i32),
    ones(8) / 8,
    *quadrature(SHAPLEY, 31),
    ones((33, 33)),
    True,
    9,
    9,
    0,
    True,
)
SETS = *ROWS, zeros((1, 1), i32), ones(1), ones((2, 2, 2)), ones(1, i64), 2, zeros((1, 1, 1))
NO_PAIRS = zeros((1, 1), i32), zeros((1, 1, 1))


def tree(depth: int = 1, n_features: int = 1) -> tuple[Any, ...]:
    """A node with two leaves, which says that it is deeper or has more features."""
    nodes = np.array([[0, 1, 1, 2], [-1, 0, -1, -1], [-1, 0, -1, -1]], dtype=i32)
    features = zeros(n_features, i32), np.full(n_features, 3, i32), zeros(n_features, i32)
    of_tree = zeros(1, i32), zeros(1, i32), ones(1, i32), whole(depth)
    return nodes, ones((3, 1)), *of_tree, *features, zeros(n_features, bool), zeros((0, 1), u64)


def values(n_players: int) -> Any:
    return zeros((1, n_players, 1))


ARGUMENTS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "bits.direct": direct,
    "build.cover": cover,
    "build.group": group,
    "build.spectrum_tables": spectrum_tables,
    "nodes.are_trees": lambda: (zeros(1, i32), *zeros((3, 4 * BIG), i32)),
    "nodes.levels": lambda: (zeros(BIG, i32), zeros(BIG), zeros(2, i64), zeros(BIG, i64), zeros(BIG)),
    "orders.interventional": lambda: (*tree(depth=BIG), *SETS),
    "products.components": components,
    "products.games": lambda: (subsets()[0], zeros((1, BIG, 2, 0)), zeros((0, BIG, 1))),
    "products.subset_sums": subsets,
    "stream.count_twigs": lambda: (*tree(), 8 * BIG, zeros((1, 2), i64)),
    "stream.interventional": lambda: (*tree(), *STREAMED, values(BIG)),
    "tables.explain": explain,
    "tree_blocks.cut_trees": cut_trees,
    "tree_blocks.profile_trees": profile_trees,
    "tree_tables.fill": fill,
    "walk.interventional_joint": lambda: (*tree(), *AGAINST, values(BIG)),
    "walk.interventional_rows": lambda: (*tree(), *AGAINST, values(BIG)),
    "walk.interventional_pairs": lambda: (*tree(depth=BIG), *AGAINST, *NO_PAIRS),
    "walk.path_dependent": lambda: (*tree(), *PATHS, *ROWS, values(BIG // 16)),
    "walk.path_dependent_pairs": lambda: (*tree(depth=BIG), *PATHS, *ROWS, *NO_PAIRS),
    "walk.predict": lambda: (*tree(n_features=BIG // 32), *ROWS, zeros((1, 1))),
    "walk.leaf_visits": lambda: (*tree(), ROWS[0], ROWS[0], 8 * BIG, zeros(1)),
    "waves.train": train,
    "walk.path_shape": lambda: (*tree(), BIG, zeros(1, i32), zeros(1, i32)),
}
# These work in memory that they are given, or on the stack.
WITHOUT_SCRATCH = {
    "bits.evaluate",
    "encode.encode",
    "encode.encode32",
    "encode.pages",
    "leaves.find",
    "nodes.pack",
    "numbers.parse_lines",
    "tables.histogram",
    "waves.factors",
}


def main(name: str) -> None:
    import resource

    from fouriershap._kernels import _native

    family, function = name.split(".")
    kernel, arguments = getattr(getattr(_native, family), function), ARGUMENTS[name]()
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + SPARE, in_use + SPARE))
    try:
        kernel(*arguments)
    except MemoryError as error:
        print(type(error).__name__)


if __name__ == "__main__":
    main(sys.argv[1])
