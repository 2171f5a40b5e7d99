"""`CodedEngine`: a model that is asked, about rows of codes that need not be rows of the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._blackbox.black_box import BlackBox
from fouriershap._rows.levels import LABEL, NUMBER
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import BackgroundRows, Contents, Floats, WrappingEngine


@dataclass(frozen=True, eq=False)
class CodedEngine(WrappingEngine):
    """The engine of a black box on rows of codes (see `Engine`)."""

    box: BlackBox

    @cached_property
    def _pool(self) -> Pool:
        """Rows that show every label."""
        box = self.box
        return box.background if box.data is None else box.background.joined(box.data)

    @cached_property
    def _examples(self) -> dict[int, dict[float, int]]:
        """By column of labels, a row that has each code; NaN is -1."""
        found = {}
        for feature in self.box.encoding.features:
            if feature.kind == LABEL:
                codes = np.nan_to_num(feature.encode(self._pool, "background"), nan=-1.0)
                values, rows = np.unique(codes, return_index=True)
                found[feature.columns[0]] = dict(zip(values.tolist(), rows.tolist(), strict=True))
        return found

    @property
    def background(self) -> BackgroundRows:
        rows = self.box.encoding.encode(self.box.background, "background")
        return BackgroundRows(rows, self.box.weights)

    def encode(self, rows: NDArray[Any], name: str = "X") -> NDArray[Any]:
        """Return rows in the caller's own type, as a pool."""
        pool = self._pool
        index = np.zeros((len(rows), len(pool.names)), dtype=np.int64)
        numbers: dict[int, Floats] = {}
        for f, feature in enumerate(self.box.encoding.features):
            codes = rows[:, f]
            if feature.kind == NUMBER:
                numbers[feature.columns[0]] = codes
            elif feature.kind == LABEL:
                column = feature.columns[0]
                known, place = np.unique(np.nan_to_num(codes, nan=-1.0), return_inverse=True)
                examples = [self._examples[column].get(code, 0) for code in known.tolist()]
                index[:, column] = np.array(examples, dtype=np.int64)[place]
            else:
                levels = np.array(feature.levels)[np.nan_to_num(codes).astype(np.int64)]
                numbers |= {c: (levels == k).astype(np.float64) for k, c in enumerate(feature.columns)}
        if len(numbers) == len(pool.names) and getattr(pool.native, "dtype", object) == np.float64:
            return cast(NDArray[Any], Pool(np.column_stack([numbers[c] for c in sorted(numbers)]), name))
        mixed = pool.take(index)
        for column, values in numbers.items():
            mixed = pool.written(mixed, column, values)
        return cast(NDArray[Any], Pool(mixed, name))

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        raise InputError(
            "a model that is asked cannot be saved: explain what BlackBoxExplainer(...).fit() fits to it."
        )
