"""`Content`: all that a page shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap.report._pack import packed_all

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Input:
    """One thing that can be changed: a number, or a choice among labels.

    Attributes
    ----------
    name : str
    player : int
        Who gets the credit for it.
    values : (n_rows,) float64
        Numbers, or positions among the labels; NaN where missing.
    missing : bool
        Whether the value may be missing.
    labels : tuple of str, or None for a number
    numbers : tuple of float
        The number by which the model knows each label.
    """

    name: str
    player: int
    values: Floats
    missing: bool
    labels: tuple[str, ...] | None = None
    numbers: tuple[float, ...] = ()

    def describe(self) -> dict[str, Any]:
        """What the page needs beside the values."""
        known = self.values[np.isfinite(self.values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        return {
            "name": self.name,
            "player": self.player,
            "missing": self.missing,
            "labels": self.labels,
            "numbers": self.numbers,
            "low": low,
            "high": high,
            "whole": bool((known == np.round(known)).all()),
        }


@dataclass(frozen=True, eq=False)
class WhatIf:
    """By what the page explains a row that its reader changed: single numbers, named arrays, their size."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    nbytes: int


@dataclass(frozen=True, eq=False)
class Content:
    """What the page says and needs.

    Attributes
    ----------
    title : str
    facts : list of (str, str)
    meaning : list of str
        What the values are, and how far to trust them.
    inputs : list of Input
    players, outputs : sequence of str
    expected : (n_outputs,) float64
    values : (n_rows, n_players, n_outputs) float64
    row_names : list of str, or None for their positions
    what_if : WhatIf or str
        Or why there is none.
    link : {None, "softmax"}
        What turns the outputs into probabilities.
    profile : mapping
        Of a spectrum: ``degree_terms``, ``degree_share``, ``curve_terms``, ``curve_share``.
    interactions : (n_outputs, n_players, n_players) float64 or None
        Mean size of the interactions of pairs.
    """

    title: str
    facts: list[tuple[str, str]]
    meaning: list[str]
    inputs: list[Input]
    players: list[str]
    outputs: tuple[str, ...]
    expected: Floats
    values: Floats
    row_names: list[str] | None
    what_if: WhatIf | str
    link: str | None
    profile: dict[str, NDArray[Any]]
    interactions: Floats | None

    def static(self) -> dict[str, Any]:
        """All but rows and tables, as the page's script reads it."""
        arrays: dict[str, NDArray[Any]] = {"importance": np.abs(self.values).mean(axis=0), **self.profile}
        if self.interactions is not None:
            arrays["interactions"] = self.interactions
        return {
            "title": self.title,
            "facts": self.facts,
            "meaning": self.meaning,
            "players": self.players,
            "outputs": self.outputs,
            "expected": self.expected.tolist(),
            "link": self.link,
            "inputs": [entry.describe() for entry in self.inputs],
            "n_rows": len(self.values),
            "arrays": packed_all(arrays),
        }

    def select(self, n: int) -> NDArray[np.int64]:
        """A random sample of n rows, in their order."""
        total = len(self.values)
        return np.sort(np.random.default_rng(0).permutation(total)[:n]) if n < total else np.arange(total)

    def rows(self, kept: NDArray[np.int64]) -> dict[str, Any]:
        """Some rows, as the page's script reads them."""
        columns = [entry.values[kept] for entry in self.inputs]
        arrays: dict[str, NDArray[Any]] = {
            "index": kept.astype(np.int32),
            "inputs": np.stack(columns) if columns else np.empty((0, len(kept))),
            "shap": self.values[kept].astype(np.float32),
        }
        names = None if self.row_names is None else [self.row_names[k] for k in kept]
        return {"arrays": packed_all(arrays), "names": names}
