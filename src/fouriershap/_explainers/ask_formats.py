"""How the libraries of further formats are asked for their raw outputs; see `referee`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.readers.onnx import OPERATORS

_SATURATED = 5.0  # log odds beyond which a float32 probability does not say them well enough


def _survival(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    predicted = model.predict(_as_fitted(model, rows))
    return np.log(predicted) if getattr(model, "loss", "coxph") != "coxph" else predicted


def _quantile_forest(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    return model.predict(_as_fitted(model, rows))


def _as_fitted(model: Any, rows: Any) -> Any:
    """Rows with names where the model has some, and without where not."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return np.asarray(rows)
    return rows if hasattr(rows, "iloc") else import_module("pandas").DataFrame(rows, columns=names)


def _interpret(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    if hasattr(rows, "columns"):
        names = list(rows.columns)
        # Labels as they are: categories of pandas that hold texts and numbers confuse it.
        rows = rows.astype({names[feature]: object for feature in ensemble.vocabularies})
        if ensemble.feature_names is None:  # and it warns of names that it does not know
            rows = rows.to_numpy(dtype=object if ensemble.vocabularies else np.float64)
    return model.eval_terms(rows).sum(axis=1) + model.intercept_


def _ydf(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    """Probabilities back to logits; infinite, which nobody compares, where float32 has lost them."""
    spec = {column.name: column for column in model.data_spec().columns}
    given: dict[str, NDArray[Any]] = {}
    for feature, name in enumerate(ensemble.feature_names or ()):
        column = rows[name].to_numpy() if hasattr(rows, "columns") else np.asarray(rows)[:, feature]
        if feature in ensemble.vocabularies:
            given[name] = np.array(
                ["" if value is None or value != value else value for value in column], object
            )
        elif spec[name].type == 7:  # truth values, of which none is missing
            if not np.isin(column.astype(np.float64), (0, 1)).all():
                raise TypeError("no truth values")
            given[name] = column.astype(bool)
        else:
            given[name] = column.astype(np.float32)
    predicted = np.asarray(model.predict(given), dtype=np.float64).reshape(len(rows), -1)
    if ensemble.objective == "probability" and predicted.shape[1] == 1:
        return np.column_stack([1 - predicted, predicted])
    if ensemble.objective == "binary":
        with np.errstate(divide="ignore"):
            margin = np.log(predicted) - np.log1p(-predicted)
        return np.where(np.abs(margin) > _SATURATED, np.inf, margin)
    if ensemble.objective == "multiclass":
        raise TypeError("softmax keeps the differences of logits alone")
    if ensemble.objective == "":
        raise TypeError("which link this loss has is not known")
    return predicted


def _onnx(model: Any, rows: Any, ensemble: TreeEnsemble) -> Any:
    """What the operator of trees says by onnxruntime, without ``post_transform`` and what comes behind it."""
    onnx, runtime = import_module("onnx"), import_module("onnxruntime")
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    graph = cut.graph
    place = next(i for i, node in enumerate(graph.node) if node.op_type in OPERATORS)
    if any(node.op_type in ("Add", "Sub", "Mul", "Div") for node in graph.node[place + 1 :]):
        raise TypeError("what is done behind the trees is part of the raw output, too")
    trees = graph.node[place]
    kept = [attribute for attribute in trees.attribute if attribute.name != "post_transform"]
    del trees.attribute[:], graph.output[:], graph.node[place + 1 :]
    trees.attribute.extend(kept)
    kinds = {given.name: given.type.tensor_type.elem_type for given in graph.input}
    double = trees.op_type != "TreeEnsembleClassifier" and ensemble.computes_in == np.float64
    kind = onnx.TensorProto.DOUBLE if double else onnx.TensorProto.FLOAT
    graph.output.append(onnx.helper.make_tensor_value_info(trees.output[-1], kind, None))
    session = runtime.InferenceSession(cut.SerializeToString(), providers=["CPUExecutionProvider"])
    table, at, fed = np.asarray(rows), 0, {}
    widths = {given.name: given.shape[-1] for given in session.get_inputs()}
    for name, width in widths.items():
        end = at + (width if isinstance(width, int) else ensemble.n_features)
        fed[name] = table[:, at:end].astype(onnx.helper.tensor_dtype_to_np_dtype(kinds[name]))
        at = end
    said = np.asarray(session.run(None, fed)[0], dtype=np.float64).reshape(len(table), -1)
    return said[:, 1:] if said.shape[1] == 2 and ensemble.n_outputs == 1 else said


ASK_FORMATS = {
    "sksurv": _survival,
    "quantile_forest": _quantile_forest,
    "interpret": _interpret,
    "ydf": _ydf,
    "onnx": _onnx,
}
