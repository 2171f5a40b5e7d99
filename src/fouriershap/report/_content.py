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
    """One thing that can be changed: a number, or a choice among labels."""

    name: str
    player: int  # who gets the credit for it
    values: Floats  # (n_rows,) numbers, or positions among the labels; NaN where missing
    missing: bool  # whether the value may be missing
    labels: tuple[str, ...] | None = None
    numbers: tuple[float, ...] = ()  # the number by which the model knows each label

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
    """By what the page explains a row that its reader changed: single numbers, named arrays, their size.

    Tables, or, where the header has the kind "products", waves.
    """

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    nbytes: int


@dataclass(frozen=True, eq=False)
class Content:
    """What the page says and needs."""

    title: str
    facts: list[tuple[str, str]]
    meaning: list[str]  # what the values are, and how far to trust them
    inputs: list[Input]
    players: list[str]
    outputs: tuple[str, ...]
    expected: Floats  # (n_outputs,)
    values: Floats  # (n_rows, n_players, n_outputs)
    row_names: list[str] | None
    what_if: list[WhatIf] | str  # parts that add up, or why there are none
    link: str | None  # {None, "softmax"} what turns the outputs into probabilities
    # Of a spectrum: ``degree_terms``, ``degree_share``, ``curve_terms``, ``curve_share``.
    profile: dict[str, NDArray[Any]]
    interactions: Floats | None  # (n_outputs, n_players, n_players) mean size of the interactions of pairs

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
