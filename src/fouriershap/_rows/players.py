"""Players: which bits get one attribution together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_array
from fouriershap._base.errors import InputError
from fouriershap._base.short import short_text


def check_players(players: ArrayLike | None, n_bits: int) -> NDArray[np.int32]:
    """Player of each bit, (n_bits,) int32; None makes every bit a player of its own.

    Players are numbered from 0 without gaps; a player may own any bits, in any order.
    """
    if players is None:
        return np.arange(n_bits, dtype=np.int32)
    array = as_array(players, "players")
    if array.shape != (n_bits,):
        raise InputError(
            f"players has shape {array.shape}; give one player number for each of the {n_bits} bits."
        )
    if array.dtype.kind not in "iu":
        raise InputError(
            f"players has dtype {short_text(array.dtype)}; give integers, the player that owns each bit."
        )
    if n_bits and array.min() < 0:
        raise InputError(f"players holds {array.min()}; player numbers begin at 0.")
    # More numbers than bits leave gaps for certain, so only the first n_bits + 1 need a look.
    missing = np.setdiff1d(np.arange(min(int(array.max(initial=0)), n_bits) + 1 if n_bits else 0), array)
    if len(missing):
        raise InputError(
            f"players skips {missing[:5].tolist()}; number the players from 0 to {array.max()} without gaps "
            "(`numpy.unique(players, return_inverse=True)[1]` does)."
        )
    return array.astype(np.int32)
