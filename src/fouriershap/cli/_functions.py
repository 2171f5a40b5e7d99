"""Black boxes: ONNX networks in onnxruntime, estimators, and functions of a Python module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import InputError
from fouriershap._base.checks import import_optional
from fouriershap._base.messages import error_text, truncated_repr, truncated_text

Predict = Callable[[Any], NDArray[Any]]


def is_function(name: str) -> bool:
    """Return whether this is ``package.module:function`` rather than a file."""
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def import_function(name: str) -> Any:
    """Import ``package.module:function``, a function or estimator; the current folder is searched first."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{truncated_text(name)}: cannot be imported ({type(error).__name__}: {error_text(error)})."
        ) from error
    except Exception as error:
        raise InputError(
            f"{truncated_text(name)}: importing {truncated_text(module)} failed ({type(error).__name__}: "
            f"{error_text(error)})."
        ) from error
    if not (callable(found) or hasattr(found, "predict")):
        raise InputError(f"{truncated_text(name)}: is a {type(found).__name__}, which cannot be called.")
    return found


def make_predict(estimator: Any) -> Any:
    """Return an estimator, or its prediction function for rows without names if it was trained on arrays."""
    if hasattr(estimator, "feature_names_in_"):
        return estimator
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(estimator, method):
            predict = getattr(estimator, method)
            return lambda rows: predict(rows.to_numpy())  # which would warn about names
    raise InputError(f"the model is a {type(estimator).__name__}, which does not predict.")


def trained_columns(model: Any) -> tuple[str, ...] | None:
    """Return the columns that a model was trained on, if it knows them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


class OnnxModel:
    """An ONNX model as a function of pandas frames, which returns its first numeric output."""

    def __init__(self, path: Path) -> None:
        runtime = import_optional("onnxruntime", f"querying {truncated_text(path)}", "onnxruntime")
        try:
            options = runtime.SessionOptions()
            options.log_severity_level = 3
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise InputError(
                f"{truncated_text(path)}: onnxruntime cannot open it ({error_text(error)})."
            ) from error
        self._inputs = self._session.get_inputs()
        self._output = self._choose(path)
        first = self._inputs[0].shape
        self._batch = first[0] if first and isinstance(first[0], int) else None

    def _choose(self, path: Path) -> str:
        for kinds in (("tensor(float)", "tensor(double)"), ("seq(map(",)):
            for output in self._session.get_outputs():
                if output.type.startswith(kinds):
                    return str(output.name)
        said = ", ".join(
            f"{truncated_text(o.name)}: {truncated_text(o.type)}" for o in self._session.get_outputs()
        )
        raise InputError(f"{truncated_text(path)}: none of its outputs ({said}) holds numbers to explain.")

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of its columns, if every input is one column."""
        single = all(len(given.shape) == 2 and given.shape[1] == 1 for given in self._inputs)
        return tuple(given.name for given in self._inputs) if single and len(self._inputs) > 1 else None

    def check_width(self, n_columns: int) -> None:
        """Raise if the model does not take rows of this many columns."""
        if self.columns is not None:
            return
        if len(self._inputs) > 1:
            names = ", ".join(truncated_text(given.name) for given in self._inputs)
            raise InputError(
                f"the model has the inputs {names}; supported are one input, or inputs of one column each."
            )
        shape = self._inputs[0].shape
        if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != n_columns):
            raise InputError(
                f"the model takes an input of the shape {truncated_repr(shape)}, but rows have {n_columns} "
                "columns; supported "
                "are inputs of shape (n_rows, n_columns)."
            )

    def __call__(self, rows: Any) -> NDArray[Any]:
        """Return predictions (n_rows, n_outputs) for a pandas frame."""
        step = self._batch or max(len(rows), 1)
        return np.concatenate([self._answer(rows.iloc[at : at + step]) for at in range(0, len(rows), step)])

    def _answer(self, rows: Any) -> NDArray[Any]:
        n_rows = len(rows)
        if self._batch is not None and n_rows < self._batch:  # exported for batches of one size
            rows = rows.iloc[np.resize(np.arange(n_rows), self._batch)]
        if self.columns is None:
            fed = {self._inputs[0].name: _typed(rows.to_numpy(), self._inputs[0].type)}
        else:
            fed = {given.name: _typed(rows[[given.name]].to_numpy(), given.type) for given in self._inputs}
        said = self._session.run([self._output], fed)[0]
        if isinstance(said, list):  # a dict of classes per row
            said = np.array([list(answer.values()) for answer in said])
        return np.asarray(said).reshape(len(rows), -1)[:n_rows]


def _typed(table: NDArray[Any], kind: str) -> NDArray[Any]:
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(string)": object}
    types |= {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
    if kind not in types:
        raise InputError(f"the model has an input of type {truncated_text(kind)}, which is not supported.")
    return table.astype(types[kind])
