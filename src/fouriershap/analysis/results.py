"""Base classes of what analyses return: a table, as a data frame, as JSON and as a plot."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from fouriershap._base.arguments import check_arguments
from fouriershap._base.atomic import atomic_file
from fouriershap._base.checks import check_path, find_position
from fouriershap._base.html import columns_table
from fouriershap._rows.tables import to_frame
from fouriershap.analysis.moments import Floats


@check_arguments
class AnalysisResult:
    """A table with facts about the whole of it."""

    analysis: str  # the name of the analysis
    like: Any = None  # `frame` returns a frame of the same library
    _FACTS: tuple[str, ...]  # the attributes that hold for the whole table
    _BAR: str  # the column that notebooks draw as bars
    _IN_ORDER = False  # whether the lines of the table are ordered as people want to read them

    def table(self) -> dict[str, Any]:
        """Return the columns of `frame`."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return what notebooks show: the table with bars, the largest values of each group first."""
        columns = self.table()
        sizes = np.abs(np.nan_to_num(np.asarray(columns[self._BAR], dtype=np.float64)))
        sizes *= not self._IN_ORDER
        about = [] if self._IN_ORDER else [columns[name] for name in ("group", "output") if name in columns]
        blocks = [tuple(column[k] for column in about) for k in range(len(sizes))]
        first = {block: k for k, block in reversed(list(enumerate(blocks)))}
        order = sorted(range(len(sizes)), key=lambda k: (first[blocks[k]], -sizes[k]))
        ordered = {name: [column[k] for k in order] for name, column in columns.items()}
        return columns_table(repr(self).partition("\n")[0], ordered, self._BAR)

    def facts(self) -> dict[str, Any]:
        """Return what holds for the whole table."""
        return {name: getattr(self, name) for name in self._FACTS}

    def frame(self) -> Any:
        """Return a tidy table, in the library of the given rows (for arrays the first that is installed)."""
        return to_frame(self.table(), self.like)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return JSON: ``analysis``, facts, and ``rows``, one record per line of `frame`.

        Parameters
        ----------
        path : path, optional
            File to write the JSON to. Unknown numbers are null.
        """
        table = {name: _to_plain(column) for name, column in self.table().items()}
        rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
        content = {"analysis": self.analysis, **_to_plain(self.facts()), "rows": rows}
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
        if path is not None:
            with atomic_file(check_path(path)) as file:
                file.write_text(text, encoding="utf-8")
        return text


@check_arguments
class PlayerResult(AnalysisResult):
    """A result with values per player and output."""

    outputs: tuple[str, ...]
    _TOP_K = 10

    def plot(self, *, output: int | str = 0, top_k: int | None = None, ax: Any = None) -> Any:
        """Plot the values of players with their intervals, the largest first (matplotlib).

        Parameters
        ----------
        output : int or str
            Output to show, by position or name.
        top_k : int, optional
            Number of players shown: those with the largest values or, for several groups, differences. By default 8
            to 15.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        return self._draw(check_output(output, self.outputs), self._TOP_K if top_k is None else top_k, ax)

    def _draw(self, output: int, top_k: int, ax: Any) -> Any:
        raise NotImplementedError


def _to_plain(value: Any) -> Any:
    """Return lists, finite numbers and texts, which JSON has."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def signed(value: float) -> str:
    """Return a number with its sign, for a line of a repr."""
    return "unknown" if np.isnan(value) else f"{value:+.4g}"


def bracket(low: float, high: float, sign: str = "+") -> str:
    """Return an interval for a line of a repr; nothing if it is unknown."""
    return "" if np.isnan(low) else f"  [{low:{sign}.4g}, {high:{sign}.4g}]"


def repeat_names(names: tuple[str, ...], shape: tuple[int, ...], axis: int) -> list[str]:
    """Return names along one axis of an array, as a column beside the flattened array."""
    view = [1] * len(shape)
    view[axis] = len(names)
    return np.broadcast_to(np.array(names, dtype=object).reshape(view), shape).reshape(-1).tolist()


def group_columns(
    groups: tuple[str, ...], names: tuple[str, ...], outputs: tuple[str, ...]
) -> dict[str, Any]:
    """Return the columns that say what lines are about, for a flattened array (n_groups, n_names, n_outputs)."""
    shape = (len(groups), len(names), len(outputs))
    columns: dict[str, Any] = {}
    if groups != ("",):
        columns["group"] = repeat_names(groups, shape, 0)
    if len(outputs) > 1:
        columns["output"] = repeat_names(outputs, shape, 2)
    return columns | {"feature": repeat_names(names, shape, 1)}


def strongest_lines(
    names: tuple[str, ...], values: Floats, ends: tuple[Floats, Floats], most: int
) -> list[str]:
    """Return lines of a repr: the largest values, with their intervals."""
    order = np.argsort(-np.abs(values), kind="stable")[:most]
    return [f"  {names[k]}: {signed(values[k])}{bracket(ends[0][k], ends[1][k])}" for k in order]


def check_output(output: Any, outputs: tuple[str, ...]) -> int:
    """Return the position of an output given by name or position; of a single one also by the name of its class."""
    if len(outputs) == 1 and isinstance(output, str) and outputs[0].endswith(f" of {output}"):
        return 0
    return find_position(output, outputs, "output")


def predicted(outputs: tuple[str, ...], o: int) -> str:
    """Return what a prediction of an output is called: its name where it is the only one and has one."""
    if len(outputs) > 1:
        return f"prediction of {outputs[o]}"
    return "prediction" if outputs[o].startswith("output ") else outputs[o]
