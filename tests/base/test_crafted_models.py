"""Model files and arrays that were made to lead the kernels astray: an error, and no process that ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

import fouriershap as fs
from fouriershap import _kernels as kernels
from fouriershap._shapley.trees import walk
from fouriershap._shapley.trees.plan import MOST_STREAM_DEPTH, count_bottom_subtrees
from fouriershap._trees.codes import code_trees

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + X[:, 1] * X[:, 2]


def test_a_lightgbm_file_with_more_leaves_than_can_be_counted(tmp_path: Path) -> None:
    """Twice the number is negative, and the sum of all counts is 10: a thousand numbers would go there."""
    model = lightgbm.LGBMRegressor(n_estimators=1, num_leaves=4, min_child_samples=5, verbose=-1).fit(X, Y)
    text = model.booster_.model_to_string()
    text = re.sub(r"num_leaves=\d+", f"num_leaves={2**62 + 2}", text, count=1)
    numbers = " ".join(["2"] * 1000)
    text = re.sub(r"decision_type=.*", f"decision_type={numbers}", text, count=1)
    path = tmp_path / "model.txt"
    path.write_text(text)
    with pytest.raises(fs.FourierShapError):
        fs.TreeExplainer(path, X)


def crafted_xgboost(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A model whose first tree was changed."""
    path = folder / "model.json"
    xgboost.XGBRegressor(n_estimators=2, max_depth=3, n_jobs=1).fit(X, Y).save_model(path)
    whole = json.loads(path.read_text())
    change(whole["learner"]["gradient_booster"]["model"]["trees"][0])
    path.write_text(json.dumps(whole))
    return path


def no_feature(tree: dict[str, Any]) -> None:
    tree["split_indices"][0] = -1


def no_cover(tree: dict[str, Any]) -> None:
    tree["sum_hessian"] = []


def in_another_tree(tree: dict[str, Any]) -> None:
    tree["right_children"][0] = len(tree["left_children"])


def two_parents(tree: dict[str, Any]) -> None:
    tree["right_children"][0] = tree["left_children"][0]


def no_right_child(tree: dict[str, Any]) -> None:
    tree["right_children"][0] = -1


def from_the_end(tree: dict[str, Any]) -> None:
    tree["right_children"][0] = -len(tree["left_children"])


def in_a_circle(tree: dict[str, Any]) -> None:
    tree["left_children"][0] = 0


def beyond_an_int(tree: dict[str, Any]) -> None:
    tree["left_children"][0] += 1 << 32


def one_node_of_many(tree: dict[str, Any]) -> None:
    tree["left_children"], tree["right_children"] = [1], [2]


def another_feature(tree: dict[str, Any]) -> None:
    tree["split_indices"][0] += 1 << 32


def between_features(tree: dict[str, Any]) -> None:
    tree["split_indices"][0] += 0.7


def a_leaf_by_another_number(tree: dict[str, Any]) -> None:
    tree["left_children"][0] = -7


def no_threshold(tree: dict[str, Any]) -> None:
    tree["split_conditions"][0] = float("nan")


NO_TREES = [no_feature, no_cover, in_another_tree, two_parents, no_right_child, from_the_end, in_a_circle]
NO_TREES += [beyond_an_int, one_node_of_many, another_feature, between_features, a_leaf_by_another_number]
NO_TREES += [no_threshold]


@pytest.mark.parametrize("change", NO_TREES)
@pytest.mark.parametrize("strategy", ["auto", "tables"])
def test_xgboost_files_whose_nodes_are_no_trees(
    change: Callable[[dict[str, Any]], None], strategy: str, tmp_path: Path
) -> None:
    path = crafted_xgboost(tmp_path, change)
    with pytest.raises(fs.FourierShapError):
        fs.TreeExplainer(path, X, strategy=strategy).shap_values(X)


@pytest.mark.parametrize("number", ["99999999999999999999", "1e400", "2147483648"])
def test_counts_that_no_file_can_hold(number: str, tmp_path: Path) -> None:
    path = crafted_xgboost(tmp_path, lambda tree: None)
    whole = json.loads(path.read_text())
    whole["learner"]["learner_model_param"]["num_class"] = number
    path.write_text(json.dumps(whole))
    with pytest.raises(fs.FourierShapError):
        fs.TreeExplainer(path, X)


ARRAYS: dict[str, dict[str, Any]] = {
    "threshold": {"threshold": [0.0]},
    "missing_left": {"missing_left": [True]},
    "cover": {"cover": [1.0]},
    "category_set": {"category_set": [-1]},
    "a set that is not there": {"category_set": lambda e: np.where(e.feature >= 0, 7, -1)},
    "roots": {"roots": [0, 10**6]},
    "set_start": {"set_start": [0, 5]},
    "feature": {"feature": lambda e: np.where(e.feature >= 0, -2, -1)},
    "children": {"left": lambda e: np.where(e.feature >= 0, e.right, -1)},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_do_not_fit(name: str) -> None:
    ensemble = fs.read_model(xgboost.XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1).fit(X, Y)).trees
    changes = {key: value(ensemble) if callable(value) else value for key, value in ARRAYS[name].items()}
    with pytest.raises(fs.InputError, match="do not fit together"):
        ensemble.replace(**changes)


def chain(depth: int) -> fs.TreeEnsemble:
    """One tree, a leaf to the left of every node."""
    ensemble = fs.read_model(xgboost.XGBRegressor(n_estimators=1, max_depth=1, n_jobs=1).fit(X, Y)).trees
    n, inner = 2 * depth + 1, np.arange(0, 2 * depth, 2)
    feature, left, right = (np.full(n, -1) for _ in range(3))
    feature[inner], left[inner], right[inner] = inner // 2 % 3, inner + 1, inner + 2
    threshold = np.zeros(n)
    threshold[inner] = np.linspace(-2, 2, depth)
    whole = {"feature": feature, "left": left, "right": right, "threshold": threshold}
    whole |= {"missing_left": np.zeros(n, bool), "category_set": np.full(n, -1), "cover": np.ones(n)}
    values = np.where(feature[:, None] < 0, np.arange(n)[:, None] / n, 0.0)
    return ensemble.replace(**whole, values=values, roots=[0], tree_output=[0])


def test_bottom_subtrees_of_a_tree_of_any_depth() -> None:
    shallow, deep = (walk.prepare(code_trees(chain(depth))) for depth in (MOST_STREAM_DEPTH, 300_000))
    found = count_bottom_subtrees(shallow)
    assert found.can_stream.all() and found.counts.sum() == MOST_STREAM_DEPTH
    found = count_bottom_subtrees(deep)
    assert not found.can_stream.any() and not found.counts.any()


def test_bits_beyond_the_last_of_a_spectrum() -> None:
    with pytest.raises(fs.InputError, match="lines of 3 bits"):
        fs.Spectrum.from_words(np.array([[255]], np.uint64), [1.0], 3)
    with pytest.raises(fs.InputError, match="lines of 65 bits"):
        fs.Spectrum.from_words(np.array([[255]], np.uint64), [1.0], 65)


@pytest.mark.skipif(kernels.backend() != "native", reason="the native kernels are not there")
def test_native_kernels_refuse_sizes_that_do_not_fit() -> None:
    text, out = np.frombuffer(b"1 2 3\n", np.uint8), np.empty(2)
    for start, count in (([0], [3]), ([0], [-1]), ([9], [1]), ([0, 0], [1, 2**62])):
        with pytest.raises(ValueError, match="outside 0 to"):
            kernels.numbers.parse_lines(text, np.array(start), np.array(count), out)
    inputs, targets = np.zeros((16, 2), np.float32), np.zeros((16, 1), np.float32)
    order, schedule = np.zeros((1, 16), np.int32), np.ones((1, 3), np.float32)
    with pytest.raises(ValueError, match="has length 5"):
        short = np.zeros(5, np.float32), np.zeros((2, 5), np.float32)
        kernels.waves.train(inputs, targets, order, schedule, 64, *short)
