"""`Content`: everything that a page shows, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._rows.inputs import InputField
from fouriershap.report._html import packed_all

Floats = NDArray[np.float64]


def describe_input(entry: InputField) -> dict[str, Any]:
    """Return what the page needs of an input besides its values."""
    known = entry.values[np.isfinite(entry.values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return {
        "name": entry.name,
        "player": entry.player,
        "missing": entry.missing,
        "labels": entry.labels,
        "numbers": entry.numbers,
        "low": low,
        "high": high,
        "whole": bool((known == np.round(known)).all()),
    }


@dataclass(frozen=True)
class Output:
    """An output that is explained."""

    label: str  # "log-odds of good", "prediction"
    scale: str  # its unit: "log-odds of good", "€"; "" if unknown


@dataclass(frozen=True, eq=False)
class WhatIf:
    """What the page looks up to explain a changed row: single numbers, named arrays, their size.

    The header's ``kind`` is "tables", "leaves", "products" or "linear".
    """

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    nbytes: int
    # Returns a smaller version with entries of so many bits, and its error in ``note``; None if there is none.
    rounded: Callable[[int], WhatIf] | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class PairSizes:
    """Mean absolute pair interactions."""

    players: NDArray[np.int64]  # (k,) shown players
    sizes: Floats  # (n_outputs, k, k); NaN on the diagonal if main effects are unknown


@dataclass(frozen=True, eq=False)
class Actual:
    """Observations, and how well the predictions agree with them."""

    values: Floats  # (n_rows,) numbers, or positions among the labels
    labels: tuple[str, ...] | None
    metrics: list[tuple[str, float, str]]  # name, number, explanation
    # (n_outputs, n_bins, 5) for classes: mean prediction, observed share, ends of its interval, number of rows.
    calibration: Floats | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Mean SHAP values of groups of rows, with intervals: drift, or cohorts."""

    words: list[str]  # what is compared
    groups: tuple[str, ...]
    n_rows: list[int]
    values: Floats  # (n_groups, n_players, n_outputs)
    low: Floats
    high: Floats
    means: Floats  # (n_groups, n_outputs) mean prediction
    base: Floats  # (n_outputs,) mean prediction that the values are added to

    def describe(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in ("values", "low", "high", "means", "base")}
        about = {"words": self.words, "groups": self.groups, "n_rows": self.n_rows}
        return about | {"n_outputs": len(self.base), "arrays": packed_all(arrays)}


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of players that interact, the strongest first."""

    words: list[str]  # what is listed
    players: tuple[tuple[int, ...], ...]  # of each set
    strength: Floats  # (n_sets, n_outputs) mean absolute value over rows
    means: Floats  # (n_sets, n_outputs) mean
    first: int = 0  # the page's output that their first output is

    def describe(self) -> dict[str, Any]:
        arrays = {"strength": self.strength, "means": self.means}
        about = {"words": self.words, "players": self.players, "first": self.first}
        return about | {"n_outputs": self.means.shape[1], "arrays": packed_all(arrays)}


@dataclass(frozen=True, eq=False)
class Content:
    """What the page shows and needs."""

    title: str
    record: list[tuple[str, str]]  # model, version, owner, data, limits, as the caller states them
    facts: list[tuple[str, str]]
    meaning: list[str]  # what the values are, and how far to trust them
    inputs: list[InputField]
    players: list[str]
    outputs: list[Output]
    expected: Floats  # (n_outputs,)
    values: Floats  # (n_rows, n_players, n_outputs)
    errors: Floats | None  # standard errors of these, where they are estimates
    row_names: list[str] | None
    what_if: list[WhatIf] | str  # parts that add up, or why there are none
    # Turns raw outputs into what the model predicts: {None, "logistic", "softmax", "exp", "expm1"}.
    link: str | None
    response_unit: str  # of what the link makes of the raw output; "" if unknown
    # For a spectrum: ``degree_terms``, ``degree_share``, ``curve_terms``, ``curve_share``.
    profile: dict[str, NDArray[Any]]
    interactions: PairSizes | str  # or why there are none; "" if there cannot be any
    first_raw: int = 0  # the first raw output, for the what-if part and interactions
    output: int = 0  # shown first
    importance_ends: tuple[Floats, Floats] | None = None  # (n_players, n_outputs) both: 95 % intervals
    actual: Actual | None = None
    drift: Comparison | None = None
    cohorts: Comparison | None = None
    sets: Sets | None = None
    # Both sentences of each player's reason, split at their fields; see the page's `sentence`.
    sentences: list[list[list[tuple[str, str, str]]]] | None = None
    versions: dict[str, str] = field(default_factory=dict)

    def static(self) -> dict[str, Any]:
        """Return everything but rows and tables, as the page's script reads it."""
        arrays: dict[str, NDArray[Any]] = {"importance": np.abs(self.values).mean(axis=0), **self.profile}
        if self.importance_ends is not None:
            arrays["importance_low"], arrays["importance_high"] = self.importance_ends
        if isinstance(self.interactions, PairSizes):
            arrays["interactions"] = self.interactions.sizes
            arrays["interaction_players"] = self.interactions.players
        if self.actual is not None and self.actual.calibration is not None:
            arrays["calibration"] = self.actual.calibration
        return {
            "title": self.title,
            "record": self.record,
            "facts": self.facts,
            "meaning": self.meaning,
            "players": self.players,
            "outputs": [{"label": output.label, "scale": output.scale} for output in self.outputs],
            "expected": self.expected.tolist(),
            "link": self.link,
            "response_unit": self.response_unit,
            "first_raw": self.first_raw,
            "output": self.output,
            "inputs": [describe_input(entry) for entry in self.inputs],
            "n_rows": len(self.values),
            "has_ids": self.row_names is not None,
            "actual": None
            if self.actual is None
            else {"labels": self.actual.labels, "metrics": self.actual.metrics},
            "drift": None if self.drift is None else self.drift.describe(),
            "cohorts": None if self.cohorts is None else self.cohorts.describe(),
            "sets": None if self.sets is None else self.sets.describe(),
            "sentences": self.sentences,
            "versions": self.versions,
            "arrays": packed_all(arrays),
        }

    def select(self, n: int) -> NDArray[np.int64]:
        """Return a random sample of n rows, in their order."""
        total = len(self.values)
        return np.sort(np.random.default_rng(0).permutation(total)[:n]) if n < total else np.arange(total)

    def rows(self, kept: NDArray[np.int64]) -> dict[str, Any]:
        """Return some rows, as the page's script reads them."""
        columns = [entry.values[kept] for entry in self.inputs]
        arrays: dict[str, NDArray[Any]] = {
            "index": kept.astype(np.int32),
            "inputs": np.stack(columns) if columns else np.empty((0, len(kept))),
            "shap": self.values[kept].astype(np.float32),
        }
        if self.errors is not None:
            arrays["error"] = self.errors[kept].astype(np.float32)
        if self.actual is not None:
            arrays["actual"] = self.actual.values[kept]
        names = None if self.row_names is None else [self.row_names[k] for k in kept]
        return {"arrays": packed_all(arrays), "names": names}
