"""Explanations of a stream of batches, as frames whose columns are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice, check_whole
from fouriershap._base.errors import InputError
from fouriershap._base.parallel import count_jobs
from fouriershap._base.short import short
from fouriershap._rows.batch import Batch, Texts, is_one_frame, open_batch
from fouriershap._rows.table import Rows

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

OUTS = ("columns", "array", "top_k")
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


def output_schema(
    explainer: Explainer, *, ids: Sequence[str] | None = None, out: str = "columns", top_k: int = 3
) -> tuple[OutputColumn, ...]:
    """See `Explainer.output_schema`."""
    check_choice("out", out, OUTS)
    suffixes = _suffixes(explainer)
    base = [OutputColumn(BASE + suffix, NUMBER) for suffix in suffixes]
    players = explainer.player_names
    if out == "columns":
        columns = [OutputColumn(name + suffix, NUMBER) for suffix in suffixes for name in players]
    elif out == "array":
        columns = [OutputColumn("shap_values" + suffix, ARRAY, len(players)) for suffix in suffixes]
    else:
        columns = [
            OutputColumn(f"{what}_{rank}{suffix}", kind)
            for suffix in suffixes
            for rank in range(1, _count_reasons(top_k, players) + 1)
            for what, kind in (("feature", TEXT), ("value", TEXT), ("contribution", NUMBER))
        ]
    names = [*check_ids(ids), *(column.name for column in [*columns, *base])]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(
            f"the output would have two columns named {short(twice[0])}: rename the id column, the group or the "
            "feature of that name."
        )
    return (*columns, *base)


def _suffixes(explainer: Explainer) -> tuple[str, ...]:
    """What names of columns end in, per output: nothing where there is one output."""
    n_outputs = len(explainer._expected)
    if n_outputs == 1:
        return ("",)
    names = explainer.output_names or tuple(str(output) for output in range(n_outputs))
    return tuple(f"__{name}" for name in names)


def _count_reasons(top_k: int, players: tuple[str, ...]) -> int:
    return min(check_whole("top_k", top_k), len(players))


def check_ids(ids: Sequence[str] | None) -> tuple[str, ...]:
    """The names of id columns."""
    if ids is None:
        return ()
    if isinstance(ids, str) or not all(isinstance(name, str) for name in ids):
        raise InputError(f"ids is {short(ids)}; give a list of column names.")
    return tuple(ids)


def explain_batches(
    explainer: Explainer,
    batches: Iterable[Any],
    ids: Sequence[str] | None,
    out: str,
    top_k: int,
    n_jobs: int | None,
) -> Iterator[Any]:
    """What `Explainer.explain_batches` says; arguments are checked now, batches when their turn comes."""
    names = check_ids(ids)
    count_jobs(n_jobs)
    fed = [name for name in names if name in (explainer.input_names or ())]
    if fed:
        raise InputError(f"ids names {short(fed[0])}, which is a feature of the model.")
    schema = output_schema(explainer, ids=ids, out=out, top_k=top_k)
    if is_one_frame(batches) or not isinstance(batches, Iterable):
        raise InputError(
            f"batches is a {type(batches).__name__}; give an iterator of frames or arrays, for one `[batch]`."
        )

    def explain(number: int, native: Any) -> Any:
        try:
            batch = open_batch(native, names, explainer.input_names)
            values, rows = _values(explainer, batch, n_jobs)
            if not batch.is_frame and out == "array":
                return values[..., 0] if values.shape[2] == 1 else values
            columns = _columns(explainer, batch, rows, values, out, top_k)
            return batch.answer([column.name for column in schema], columns)
        except InputError as error:
            raise InputError(f"batch {number}: {error}") from error

    return (explain(number, batch) for number, batch in enumerate(batches))


def _values(
    explainer: Explainer, batch: Batch, n_jobs: int | None
) -> tuple[NDArray[np.float64], Rows | None]:
    """(n_rows, n_players, n_outputs), and the rows as they were read; None where there are none."""
    if not batch.n_rows:  # columns without rows may have no type yet
        return np.zeros((0, len(explainer.player_names), len(explainer._expected))), None
    rows = explainer._read(batch.features)
    return explainer._explain(rows, n_jobs), rows


def _columns(
    explainer: Explainer, batch: Batch, rows: Rows | None, values: NDArray[np.float64], out: str, top_k: int
) -> list[NDArray[Any]]:
    """The columns of `output_schema`."""
    if out == "columns":
        columns = [values[:, player, o] for o in range(values.shape[2]) for player in range(values.shape[1])]
    elif out == "array":
        columns = list(values.transpose(2, 0, 1))
    else:
        if not batch.is_frame:
            raise InputError(
                "the batch is an array, and out='top_k' gives names and texts; give data frames."
            )
        columns = _reasons(explainer, rows, values, _count_reasons(top_k, explainer.player_names))
    return columns + [np.full(len(values), base) for base in explainer._expected]


def _reasons(
    explainer: Explainer, rows: Rows | None, values: NDArray[np.float64], k: int
) -> list[NDArray[Any]]:
    """Feature, value and contribution of the k largest contributions of each row, per output."""
    players = np.array(explainer.player_names, dtype=object)
    texts_of = None if rows is None else Texts(rows.shown)
    columns: list[NDArray[Any]] = []
    for output in range(values.shape[2]):
        contributions = values[:, :, output]
        # Stable: of equal contributions the first player's comes first.
        order = np.argsort(-np.abs(contributions), axis=1, kind="stable")[:, :k]
        for rank in range(k):
            chosen = order[:, rank]
            texts = np.empty(0, dtype=object)
            if texts_of is not None and rows is not None:
                texts = _player_texts(texts_of, rows.player, rows.names, chosen)
            columns += [players[chosen], texts, contributions[np.arange(len(chosen)), chosen]]
    return columns


def _player_texts(
    texts_of: Texts, column_player: NDArray[np.int32], names: tuple[str, ...], chosen: NDArray[np.int64]
) -> NDArray[np.object_]:
    """How the value of one player per row reads: of a group, the names and values of its columns."""
    texts = np.full(len(chosen), None, dtype=object)
    for player in np.unique(chosen):
        rows = np.flatnonzero(chosen == player)
        columns = np.flatnonzero(column_player == player)
        if len(columns) == 1:
            texts[rows] = texts_of(int(columns[0]), rows)
            continue
        parts = [texts_of(int(column), rows) for column in columns]
        labels = [names[column] for column in columns]
        texts[rows] = [
            ", ".join(f"{name}={value}" for name, value in zip(labels, row, strict=True))
            for row in zip(*parts, strict=True)
        ]
    return texts
