"""Asking the model again, after fitting: SHAP values of the model itself for few rows, R^2 on the cube.

Each background row has permutations of its own (`paths.py`). The representation is a control variate: its values
against every background row are known exactly, so only what the model has beyond it is estimated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.units import unit_of
from fouriershap._blackbox.bit_code import exact_code
from fouriershap._blackbox.fidelity import NOTICED, Interval, measure
from fouriershap._blackbox.fit import FitResult
from fouriershap._blackbox.hybrid_model import HybridModel
from fouriershap._blackbox.hybrids import hybrid_codes
from fouriershap._blackbox.paths import differing, draw_paths
from fouriershap._blackbox.surrogates import without_compression
from fouriershap._rows.levels import Encoding
from fouriershap._rows.pool import Pool

Floats = NDArray[np.float64]
WeightedPool = tuple[Pool, Floats | None]
_HYBRIDS = 100_000  # that are asked at a time
_CELLS = 1 << 15  # players of background rows that values are worked out against at a time
_DOUBT = 4.0  # chance is taken for larger by this over the differences that show it: few may show too little,
_LEAST_SHOWN = 3  # and fewer nothing: all of it may be chance then


def refine_cost(n_rows: int, pairs: int, n_players: int, n_background: int) -> int:
    """Return queries: every proper coalition of both permutations meets every background row; the ends are shared."""
    return n_background + n_rows * (1 + 2 * pairs * (n_players - 1) * n_background)


def true_outputs(
    model: HybridModel, encoding: Encoding, pool: Pool, codes: Floats, background: WeightedPool
) -> tuple[Floats, Floats]:
    """Return the model's outputs (n_rows, n_outputs) of rows, and its mean (n_outputs,) over the background."""
    answers = _ask_background(model, encoding, background[0])
    with model.transient():
        outputs = model.ask(pool, _pure(pool.n_rows, encoding), codes)
    return outputs, np.asarray(np.average(answers, axis=0, weights=background[1]))


def _ask_background(model: HybridModel, encoding: Encoding, rows: Pool) -> Floats:
    return model.ask(rows, _pure(rows.n_rows, encoding), encoding.encode(rows, "background"))


def values_against_all(
    result: FitResult, codes: Floats, background: WeightedPool, n_jobs: int = -1
) -> Floats:
    """Return values (n_rows, n_players, n_outputs) of the representation against every background row."""
    rows, weights = background
    share = np.full(rows.n_rows, 1 / rows.n_rows) if weights is None else weights
    others = result.encoding.encode(rows, "background")
    surrogate = without_compression(result.surrogate)
    step = max(_CELLS // result.encoding.n_players, 1)
    parts = [slice(i, i + step) for i in range(0, len(others), step) if share[i : i + step].any()]
    totals = [float(share[part].sum()) for part in parts]
    engines = (surrogate.compile(others[p], share[p] / total) for p, total in zip(parts, totals, strict=True))
    found = (total * engine.shap_values(codes, n_jobs) for total, engine in zip(totals, engines, strict=True))
    return np.asarray(sum(found))


def refined_values(
    model: HybridModel,
    result: FitResult,
    pool: Pool,
    codes: Floats,
    background: WeightedPool,
    values: Floats,
    pairs: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the model's values (n_rows, n_players, n_outputs), given the representation's against every row."""
    out = np.empty_like(values)
    _ask_background(model, result.encoding, background[0])  # the end of every path
    for i in range(len(codes)):
        # The row is row 0 of its own pool; the background follows.
        joined = pool.rows(np.array([i])).joined(background[0])
        with model.transient(), _attach_values(out[:i]):
            out[i] = _refine_row(model, result, joined, background[1], values[i], pairs, rng)
    return out


@contextlib.contextmanager
def _attach_values(done: Floats) -> Iterator[None]:
    """Attach the values of the rows before to whatever is raised within; their answers are forgotten by now."""
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
    model: HybridModel,
    result: FitResult,
    pool: Pool,
    weights: Floats | None,
    values: Floats,
    pairs: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the representation's values plus what the model has beyond them, shrunk by its chance."""
    encoding = result.encoding
    codes = encoding.encode(pool, "X")
    n_others = pool.n_rows - 1
    share = np.full(n_others, 1 / n_others) if weights is None else weights
    differs = differing(codes[0], codes[1:], encoding.player, encoding.n_players)
    theirs, ours = np.empty((2, n_others, pairs, 2, *values.shape))
    step = max(_HYBRIDS // (2 * pairs * (encoding.n_players + 1)), 1)
    for first in range(0, n_others, step):
        some = np.arange(first, min(first + step, n_others))
        paths = draw_paths(differs[some], np.zeros_like(some), some + 1, pairs, rng)
        points = hybrid_codes(codes, encoding.player, paths.index)
        answers = model.ask(pool, paths.index, points), result.surrogate.predict(points)
        theirs[some], ours[some] = (paths.estimates(each) for each in answers)
    unit = unit_of(np.maximum(np.abs(theirs), np.abs(ours)))
    common = _common_share(theirs / unit, ours / unit)
    found = theirs / unit - common * (ours / unit)
    beyond = np.einsum("z,zjo->jo", share, found.mean(axis=(1, 2))) - (1 - common) * values / unit
    drawn = _drawn_in(beyond, _chance(found, share), np.asarray(differs.any(axis=0)))
    return np.asarray(values + unit * drawn)


def _common_share(theirs: Floats, ours: Floats) -> float:
    """Return how much of the representation's scatter over the pairs the model shares: 0 on games of degree 2.

    Estimates are (n_others, pairs, 2, n_players, n_outputs). A single pair shows no scatter: then all of it.
    """
    if theirs.shape[1] == 1:
        return 1.0
    a, b = (each.mean(axis=2) for each in (theirs, ours))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    variance = float((b**2).sum())
    return float(np.clip((a * b).sum() / variance, 0.0, 1.0)) if variance > 0 else 1.0


def _drawn_in(beyond: Floats, chance: Floats, differs: NDArray[np.bool_]) -> Floats:
    """Return what players have beyond the representation (n_players, n_outputs), without what may be chance.

    The mean over permutations is right but for chance, whose variance is summed over players. Where chance could be
    all of it, it is left out, in between it is drawn in (James and Stein 1961), so that few queries do no harm. What
    all players have together is known for certain. What of it was left out goes to the players that ``differs``
    (n_players,) names, to each as much: the nearest values with the right sum, and so never farther from the truth.
    """
    square = (beyond**2).sum(axis=0)
    kept = np.where(square > 0, 1 - np.minimum(chance, square) / np.where(square > 0, square, 1), 0.0)
    rest = (1 - kept) * beyond.sum(axis=0) / max(int(differs.sum()), 1)
    return np.asarray(kept * beyond + rest * differs[:, None])


def _chance(found: Floats, share: Floats) -> Floats:
    """Return the variance (n_outputs,) of the mean due to the permutations drawn, summed over players, or more.

    Parameters
    ----------
    found : (n_others, pairs, 2, n_players, n_outputs) float64
    share : (n_others,) float64
    """
    n_others, pairs = found.shape[:2]
    shown = n_others * max(pairs - 1, 1)  # differences that show it
    if shown < _LEAST_SHOWN:
        return np.full(found.shape[4], np.inf)
    if pairs > 1:
        chance = np.einsum("z,zjo->o", share**2, found.mean(axis=2).var(axis=1, ddof=1)) / pairs
    else:
        # One pair: its halves differ by more than their mean is wrong, and rows differ by more than their chance.
        halves = ((found[:, 0, 0] - found[:, 0, 1]) / 2) ** 2
        by_row = found.mean(axis=(1, 2))
        rows = (by_row - np.einsum("z,zjo->jo", share, by_row)) ** 2
        chance, among = (np.einsum("z,zjo->o", share**2, each) for each in (halves, rows))
        others = 1 - float((share**2).sum())  # a single row differs from no other
        if others > 0:
            chance = np.minimum(chance, among / others)
    return np.asarray(chance * (1 + _DOUBT / shown))


def _pure(n: int, encoding: Encoding) -> NDArray[np.int32]:
    return np.tile(np.arange(n, dtype=np.int32)[:, None], encoding.n_players)


def cube_fidelity(
    model: HybridModel, result: FitResult, pool: Pool, n: int, rng: np.random.Generator
) -> Interval:
    """Return R^2 at ``n`` rows that have each level of each player with equal chance."""
    encoding = result.encoding
    pool_codes = encoding.encode(pool, "data")
    players = exact_code(encoding, pool_codes).players
    index = np.column_stack([rng.choice(player.rows, n) for player in players]).astype(np.int32)
    codes = hybrid_codes(pool_codes, encoding.player, index)
    # Known answers are free, but a representation may repeat their noise.
    is_noisy = result.fidelity.noise > NOTICED
    answers = model.ask_again(pool, index) if is_noisy else model.ask(pool, index, codes)
    return measure(answers, result.surrogate.predict(codes), rng)
