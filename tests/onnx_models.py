"""Random ensembles of trees in ONNX, node by node, and what onnxruntime says of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")


def random_ensemble(
    operator: str = "TreeEnsembleRegressor",
    n_targets: int = 1,
    n_classes: int = 0,
    n_features: int = 4,
    n_trees: int = 5,
    depth: int = 4,
    modes: tuple[str, ...] = ("BRANCH_LEQ",),
    tracks: bool = False,
    double: bool = False,
    before: str = "",
    seed: int = 0,
    thresholds: Any = None,
    members: tuple[float, ...] = (),
    named: tuple[int, ...] = (),
    **attributes: Any,
) -> Any:
    """A ModelProto of one operator; thresholds tie with rows of one decimal."""
    import onnx
    from onnx import helper

    rng = np.random.default_rng(seed)
    grid = np.arange(-12, 13) / 10 if thresholds is None else np.asarray(thresholds)
    nodes: list[dict[str, Any]] = []
    for tree in range(n_trees):
        _grow(nodes, rng, tree, depth, n_features, modes, grid, tracks)
    if n_classes:
        operator = "TreeEnsembleClassifier"
    n_outputs = n_classes or n_targets
    real = onnx.TensorProto.DOUBLE if double else onnx.TensorProto.FLOAT
    make = _new_operator if operator == "TreeEnsemble" else _old_operator
    kind = (operator, n_classes, n_outputs, named or tuple(range(n_outputs)))
    trees = make(helper, rng, nodes, kind, real, members, attributes)
    scaling, constants, last = _before(helper, before, n_features, real)
    trees.input.append(last)
    scores = real if operator == "TreeEnsemble" else onnx.TensorProto.FLOAT
    outputs = [helper.make_tensor_value_info("scores", scores, [None, n_outputs])]
    if n_classes:
        outputs.insert(0, helper.make_tensor_value_info("label", onnx.TensorProto.INT64, [None]))
    graph = helper.make_graph(
        [*scaling, trees],
        "trees",
        [helper.make_tensor_value_info("X", real, [None, n_features])],
        outputs,
        constants,
    )
    versions = [
        helper.make_opsetid("", 18),
        helper.make_opsetid("ai.onnx.ml", 5 if operator == "TreeEnsemble" else 3),
    ]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def _grow(
    nodes: list[dict[str, Any]],
    rng: np.random.Generator,
    tree: int,
    depth: int,
    n_features: int,
    modes: tuple[str, ...],
    grid: np.ndarray,
    tracks: bool,
) -> int:
    number = sum(node["tree"] == tree for node in nodes)
    node: dict[str, Any] = {"tree": tree, "number": number, "mode": "LEAF", "feature": 0, "value": 0.0}
    node |= {"yes": 0, "no": 0, "tracks": bool(tracks and rng.random() < 0.5)}
    nodes.append(node)
    if depth and (number == 0 or rng.random() < 0.85):
        node |= {"mode": str(rng.choice(modes)), "feature": int(rng.integers(n_features))}
        node["value"] = float(rng.choice(grid))
        for side in ("yes", "no"):
            node[side] = _grow(nodes, rng, tree, depth - 1, n_features, modes, grid, tracks)
    return number


def _old_operator(
    helper: Any,
    rng: np.random.Generator,
    nodes: list[dict[str, Any]],
    kind: tuple[str, int, int, tuple[int, ...]],
    real: int,
    members: tuple[float, ...],
    attributes: dict[str, Any],
) -> Any:
    operator, n_classes, n_outputs, named = kind
    leaves = [node for node in nodes if node["mode"] == "LEAF"]
    pairs = [(leaf, k) for leaf in leaves for k in named]
    prefix = "class" if n_classes else "target"
    settings = {
        "nodes_treeids": [node["tree"] for node in nodes],
        "nodes_nodeids": [node["number"] for node in nodes],
        "nodes_modes": [node["mode"] for node in nodes],
        "nodes_featureids": [node["feature"] for node in nodes],
        "nodes_values": [node["value"] for node in nodes],
        "nodes_truenodeids": [node["yes"] for node in nodes],
        "nodes_falsenodeids": [node["no"] for node in nodes],
        "nodes_missing_value_tracks_true": [int(node["tracks"]) for node in nodes],
        f"{prefix}_treeids": [leaf["tree"] for leaf, _ in pairs],
        f"{prefix}_nodeids": [leaf["number"] for leaf, _ in pairs],
        f"{prefix}_ids": [k for _, k in pairs],
        f"{prefix}_weights": rng.normal(size=len(pairs)).astype(np.float32).tolist(),
        "post_transform": "NONE",
    }
    settings |= {"classlabels_int64s": list(range(n_classes))} if n_classes else {"n_targets": n_outputs}
    outputs = ["label", "scores"] if n_classes else ["scores"]
    return helper.make_node(operator, [], outputs, domain="ai.onnx.ml", **settings | attributes)


def _new_operator(
    helper: Any,
    rng: np.random.Generator,
    nodes: list[dict[str, Any]],
    kind: tuple[str, int, int, tuple[int, ...]],
    real: int,
    members: tuple[float, ...],
    attributes: dict[str, Any],
) -> Any:
    """The same trees, leaves apart; a leaf has one weight for one target."""
    n_outputs = kind[2]
    inner = [node for node in nodes if node["mode"] != "LEAF"]
    leaves = [node for node in nodes if node["mode"] == "LEAF"]
    place = {(node["tree"], node["number"]): i for part in (inner, leaves) for i, node in enumerate(part)}
    is_leaf = {(node["tree"], node["number"]): node["mode"] == "LEAF" for node in nodes}
    dtype = np.float64 if real == 11 else np.float32

    def tensor(name: str, values: Any, form: int = real) -> Any:
        return helper.make_tensor(name, form, [len(values)], values)

    def side(name: str) -> tuple[list[int], list[int]]:
        keys = [(node["tree"], node[name]) for node in inner]
        return [place[key] for key in keys], [int(is_leaf[key]) for key in keys]

    (yes, yes_leaf), (no, no_leaf) = side("yes"), side("no")
    settings = {
        "tree_roots": [place[tree, 0] for tree in sorted({node["tree"] for node in nodes})],
        "nodes_modes": tensor("modes", [MODES.index(node["mode"]) for node in inner], 2),
        "nodes_featureids": [node["feature"] for node in inner],
        "nodes_splits": tensor("splits", np.array([node["value"] for node in inner], dtype)),
        "nodes_truenodeids": yes,
        "nodes_trueleafs": yes_leaf,
        "nodes_falsenodeids": no,
        "nodes_falseleafs": no_leaf,
        "nodes_missing_value_tracks_true": [int(node["tracks"]) for node in inner],
        "leaf_targetids": rng.integers(n_outputs, size=len(leaves)).tolist(),
        "leaf_weights": tensor("weights", rng.normal(size=len(leaves)).astype(dtype)),
        "n_targets": n_outputs,
        "aggregate_function": 1,
        "post_transform": 0,
    }
    sets = [node for node in inner if node["mode"] == "BRANCH_MEMBER"]
    if sets:
        values = [v for _ in sets for v in (*rng.choice(members, 3, replace=False), np.nan)]
        settings["membership_values"] = tensor("members", np.array(values, dtype))
    return helper.make_node("TreeEnsemble", [], ["scores"], domain="ai.onnx.ml", **settings | attributes)


def _before(helper: Any, what: str, n_features: int, real: int) -> tuple[list[Any], list[Any], str]:
    """Operators before the trees, their constants, and the name of what they make."""
    spread = np.linspace(0.3, 1.7, n_features).astype(np.float32)
    ml = {"domain": "ai.onnx.ml"}

    def constant(name: str, values: Any) -> Any:
        return helper.make_tensor(name, real, [1, len(values)], values)

    if what == "scaler":
        node = helper.make_node(
            "Scaler", ["X"], ["Z"], offset=(spread - 1).tolist(), scale=(1 / spread).tolist(), **ml
        )
        return [node], [], "Z"
    if what == "imputer":
        filled = helper.make_node(
            "Imputer",
            ["X"],
            ["F"],
            imputed_value_floats=(spread - 1).tolist(),
            replaced_value_float=np.nan,
            **ml,
        )
        node = helper.make_node(
            "Scaler", ["F"], ["Z"], offset=[0.1] * n_features, scale=[0.7] * n_features, **ml
        )
        return [filled, node], [], "Z"
    if what == "falling":
        nodes = [helper.make_node("Sub", ["one", "X"], ["D"]), helper.make_node("Mul", ["D", "signs"], ["Z"])]
        signs = spread * np.where(np.arange(n_features) % 2, 1, -1)
        return nodes, [constant("one", [1.0] * n_features), constant("signs", signs)], "Z"
    if what == "arithmetic":
        nodes = [
            helper.make_node("Div", ["X", "by"], ["A"]),
            helper.make_node("Add", ["plus", "A"], ["B"]),
            helper.make_node("Identity", ["B"], ["C"]),
            helper.make_node("Concat", ["C"], ["Z"], axis=1),
        ]
        return nodes, [constant("by", 3 * spread), constant("plus", spread / 7)], "Z"
    return [], [], "X"


def save_network(
    path: Path,
    n_columns: int = 3,
    n_units: int = 4,
    n_outputs: int = 1,
    batch: int | None = None,
    steepness: float = 1.0,
    seed: int = 0,
) -> Path:
    """A network of one hidden layer, without trees; ``batch``: the only number of rows that it takes."""
    import onnx

    helper, rng = onnx.helper, np.random.default_rng(seed)
    sizes = {"w": (n_columns, n_units), "b": (n_units,), "v": (n_units, n_outputs)}
    arrays = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    arrays["w"] *= np.float32(steepness)
    nodes = [
        helper.make_node("MatMul", ["rows", "w"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["g"]),
        helper.make_node("Tanh", ["g"], ["t"]),
        helper.make_node("MatMul", ["t", "v"], ["score"]),
    ]
    shape = helper.make_tensor_value_info
    given, said = shape("rows", 1, [batch, n_columns]), shape("score", 1, [batch, n_outputs])
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "network", [given], [said], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def run_onnx(model: Any, X: Any) -> np.ndarray:
    """The last output of a model by onnxruntime; rows are cast to what it takes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    inputs = session.get_inputs()
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    with np.errstate(over="ignore"):
        fed = {inputs[0].name: np.asarray(X).astype(types[inputs[0].type])}
    return np.asarray(session.run(None, fed)[-1], dtype=np.float64)
