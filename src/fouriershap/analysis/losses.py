"""Losses of predictions, and what players save of them: SAGE on the representation, which alone is asked.

The game of a row is v(S) = -loss(f_S(x), y), with f_S(x) the mean prediction over the background with the players of S
from the row; a player's importance is the mean over rows of its Shapley value. Were f additive, f_S would be the
expected value plus the SHAP values of S, which costs nothing; what interactions add to that is the part that has to be
estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_floats
from fouriershap._base.errors import InputError
from fouriershap._base.parallel import enter
from fouriershap._explainers.questions.moments import Floats
from fouriershap._shapley.coalitions import values_of_game

LOSSES = ("squared_error", "log_loss")
LINKS = ("identity", "logit")
_EDGE = 1e-7  # probabilities closer to 0 and 1 than this count as so close
_ADDITIVE_ORDERS = 32  # permutations of the additive game, which cost no prediction
_BATCH = 1 << 17  # hybrids at a time


@dataclass(frozen=True)
class Loss:
    """A loss of outputs (..., n_outputs) and labels (..., n_outputs), over all outputs together."""

    name: str
    link: str

    def __call__(self, outputs: Floats, y: Floats) -> Floats:
        if self.name == "squared_error":
            return np.asarray(((outputs - y) ** 2).sum(axis=-1))
        if outputs.shape[-1] == 1:
            if self.link == "logit":
                return np.asarray(np.logaddexp(0.0, outputs[..., 0]) - y[..., 0] * outputs[..., 0])
            p = np.clip(outputs[..., 0], _EDGE, 1 - _EDGE)
            return np.asarray(-(y[..., 0] * np.log(p) + (1 - y[..., 0]) * np.log1p(-p)))
        if self.link == "logit":
            top = outputs.max(axis=-1, keepdims=True)
            logs = outputs - top - np.log(np.exp(outputs - top).sum(axis=-1, keepdims=True))
        else:
            logs = np.log(np.clip(outputs, _EDGE, None))
        return np.asarray(-(y * logs).sum(axis=-1))

    def read_labels(self, y: ArrayLike, n_rows: int, n_outputs: int) -> Floats:
        """Labels (n_rows, n_outputs)."""
        labels = as_floats(y, "y")
        if labels.ndim == 1 and (n_outputs == 1 or self.name == "log_loss"):
            labels = labels[:, None]
        many = n_outputs if self.name == "squared_error" else 1
        if labels.shape != (n_rows, many):
            wanted = (n_rows,) if many == 1 else (n_rows, many)
            raise InputError(f"y has shape {np.shape(y)}; give {wanted}, a label per row of X.")
        if not np.isfinite(labels).all():
            raise InputError("y has missing or infinite entries; leave these rows out.")
        if self.name == "squared_error":
            return labels
        classes = max(n_outputs, 2)
        if not np.isin(labels, np.arange(classes)).all():
            raise InputError(
                f"y holds labels other than 0 to {classes - 1}; loss='log_loss' takes the numbers of the classes."
            )
        return labels if n_outputs == 1 else np.eye(n_outputs)[labels[:, 0].astype(np.int64)]


@dataclass(frozen=True, eq=False)
class Scene:
    """What hybrids are made of: the representation, its background, and the player of each column of codes."""

    predict: Callable[[NDArray[Any]], Floats]
    background: NDArray[Any]
    weights: Floats | None
    player: NDArray[np.int32]
    n_players: int
    expected: Floats


def additive_savings(
    loss: Loss, values: Floats, expected: Floats, y: Floats, rng: np.random.Generator
) -> Floats:
    """What players save (n_rows, n_players) in the game whose predictions are sums of SHAP values.

    In closed form for the squared error: phi (2 y - f(x) - expected), summed over outputs.
    """
    if loss.name == "squared_error":
        outputs = expected + values.sum(axis=1)
        return np.asarray((values * (2 * y - outputs - expected)[:, None]).sum(axis=2))
    found = np.zeros(values.shape[:2])
    for _ in range(_ADDITIVE_ORDERS // 2):
        order = rng.permuted(np.tile(np.arange(values.shape[1]), (len(values), 1)), axis=1)
        for each in (order, order[:, ::-1]):
            found += along(loss, _additive_path(values, expected, each), y, each)
    return found / _ADDITIVE_ORDERS


def _additive_path(values: Floats, expected: Floats, order: NDArray[np.int64]) -> Floats:
    """Predictions (n_rows, n_players + 1, n_outputs) as the players join in an order, were there no interactions."""
    joined = np.take_along_axis(values, order[:, :, None], axis=1).cumsum(axis=1) + expected
    first = np.broadcast_to(expected, (len(values), 1, values.shape[2]))
    return np.concatenate([first, joined], axis=1)


def along(
    loss: Loss, path: Floats, y: Floats, order: NDArray[np.int64], correction: Floats | None = None
) -> Floats:
    """What each player saves (n_rows, n_players) when players join in an order (n_rows, n_players)."""
    losses = loss(path, y[:, None])
    if correction is not None:
        losses = losses - correction
    saved = np.empty(order.shape)
    np.put_along_axis(saved, order, losses[:, :-1] - losses[:, 1:], axis=1)
    return saved


def drop_costs(loss: Loss, values: Floats, expected: Floats, y: Floats) -> Floats:
    """How much larger the loss is (n_rows, n_players) without a player's share of the prediction."""
    outputs = expected + values.sum(axis=1)
    return np.asarray(loss(outputs[:, None] - values, y[:, None]) - loss(outputs, y)[:, None])


def exact_savings(loss: Loss, scene: Scene, codes: NDArray[Any], y: Floats) -> Floats:
    """What players save (n_rows, n_players), by the definition over all coalitions and background rows."""
    share = (
        np.full(len(scene.background), 1 / len(scene.background)) if scene.weights is None else scene.weights
    )
    n_sets = 1 << scene.n_players
    games = np.empty((len(codes), n_sets))
    step = max(1, _BATCH // len(scene.background))
    enter("all coalitions", n_sets)
    for S in range(n_sets):
        member = (S >> scene.player & 1).astype(bool)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            hybrids = np.where(member, codes[part, None], scene.background[None])
            means = scene.predict(hybrids.reshape(-1, codes.shape[1])).reshape(len(hybrids), len(share), -1)
            games[part, S] = -loss(np.einsum("b,nbo->no", share, means), y[part])
    return np.asarray(values_of_game(games.T, scene.n_players, "shapley").T)


def sampled_savings(
    loss: Loss,
    scene: Scene,
    codes: NDArray[Any],
    values: Floats,
    y: Floats,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """What interactions add to the savings of the additive game, (n_rows, n_players), by one order per row.

    Without bias for the squared error: the variance of the mean over drawn background rows is taken off the square. For
    the log loss two halves of the draws take off the first order of the bias.
    """
    n_rows, n_players = values.shape[:2]
    order = rng.permuted(np.tile(np.arange(n_players), (n_rows, 1)), axis=1)
    rank = np.argsort(order, axis=1)  # when each player joins
    whole = n_draws >= len(scene.background)
    n_drawn = len(scene.background) if whole else n_draws
    path, correction = np.empty((n_rows, n_players + 1, values.shape[2])), np.zeros((n_rows, n_players + 1))
    path[:, 0], path[:, -1] = scene.expected, scene.expected + values.sum(axis=1)
    joins = rank[:, scene.player]  # (n_rows, n_columns)
    step = max(1, _BATCH // (n_drawn * max(n_players - 1, 1)))
    enter("orders of players", -(-n_rows // step))
    for first in range(0, n_rows if n_players > 1 else 0, step):
        part = slice(first, min(first + step, n_rows))
        n_part = part.stop - part.start
        drawn = np.tile(np.arange(n_drawn), (n_part, 1))
        if not whole:
            drawn = rng.choice(len(scene.background), size=(n_part, n_drawn), p=scene.weights)
        share = scene.weights if whole and scene.weights is not None else np.full(n_drawn, 1 / n_drawn)
        others = scene.background[drawn][:, None]  # (rows, 1, draws, columns)
        joined = joins[part, None] < np.arange(1, n_players)[:, None]  # (rows, sizes, columns)
        hybrids = np.where(joined[:, :, None], codes[part, None, None], others)
        found = scene.predict(hybrids.reshape(-1, codes.shape[1])).reshape(*hybrids.shape[:3], -1)
        path[part, 1:-1] = np.einsum("b,nsbo->nso", share, found)
        if not whole:
            correction[part, 1:-1] = _bias(loss, found, path[part, 1:-1], y[part])
    additive = along(loss, _additive_path(values, scene.expected, order), y, order)
    return along(loss, path, y, order, correction) - additive


def _bias(loss: Loss, found: Floats, means: Floats, y: Floats) -> Floats:
    """What the loss of a mean over draws (n_rows, n_sizes, n_draws, n_outputs) has too much."""
    if loss.name == "squared_error":
        return np.asarray((found.var(axis=2, ddof=1) / found.shape[2]).sum(axis=-1))
    half = found.shape[2] // 2
    halves = [found[:, :, :half].mean(axis=2), found[:, :, half : 2 * half].mean(axis=2)]
    return np.asarray(np.mean([loss(each, y[:, None]) for each in halves], axis=0) - loss(means, y[:, None]))
