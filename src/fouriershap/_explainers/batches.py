"""Explanations of a stream of batches, as frames whose columns are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice, check_whole
from fouriershap._base.errors import InputError
from fouriershap._base.parallel import count_jobs
from fouriershap._base.short import short
from fouriershap._rows.batch import Batch, Texts, is_one_frame, open_batch
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine, Floats

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


class Streams:
    """Explaining batch by batch: what every explainer does with streams (see `Explainer`)."""

    feature_names: tuple[str, ...]
    player_names: tuple[str, ...]
    output_names: tuple[str, ...] | None = None
    n_jobs: int | None
    _engine: Engine

    def _read(self, X: Any, name: str = "X") -> Rows:
        """Rows of the caller, read once; errors call them by ``name``."""
        raise NotImplementedError

    def _explain(self, rows: Rows, n_jobs: int | None) -> Floats:
        """SHAP values (n_rows, n_players, n_outputs)."""
        raise NotImplementedError

    def _jobs(self, n_jobs: int | None) -> int | None:
        return self.n_jobs if n_jobs is None else n_jobs

    @property
    def input_names(self) -> tuple[str, ...] | None:
        raise NotImplementedError

    def select(self, frame: Any, *, ids: Sequence[str] | None = None) -> Any:
        """The columns of the model out of a data frame, found by name, in the model's order.

        Parameters
        ----------
        frame : data frame, ``pyarrow.RecordBatch`` or array
            An array has no names, and stays as it is.
        ids : sequence of str, optional
            Columns that are left out. Any other column must be a feature.

        Raises
        ------
        InputError
            A column is missing, or not known to the model.

        Examples
        --------
        >>> import fouriershap as fs, pandas as pd
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = pd.DataFrame({"age": [20, 40, 60, 80], "height": [1.5, 1.9, 1.6, 1.8]})
        >>> explainer = fs.Explainer(DecisionTreeRegressor().fit(X, [1.0, 2.0, 3.0, 5.0]), X)
        >>> explainer.select(pd.DataFrame({"height": [1.7], "name": ["Ann"], "age": [33]}), ids=["name"])
           age  height
        0   33     1.7
        """
        return open_batch(frame, check_ids(ids), self.input_names).features

    def explain_batches(
        self,
        batches: Iterable[Any],
        *,
        ids: Sequence[str] | None = None,
        layout: str = "columns",
        top_k: int = 3,
        n_jobs: int | None = None,
    ) -> Iterator[Any]:
        """Explain a stream of batches, one at a time.

        Memory does not grow with their number. Columns of frames are found by name, in any order.

        Parameters
        ----------
        batches : iterable of data frames, ``pyarrow.RecordBatch`` or arrays
            Rows to explain; a batch may be empty.
        ids : sequence of str, optional
            Columns that are carried into the answer and not shown to the model. Any other column must be a
            feature. Frames only.
        layout : {"columns", "array", "top_k"}
            What follows the ids in the answer:

            - "columns": a number per player, named after it;
            - "array": ``shap_values``, a fixed-size list of numbers in the order of `player_names`;
            - "top_k": ``feature_1``, ``value_1`` (as text), ``contribution_1``, ``feature_2``, ...: the players
              with the largest contributions, in size.

            Then ``base_value``, so that a row adds up to the model's output. Where there are several outputs,
            each of these columns comes once per output and ends in ``__`` and the output's name (or number).
        top_k : int
            Reasons per row for "top_k"; at most the number of players.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Yields
        ------
        The same kind of frame, a row per row; pandas frames keep their index. For arrays "columns" is a matrix
        of numbers (the last column is the base value), "array" what `shap_values` returns.

        Raises
        ------
        InputError
            A column is missing, is not known to the model, or holds what the model cannot read. The message
            names the batch.

        Examples
        --------
        >>> import fouriershap as fs, numpy as np, pandas as pd
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = pd.DataFrame({"age": [20, 40, 60, 80], "height": [1.5, 1.9, 1.6, 1.8]})
        >>> model = DecisionTreeRegressor(random_state=0).fit(X, [1.0, 2.0, 3.0, 5.0])
        >>> explainer = fs.TreeExplainer(model, X)
        >>> batches = [X.assign(name=["Ann", "Bob", "Eve", "Kim"])]
        >>> for frame in explainer.explain_batches(batches, ids=["name"], layout="top_k", top_k=1):
        ...     print(frame)
          name feature_1 value_1  contribution_1  base_value
        0  Ann       age      20           -1.75        2.75
        1  Bob       age      40           -0.75        2.75
        2  Eve       age      60            0.25        2.75
        3  Kim       age      80            2.25        2.75
        """
        names, jobs = check_ids(ids), self._jobs(n_jobs)
        count_jobs(jobs)
        fed = [name for name in names if name in (self.input_names or ())]
        if fed:
            raise InputError(f"ids names {short(fed[0])}, which is a feature of the model.")
        schema = [column.name for column in self.output_schema(ids=ids, layout=layout, top_k=top_k)]
        if is_one_frame(batches) or not isinstance(batches, Iterable):
            raise InputError(
                f"batches is a {type(batches).__name__}; give an iterator of frames or arrays, for one `[batch]`."
            )

        def explain(number: int, native: Any) -> Any:
            try:
                batch = open_batch(native, names, self.input_names)
                values, rows = self._values(batch, jobs)
                if not batch.is_frame and layout == "array":
                    return values[..., 0] if values.shape[2] == 1 else values
                return batch.answer(schema, self._columns(batch, rows, values, layout, top_k))
            except InputError as error:
                raise InputError(f"batch {number}: {error}") from error

        return (explain(number, batch) for number, batch in enumerate(batches))

    def output_schema(
        self, *, ids: Sequence[str] | None = None, layout: str = "columns", top_k: int = 3
    ) -> tuple[OutputColumn, ...]:
        """The columns that follow the ids in what `explain_batches` yields, in their order.

        Parameters
        ----------
        ids : sequence of str, optional
            Columns that are carried along. They come first, in the order given and with the types that they have
            in the batches; they are no part of the answer, but must not share a name with it.
        layout, top_k
            As in `explain_batches`.
        """
        check_choice("layout", layout, LAYOUTS)
        suffixes = self._suffixes()
        base = [OutputColumn(BASE + suffix, NUMBER) for suffix in suffixes]
        players = self.player_names
        if layout == "columns":
            columns = [OutputColumn(name + suffix, NUMBER) for suffix in suffixes for name in players]
        elif layout == "array":
            columns = [OutputColumn("shap_values" + suffix, ARRAY, len(players)) for suffix in suffixes]
        else:
            columns = [
                OutputColumn(f"{what}_{rank}{suffix}", kind)
                for suffix in suffixes
                for rank in range(1, min(check_whole("top_k", top_k), len(players)) + 1)
                for what, kind in (("feature", TEXT), ("value", TEXT), ("contribution", NUMBER))
            ]
        names = [*check_ids(ids), *(column.name for column in [*columns, *base])]
        twice = (
            sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        )
        if twice:
            raise InputError(
                f"the output would have two columns named {short(twice[0])}: rename the id column, the group or the "
                "feature of that name."
            )
        return (*columns, *base)

    def _suffixes(self) -> tuple[str, ...]:
        """What names of columns end in, per output: nothing where there is one output."""
        n_outputs = len(self._engine.expected)  # of a loss there is none: it depends on the label
        if n_outputs == 1:
            return ("",)
        names = self.output_names or tuple(str(output) for output in range(n_outputs))
        return tuple(f"__{name}" for name in names)

    def _values(self, batch: Batch, n_jobs: int | None) -> tuple[Floats, Rows | None]:
        """(n_rows, n_players, n_outputs), and the rows as they were read; None where there are none."""
        if not batch.n_rows:  # columns without rows may have no type yet
            return np.zeros((0, len(self.player_names), self._engine.n_outputs)), None
        rows = self._read(batch.features)
        return self._explain(rows, n_jobs), rows

    def _columns(
        self, batch: Batch, rows: Rows | None, values: Floats, layout: str, top_k: int
    ) -> list[NDArray[Any]]:
        """The columns of `output_schema`."""
        if layout == "columns":
            columns = [
                values[:, player, o] for o in range(values.shape[2]) for player in range(values.shape[1])
            ]
        elif layout == "array":
            columns = list(values.transpose(2, 0, 1))
        else:
            if not batch.is_frame:
                raise InputError(
                    "the batch is an array, and layout='top_k' gives names and texts; give data frames."
                )
            columns = _reasons(self.player_names, rows, values, top_k)
        return columns + [np.full(len(values), base) for base in self._engine.expected]


def check_ids(ids: Sequence[str] | None) -> tuple[str, ...]:
    """The names of id columns."""
    if ids is None:
        return ()
    if isinstance(ids, str) or not all(isinstance(name, str) for name in ids):
        raise InputError(f"ids is {short(ids)}; give a list of column names.")
    return tuple(ids)


def _reasons(names: tuple[str, ...], rows: Rows | None, values: Floats, k: int) -> list[NDArray[Any]]:
    """Feature, value and contribution of the k largest contributions of each row, per output."""
    players = np.array(names, dtype=object)
    texts_of = None if rows is None else Texts(rows.shown)
    columns: list[NDArray[Any]] = []
    for output in range(values.shape[2]):
        contributions = values[:, :, output]
        # Stable: of equal contributions the first player's comes first.
        order = np.argsort(-np.abs(contributions), axis=1, kind="stable")[:, :k]
        for chosen in order.T:
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
