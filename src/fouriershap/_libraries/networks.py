"""Neural networks: ONNX files are asked; for modules of PyTorch and models of Keras, the sentence that says how."""

from __future__ import annotations

import os
from typing import Any

from fouriershap._libraries.onnx.network import OnnxModel

_TORCH = "lambda rows: model(torch.as_tensor(np.asarray(rows), dtype=torch.float32)).detach().numpy()"
_KERAS = "lambda rows: model.predict(np.asarray(rows), verbose=0)"
_WAYS = {("torch", "Module"): ("PyTorch module", _TORCH)}
_WAYS |= {(package, "Model"): ("Keras model", _KERAS) for package in ("keras", "tf_keras", "tensorflow")}


def network_advice(model: Any) -> str | None:
    """Return how to explain a module of PyTorch or a model of Keras; None for any other object."""
    for base in type(model).__mro__:
        way = _WAYS.get((base.__module__.partition(".")[0], base.__name__))
        if way is not None:
            return (
                f"model is a {way[0]}, which does not take rows as they come. Give a function that does: "
                f"fs.Explainer({way[1]}, X). Or export it as ONNX, and give the path of the file."
            )
    return None


def open_network(model: Any) -> OnnxModel | None:
    """Return a function that asks the ONNX model in a file, in bytes or in memory; None for any other object."""
    if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
        return OnnxModel(model.SerializeToString())
    if isinstance(model, bytes) or (
        isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".onnx")
    ):
        return OnnxModel(model)
    return None
