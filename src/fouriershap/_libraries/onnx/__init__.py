"""ONNX: ensembles of trees, with what the graph does before and behind them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from fouriershap._libraries.files import read_or_explain
from fouriershap._libraries.onnx.reader import OPERATORS, read
from fouriershap._libraries.reading import Answer, CannotAskError, Format, Library, Question, Reading
from fouriershap._rows.frames import densified


def _read_proto(model: Any) -> Reading:
    return read_or_explain("model is a ModelProto", lambda: read(model.SerializeToString()))


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    """Ask onnxruntime for the output of the trees, without ``post_transform`` and what comes behind it."""
    onnx, runtime = import_module("onnx"), import_module("onnxruntime")
    cut = onnx.ModelProto()
    cut.CopyFrom(reading.model)
    graph = cut.graph
    place = next(i for i, node in enumerate(graph.node) if node.op_type in OPERATORS)
    if any(node.op_type in ("Add", "Sub", "Mul", "Div") for node in graph.node[place + 1 :]):
        raise CannotAskError("what is done behind the trees is part of the raw output, too")
    trees = graph.node[place]
    kept = [attribute for attribute in trees.attribute if attribute.name != "post_transform"]
    del trees.attribute[:], graph.output[:], graph.node[place + 1 :]
    trees.attribute.extend(kept)
    kinds = {given.name: given.type.tensor_type.elem_type for given in graph.input}
    kind = onnx.TensorProto.DOUBLE if reading.computes_in == np.float64 else onnx.TensorProto.FLOAT
    graph.output.append(onnx.helper.make_tensor_value_info(trees.output[-1], kind, None))
    session = runtime.InferenceSession(cut.SerializeToString(), providers=["CPUExecutionProvider"])
    table, at, fed = np.asarray(densified(question.asked)), 0, {}
    widths = {given.name: given.shape[-1] for given in session.get_inputs()}
    for name, width in widths.items():
        end = at + (width if isinstance(width, int) else reading.n_features)
        fed[name] = table[:, at:end].astype(onnx.helper.tensor_dtype_to_np_dtype(kinds[name]))
        at = end
    outputs = np.asarray(session.run(None, fed)[0], dtype=np.float64).reshape(len(table), -1)
    yield Answer(outputs[:, 1:] if outputs.shape[1] == 2 and reading.n_outputs == 1 else outputs)


LIBRARY = Library(
    name="ONNX",
    package="onnx",
    supported_trees=("ensembles of trees in ONNX: files .onnx, their bytes, a ModelProto",),
    tested="1.17 to 1.23",
    trees={"ModelProto": _read_proto},
    ask=_ask,
    formats=(Format(".onnx", lambda path: read(path.read_bytes())),),
    load=lambda path: import_module("onnx").load(str(path)),
    read_bytes=read,
)
