"""ONNX: ``TreeEnsembleRegressor``, ``TreeEnsembleClassifier`` and, of later files, ``TreeEnsemble``.

The trees compare in the type of their input, float32 unless a file says double. What a graph does to rows before that
goes into the thresholds (`columns`); what it does behind the trees is a link, which is not explained, or linear.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import LOGISTIC, SOFTMAX, UNKNOWN, Link
from fouriershap._base.messages import truncated_text
from fouriershap._libraries.onnx.columns import Column, columns_before, inputs_from
from fouriershap._libraries.onnx.graph import WAY_OUT, Graph, Node
from fouriershap._libraries.onnx.trees import (
    EQ,
    GT,
    LEQ,
    LT,
    MEMBER,
    NEQ,
    Nodes,
    class_labels,
    read_nodes,
)
from fouriershap._libraries.reading import Reading, tree_reading
from fouriershap._rows.rules import Casting
from fouriershap._trees.assemble import Tree, join, right_above
from fouriershap._trees.ensemble import LEAF

OPERATORS = ("TreeEnsembleRegressor", "TreeEnsembleClassifier", "TreeEnsemble")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_LINKS = {"LOGISTIC": LOGISTIC, "Sigmoid": LOGISTIC, "SOFTMAX": SOFTMAX, "Softmax": SOFTMAX}
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_LINK_NODES = ("Sigmoid", "Softmax", "LogSoftmax", "Exp", "Log", "Relu", "Clip", "Tanh")
_SAME = ("Identity", "Cast", "ZipMap", "Reshape", "Flatten", "Squeeze")
_LABELS = ("ArgMax", "TopK", "Greater", "GreaterOrEqual", "Less")  # what labels are made by
_CASTING = Casting("onnx", labels_in_dtype=True)


class _Condition(NamedTuple):
    """Nodes in the form of ensembles, but that children are in the numbering of all trees."""

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    categories: dict[int, NDArray[np.int64]]


def read(data: bytes) -> Reading:
    """Read the one ensemble of trees in an ONNX model: its raw output, before ``post_transform`` and links."""
    graph = Graph(data)
    found = [node for node in graph.nodes if node.op in OPERATORS]
    if len(found) != 1:
        ops = ", ".join(truncated_text(op) for op in sorted({node.op for node in graph.nodes}))
        raise UnsupportedModelError(
            f"the ONNX model has {len(found)} ensembles of trees, where one is read; its operators: {ops}. {WAY_OUT}"
        )
    node = found[0]
    nodes = read_nodes(node)
    n_needed = int(nodes.feature.max(initial=-1)) + 1
    columns, names = columns_before(graph, node.inputs[0], n_needed)
    if n_needed > len(columns):
        raise InputError(f"its trees compare column {n_needed - 1}, but only {len(columns)} come to them.")
    double = any(given.dtype is not np.float32 for given in graph.inputs)
    dtype: type[np.floating[Any]] = np.float64 if double else np.float32
    compared = np.float64 if columns and columns[0].dtype is np.float64 else np.float32
    vocabularies = _vocabularies(nodes, columns)
    condition = _conditions(nodes, columns, dtype, compared, vocabularies)
    weights, base, labels = _outputs(node, nodes)
    scale, shift, link = _read_behind(graph, node)
    weights, base = weights * scale, base * scale + shift
    trees, tree_output = _trees(nodes, condition, weights)
    return tree_reading(
        f"onnx {node.op}",
        join(trees, trees[0].values.shape[1] if trees else 1),
        len(names),
        dtype,
        tree_output.astype(np.int32),
        base,
        link=_link(link, len(base)),
        output_names=labels,
        computes_in=compared
        if node.op == "TreeEnsemble"
        else np.float32,  # scores of the others are always float
        casting=_CASTING,
        feature_names=tuple(names) if len(graph.inputs) > 1 else None,
        vocabularies=vocabularies,
        numbers_are_labels=bool(vocabularies),
    )


def _word(node: Node, name: str, default: str, words: tuple[str, ...]) -> str:
    """Return an attribute that is a word in the older operators, and its number in the newer one."""
    if node.op != "TreeEnsemble":
        return node.text(name, default)
    return words[node.whole(name, words.index(default))]


def _read_behind(graph: Graph, node: Node) -> tuple[Any, Any, str]:
    """Return what is done to the output of the trees: a factor, a summand, and the name of a link ("NONE" for none)."""
    scale, shift, value = np.float64(1), np.float64(0), node.outputs[-1]
    transform = _word(node, "post_transform", "NONE", _TRANSFORMS)
    if transform != "NONE" or (node.op == "TreeEnsembleClassifier" and len(node.outputs) < 2):
        return scale, shift, transform
    while True:
        after = [found for found in graph.consumers(value) if found.op not in _LABELS]
        if not after:
            return scale, shift, "NONE"
        if after[0].op in _LINK_NODES:
            return scale, shift, after[0].op
        if len(after) > 1 or after[0].op not in (*_SAME, "Add", "Sub", "Mul", "Div"):
            ops = ", ".join(truncated_text(found.op) for found in after)
            raise UnsupportedModelError(
                f"the ONNX model has {ops} behind its trees, which is not read: only Add, Sub, Mul and Div by "
                f"constants, and links such as Sigmoid and Softmax, are. {WAY_OUT}"
            )
        if after[0].op not in _SAME:
            scale, shift = _linear(graph, after[0], value, scale, shift)
        value = after[0].outputs[0]


def _linear(graph: Graph, node: Node, value: str, scale: Any, shift: Any) -> tuple[Any, Any]:
    first = node.inputs[0] == value
    constant = graph.constant(node.inputs[1 if first else 0])
    if constant is None or (node.op == "Div" and not first):
        raise UnsupportedModelError(
            f"the ONNX model has {node.op} of two computed values behind its trees. {WAY_OUT}"
        )
    number = constant.astype(np.float64).reshape(-1)
    if node.op in ("Mul", "Div"):
        factor = number if node.op == "Mul" else 1 / number
        return scale * factor, shift * factor
    if node.op == "Add":
        return scale, shift + number
    return (scale, shift - number) if first else (-scale, number - shift)


def _link(name: str, n_outputs: int) -> Link:
    found = _LINKS.get(name, UNKNOWN)
    return found if (found is LOGISTIC) == (n_outputs == 1) else UNKNOWN


def _vocabularies(nodes: Nodes, columns: list[Column]) -> dict[int, tuple[float, ...]]:
    """Return the numbers that columns are tested to equal, by input column: such a column holds labels."""
    by_equality = np.isin(nodes.mode, (EQ, NEQ, MEMBER))
    tested: dict[int, set[float]] = {}
    for node in np.flatnonzero(by_equality).tolist():
        column = columns[nodes.feature[node]]
        if not column.is_plain:
            raise UnsupportedModelError(
                f"the ONNX model scales a column that its trees compare for equality: not read. {WAY_OUT}"
            )
        members = nodes.members[node] if nodes.mode[node] == MEMBER else nodes.value[[node]]
        tested.setdefault(column.source, set()).update(members.tolist())
    ordered = {columns[f].source for f in np.unique(nodes.feature[(nodes.mode != LEAF) & ~by_equality])}
    if ordered & tested.keys():
        raise UnsupportedModelError(
            f"the trees of the ONNX model compare column {min(ordered & tested.keys())} both by order and for "
            f"equality: not read. {WAY_OUT}"
        )
    return {source: tuple(sorted(values)) for source, values in sorted(tested.items())}


def _conditions(
    nodes: Nodes,
    columns: list[Column],
    dtype: type[np.floating[Any]],
    compared: type[np.floating[Any]],
    vocabularies: dict[int, tuple[float, ...]],
) -> _Condition:
    mode, value = nodes.mode, nodes.value.astype(compared).astype(np.float64)
    threshold = np.where(np.isin(mode, (LEQ, GT)), right_above(value, compared), value)
    yes_left = np.isin(mode, (LEQ, LT, EQ, MEMBER))
    left, right = np.where(yes_left, nodes.yes, nodes.no), np.where(yes_left, nodes.no, nodes.yes)
    # NaN is unequal to every number.
    missing_left = (nodes.missing_yes == yes_left) & (mode != NEQ)
    categories: dict[int, NDArray[np.int64]] = {}
    source = np.array([column.source for column in columns] + [LEAF])
    for number in np.unique(nodes.feature[mode != LEAF]):
        column, mine = columns[number], np.flatnonzero((nodes.feature == number) & (mode != LEAF))
        if column.source in vocabularies:
            known = np.array(vocabularies[column.source])
            for node in mine.tolist():
                members = nodes.members[node] if mode[node] == MEMBER else value[[node]]
                categories[node] = np.flatnonzero(np.isin(known, members))
            continue
        filled = column(np.array([np.nan], dtype=dtype))[0]
        if not np.isnan(filled):
            missing_left[mine] = ~(filled >= threshold[mine])
        if column.steps:
            distinct, place = np.unique(threshold[mine], return_inverse=True)
            threshold[mine] = inputs_from(column, distinct, dtype)[place]
        if not column.rises:
            left[mine], right[mine] = right[mine], left[mine]
            missing_left[mine] = ~missing_left[mine]
    return _Condition(source[nodes.feature], threshold, left, right, missing_left, categories)


def _outputs(node: Node, nodes: Nodes) -> tuple[NDArray[np.float64], NDArray[np.float64], Any]:
    """Weights (n_nodes, n_outputs) of the leaves, what is added to them, and the names of the outputs.

    A classifier of two classes whose leaves speak of the first alone has one output: the margin of the second class.
    """
    aggregate = _word(node, "aggregate_function", "SUM", _AGGREGATES)
    if aggregate not in ("SUM", "AVERAGE"):
        raise UnsupportedModelError(
            f"the ONNX model takes the {aggregate} over its trees: no sum of trees. {WAY_OUT}"
        )
    weights = nodes.weights / (len(np.unique(nodes.tree)) if aggregate == "AVERAGE" else 1)
    base, labels = node.floats("base_values").astype(np.float64), class_labels(node)
    named = nodes.has_target.tolist()
    if len(labels) == 2 and named == [True, False]:
        weights, labels = weights[:, :1], []
    # Two classes with base values: onnxruntime has rules of its own, which are not those of the specification.
    if len(base) not in (0, weights.shape[1]) or (len(base) and len(labels) == 2):
        raise UnsupportedModelError(
            f"the ONNX model has {len(base)} base values for {weights.shape[1]} outputs of leaves that name the "
            f"classes {[k for k, has in enumerate(named) if has][:5]}: what that means is not defined. {WAY_OUT}"
        )
    names = tuple(str(label) for label in labels) if len(labels) == weights.shape[1] else None
    return weights, base if len(base) else np.zeros(weights.shape[1]), names


def _trees(
    nodes: Nodes, condition: _Condition, weights: NDArray[np.float64]
) -> tuple[list[Tree], NDArray[np.int64]]:
    """Return the trees one by one, their roots first, and the output of each."""
    is_child = np.zeros(len(nodes.tree), dtype=bool)
    is_child[np.concatenate([nodes.yes, nodes.no])[np.tile(nodes.mode != LEAF, 2)]] = True
    order = np.lexsort((is_child, nodes.tree))
    _, start = np.unique(nodes.tree[order], return_index=True)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    named = np.maximum.reduceat((weights != 0)[order], start, axis=0) if len(start) else np.zeros((0, 1))
    single = weights.shape[1] == 1 or bool((named.sum(axis=1) <= 1).all())
    outputs = named.argmax(axis=1) if single else np.full(len(start), -1)
    trees = []
    for tree, members in enumerate(np.split(order, start[1:]) if len(start) else []):
        left, right = (
            np.where(nodes.mode[members] == LEAF, LEAF, place[side[members]] - start[tree])
            for side in (condition.left, condition.right)
        )
        sets = {
            i: condition.categories[n] for i, n in enumerate(members.tolist()) if n in condition.categories
        }
        trees.append(
            Tree(
                condition.feature[members],
                condition.threshold[members],
                left,
                right,
                condition.missing_left[members],
                np.zeros(len(members)),  # ONNX does not say how many training rows came by
                weights[members][:, outputs[[tree]]] if single else weights[members],
                sets,
            )
        )
    return trees, outputs if len(trees) else np.zeros(1, dtype=np.int64)
