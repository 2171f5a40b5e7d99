"""What a bit of a black box's spectrum stands for, in words."""

from __future__ import annotations

import numpy as np

from fouriershap._blackbox.bit_code import BitCode, PlayerLevels
from fouriershap._rows.levels import NUMBER, Encoding
from fouriershap._rows.text import text_of

_MOST_NAMED = 4  # levels of a player up to which a bit is named by those that it marks


def bit_names(code: BitCode, encoding: Encoding, columns: tuple[str, ...]) -> tuple[str, ...]:
    """A name for each bit that says where it is 1; ``columns`` are the names of the raw ones.

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
    return [_marked(player.name, _with_bit(levels, bit)) for bit in range(player.n_bits)]


def _with_bit(levels: list[str], bit: int) -> list[str]:
    return [level for number, level in enumerate(levels) if number >> bit & 1]


def _marked(name: str, levels: list[str]) -> str:
    return f"{name}={levels[0]}" if len(levels) == 1 else f"{name} in {{{', '.join(levels)}}}"
