"""`Importance`: what matters over many rows, and how surely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import check_choice, check_whole
from fouriershap._base.errors import InputError
from fouriershap._base.progress import Progress
from fouriershap._explainers.questions import losses, pictures
from fouriershap._explainers.questions.answer import PicturedAnswer, bracket, repeated
from fouriershap._explainers.questions.means import (
    check_engine,
    check_row_weights,
    names_of_outputs,
    terms_of,
)
from fouriershap._explainers.questions.moments import (
    Floats,
    MeanError,
    Moments,
    check_level,
    interval,
    upper_tail,
)
from fouriershap._rows.batch import is_one_frame

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_DRAWS = 16  # background rows that a mean is estimated from, where not all are taken
_MOST_ROUNDS = 64  # orders of players per row
_FEWEST_ROWS = 20  # that orders of players are tried on
_SHOWN = 15


@dataclass(frozen=True, eq=False, repr=False)
class Importance(PicturedAnswer):
    """What matters over many rows; what `Explainer.importance` returns.

    Attributes
    ----------
    names : tuple of str
        Players.
    outputs : tuple of str
        Of the model; one, the loss, where there are labels.
    values, low, high : (n_names, n_outputs) float64
        Mean size of the SHAP values, or the loss that the player saves, and the ends of the interval.
    p_values : (n_names,) float64 or None
        With labels: of the test whether the player's share of the predictions lowers the loss at all.
    loss : str or None
    method : {"mean size", "exact", "sampled"}
        "exact": by all coalitions and background rows; "sampled": what interactions add is estimated.
    saved : float
        With labels: the loss that all players save together, which ``values`` add up to where they are exact.
    error : (n_names,) float64
        Standard error of what was estimated by drawing orders of players; 0 where nothing was.
    n_rows, n_sampled : int
        Rows, and those on which orders of players were tried.
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
    question = "importance"
    _MOST_SHOWN = 15

    def __repr__(self) -> str:
        what = "mean |SHAP value|" if self.loss is None else f"{self.loss} saved, {self.method}"
        lines = [f"Importance({what}, {self.n_rows:,} rows)"]
        order = np.argsort(-np.abs(self.values).sum(axis=1), kind="stable")[:_SHOWN]
        for o, output in enumerate(self.outputs):
            lines += [f"{output}:"] * (len(self.outputs) > 1)
            for k in order:
                test = "" if self.p_values is None else f"  p = {self.p_values[k]:.2g}"
                ends = bracket(self.low[k, o], self.high[k, o])
                lines.append(f"  {self.names[k]}: {self.values[k, o]:.4g}{ends}{test}")
        return "\n".join(lines[:60])

    def table(self) -> dict[str, Any]:
        shape = self.values.shape
        columns: dict[str, Any] = {"feature": repeated(self.names, shape, 0)}
        if len(self.outputs) > 1:
            columns["output"] = repeated(self.outputs, shape, 1)
        columns["importance"] = self.values.reshape(-1)
        if self.level is not None:
            columns |= {"low": self.low.reshape(-1), "high": self.high.reshape(-1)}
        if self.p_values is not None:
            columns |= {"p_value": self.p_values, "error": self.error}
        return columns

    def facts(self) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "method": self.method,
            "saved": self.saved,
            "n_rows": self.n_rows,
            "n_sampled": self.n_sampled,
            "level": self.level,
        }

    def _draw(self, o: int, top: int, ax: Any) -> Any:
        title = "mean |SHAP value|" if self.loss is None else f"{self.loss.replace('_', ' ')} saved"
        ends = (self.low[:, o], self.high[:, o])
        return pictures.bars(self.names, self.values[:, o], *ends, top, title, ax, signed=False)


def _batches(X: Any, y: Any, weights: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Rows, labels and weights, block by block where they come so."""
    if is_one_frame(X) or not isinstance(X, Iterable) or (isinstance(X, list | tuple) and _is_row(X)):
        yield X, y, weights
        return
    if y is not None or weights is not None:
        raise InputError(
            "X is a stream of batches; give batches of (X, y) or (X, y, weights), and no y or weights."
        )
    for number, batch in enumerate(X):
        if not isinstance(batch, tuple):
            yield batch, None, None
        elif 2 <= len(batch) <= 3:
            yield (*batch, None)[:3]
        else:
            raise InputError(f"batch {number} is a tuple of {len(batch)}; give X, (X, y) or (X, y, weights).")


def _is_row(X: Any) -> bool:
    """Whether a list holds rows, lists of numbers or texts, and no batches."""
    return bool(len(X)) and all(
        isinstance(row, list)
        and not any(hasattr(cell, "__len__") and not isinstance(cell, str) for cell in row)
        for row in X
    )


class _Sample:
    """A fair sample of rows from a stream of unknown length."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size, self._rng, self._seen = size, rng, 0
        self._key = np.empty(0)
        self._kept: list[NDArray[Any]] | None = None

    def add(self, *arrays: NDArray[Any]) -> None:
        """Arrays with a row each per row."""
        key = self._rng.random(len(arrays[0]))
        mine: list[NDArray[Any]] = list(arrays)
        if self._kept is not None:
            key = np.concatenate([self._key, key])
            mine = [np.concatenate(pair) for pair in zip(self._kept, mine, strict=True)]
        chosen = np.sort(np.argsort(key, kind="stable")[: self.size])
        self._key, self._kept = key[chosen], [array[chosen] for array in mine]

    @property
    def rows(self) -> list[NDArray[Any]]:
        assert self._kept is not None
        return self._kept


def make_importance(
    explainer: Explainer,
    X: Any,
    y: Any,
    loss: Any,
    link: Any,
    weights: ArrayLike | None,
    budget: int,
    level: Any,
    random_state: Any,
) -> Importance:
    """What `Explainer.importance` documents."""
    level = check_level(level)
    engine = check_engine(explainer, "importance")
    check_whole("budget", budget, 1)
    rng = np.random.default_rng(check_whole("random_state", random_state, 0))
    found, judge = Moments(), None
    n_players, n_outputs = engine.n_players, engine.n_outputs
    for number, (batch, labels, share) in enumerate(_batches(X, y, weights)):
        if labels is not None and number == 0:
            judge = _Judge(explainer, loss, link, budget, rng)
        if (labels is None) != (judge is None):
            raise InputError(f"batch {number} {'lacks' if judge else 'has'} labels, unlike those before it.")
        rows = explainer._read(batch)
        mine = check_row_weights(share, len(rows))
        target = None if judge is None else judge.loss.read_labels(labels, len(rows), n_outputs)
        step = terms_of(explainer, engine, False).rows_per_block(n_outputs)
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            values = explainer._explain(replace(rows, codes=rows.codes[part]), explainer.n_jobs)
            w = None if mine is None else mine[part]
            if judge is None or target is None:
                found.add(np.abs(values), w)
            else:
                judge.add(rows.codes[part], values, target[part], w)
    if judge is None and loss is not None:
        raise InputError("loss was given, but no y that predictions could miss.")
    if not (found.n_rows if judge is None else judge.additive.n_rows):
        raise InputError("X has 0 rows; there is no mean of none.")
    like = X if is_one_frame(X) else None
    if judge is not None:
        return judge.answer(level, like)
    low = high = np.full((n_players, n_outputs), np.nan)
    if level is not None:
        low, high = interval(found.mean, [found.error()], level)
    return Importance(
        names=explainer.player_names,
        outputs=names_of_outputs(explainer),
        values=found.mean,
        low=np.maximum(low, 0.0),
        high=high,
        p_values=None,
        loss=None,
        method="mean size",
        saved=float("nan"),
        error=np.zeros(n_players),
        n_rows=found.n_rows,
        n_sampled=0,
        level=level,
        like=like,
    )


class _Judge:
    """Collects what the losses of rows need, block by block."""

    def __init__(
        self, explainer: Explainer, loss: Any, link: Any, budget: int, rng: np.random.Generator
    ) -> None:
        if loss is None:  # labels are no margins
            loss = "log_loss" if (link or explainer._output_link()) == "logit" else "squared_error"
        name = check_choice("loss", loss, losses.LOSSES)
        self.explainer, self.rng, self.budget = explainer, rng, budget
        self.loss = losses.Loss(name, _find_link(explainer, name, link))
        engine, kept = explainer._engine, explainer._background_codes()
        if kept is None:
            raise InputError(
                "importance with y compares with rows of the background, and this explainer has none (it was loaded "
                "from a file, or explains by path). Give background=."
            )
        self.scene = losses.Scene(
            predict=lambda rows: engine.predict(rows, explainer.n_jobs),
            background=kept[0],
            weights=kept[1],
            player=explainer._code_players(),
            n_players=engine.n_players,
            expected=np.array(engine.expected),
        )
        self.n_draws = min(_DRAWS, len(kept[0]))
        self.per_row = max(self.n_draws * (engine.n_players - 1), 1)
        self.exact_row = len(kept[0]) << min(engine.n_players, 40)
        self.sample = _Sample(max(_FEWEST_ROWS, budget // min(self.per_row, self.exact_row)), rng)
        self.additive, self.drops, self.whole = Moments(), Moments(), Moments()

    def add(self, codes: NDArray[Any], values: Floats, y: Floats, weights: Floats | None) -> None:
        expected = self.scene.expected
        saved = losses.additive_savings(self.loss, values, expected, y, self.rng)
        self.additive.add(saved, weights)
        self.drops.add(losses.drop_costs(self.loss, values, expected, y), weights)
        alone = np.broadcast_to(expected, y.shape)
        gain = self.loss(alone, y) - self.loss(expected + values.sum(axis=1), y)
        self.whole.add(gain[:, None], weights)
        w = np.ones(len(y)) if weights is None else weights
        self.sample.add(codes, values, y, saved, w)

    def answer(self, level: float | None, like: Any) -> Importance:
        codes, values, y, saved, w = self.sample.rows
        n_rows = self.additive.n_rows
        exactly = n_rows * self.exact_row <= self.budget and len(codes) == n_rows
        with Progress(self.explainer.progress):
            if exactly:
                rounds = [losses.exact_savings(self.loss, self.scene, codes, y) - saved]
            else:
                n_rounds = min(max(1, self.budget // (len(codes) * self.per_row)), _MOST_ROUNDS)
                rounds = [
                    losses.sampled_savings(self.loss, self.scene, codes, values, y, self.n_draws, self.rng)
                    for _ in range(n_rounds)
                ]
        more = np.mean(rounds, axis=0)
        both, extra, base = Moments(), Moments(), Moments()
        for moments, rows in ((both, saved + more), (extra, more), (base, saved)):
            moments.add(rows, w)
        mean = self.additive.mean + extra.mean
        error = self._error(both.error(), extra.error(), base.error(), len(codes) == n_rows)
        low = high = np.full_like(mean, np.nan)
        if level is not None:
            low, high = interval(mean, [error], level)
        drawn = np.zeros_like(mean)
        if not exactly:
            drawn = np.sqrt(extra.error().variance)
            if (
                len(rounds) > 3 and len(codes) == n_rows
            ):  # rows are all there: orders and draws alone are left
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
            method="exact" if exactly else "sampled",
            saved=float(self.whole.mean[0]),
            error=drawn,
            n_rows=n_rows,
            n_sampled=0 if exactly else len(codes),
            level=level,
            like=like,
        )

    def _error(self, both: MeanError, extra: MeanError, base: MeanError, complete: bool) -> MeanError:
        """Of the sum of a mean over all rows and one over some of them."""
        if complete:
            return both
        rows = self.additive.error()
        # The sampled rows are among all: their covariance counts once per row, not once per sampled row.
        shared = (both.variance - extra.variance - base.variance) * (extra.freedom + 1) / (rows.freedom + 1)
        variance = np.maximum(rows.variance + extra.variance + shared, 0.0)
        third, sureness = rows.third + extra.third, np.minimum(rows.sureness, extra.sureness)
        return MeanError(variance, third, min(rows.freedom, extra.freedom), sureness)


def _find_link(explainer: Explainer, loss: str, link: Any) -> str:
    """What turns outputs into what the loss takes."""
    if link is not None:
        return check_choice("link", link, losses.LINKS)
    if loss == "squared_error":
        return "identity"
    known = explainer._output_link()
    if known is None:
        raise InputError(
            "loss='log_loss' takes probabilities, and it is not known whether this explainer's outputs are some. Give "
            "link='identity' where they are, link='logit' where they are margins (log odds)."
        )
    return known
