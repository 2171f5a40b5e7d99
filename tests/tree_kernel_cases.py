"""Random trees on codes, and random calls of every kernel that works on them: `CASES`, by the kernel's name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from fouriershap._shapley.indices import (
    INDICES,
    INTERACTION_INDICES,
    SHAPLEY,
    leaf_shares,
    moments,
    points,
    quadrature,
)
from fouriershap._shapley.sets import n_places, radix_of, set_keys
from fouriershap._shapley.trees import walk
from fouriershap._trees import arithmetic
from fouriershap._trees.codes import CodedTrees, code_trees
from kernel_cases import Case
from reference_kernels import Bound, reference_of
from strategies import generators
from tree_oracles import RandomTrees, random_codes

Ints = NDArray[np.int32]


@st.composite
def ensembles(
    draw: st.DrawFn, most_features: int = 7, most_thresholds: int = 90, long: bool = False
) -> tuple[CodedTrees, Ints, np.random.Generator]:
    """A random coded ensemble, its players, and the generator that made it.

    ``long``: one path or more with over 64 players.
    """
    rng = draw(generators())
    n_features = 90 if long else draw(st.integers(1, most_features))
    categorical = draw(st.sets(st.integers(0, n_features - 1), max_size=3))
    no_cover = draw(st.sampled_from([0.0, 0.2]))
    trees = RandomTrees(rng, n_features, categorical, draw(st.integers(1, most_thresholds)), no_cover)
    shapes = draw(st.lists(st.sampled_from(["tree", "chain", "leaf"]), min_size=1, max_size=3))
    for shape in ["chain"] * long + shapes:
        trees.chain(max(9, 2 * n_features)) if shape == "chain" else trees.grow(4 if shape == "tree" else 0)
    coded = trees.coded(draw(st.integers(1, 3)), draw(st.booleans()))
    players = rng.permutation(n_features)
    if not long and draw(st.booleans()):
        players = np.unique(rng.integers(max(1, n_features // 2), size=n_features), return_inverse=True)[1]
    return coded, players.astype(np.int32), rng


# nodes


@st.composite
def are_trees(draw: st.DrawFn) -> Case:
    """Trees, and what somebody made of them: a number changed, a tree's nodes or roots left out."""
    coded, _, rng = draw(ensembles())
    e = coded.ensemble
    arrays = [e.roots.copy(), e.feature.copy(), e.left.copy(), e.right.copy()]
    change = draw(st.sampled_from(["nothing", "number", "roots", "none", "nodes"]))
    if change == "number":
        which = arrays[draw(st.integers(0, 3))]
        which[rng.integers(len(which))] = draw(st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 5, 2**31 - 1]))
    elif change == "roots":
        arrays[0] = arrays[0][1:]
    elif change == "none":
        arrays = [array[:0] for array in arrays]
    elif change == "nodes":
        arrays[1:] = [array[:-1] for array in arrays[1:]]
    return Case(tuple(arrays))


@st.composite
def levels(draw: st.DrawFn) -> Case:
    rng, n_features = draw(generators()), draw(st.sampled_from([1, 3, 70]))
    n, dtype = draw(st.sampled_from([0, 1, 9, 300])), draw(st.sampled_from([np.float32, np.float64]))
    level = rng.choice([-np.inf, -1.5, -0.0, 0.0, 1e-30, 2.0, 3.0, 7.0, np.inf], n).astype(dtype)
    level[::2] += rng.integers(0, 40, len(level[::2]))
    feature = rng.integers(0, n_features, n).astype(np.int32)
    written = np.ones(n_features + 1, dtype=np.int64), np.ones(n, dtype=np.int64), np.ones(n, dtype=dtype)
    return Case((feature, level, *written))


@st.composite
def pack(draw: st.DrawFn) -> Case:
    coded, _, _ = draw(ensembles())
    e = coded.ensemble
    arrays = e.feature, coded.cut, e.missing_left, e.category_set, e.left, e.right
    return Case((*arrays, np.zeros(e.n_features, dtype=np.int32), np.zeros((e.n_nodes, 4), dtype=np.int32)))


# leaves


@st.composite
def find_leaves(draw: st.DrawFn) -> Case:
    coded, _, rng = draw(ensembles())
    e, dtype = coded.ensemble, draw(st.sampled_from([np.float32, np.float64]))
    rows = rng.integers(-2, 95, (draw(st.sampled_from([0, 1, 9, 300])), e.n_features)).astype(dtype)
    rows += rng.choice([0, 0.5], rows.shape)
    strange = rng.random(rows.shape) < 0.1
    rows[strange] = rng.choice([np.nan, np.inf, -np.inf, -0.5, 1e30], strange.sum())
    threshold = np.where(rng.random(e.n_nodes) < 0.05, np.nan, e.threshold).astype(dtype)
    nodes = e.feature, threshold, e.left, e.right, e.missing_left, e.category_set
    out = np.full((len(rows), e.n_trees), -7, np.int32)
    trees = Bound("leaves.Trees", (e.roots, *nodes, e.set_start, e.set_categories))
    return Case((trees, rows, out))


# tree_blocks, tree_tables


def coded_trees(coded: CodedTrees, players: Ints) -> Bound:
    e = coded.ensemble
    shape = (e.roots, e.feature, coded.cut, e.missing_left, e.left, e.right, e.category_set)
    return Bound("tree_blocks.Trees", (*shape, coded.set_bits, coded.book.n_codes, players, e.cover))


@st.composite
def cut_trees(draw: st.DrawFn) -> Case:
    coded, players, rng = draw(ensembles())
    wanted = rng.random(coded.ensemble.n_trees) < 0.8
    limits = draw(st.sampled_from([(256, 8), (16, 3), (4096, 12)]))
    return Case((coded_trees(coded, players), wanted, *limits, 0.7, 0.03, 0.001), rtol=1e-12)


@st.composite
def profile_trees(draw: st.DrawFn) -> Case:
    coded, players, _ = draw(ensembles(most_features=12))
    e = coded.ensemble
    return Case((e.roots, e.feature, e.left, e.right, players, np.empty((e.n_trees, 4))))


def games(rng: np.random.Generator, blocks: dict[str, Any], n_players: int) -> Bound:
    """Groups of players, each with a game of its own, in which others are merged, with all laws of t."""
    group = np.unique(rng.integers(0, 3, n_players), return_inverse=True)[1]
    n_groups = int(group.max()) + 1
    merged = np.tile(np.arange(n_players), (n_groups, 1))
    kind = np.zeros((n_groups, n_players), dtype=np.int64)
    for number in range(n_groups):
        other = group != number
        merged[number, other] = n_players + group[other]
        kind[number, other] = 1 + group[other] % 2
    laws = np.concatenate([np.zeros((n_groups, 1)), rng.integers(0, 3, (n_groups, 2))], axis=1)
    block = np.repeat(np.arange(len(blocks["n_patterns"])), np.diff(blocks["leaf_start"]))
    first = np.repeat(blocks["player_start"][block], np.diff(blocks["leaf_player_start"]))
    owner = blocks["players"][first + blocks["leaf_players"]]
    arrays = (owner, group, merged, kind, laws)
    return Bound("tree_tables.Games", tuple(array.astype(np.int32) for array in arrays))


@st.composite
def fill(draw: st.DrawFn) -> Case:
    """Tables with any players in any columns: a player has its column in one table of its block or in none."""
    coded, players, rng = draw(ensembles())
    order, dtype = draw(st.integers(1, 2)), draw(st.sampled_from([np.float32, np.float64]))
    wanted = np.ones(coded.ensemble.n_trees, dtype=bool)
    trees = coded_trees(coded, players).make(reference_of)
    blocks = reference_of("tree_blocks").cut_trees(trees, wanted, 256, 8, 0.7, 0.03, 1e-3)
    patterns, width = blocks["n_patterns"], coded.ensemble.values.shape[1]
    offset = np.concatenate([[0], np.cumsum(patterns, dtype=np.int64)])
    n_channels, histograms = draw(st.integers(1, 4)) if order == 1 else 1, np.empty((0, 1))
    if draw(st.booleans()):
        signs = rng.choice([-1.0, 1.0], size=n_channels)
        histograms = rng.random((offset[-1], n_channels)) / np.repeat(patterns, patterns)[:, None] * signs
    n_channels = histograms.shape[1]
    sizes = np.diff(blocks["player_start"])
    n_slots = int(sizes.max(initial=1)) if order == 1 else max(1, n_places(blocks["player_start"]))
    table_block = np.sort(np.concatenate([np.arange(len(patterns)), rng.integers(len(patterns), size=2)]))
    shown = np.argsort(rng.random((len(table_block), max(n_slots, 8))), axis=1)[:, :8]
    slots = np.full((len(table_block), n_slots), -1, dtype=np.int32)
    for table, columns in enumerate(shown):
        for slot, place in enumerate(columns[columns < n_slots]):
            slots[table, place] = slot
    sizes = patterns[table_block].astype(np.int64) * (8 * width * n_channels)
    table_offset = np.cumsum(sizes) - sizes
    names = reference_of("tree_tables").Blocks._fields[:10]
    leaves = [blocks[name] for name in names]
    bound = Bound("tree_tables.Blocks", (*leaves, coded.ensemble.values, *quadrature(SHAPLEY, 16)))
    layout = Bound("tree_tables.Layout", (table_block.astype(np.int32), table_offset, slots, order))
    out = np.full(sizes.sum(), 7, dtype=dtype), np.full((len(blocks["leaf_node"]), n_channels), 7.0)
    structured = order == 1 and draw(st.booleans()) and bool(len(histograms))
    out = *out, games(rng, blocks, int(players.max()) + 1) if structured else None
    arguments = (bound, layout, histograms, offset, 0, len(table_block), *out)
    return Case(arguments, *((1e-5, 1e-5) if dtype == np.float32 else (1e-11, 1e-9)))


# walk


@st.composite
def walks(
    draw: st.DrawFn, most_features: int = 30, long: bool = False
) -> tuple[walk.WalkTrees, CodedTrees, np.random.Generator]:
    coded, players, rng = draw(ensembles(most_features, long=long))
    return walk.prepare(coded, players), coded, rng


def bound(trees: walk.WalkTrees) -> Bound:
    return Bound("walk.Trees", tuple(getattr(trees, name) for name in reference_of("walk").Trees._fields))


def row_range(rng: np.random.Generator, n_rows: int) -> tuple[int, int]:
    first, last = sorted(rng.integers(n_rows + 1, size=2).tolist())
    return (0, n_rows) if rng.random() < 0.5 else (first, last)


@st.composite
def interventional(draw: st.DrawFn) -> Case:
    """Blocks of rows and chunks of background that take one to four words, and several of them.

    With more than 64 players on a path rows are walked one by one.
    """
    trees, coded, rng = draw(st.one_of(walks(long=True), walks(30)))
    shapes = [(1, 1), (3, 70), (70, 3), (150, 150), (300, 40), (40, 300), (9, 600)]
    if trees.tree_players.max() > 64:  # of which the reference works on every leaf of a long chain
        shapes = shapes[:3]
    n_rows, n_background = draw(st.sampled_from(shapes))
    codes, background = random_codes(rng, coded, n_rows), random_codes(rng, coded, n_background)
    weights = rng.dirichlet(np.ones(n_background))
    out = rng.standard_normal((n_rows, trees.n_players, trees.n_outputs))
    index = draw(st.sampled_from([*INDICES.values()]))
    by_row = draw(st.booleans())
    given = (codes, *row_range(rng, n_rows), background, weights, trees.moments(index), by_row, out)
    return Case((bound(trees), *given), atol=1e-9)


@st.composite
def interventional_classes(draw: st.DrawFn) -> Case:
    """Counts of players of several classes, with any weights."""
    trees, coded, rng = draw(walks(12))
    n_rows, n_background = draw(st.sampled_from([(1, 1), (3, 70), (30, 9), (2, 2100)]))
    codes, background = random_codes(rng, coded, n_rows), random_codes(rng, coded, n_background)
    kind = rng.integers(0, draw(st.integers(1, 3)), trees.n_players)
    sizes = np.minimum(np.bincount(kind), trees.tree_players.max(initial=0))
    steps = np.concatenate([[1], np.cumprod(sizes[:-1] + 1)])[kind].astype(np.int32)
    n_counts = int(np.prod(sizes + 1))
    weights = rng.dirichlet(np.ones(n_background))
    out = rng.standard_normal((n_rows, trees.n_players, trees.n_outputs))
    pairs = rng.standard_normal((n_counts, n_counts, 2))
    pairs[:, 0, 0] = pairs[0, :, 1] = 0  # nobody fails
    given = (codes, *row_range(rng, n_rows), background, weights, steps, pairs, out)
    return Case((bound(trees), *given), atol=1e-9)


def paths(draw: st.DrawFn, trees: walk.WalkTrees) -> Bound:
    """Quadrature of a number of points for each tree: no fewer than it needs, all that have code of their own."""
    enough = -(-int(trees.tree_players.max(initial=1)) // 8) * 4
    sizes = [n for n in (4, 8, 12, 16, 20, 48) if n >= enough]
    n_points = np.array([draw(st.sampled_from(sizes)) for _ in range(trees.n_trees)], dtype=np.int32)
    t, weights = zip(*(points(SHAPLEY, n) for n in n_points.tolist()), strict=True)
    start = np.concatenate([[0], np.cumsum(n_points)])[:-1].astype(np.int64)
    return Bound("walk.Paths", (trees.ratio, n_points, start, np.concatenate(t), np.concatenate(weights)))


@st.composite
def path_dependent(draw: st.DrawFn) -> Case:
    trees, coded, rng = draw(st.one_of(walks(long=True), walks(30), walks(7)))
    n_rows = draw(st.sampled_from([18, 1, 16]))  # two blocks of rows, one, and one that is full
    given = (random_codes(rng, coded, n_rows), *row_range(rng, n_rows))
    out = rng.standard_normal((n_rows, trees.n_players, trees.n_outputs))
    return Case((bound(trees), paths(draw, trees), *given, out), atol=1e-9)


@st.composite
def interventional_orders(draw: st.DrawFn) -> Case:
    """Some of the sets; long paths, too, which the word of a list does not hold."""
    order = draw(st.sampled_from([1, 2, 3, 4, 9]))  # sums side by side: up to 4, up to 8, and more
    trees, coded, rng = draw(walks(draw(st.sampled_from([3, 6, 14 if order < 4 else 6]))))
    players = np.arange(trees.n_players)
    every = [set_keys(np.array(list(combinations(players, s))), trees.n_players) for s in range(1, order + 1)]
    keys = np.concatenate([keys for keys in every if keys.size])
    keys = keys[rng.random(len(keys)) < draw(st.sampled_from([1.0, 0.6]))]
    n_rows, n_background = draw(st.sampled_from([(1, 1), (3, 30), (30, 3), (25, 25)]))
    codes, background = random_codes(rng, coded, n_rows), random_codes(rng, coded, n_background)
    weights = rng.dirichlet(np.ones(n_background))
    shares = leaf_shares(
        draw(st.sampled_from([*INTERACTION_INDICES.values()])), order, int(trees.tree_players.max(initial=0))
    )
    out = rng.standard_normal((n_rows, len(keys), trees.n_outputs))
    against = (codes, *row_range(rng, n_rows), background, weights)
    return Case((bound(trees), *against, shares, keys, radix_of(trees.n_players), out), atol=1e-9)


@st.composite
def path_dependent_sets(draw: st.DrawFn) -> Case:
    """Some of the sets of a size; more rows than a block, and paths of more sets than rows."""
    size = draw(st.sampled_from([1, 2, 3, 5]))
    trees, coded, rng = draw(walks(draw(st.sampled_from([3, 8, 12]))))
    sets = np.array(list(combinations(range(trees.n_players), size)), dtype=np.int64).reshape(-1, size)
    keys = set_keys(sets, trees.n_players)
    keys = keys[rng.random(len(keys)) < draw(st.sampled_from([1.0, 0.6]))]
    n_rows = draw(st.sampled_from([1, 20, 300]))
    out = rng.standard_normal((n_rows, len(keys), trees.n_outputs))
    given = (
        random_codes(rng, coded, n_rows),
        *row_range(rng, n_rows),
        size,
        keys,
        radix_of(trees.n_players),
        out,
    )
    return Case((bound(trees), paths(draw, trees), *given), atol=1e-9)


@st.composite
def predict(draw: st.DrawFn) -> Case:
    trees, coded, rng = draw(walks())
    n_rows = draw(st.integers(1, 150))
    out = rng.standard_normal((n_rows, trees.n_outputs))
    return Case((bound(trees), random_codes(rng, coded, n_rows), *row_range(rng, n_rows), out), atol=1e-12)


def leaf_bits(trees: walk.WalkTrees) -> Bound:
    return Bound("walk.LeafBits", (bound(trees),))


@st.composite
def chains(draw: st.DrawFn) -> Case:
    """Trees of one to several words, of one output or all, and players without any node."""
    trees, coded, rng = draw(st.one_of(walks(long=True), walks()))
    n, n_rows, n_others = trees.n_players, draw(st.integers(1, 9)), draw(st.sampled_from([0, 1, 7]))
    codes, others = random_codes(rng, coded, n_rows), random_codes(rng, coded, n_others)
    places = rng.permuted(np.tile(np.arange(n), (n_others, 2, 1)), axis=2)
    out = rng.standard_normal((n_others, 2, n - 1, trees.n_outputs))
    return Case((leaf_bits(trees), codes, int(rng.integers(n_rows)), others, places, out), atol=1e-12)


@st.composite
def coalitions(draw: st.DrawFn) -> Case:
    trees, coded, rng = draw(walks(7))
    n_rows, n_others = draw(st.integers(1, 9)), draw(st.sampled_from([0, 1, 4]))
    codes, others = random_codes(rng, coded, n_rows), random_codes(rng, coded, n_others)
    out = rng.standard_normal((n_others, 1 << trees.n_players, trees.n_outputs))
    return Case((leaf_bits(trees), codes, int(rng.integers(n_rows)), others, out), atol=1e-12)


@st.composite
def leaf_visits(draw: st.DrawFn) -> Case:
    trees, coded, rng = draw(walks())
    n = draw(st.integers(0, 70))
    codes = random_codes(rng, coded, n), random_codes(rng, coded, n)
    return Case((bound(trees), *codes, np.zeros(trees.n_trees)), rtol=1e-12)


# stream


@st.composite
def stream(draw: st.DrawFn) -> Case:
    """Small tables and smaller ones, so that every way is gone; paths of more players than a table has."""
    coded, players, rng = draw(ensembles(most_features=draw(st.sampled_from([4, 20]))))
    trees = walk.prepare(coded, players)
    n_rows, n_background = draw(st.sampled_from([1, 9, 300])), draw(st.sampled_from([1, 8, 500]))
    codes, background = (_padded(random_codes(rng, coded, n)) for n in (n_rows, n_background))
    first = 8 * int(rng.integers(0, n_rows // 8 + 1)) if draw(st.booleans()) else 0
    index = draw(st.sampled_from([*INDICES.values()]))
    ways = draw(st.sampled_from([(9, 9), (3, 1), (0, 2), (2, 30)]))
    single = draw(st.booleans())
    out = np.ones((n_rows, trees.n_players, trees.n_outputs))
    arguments = (codes, first, n_rows, background, rng.dirichlet(np.ones(n_background)))
    of_index = Bound("stream.Index", (*quadrature(index, 31), moments(index, 32), index.adds_up))
    ways = (*ways, draw(st.sampled_from([0, 2, 8])), single)
    atol = (2e-5 if single else 1e-11) * float(np.abs(coded.ensemble.values).max(initial=1.0))
    return Case((bound(trees), *arguments, of_index, *ways, out), atol=atol)


@st.composite
def stream_mixed(draw: st.DrawFn) -> Case:
    """Channels of any sign and sum, fewer and more than a vector holds; subtrees with tables and without."""
    coded, players, rng = draw(ensembles(most_features=draw(st.sampled_from([4, 20]))))
    coded = code_trees(arithmetic.one_output(coded.ensemble, 0))
    trees = walk.prepare(coded, players)
    n_rows, n_background = draw(st.sampled_from([1, 9, 300])), draw(st.sampled_from([1, 8, 500]))
    codes, background = (_padded(random_codes(rng, coded, n)) for n in (n_rows, n_background))
    first = 8 * int(rng.integers(0, n_rows // 8 + 1)) if draw(st.booleans()) else 0
    n_channels = draw(st.sampled_from([1, 4, 9, 17]))
    weights = rng.normal(size=(n_background, n_channels)) / n_background
    mix = rng.normal(size=(n_rows, n_channels))
    of_index = Bound("stream.Index", (*quadrature(SHAPLEY, 31), moments(SHAPLEY, 32), True))
    single = draw(st.booleans())
    out = np.ones((n_rows, trees.n_players, 1))
    ways = (*draw(st.sampled_from([(9, 9), (3, 1), (0, 2), (2, 30)])), single)
    atol = (1e-4 if single else 1e-10) * float(np.abs(coded.ensemble.values).max(initial=1.0))
    given = (codes, first, n_rows, background, weights, mix, of_index, *ways, out)
    return Case((bound(trees), *given), atol=atol)


def _padded(codes: Ints) -> Ints:
    return np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))


@st.composite
def count_bottom_subtrees(draw: st.DrawFn) -> Case:
    coded, players, _ = draw(ensembles(most_features=12))
    trees = walk.prepare(coded, players)
    return Case((bound(trees), np.ones((trees.n_trees, 5), dtype=np.int64)))


CASES: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "leaves.find": find_leaves,
    "nodes.are_trees": are_trees,
    "nodes.levels": levels,
    "nodes.pack": pack,
    "orders.interventional": interventional_orders,
    "stream.count_bottom_subtrees": count_bottom_subtrees,
    "stream.interventional": stream,
    "stream.mixed": stream_mixed,
    "tree_blocks.cut_trees": cut_trees,
    "tree_blocks.profile_trees": profile_trees,
    "tree_tables.fill": fill,
    "walk.interventional": interventional,
    "walk.interventional_classes": interventional_classes,
    "walk.chains": chains,
    "walk.coalitions": coalitions,
    "walk.leaf_visits": leaf_visits,
    "walk.path_dependent": path_dependent,
    "walk.path_dependent_sets": path_dependent_sets,
    "walk.predict": predict,
}
