"""Look-up tables under XLA: the kernel `tables_numpy.explain` as gathers and additions on a device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.jax.common import (
    CHUNK_BYTES,
    budget,
    choose_dtype,
    chunks,
    device,
    each,
    fit,
    pad,
    padded_size,
    x64,
)
from fouriershap._shapley.policy import Locked
from fouriershap._shapley.tables import WIDTH, TableSet
from fouriershap._trees.codes import Codes

# Look-ups whose entries are gathered before they are added: few stay in a cache, many fill an accelerator.
_AT_A_TIME = {"cpu": 8}
_AT_A_TIME_ELSEWHERE = 256


class JaxTables(Locked):
    """A `TableSet` on the device of JAX; it is put there when it is first used.

    ``precision`` is that of the totals; None for double on a CPU, single on an accelerator. Tables are at most as
    precise. ``memory`` is a budget on the device in bytes, including the tables; None for a quarter of what it has.
    """

    def __init__(self, tables: TableSet, precision: str | None, memory: int | float | None) -> None:
        super().__init__()
        self.tables, self._precision, self._memory = tables, precision, memory
        self._n_lines = tables.n_players * tables.n_outputs
        self._at_a_time = _AT_A_TIME.get(device().platform, _AT_A_TIME_ELSEWHERE)
        self._arrays: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_arrays": None}

    def add(self, codes: Codes, out: NDArray[np.float64]) -> None:
        """Add the values of all rows to ``out`` (n_rows, n_players, n_outputs)."""
        if not self.tables.n_tables or not codes.n_rows:
            return
        dtype = choose_dtype(self._precision)
        size = self._rows_per_chunk(codes, dtype.itemsize)
        with x64(dtype.itemsize == 8):
            arrays = self._put(dtype)
            for first, last in chunks(codes.n_rows, size):
                lines = pad(_join(codes, first, last), padded_size(last - first), axis=1)
                values = np.asarray(_explain(*arrays, lines, self._n_lines, dtype))
                out[first:last] += values[: last - first].reshape(out[first:last].shape)

    def _put(self, dtype: np.dtype[Any]) -> Any:
        """Return the tables on the device, where they are put once."""
        with self._lock:
            if self._arrays is None:
                values = self.tables.values.reshape(-1, WIDTH)
                narrow = values.astype(min(values.dtype, dtype, key=lambda d: d.itemsize))
                bands, place = _bands(self.tables)
                self._arrays = jax.device_put((bands, _look_ups(self.tables, place, self._at_a_time), narrow))
            return self._arrays

    def _rows_per_chunk(self, codes: Codes, itemsize: int) -> int:
        tables, blocks = self.tables, self.tables.blocks
        fixed = tables.values.size * min(tables.values.itemsize, itemsize) + 4 * 12 * tables.n_tables
        per_row = 4 * len(blocks) + 2 * (len(codes.narrow) + len(codes.wide))
        per_row += (2 * self._n_lines + 2 * self._at_a_time * WIDTH) * itemsize

        def nbytes(rows: int) -> int:
            return fixed + rows * per_row

        what = "reading the tables with device='jax'"
        return fit((codes.n_rows,), nbytes, budget(self._memory), what, chunk=fixed + CHUNK_BYTES)[0]


def _join(codes: Codes, first: int, last: int) -> NDArray[Any]:
    """Return all codes (n8 + n16, rows) as uint8, or as uint16 if there are wide ones.

    The wide ones come last and backwards, so that line ~c of them is line c counted from the end, as usual.
    """
    narrow, wide = codes.narrow[:, first:last], codes.wide[:, first:last]
    return np.concatenate([narrow, wide[::-1]]) if len(wide) else narrow


def _bands(tables: TableSet) -> tuple[list[Any], NDArray[np.int32]]:
    """Group blocks that have about as many cuts, padded with cuts of weight 0; also return each block's place.

    A band is (columns, at, weight), each (blocks, cuts), and base (blocks,), all int32. Cuts on missing values
    are never left out: other codes do not reach them.
    """
    b = tables.blocks
    sizes = np.diff(b.cut_start)
    widths = 1 << np.ceil(np.log2(np.maximum(sizes, 1))).astype(int)
    order, bands = [], []
    for width in np.unique(widths):
        mine = np.flatnonzero(widths == width)
        present = np.arange(width) < sizes[mine][:, None]
        index = np.where(present, b.cut_start[mine][:, None] + np.arange(width), 0)
        weight = np.where(present, b.cut_weight[index], 0)
        parts = (b.cut_column[index], b.cut_at[index], weight, b.base[mine])
        bands.append(tuple(part.astype(np.int32) for part in parts))
        order.append(mine)
    place = np.empty(len(b), dtype=np.int32)
    place[np.concatenate(order)] = np.arange(len(b), dtype=np.int32)
    return bands, place


def _look_ups(tables: TableSet, place: NDArray[np.int32], at_a_time: int) -> tuple[NDArray[np.int32], ...]:
    """Return one look-up per table and output: (steps, at a time) block and first entry, (..., 8) lines of the result.

    Line ``player * n_outputs + output`` is where a column goes; the line after the last takes what has none.
    """
    group = np.repeat(np.arange(len(tables.group_start) - 1), np.diff(tables.group_start))
    width = tables.group_width[group]
    table = np.repeat(np.arange(tables.n_tables), width)
    w = np.arange(len(table)) - np.repeat(np.cumsum(width) - width, width)
    block = tables.table_block[table]
    first = tables.table_offset[table] // WIDTH + w * tables.blocks.n_patterns[block]
    players = tables.group_players[group[table]]
    output = (tables.group_output[group[table]] + w)[:, None]
    nowhere = tables.n_players * tables.n_outputs
    lines = np.where(players >= 0, players * tables.n_outputs + output, nowhere)
    parts = ((place[block], 0), (first, 0), (lines, nowhere))
    return tuple(_in_steps(array.astype(np.int32), at_a_time, filler) for array, filler in parts)


def _in_steps(array: NDArray[np.int32], at_a_time: int, filler: int) -> NDArray[np.int32]:
    n_steps = -(-len(array) // at_a_time)
    out = np.full((n_steps * at_a_time, *array.shape[1:]), filler, dtype=np.int32)
    out[: len(array)] = array
    return out.reshape(n_steps, at_a_time, *array.shape[1:])


def explain(bands: Any, look_ups: Any, values: Any, codes: Any, n_lines: int, dtype: Any) -> Any:
    """Return sums (R, n_lines) of the table entries of rows with codes (n_columns, R)."""

    def patterns_of_block(column: Any, at: Any, weight: Any, base: Any) -> Any:
        reached = codes[column].astype(jnp.int32) >= at[:, None]
        return base + jnp.where(reached, weight[:, None], 0).sum(axis=0, dtype=jnp.int32)

    patterns = jnp.concatenate([each(patterns_of_block, *band) for band in bands])

    def step(total: Any, part: Any) -> tuple[Any, None]:
        block, first, lines = part
        entries = values[first[:, None] + patterns[block]]  # (look-ups, R, 8)
        return total.at[lines].add(entries.swapaxes(1, 2).astype(dtype)), None

    total = jnp.zeros((n_lines + 1, codes.shape[1]), dtype)
    return jax.lax.scan(step, total, look_ups)[0][:-1].T


_explain = jax.jit(explain, static_argnums=(4, 5))
