"""What all answers share: a table, as a frame and as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from fouriershap._base.atomic import atomic_file
from fouriershap._base.checks import find_position
from fouriershap._explainers.reasons import to_frame


class Answer:
    """A table with facts around it."""

    question: str  # the method that answers it
    like: Any = None  # a frame whose library `frame` uses

    def table(self) -> dict[str, Any]:
        """The columns of `frame`."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What holds for the whole table."""
        raise NotImplementedError

    def frame(self) -> Any:
        """The answer as a tidy table, in the library of the rows that were given (for arrays the first installed)."""
        return to_frame(self.table(), self.like)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The answer as JSON: ``question``, facts, and ``rows``, a record per line of `frame`.

        Parameters
        ----------
        path : path, optional
            A file that it is written to as well. Numbers that are not known are null.
        """
        table = {name: _plain(column) for name, column in self.table().items()}
        rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
        facts = {name: _plain(fact) for name, fact in self.facts().items()}
        text = json.dumps(
            {"question": self.question, **facts, "rows": rows}, ensure_ascii=False, allow_nan=False, indent=1
        )
        if path is not None:
            with atomic_file(Path(path)) as file:
                file.write_text(text, encoding="utf-8")
        return text


class PicturedAnswer(Answer):
    """An answer about players and outputs that has a picture."""

    outputs: tuple[str, ...]
    _MOST_SHOWN = 10

    def plot(self, *, output: int | str = 0, top: int | None = None, ax: Any = None) -> Any:
        """What players bring, with intervals, the largest first (matplotlib).

        Parameters
        ----------
        output : int or str
            Which output, where there are several.
        top : int, optional
            Most players shown: those with the largest values or, of several groups, differences. By default 8 to 15.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        return self._draw(check_output(output, self.outputs), self._MOST_SHOWN if top is None else top, ax)

    def _draw(self, output: int, top: int, ax: Any) -> Any:
        raise NotImplementedError


def _plain(value: Any) -> Any:
    """What JSON has: lists, numbers that are finite, texts."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def number(value: float) -> str:
    """A number in a line of a repr."""
    return "unknown" if np.isnan(value) else f"{value:+.4g}"


def bracket(low: float, high: float) -> str:
    """An interval in a line of a repr."""
    return "" if np.isnan(low) else f"  [{low:+.4g}, {high:+.4g}]"


def repeated(names: tuple[str, ...], shape: tuple[int, ...], axis: int) -> list[str]:
    """Names along one axis of an array, as a column beside the flattened array."""
    view = [1] * len(shape)
    view[axis] = len(names)
    return np.broadcast_to(np.array(names, dtype=object).reshape(view), shape).reshape(-1).tolist()


def group_columns(
    groups: tuple[str, ...], names: tuple[str, ...], outputs: tuple[str, ...]
) -> dict[str, Any]:
    """What lines of a table are about, beside a flattened array (n_groups, n_names, n_outputs)."""
    shape = (len(groups), len(names), len(outputs))
    columns: dict[str, Any] = {}
    if groups != ("",):
        columns["group"] = repeated(groups, shape, 0)
    if len(outputs) > 1:
        columns["output"] = repeated(outputs, shape, 2)
    return columns | {"feature": repeated(names, shape, 1)}


def check_output(output: Any, outputs: tuple[str, ...]) -> int:
    """The position of an output that was given by name or position."""
    return find_position(output, outputs, "output")
