"""Corrupt files with a valid checksum: the kernels trust their arrays, so `load` must not."""

from __future__ import annotations

import copy
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_io import small_spectrum, small_tables

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._base import files
from fouriershap._base.checks import check_memory


def tamper(saved: Path, name: str, change: Any) -> None:
    """Change an array (None removes it), or a value of the header: ``part/name``."""
    contents = files.read(saved)
    arrays = {key: np.array(array) for key, array in contents.arrays.items()}
    header = copy.deepcopy(contents.header)
    *parts, last = [name] if name in arrays else name.split("/")
    inner: Any = arrays if name in arrays else header
    for part in parts:
        inner = inner[part]
    inner[last] = change(inner[last])
    files.write(saved, contents.kind, {k: v for k, v in arrays.items() if v is not None}, header)


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
        ("engine/n_bits", lambda n: n + 70),
        ("engine/n_bits", lambda n: 2),
        ("engine/n_bits", lambda n: 12.0),
        ("engine/n_players", lambda n: n - 1),
        ("engine/n_players", lambda n: 10**9),
        ("engine/n_players", lambda n: 13),
        ("engine/n_bits", lambda n: "twelve"),
        ("engine/plan", lambda p: {}),
        ("engine/plan", lambda p: p | {"n_direct_terms": "some"}),
        ("engine/plan", lambda p: p | {"n_direct_terms": p["n_direct_terms"] + 1}),
        ("engine/plan", lambda p: p | {"reason": 7}),
        ("engine/n_background", lambda n: n + 1),
        ("engine/n_background", lambda _: "many"),
        ("engine/n_background", lambda _: -1),
        ("expected", lambda a: a[:1]),
        ("expected", lambda a: a.astype(np.int64)),
        ("rest.constant", lambda a: np.append(a, a)),
        ("rest.coefficients", lambda a: np.hstack([a, a])),
        ("rest.coefficients", lambda a: a.astype(np.float32)),
        ("terms.start", put(1, 0)),
        ("terms.atoms", lambda a: np.zeros_like(a)),
        ("terms.atom_start", lambda a: a[:, None]),
        ("weights", lambda a: a.astype(np.float32)),
    ],
)
def test_tables_that_are_corrupt(tmp_path: Path, name: str, change: Any) -> None:
    path = tmp_path / "corrupt.fshap"
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
        ("n_bits", lambda n: True),
        ("coefficients", lambda a: a.astype(np.int64)),
        ("dropped_coefficients", lambda a: a.astype(np.float32)),
    ],
)
def test_spectra_that_are_corrupt(tmp_path: Path, name: str, change: Any) -> None:
    path = tmp_path / "corrupt.fshap"
    small_spectrum().prune(max_terms=2).save(path)
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError):
        fs.load(path)


def test_a_spectrum_of_nothing_in_a_thousand_million_bits(tmp_path: Path) -> None:
    words = np.zeros((0, 10**9 // 64), dtype=np.uint64)
    files.write(
        tmp_path / "h.fshap", "spectrum", {"words": words, "coefficients": np.zeros(0)}, {"n_bits": 10**9}
    )
    with pytest.raises(fs.FileFormatError, match="no terms"):
        fs.load(tmp_path / "h.fshap")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("input_player", lambda a: a[::-1].copy()),
        ("input_player", lambda a: a + 1),
        ("input_player", lambda a: a.astype(np.int64)),
        ("inputs/feature_names", lambda names: [*names[:-1], 5]),
        ("inputs/player_names", lambda names: "".join(names)),
    ],
)
def test_spectrum_explainers_that_are_corrupt(tmp_path: Path, name: str, change: Any) -> None:
    path = tmp_path / "corrupt.fshap"
    h = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
    fs.SpectrumExplainer(h, np.zeros((1, 3)), groups={"last": [1, 2]}).save(path)
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError, match="corrupt"):
        fs.load(path)


def test_a_file_states_no_more_memory_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "t.fshap"
    small_tables().save(path)
    tamper(path, "engine/memory", lambda _: 10**18)
    loaded = fs.load(path)
    assert isinstance(loaded, fs.Explainer)
    assert loaded.engine.memory == check_memory(None)


def deep_trees() -> fs.Explainer:
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
        ("input_player", put(0, 99)),
        ("input_player", lambda a: a[::-1].copy()),
        ("input_player", lambda a: a[:-1]),
        ("input_player", lambda _: None),
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
        ("engine/dtype", lambda _: "int32"),
        ("engine/precision", lambda _: "float16"),
        ("engine/memory", lambda _: "all"),
        ("inputs/feature_names", lambda names: names[:-1]),
        ("inputs/feature_names", lambda names: [*names[:-1], None]),
        ("inputs/feature_names", lambda names: [*names[:-1], "\ud800"]),
        ("inputs/player_names", lambda names: [*names, "one more"]),
        ("inputs/rules/vocabularies", lambda _: [[float("inf"), []]]),
        ("inputs/rules/vocabularies", lambda _: [[0, [["unhashable"]]]]),
        ("inputs/rules/vocabularies", lambda _: [[99, ["a"]]]),
        ("inputs/rules/vocabularies", lambda _: [[0]]),
        ("inputs/rules/lost_labels", lambda _: [99]),
        ("inputs/rules/frame_labels", lambda _: [3]),
        ("background", lambda _: None),
        ("values", lambda _: None),
        ("feasible", lambda a: np.zeros_like(a)),
        ("player", lambda a: np.where(a == 3, 0, a).astype(np.int32)),
        ("trees.cover", lambda a: a.astype(np.float32)),
        ("trees.category_set", put(-1, 0)),
        ("trees.set_start", lambda a: np.array([0, 5])),
        ("engine/n_background", lambda n: n + 1),
        ("engine/output", lambda _: "probability"),
        ("engine/strategy", lambda _: "magic"),
        ("engine/model_kind", lambda _: 7),
        ("engine/link", lambda _: ["binary"]),
        ("inputs/rules/hashed", lambda _: 1),
        ("inputs/rules/missing_value", lambda _: 0.5),
        ("engine/interventional", lambda _: False),
        ("inputs/has_pipeline", lambda _: "yes"),
    ],
)
def test_trees_that_are_corrupt(tmp_path: Path, name: str, change: Any) -> None:
    path = tmp_path / "corrupt.fshap"
    valid = saved_once("deep trees")
    files.write(path, *valid[:3])
    assert "background" in valid.arrays and "values" in valid.arrays
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError):
        fs.load(path)


def small_black_box(method: str) -> fs.Explainer:
    X = np.random.default_rng(0).integers(0, 3, size=(60, 3 if method == "enumerate" else 8)).astype(float)
    options: dict[str, Any] = {"budget": 300, "random_state": 0, "categorical": [2]}
    return explain_fitted(lambda rows: rows[:, 0] * rows[:, 1], X, method=method, **options)


@cache
def saved_once(name: str) -> files.Contents:
    """What a file would hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "valid.fshap"
        (deep_trees() if name == "deep trees" else small_black_box(name)).save(path)
        return files.read(path)


def first(**changes: Any) -> Any:
    """A list of objects whose first one is changed."""
    return lambda entries: [entries[0] | changes, *entries[1:]]


LIES_OF_BLACK_BOXES: list[tuple[str, Any]] = [
    ("fit/fidelity", lambda _: []),
    ("fit/fidelity", lambda f: f | {"n_queries": "many"}),
    ("fit/fidelity", lambda f: f | {"cube": [1.0]}),
    ("fit/fidelity", lambda f: f | {"by_output": [1.0, 1.0]}),
    ("fit/fidelity", lambda f: {key: value for key, value in f.items() if key != "r2"}),
    ("fit/candidates", lambda lines: [{}]),
    ("fit/candidates", first(name=3)),
    ("fit/features", first(player=2**40)),
    ("fit/features", first(player=1)),
    ("fit/features", first(columns=[99])),
    ("fit/features", first(columns=[])),
    ("fit/features", first(columns=[1])),
    ("fit/features", first(columns=[0, 1])),
    ("fit/features", first(kind="colour")),
    ("fit/features", first(kind="label", levels=[[]])),
    ("fit/features", first(levels=[1])),
    ("fit/features", first(missing="perhaps")),
    ("fit/features", lambda _: []),
    ("input_player", put(0, 1)),
    ("input_player", lambda _: None),
    ("column_player", put(0, 77)),
    ("column_player", lambda a: a[:-1]),
    ("column_player", lambda a: a.astype(np.int64)),
    ("inputs/player_names", lambda names: names[:1]),
    ("inputs/player_names", lambda names: [*names[:-1], 3]),
    ("output_names", lambda _: ["a", "b"]),
    ("engine/index", lambda _: "average"),
    ("fit/fitted_by", lambda _: None),
    ("fit/representation", lambda _: "magic"),
]


@pytest.mark.parametrize("method", ["trees", "enumerate"])
@pytest.mark.parametrize(("name", "change"), LIES_OF_BLACK_BOXES)
def test_black_boxes_that_are_corrupt(tmp_path: Path, name: str, change: Any, method: str) -> None:
    path = tmp_path / "corrupt.fshap"
    files.write(path, *saved_once(method)[:3])
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError, match="corrupt"):
        fs.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("player.0.levels", lambda a: a[:-1]),
        ("player.0.levels", lambda a: a.astype(np.int64)),
        ("player.2.levels", put(0, 17)),
        ("player.0.features", put(0, 9)),
        ("player.0.features", put(0, 1)),
        ("player.0.features", lambda a: a[:0]),
        ("player.0.rows", lambda a: np.append(a, a)),
        ("player.0.edges", lambda _: np.arange(9.0)),
        ("player.0.edges", lambda _: np.array([1.0, 0.0])),
        ("player.0.rows", lambda _: None),
        ("background", lambda a: np.zeros((1, a.shape[1] + 1), np.uint64)),
        ("background", lambda a: a.astype(np.int64)),
        ("terms.atom_player", put(0, 2)),
        ("spectrum.words", lambda a: a[:, :0]),
    ],
)
def test_levels_that_are_corrupt(tmp_path: Path, name: str, change: Any) -> None:
    path = tmp_path / "corrupt.fshap"
    files.write(path, *saved_once("enumerate")[:3])
    tamper(path, name, change)
    with pytest.raises(fs.FileFormatError, match="corrupt"):
        fs.load(path)


def test_messages_about_files_are_short(tmp_path: Path) -> None:
    path = tmp_path / "long.fshap"
    small_spectrum().save(path)
    tamper(path, "n_bits", lambda _: "9" * 5000)
    with pytest.raises(fs.FileFormatError) as caught:
        fs.load(path)
    assert len(str(caught.value)) < 80 + len(str(path)) + 80
    files.write(path, "x" * 5000, {})
    for load in (fs.load, fs.Spectrum.load):
        with pytest.raises(fs.FileFormatError) as caught:
            load(path)
        assert len(str(caught.value)) < 80 + len(str(path)) + 120
