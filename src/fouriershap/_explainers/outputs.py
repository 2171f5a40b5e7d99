"""Outputs beyond the margin: probabilities and losses of tree models.

Two ways lead there. *Rescaled* values, shap's: the SHAP values of the margin against one background row, times
the slope of the line from that row's output to the explained row's; then the mean over the background. They add
up, and cost a walk per pair of rows, but they share the margin's mistakes: what only bends the output is
attributed in proportion to the margin. *Exact* values are the SHAP values of the output itself, as a function.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FidelityWarning, InputError, UnsupportedModelError
from fouriershap._base.parallel import for_each_block
from fouriershap._shapley.coalitions import CoalitionPairs, coalition_values, values_of_game
from fouriershap._shapley.pairs import PairEngine
from fouriershap._shapley.trees import walk
from fouriershap._shapley.trees.engine import TreeEngine

if TYPE_CHECKING:
    from fouriershap._blackbox.fidelity import Fidelity
    from fouriershap._explainers.blackbox import BlackBoxExplainer

Floats = NDArray[np.float64]
OUTPUTS = ("raw", "probability", "log_loss")
_LEAST_FIDELITY = 0.95
_BUDGET = 20_000  # queries of the probability, which the trees answer quickly
_ROWS = 64  # rows per job
_MOST_HYBRIDS = 1 << 18  # of one row: coalitions times background rows
_SAME = 1e-12  # margins closer than this, relative, count as equal


def sigmoid(margin: Floats) -> Floats:
    """1 / (1 + exp(-margin)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * margin)))


def softmax(margin: Floats) -> Floats:
    """Shares of exp(margin) along the last axis."""
    power = np.exp(margin - margin.max(axis=-1, keepdims=True))
    return np.asarray(power / power.sum(axis=-1, keepdims=True))


def _logistic_loss(margin: Floats, y: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, margin) - y * margin)


def _squared_loss(margin: Floats, y: Floats) -> Floats:
    return np.asarray((margin - y) ** 2)


_RESCALED: dict[tuple[str, str], Callable[[Floats, Floats], Floats]] = {
    ("probability", "binary"): lambda margin, y: sigmoid(margin),
    ("log_loss", "binary"): _logistic_loss,
    ("log_loss", "squared_error"): _squared_loss,
}
_PROBABILITY: dict[str, Callable[[Floats], Floats]] = {"binary": sigmoid, "multiclass": softmax}


def check_output(engine: TreeEngine, output: str, exact: bool) -> None:
    """Raise unless this output of this model can be explained, naming the way out."""
    if output not in OUTPUTS:
        raise InputError(f"output is {output!r}; choose one of {', '.join(map(repr, OUTPUTS))}.")
    objective = engine.ensemble.objective
    if exact and output != "probability":
        raise InputError(f"exact=True is for output='probability'; got output={output!r}.")
    if output == "raw":
        return
    if engine.background is None:
        raise InputError(
            f"output={output!r} compares with background rows; give a background, or use output='raw'."
        )
    if output == "probability" and objective == "probability":
        return
    if not exact and engine.index != "shapley":
        raise InputError(
            f"rescaled values keep sums, which index={engine.index!r} does not have; use output='raw' or exact=True."
        )
    known = objective in _PROBABILITY if exact else (output, objective) in _RESCALED
    if not known:
        _refuse(engine, output, objective)


def _refuse(engine: TreeEngine, output: str, objective: str) -> None:
    model = f"{engine.ensemble!r} (objective {objective or 'unknown'})"
    if output == "probability" and objective == "multiclass":
        raise UnsupportedModelError(
            f"{model}: a class probability depends on the margins of all classes, so no one slope rescales it. Use "
            "output='probability', exact=True: SHAP values of the probabilities themselves."
        )
    raise UnsupportedModelError(
        f"{model} has no output={output!r} that is known here. Explain output='raw', or give "
        "fouriershap.BlackBoxExplainer a function that returns what you want explained."
    )


@dataclass(frozen=True, eq=False)
class Rescaled:
    """Values of a function of the margin, rescaled per background row, as shap defines them."""

    engine: TreeEngine
    transform: Callable[[Floats, Floats], Floats]

    def shap_values(self, rows: NDArray[Any], y: Floats, n_jobs: int | None) -> Floats:
        """(n_rows, n_players, n_outputs) of cleaned rows with labels (n_rows,)."""
        engine = self.engine
        trees, background = engine.walk_trees, engine.background_codes
        n_background = background.shape[1]
        share = np.full(n_background, 1 / n_background) if engine.weights is None else engine.weights
        others = engine.predict(engine.background, n_jobs)  # type: ignore[arg-type]
        margins, codes = engine.predict(rows, n_jobs), engine.coded.book.encode(rows)
        out = np.zeros((len(rows), engine.n_players, engine.ensemble.n_outputs))

        def work(first: int, last: int) -> None:
            mine = np.ascontiguousarray(codes[:, first:last])
            margin, label = margins[first:last], y[first:last, None]
            outputs = self.transform(margin, label)
            for b in range(n_background):
                slope = _slope(margin - others[b], outputs - self.transform(others[b][None], label), margin)
                one = np.ascontiguousarray(background[:, b : b + 1])
                out[first:last] += share[b] * slope[:, None] * walk.interventional(trees, mine, one)

        for_each_block(work, len(rows), _ROWS, n_jobs)
        return out

    def expected(self, y: float) -> Floats:
        """Mean over the background, (n_outputs,), with this label for all of it."""
        engine = self.engine
        outputs = self.transform(engine.predict(engine.background), np.asarray(y))  # type: ignore[arg-type]
        return np.asarray(np.average(outputs, axis=0, weights=engine.weights))

    def predict(self, rows: NDArray[Any], y: Floats, n_jobs: int | None) -> Floats:
        """What the values add up to, with the mean: (n_rows, n_outputs)."""
        return self.transform(self.engine.predict(rows, n_jobs), y[:, None])


def _slope(change: Floats, output_change: Floats, scale: Floats) -> Floats:
    """Change of the output per change of the margin; 1, as in shap, where the margins are the same."""
    same = np.abs(change) <= _SAME * np.maximum(np.abs(scale), 1.0)
    return np.where(same, 1.0, output_change / np.where(same, 1.0, change))


@dataclass(frozen=True, eq=False)
class Exact:
    """SHAP values of the probabilities themselves.

    By the definition, over all coalitions, where players and background rows are few; otherwise by a
    representation of the probability, fitted as for a black box, with its fidelity.
    """

    engine: TreeEngine
    link: Callable[[Floats], Floats]

    def probability(self, rows: NDArray[Any]) -> Floats:
        """(n_rows, n_outputs) of cleaned rows."""
        return self.link(self.engine.predict(rows, 1))

    @property
    def by_definition(self) -> bool:
        n_background = len(self._background)
        return self.engine.n_players < 16 and n_background << self.engine.n_players <= _MOST_HYBRIDS

    @property
    def _background(self) -> NDArray[Any]:
        rows = self.engine.background
        assert rows is not None  # `check_output` has seen to it
        return rows

    @cached_property
    def surrogate(self) -> BlackBoxExplainer:
        """The probability as a black box; the same at every run."""
        from fouriershap._explainers.blackbox import BlackBoxExplainer

        e, order = self.engine, self._by_player
        back = np.argsort(order)
        fitted = BlackBoxExplainer(
            lambda rows: self.probability(rows[:, back]),
            self._background[:, order],
            budget=_BUDGET,
            categorical=np.flatnonzero(e.ensemble.is_categorical[order]).tolist(),
            groups=[str(player) for player in e.player[order]],
            weights=e.weights,
            index=e.index,
            random_state=0,
            min_fidelity=-np.inf,  # its ways out are not this class's
        )
        if min(fitted.fidelity.r2, fitted.fidelity.k_fold) < _LEAST_FIDELITY:
            warnings.warn(
                f"exact=True: the representation of the probability explains {fitted.fidelity.r2:.3f} of its variance "
                f"on {fitted.fidelity.n_points} held-out rows, less than {_LEAST_FIDELITY}. Ways out: fewer players by "
                "groups= and a smaller background (under 16 players the definition may be affordable), or "
                "BlackBoxExplainer(model.predict_proba, background, budget=...) with a larger budget.",
                FidelityWarning,
                stacklevel=2,
            )
        return fitted

    @property
    def _by_player(self) -> NDArray[np.int64]:
        """Features in the order of their players: a black box numbers players by their first columns."""
        return np.argsort(self.engine.player, kind="stable")

    @contextmanager
    def _fitted(self) -> Iterator[BlackBoxExplainer]:
        """The surrogate; what it does not know is said in the words of this class."""
        try:
            yield self.surrogate
        except InputError as error:
            raise InputError(
                f"exact=True explains these rows by a representation that was fitted to hybrids of the background, and "
                f"{error} Here that means: more background rows, or groups= that leave fewer than 16 players."
            ) from error

    @property
    def fidelity(self) -> Fidelity | None:
        return None if self.by_definition else self.surrogate.fidelity

    def shap_values(self, rows: NDArray[Any], y: Floats, n_jobs: int | None) -> Floats:
        del y
        if not self.by_definition:
            with self._fitted() as surrogate:
                return surrogate._explain(rows[:, self._by_player], n_jobs)
        out = np.zeros((len(rows), self.engine.n_players, self.engine.ensemble.n_outputs))

        def work(first: int, last: int) -> None:
            for r in range(first, last):
                out[r] = values_of_game(self._game(rows[r]), self.engine.n_players, self.engine.index)

        for_each_block(work, len(rows), 1, n_jobs)
        return out

    def _game(self, row: NDArray[Any]) -> Floats:
        e = self.engine
        return coalition_values(self.probability, row, self._background, e.player, e.weights)

    def pairs(
        self, rows: NDArray[Any]
    ) -> tuple[Callable[[NDArray[np.int64] | None], PairEngine], NDArray[Any]]:
        """As `Explainer._pairs`."""
        if not self.by_definition:
            with self._fitted() as surrogate:
                return surrogate._pairs(rows[:, self._by_player])
        e = self.engine
        engine = CoalitionPairs(self._game, e.n_players, e.ensemble.n_outputs, e.index)
        return (lambda wanted: engine), rows

    def expected(self, y: float) -> Floats:
        del y
        outputs = self.probability(self._background)
        return np.asarray(np.average(outputs, axis=0, weights=self.engine.weights))

    def predict(self, rows: NDArray[Any], y: Floats, n_jobs: int | None) -> Floats:
        """What the values add up to, with the mean: (n_rows, n_outputs)."""
        del y, n_jobs
        return self.probability(rows)


def make_output(engine: TreeEngine, output: str, exact: bool) -> Rescaled | Exact | None:
    """How this output is explained; None where it is the raw output."""
    check_output(engine, output, exact)
    objective = engine.ensemble.objective
    if output == "raw" or objective == "probability":
        return None
    if exact:
        made = Exact(engine, _PROBABILITY[objective])
        if not made.by_definition and len(made._background) < 2:
            raise InputError(
                f"exact=True has {engine.n_players} players, too many for all coalitions, and one background row, too "
                "few to fit a representation to. Give more background rows, or groups= that leave fewer than 16 "
                "players."
            )
        return made
    return Rescaled(engine, _RESCALED[output, objective])
