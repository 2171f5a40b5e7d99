"""What an ONNX graph does to rows before its trees compare them, taken back into the thresholds of the trees.

Scaling, casting and filling in missing values act on one column at a time and keep the order of numbers, or turn it
round, rounding included. So "what comes out is at least t" holds from some number of the input on, and that number is
found by halving the numbers of its type: exactly, whatever the arithmetic in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap._libraries.onnx.graph import TYPES, WAY_OUT, Graph, Node

_Step = Callable[[NDArray[Any]], NDArray[Any]]
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}
_UNCHANGED = ("Identity", "Dropout")


@dataclass(frozen=True, eq=False)
class Column:
    """A column between the inputs of a graph and its trees: the input column that it comes from, and what was done."""

    source: int
    dtype: type[np.generic]
    steps: tuple[_Step, ...] = ()
    rises: bool = True  # whether larger inputs give larger outputs
    is_plain: bool = True  # whether nothing but its type was changed
    is_whole: bool = False  # whether it holds whole numbers, on which arithmetic is another

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for step in self.steps:
                x = step(x)
        return x

    def then(self, step: _Step, rises: bool = True) -> Column:
        return replace(self, steps=(*self.steps, step), rises=self.rises == rises, is_plain=False)

    def cast(self, dtype: type[np.generic]) -> Column:
        steps = (*self.steps, lambda x: x.astype(dtype))
        return replace(self, steps=steps, dtype=dtype, is_whole=False)


def columns_before(graph: Graph, name: str, n_columns: int) -> tuple[list[Column], list[str]]:
    """Return the columns of a value of the graph, and the names of the input columns in the order of a row.

    ``n_columns``: how many the trees need at least, for inputs that do not say how many they have.
    """
    starts: dict[str, tuple[int, int]] = {}
    at = 0
    for given in graph.inputs:
        if given.dtype is None or given.dtype in (np.bool_, np.float16):
            raise UnsupportedModelError(
                f"the input {truncated_repr(given.name)} of the ONNX model holds no numbers that trees compare "
                "(texts, Booleans "
                f"or half floats). {WAY_OUT}"
            )
        width = given.n_columns or (n_columns if len(graph.inputs) == 1 else 1)
        starts[given.name] = (at, width)
        at += width
    types = {given.name: given.dtype for given in graph.inputs}
    mixed = any(dtype is not np.float32 for dtype in types.values())  # rows are then double

    def walk(value: str) -> list[Column]:
        if value in starts:
            first, width = starts[value]
            dtype = types[value]
            made = [Column(first + c, np.float64 if mixed else np.float32) for c in range(width)]
            if not mixed or dtype is np.float64:
                return made
            if dtype is np.float32:
                return [column.cast(np.float32) for column in made]
            return [replace(column, is_whole=True) for column in made]
        node = graph.producer.get(value)
        if node is None:
            raise _refused("a constant, or nothing,", value)
        return _apply(graph, node, walk)

    names = [
        given.name if starts[given.name][1] == 1 else f"{given.name}_{c}"
        for given in graph.inputs
        for c in range(starts[given.name][1])
    ]
    # Whole numbers are compared as float32, too.
    return [column.cast(np.float32) if column.is_whole else column for column in walk(name)], names


def _apply(graph: Graph, node: Node, walk: Callable[[str], list[Column]]) -> list[Column]:
    """Return the columns that an operator makes."""
    if node.op in _UNCHANGED:
        return walk(node.inputs[0])
    if node.op == "Cast":
        to = TYPES.get(node.whole("to", 1))
        if to not in (np.float32, np.float64):
            raise _refused("Cast to anything but float or double", node.outputs[0])
        return [column.cast(to) for column in walk(node.inputs[0])]
    if node.op == "Concat":
        if node.whole("axis", 1) not in (1, -1):
            raise _refused("Concat of rows", node.outputs[0])
        return [column for part in node.inputs for column in walk(part)]
    if node.op in ("ArrayFeatureExtractor", "Gather"):
        return _picked(graph, node, walk)
    if node.op == "Scaler":
        columns = walk(node.inputs[0])
        offset, scale = (_spread(node.floats(key), len(columns), node) for key in ("offset", "scale"))
        made = [column.cast(np.float32) for column in columns]
        shifted = _with_constants(made, "Sub", offset, True, node)
        return _with_constants(shifted, "Mul", scale, True, node)
    if node.op == "Imputer":
        return _imputed(node, walk(node.inputs[0]))
    if node.op in _ARITHMETIC:
        left, right = (graph.constant(name) for name in node.inputs)
        if (left is None) == (right is None):
            raise _refused(f"{node.op} of two columns", node.outputs[0])
        constant = left if right is None else right
        assert constant is not None
        columns = walk(node.inputs[0] if right is not None else node.inputs[1])
        spread = _spread(constant.reshape(-1), len(columns), node)
        return _with_constants(columns, node.op, spread, right is not None, node)
    raise _refused(node.op, node.outputs[0])


def _refused(what: str, value: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"the ONNX model has {truncated_text(what)} before its trees (it makes {truncated_repr(value)}), which "
        "is not read: only "
        f"Scaler, Imputer, Cast, Concat, choosing columns, and Add, Sub, Mul and Div by constants are. {WAY_OUT}"
    )


def _spread(values: NDArray[Any], n_columns: int, node: Node) -> NDArray[Any]:
    if len(values) not in (1, n_columns):
        raise _refused(f"{node.op} with {len(values)} numbers for {n_columns} columns", node.outputs[0])
    return np.broadcast_to(values, n_columns)


def _with_constants(
    columns: list[Column], op: str, constants: NDArray[Any], column_first: bool, node: Node
) -> list[Column]:
    made = []
    if any(column.is_whole for column in columns):
        raise _refused(f"{node.op} of whole numbers", node.outputs[0])
    for column, number in zip(columns, constants, strict=True):
        if not np.isfinite(number) or (op in ("Mul", "Div") and number == 0):
            raise _refused(f"{node.op} by {number}", node.outputs[0])
        if op == "Div" and not column_first:
            raise _refused("a constant divided by a column", node.outputs[0])
        falls = (op in ("Mul", "Div") and number < 0) or (op == "Sub" and not column_first)
        made.append(column.then(_arithmetic(op, column.dtype, number, column_first), not falls))
    return made


def _arithmetic(op: str, dtype: type[np.generic], number: Any, column_first: bool) -> _Step:
    function, constant = _ARITHMETIC[op], np.asarray(number).astype(dtype)
    return (lambda x: function(x, constant)) if column_first else (lambda x: function(constant, x))


def _imputed(node: Node, columns: list[Column]) -> list[Column]:
    if not np.isnan(node.number("replaced_value_float", 0.0)) or "replaced_value_int64" in node.attributes:
        raise _refused("Imputer of a value other than NaN", node.outputs[0])
    filled = _spread(node.floats("imputed_value_floats"), len(columns), node)
    return [c.then(_fill(c.dtype, value)) for c, value in zip(columns, filled, strict=True)]


def _fill(dtype: type[np.generic], value: Any) -> _Step:
    number = np.asarray(value).astype(dtype)
    return lambda x: np.where(np.isnan(x), number, x)


def _picked(graph: Graph, node: Node, walk: Callable[[str], list[Column]]) -> list[Column]:
    index = graph.constant(node.inputs[1])
    if index is None or (node.op == "Gather" and node.whole("axis", 0) not in (1, -1)):
        raise _refused(f"{node.op} of rows, or by a computed index", node.outputs[0])
    columns = walk(node.inputs[0])
    if not ((index >= -len(columns)) & (index < len(columns))).all():
        raise _refused(f"{node.op} of columns that are not there", node.outputs[0])
    return [columns[int(c)] for c in index.reshape(-1)]


def inputs_from(
    column: Column, thresholds: NDArray[Any], dtype: type[np.floating[Any]]
) -> NDArray[np.float64]:
    """Return the first number of ``dtype`` that the column maps to at least each threshold.

    Where the column falls, the first for which it is under the threshold. NaN: no number; -inf: every number.
    """
    never = np.isnan(thresholds)  # in the form of ensembles: no number reaches it

    def holds(positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        reached: NDArray[np.bool_] = (column(_at(positions, dtype)) >= thresholds) & ~never
        return reached if column.rises else ~reached

    low = np.full(len(thresholds), _position(dtype("-inf")))
    high = np.full(len(thresholds), _position(dtype("inf")))
    always, nowhere = holds(low), ~holds(high)
    while (low + 1 != high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their sum could be too large
        middle_holds = holds(middle)
        low, high = np.where(middle_holds, low, middle), np.where(middle_holds, middle, high)
    found = _at(high, dtype).astype(np.float64)
    return np.where(nowhere, np.nan, np.where(always, -np.inf, found))


def _position(number: np.floating[Any]) -> int:
    """Return the place of a number in the order of all numbers of its type; -0.0 and 0.0 share one."""
    bits = np.abs(number).view(f"i{number.itemsize}")
    return -int(bits) if number < 0 else int(bits)


def _at(positions: NDArray[np.int64], dtype: type[np.floating[Any]]) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize
    numbers = np.abs(positions).astype(f"i{size}").view(dtype)
    return np.where(positions < 0, -numbers, numbers)
