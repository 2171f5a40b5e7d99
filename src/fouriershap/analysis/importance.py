"""`Importance`: which players matter over many rows, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import check_choice, check_int
from fouriershap._base.errors import InputError
from fouriershap._base.progress import Progress
from fouriershap._rows.batch import is_one_frame
from fouriershap.analysis import losses, plotting
from fouriershap.analysis.explainer import (
    ExplainerLike,
    background_of,
    check_engine,
    check_row_weights,
    output_names,
    shap_values,
    with_other_background,
)
from fouriershap.analysis.means import rows_per_block
from fouriershap.analysis.moments import Floats, MeanError, Moments, check_level, interval, upper_tail
from fouriershap.analysis.results import PlayerResult, bracket, predicted, repeat_names

_DRAWS = 16  # background rows that a mean is estimated from, if not all are used
_MOST_ROUNDS = 64  # orders of players per row
_FEWEST_ROWS = 20  # for which orders of players are drawn
_SHOWN = 15


@dataclass(frozen=True, eq=False, repr=False)
class Importance(PlayerResult):
    """Which players matter over many rows; returned by `Explainer.importance`.

    Attributes
    ----------
    names : tuple of str
        Players.
    outputs : tuple of str
        Outputs of the model; with labels one, the loss.
    values, low, high : (n_names, n_outputs) float64
        Mean absolute SHAP value, or the loss that the player saves, and the ends of the interval.
    p_values : (n_names,) float64 or None
        With labels: for the hypothesis that the player's share of the predictions does not lower the loss.
    loss : str or None
    method : {"mean absolute value", "exact", "sampled"}
        "exact": over all coalitions and background rows; "sampled": what interactions add is estimated.
    saved : float
        With labels: the loss that all players save together; ``values`` add up to it if they are exact.
    error : (n_names,) float64
        Standard error from drawing orders of players; 0 if none were drawn.
    n_rows, n_sampled : int
        Number of rows, and of those for which orders of players were drawn.
    level : float or None

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = 2 * X[:, 0] + X[:, 1]
    >>> explainer = fs.Explainer(LinearRegression().fit(X, y), X)
    >>> explainer.importance(X, y).values[:, 0].round(1)
    array([3.9, 1. , 0. ])
    """

    names: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    p_values: Floats | None
    loss: str | None
    method: str
    saved: float
    error: Floats
    n_rows: int
    n_sampled: int
    level: float | None
    like: Any = None
    analysis = "importance"
    _BAR = "importance"
    _FACTS = ("loss", "method", "saved", "n_rows", "n_sampled", "level")
    _TOP_K = 15

    def __repr__(self) -> str:
        what = "mean |SHAP value|" if self.loss is None else f"{self.loss} saved, {self.method}"
        lines = [f"Importance({what}, {self.n_rows:,} rows)"]
        order = np.argsort(-np.abs(self.values).sum(axis=1), kind="stable")[:_SHOWN]
        for o, output in enumerate(self.outputs):
            lines += [f"{output}:"] * (len(self.outputs) > 1)
            for k in sorted(order, key=lambda k: -self.values[k, o]):
                test = "" if self.p_values is None else f"  p = {self.p_values[k]:.2g}"
                ends = bracket(self.low[k, o], self.high[k, o], sign="")
                lines.append(f"  {self.names[k]}: {self.values[k, o]:.4g}{ends}{test}")
        return "\n".join(lines[:60])

    def table(self) -> dict[str, Any]:
        """Return the columns of `frame`, for each output the most important player first."""
        order = np.argsort(-self.values, axis=0, kind="stable")
        columns: dict[str, Any] = {"feature": [self.names[k] for k in order.T.reshape(-1)]}
        if len(self.outputs) > 1:
            columns["output"] = repeat_names(self.outputs, order.T.shape, 0)

        def sort(values: Floats) -> Floats:
            return np.take_along_axis(values.reshape(len(order), -1), order, axis=0).T.reshape(-1)

        columns["importance"] = sort(self.values)
        if self.level is not None:
            columns |= {"low": sort(self.low), "high": sort(self.high)}
        if self.p_values is not None:
            columns |= {"p_value": sort(self.p_values), "error": sort(self.error)}
        return columns

    def _draw(self, o: int, top_k: int, ax: Any) -> Any:
        label = "mean |SHAP value|" if self.loss is None else f"{self.loss.replace('_', ' ')} saved"
        title = f"importance over {self.n_rows:,} rows" + (
            f": {name}" if (name := predicted(self.outputs, o)) != "prediction" else ""
        )
        ends = (self.low[:, o], self.high[:, o])
        return plotting.bars(self.names, self.values[:, o], top_k, title, ax, ends, is_size=True, label=label)


@check_arguments
def importance(
    explainer: ExplainerLike,
    X: Any,
    y: Any = None,
    *,
    loss: str | None = None,
    link: str | None = None,
    weights: ArrayLike | None = None,
    background: Any = None,
    background_weights: ArrayLike | None = None,
    budget: int = 1_000_000,
    level: float | None = 0.95,
    random_state: int = 0,
) -> Importance:
    """Measure which players matter over many rows: by mean absolute SHAP values, or by the loss that players save.

    Parameters
    ----------
    X : array or data frame, shape (n_rows, n_columns), or an iterator of such
        A stream is read batch by batch; with labels or weights its batches are ``(X, y)`` or ``(X, y, weights)``.
    y : array_like, optional
        Labels: importance is then the loss that a player saves (SAGE). The model itself is not called.
    loss : {"squared_error", "log_loss"}, optional
        Loss to use with ``y``; by default "log_loss" of log odds and of several probabilities, else
        "squared_error". Labels of "log_loss" are the classes or their numbers.
    link : {"identity", "logit"}, optional
        Whether outputs are probabilities or margins, if the explainer does not know it.
    weights : array_like, optional
        A weight per row.
    background, background_weights
        As in `drift`.
    budget : int
        Most predictions of the representation that are spent on losses. If all coalitions of all rows fit in it,
        importance is exact; otherwise what interactions add is estimated, with the standard error ``error``.
    level : float or None
        Coverage of the intervals, for the error of rows and of drawing. The background counts as given.
    random_state : int

    Returns
    -------
    Importance
        With ``frame()``, ``plot()`` and ``to_json()``.
    """
    level = check_level(level)
    explainer = with_other_background(explainer, background, background_weights).offline(X)
    engine = check_engine(explainer, "importance")
    check_int("budget", budget, 1)
    rng = np.random.default_rng(check_int("random_state", random_state, 0))
    sizes, accumulator = Moments(), None
    step = rows_per_block(engine.n_players, engine.n_outputs)
    for number, (batch, labels, row_weights) in enumerate(_batches(X, y, weights)):
        if labels is not None and number == 0:
            accumulator = LossAccumulator(explainer, _find_loss(explainer, loss, link, labels), budget, rng)
        if (labels is None) != (accumulator is None):
            has = "lacks" if accumulator else "has"
            raise InputError(f"batch {number} {has} labels, unlike the batches before it.")
        codes = explainer.inputs.encode(batch).codes
        share = check_row_weights(row_weights, len(codes))
        target = None
        if accumulator is not None:
            target = accumulator.loss.read_labels(labels, len(codes), engine.n_outputs)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            values = shap_values(explainer, codes[part])
            w = None if share is None else share[part]
            if accumulator is None or target is None:
                sizes.add(np.abs(values), w)
            else:
                accumulator.add(codes[part], values, target[part], w)
    if accumulator is None and loss is not None:
        raise InputError("loss was given without y.")
    if not (sizes.n_rows if accumulator is None else accumulator.additive.n_rows):
        raise InputError("X has 0 rows; give at least one.")
    like = X if is_one_frame(X) else None
    if accumulator is not None:
        return accumulator.result(level, like)
    low = high = np.full((engine.n_players, engine.n_outputs), np.nan)
    if level is not None:
        low, high = interval(sizes.mean, [sizes.error()], level)
    return Importance(
        names=explainer.player_names,
        outputs=output_names(explainer),
        values=sizes.mean,
        low=np.maximum(low, 0.0),
        high=high,
        p_values=None,
        loss=None,
        method="mean absolute value",
        saved=float("nan"),
        error=np.zeros(engine.n_players),
        n_rows=sizes.n_rows,
        n_sampled=0,
        level=level,
        like=like,
    )


def _batches(X: Any, y: Any, weights: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield rows, labels and weights: of a stream batch by batch, else once."""
    if is_one_frame(X) or not isinstance(X, Iterable) or (isinstance(X, list | tuple) and _is_matrix(X)):
        yield X, y, weights
        return
    if y is not None or weights is not None:
        raise InputError(
            "X is a stream of batches; give batches of (X, y) or (X, y, weights) instead of y and weights."
        )
    for number, batch in enumerate(X):
        if not isinstance(batch, tuple):
            yield batch, None, None
        elif 2 <= len(batch) <= 3:
            yield (*batch, None)[:3]
        else:
            raise InputError(f"batch {number} is a tuple of {len(batch)}; give X, (X, y) or (X, y, weights).")


def _is_matrix(X: Any) -> bool:
    """Return whether a list holds rows, which are lists of numbers or texts, rather than batches."""
    return bool(len(X)) and all(
        isinstance(row, list)
        and not any(hasattr(cell, "__len__") and not isinstance(cell, str) for cell in row)
        for row in X
    )


def _find_loss(explainer: ExplainerLike, loss: Any, link: Any, y: Any) -> losses.Loss:
    """Return the loss with the meaning of the outputs."""
    known = explainer.engine.output.probability_link
    if loss is None:
        shown = explainer.engine.output.display_link
        if shown is not None and not shown.gives_probability and link is None:
            raise InputError(
                f"y was given, but what is explained is the {explainer.engine.output.unit or 'raw output'}, which is "
                "not on the scale of y. Explain what the model predicts: fs.Explainer(model, background, "
                "output='response'). loss='squared_error' compares y as it is."
            )
        # One class per row of several probabilities; squared errors would need a number for each.
        of_classes = known == "identity" and explainer.engine.n_outputs > 1 and np.ndim(y) == 1
        is_log = (link or known) == "logit" or of_classes
        loss = losses.LogLoss.name if is_log else losses.SquaredError.name
    check_choice("loss", loss, losses.LOSSES)
    if link is not None:
        known = check_choice("link", link, losses.LINKS)
    if loss == losses.SquaredError.name:
        return losses.SquaredError()
    if known is None:
        raise InputError(
            "loss='log_loss' takes probabilities, and it is unknown whether this explainer's outputs are some. Give "
            "link='identity' if they are, link='logit' if they are margins (log odds)."
        )
    return losses.LogLoss(is_margin=known == "logit", classes=explainer.output_names)


class _Reservoir:
    """A uniform sample of rows from a stream of unknown length."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size, self._rng = size, rng
        self._key = np.empty(0)
        self.arrays: list[NDArray[Any]] = []

    def add(self, *arrays: NDArray[Any]) -> None:
        """Add rows, given as arrays with one entry per row."""
        key, rows = self._rng.random(len(arrays[0])), list(arrays)
        if self.arrays:
            key = np.concatenate([self._key, key])
            rows = [np.concatenate(pair) for pair in zip(self.arrays, rows, strict=True)]
        chosen = np.sort(np.argsort(key, kind="stable")[: self._size])
        self._key, self.arrays = key[chosen], [array[chosen] for array in rows]


class LossAccumulator:
    """Collects block by block what the losses of rows need."""

    def __init__(
        self, explainer: ExplainerLike, loss: losses.Loss, budget: int, rng: np.random.Generator
    ) -> None:
        self.explainer, self.loss, self.rng, self.budget = explainer, loss, rng, budget
        engine, background = explainer.engine, background_of(explainer)
        if background is None:
            raise InputError(
                "importance with y needs background rows, and this explainer has none (it was loaded from a file, or "
                "is path-dependent). Give background=."
            )
        rows, weights = background
        self.context = losses.LossContext(
            predict=lambda hybrids: engine.predict(hybrids, explainer.n_jobs),
            background=rows,
            weights=weights,
            player=explainer.inputs.code_players,
            n_players=engine.n_players,
            expected=np.array(engine.expected),
        )
        self.n_draws = min(_DRAWS, len(rows))
        self.sampled_cost = max(self.n_draws * (engine.n_players - 1), 1)  # predictions per row
        self.exact_cost = len(rows) << min(engine.n_players, 40)
        self.sample = _Reservoir(max(_FEWEST_ROWS, budget // min(self.sampled_cost, self.exact_cost)), rng)
        self.additive, self.drops, self.total = Moments(), Moments(), Moments()

    def add(self, codes: NDArray[Any], values: Floats, y: Floats, weights: Floats | None) -> None:
        """Add rows with their SHAP values and labels."""
        expected = self.context.expected
        saved = self.loss.additive_savings(values, expected, y, self.rng)
        self.additive.add(saved, weights)
        self.drops.add(losses.drop_costs(self.loss, values, expected, y), weights)
        without = self.loss(np.broadcast_to(expected, y.shape), y)
        gain = without - self.loss(expected + values.sum(axis=1), y)
        self.total.add(gain[:, None], weights)
        w = np.ones(len(y)) if weights is None else weights
        self.sample.add(codes, values, y, saved, w)

    def result(self, level: float | None, like: Any) -> Importance:
        """Return the importance of all players."""
        codes, values, y, saved, w = self.sample.arrays
        n_rows = self.additive.n_rows
        is_complete = len(codes) == n_rows
        is_exact = n_rows * self.exact_cost <= self.budget and is_complete
        with Progress(self.explainer.progress):
            if is_exact:
                rounds = [losses.exact_savings(self.loss, self.context, codes, y) - saved]
            else:
                n_rounds = min(max(1, self.budget // (len(codes) * self.sampled_cost)), _MOST_ROUNDS)
                rounds = [
                    losses.sampled_savings(self.loss, self.context, codes, values, y, self.n_draws, self.rng)
                    for _ in range(n_rounds)
                ]
        added = np.mean(rounds, axis=0)
        both, extra, base = Moments(), Moments(), Moments()
        for moments, rows in ((both, saved + added), (extra, added), (base, saved)):
            moments.add(rows, w)
        mean = self.additive.mean + extra.mean
        error = both.error() if is_complete else self._sum_error(both.error(), extra.error(), base.error())
        low = high = np.full_like(mean, np.nan)
        if level is not None:
            low, high = interval(mean, [error], level)
        drawn = np.zeros_like(mean)
        if not is_exact:
            drawn = np.sqrt(extra.error().variance)
            if len(rounds) > 3 and is_complete:  # the error comes from orders and draws alone
                means = np.array([np.average(each, axis=0, weights=w) for each in rounds])
                drawn = means.std(axis=0, ddof=1) / len(rounds) ** 0.5
        return Importance(
            names=self.explainer.player_names,
            outputs=(self.loss.name,),
            values=mean[:, None],
            low=low[:, None],
            high=high[:, None],
            p_values=upper_tail(self.drops.mean, self.drops.error()),
            loss=self.loss.name,
            method="exact" if is_exact else "sampled",
            saved=float(self.total.mean[0]),
            error=drawn,
            n_rows=n_rows,
            n_sampled=0 if is_exact else len(codes),
            level=level,
            like=like,
        )

    def _sum_error(self, both: MeanError, extra: MeanError, base: MeanError) -> MeanError:
        """Return the error of the sum of a mean over all rows and one over a sample of them."""
        rows = self.additive.error()
        # The sampled rows are among all: their covariance counts once per row, not once per sampled row.
        shared = (both.variance - extra.variance - base.variance) * (extra.freedom + 1) / (rows.freedom + 1)
        variance = np.maximum(rows.variance + extra.variance + shared, 0.0)
        third, freedom = rows.third + extra.third, np.minimum(rows.robust_freedom, extra.robust_freedom)
        return MeanError(variance, third, min(rows.freedom, extra.freedom), freedom)
