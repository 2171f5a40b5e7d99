"""`write_report`: fit what the page holds to its budget, write the file, warn of what is left out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.atomic import atomic_file
from fouriershap._base.errors import InputError, ReportWarning
from fouriershap._base.warn import warn
from fouriershap.report._content import Content, WhatIf
from fouriershap.report._pack import packed_all, script_json
from fouriershap.report._page import Page

_MOST_ROWS = 10_000  # more make searching in the page slow
_FIRST_ROWS = 200  # of more rows than that, so many are shown before the others are read
_FEW_ROWS = 200  # with fewer, the what-if part goes first
_MOST_PACKED = 24  # tables of more times the room are not even packed
_MOST_EXACT = 2_000_000  # bytes of tables in a page; larger ones are rounded
_BITS = (14, 12, 11)  # that entries are rounded to: the finest that takes no more than `_MOST_ROUNDED` bytes
_MOST_ROUNDED = 4_000_000


def write_report(
    content: Content, path: str | os.PathLike[str], *, rows: int | None = None, max_bytes: int = 15_000_000
) -> Path:
    """Write a page, see `Explainer.report`."""
    page = Page(content.title)
    n_rows = min(len(content.values), int(rows or _MOST_ROWS))
    data, kept, lacking = _fit(content, n_rows, max_bytes - page.nbytes)
    target = Path(path)
    with atomic_file(target) as unfinished:
        unfinished.write_text(_html(page, content, data, kept), encoding="utf-8", newline="\n")
    for note in lacking:
        warn(f"{target.name}: {note}", ReportWarning)
    return target


def _html(page: Page, content: Content, data: dict[str, Any], kept: NDArray[np.int64]) -> str:
    """The page. Of many rows the first come with the data, all of them behind what is shown first."""
    many = len(kept) > _MOST_ROWS
    first = content.rows(kept[:_FIRST_ROWS] if many else kept)
    return page.html(data | {"rows": first, "n_held": len(kept)}, content.rows(kept) if many else None)


def _fit(content: Content, n_rows: int, room: int) -> tuple[dict[str, Any], NDArray[np.int64], list[str]]:
    """What the page holds: fewer rows where the room is short, then no tables; and what it lacks. Each is said."""
    static = content.static()
    room -= _size(static) + 1000
    if n_rows > _MOST_ROWS:  # the first ones are there twice
        room -= _size(content.rows(content.select(n_rows)[:_FIRST_ROWS]))
    what_if, note, why_not = _what_if(content.what_if, room)
    n = _rows_that_fit(content, n_rows, room - _size(what_if))
    if what_if is not None and n < min(n_rows, _FEW_ROWS):
        what_if, note, why_not = None, "", "its tables would make the page larger than it may be."
        n = _rows_that_fit(content, n_rows, room)
    if not n:
        least = _size(content.rows(content.select(1))) - room
        raise InputError(f"max_bytes is too small for a page with a single row, by {least:,} bytes.")
    lacking = [f"There is no what-if part: {why_not}"] if why_not else []
    if isinstance(content.interactions, str) and content.interactions:
        lacking.append(f"There are no interactions: {content.interactions}")
    notes, total = [*lacking, *([note] if note else [])], len(content.values)
    if n < total:
        notes.append(
            f"The page holds a random sample of {n:,} of {total:,} rows. Importance is over all of them."
        )
    return static | {"notes": notes, "what_if": what_if}, content.select(n), lacking


def _what_if(parts: list[WhatIf] | str, room: int) -> tuple[list[dict[str, Any]] | None, str, str]:
    """The tables as the page's script reads them with what to say of them, or why there are none."""
    if isinstance(parts, str):
        return None, "", parts
    if sum(part.nbytes for part in parts) > _MOST_PACKED * room:
        return None, "", "its tables are far larger than the page may be."
    notes, found = [], []
    for part in parts:
        packed, note = _packed(part)
        found.append(packed)
        notes += [note] * bool(note)
    return found, " ".join(notes), ""


def _packed(part: WhatIf) -> tuple[dict[str, Any], str]:
    """One part; where it is large, with entries of as many bits as there is room for."""
    made = part.header | {"arrays": packed_all(part.arrays)}
    if part.rounded is None or _size(made) <= _MOST_EXACT:
        return made, part.note
    for bits in _BITS:
        coarser = part.rounded(bits)
        made = coarser.header | {"arrays": packed_all(coarser.arrays)}
        if _size(made) <= _MOST_ROUNDED:
            break
    return made, coarser.note


def _size(part: Any) -> int:
    return len(script_json(part))


def _rows_that_fit(content: Content, n_rows: int, room: int) -> int:
    """How many rows fit; 0 for none."""
    n = n_rows
    while n:
        size = _size(content.rows(content.select(n)))
        if size <= room:
            return n
        n = min(n - 1, int(n * 0.95 * max(room, 0) / size))
    return 0
