"""Every native kernel against its NumPy twin, the specification, on random input."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap import _kernels as kernels
from fouriershap._base.bits import pack
from fouriershap._kernels import bits_numpy, build_numpy, tables_numpy
from fouriershap._shapley.indices import term_shares
from strategies import generators, random_frequencies

native = pytest.importorskip("fouriershap._kernels._native", reason="built without a compiler")
FEW = settings(max_examples=60, deadline=None)


def test_the_same_functions_on_both_sides() -> None:
    for family, twin in (("bits", bits_numpy), ("tables", tables_numpy)):
        compiled = {name for name in dir(getattr(native, family)) if not name.startswith("_")}
        missing = {name for name in compiled if not hasattr(twin, name)}
        assert not missing, f"{family}: without a NumPy twin: {missing}"


# bits


def random_terms(rng: np.random.Generator, n_atoms: int, n_terms: int, degree: int) -> tuple[Any, Any]:
    frequencies = random_frequencies(rng, n_terms, n_atoms, degree)
    start = np.concatenate([[0], np.cumsum(frequencies.sum(axis=1))]).astype(np.int64)
    return start, np.nonzero(frequencies)[1].astype(np.int32)


@FEW
@given(generators(), st.integers(1, 200), st.integers(0, 30), st.integers(1, 3), st.integers(1, 90))
def test_evaluate(rng: np.random.Generator, n_rows: int, n_terms: int, n_outputs: int, n_atoms: int) -> None:
    columns = pack(rng.integers(0, 2, size=(n_atoms, n_rows)).astype(np.uint8))
    start, atoms = random_terms(rng, n_atoms, n_terms, 9)
    coefficients = rng.standard_normal((n_terms, n_outputs))
    first = int(rng.integers(0, columns.shape[1]))
    results = []
    for family in (native.bits, bits_numpy):
        out = np.full((n_rows, n_outputs), 7.0)
        parity = np.empty(n_terms, dtype=np.uint64)
        family.evaluate(columns, start, atoms, coefficients, first, columns.shape[1], parity, out)
        assert (out[: 64 * first] == 7.0).all()  # rows of other words are left alone
        results.append(out)
    np.testing.assert_allclose(*results, rtol=0, atol=1e-12 * (n_terms + 1))


@FEW
@given(
    generators(),
    st.integers(1, 150),
    st.integers(0, 20),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([1, 5, 40]),
)
def test_direct(
    rng: np.random.Generator, n_background: int, n_terms: int, n_outputs: int, weighted: bool, degree: int
) -> None:
    n_atoms, n_rows = 45, 5
    rows = rng.integers(0, 2, size=(n_rows, n_atoms)).astype(np.uint8)
    background = pack(rng.integers(0, 2, size=(n_atoms, n_background)).astype(np.uint8))
    weights = np.zeros(64 * background.shape[1] if weighted else 0)
    weights[:n_background] = rng.random(len(weights[:n_background]))
    start, atoms = random_terms(rng, n_atoms, n_terms, degree)
    owner = rng.permutation(n_atoms).astype(np.int32)
    coefficients = rng.standard_normal((n_terms, n_outputs))
    earlier = rng.standard_normal((n_rows, n_atoms, n_outputs))
    results = []
    for family in (native.bits, bits_numpy):
        out = earlier.copy()
        family.direct(rows, background, n_background, weights, start, atoms, owner, coefficients, out)
        results.append(out)
    np.testing.assert_allclose(*results, rtol=0, atol=1e-11 * (1 + n_terms) * n_background)


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
    def blocks(self) -> tuple[Any, ...]:
        cuts = (self.cut_start, self.cut_missing, self.cut_column, self.cut_at, self.cut_weight)
        return *cuts, self.block_base, self.block_patterns


@FEW
@given(
    generators(),
    st.integers(1, 300),
    st.integers(1, 20),
    st.integers(1, 3),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([64, 128, 1024]),
)
def test_explain(
    rng: np.random.Generator, n_rows: int, n_players: int, n_outputs: int, dtype: Any, rows_per_block: int
) -> None:
    layout = Layout(rng, n_rows, n_players, n_outputs, dtype)
    earlier = rng.standard_normal((n_rows, n_players, n_outputs))
    results = []
    for family in (native.tables, tables_numpy):
        out = earlier.copy()
        family.explain(
            layout.codes8,
            layout.codes16,
            n_rows,
            layout.missing,
            *layout.blocks,
            layout.table_block,
            layout.table_offset,
            layout.group_start,
            layout.group_players,
            layout.group_output,
            layout.group_width,
            layout.values,
            rows_per_block,
            out,
        )
        results.append(out)
    atol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(*results, rtol=0, atol=atol)


@FEW
@given(generators(), st.integers(1, 9000), st.booleans())
def test_histogram(rng: np.random.Generator, n_rows: int, weighted: bool) -> None:
    layout = Layout(rng, n_rows, 3, 1, np.float64)
    weights = rng.random(n_rows) if weighted else np.empty(0)
    n_blocks = len(layout.block_base)
    offset = np.concatenate([[0], np.cumsum(layout.block_patterns, dtype=np.int64)])
    first, last = sorted(rng.integers(0, n_blocks + 1, size=2))
    earlier = rng.random(offset[-1])
    results = []
    for family in (native.tables, tables_numpy):
        out = earlier.copy()
        codes = (layout.codes8, layout.codes16, n_rows, layout.missing, weights)
        family.histogram(*codes, *layout.blocks, offset, int(first), int(last), out)
        results.append(out)
    np.testing.assert_allclose(*results, rtol=1e-12)


@FEW
@given(generators(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2))
def test_spectrum_tables(rng: np.random.Generator, n_blocks: int, n_outputs: int, order: int) -> None:
    block_bits = rng.integers(1, 10, size=n_blocks).astype(np.int32)
    offset = np.concatenate([[0], np.cumsum(1 << block_bits.astype(np.int64))])
    histograms = rng.random(offset[-1])
    counts = rng.integers(0, 6, size=n_blocks)
    term_start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    bits = np.repeat(block_bits, counts).astype(np.int64)
    term_mask = rng.integers(1, 1 << bits).astype(np.uint32)
    coefficients = rng.standard_normal((len(term_mask), n_outputs))
    table_block = rng.permutation(np.concatenate([np.arange(n_blocks), rng.integers(0, n_blocks, 2)]))
    sizes = (1 << block_bits[table_block].astype(np.int64)) * (8 * n_outputs)
    table_offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    most = int(block_bits.max())
    n_slots = most if order == 1 else max(1, most * (most - 1) // 2)
    slots = rng.integers(-1, 8, size=(len(table_block), n_slots)).astype(np.int32)
    results = []
    for family in (native.build, build_numpy):
        values = np.full(table_offset[-1], 7.0)
        family.spectrum_tables(
            block_bits,
            offset,
            histograms,
            term_start,
            term_mask,
            coefficients,
            term_shares("shapley", order, 9),
            table_block.astype(np.int32),
            table_offset[:-1].copy(),
            slots,
            order,
            0,
            len(table_block),
            values,
        )
        results.append(values)
    np.testing.assert_allclose(*results, rtol=0, atol=1e-9)


@FEW
@given(generators(), st.integers(0, 60), st.integers(1, 25), st.integers(1, 12), st.integers(1, 9))
def test_cover(rng: np.random.Generator, n_terms: int, n_atoms: int, degree: int, max_atoms: int) -> None:
    frequencies = random_frequencies(rng, n_terms, n_atoms, degree)
    frequencies = np.unique(frequencies[frequencies.any(axis=1)], axis=0)
    frequencies = frequencies[np.argsort(-frequencies.sum(axis=1), kind="stable")]
    n_terms = len(frequencies)
    start = np.concatenate([[0], np.cumsum(frequencies.sum(axis=1))]).astype(np.int64)
    atoms = np.nonzero(frequencies)[1].astype(np.int32)
    weights = np.zeros(max_atoms + 1, dtype=np.int64)
    weights[1 : 4 if max_atoms > 3 else max_atoms + 1] = [4096, 64, 1][: min(3, max_atoms)]
    results = []
    for family in (native.build, build_numpy):
        block_of_term = np.empty(n_terms, dtype=np.int32)
        block_start = np.zeros(n_terms + 1, dtype=np.int64)
        block_atoms = np.zeros(n_terms * max(max_atoms, n_atoms), dtype=np.int32)
        n_blocks = family.cover(
            start, atoms, n_atoms, max_atoms, weights, block_of_term, block_start, block_atoms
        )
        found = block_start[: n_blocks + 1]
        results.append((n_blocks, block_of_term, found, block_atoms[: found[-1]]))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    for k, block in enumerate(results[0][1]):  # what a cover is
        held = results[0][3][results[0][2][block] : results[0][2][block + 1]]
        assert set(np.flatnonzero(frequencies[k])) <= set(held.tolist())
        assert len(held) <= max(max_atoms, frequencies.sum(axis=1).max())


@FEW
@given(generators(), st.integers(0, 60), st.integers(1, 30), st.integers(1, 16), st.integers(1, 20))
def test_group(rng: np.random.Generator, n_tables: int, n_players: int, most_tables: int, reach: int) -> None:
    sets = [
        np.sort(rng.permutation(n_players)[: rng.integers(1, min(8, n_players) + 1)]) for _ in range(n_tables)
    ]
    start = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    players = np.concatenate([*sets, np.empty(0)]).astype(np.int32)
    kinds = np.sort(rng.integers(0, 3, size=n_tables)).astype(np.int32)
    results = []
    for family in (native.build, build_numpy):
        of_table = np.empty(n_tables, dtype=np.int32)
        layout = np.empty((n_tables, 8), dtype=np.int32)
        n_groups = family.group(start, players, kinds, n_players, most_tables, reach, of_table, layout)
        results.append((n_groups, of_table, layout[:n_groups]))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    for table, group in enumerate(results[0][1]):
        assert set(sets[table].tolist()) <= set(results[0][2][group].tolist())
    assert (np.bincount(results[0][1], minlength=1) <= most_tables).all()


# Which kernels are used

TWINS = (
    "test_evaluate",
    "test_direct",
    "test_explain",
    "test_histogram",
    "test_spectrum_tables",
    "test_cover",
    "test_group",
)

END_TO_END = textwrap.dedent(
    """
    import warnings
    import numpy as np
    import fouriershap as fs
    from fouriershap import _kernels as kernels

    rng = np.random.default_rng(0)
    frequencies = rng.random((60, 20)) < 0.2
    h = fs.Spectrum(frequencies, rng.standard_normal((60, 2)))
    X, background = rng.integers(0, 2, size=(70, 20)), rng.integers(0, 2, size=(90, 20))
    players = np.arange(20) // 2
    weights = rng.random(90)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tables = fs.shap_values(h, X, background, players=players, weights=weights, method="tables")
        direct = fs.shap_values(h, X, background, players=players, weights=weights, method="direct")
    signs = 1.0 - 2.0 * ((X @ h.frequencies.T.astype(int)) % 2)
    np.testing.assert_allclose(h(X), signs @ h.coefficients, atol=1e-11)
    np.testing.assert_allclose(tables, direct, atol=1e-11)
    expected = h(X) - np.average(h(background), axis=0, weights=weights)
    np.testing.assert_allclose(tables.sum(axis=1), expected, atol=1e-11)
    print(kernels.backend(), kernels.instruction_set(), *(w.category.__name__ for w in caught))
    print(*(w.message for w in caught))
    print(*(w.filename for w in caught))
    """
)


def run(program: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_numpy_kernels_on_request_without_a_warning() -> None:
    assert run(END_TO_END, FOURIERSHAP_KERNELS="numpy")[0] == "numpy none"


def test_native_kernels_without_avx2() -> None:
    assert run(END_TO_END, FOURIERSHAP_BASELINE="1")[0] == "native baseline"
    # The instruction set is chosen when the module is loaded, so its kernels meet their twins over there.
    names = [f"{__file__}::{name}" for name in TWINS]
    again = f"import pytest; pytest.main(['-q', '-p', 'no:cacheprovider', *{names!r}])"
    assert f"{len(TWINS)} passed" in run(again, FOURIERSHAP_BASELINE="1")[-1]


def test_missing_native_kernels_warn_once_and_say_what_to_do() -> None:
    hidden = "import sys; sys.modules['fouriershap._kernels._native'] = None\n"
    first, message, where = run(hidden + END_TO_END)
    assert first == "numpy none SlowKernelWarning"
    assert "Install a C++ compiler" in message
    assert "pip install" in message
    assert "FOURIERSHAP_KERNELS=numpy" in message
    assert where == "<string>"  # the user's line, not one of ours


def test_native_kernels_can_be_insisted_on() -> None:
    program = textwrap.dedent(
        """
        import sys; sys.modules['fouriershap._kernels._native'] = None
        import fouriershap as fs
        try:
            fs.Spectrum([[1]], [1.0])([[1]])
        except ImportError as error:
            print("ImportError")
        """
    )
    assert run(program, FOURIERSHAP_KERNELS="native") == ["ImportError"]


def test_unknown_choice_of_kernels() -> None:
    program = textwrap.dedent(
        """
        import fouriershap as fs
        try:
            fs.Spectrum([[1]], [1.0])([[1]])
        except fs.InputError as error:
            print(error)
        """
    )
    assert "'numba'" in run(program, FOURIERSHAP_KERNELS="numba")[0]


def test_this_process_runs_native() -> None:
    assert kernels.backend() == os.environ.get("FOURIERSHAP_KERNELS", "native").replace("auto", "native")
    with pytest.raises(AttributeError):
        _ = kernels.nothing
