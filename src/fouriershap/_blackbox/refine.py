"""Asking the model again, after fitting: SHAP values of the model itself for few rows, R^2 on the cube.

Values are refined by paired permutations. A permutation and its reverse together give pair interactions their exact
value, so no variance is left on games of degree 2. For the rest, the representation is a control variate: its own
permutation estimate is known to be wrong by a known amount, and that share of it which the two estimates have in common
is taken back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.units import unit_of
from fouriershap._blackbox.bit_code import exact_code
from fouriershap._blackbox.fidelity import NOTICED, Interval, measure
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.hybrids import hybrid_codes
from fouriershap._blackbox.oracle import Oracle
from fouriershap._rows.levels import Encoding
from fouriershap._rows.pool import Pool

Floats = NDArray[np.float64]
Background = tuple[Pool, Floats | None]


def refine_cost(n_rows: int, pairs: int, n_players: int, n_background: int) -> int:
    """Queries: every proper coalition of both permutations meets every background row; the ends are shared."""
    return n_background + n_rows * (1 + 2 * pairs * (n_players - 1) * n_background)


def true_outputs(
    oracle: Oracle, encoding: Encoding, pool: Pool, codes: Floats, background: Background
) -> tuple[Floats, Floats]:
    """The model's outputs (n_rows, n_outputs) of rows, and its mean (n_outputs,) over the background."""
    answers = _ask_background(oracle, encoding, background[0])
    with oracle.passing():
        outputs = oracle.ask(pool, _pure(pool.n_rows, encoding), codes)
    return outputs, np.asarray(np.average(answers, axis=0, weights=background[1]))


def _ask_background(oracle: Oracle, encoding: Encoding, rows: Pool) -> Floats:
    return oracle.ask(rows, _pure(rows.n_rows, encoding), encoding.encode(rows, "background"))


def refined_values(
    oracle: Oracle,
    fitted: Fitted,
    pool: Pool,
    codes: Floats,
    background: Background,
    values: Floats,
    pairs: int,
    rng: np.random.Generator,
) -> Floats:
    """Values (n_rows, n_players, n_outputs) of the model, from those of the representation."""
    out = np.empty_like(values)
    _ask_background(oracle, fitted.encoding, background[0])  # the end of every path
    for i in range(len(codes)):
        # The row is row 0 of its own pool; the background follows.
        joined = pool.rows(np.array([i])).joined(background[0])
        with oracle.passing(), _keeping_values(out[:i]):
            out[i] = _refine_row(oracle, fitted, joined, background[1], values[i], pairs, rng)
    return out


@contextlib.contextmanager
def _keeping_values(done: Floats) -> Iterator[None]:
    """Whatever is raised within carries the values of the rows before, whose answers are forgotten by now."""
    try:
        yield
    except BaseException as error:
        if len(done):
            error.values = done[..., 0] if done.shape[2] == 1 else done  # type: ignore[attr-defined]
            error.add_note(
                f"The values of the first {len(done)} rows are kept in `.values` of this exception."
            )
        raise


def _refine_row(
    oracle: Oracle,
    fitted: Fitted,
    pool: Pool,
    weights: Floats | None,
    values: Floats,
    pairs: int,
    rng: np.random.Generator,
) -> Floats:
    encoding = fitted.encoding
    codes = encoding.encode(pool, "X")
    model, stand_in = [], []
    for _ in range(pairs):
        order = rng.permutation(encoding.n_players)
        estimates = []
        for path in (order, order[::-1]):
            index = _path_hybrids(path, pool.n_rows - 1)
            points = hybrid_codes(codes, encoding.player, index)
            answers = (oracle.ask(pool, index, points), fitted.surrogate.predict(points))
            estimates.append([_marginals(a, path, pool.n_rows - 1, weights) for a in answers])
        both = np.mean(estimates, axis=0)
        model.append(both[0])
        stand_in.append(both[1])
    direct, surrogate = np.array(model), np.array(stand_in)  # (pairs, n_players, n_outputs)
    share = _common_share(direct, surrogate)
    return np.asarray(direct.mean(axis=0) + share * (values - surrogate.mean(axis=0)))


def _path_hybrids(path: NDArray[np.int64], n_background: int) -> NDArray[np.int32]:
    """Hybrids along a permutation, ((n_players + 1) * n_background, n_players): players join one by one."""
    n_players = len(path)
    joined_at = np.argsort(path)
    inside = np.arange(n_players + 1)[:, None] > joined_at  # (steps, players)
    rows = np.arange(1, n_background + 1, dtype=np.int32)
    return np.where(inside[:, None, :], np.int32(0), rows[None, :, None]).reshape(-1, n_players)


def _marginals(answers: Floats, path: NDArray[np.int64], n_background: int, weights: Floats | None) -> Floats:
    """What each player adds when it joins, (n_players, n_outputs)."""
    steps = np.average(answers.reshape(len(path) + 1, n_background, -1), axis=1, weights=weights)
    out = np.empty((len(path), answers.shape[1]))
    out[path] = np.diff(steps, axis=0)
    return out


def _common_share(direct: Floats, surrogate: Floats) -> float:
    """How much of the surrogate's scatter over the pairs shows up in the model's: 0 on games of degree 2."""
    unit = unit_of(np.maximum(np.abs(direct), np.abs(surrogate)))
    a, b = ((values - values.mean(axis=0)) / unit for values in (direct, surrogate))
    variance = float((b**2).sum())
    return float(np.clip((a * b).sum() / variance, 0.0, 1.0)) if variance > 0 else 0.0


def _pure(n: int, encoding: Encoding) -> NDArray[np.int32]:
    return np.tile(np.arange(n, dtype=np.int32)[:, None], encoding.n_players)


def cube_fidelity(oracle: Oracle, fitted: Fitted, pool: Pool, n: int, rng: np.random.Generator) -> Interval:
    """R^2 at ``n`` rows that show each level of each player with equal chance."""
    encoding = fitted.encoding
    pool_codes = encoding.encode(pool, "data")
    players = exact_code(encoding, pool_codes).players
    index = np.column_stack([rng.choice(player.rows, n) for player in players]).astype(np.int32)
    codes = hybrid_codes(pool_codes, encoding.player, index)
    # Known answers are free, but a representation may repeat their noise.
    is_noisy = fitted.fidelity.noise > NOTICED
    answers = oracle.ask_again(pool, index) if is_noisy else oracle.ask(pool, index, codes)
    return measure(answers, fitted.surrogate.predict(codes), rng)
