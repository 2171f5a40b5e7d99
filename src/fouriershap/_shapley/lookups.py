"""`TableLookup`: arrays by which a page turns values into codes, codes into patterns, patterns into SHAP values.

The page reads them as `_kernels.tables_numpy` does: `encode`, `pages`, `patterns`, `explain`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._rows.rules import ZERO_BAND
from fouriershap._shapley.tables import Blocks, TableSet
from fouriershap._trees.codes import Codebook, Columns, Pages, count_lines


class WholeLookup:
    """A look-up that has no smaller version (see `PageLookup`)."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays by name."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def rounded(self, n_bits: int) -> None:
        """Return None."""

    def shap_values(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Raise `NotImplementedError`: only the page computes these."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class TableLookup:
    """Everything that explaining one row needs."""

    book: Codebook  # how the values of inputs become codes
    column: NDArray[np.int32]  # (n_inputs,) where the code of each input goes (`Codebook.encode_columns`)
    pages: Pages | None  # narrow codes that are read off wide ones
    # (n_pages,) the narrow line of each page; where several pages share one, it holds their parity.
    page_line: NDArray[np.int32]
    tables: TableSet
    missing_value: float  # a number that counts as missing, NaN for none
    zero_as_missing: NDArray[np.bool_]  # (n_inputs,)
    step: float | None = None  # where the tables hold multiples of it, see `rounded`

    @property
    def nbytes(self) -> int:
        return self.tables.nbytes

    def rounded(self, n_bits: int) -> TableLookup:
        """Return the same with entries rounded to multiples of a step; ``n_bits`` bits (9 to 16) hold the largest."""
        values = self.tables.values
        step = float(np.abs(values).max(initial=0.0)) / (2 ** (n_bits - 1) - 1) or 1.0
        tables = replace(self.tables, values=(np.rint(values / step) * step).astype(values.dtype))
        return replace(self, tables=tables, step=step)

    def shap_values(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return what the page computes for rows of inputs, (n_rows, n_players, n_outputs), by the kernels."""
        codes = self.book.encode_columns(rows.astype(self.book.dtype, copy=False), self.column, self.pages)
        if self.pages is not None:  # pages that share a line hold its parity
            narrow = np.zeros_like(codes.narrow)
            first = len(codes.narrow) - len(self.page_line)
            narrow[:first] = codes.narrow[:first]
            for p, line in enumerate(self.page_line):
                narrow[line] ^= codes.narrow[first + p]
            codes = replace(codes, narrow=narrow)
        out = np.zeros((len(rows), self.tables.n_players, self.tables.n_outputs))
        self.tables.add(codes, out)
        return out

    def header(self) -> dict[str, Any]:
        """Return single numbers."""
        narrow, wide = count_lines(self.column)
        narrow = max(narrow, int(self.page_line.max(initial=-1)) + 1)
        return {
            "kind": "tables",
            "n_narrow": narrow,
            "n_wide": wide,
            "n_players": self.tables.n_players,
            "n_outputs": self.tables.n_outputs,
            "step": self.step or 1.0,
            **book_header(self.book, self.missing_value),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays by the names that the kernels give them; tables in single precision, half the size."""
        blocks, tables = self.tables.blocks, self.tables
        named = {f.name: getattr(blocks, f.name) for f in fields(Blocks)}
        named |= {f.name: getattr(tables, f.name) for f in fields(TableSet)[1:-2]}
        named |= book_arrays(self.book, self.zero_as_missing)
        named["column"] = self.column
        if self.pages is not None:
            named |= {f"page_{f.name}": getattr(self.pages, f.name) for f in fields(Pages)}
            named["page_line"] = self.page_line
        named["values"] = tables.values.astype(np.float32, copy=False)
        if self.step is not None:
            named["values"] = np.rint(tables.values / self.step).astype(np.int16)
        return named


def table_lookup(
    book: Codebook,
    columns: Columns,
    tables: TableSet,
    missing_value: float,
    zero_as_missing: NDArray[np.bool_],
) -> TableLookup:
    """Return the tables of trees."""
    column, pages = columns
    n_pages = 0 if pages is None else len(pages.source)
    lines = count_lines(column)[0] + np.arange(n_pages, dtype=np.int32)
    return TableLookup(book, column, pages, lines, tables, missing_value, zero_as_missing)


def book_header(book: Codebook, missing_value: float) -> dict[str, Any]:
    """Return single numbers that turn values into codes."""
    return {
        "single": book.dtype.itemsize == 4,
        "missing_value": None if np.isnan(missing_value) else float(missing_value),
        "zero_band": ZERO_BAND,
    }


def book_arrays(book: Codebook, zero_as_missing: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Return arrays that turn values into codes."""
    return {
        "level_start": book.start,
        "levels": book.levels,
        "categorical": book.categorical,
        "zero_as_missing": zero_as_missing,
    }
