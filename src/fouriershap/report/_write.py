"""`write_content`: fit what the page holds to its budget, write the file, warn about what is left out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.atomic import atomic_file
from fouriershap._base.checks import check_path
from fouriershap._base.errors import InputError, ReportWarning
from fouriershap._base.warn import warn
from fouriershap.report._content import Content, WhatIf
from fouriershap.report._html import Page, packed_all, script_json

_MOST_ROWS = 10_000  # with more, searching the page is slow
_FIRST_ROWS = 200  # shown before the others are read, if there are more than `_MOST_ROWS`
_FEW_ROWS = 200  # rather than hold fewer rows, the page has no what-if part
_MOST_PACKED = 24  # tables larger than this many times the space are not even packed
_MOST_EXACT = 2_000_000  # bytes of tables in a page; larger ones are rounded
_BITS = (14, 12, 11)  # to round entries to: the most that fit into `_MOST_ROUNDED` bytes
_MOST_ROUNDED = 4_000_000


def write_content(
    content: Content, path: str | os.PathLike[str], *, max_rows: int | None, max_bytes: int
) -> Path:
    """Write a page; see `write_report`."""
    page = Page(content.title)
    n_rows = min(len(content.values), int(max_rows or _MOST_ROWS))
    data, kept, lacking = _fit(content, n_rows, max_bytes - page.nbytes)
    target = check_path(path)
    with atomic_file(target) as unfinished:
        unfinished.write_text(_html(page, content, data, kept), encoding="utf-8", newline="\n")
    for note in lacking:
        warn(f"{target.name}: {note}", ReportWarning)
    return target


def _html(page: Page, content: Content, data: dict[str, Any], kept: NDArray[np.int64]) -> str:
    """Return the page. If there are many rows, the first come with the data and all of them at the end."""
    many = len(kept) > _MOST_ROWS
    first = content.rows(kept[:_FIRST_ROWS] if many else kept)
    return page.html(data | {"rows": first, "n_held": len(kept)}, content.rows(kept) if many else None)


def _fit(content: Content, n_rows: int, space: int) -> tuple[dict[str, Any], NDArray[np.int64], list[str]]:
    """Return what the page holds, its rows, and what it lacks: fewer rows if space is short, then no tables."""
    static = content.static()
    space -= _size(static) + 1000
    if n_rows > _MOST_ROWS:  # the first ones are stored twice
        space -= _size(content.rows(content.select(n_rows)[:_FIRST_ROWS]))
    what_if, note, why_not = _what_if(content.what_if, space)
    n = _rows_that_fit(content, n_rows, space - _size(what_if))
    if what_if is not None and n < min(n_rows, _FEW_ROWS):
        what_if, note, why_not = None, "", "its tables would make the page larger than max_bytes."
        n = _rows_that_fit(content, n_rows, space)
    if not n:
        least = _size(content.rows(content.select(1))) - space
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


def _what_if(parts: list[WhatIf] | str, space: int) -> tuple[list[dict[str, Any]] | None, str, str]:
    """Return the tables as the page's script reads them with a note, or why there are none."""
    if isinstance(parts, str):
        return None, "", parts
    if sum(part.nbytes for part in parts) > _MOST_PACKED * space:
        return None, "", "its tables are far larger than max_bytes."
    notes, found = [], []
    for part in parts:
        packed, note = _packed(part)
        found.append(packed)
        notes += [note] * bool(note)
    return found, " ".join(notes), ""


def _packed(part: WhatIf) -> tuple[dict[str, Any], str]:
    """Return one part; if it is large, with entries of as many bits as fit."""
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


def _rows_that_fit(content: Content, n_rows: int, space: int) -> int:
    """Return how many rows fit."""
    n = n_rows
    while n:
        size = _size(content.rows(content.select(n)))
        if size <= space:
            return n
        n = min(n - 1, int(n * 0.95 * max(space, 0) / size))
    return 0
