"""ONNX files as a graph of operators: what the reader of trees needs of the format.

The fields are those of ``onnx.proto``; see `protobuf` for why no library is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.messages import truncated_repr
from fouriershap._libraries.protobuf import Message

# Numbers of element types; strings (8), complex and tiny floats are not inputs of trees.
TYPES: dict[int, type[np.generic]] = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
    13: np.uint64,
}
WAY_OUT = (
    "As a black box it is explained by fs.BlackBoxExplainer(predict, background), with predict running the model by "
    "onnxruntime, or by `fouriershap fit model.onnx` on the command line."
)


@dataclass(frozen=True, eq=False)
class Node:
    """One operator."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Message]

    @classmethod
    def read(cls, message: Message) -> Node:
        attributes = {attribute.text(1): attribute for attribute in message.messages(5)}
        return cls(message.text(4), tuple(message.texts(1)), tuple(message.texts(2)), attributes)

    def floats(self, name: str) -> NDArray[Any]:
        """Floats, or a tensor of any numbers by the same name or with ``_as_tensor`` behind it."""
        for key in (name, f"{name}_as_tensor"):
            if key in self.attributes and 5 in self.attributes[key]:
                return tensor(self.attributes[key].message(5)).reshape(-1)
        return self.attributes[name].floats(7) if name in self.attributes else np.empty(0, dtype=np.float32)

    def wholes(self, name: str) -> NDArray[np.int64]:
        if name not in self.attributes:
            return np.empty(0, dtype=np.int64)
        found = self.attributes[name]
        return tensor(found.message(5)).astype(np.int64).reshape(-1) if 5 in found else found.wholes(8)

    def whole(self, name: str, default: int) -> int:
        return self.attributes[name].whole(3, default) if name in self.attributes else default

    def number(self, name: str, default: float) -> float:
        return self.attributes[name].number(2, default) if name in self.attributes else default

    def texts(self, name: str) -> list[str]:
        return self.attributes[name].texts(9) if name in self.attributes else []

    def text(self, name: str, default: str) -> str:
        return self.attributes[name].text(4) if name in self.attributes else default


@dataclass(frozen=True, eq=False)
class Input:
    """An input of the graph: its element type, and its columns (None where the file does not say)."""

    name: str
    dtype: type[np.generic] | None
    n_columns: int | None


class Graph:
    """The nodes of a model, its inputs, and its constants by name."""

    def __init__(self, data: bytes) -> None:
        model = Message(data)
        if 7 not in model:
            raise InputError("there is no graph in it: it is not an ONNX model.")
        graph = model.message(7)
        self.nodes = tuple(map(Node.read, graph.messages(1)))
        self.constants = {message.text(8): message for message in graph.messages(5)}
        self.outputs = tuple(message.text(1) for message in graph.messages(12))
        self.inputs = tuple(_input(m) for m in graph.messages(11) if m.text(1) not in self.constants)

    @cached_property
    def producer(self) -> dict[str, Node]:
        return {output: node for node in self.nodes for output in node.outputs if output}

    def consumers(self, name: str) -> Iterator[Node]:
        return (node for node in self.nodes if name in node.inputs)

    def constant(self, name: str) -> NDArray[Any] | None:
        """Return a constant by name: an initializer or the value of a Constant node; None for anything else."""
        if name in self.constants:
            return tensor(self.constants[name])
        node = self.producer.get(name)
        if node is None or node.op not in ("Constant", "Identity"):
            return None
        if node.op == "Identity":
            return self.constant(node.inputs[0])
        if "value" in node.attributes:
            return tensor(node.attributes["value"].message(5))
        if "value_float" in node.attributes:
            return np.array(node.number("value_float", 0.0), dtype=np.float32)
        if "value_floats" in node.attributes:
            return node.floats("value_floats")
        return node.wholes("value_ints") if "value_ints" in node.attributes else None


def _input(message: Message) -> Input:
    form = message.message(2).message(1)
    dimensions = form.message(2).messages(1)
    n_columns = dimensions[-1].whole(1) if len(dimensions) == 2 else 1 if len(dimensions) == 1 else 0
    return Input(message.text(1), TYPES.get(form.whole(1)), n_columns or None)


def tensor(message: Message) -> NDArray[Any]:
    """Return the array in a message of type TensorProto."""
    dtype = TYPES.get(message.whole(2))
    if dtype is None:
        raise UnsupportedModelError(
            f"a constant of the ONNX model is of element type {message.whole(2)}: no numbers. {WAY_OUT}"
        )
    if message.whole(14):
        raise UnsupportedModelError(
            f"the constant {truncated_repr(message.text(8))} of the ONNX model is in another file. Save the "
            "model in one file."
        )
    shape = tuple(message.wholes(1).tolist())
    if 9 in message:
        values: NDArray[Any] = np.frombuffer(message.blob(9), dtype=np.dtype(dtype).newbyteorder("<"))
    elif dtype is np.float32:
        values = message.floats(4)
    elif dtype is np.float64:
        values = message.doubles(10)
    elif dtype is np.int64:
        values = message.wholes(7)
    elif dtype in (np.uint32, np.uint64):
        values = message.wholes(11)
    else:
        values = message.wholes(5)
    if dtype is np.float16 and 9 not in message:
        return values.astype(np.uint16).view(np.float16).reshape(shape)
    return values.astype(dtype).reshape(shape)
