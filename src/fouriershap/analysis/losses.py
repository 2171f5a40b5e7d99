"""Losses of predictions, and how much of a loss players save: SAGE values of the representation.

The game of a row is v(S) = -loss(f_S(x), y), with f_S(x) the mean prediction over the background with the players of S
from the row; a player's importance is the mean of its Shapley value over rows. If f were additive, f_S would be the
expected value plus the SHAP values of S, which takes no prediction. Only what interactions add to that is estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_floats
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._base.parallel import enter
from fouriershap._rows.text import text_of
from fouriershap._shapley.coalitions import values_of_game
from fouriershap._shapley.indices import SHAPLEY
from fouriershap.analysis.moments import Floats

LINKS = ("identity", "logit")
_EDGE = 1e-7  # probabilities are clipped this far from 0 and 1
_ADDITIVE_ORDERS = 32  # permutations of the additive game, which take no prediction
_BATCH = 1 << 17  # hybrid rows at a time


class Loss:
    """A loss of outputs (..., n_outputs) and labels (..., n_outputs), summed over outputs."""

    name: str

    def __call__(self, outputs: Floats, y: Floats) -> Floats:
        raise NotImplementedError

    def read_labels(self, y: ArrayLike, n_rows: int, n_outputs: int) -> Floats:
        """Return the labels (n_rows, n_outputs)."""
        raise NotImplementedError

    def additive_savings(
        self, values: Floats, expected: Floats, y: Floats, rng: np.random.Generator
    ) -> Floats:
        """Return what players save (n_rows, n_players) in the game whose predictions are sums of SHAP values."""
        found = np.zeros(values.shape[:2])
        for _ in range(_ADDITIVE_ORDERS // 2):
            order = rng.permuted(np.tile(np.arange(values.shape[1]), (len(values), 1)), axis=1)
            for each in (order, order[:, ::-1]):
                found += _savings_in_order(self, _additive_path(values, expected, each), y, each)
        return found / _ADDITIVE_ORDERS

    def sampling_bias(self, found: Floats, means: Floats, y: Floats) -> Floats:
        """Return the bias of the loss of a mean over draws (n_rows, n_sizes, n_draws, n_outputs)."""
        raise NotImplementedError


class SquaredError(Loss):
    """The squared error."""

    name = "squared_error"

    def __call__(self, outputs: Floats, y: Floats) -> Floats:
        return np.asarray(((outputs - y) ** 2).sum(axis=-1))

    def read_labels(self, y: ArrayLike, n_rows: int, n_outputs: int) -> Floats:
        """Return numbers, one per output."""
        if n_outputs > 1 and np.ndim(y) == 1:
            raise InputError(
                f"y has one number per row, but loss='squared_error' compares y with all {n_outputs} outputs "
                "of the model. Give loss='log_loss' where y holds classes, or explain one output, as with output=1."
            )
        return _check_labels(y, n_rows, n_outputs)

    def additive_savings(
        self, values: Floats, expected: Floats, y: Floats, rng: np.random.Generator
    ) -> Floats:
        """Return phi (2 y - f(x) - expected), summed over outputs: the closed form."""
        outputs = expected + values.sum(axis=1)
        return np.asarray((values * (2 * y - outputs - expected)[:, None]).sum(axis=2))

    def sampling_bias(self, found: Floats, means: Floats, y: Floats) -> Floats:
        """Return the variance of the mean over draws, which makes the estimate unbiased."""
        return np.asarray((found.var(axis=2, ddof=1) / found.shape[2]).sum(axis=-1))


@dataclass(frozen=True)
class LogLoss(Loss):
    """The cross entropy of probabilities or, with ``is_margin``, of log odds and logits."""

    is_margin: bool
    classes: tuple[str, ...] | None = None  # names of the outputs; of two classes that of the positive one
    name = "log_loss"

    def __call__(self, outputs: Floats, y: Floats) -> Floats:
        if outputs.shape[-1] == 1:
            if self.is_margin:
                return np.asarray(np.logaddexp(0.0, outputs[..., 0]) - y[..., 0] * outputs[..., 0])
            p = np.clip(outputs[..., 0], _EDGE, 1 - _EDGE)
            return np.asarray(-(y[..., 0] * np.log(p) + (1 - y[..., 0]) * np.log1p(-p)))
        if self.is_margin:
            top = outputs.max(axis=-1, keepdims=True)
            logs = outputs - top - np.log(np.exp(outputs - top).sum(axis=-1, keepdims=True))
        else:
            logs = np.log(np.clip(outputs, _EDGE, None))
        return np.asarray(-(y * logs).sum(axis=-1))

    def read_labels(self, y: ArrayLike, n_rows: int, n_outputs: int) -> Floats:
        """Return 0 and 1 for one output, else one column of them per class."""
        labels, classes = _check_labels(self._numbers(y), n_rows, 1), max(n_outputs, 2)
        if not np.isin(labels, np.arange(classes)).all():
            raise InputError(
                f"y holds labels other than 0 to {classes - 1}; loss='log_loss' takes the numbers of the classes."
            )
        return labels if n_outputs == 1 else np.eye(n_outputs)[labels[:, 0].astype(np.int64)]

    def _numbers(self, y: ArrayLike) -> ArrayLike:
        """Return the numbers of the classes that the labels name; other labels as they are."""
        entries, names = np.asarray(y), self.classes
        if names is None or entries.dtype.kind not in "OUST" or entries.ndim != 1:
            return y
        texts = [text_of(entry) for entry in entries.tolist()]
        if len(names) == 1 and len({*texts, *names}) <= 2:
            return np.array([text == names[0] for text in texts], dtype=np.float64)
        unknown = [text for text in texts if text not in names]
        if unknown:
            raise InputError(
                f"y holds the label {truncated_repr(unknown[0])}; the model knows {truncated_list(names)}."
            )
        return np.array([names.index(text) for text in texts], dtype=np.float64)

    def sampling_bias(self, found: Floats, means: Floats, y: Floats) -> Floats:
        """Return the first order of the bias, from two halves of the draws."""
        half = found.shape[2] // 2
        halves = [found[:, :, :half].mean(axis=2), found[:, :, half : 2 * half].mean(axis=2)]
        losses = np.mean([self(each, y[:, None]) for each in halves], axis=0)
        return np.asarray(losses - self(means, y[:, None]))


LOSSES = (SquaredError.name, LogLoss.name)


def _check_labels(y: ArrayLike, n_rows: int, n_columns: int) -> Floats:
    labels = as_floats(y, "y")
    if labels.ndim == 1 and n_columns == 1:
        labels = labels[:, None]
    if labels.shape != (n_rows, n_columns):
        wanted = (n_rows,) if n_columns == 1 else (n_rows, n_columns)
        raise InputError(f"y has shape {np.shape(y)}; give {wanted}, a label per row of X.")
    if not np.isfinite(labels).all():
        raise InputError("y has missing or infinite entries; leave these rows out.")
    return labels


@dataclass(frozen=True, eq=False)
class LossContext:
    """What hybrid rows are made of: the representation, its background, and the player of each column of codes."""

    predict: Callable[[NDArray[Any]], Floats]
    background: NDArray[Any]
    weights: Floats | None
    player: NDArray[np.int32]
    n_players: int
    expected: Floats


def _additive_path(values: Floats, expected: Floats, order: NDArray[np.int64]) -> Floats:
    """Return predictions (n_rows, n_players + 1, n_outputs) as players join in an order, without interactions."""
    joined = np.take_along_axis(values, order[:, :, None], axis=1).cumsum(axis=1) + expected
    first = np.broadcast_to(expected, (len(values), 1, values.shape[2]))
    return np.concatenate([first, joined], axis=1)


def _savings_in_order(
    loss: Loss, path: Floats, y: Floats, order: NDArray[np.int64], correction: Floats | None = None
) -> Floats:
    """Return what each player saves (n_rows, n_players) when players join in an order (n_rows, n_players)."""
    losses = loss(path, y[:, None])
    if correction is not None:
        losses = losses - correction
    saved = np.empty(order.shape)
    np.put_along_axis(saved, order, losses[:, :-1] - losses[:, 1:], axis=1)
    return saved


def drop_costs(loss: Loss, values: Floats, expected: Floats, y: Floats) -> Floats:
    """Return the increase of the loss (n_rows, n_players) without a player's share of the prediction."""
    outputs = expected + values.sum(axis=1)
    return np.asarray(loss(outputs[:, None] - values, y[:, None]) - loss(outputs, y)[:, None])


def exact_savings(loss: Loss, context: LossContext, codes: NDArray[Any], y: Floats) -> Floats:
    """Return what players save (n_rows, n_players), by the definition over all coalitions and background rows."""
    background, weights = context.background, context.weights
    share = np.full(len(background), 1 / len(background)) if weights is None else weights
    n_sets = 1 << context.n_players
    games = np.empty((len(codes), n_sets))
    step = max(1, _BATCH // len(background))
    enter("all coalitions", n_sets)
    for S in range(n_sets):
        member = (S >> context.player & 1).astype(bool)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            hybrids = np.where(member, codes[part, None], background[None])
            means = context.predict(hybrids.reshape(-1, codes.shape[1])).reshape(len(hybrids), len(share), -1)
            games[part, S] = -loss(np.einsum("b,nbo->no", share, means), y[part])
    return np.asarray(values_of_game(games.T, context.n_players, SHAPLEY).T)


def sampled_savings(
    loss: Loss,
    context: LossContext,
    codes: NDArray[Any],
    values: Floats,
    y: Floats,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Estimate what interactions add to the savings of the additive game, (n_rows, n_players), by one order per row.

    The estimate is unbiased for the squared error, and unbiased to first order for the log loss.
    """
    n_rows, n_players = values.shape[:2]
    background, weights, expected = context.background, context.weights, context.expected
    order = rng.permuted(np.tile(np.arange(n_players), (n_rows, 1)), axis=1)
    rank = np.argsort(order, axis=1)  # when each player joins
    takes_all = n_draws >= len(background)
    n_drawn = len(background) if takes_all else n_draws
    path, correction = np.empty((n_rows, n_players + 1, values.shape[2])), np.zeros((n_rows, n_players + 1))
    path[:, 0], path[:, -1] = expected, expected + values.sum(axis=1)
    joins = rank[:, context.player]  # (n_rows, n_columns)
    step = max(1, _BATCH // (n_drawn * max(n_players - 1, 1)))
    enter("orders of players", -(-n_rows // step))
    for first in range(0, n_rows if n_players > 1 else 0, step):
        part = slice(first, min(first + step, n_rows))
        n_part = part.stop - part.start
        drawn = np.tile(np.arange(n_drawn), (n_part, 1))
        if not takes_all:
            drawn = rng.choice(len(background), size=(n_part, n_drawn), p=weights)
        share = weights if takes_all and weights is not None else np.full(n_drawn, 1 / n_drawn)
        others = background[drawn][:, None]  # (rows, 1, draws, columns)
        joined = joins[part, None] < np.arange(1, n_players)[:, None]  # (rows, sizes, columns)
        hybrids = np.where(joined[:, :, None], codes[part, None, None], others)
        found = context.predict(hybrids.reshape(-1, codes.shape[1])).reshape(*hybrids.shape[:3], -1)
        path[part, 1:-1] = np.einsum("b,nsbo->nso", share, found)
        if not takes_all:
            correction[part, 1:-1] = loss.sampling_bias(found, path[part, 1:-1], y[part])
    additive = _savings_in_order(loss, _additive_path(values, expected, order), y, order)
    return _savings_in_order(loss, path, y, order, correction) - additive
