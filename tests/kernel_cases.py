"""Random calls of every kernel that knows nothing of trees: `CASES`, by the kernel's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from fouriershap._base.bits import pack
from fouriershap._shapley.indices import SHAPLEY, term_shares
from fouriershap._trees.codes import Codebook
from reference_kernels import Bound
from strategies import generators, random_frequencies


class Case(NamedTuple):
    """A call of a kernel, and how far its floating-point results may be from the reference's."""

    arguments: tuple[Any, ...]
    atol: float = 0.0
    rtol: float = 0.0


Draw = st.DrawFn


# bits


def flat(frequencies: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Terms one after the other: start, atoms."""
    start = np.concatenate([[0], np.cumsum(frequencies.sum(axis=1))]).astype(np.int64)
    return start, np.nonzero(frequencies)[1].astype(np.int32)


@st.composite
def evaluate(draw: Draw) -> Case:
    rng = draw(generators())
    n_rows, n_terms, n_outputs = draw(st.integers(1, 200)), draw(st.integers(0, 30)), draw(st.integers(1, 3))
    n_atoms = draw(st.integers(1, 90))
    columns = pack(rng.integers(0, 2, size=(n_atoms, n_rows)).astype(np.uint8))
    terms = flat(random_frequencies(rng, n_terms, n_atoms, 9))
    words = int(rng.integers(0, columns.shape[1])), columns.shape[1]
    given = Bound("bits.Terms", (*terms, rng.standard_normal((n_terms, n_outputs))))
    return Case((given, columns, *words, np.full((n_rows, n_outputs), 7.0)), atol=1e-12 * (n_terms + 1))


@st.composite
def direct(draw: Draw) -> Case:
    rng = draw(generators())
    n_background, n_terms, n_outputs = (
        draw(st.integers(1, 150)),
        draw(st.integers(0, 20)),
        draw(st.integers(1, 3)),
    )
    degree, n_atoms, n_rows = draw(st.sampled_from([1, 5, 40])), 45, 5
    rows = rng.integers(0, 2, size=(n_rows, n_atoms)).astype(np.uint8)
    background = pack(rng.integers(0, 2, size=(n_atoms, n_background)).astype(np.uint8))
    weights = np.zeros(64 * background.shape[1] if draw(st.booleans()) else 0)
    weights[:n_background] = rng.random(len(weights[:n_background]))
    terms = flat(random_frequencies(rng, n_terms, n_atoms, degree))
    owner = rng.permutation(n_atoms).astype(np.int32)
    coefficients = rng.standard_normal((n_terms, n_outputs))
    out = rng.standard_normal((n_rows, n_atoms, n_outputs))
    given = Bound("bits.Terms", (*terms, coefficients))
    arguments = (given, rows, background, n_background, weights, owner, out)
    return Case(arguments, atol=1e-11 * (1 + n_terms) * n_background)


# build


@st.composite
def spectrum_tables(draw: Draw) -> Case:
    rng, n_blocks, n_outputs = draw(generators()), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    order = draw(st.integers(1, 2))
    block_bits = rng.integers(1, 10, size=n_blocks).astype(np.int32)
    offset = np.concatenate([[0], np.cumsum(1 << block_bits.astype(np.int64))])
    counts = rng.integers(0, 6, size=n_blocks)
    term_start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    term_mask = rng.integers(1, 1 << np.repeat(block_bits, counts).astype(np.int64)).astype(np.uint32)
    coefficients = rng.standard_normal((len(term_mask), n_outputs))
    table_block = rng.permutation(np.concatenate([np.arange(n_blocks), rng.integers(0, n_blocks, 2)]))
    sizes = (1 << block_bits[table_block].astype(np.int64)) * (8 * n_outputs)
    table_offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    most = int(block_bits.max())
    n_slots = most if order == 1 else max(1, most * (most - 1) // 2)
    slots = rng.integers(-1, 8, size=(len(table_block), n_slots)).astype(np.int32)
    blocks = (block_bits, offset, rng.random(offset[-1]), term_start, term_mask, coefficients)
    bound = Bound("build.SpectrumBlocks", (*blocks, term_shares(SHAPLEY, order, 9)))
    tables = (table_block.astype(np.int32), table_offset[:-1].copy(), slots)
    return Case((bound, *tables, np.full(table_offset[-1], 7.0)), atol=1e-9)


@st.composite
def cover(draw: Draw) -> Case:
    rng, n_atoms, max_atoms = draw(generators()), draw(st.integers(1, 25)), draw(st.integers(1, 9))
    frequencies = random_frequencies(rng, draw(st.integers(0, 60)), n_atoms, draw(st.integers(1, 12)))
    frequencies = np.unique(frequencies[frequencies.any(axis=1)], axis=0)
    frequencies = frequencies[np.argsort(-frequencies.sum(axis=1), kind="stable")]
    n_terms = len(frequencies)
    weights = np.zeros(max_atoms + 1, dtype=np.int64)
    weights[1:4] = [4096, 64, 1][: min(3, max_atoms)]
    of_term, start = np.zeros(n_terms, dtype=np.int32), np.zeros(n_terms + 1, dtype=np.int64)
    atoms = np.zeros(n_terms * max(max_atoms, n_atoms), dtype=np.int32)
    return Case((*flat(frequencies), n_atoms, max_atoms, weights, of_term, start, atoms))


@st.composite
def group(draw: Draw) -> Case:
    rng, n_tables, n_players = draw(generators()), draw(st.integers(0, 60)), draw(st.integers(1, 30))
    most = min(8, n_players)
    sets = [np.sort(rng.permutation(n_players)[: rng.integers(1, most + 1)]) for _ in range(n_tables)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    players = np.concatenate([*sets, np.empty(0)]).astype(np.int32)
    kinds = np.sort(rng.integers(0, 3, size=n_tables)).astype(np.int32)
    limits = draw(st.integers(1, 16)), draw(st.integers(1, 20))
    of_table, layout = np.zeros(n_tables, dtype=np.int32), np.zeros((n_tables, 8), dtype=np.int32)
    return Case((start, players, kinds, n_players, *limits, of_table, layout))


# encode


def some_levels(rng: np.random.Generator, dtype: Any, size: int, is_set: bool) -> NDArray[Any]:
    """Sorted levels: whole numbers of a set, any numbers else."""
    if is_set:
        return np.sort(rng.choice(3 * size + 1, size, replace=False)).astype(dtype)
    return np.unique(rng.normal(size=3 * size + 1).astype(dtype))[:size]


def make_book(
    rng: np.random.Generator, dtype: Any, sizes: list[int], categorical: list[bool]
) -> tuple[Codebook, list[NDArray[Any]]]:
    """A code book, and the levels of each feature."""
    levels = [some_levels(rng, dtype, *feature) for feature in zip(sizes, categorical, strict=True)]
    start = np.concatenate([[0], np.cumsum([len(level) for level in levels])]).astype(np.int64)
    return Codebook(np.dtype(dtype), start, np.concatenate(levels), np.array(categorical, dtype=bool)), levels


def make_rows(rng: np.random.Generator, dtype: Any, levels: list[NDArray[Any]], n_rows: int) -> NDArray[Any]:
    """Values on levels, just beside them, far away, infinite, and missing."""
    columns = []
    for level in levels:
        pool = [
            rng.normal(size=20).astype(dtype) * 3,
            np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e30, -2.5]),
        ]
        if len(level):
            some = rng.choice(level, 40)
            pool += [some, np.nextafter(some, dtype("inf")), np.nextafter(some, -dtype("inf")), some + 0.5]
            pool += [level[:1], level[-1:], level[-1:] + 1]
        columns.append(rng.choice(np.concatenate(pool), n_rows).astype(dtype))
    return np.stack(columns, axis=1)


@st.composite
def raw_rows(draw: Draw) -> tuple[Codebook, NDArray[Any]]:
    rng, dtype = draw(generators()), draw(st.sampled_from([np.float32, np.float64]))
    sizes = draw(st.lists(st.sampled_from([0, 1, 15, 16, 17, 254, 255, 4097]), min_size=1, max_size=4))
    book, levels = make_book(rng, dtype, sizes, [draw(st.booleans()) for _ in sizes])
    return book, make_rows(rng, dtype, levels, draw(st.sampled_from([1, 7, 130])))


@st.composite
def encode32(draw: Draw) -> Case:
    book, rows = draw(raw_rows())
    out = np.full((book.n_features, len(rows)), -7, dtype=np.int32)
    return Case((Bound("encode.Levels", book.search_arrays()), rows, out))


@st.composite
def encode(draw: Draw) -> Case:
    book, rows = draw(raw_rows())
    column = book.columns(np.array([draw(st.booleans()) for _ in range(book.n_features)]))
    stride = (-(-len(rows) // 64) | 1) * 64
    codes = np.zeros((book.n_features, stride), np.uint8), np.zeros((book.n_features, stride), np.uint16)
    return Case((Bound("encode.Levels", book.search_arrays()), rows, column, *codes))


@st.composite
def remap(draw: Draw) -> Case:
    rng, n_rows, n_lines = draw(generators()), draw(st.integers(1, 200)), draw(st.integers(0, 5))
    stride = -(-n_rows // 64) * 64
    codes16 = rng.integers(0, 900, size=(3, stride)).astype(np.uint16)
    source = rng.integers(0, 3, size=n_lines).astype(np.int32)
    offset, lut = rng.integers(0, 100, size=n_lines), rng.integers(0, 256, size=1000).astype(np.uint8)
    return Case((codes16, n_rows, source, offset, lut, 2, np.zeros((2 + n_lines, stride), np.uint8)))


# tables


class Layout:
    """Random blocks of random cuts, and tables over them: narrow and wide patterns, codes of both widths."""

    def __init__(
        self, rng: np.random.Generator, n_rows: int, n_players: int, n_outputs: int, dtype: Any
    ) -> None:
        stride = (-(-n_rows // 64) | 1) * 64
        self.n_rows, self.n_players, self.n_outputs = n_rows, n_players, n_outputs
        self.codes8 = rng.integers(0, 256, size=(5, stride)).astype(np.uint8)
        self.codes16 = rng.integers(0, 65536, size=(3, stride)).astype(np.uint16)
        self._make_blocks(rng, int(rng.integers(1, 12)))
        self._make_tables(rng, dtype)

    def _make_blocks(self, rng: np.random.Generator, n_blocks: int) -> None:
        columns, ats, weights, starts, bases, sizes = [], [], [], [0], [], []
        for block in range(n_blocks):
            wide = block % 2 == 1
            most = 65536 if block % 4 == 1 else 2000
            n_cuts = int(rng.integers(0, 9))
            column = rng.integers(-3, 5, size=n_cuts)
            weight = rng.integers(-(most // 20), most // 20, size=n_cuts) if wide else None
            if weight is None:
                weight = rng.integers(-15, 16, size=n_cuts)
            base = -int(weight[weight < 0].sum())
            n_patterns = base + int(weight[weight > 0].sum()) + 1
            if wide:
                n_patterns = max(n_patterns, 300)
                if block % 4 == 1:  # the last pattern of the largest table there can be
                    base += 65536 - n_patterns
                    n_patterns = 65536
            columns.extend(column)
            ats.extend(np.where(column >= 0, rng.integers(0, 256, n_cuts), rng.integers(0, 65536, n_cuts)))
            weights.extend(weight)
            starts.append(starts[-1] + n_cuts)
            bases.append(base)
            sizes.append(n_patterns)
        self.cut_start, self.block_base, self.block_patterns = (
            np.array(values, dtype=np.int32) for values in (starts, bases, sizes)
        )
        # Where values may be missing all cuts count, wherever those of missing values begin; else only the
        # cuts before, which here are all.
        self.missing = bool(rng.integers(2))
        begin = self.cut_start[:-1] if self.missing else self.cut_start[1:]
        self.cut_missing = rng.integers(begin, self.cut_start[1:] + 1).astype(np.int32)
        self.cut_column, self.cut_weight = (np.array(v, dtype=np.int32) for v in (columns, weights))
        self.cut_at = np.array(ats, dtype=np.uint16)

    def _make_tables(self, rng: np.random.Generator, dtype: Any) -> None:
        """Groups of tables whose blocks are all narrow or all wide."""
        narrow = np.flatnonzero(self.block_patterns <= 256)
        wide = np.flatnonzero(self.block_patterns > 256)
        blocks, starts, players, outputs, widths, offsets, offset = [], [0], [], [], [], [], 0
        for kind in (narrow, wide):
            for _ in range(int(rng.integers(1, 4)) if len(kind) else 0):
                mine = rng.choice(kind, size=int(rng.integers(1, 6)))
                first = int(rng.integers(0, self.n_outputs))
                width = int(rng.integers(1, self.n_outputs - first + 1))
                line = np.full(8, -1)
                used = min(self.n_players, int(rng.integers(1, 9)))
                line[rng.permutation(8)[:used]] = rng.permutation(self.n_players)[:used]
                for block in mine:
                    offsets.append(offset)
                    offset += width * int(self.block_patterns[block]) * 8
                blocks.extend(mine)
                starts.append(len(blocks))
                players.append(line)
                outputs.append(first)
                widths.append(width)
        self.table_block, self.group_start, self.group_players, self.group_output, self.group_width = (
            np.array(v, dtype=np.int32) for v in (blocks, starts, players, outputs, widths)
        )
        self.table_offset = np.array(offsets, dtype=np.int64)
        self.values = rng.standard_normal(offset).astype(dtype)

    @property
    def codes(self) -> tuple[Any, ...]:
        return self.codes8, self.codes16, self.n_rows, self.missing

    @property
    def tables(self) -> Bound:
        groups = (self.group_start, self.group_players, self.group_output, self.group_width)
        tables = (self.table_block, self.table_offset, *groups, self.values)
        return Bound("tables.TableSet", (self.blocks, *tables, self.n_players, self.n_outputs))

    @property
    def blocks(self) -> Bound:
        cuts = (self.cut_start, self.cut_missing, self.cut_column, self.cut_at, self.cut_weight)
        return Bound("tables.Blocks", (*cuts, self.block_base, self.block_patterns))


@st.composite
def explain(draw: Draw) -> Case:
    rng, n_rows, n_players = draw(generators()), draw(st.integers(1, 300)), draw(st.integers(1, 20))
    n_outputs, dtype = draw(st.integers(1, 3)), draw(st.sampled_from([np.float32, np.float64]))
    layout = Layout(rng, n_rows, n_players, n_outputs, dtype)
    rows_per_block = draw(st.sampled_from([64, 128, 1024]))
    out = rng.standard_normal((n_rows, n_players, n_outputs))
    return Case(
        (layout.tables, *layout.codes, rows_per_block, out), atol=1e-4 if dtype == np.float32 else 1e-12
    )


@st.composite
def histogram(draw: Draw) -> Case:
    rng, n_rows = draw(generators()), draw(st.integers(1, 9000))
    layout = Layout(rng, n_rows, 3, 1, np.float64)
    n_channels = draw(st.integers(1, 5))
    weights = rng.normal(size=(n_rows, n_channels)) if draw(st.booleans()) else np.empty((0, 1))
    offset = np.concatenate([[0], np.cumsum(layout.block_patterns, dtype=np.int64)])
    first, last = sorted(rng.integers(0, len(layout.block_base) + 1, size=2).tolist())
    out = rng.random((offset[-1], weights.shape[1]))
    return Case((layout.blocks, *layout.codes, weights, offset, first, last, out), rtol=1e-12, atol=1e-10)


# products


def factors_of(rng: np.random.Generator, n_rows: int, n_players: int, dtype: Any = np.float64) -> Any:
    """Complex factors of up to 32 terms, as the kernels take them."""
    return rng.standard_normal((n_rows, n_players, 2, 16 * int(rng.integers(1, 3)))).astype(dtype)


@st.composite
def components(draw: Draw) -> Case:
    rng, dtype = draw(generators()), draw(st.sampled_from([np.float32, np.float64]))
    n_players, n_points, n_outputs = draw(st.integers(0, 7)), draw(st.integers(0, 5)), draw(st.integers(1, 3))
    rows = factors_of(rng, draw(st.integers(0, 20)), n_players, dtype)
    mixture = rng.standard_normal((draw(st.integers(0, 4)), *rows.shape[1:])).astype(dtype)
    weights, point_weights = (rng.random(n).astype(dtype) for n in (len(mixture), n_points))
    points = rng.random((n_points, n_players)).astype(dtype)
    coefficients = rng.standard_normal((n_outputs, *rows.shape[2:])).astype(dtype)
    out = rng.standard_normal((len(rows), n_players, n_outputs))
    size = 3.0**n_players * (1 + len(mixture) * n_points)
    arguments = (rows, mixture, weights, points, point_weights, coefficients, out)
    return Case(arguments, atol=size * (1e-4 if dtype is np.float32 else 1e-12))


@st.composite
def subset_sums(draw: Draw) -> Case:
    rng, n_players = draw(generators()), draw(st.integers(0, 6))
    rows = factors_of(rng, draw(st.integers(0, 5)), n_players)
    out = rng.standard_normal((1 << n_players, *rows.shape[2:]))
    return Case((rows, rng.random(len(rows)), out), atol=1e-11 * 3**n_players)


@st.composite
def games(draw: Draw) -> Case:
    rng, n_players, n_outputs = draw(generators()), draw(st.integers(0, 6)), draw(st.integers(1, 3))
    rows = factors_of(rng, draw(st.integers(0, 5)), n_players)
    table = rng.standard_normal((n_outputs, 1 << n_players, *rows.shape[2:]))
    return Case((rows, table, np.zeros((len(rows), 1 << n_players, n_outputs))), atol=1e-11 * 3**n_players)


# waves


@st.composite
def train(draw: Draw) -> Case:
    rng = draw(generators())
    n_waves, n_columns, n_outputs = (
        draw(st.integers(1, 20)),
        draw(st.integers(1, 35)),
        draw(st.integers(1, 5)),
    )
    n_rows, n_steps, n_batch = (
        draw(st.integers(1, 60)),
        draw(st.integers(0, 3)),
        draw(st.sampled_from([16, 48])),
    )
    single = np.float32
    inputs = rng.standard_normal((n_rows, n_columns)).astype(single)
    targets = rng.standard_normal((n_rows, n_outputs)).astype(single)
    order = rng.integers(0, n_rows, (n_steps, n_batch)).astype(np.int32)
    schedule = rng.uniform(0.5, 1, (n_steps, 3)).astype(single) * np.array([0.01, 1.5, 1], single)
    n_parameters = n_waves * (n_columns + 1) + n_outputs * (n_waves + n_columns + 1)
    parameters = rng.standard_normal(n_parameters).astype(single)
    # Second moments that are far from 0: there a step is the sign of its gradient, which rounding decides.
    moments = np.stack([rng.standard_normal(n_parameters), rng.uniform(1, 2, n_parameters)]).astype(single)
    return Case((inputs, targets, order, schedule, n_waves, parameters, moments), atol=1e-3, rtol=1e-3)


@st.composite
def factors(draw: Draw) -> Case:
    rng, dtype = draw(generators()), draw(st.sampled_from([np.float32, np.float64]))
    n_rows, n_features, n_columns = draw(st.integers(0, 5)), draw(st.integers(1, 6)), 9
    # Angles of many turns: their remainder must be right, too.
    values = rng.normal(scale=draw(st.sampled_from([1.0, 30.0])), size=(n_rows, n_features)).astype(dtype)
    slot = rng.integers(0, n_columns, values.shape).astype(np.int32)
    frequencies = rng.standard_normal((n_columns, 32)).astype(dtype)
    player = rng.integers(0, 3, n_features).astype(np.int32)
    out = np.full((n_rows, 3, 2, 32), 7, dtype)
    # An angle of a hundred turns has a remainder of 4e-5 in float32, and a factor is of up to six of them.
    atol = 1e-4 if dtype is np.float32 else 1e-13
    return Case((values, slot, frequencies, player, out), atol=atol)


# numbers


@st.composite
def parse_lines(draw: Draw) -> Case:
    number = (
        st.floats()
        | st.integers(-(10**20), 10**20)
        | st.sampled_from(["1e-400", "1e400", "-0.0", "-0", "inf"])
    )
    text, start, count = "", [], []
    for words in draw(st.lists(st.lists(number, max_size=8), max_size=5)):
        line = [str(word) for word in words]
        if draw(st.integers(0, 9)) == 0:
            line.insert(
                draw(st.integers(0, len(line))), draw(st.sampled_from(["x", "1.5.2", "--1", "1e", "-"]))
            )
        text += "key="
        start.append(len(text))
        count.append(len(line) + (draw(st.integers(0, 9)) == 0))
        text += (" " * draw(st.integers(1, 2))).join(line) + draw(st.sampled_from(["\n", " \n", "\r\n"]))
    if draw(st.booleans()):
        text = text.rstrip("\n")
    given = np.frombuffer(text.encode(), dtype=np.uint8)
    lines = (np.array(start, dtype=np.int64), np.array(count, dtype=np.int64))
    return Case((given, *lines, np.full(sum(count), 7.0)))


CASES: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "bits.direct": direct,
    "bits.evaluate": evaluate,
    "build.cover": cover,
    "build.group": group,
    "build.spectrum_tables": spectrum_tables,
    "numbers.parse_lines": parse_lines,
    "encode.encode": encode,
    "encode.encode32": encode32,
    "encode.remap": remap,
    "products.components": components,
    "products.games": games,
    "products.subset_sums": subset_sums,
    "tables.explain": explain,
    "tables.histogram": histogram,
    "waves.factors": factors,
    "waves.train": train,
}
