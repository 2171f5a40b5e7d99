"""Games that are sampled: the model between rows and its background, and a representation that stands in for it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._blackbox.black_box import BlackBox
from fouriershap._blackbox.fit import FitResult
from fouriershap._blackbox.hybrids import hybrid_codes
from fouriershap._blackbox.sampler import Game, StandIn
from fouriershap._blackbox.surrogates import without_compression
from fouriershap._rows.levels import make_encoding
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Floats

_CELLS = 1 << 15  # players of background rows that values are worked out against at a time


def game_of(box: BlackBox, rows: Pool, outputs: Floats, others: Floats, is_quick: bool = True) -> Game:
    """Return the model between rows, of which it returns ``outputs``, and the background, of which ``others``.

    Unless the model ``is_quick``, equal rows are asked about once in a call.
    """
    joined = box.background.joined(rows)
    first = None if is_quick else _first_alike(box, joined)
    return Game(partial(_ask, box, joined, first), box.index, outputs, others, box.shares, box.n_players)


def _ask(
    box: BlackBox, joined: Pool, first: NDArray[np.int32] | None, rows: Any, others: Any, masks: Any
) -> Floats:
    mine, theirs = ((each.astype(np.int32))[:, None] for each in (box.background.n_rows + rows, others))
    index = np.where(masks, mine, theirs)
    with box.queries.transient():  # memory does not grow with the rows explained
        if first is None:
            return box.ask(joined, index)
        index = first[index, np.arange(box.n_players)]
        keys = np.ascontiguousarray(index).view(np.dtype((np.void, index.itemsize * index.shape[1])))
        _, at, where = np.unique(keys.ravel(), return_index=True, return_inverse=True)
        return box.ask(joined, index[at])[where]


def _first_alike(box: BlackBox, pool: Pool) -> NDArray[np.int32] | None:
    """Return the first row (n_rows, n_players) in which each player is as in a row; None if none are alike."""
    encoding = make_encoding(pool, box.column_player, box.encoding.player_names, box.categorical)
    codes = encoding.encode(pool, "X")
    codes = np.where(np.isnan(codes), np.inf, codes)  # missing values are alike
    out = np.empty((pool.n_rows, box.n_players), dtype=np.int32)
    for player in range(box.n_players):
        mine = codes[:, encoding.player == player]
        _, at, where = np.unique(mine, axis=0, return_index=True, return_inverse=True)
        out[:, player] = at[where.ravel()]
    return None if (out == np.arange(pool.n_rows)[:, None]).all() else out


def stand_in_of(box: BlackBox, fitted: FitResult, rows: Pool, n_outputs: int) -> StandIn | None:
    """Return a representation with its exact values; None if rows have levels that it does not know."""
    encoding, surrogate = fitted.encoding, fitted.surrogate
    try:
        others, codes = encoding.encode(box.background, "background"), encoding.encode(rows, "X")
        predicted = surrogate.predict(codes)
    except InputError:
        return None
    joined, first = np.concatenate([others, codes]), len(others)

    def ask(owner: Any, z: Any, masks: Any) -> Floats:
        index = np.where(masks, (first + owner)[:, None], z[:, None])
        return surrogate.predict(hybrid_codes(joined, encoding.player, index))

    game = Game(ask, box.index, predicted, surrogate.predict(others), box.shares, box.n_players)
    return StandIn(game, _exact_values(box, fitted, others, codes, n_outputs))


def _exact_values(box: BlackBox, fitted: FitResult, others: Floats, codes: Floats, n_outputs: int) -> Floats:
    """Return values of a representation against every background row."""
    surrogate, shares = without_compression(fitted.surrogate), box.shares
    step = max(_CELLS // box.n_players, 1)
    values = np.zeros((len(codes), box.n_players, n_outputs))
    for first in range(0, len(others), step):
        part = slice(first, first + step)
        total = float(shares[part].sum())
        if total > 0:
            engine = surrogate.compile(others[part], shares[part] / total, box.index)
            values += total * engine.shap_values(codes, box.n_jobs)
    return values
