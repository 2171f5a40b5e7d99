"""Call one kernel with less memory than its scratch needs: ``python out_of_memory.py walk.predict``.

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
from reference_kernels import Bound, make_all

# Scratch of hundreds of megabytes. The arguments are as large, but their pages are never touched.
BIG = 1 << 26
SPARE = 64 << 20  # what the process may still get


def whole(*values: int, dtype: Any = i32) -> Any:
    return np.array(values, dtype=dtype)


def direct() -> tuple[Any, ...]:
    """A term of very many atoms."""
    terms = Bound("bits.Terms", (whole(0, BIG, dtype=i64), zeros(BIG, i32), ones((1, 1))))
    return terms, zeros((1, 1), np.uint8), zeros((1, 1), u64), 64, zeros(0), zeros(1, i32), zeros((1, 1, 1))


def evaluate() -> tuple[Any, ...]:
    """Very many terms, without outputs."""
    terms = Bound("bits.Terms", (zeros(BIG // 4 + 1, i64), zeros(0, i32), zeros((BIG // 4, 0))))
    return terms, zeros((0, 1), u64), 0, 1, zeros((64, 0))


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
    bound = Bound("build.SpectrumBlocks", (*blocks, zeros((1, 1, 2))))
    return bound, zeros(1, i32), zeros(1, i64), zeros((1, 26), i32), zeros(0)


def explain() -> tuple[Any, ...]:
    """Very many players."""
    codes = zeros((1, 64), np.uint8), zeros((0, 64), np.uint16), 8, False
    cuts = zeros(2, i32), zeros(1, i32), zeros(0, i32), zeros(0, np.uint16), zeros(0, i32)
    blocks = Bound("tables.Blocks", (*cuts, zeros(1, i32), ones(1, i32)))
    groups = whole(0, 1), zeros((1, 8), i32), zeros(1, i32), ones(1, i32)
    tables = Bound("tables.TableSet", (blocks, zeros(1, i32), zeros(1, i64), *groups, zeros(8), BIG // 16, 1))
    return tables, *codes, 64, zeros((8, BIG // 16, 1))


def leaves(n: int) -> Any:
    """Very many trees of one leaf."""
    return np.full(n, -1, i32)


def cut_trees() -> tuple[Any, ...]:
    """Very many nodes."""
    n = BIG // 4
    nodes = leaves(n), zeros(n, i32), zeros(n, bool), zeros(n, i32), zeros(n, i32), leaves(n)
    rest = zeros((0, 1), u64), ones(1, i32), zeros(1, i32), zeros(n)
    return Bound("tree_blocks.Trees", (zeros(1, i32), *nodes, *rest)), ones(1, bool), 256, 8, 1.0, 1.0, 1.0


def profile_trees() -> tuple[Any, ...]:
    """Very many nodes."""
    return zeros(1, i32), leaves(BIG // 2), *zeros((2, BIG // 2), i32), zeros(1, i32), zeros((1, 4))


def fill() -> tuple[Any, ...]:
    """A block of very many patterns, with one leaf and no players."""
    features = whole(0, 2, dtype=i64), whole(8192, 8192)
    leaf = whole(0, 1, dtype=i64), zeros(1, i32), zeros(2, i64), zeros(0, i32), zeros(0)
    fails = whole(0, 16384, dtype=i64), zeros(16384, u32)
    quadrature_of = ones((1, 1)), zeros(8), whole(0, 8, dtype=i64)
    blocks = Bound("tree_tables.Blocks", (whole(BIG), *features, *leaf, *fails, *quadrature_of))
    layout = Bound("tree_tables.Layout", (zeros(1, i32), zeros(1, i64), zeros((1, 1), i32), 1))
    return (
        blocks,
        layout,
        zeros((BIG, 1)),
        whole(0, BIG, dtype=i64),
        0,
        1,
        zeros(8 * BIG),
        zeros((1, 1)),
        None,
    )


def components() -> tuple[Any, ...]:
    """Very many players, without terms."""
    factors = zeros((0, BIG, 2, 0))
    return factors, factors, zeros(0), zeros((0, BIG)), zeros(0), zeros((1, 2, 0)), zeros((0, BIG, 1))


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
INDEX = Bound("stream.Index", (*quadrature(SHAPLEY, 31), ones((33, 33)), True))
STREAMED = *EIGHT, zeros((1, 8), i32), ones(8) / 8, INDEX, 9, 9, 0, True

MIXED = *EIGHT, zeros((1, 8), i32), ones((8, 2)), ones((8, 2)), INDEX, 9, 9, True


def paths(n_points: int = 4) -> Bound:
    points = whole(n_points), zeros(1, i64), zeros(n_points), zeros(n_points)
    return Bound("walk.Paths", (ones(3), *points))


def tree(n_players: int = 1, n_features: int = 1) -> Bound:
    """A node with two leaves."""
    nodes = np.array([[0, 1, 1, 2], [-1, 0, -1, -1], [-1, 0, -1, -1]], dtype=i32)
    features = zeros(n_features, i32), np.full(n_features, 3, i32), zeros(n_features, i32)
    sets = zeros(n_features, bool), zeros((0, 1), u64)
    return Bound(
        "walk.Trees", (nodes, ones((3, 1)), zeros(1, i32), zeros(1, i32), *features, *sets, n_players)
    )


def orders() -> tuple[Any, ...]:
    """Very many rows, each of which may become a group."""
    n = 1 << 17
    sets = ones((2, 2, 2)), ones(1, i64), 2, zeros((n, 1, 1))
    return tree(), zeros((1, n), i32), 0, n, zeros((1, 1), i32), ones(1), *sets


def values(n_players: int) -> Any:
    return zeros((1, n_players, 1))


ARGUMENTS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "bits.direct": direct,
    "bits.evaluate": evaluate,
    "build.cover": cover,
    "build.group": group,
    "build.spectrum_tables": spectrum_tables,
    "nodes.are_trees": lambda: (zeros(1, i32), *zeros((3, 4 * BIG), i32)),
    "nodes.levels": lambda: (zeros(BIG, i32), zeros(BIG), zeros(2, i64), zeros(BIG, i64), zeros(BIG)),
    "orders.interventional": orders,
    "products.components": components,
    "products.games": lambda: (subsets()[0], zeros((1, BIG, 2, 0)), zeros((0, BIG, 1))),
    "products.subset_sums": subsets,
    "stream.count_bottom_subtrees": lambda: (tree(BIG), zeros((1, 2), i64)),
    "stream.interventional": lambda: (tree(BIG // 8), *STREAMED, zeros((8, BIG // 8, 1))),
    "stream.mixed": lambda: (tree(BIG // 8), *MIXED, zeros((8, BIG // 8, 1))),
    "tables.explain": explain,
    "tree_blocks.cut_trees": cut_trees,
    "tree_blocks.profile_trees": profile_trees,
    "tree_tables.fill": fill,
    "walk.interventional": lambda: (tree(BIG), *AGAINST, False, values(BIG)),
    "walk.interventional_classes": lambda: (
        tree(BIG),
        *AGAINST[:-1],
        zeros(BIG, i32),
        zeros((1, 1, 2)),
        values(BIG),
    ),
    "walk.path_dependent": lambda: (tree(BIG // 16), paths(), *ROWS, values(BIG // 16)),
    "walk.path_dependent_sets": lambda: (tree(), paths(BIG), *ROWS, 1, ones(1, i64), 2, values(1)),
    "walk.predict": lambda: (tree(n_features=BIG // 32), *ROWS, zeros((1, 1))),
    "walk.chains": lambda: (
        Bound("walk.LeafBits", (tree(n_players=BIG),)),
        ROWS[0],
        0,
        ROWS[0],
        zeros((1, 2, BIG), i64),
        zeros((1, 2, BIG - 1, 1)),
    ),
    "walk.leaf_visits": lambda: (tree(2 * BIG), ROWS[0], ROWS[0], zeros(1)),
    "waves.train": train,
}
# These work in memory that they are given, on the stack, or in very little.
WITHOUT_SCRATCH = {
    "walk.coalitions",
    "encode.encode",
    "encode.encode32",
    "encode.remap",
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
    kernel = getattr(getattr(_native, family), function)
    arguments = make_all(ARGUMENTS[name](), lambda of: getattr(_native, of))
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + SPARE, in_use + SPARE))
    try:
        kernel(*arguments)
    except MemoryError as error:
        print(type(error).__name__)


if __name__ == "__main__":
    main(sys.argv[1])
