"""Explanations of a stream of batches, as frames whose columns are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice, check_int
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._explainers.explanation import without_single_output
from fouriershap._rows.batch import Batch, Texts, is_one_frame, open_batch
from fouriershap._rows.frames import Rows
from fouriershap._rows.inputs import InputAdapter
from fouriershap._shapley.engine import Floats

LAYOUTS = ("columns", "array", "top_k")
NUMBER, TEXT, ARRAY = "float64", "string", "array"
BASE = "base_value"


class OutputColumn(NamedTuple):
    """A column of what `Explainer.explain_batches` yields.

    Attributes
    ----------
    name : str
    kind : {"float64", "string", "array"}
        "array" holds ``length`` float64 numbers per row.
    length : int
        Numbers per row of an array, 1 otherwise.
    """

    name: str
    kind: str
    length: int = 1


class BatchWriter:
    """The columns of one stream: their schema, and how they are filled.

    ``expected`` (n_outputs,) are the base values.
    """

    def __init__(
        self,
        player_names: tuple[str, ...],
        output_names: tuple[str, ...] | None,
        expected: Floats,
        layout: str,
        top_k: int,
        ids: Sequence[str] | None,
    ) -> None:
        self.layout = check_choice("layout", layout, LAYOUTS)
        self.players, self.expected, self.ids = player_names, expected, check_ids(ids)
        self.top_k = min(check_int("top_k", top_k), len(player_names)) if layout == "top_k" else 0
        suffixes = [""]
        if len(expected) > 1:
            suffixes = [f"__{name}" for name in output_names or map(str, range(len(expected)))]
        self.schema = self._schema(suffixes)
        names = [*self.ids, *(column.name for column in self.schema)]
        if len(set(names)) < len(names):
            twice = min(name for name in names if names.count(name) > 1)
            raise InputError(
                f"the output would have two columns named {truncated_repr(twice)}: rename the id column, the "
                "group or the "
                "feature of that name."
            )

    def _schema(self, suffixes: list[str]) -> tuple[OutputColumn, ...]:
        if self.layout == "columns":
            columns = [OutputColumn(name + suffix, NUMBER) for suffix in suffixes for name in self.players]
        elif self.layout == "array":
            columns = [OutputColumn("shap_values" + suffix, ARRAY, len(self.players)) for suffix in suffixes]
        else:
            columns = [
                OutputColumn(f"{what}_{rank}{suffix}", kind)
                for suffix in suffixes
                for rank in range(1, self.top_k + 1)
                for what, kind in (("feature", TEXT), ("value", TEXT), ("contribution", NUMBER))
            ]
        return (*columns, *(OutputColumn(BASE + suffix, NUMBER) for suffix in suffixes))

    def explain(
        self, batches: Iterable[Any], inputs: InputAdapter, values_of: Callable[[Rows], Floats]
    ) -> Iterator[Any]:
        """Return an iterator that explains one batch after the other; ``batches`` are checked at once."""
        if is_one_frame(batches) or not isinstance(batches, Iterable):
            raise InputError(
                f"batches is a {type(batches).__name__}; give an iterable of frames or arrays, `[batch]` for one."
            )

        def explain(number: int, native: Any) -> Any:
            try:
                batch = open_batch(native, self.ids, inputs.input_names)
                rows, values = None, np.zeros((0, len(self.players), len(self.expected)))
                if batch.n_rows:  # columns without rows may not have a type yet
                    rows = inputs.encode(batch.features, is_stream=True)
                    values = values_of(rows)
                return self._result(batch, rows, values)
            except InputError as error:
                raise InputError(f"batch {number}: {error}") from error

        return (explain(number, batch) for number, batch in enumerate(batches))

    def _result(self, batch: Batch, rows: Rows | None, values: Floats) -> Any:
        if self.layout == "columns":
            n_players, n_outputs = values.shape[1:]
            columns = [values[:, player, o] for o in range(n_outputs) for player in range(n_players)]
        elif self.layout == "array":
            if not batch.is_frame:
                return without_single_output(values)
            columns = list(values.transpose(2, 0, 1))
        elif batch.is_frame:
            columns = self._largest(rows, values)
        else:
            raise InputError(
                "the batch is an array, and layout='top_k' gives names and texts; give data frames."
            )
        base = [np.full(len(values), value) for value in self.expected]
        return batch.answer([column.name for column in self.schema], columns + base)

    def _largest(self, rows: Rows | None, values: Floats) -> list[NDArray[Any]]:
        """Return feature, value and contribution of the largest contributions of each row, per output."""
        players = np.array(self.players, dtype=object)
        texts_of = None if rows is None else Texts(rows.shown)
        columns: list[NDArray[Any]] = []
        for output in range(values.shape[2]):
            contributions = values[:, :, output]
            # Stable: among equal contributions the first player comes first.
            order = np.argsort(-np.abs(contributions), axis=1, kind="stable")[:, : self.top_k]
            for chosen in order.T:
                texts = np.empty(0, dtype=object)
                if texts_of is not None and rows is not None:
                    texts = _player_texts(texts_of, rows, chosen)
                columns += [players[chosen], texts, contributions[np.arange(len(chosen)), chosen]]
        return columns


def check_ids(ids: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of id columns."""
    if ids is None:
        return ()
    if (
        isinstance(ids, str)
        or not isinstance(ids, Iterable)
        or not all(isinstance(name, str) for name in ids)
    ):
        raise InputError(f"ids is {truncated_repr(ids)}; give a list of column names.")
    return tuple(ids)


def _player_texts(texts_of: Texts, rows: Rows, chosen: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return the value of one player per row as text; for a group, the names and values of its columns."""
    texts = np.full(len(chosen), None, dtype=object)
    for player in np.unique(chosen):
        which = np.flatnonzero(chosen == player)
        columns = np.flatnonzero(rows.player == player)
        if len(columns) == 1:
            texts[which] = texts_of(int(columns[0]), which)
            continue
        parts = [texts_of(int(column), which) for column in columns]
        names = [rows.names[column] for column in columns]
        texts[which] = [
            ", ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))
            for row in zip(*parts, strict=True)
        ]
    return texts
