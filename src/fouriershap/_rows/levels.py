"""Codes: the matrix of numbers, a column per *feature*, to which surrogates are fitted.

A column of numbers is its own code. A column of labels, or a one-hot group, becomes the number of its level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import find_position
from fouriershap._base.errors import InputError
from fouriershap._base.messages import error_text, truncated_repr
from fouriershap._rows.pool import Pool
from fouriershap._rows.text import MISSING, NO_LEVEL, text_of, without_prefix

NUMBER, LABEL, ONE_HOT = "number", "label", "one-hot"


@dataclass(frozen=True)
class Feature:
    """One column of codes."""

    kind: str  # {"number", "label", "one-hot"}
    name: str
    columns: tuple[int, ...]  # raw columns that it reads: one, or those of a one-hot group
    player: int
    # The level that each code stands for: labels, or the position of the one (-1 for none); empty for numbers.
    levels: tuple[Any, ...] = ()
    ordered: bool = True  # whether the levels have an order of their own; otherwise they may be put in any
    # Whether missing values are known; if the data have none, the model was never queried about them.
    missing: bool = True

    def encode(self, pool: Pool, name: str) -> NDArray[np.float64]:
        """Return codes (n_rows,) float64; NaN for missing values."""
        codes = self._encode(pool, name)
        if not self.missing and np.isnan(codes).any():
            raise InputError(
                f"{name} has a missing value in {truncated_repr(self.name)}, which the model was never queried "
                "about. Give "
                "data= with rows that lack it to the constructor."
            )
        return codes

    def _encode(self, pool: Pool, name: str) -> NDArray[np.float64]:
        if self.kind == NUMBER:
            numbers = pool.numbers(self.columns[0])
            if numbers is None:
                raise InputError(
                    f"{name} has labels in the column {truncated_repr(self.name)}, which held numbers before."
                )
            return numbers + 0.0  # no negative zeros: equal values have equal bytes
        found = _one_hot(pool, self.columns) if self.kind == ONE_HOT else pool.labels(self.columns[0])
        if found is None:
            raise InputError(
                f"{name} has rows in which the group {truncated_repr(self.name)} is not one-hot."
            )
        code = {level: float(c) for c, level in enumerate(self.levels)} | {None: np.nan}
        try:
            return np.array([code[level] for level in found], dtype=np.float64)
        except KeyError as error:
            raise InputError(
                f"{name} has the level {truncated_repr(error.args[0])} in {truncated_repr(self.name)}, which "
                "the model was "
                "never queried about. Give data= with rows that have it to the constructor."
            ) from None

    def text(self, code: float, columns: tuple[str, ...]) -> str:
        """Return the text of a code; ``columns`` are the names of the raw columns."""
        if np.isnan(code):
            return MISSING
        if self.kind == NUMBER:
            return text_of(float(code))
        level = self.levels[int(code)]
        if self.kind == LABEL:
            return text_of(level, None)
        return NO_LEVEL if level < 0 else without_prefix([columns[c] for c in self.columns])[level]


@dataclass(frozen=True)
class Encoding:
    """All features, and the players that own the raw columns."""

    features: tuple[Feature, ...]
    column_player: NDArray[np.int32]  # (n_columns,)
    player_names: tuple[str, ...]

    @property
    def n_players(self) -> int:
        return len(self.player_names)

    @property
    def player(self) -> NDArray[np.int32]:
        """(n_features,) the player that owns each feature."""
        return np.array([feature.player for feature in self.features], dtype=np.int32)

    def encode(self, pool: Pool, name: str = "X") -> NDArray[np.float64]:
        """Return codes (n_rows, n_features) of raw rows."""
        return np.column_stack([feature.encode(pool, name) for feature in self.features])

    def reordered(
        self, codes: NDArray[np.float64], response: NDArray[np.float64]
    ) -> tuple[Encoding, list[NDArray[np.float64] | None]]:
        """Sort levels without an order of their own by their mean response.

        Returns the new encoding and, for each feature, the new code of each old one (n_levels,), None if unchanged.
        """
        features, changes = [], []
        for f, feature in enumerate(self.features):
            change = None
            if feature.kind != NUMBER and not feature.ordered and len(feature.levels) > 2:
                order = _by_response(codes[:, f], response, len(feature.levels))
                feature = replace(feature, levels=tuple(feature.levels[c] for c in order))
                change = np.argsort(order).astype(np.float64)
            features.append(feature)
            changes.append(change)
        return replace(self, features=tuple(features)), changes


def recode(codes: NDArray[np.float64], changes: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64]:
    """Return codes after `Encoding.reordered`."""
    out = codes.copy()
    for f, change in enumerate(changes):
        if change is not None:
            known = ~np.isnan(codes[:, f])
            out[known, f] = change[codes[known, f].astype(np.int64)]
    return out


def make_encoding(
    pool: Pool, column_player: NDArray[np.int32], player_names: tuple[str, ...], categorical: Any
) -> Encoding:
    """Find the kind and the levels of every column from rows.

    ``categorical`` columns, by name or position, hold labels even if they are numbers.
    """
    named = _positions(categorical, pool.names)
    features: list[Feature] = []
    for player, name in enumerate(player_names):
        columns = tuple(int(j) for j in np.flatnonzero(column_player == player))
        hot = _one_hot(pool, columns) if len(columns) > 1 and not named & set(columns) else None
        if hot is not None:
            levels = tuple(sorted(set(hot)))
            features.append(Feature(ONE_HOT, name, columns, player, levels, ordered=False))
            continue
        features += [_feature(pool, j, player, j in named) for j in columns]
    known = (replace(f, missing=bool(np.isnan(f.encode(pool, "data")).any())) for f in features)
    return Encoding(tuple(known), column_player, player_names)


def _feature(pool: Pool, j: int, player: int, is_label: bool) -> Feature:
    if not is_label and pool.numbers(j) is not None:
        return Feature(NUMBER, pool.names[j], (j,), player)
    try:
        found = {label for label in pool.labels(j) if label is not None}
        ordered = sorted(found, key=lambda label: (type(label).__name__, label))
    except TypeError as error:
        raise InputError(
            f"column {truncated_repr(pool.names[j])} holds labels that cannot be told apart or sorted "
            f"({error_text(error)}); give text or numbers."
        ) from None
    order = pool.category_order(j)
    if order is not None and not is_label:
        levels = tuple(label for label in order if label in found)
        return Feature(LABEL, pool.names[j], (j,), player, levels)
    return Feature(LABEL, pool.names[j], (j,), player, tuple(ordered), ordered=False)


def _one_hot(pool: Pool, columns: tuple[int, ...]) -> list[int] | None:
    """Return the position of the one in each row (-1 for none) if the columns are one-hot, else None."""
    numbers = [pool.numbers(j) for j in columns]
    if any(column is None or not np.isin(column, (0.0, 1.0)).all() for column in numbers):
        return None
    matrix = np.column_stack([column for column in numbers if column is not None])
    if matrix.sum(axis=1).max(initial=0.0) > 1:
        return None
    positions = np.where(matrix.any(axis=1), matrix.argmax(axis=1), -1)
    return [int(position) for position in positions]


def _by_response(codes: NDArray[np.float64], response: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    known = ~np.isnan(codes)
    index = codes[known].astype(np.int64)
    count = np.bincount(index, minlength=n)
    total = np.bincount(index, response[known] - response.mean(), minlength=n)
    return np.argsort(total / np.maximum(count, 1), kind="stable")


def _positions(categorical: Any, names: tuple[str, ...]) -> set[int]:
    if categorical is None:
        return set()
    if isinstance(categorical, str) or not hasattr(categorical, "__iter__"):
        raise InputError(
            f"categorical is {truncated_repr(categorical)}; give a list of column names or positions."
        )
    return {find_position(column, names, "categorical") for column in categorical}
