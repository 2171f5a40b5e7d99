"""`write_report`: explain rows, fit what the page holds to its budget, write the file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import CapacityError, Explainer, InputError
from fouriershap._base.atomic import atomic_file
from fouriershap._base.short import short
from fouriershap._rows.frames import is_sparse
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap.report._inputs import Input
from fouriershap.report._pack import packed_all, script_json
from fouriershap.report._page import Page
from fouriershap.report._subject import Subject, describe

_MOST_ROWS = 10_000  # more make searching in the page slow
_FEW_ROWS = 200  # with fewer, the what-if part goes first
_MOST_CURVE = 500
_MOST_PACKED = 8  # tables of more times the room are not even packed
_MOST_HEAT, _HEAT_ROWS = 30, 200  # players and rows of the interaction heat map


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows that a page may hold."""

    inputs: list[Input]
    values: NDArray[np.float64]
    names: list[str] | None

    def select(self, n: int) -> NDArray[np.int64]:
        """A random sample of n rows, in their order."""
        total = len(self.values)
        return np.sort(np.random.default_rng(0).permutation(total)[:n]) if n < total else np.arange(total)

    def packed(self, kept: NDArray[np.int64]) -> dict[str, Any]:
        """Some rows as JSON."""
        columns = [entry.values[kept] for entry in self.inputs]
        arrays: dict[str, NDArray[Any]] = {
            "index": kept.astype(np.int32),
            "inputs": np.stack(columns) if columns else np.empty((0, len(kept))),
            "shap": self.values[kept].astype(np.float32),
        }
        names = None if self.names is None else [self.names[k] for k in kept]
        return {"arrays": packed_all(arrays), "names": names}


def write_report(
    explainer: Explainer,
    X: Any,
    path: str | os.PathLike[str],
    *,
    rows: int | None = None,
    title: str | None = None,
    max_bytes: int = 15_000_000,
) -> Path:
    """Write the report page of an explainer (see `Explainer.report`)."""
    _check("rows", rows if rows is not None else 1)
    _check("max_bytes", max_bytes)
    subject = describe(explainer, X, max_bytes)
    values = explainer._explain(X, explainer.n_jobs)
    if not len(values):
        raise InputError("X has 0 rows; a page shows some.")
    if title is not None and not isinstance(title, str):
        raise InputError(f"title is {short(title)}; give a text, or None.")
    page = Page(title or f"{subject.kind}, explained")
    held = _Rows(subject.inputs, values, _row_names(X))
    content = _content(explainer, subject, values, X) | {"title": title or f"{subject.kind}, explained"}
    data = _fit(content, subject, held, min(len(values), int(rows or _MOST_ROWS)), max_bytes - page.nbytes)
    target = Path(path)
    with atomic_file(target) as unfinished:
        unfinished.write_text(page.html(data), encoding="utf-8", newline="\n")
    return target


def _check(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value >= 1:
        raise InputError(f"{name} is {short(value)}; give a number >= 1.")


def _row_names(X: Any) -> list[str] | None:
    """The labels of a frame's index, where it has one that says more than positions."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex" or len(index) != len(X):
        return None
    return [str(label) for label in index]


def _content(explainer: Explainer, subject: Subject, values: NDArray[np.float64], X: Any) -> dict[str, Any]:
    """All but rows and tables."""
    n_outputs = values.shape[2]
    names = explainer.output_names or tuple(f"output {k}" for k in range(n_outputs))
    arrays: dict[str, NDArray[Any]] = {"importance": np.abs(values).mean(axis=0)}
    if subject.terms is not None:
        arrays |= _profile(subject.terms)
    heat = _interactions(explainer, X, values)
    if heat is not None:
        arrays["interactions"] = heat
    return {
        "facts": subject.facts,
        "meaning": subject.meaning,
        "players": _player_names(explainer, subject.inputs),
        "outputs": names,
        "expected": explainer._expected.tolist(),
        "link": subject.link,
        "inputs": [entry.describe() for entry in subject.inputs],
        "n_rows": len(values),
        "arrays": packed_all(arrays),
    }


def _player_names(explainer: Explainer, inputs: list[Input]) -> list[str]:
    """Names of the players; of one that owns a single input, the input's, as the rows call it."""
    owned: dict[int, list[str]] = {}
    for entry in inputs:
        owned.setdefault(entry.player, []).append(entry.name)
    names = enumerate(explainer.player_names)
    return [owned[p][0] if len(owned.get(p, ())) == 1 else name for p, name in names]


def _profile(terms: Terms) -> dict[str, NDArray[Any]]:
    """Number and energy of the terms by degree, and the share of the variance in the largest ones."""
    energies = (terms.coefficients**2).sum(axis=1)
    total = max(float(energies.sum()), 1e-300)
    curve = np.cumsum(np.sort(energies)[::-1]) / total
    at = np.unique(np.linspace(1, len(curve), min(len(curve), _MOST_CURVE)).astype(np.int32))
    return {
        "degree_terms": np.bincount(terms.degrees, minlength=1).astype(np.int32),
        "degree_share": np.bincount(terms.degrees, energies, minlength=1) / total,
        "curve_terms": at,
        "curve_share": curve[at - 1],
    }


def _interactions(explainer: Explainer, X: Any, values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Mean size of the pair interactions (n_outputs, n_players, n_players) of the first rows; None if too many."""
    if values.shape[1] > _MOST_HEAT:
        return None
    try:
        first = X.tocsr()[:_HEAT_ROWS] if is_sparse(X) else X[:_HEAT_ROWS]
        pairs = np.asarray(explainer.shap_interaction_values(first))
    except (CapacityError, InputError):  # tables of pairs that no memory holds; explainers that have none
        return None
    pairs = pairs.reshape(*pairs.shape[:3], -1)
    return np.ascontiguousarray(np.moveaxis(np.abs(pairs).mean(axis=0), -1, 0))


def _fit(content: dict[str, Any], subject: Subject, rows: _Rows, n_rows: int, room: int) -> dict[str, Any]:
    """What the page holds: fewer rows where the room is short, then no tables. Each is said."""
    room -= len(script_json(content)) + 1000
    what_if = None
    notes = []
    if subject.lookup is not None and subject.lookup.tables.nbytes > _MOST_PACKED * room:
        notes.append("There is no what-if part: its tables are far larger than the page may be.")
    elif subject.lookup is not None:
        what_if = subject.lookup.header() | {"arrays": packed_all(subject.lookup.arrays())}
    elif subject.without:
        notes.append(f"There is no what-if part: {subject.without}")
    n = _rows_that_fit(rows, n_rows, room - _size(what_if))
    if what_if is not None and n < min(n_rows, _FEW_ROWS):
        notes.append("There is no what-if part: its tables would make the page larger than it may be.")
        what_if = None
        n = _rows_that_fit(rows, n_rows, room)
    if not n:
        least = _size(rows.packed(rows.select(1))) - room
        raise InputError(f"max_bytes is too small for a page with a single row, by {least:,} bytes.")
    kept = rows.select(n)
    if n < len(rows.values):
        notes.append(
            f"The page holds a random sample of {n:,} of {len(rows.values):,} rows. Importance is over all of them."
        )
    return content | {"notes": notes, "what_if": what_if, "rows": rows.packed(kept)}


def _size(part: Any) -> int:
    return len(script_json(part))


def _rows_that_fit(rows: _Rows, n_rows: int, room: int) -> int:
    """How many rows fit; 0 for none."""
    n = n_rows
    while n:
        size = _size(rows.packed(rows.select(n)))
        if size <= room:
            return n
        n = min(n - 1, int(n * 0.95 * max(room, 0) / size))
    return 0
