""".fshap files: round trips, damage of every kind, atomic writes, memory maps."""

from __future__ import annotations

import json
import mmap
import os
import pickle
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import fouriershap as fs
from fouriershap._base import files as _io
from strategies import Problem, problems, random_frequencies, random_players


def small_spectrum() -> fs.Spectrum:
    return fs.Spectrum([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], [0.5, 1.0, -2.0, 0.01])


def small_tables(memory: float | None = None) -> fs.Tables:
    rng = np.random.default_rng(0)
    h = fs.Spectrum(random_frequencies(rng, 60, 12, 6), rng.standard_normal((60, 2)))
    background = rng.integers(0, 2, size=(30, 12))
    players = random_players(rng, 12, 9)
    return fs.compile(h, background, players=players, weights=rng.random(30), memory=memory)


@settings(max_examples=30, deadline=None)
@given(problems(max_players=8))
def test_round_trips(tmp_path_factory: pytest.TempPathFactory, problem: Problem) -> None:
    path = tmp_path_factory.mktemp("io") / "one.fshap"
    pruned = problem.spectrum.prune(max_terms=3)
    pruned.save(path)
    for back in (fs.load(path), fs.Spectrum.load(path)):
        assert isinstance(back, fs.Spectrum)
        assert back == pruned
        np.testing.assert_array_equal(back.prune_bound(), pruned.prune_bound())
    for memory in (None, 5000, 0):
        tables = fs.compile(problem.spectrum, problem.background, memory=memory, **problem.stage_two)
        tables.save(path)
        for loaded in (fs.load(path), fs.Tables.load(path)):
            assert isinstance(loaded, fs.Tables)
            np.testing.assert_array_equal(loaded.shap_values(problem.X), tables.shap_values(problem.X))
            np.testing.assert_array_equal(loaded.expected_value, tables.expected_value)
            assert loaded.plan == tables.plan
            assert repr(loaded) == repr(tables)


def test_paths_may_be_strings(tmp_path: Path) -> None:
    small_spectrum().save(str(tmp_path / "h.fshap"))
    assert fs.load(str(tmp_path / "h.fshap")) == small_spectrum()


def is_mapped(array: np.ndarray) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return isinstance(base, mmap.mmap)


def test_arrays_are_read_only_views_of_the_memory_map(tmp_path: Path) -> None:
    path = tmp_path / "t.fshap"
    small_tables().save(path)
    for array in _io.read(path).arrays.values():
        assert not array.flags.writeable
        assert array.size == 0 or is_mapped(array)
    small_spectrum().save(tmp_path / "h.fshap")
    spectrum = fs.Spectrum.load(tmp_path / "h.fshap")
    for kept in (fs.Tables.load(path).engine.tables.values, spectrum.words, spectrum.matrix):
        assert is_mapped(kept)


# Damage


@pytest.fixture(params=["spectrum", "tables", "mixed"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "original.fshap"
    if request.param == "spectrum":
        small_spectrum().prune(max_terms=2).save(path)
    else:
        small_tables(None if request.param == "tables" else 9000).save(path)
    return path


def same_contents(one: _io.Contents, other: _io.Contents) -> bool:
    return (
        (one.kind, one.header) == (other.kind, other.header)
        and one.arrays.keys() == other.arrays.keys()
        and all(
            np.array_equal(array, other.arrays[name]) and array.dtype == other.arrays[name].dtype
            for name, array in one.arrays.items()
        )
    )


def test_truncated_at_any_length(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    lengths = {*range(0, 64), len(whole) - 1, *np.linspace(64, len(whole) - 1, 60).astype(int).tolist()}
    for length in sorted(lengths):
        path = tmp_path / "cut.fshap"
        path.write_bytes(whole[:length])
        with pytest.raises(fs.FileFormatError, match=r"cut\.fshap"):
            fs.load(path)


def test_any_flipped_bit_is_noticed(saved: Path, tmp_path: Path) -> None:
    whole, contents = saved.read_bytes(), _io.read(saved)
    header = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(0)
    inside = [*range(min(header, 700)), *rng.integers(0, len(whole), size=300).tolist()]
    for position in inside:
        path = tmp_path / "flipped.fshap"
        changed = bytearray(whole)
        changed[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            found = _io.read(path)
        except fs.FileFormatError:
            continue
        assert same_contents(found, contents), f"byte {position} was changed without notice"


def test_appended_bytes_are_noticed(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"\0")
    with pytest.raises(fs.FileFormatError):
        fs.load(saved)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("io") / "random.fshap"
    path.write_bytes(content)
    with pytest.raises(fs.FileFormatError):
        fs.load(path)


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5))
def test_random_headers(tmp_path_factory: pytest.TempPathFactory, header: Any) -> None:
    """A length, JSON that is not a safetensors header, and some data."""
    path = tmp_path_factory.mktemp("io") / "header.fshap"
    text = json.dumps({"__metadata__": {"format": "fouriershap"}, "words": header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(64))
    with pytest.raises(fs.FileFormatError):
        fs.load(path)


def test_foreign_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "foreign.safetensors"
    save_file({"weights": np.ones(3)}, path)
    with pytest.raises(fs.FileFormatError, match="not one that fouriershap wrote"):
        fs.load(path)
    save_file({"weights": np.ones(3, dtype=np.float16)}, path, metadata={"format": "fouriershap"})
    with pytest.raises(fs.FileFormatError, match="F16"):
        fs.load(path)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("2", "pip install --upgrade"),
        ("999", "version 999"),
        ("", "version"),
        ("x", "version"),
        ("0", "version"),
    ],
)
def test_versions(tmp_path: Path, version: str, message: str) -> None:
    path = tmp_path / "v.fshap"
    save_file(
        {"a": np.ones(1)}, path, metadata={"format": "fouriershap", "version": version, "kind": "spectrum"}
    )
    with pytest.raises(fs.FileFormatError, match=message):
        fs.load(path)


def test_kinds(tmp_path: Path) -> None:
    small_spectrum().save(tmp_path / "h.fshap")
    small_tables().save(tmp_path / "t.fshap")
    with pytest.raises(fs.FileFormatError, match="holds a 'spectrum', not a 'tables'"):
        fs.Tables.load(tmp_path / "h.fshap")
    with pytest.raises(fs.FileFormatError, match="holds a 'tables', not a 'spectrum'"):
        fs.Spectrum.load(tmp_path / "t.fshap")
    _io.write(tmp_path / "u.fshap", "umbrella", {"a": np.ones(1)})
    with pytest.raises(fs.FileFormatError, match="'umbrella'"):
        fs.load(tmp_path / "u.fshap")


def test_files_that_are_not_there_or_not_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fs.load(tmp_path / "none.fshap")
    with pytest.raises((IsADirectoryError, fs.FileFormatError)):
        fs.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        small_spectrum().save(tmp_path / "no" / "such" / "folder.fshap")


# Tampering with a valid checksum: the kernels trust their arrays, so `load` must not.


def tamper(saved: Path, name: str, change: Any) -> None:
    contents = _io.read(saved)
    arrays = {key: np.array(array) for key, array in contents.arrays.items()}
    if name in arrays:
        arrays[name] = change(arrays[name])
    header = contents.header | ({} if name in arrays else {name: change(contents.header[name])})
    _io.write(saved, contents.kind, {k: v for k, v in arrays.items() if v is not None}, header)


def put(position: int, value: Any) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array.reshape(-1)[position] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("blocks.cut_column", put(0, 10**6)),
        ("blocks.cut_column", put(0, -1)),
        ("blocks.cut_weight", put(0, 10**5)),
        ("blocks.cut_weight", put(0, -4)),
        ("blocks.base", put(0, 1)),
        ("blocks.n_patterns", put(0, 1)),
        ("blocks.n_patterns", put(0, 10**6)),
        ("blocks.n_patterns", lambda a: a[:-1]),
        ("blocks.cut_start", put(1, 10**6)),
        ("blocks.cut_start", lambda a: a[:-1]),
        ("blocks.cut_at", lambda a: a[:-1]),
        ("table_block", put(0, 10**6)),
        ("table_block", put(0, -1)),
        ("table_offset", put(0, 10**9)),
        ("table_offset", put(-1, -8)),
        ("group_start", put(-1, 10**6)),
        ("group_players", put(0, 9)),
        ("group_players", lambda a: a[:-1]),
        ("group_output", put(0, 2)),
        ("group_width", put(0, 3)),
        ("values", lambda a: a[:-8]),
        ("terms.atom_bits", put(0, 12)),
        ("terms.atom_player", put(0, 9)),
        ("terms.atoms", put(0, 10**6)),
        ("terms.coefficients", lambda a: a[:-1]),
        ("rest.start", put(1, -3)),
        ("rest.atoms", lambda a: a.astype(np.float64)),
        ("background", lambda a: a[:-1]),
        ("weights", lambda a: a[:-1]),
        ("values", lambda a: None),
        ("n_bits", lambda n: n + 70),
        ("n_bits", lambda n: 2),
        ("n_players", lambda n: n - 1),
        ("n_bits", lambda n: "twelve"),
        ("plan", lambda p: {}),
    ],
)
def test_tables_that_lie(tmp_path: Path, name: str, change: Any) -> None:
    path = tmp_path / "lie.fshap"
    small_tables(9000).save(path)
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError):
        fs.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("words", put(0, 8)),
        ("words", lambda a: np.hstack([a, a])),
        ("words", lambda a: a.astype(np.int64)),
        ("words", lambda a: a[:-1]),
        ("words", lambda a: a[:, 0]),
        ("coefficients", put(0, np.nan)),
        ("coefficients", lambda a: None),
        ("dropped_coefficients", lambda a: np.stack([a, a], axis=1)),
        ("n_bits", lambda n: -1),
        ("n_bits", lambda n: None),
        ("n_bits", lambda n: 10**9),
    ],
)
def test_spectra_that_lie(tmp_path: Path, name: str, change: Any) -> None:
    path = tmp_path / "lie.fshap"
    small_spectrum().prune(max_terms=2).save(path)
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError):
        fs.load(path)


# Atomic writes


@pytest.mark.parametrize("where", ["safetensors.numpy.save_file", "os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException
) -> None:
    path = tmp_path / "h.fshap"
    small_spectrum().save(path)
    before = path.read_bytes()

    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(where, fail)
    with pytest.raises(type(error)):
        (small_spectrum() * 2.0).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["h.fshap"]


def test_files_are_as_private_as_the_umask_says(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        small_spectrum().save(tmp_path / "h.fshap")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "h.fshap").stat().st_mode) == 0o640


def test_an_open_map_survives_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "t.fshap"
    tables = small_tables()
    tables.save(path)
    loaded = fs.Tables.load(path)
    small_spectrum().save(path)
    X = np.zeros((2, 12))
    np.testing.assert_array_equal(loaded.shap_values(X), tables.shap_values(X))


def test_tables_travel_by_pickle_too(tmp_path: Path) -> None:
    """Between the processes of a cluster; files never use it."""
    path = tmp_path / "t.fshap"
    tables = small_tables(9000)
    tables.save(path)
    X = np.eye(12)
    for one in (tables, fs.Tables.load(path)):
        copied = pickle.loads(pickle.dumps(one))
        np.testing.assert_array_equal(copied.shap_values(X), tables.shap_values(X))


def deep_trees() -> fs.TreeExplainer:
    """Trees of which some have no table, so that background and weights are in the file."""
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    model = RandomForestRegressor(3, random_state=0).fit(X, X.sum(axis=1))
    small = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, X[:, 0])
    model.estimators_ = [*model.estimators_[:1], *small.estimators_]
    return fs.TreeExplainer(model, X[:30], weights=rng.random(30) + 0.5, memory=100_000).compile()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("background", lambda a: np.hstack([a, a[:, :4]])),
        ("background", lambda a: a[:, :-1]),
        ("background", lambda a: a[:, 0]),
        ("background", lambda a: a.astype(np.float64)),
        ("weights", lambda a: a[:-1]),
        ("weights", lambda a: -a),
        ("player", put(0, 99)),
        ("feasible", lambda a: a[:-1]),
        ("expected", lambda a: np.append(a, a)),
        ("table_expected", lambda a: a[:0]),
        ("blocks.cut_at", put(0, 300)),
        ("blocks.cut_at", lambda a: a.astype(np.int64)),
        ("group_output", lambda a: a.astype(np.uint8)),
        ("group_start", lambda a: a.astype(np.uint64)),
        ("table_offset", lambda a: a[:, None]),
        ("values", lambda a: a.astype(np.int32)),
        ("trees.left", put(0, 0)),
        ("trees.feature", put(0, 10**6)),
        ("dtype", lambda _: "int32"),
        ("precision", lambda _: "float16"),
        ("memory", lambda _: "all"),
        ("feature_names", lambda names: names[:-1]),
        ("player_names", lambda names: [*names, "one more"]),
        ("vocabularies", lambda _: [[float("inf"), []]]),
    ],
)
def test_trees_that_lie(tmp_path: Path, name: str, change: Any) -> None:
    path = tmp_path / "lie.fshap"
    deep_trees().save(path)
    assert "background" in _io.read(path).arrays and "values" in _io.read(path).arrays
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError):
        fs.load(path)


@pytest.mark.parametrize("method", ["trees", "exact"])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fidelity", lambda _: []),
        ("features", lambda entries: [entries[0] | {"player": 2**40}, *entries[1:]]),
        ("features", lambda entries: [entries[0] | {"columns": [99]}, *entries[1:]]),
        ("features", lambda entries: [entries[0] | {"columns": []}, *entries[1:]]),
        ("features", lambda _: []),
        ("column_player", put(0, 77)),
        ("column_player", lambda a: a[:-1]),
        ("player_names", lambda names: names[:1]),
        ("representation", lambda _: "magic"),
    ],
)
def test_black_boxes_that_lie(tmp_path: Path, name: str, change: Any, method: str) -> None:
    path = tmp_path / "lie.fshap"
    X = np.random.default_rng(0).integers(0, 3, size=(60, 3 if method == "exact" else 8)).astype(float)
    explainer = fs.BlackBoxExplainer(
        lambda rows: rows[:, 0] * rows[:, 1], X, method=method, budget=300, min_fidelity=-9, random_state=0
    )
    explainer.save(path)
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError):
        fs.load(path).shap_values(X[:2])


@pytest.mark.parametrize(("key", "value"), [("header", "[" * 100_000), ("version", "9" * 5000)])
def test_metadata_that_is_out_of_bounds(tmp_path: Path, key: str, value: str) -> None:
    metadata = {"format": "fouriershap", "version": "1", "kind": "tables", "header": "{}"} | {key: value}
    metadata["sha256"] = _io._digest("tables", {}, metadata["header"])
    save_file({}, tmp_path / "m.fshap", metadata=metadata)
    with pytest.raises(fs.FileFormatError):
        fs.load(tmp_path / "m.fshap")


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h.fshap"
    first, second = fs.Spectrum([[1, 0]], [1.0]), fs.Spectrum(np.eye(9, dtype=bool), np.ones(9))
    first.save(path)
    parse = _io._parse

    def parse_and_replace(where: Path) -> Any:
        found = parse(where)
        monkeypatch.setattr(_io, "_parse", parse)
        second.save(path)
        return found

    monkeypatch.setattr(_io, "_parse", parse_and_replace)
    assert len(fs.load(path)) == 9
