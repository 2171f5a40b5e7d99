"""Levels of players as bits, as a Walsh-Hadamard transform needs them, and back to data rows and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.headers import get_typed
from fouriershap._base.messages import truncated_repr
from fouriershap._rows.levels import NUMBER, Encoding, recode
from fouriershap._rows.text import text_of

Floats = NDArray[np.float64]
_FIELDS = ("features", "levels", "rows", "edges")
MOST_LEVELS = 64  # of a player that cannot be cut into intervals
N_INTERVALS = 8
_FEW_LEVELS = 16
_MOST_NAMED = 4  # levels of a player up to which a bit is named by those that it marks


@dataclass(frozen=True, eq=False)
class PlayerLevels:
    """The levels of one player."""

    name: str
    features: NDArray[np.int64]  # (n,) features that the player owns
    levels: Floats  # (n_levels, n) their codes at each level
    rows: NDArray[np.int32]  # (n_levels,) a data row that shows each level
    # (n_intervals - 1,) where the levels are intervals of one feature: what separates them. Missing values,
    # if there are any, are the level after the last interval. Empty where levels are codes as they are.
    edges: Floats

    @property
    def n_levels(self) -> int:
        return len(self.rows)

    @property
    def n_bits(self) -> int:
        return (self.n_levels - 1).bit_length()

    def find(self, codes: Floats, name: str) -> NDArray[np.int64]:
        """Return the level (n_rows,) of codes (n_rows, n_features)."""
        mine = codes[:, self.features]
        if len(self.edges):
            found = np.searchsorted(self.edges, mine[:, 0], side="right")
            missing_level = len(self.edges) + 1 if self.n_levels == len(self.edges) + 2 else -1
            found[np.isnan(mine[:, 0])] = missing_level
        elif mine.shape[1] == 1:
            found = _find_numbers(self.levels[:, 0], mine[:, 0])
        else:
            found = _find_rows(self.levels, mine)
        if (found < 0).any():
            missing = mine[int(np.argmin(found))]
            raise InputError(
                f"{name} has a level of {truncated_repr(self.name)} (code {truncated_repr(missing.tolist())}) that the "
                "representation does not know. Give data= with rows that hold it, or use method='trees'."
            )
        return found

    def recoded(self, changes: Sequence[Floats | None]) -> PlayerLevels:
        """Return the same code after `Encoding.reordered`."""
        levels = recode(self.levels, [changes[feature] for feature in self.features])
        return replace(self, levels=_canonical(levels))


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
    def player(self) -> NDArray[np.int32]:
        """(n_bits,) the player that owns each bit."""
        widths = [player.n_bits for player in self.players]
        return np.repeat(np.arange(len(widths), dtype=np.int32), widths)

    def bits(self, codes: Floats, name: str = "X") -> NDArray[np.uint8]:
        """Return the bits (n_rows, n_bits) of codes."""
        parts = [np.zeros((len(codes), 0), dtype=np.uint8)]
        for player in self.players:
            level = player.find(codes, name)
            parts.append((level[:, None] >> np.arange(player.n_bits) & 1).astype(np.uint8))
        return np.concatenate(parts, axis=1)

    def index(self, bits: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return hybrids (n_rows, n_players) that have the levels of some bits."""
        out = np.empty((len(bits), self.n_players), dtype=np.int32)
        first = 0
        for j, player in enumerate(self.players):
            weights = 1 << np.arange(player.n_bits)
            number = bits[:, first : first + player.n_bits].astype(np.int64) @ weights
            out[:, j] = player.rows[number % player.n_levels]
            first += player.n_bits
        return out

    def recoded(self, changes: Sequence[Floats | None]) -> BitCode:
        """Return the same code after `Encoding.reordered`."""
        return BitCode(tuple(player.recoded(changes) for player in self.players))

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for j, player in enumerate(self.players):
            for field in _FIELDS:
                arrays[f"player.{j}.{field}"] = getattr(player, field)
        return arrays, {"names": [player.name for player in self.players]}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> BitCode:
        """Return the code of a file."""
        names = get_typed(header, "names", tuple[str, ...])
        levels = ([arrays[f"player.{j}.{field}"] for field in _FIELDS] for j in range(len(names)))
        return cls(tuple(PlayerLevels(name, *fields) for name, fields in zip(names, levels, strict=True)))


def exact_code(encoding: Encoding, pool_codes: Floats) -> BitCode:
    """Return the code in which every combination of codes that a player has in the data is a level."""
    return BitCode(tuple(_levels_of(encoding, j, pool_codes) for j in range(encoding.n_players)))


def interval_code(encoding: Encoding, pool_codes: Floats) -> BitCode:
    """Return `exact_code`, but with numbers of many values cut at quantiles into intervals."""
    players = []
    for player in exact_code(encoding, pool_codes).players:
        numbers = all(encoding.features[f].kind == NUMBER for f in player.features)
        if player.n_levels > _FEW_LEVELS and numbers and len(player.features) == 1:
            player = _intervals_of(player, pool_codes)
        if player.n_levels > MOST_LEVELS:
            raise InputError(
                f"method='swht' turns levels into bits, but {truncated_repr(player.name)} has {player.n_levels} of "
                f"them; at most {MOST_LEVELS} are feasible. Use method='auto'."
            )
        players.append(player)
    return BitCode(tuple(players))


def looks_discrete(encoding: Encoding, pool_codes: Floats) -> bool:
    """Return whether new rows should bring no new levels: labels, or few numbers that recur."""
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
    if np.isnan(levels).any():  # NumPy counts NaNs in rows as different
        keys = {row.tobytes(): int(first) for row, first in zip(levels, rows, strict=True)}
        rows = np.array(list(keys.values()))
        levels = _canonical(pool_codes[np.ix_(rows, features)])
    name = encoding.player_names[player]
    return PlayerLevels(name, features, levels, rows.astype(np.int32), np.zeros(0))


def _intervals_of(player: PlayerLevels, pool_codes: Floats) -> PlayerLevels:
    """Return intervals between quantiles, each shown by the row of its median."""
    column = pool_codes[:, player.features[0]]
    edges = np.unique(np.nanquantile(column, np.arange(1, N_INTERVALS) / N_INTERVALS, method="higher"))
    edges = edges[edges > np.nanmin(column)]  # no interval without a value
    if not len(edges):  # the least value is nearly everywhere: it against the rest
        edges = np.unique(column[~np.isnan(column)])[1:2]
    known = np.flatnonzero(~np.isnan(column))
    number = np.searchsorted(edges, column[known], side="right")
    rows = []
    for i in range(len(edges) + 1):
        inside = known[number == i]
        rows.append(inside[np.argsort(column[inside], kind="stable")[len(inside) // 2]])
    rows += np.flatnonzero(np.isnan(column))[:1].tolist()
    index = np.array(rows, dtype=np.int32)
    return replace(player, levels=_canonical(pool_codes[index][:, player.features]), rows=index, edges=edges)


def _find_numbers(levels: Floats, values: Floats) -> NDArray[np.int64]:
    """Return the position of each value among the levels, -1 for none; NaN equals NaN."""
    order = np.argsort(levels)  # NaN last, where searchsorted looks for it
    position = order[np.minimum(np.searchsorted(levels, values, sorter=order), len(levels) - 1)]
    same = (levels[position] == values) | (np.isnan(levels[position]) & np.isnan(values))
    return np.where(same, position, -1)


def _find_rows(levels: Floats, rows: Floats) -> NDArray[np.int64]:
    """Return the position of each row among the levels, -1 for none."""
    # Rows as bytes compare whatever they hold, NaN included.
    position = {row.tobytes(): k for k, row in enumerate(levels)}
    unique, inverse = np.unique(_canonical(rows), axis=0, return_inverse=True)
    found = np.array([position.get(row.tobytes(), -1) for row in unique], dtype=np.int64)
    return found[np.ravel(inverse)]


def _canonical(codes: Floats) -> Floats:
    return np.ascontiguousarray(np.where(np.isnan(codes), np.nan, codes))


def bit_names(code: BitCode, encoding: Encoding, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name for each bit that says where it is 1; ``columns`` are the names of the raw ones.

    ``"age"`` of a column of 0 and 1, ``"temp=high"``, ``"gear in {2, 4}"``, ``"weight>=80"`` of two intervals; of a
    player with many levels only which bit of the level's number it is, ``"weight[bit 2]"``.
    """
    return tuple(name for player in code.players for name in _player_bits(player, encoding, columns))


def _player_bits(player: PlayerLevels, encoding: Encoding, columns: tuple[str, ...]) -> list[str]:
    feature = encoding.features[player.features[0]]
    is_cut = len(player.edges) > 0
    if len(player.features) > 1 or player.n_levels > (2 if is_cut else _MOST_NAMED):
        return [f"{player.name}[bit {bit}]" for bit in range(player.n_bits)]
    if is_cut:
        return [f"{player.name}>={text_of(float(player.edges[0]))}"]
    if feature.kind == NUMBER and np.array_equal(player.levels[:, 0], [0.0, 1.0]):
        return [player.name]
    levels = [feature.text(value, columns) for value in player.levels[:, 0]]
    marked = [
        [level for number, level in enumerate(levels) if number >> bit & 1] for bit in range(player.n_bits)
    ]
    return [
        f"{player.name}={some[0]}" if len(some) == 1 else f"{player.name} in {{{', '.join(some)}}}"
        for some in marked
    ]
