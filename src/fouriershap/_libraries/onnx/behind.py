"""What an ONNX graph does to the output of its trees: linear steps, and a link, which is not explained."""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.messages import truncated_text
from fouriershap._libraries.onnx.graph import WAY_OUT, Graph, Node

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_LINKS = ("Sigmoid", "Softmax", "LogSoftmax", "Exp", "Log", "Relu", "Clip", "Tanh")
_SAME = ("Identity", "Cast", "ZipMap", "Reshape", "Flatten", "Squeeze")
_LABELS = ("ArgMax", "TopK", "Greater", "GreaterOrEqual", "Less")  # what labels are made by


def word(node: Node, name: str, default: str, words: tuple[str, ...]) -> str:
    """Return an attribute that is a word in the older operators, and its number in the newer one."""
    if node.op != "TreeEnsemble":
        return node.text(name, default)
    return words[node.whole(name, words.index(default))]


def read_behind(graph: Graph, node: Node) -> tuple[Any, Any, str]:
    """Return what is done to the output of the trees: a factor, a summand, and the name of a link ("NONE" for none)."""
    scale, shift, value = np.float64(1), np.float64(0), node.outputs[-1]
    transform = word(node, "post_transform", "NONE", _TRANSFORMS)
    if transform != "NONE" or (node.op == "TreeEnsembleClassifier" and len(node.outputs) < 2):
        return scale, shift, transform
    while True:
        after = [found for found in graph.consumers(value) if found.op not in _LABELS]
        if not after:
            return scale, shift, "NONE"
        if after[0].op in _LINKS:
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
