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
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from fouriershap._base import files
from strategies import Problem, problems, random_frequencies, random_players


def small_spectrum() -> fs.Spectrum:
    return fs.Spectrum([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], [0.5, 1.0, -2.0, 0.01])


def small_tables(memory: float | None = None) -> fs.Explainer:
    rng = np.random.default_rng(0)
    h = fs.Spectrum(random_frequencies(rng, 60, 12, 6), rng.standard_normal((60, 2)))
    background = rng.integers(0, 2, size=(30, 12))
    groups = random_players(rng, 12, 9)
    return fs.SpectrumExplainer(h, background, groups=groups, weights=rng.random(30), memory=memory)


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
        options = {"groups": problem.players, "weights": problem.weights, "memory": memory}
        tables = fs.SpectrumExplainer(problem.spectrum, problem.background, **options)
        tables.save(path)
        loaded = fs.load(path)
        assert isinstance(loaded, fs.Explainer)
        np.testing.assert_array_equal(loaded.shap_values(problem.X), tables.shap_values(problem.X))
        np.testing.assert_array_equal(loaded.expected_value, tables.expected_value)
        assert loaded.plan() == tables.plan()


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
    for array in files.read(path).arrays.values():
        assert not array.flags.writeable
        assert array.size == 0 or is_mapped(array)
    small_spectrum().save(tmp_path / "h.fshap")
    spectrum = fs.Spectrum.load(tmp_path / "h.fshap")
    for kept in (fs.load(path).engine.tables.values, spectrum.words, spectrum.matrix):
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


def same_contents(one: files.Contents, other: files.Contents) -> bool:
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
    whole, contents = saved.read_bytes(), files.read(saved)
    header = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(0)
    inside = [*range(min(header, 700)), *rng.integers(0, len(whole), size=300).tolist()]
    for position in inside:
        path = tmp_path / "flipped.fshap"
        changed = bytearray(whole)
        changed[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            found = files.read(path)
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
        ("1", f"has format version 1; this fouriershap reads version {files.VERSION}: save the model again"),
        (str(files.VERSION + 1), "pip install --upgrade"),
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


def test_a_file_of_format_1_is_refused() -> None:
    with pytest.raises(fs.FileFormatError, match=r"format version 1.*save the model again"):
        fs.load(Path(__file__).parents[1] / "data" / "format_1.fshap")


def test_kinds(tmp_path: Path) -> None:
    small_spectrum().save(tmp_path / "h.fshap")
    small_tables().save(tmp_path / "t.fshap")
    with pytest.raises(fs.FileFormatError, match="holds a 'explainer of spectrum', not a 'spectrum'"):
        fs.Spectrum.load(tmp_path / "t.fshap")
    files.write(tmp_path / "u.fshap", "umbrella", {"a": np.ones(1)})
    with pytest.raises(fs.FileFormatError, match="'umbrella'"):
        fs.load(tmp_path / "u.fshap")


def test_files_that_are_not_there_or_not_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fs.load(tmp_path / "none.fshap")
    with pytest.raises(fs.MissingFileError, match=r"none\.fshap does not exist"):
        fs.load(tmp_path / "none.fshap")
    with pytest.raises(fs.FileAccessError, match="is a folder"):
        fs.load(tmp_path)
    with pytest.raises(fs.FileAccessError, match="is a folder"):
        small_spectrum().save(tmp_path)
    with pytest.raises(fs.InputError, match="path is 7"):
        fs.load(7)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        small_spectrum().save(tmp_path / "no" / "such" / "folder.fshap")


# Atomic writes


@pytest.mark.parametrize(
    "where", ["fouriershap._base.files.write_tensors", "os.fsync", "pathlib.Path.replace"]
)
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
    loaded = fs.load(path)
    small_spectrum().save(path)
    X = np.zeros((2, 12))
    np.testing.assert_array_equal(loaded.shap_values(X), tables.shap_values(X))


def test_tables_travel_by_pickle_too(tmp_path: Path) -> None:
    """Between the processes of a cluster; files never use it."""
    path = tmp_path / "t.fshap"
    tables = small_tables(9000)
    tables.save(path)
    X = np.eye(12)
    for one in (tables, fs.load(path)):
        copied = pickle.loads(pickle.dumps(one))
        np.testing.assert_array_equal(copied.shap_values(X), tables.shap_values(X))


@pytest.mark.parametrize(("key", "value"), [("header", "[" * 100_000), ("version", "9" * 5000)])
def test_metadata_that_is_out_of_bounds(tmp_path: Path, key: str, value: str) -> None:
    metadata = {
        "format": "fouriershap",
        "version": str(files.VERSION),
        "kind": "spectrum",
        "header": "{}",
    } | {key: value}
    metadata["sha256"] = files._digest("spectrum", {}, metadata["header"])
    save_file({}, tmp_path / "m.fshap", metadata=metadata)
    with pytest.raises(fs.FileFormatError):
        fs.load(tmp_path / "m.fshap")


def test_truth_values_that_are_neither_true_nor_false(tmp_path: Path) -> None:
    """Kernels compute with the bytes: 254 would be a feature far beyond the last."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, X[:, 0])
    fs.TreeExplainer(model, X).save(tmp_path / "t.fshap")
    found = files.read(tmp_path / "t.fshap")
    strange = np.full(len(found.arrays["trees.missing_left"]), 254, dtype=np.uint8).view(bool)
    files.write(
        tmp_path / "s.fshap", found.kind, {**found.arrays, "trees.missing_left": strange}, found.header
    )
    with pytest.raises(fs.FileFormatError, match="neither true nor false"):
        fs.load(tmp_path / "s.fshap")
