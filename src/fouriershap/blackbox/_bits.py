"""Levels of players as bits: what a Walsh-Hadamard transform needs, and back to data rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._errors import InputError
from fouriershap.blackbox._levels import NUMBER, Encoding

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlayerLevels:
    """The levels of one player.

    Attributes
    ----------
    name : str
    features : (n,) int64
        Features that the player owns.
    levels : (n_levels, n) float64
        Their codes at each level.
    rows : (n_levels,) int32
        A data row that shows each level.
    """

    name: str
    features: NDArray[np.int64]
    levels: Floats
    rows: NDArray[np.int32]

    @property
    def n_levels(self) -> int:
        return len(self.rows)

    @property
    def n_bits(self) -> int:
        return (self.n_levels - 1).bit_length()

    def find(self, codes: Floats, name: str) -> NDArray[np.int64]:
        """Level (n_rows,) of codes (n_rows, n_features)."""
        mine = codes[:, self.features]
        # Rows as tuples of bytes compare whatever they hold, NaN included.
        position = {row.tobytes(): k for k, row in enumerate(self.levels)}
        unique, inverse = np.unique(_canonical(mine), axis=0, return_inverse=True)
        found = np.array([position.get(row.tobytes(), -1) for row in unique], dtype=np.int64)
        if (found < 0).any():
            missing = unique[int(np.argmin(found))]
            raise InputError(
                f"{name} has a level of {self.name!r} (code {missing.tolist()}) that the representation does not "
                "know. Give data= with rows that hold it, or use method='trees'."
            )
        return found[np.ravel(inverse)]


@dataclass(frozen=True, eq=False)
class BitCode:
    """All players' levels as binary numbers; a number beyond the last level wraps around."""

    players: tuple[PlayerLevels, ...]

    @property
    def n_players(self) -> int:
        return len(self.players)

    @property
    def n_bits(self) -> int:
        return sum(player.n_bits for player in self.players)

    @property
    def varying(self) -> NDArray[np.int64]:
        """Players with more than one level."""
        return np.flatnonzero([player.n_bits > 0 for player in self.players])

    @property
    def compact_players(self) -> NDArray[np.int32]:
        """(n_bits,) the position in `varying` of the player that owns each bit."""
        widths = [player.n_bits for player in self.players if player.n_bits]
        return np.repeat(np.arange(len(widths), dtype=np.int32), widths)

    def bits(self, codes: Floats, name: str = "X") -> NDArray[np.uint8]:
        """Bits (n_rows, n_bits) of codes."""
        parts = [np.zeros((len(codes), 0), dtype=np.uint8)]
        for player in self.players:
            level = player.find(codes, name)
            parts.append((level[:, None] >> np.arange(player.n_bits) & 1).astype(np.uint8))
        return np.concatenate(parts, axis=1)

    def index(self, bits: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Hybrids (n_rows, n_players) that show the levels which bits stand for."""
        out = np.empty((len(bits), self.n_players), dtype=np.int32)
        first = 0
        for j, player in enumerate(self.players):
            weights = 1 << np.arange(player.n_bits)
            number = bits[:, first : first + player.n_bits].astype(np.int64) @ weights
            out[:, j] = player.rows[number % player.n_levels]
            first += player.n_bits
        return out

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for j, player in enumerate(self.players):
            for field in ("features", "levels", "rows"):
                arrays[f"player.{j}.{field}"] = getattr(player, field)
        return arrays, {"names": [player.name for player in self.players]}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> BitCode:
        """The inverse of `to_contents`."""
        fields = ("features", "levels", "rows")
        return cls(
            tuple(
                PlayerLevels(name, *(arrays[f"player.{j}.{field}"] for field in fields))
                for j, name in enumerate(header["names"])
            )
        )


def exact_code(encoding: Encoding, pool_codes: Floats) -> BitCode:
    """Every combination of codes that a player shows in the data is a level."""
    return BitCode(tuple(_levels_of(encoding, j, pool_codes) for j in range(encoding.n_players)))


def looks_discrete(encoding: Encoding, pool_codes: Floats) -> bool:
    """Whether new rows can be expected to bring no new levels: labels, or few numbers that recur."""
    for f, feature in enumerate(encoding.features):
        if feature.kind == NUMBER:
            column = pool_codes[:, f]
            n_levels = len(np.unique(column))
            if n_levels > 2 and (n_levels > 32 or len(column) < 3 * n_levels):
                return False
            if not np.array_equal(column, np.round(column), equal_nan=True):
                return False
    return True


def _levels_of(encoding: Encoding, player: int, pool_codes: Floats) -> PlayerLevels:
    features = np.flatnonzero(encoding.player == player)
    levels, rows = np.unique(_canonical(pool_codes[:, features]), axis=0, return_index=True)
    if np.isnan(levels).any():  # numpy tells NaNs in rows apart
        keys = {row.tobytes(): int(first) for row, first in zip(levels, rows, strict=True)}
        rows = np.array(list(keys.values()))
        levels = _canonical(pool_codes[np.ix_(rows, features)])
    name = encoding.player_names[player]
    return PlayerLevels(name, features, levels, rows.astype(np.int32))


def _canonical(codes: Floats) -> Floats:
    return np.ascontiguousarray(np.where(np.isnan(codes), np.nan, codes))
