"""ONNX models that are asked: `OnnxModel`, a function of rows that runs in onnxruntime."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import import_optional
from fouriershap._base.errors import InputError
from fouriershap._base.messages import error_text, truncated_repr, truncated_text


@check_arguments
class OnnxModel:
    """An ONNX model that onnxruntime runs, as a function of rows: ``fs.BlackBoxExplainer(OnnxModel(path), X)``.

    It returns the first output that holds numbers. Needs ``pip install onnxruntime``.

    Parameters
    ----------
    model : path or bytes
        The file of a model, or its content.
    """

    def __init__(self, model: str | os.PathLike[str] | bytes) -> None:
        path = "the ONNX model" if isinstance(model, bytes) else os.fspath(model)
        runtime = import_optional("onnxruntime", f"querying {truncated_text(path)}", "onnxruntime")
        try:
            options = runtime.SessionOptions()
            options.log_severity_level = 3
            self._session = runtime.InferenceSession(
                model if isinstance(model, bytes) else path, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise InputError(
                f"{truncated_text(path)}: onnxruntime cannot open it ({error_text(error)})."
            ) from error
        self._inputs = self._session.get_inputs()
        self._output = self._choose(path)
        first = self._inputs[0].shape
        self._batch = first[0] if first and isinstance(first[0], int) else None

    def _choose(self, path: str) -> str:
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
        """Raise if the model does not take rows of this many columns.

        Parameters
        ----------
        n_columns : int
        """
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
        """Return predictions (n_rows, n_outputs) for a frame, or for an array with the columns in the model's order."""
        self.check_width(rows.shape[1])
        if self.columns is None:
            fed = {self._inputs[0].name: _typed(np.asarray(rows), self._inputs[0].type)}
        else:
            fed = {given.name: self._column(rows, j) for j, given in enumerate(self._inputs)}
        n_rows = len(next(iter(fed.values())))
        step = self._batch or max(n_rows, 1)
        return np.concatenate(
            [self._answer(fed, at, min(step, n_rows - at)) for at in range(0, n_rows, step)]
        )

    def _column(self, rows: Any, j: int) -> NDArray[Any]:
        given = self._inputs[j]
        column = rows[:, j] if isinstance(rows, np.ndarray) else rows[given.name]
        return _typed(np.asarray(column).reshape(-1, 1), given.type)

    def _answer(self, fed: dict[str, NDArray[Any]], at: int, n_rows: int) -> NDArray[Any]:
        which = at + np.resize(np.arange(n_rows), self._batch or n_rows)  # exported for batches of one size
        said = self._session.run([self._output], {name: table[which] for name, table in fed.items()})[0]
        if isinstance(said, list):  # a dict of classes per row
            said = np.array([list(answer.values()) for answer in said])
        return np.asarray(said).reshape(len(which), -1)[:n_rows]


def _typed(table: NDArray[Any], kind: str) -> NDArray[Any]:
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(string)": object}
    types |= {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
    if kind not in types:
        raise InputError(f"the model has an input of type {truncated_text(kind)}, which is not supported.")
    return table.astype(types[kind])
