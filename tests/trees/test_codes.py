import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap._kernels import encode_numpy
from fouriershap._trees.codes import NO_COLUMN, code_trees
from kernel_cases import make_book, make_rows
from reference_kernels import use_reference_kernels
from tree_oracles import RandomTrees

SIZES = [0, 1, 15, 16, 17, 254, 255, 256, 257, 4096, 4097, 65_534, 65_535, 70_000]


def plain_code(level, value, is_set):
    if np.isnan(value):
        return len(level) + 1
    if is_set:
        position = np.flatnonzero(level == np.trunc(value))
        return position[0] if len(position) else len(level)
    return (level <= value).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
@settings(max_examples=15, deadline=None)
def test_codes_by_the_definition(dtype, seed, data):
    rng = np.random.default_rng(seed)
    sizes = data.draw(st.lists(st.sampled_from(SIZES[:9]), min_size=1, max_size=4))
    categorical = [data.draw(st.booleans()) for _ in sizes]
    book, levels = make_book(rng, dtype, sizes, categorical)
    rows = make_rows(rng, dtype, levels, data.draw(st.sampled_from([1, 7, 130])))
    codes = book.encode(rows)
    for f, (level, is_set) in enumerate(zip(levels, categorical, strict=True)):
        assert codes[f].tolist() == [plain_code(level, value, is_set) for value in rows[:, f]]
    assert book.n_codes.tolist() == [len(level) + 2 for level in levels]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_set", [False, True])
def test_native_is_the_twin_at_every_number_of_levels(dtype, is_set):
    rng = np.random.default_rng(1)
    book, levels = make_book(rng, dtype, SIZES, [is_set] * len(SIZES))
    rows = make_rows(rng, dtype, levels, 300)
    want = np.empty((len(SIZES), 300), dtype=np.int32)
    assert encode_numpy.encode32(encode_numpy.Levels(*book.search_arrays()), rows, want)
    assert np.array_equal(book.encode(rows), want)
    used = book.n_codes <= 65_536
    column = book.columns(used)
    assert [c == NO_COLUMN for c in column] == (~used).tolist()
    assert [0 <= c < NO_COLUMN for c in column] == (book.n_codes <= 256).tolist()
    codes = book.encode_columns(rows, column)
    for f in np.flatnonzero(used):
        line = codes.narrow[column[f]] if column[f] >= 0 else codes.wide[~column[f]]
        assert np.array_equal(line[:300], want[f])
    assert codes.any_missing
    narrow, wide = np.zeros_like(codes.narrow), np.zeros_like(codes.wide)
    assert encode_numpy.encode(encode_numpy.Levels(*book.search_arrays()), rows, column, narrow, wide)
    assert np.array_equal(narrow[:, :300], codes.narrow[:, :300])
    assert np.array_equal(wide[:, :300], codes.wide[:, :300])


@pytest.mark.parametrize("kernel", ["native", "numpy"])
def test_missing_values_are_reported_of_used_columns_only(kernel, monkeypatch):
    if kernel == "numpy":
        use_reference_kernels(monkeypatch)
    book, _ = make_book(np.random.default_rng(0), np.float64, [3, 3], [False, False])
    rows = np.array([[0.0, np.nan], [1.0, 2.0]])
    assert not book.encode_columns(rows, book.columns(np.array([True, False]))).any_missing
    assert book.encode_columns(rows, book.columns(np.array([False, True]))).any_missing
    assert not book.encode_columns(rows[:0], book.columns(np.array([True, True]))).any_missing


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_codes_decide_every_split(seed):
    rng = np.random.default_rng(seed)
    grown = RandomTrees(rng, 5, [1, 3], n_thresholds=int(rng.integers(1, 80)))
    for _ in range(3):
        grown.grow(4)
    e = grown.coded().ensemble
    threshold = np.where(rng.random(e.n_nodes) < 0.1, np.nan, e.threshold)  # every number goes left
    e = e.replace(threshold=threshold)
    coded = code_trees(e)
    rows = rng.choice([*range(-1, 82), 0.5, 7.9, np.nan, np.inf, -np.inf, 1e300], size=(60, 5))
    codes = coded.book.encode(rows)
    for v in np.flatnonzero(e.feature >= 0):
        x = rows[:, e.feature[v]]
        if e.category_set[v] >= 0:
            members = e.set_categories[e.set_start[e.category_set[v]] : e.set_start[e.category_set[v] + 1]]
            left = np.isin(np.trunc(x), members)
        else:
            left = ~(x >= e.threshold[v])
        left[np.isnan(x)] = e.missing_left[v]
        assert np.array_equal(coded.goes_left(v)[codes[e.feature[v]]], left)


def test_selected_trees_keep_their_codes():
    rng = np.random.default_rng(2)
    grown = RandomTrees(rng, 4, [2])
    for _ in range(4):
        grown.grow(3)
    coded = grown.coded()
    kept = np.array([True, False, False, True])
    part = coded.select(kept)
    assert coded.select(np.ones(4, dtype=bool)) is coded
    nodes = np.flatnonzero(kept[coded.ensemble.tree_of_node])
    for new, old in enumerate(nodes):
        if part.ensemble.feature[new] >= 0:
            assert np.array_equal(part.goes_left(new), coded.goes_left(old))


def test_no_features_at_all():
    grown = RandomTrees(np.random.default_rng(0), 3)
    grown.grow(0)
    coded = grown.coded()
    assert coded.book.n_codes.tolist() == [2, 2, 2]
    assert coded.book.encode(np.array([[1.0, np.nan, 2.0]])).tolist() == [[0], [1], [0]]
