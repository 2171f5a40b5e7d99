"""`Lookup`: the arrays by which a page turns values into codes, codes into patterns, patterns into SHAP values.

The page reads them as `_kernels.tables_numpy` does: `encode`, `pages`, `patterns`, `explain`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.tables import Blocks, TableSet
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.leaves import book_arrays, book_header
from fouriershap._trees.codes import Codebook, Pages, count_lines


@dataclass(frozen=True, eq=False)
class Lookup:
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

    def rounded(self, n_bits: int) -> Lookup:
        """The same with entries rounded to whole steps, of which ``n_bits`` bits (9 to 16) count the largest."""
        values = self.tables.values
        step = float(np.abs(values).max(initial=0.0)) / (2 ** (n_bits - 1) - 1) or 1.0
        tables = replace(self.tables, values=(np.rint(values / step) * step).astype(values.dtype))
        return replace(self, tables=tables, step=step)

    def shap_values(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """What the page computes for rows of inputs, (n_rows, n_players, n_outputs), by the kernels."""
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
        """Single numbers."""
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
        """Arrays by the names that the kernels give them; tables in single precision, half the size."""
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


def tree_lookup(engine: TreeEngine) -> Lookup | None:
    """The tables that an engine has built; None where some tree has none."""
    compiled = engine.compiled
    if compiled is None or compiled.tables is None or not compiled.in_tables.all():
        return None
    e, (column, pages) = engine.ensemble, compiled.columns
    n_pages = 0 if pages is None else len(pages.source)
    lines = count_lines(column)[0] + np.arange(n_pages, dtype=np.int32)
    book = engine.model.coded.book
    return Lookup(book, column, pages, lines, compiled.tables, float("nan"), np.zeros(e.n_features, dtype=bool))


def level_lookup(
    engine: SpectrumEngine, n_levels: NDArray[np.int64], n_bits: NDArray[np.int64]
) -> Lookup | None:
    """The tables of a spectrum on the levels of players; None where some term has none.

    Each atom (a parity of a player's bits) is a page that reads the level of its player: one of ``n_levels``, a
    number of ``n_bits`` bits.
    """
    terms = engine.terms
    first_bit = np.cumsum(n_bits) - n_bits
    luts = []
    for a, player in enumerate(terms.atom_player):
        bits = terms.atom_bits[terms.atom_start[a] : terms.atom_start[a + 1]] - first_bit[player]
        # Two codes more than levels: the book's "any other" and "missing", which no level is.
        luts.append(np.bitwise_xor.reduce(np.arange(n_levels[player] + 2)[:, None] >> bits & 1, axis=1))
    sizes = n_levels[terms.atom_player] + 2
    lut = np.concatenate([*luts, np.empty(0)]).astype(np.uint8)
    pages = Pages(terms.atom_player, np.cumsum(sizes) - sizes, lut)
    return _atom_lookup(engine, n_levels, pages, np.arange(terms.n_atoms, dtype=np.int32))


def bit_lookup(engine: SpectrumEngine) -> Lookup | None:
    """The tables of a spectrum on its bits; None where some term has none.

    Each bit of an atom is a page that reads this bit; their parity is the atom.
    """
    terms = engine.terms
    line = np.repeat(np.arange(terms.n_atoms, dtype=np.int32), np.diff(terms.atom_start))
    offset = np.zeros(len(line), dtype=np.int64)
    pages = Pages(terms.atom_bits, offset, np.array([0, 1, 0, 0], dtype=np.uint8))
    return _atom_lookup(engine, np.full(terms.n_bits, 2), pages, line)


def _atom_lookup(
    engine: SpectrumEngine, n_levels: NDArray[np.int64], pages: Pages, line: NDArray[np.int32]
) -> Lookup | None:
    """Inputs whose values are the numbers of levels, as wide codes from which pages read atoms."""
    if engine.rest.n_terms:
        return None
    start = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    levels = np.concatenate([np.arange(n) for n in n_levels]).astype(np.float64)
    every = np.ones(len(n_levels), dtype=bool)
    book = Codebook(np.dtype(np.float64), start, levels, every)
    column = ~np.arange(len(n_levels), dtype=np.int32)
    return Lookup(book, column, pages, line, engine.tables, float("nan"), ~every)
