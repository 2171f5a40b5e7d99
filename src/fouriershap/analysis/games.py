"""`explain_game`: SHAP values of one cooperative game, exact or with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.answer_file import open_store
from fouriershap._base.answers import AnswersOption, Row
from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import ProgressOption, check_int
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.queries import QueryModel
from fouriershap._base.threads import one_blas_thread
from fouriershap._blackbox import one_game
from fouriershap._blackbox.game_kernel import GameKernel
from fouriershap._shapley.indices import bernoulli
from fouriershap.analysis import plotting
from fouriershap.analysis.interactions import Interactions
from fouriershap.analysis.moments import Floats
from fouriershap.analysis.results import PlayerResult, repeat_names, signed

_SHOWN = 10
_NORMAL = 1.96
_ENDS = 40  # of a noisy game, one query in so many is of nobody, and as many of everybody
_MOST_SETS = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class GameExplanation(PlayerResult):
    """SHAP values of a game; returned by `explain_game`.

    Attributes
    ----------
    values : (n_players,) or (n_players, n_outputs) float64
        They add up to ``full - base``.
    error_std : (n_players,) or (n_players, n_outputs) float64
        Standard errors of the values; 0 where they are exact.
    base, full : float64, or (n_outputs,) float64
        The value of nobody and of everybody.
    interactions : Interactions or None
        k-SII of all sets up to the order, if this is 2 or more, as of one row.
    is_exact : bool
        Whether all coalitions were asked.
    n_queries : int
    players, outputs : tuple of str
    """

    values: Floats
    error_std: Floats
    base: Floats
    full: Floats
    interactions: Interactions | None
    is_exact: bool
    n_queries: int
    players: tuple[str, ...]
    outputs: tuple[str, ...]
    analysis = "game"
    _BAR = "value"
    _FACTS = ("base", "full", "n_queries", "is_exact", "outputs")

    def __repr__(self) -> str:
        sizes = np.abs(self.values.reshape(len(self.players), -1)).sum(axis=1)
        order = np.argsort(-sizes, kind="stable")[:_SHOWN].tolist()
        rows = [self._cells(k) for k in order]
        more = [] if len(order) == len(self.players) else [f"  ... {len(self.players) - len(order):,} more"]
        kind = "exact" if self.is_exact else "± standard error"
        about = f"{len(self.players)} players, {self.n_queries:,} queries, {kind}"
        return "\n".join([f"GameExplanation({about})", *rows, *more])

    def _cells(self, player: int) -> str:
        pairs = zip(
            np.atleast_1d(self.values[player])[:3], np.atleast_1d(self.error_std[player])[:3], strict=True
        )
        text = "  ".join(signed(v) + ("" if self.is_exact and not e else f" ± {e:.2g}") for v, e in pairs)
        return f"  {self.players[player]}: {text}" + (" ..." if len(self.outputs) > 3 else "")

    def table(self) -> dict[str, Any]:
        shape = (len(self.players), len(self.outputs))
        columns: dict[str, Any] = {"player": repeat_names(self.players, shape, 0)}
        if len(self.outputs) > 1:
            columns["output"] = repeat_names(self.outputs, shape, 1)
        return columns | {"value": self.values.reshape(-1), "error_std": self.error_std.reshape(-1)}

    def _draw(self, output: int, top_k: int, ax: Any) -> Any:
        shape = (len(self.players), len(self.outputs))
        values, errors = (each.reshape(shape)[:, output] for each in (self.values, self.error_std))
        ends = np.atleast_1d(self.base)[output], np.atleast_1d(self.full)[output]
        title = f"from {ends[0]:.4g} (nobody) to {ends[1]:.4g} (everybody)"
        interval = None if not errors.any() else (values - _NORMAL * errors, values + _NORMAL * errors)
        return plotting.bars(self.players, values, top_k, title, ax, interval)


class _AskedCoalitions:
    """Coalitions as rows of queries."""

    def __init__(self, coalitions: NDArray[np.bool_]) -> None:
        self._coalitions = coalitions

    def __len__(self) -> int:
        return len(self._coalitions)

    def take(self, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        return self._coalitions[at]

    def plain(self, taken: NDArray[np.bool_]) -> list[Row]:
        return [tuple(row) for row in taken.tolist()]


@check_arguments
def explain_game(
    value: Callable[[NDArray[np.bool_]], Any],
    n_players: int,
    *,
    max_queries: int = 1000,
    order: int = 1,
    player_names: Sequence[str] | None = None,
    noisy: bool = False,
    random_state: Any = None,
    batch_size: int = 1000,
    progress: ProgressOption = None,
    answers: AnswersOption = None,
) -> GameExplanation:
    """Compute the SHAP values (Shapley values) of one cooperative game from few queries.

    If ``max_queries`` allows for all coalitions, they are asked, and all numbers are exact. Otherwise coalitions are
    asked in pairs with their complements, and values come with standard errors.

    Parameters
    ----------
    value : callable
        Takes coalitions, (m, n_players) bool, and returns their values, (m,) or (m, n_outputs).
    n_players : int
    max_queries : int
        Most coalitions that are asked, at least 4; 6 if the game is noisy.
    order : int
        From 2 on, also compute interactions (k-SII) of up to so many players. Without all coalitions they are
        estimates without standard errors.
    player_names : sequence of str, optional
    noisy : bool
        Whether the same coalition may get different values. Some are then asked repeatedly, and standard errors
        include the noise; otherwise no coalition is asked twice.
    random_state : int, Generator or None
    batch_size : int
        Most coalitions in a call of ``value``.
    progress : bool or callable, optional
        As in `BlackBoxExplainer`.
    answers : path or dict, optional
        Where to keep answers; those that are there are not asked again. As in `BlackBoxExplainer`.

    Returns
    -------
    GameExplanation

    Raises
    ------
    QueryError
        If ``value`` fails or returns something else than finite numbers. This and any other exception, that of Ctrl-C
        included, has the answers so far as ``.answers``.

    Examples
    --------
    Three players of whom the first two are worth something together only:

    >>> import fouriershap as fs
    >>> game = lambda coalitions: coalitions[:, 0] & coalitions[:, 1] | coalitions[:, 2]
    >>> fs.explain_game(game, 3, player_names=["left", "right", "both"])
    GameExplanation(3 players, 8 queries, exact)
      both: +0.6667
      left: +0.1667
      right: +0.1667
    """
    n, order = check_int("n_players", n_players), check_int("order", order)
    check_int("max_queries", max_queries, 6 if noisy else 4)
    if player_names is None:
        player_names = [f"player {i}" for i in range(n)]
    if isinstance(player_names, str) or len(player_names) != n:
        raise InputError(
            f"player_names is {truncated_repr(player_names)}; give a name for each of {n} players."
        )
    players = tuple(map(str, player_names))
    n_sets = sum(comb(n, size) for size in range(2, min(order, n) + 1))
    if n_sets > _MOST_SETS:
        raise InputError(f"order is {order}, for which {n} players have {n_sets:,} sets; give a lower order.")
    if not callable(value):
        raise InputError(f"value is {truncated_repr(value)}; give a function of coalitions, (n, {n}) bool.")
    store = open_store(answers, players)
    queries = QueryModel(value, "value", check_int("batch_size", batch_size), max_queries, progress, store)
    rng = np.random.default_rng(queries.resolve_seed(random_state))
    game = _Game(queries, n, min(order, n), noisy)
    with queries.attach_answers():
        if 2**n * (2 if noisy else 1) <= max_queries:
            game.enumerate(max_queries // 2**n if noisy else 1)
        else:
            game.sample(max_queries, rng)
        return game.explanation(players, order)


class _Game:
    """A game that is being asked, and what was found: everything by output."""

    def __init__(self, queries: QueryModel, n: int, order: int, noisy: bool) -> None:
        self._queries, self._n, self._order, self._noisy = queries, n, order, noisy
        self._is_exact = False
        self._indices: dict[int, Floats] = {}  # by size: (n_sets, n_outputs) of the Shapley interaction index

    def _ask(self, coalitions: NDArray[np.bool_]) -> Floats:
        out = None
        for at, answers in self._queries.answers_to(_AskedCoalitions(coalitions)):
            out = np.empty((len(coalitions), answers.shape[1])) if out is None else out
            out[at] = answers
        assert out is not None
        return out

    def enumerate(self, n_times: int) -> None:
        """Ask all coalitions, so many times."""
        answers = np.stack([self._ask(one_game.all_coalitions(self._n)) for _ in range(n_times)])
        values = answers.mean(axis=0)
        self._base, self._full, self._is_exact = values[0], values[-1], True
        for size in range(1, self._order + 1):
            self._indices[size] = one_game.exact_interactions(values, size)
        self._values = self._indices[1]
        noise = answers.var(axis=0, ddof=1) / n_times if n_times > 1 else np.zeros_like(values)
        self._variances = one_game.exact_variances(noise)

    def sample(self, max_queries: int, rng: np.random.Generator) -> None:
        """Ask pairs of coalitions and complements, and estimate."""
        n_ends = max(2, max_queries // _ENDS) if self._noisy else 1
        ends = np.repeat([[False], [True]], n_ends, axis=0) & np.ones(self._n, dtype=bool)
        answers = self._ask(ends).reshape(2, n_ends, -1)
        self._base, self._full = answers.mean(axis=1)
        pairs = one_game.draw_pairs(self._n, max((max_queries - 2 * n_ends) // 2, 1), rng)
        both = np.stack([pairs.coalitions, ~pairs.coalitions], axis=1).reshape(-1, self._n)
        values = self._ask(both).reshape(len(pairs.coalitions), 2, -1)
        noise = answers.var(axis=1, ddof=1).sum(axis=0) / n_ends if self._noisy else None
        with one_blas_thread():
            self._estimate(pairs, values, noise, rng)

    def _estimate(
        self, pairs: one_game.Pairs, values: Floats, noise: Floats | None, rng: np.random.Generator
    ) -> None:
        """Estimate from the values (n_pairs, 2, n_outputs) of pairs, and the variances of both ends' difference."""
        found = []
        for o in range(values.shape[2]):
            known = None if noise is None else float(noise[o])
            total = float(self._full[o] - self._base[o])
            found.append(one_game.estimate(pairs, values[:, 0, o] - values[:, 1, o], total, known, rng))
            even = None
            if self._order > 1:
                even = self._fit_even(pairs, values[:, :, o].sum(axis=1), o, known or 0.0, rng)
            for size in range(2, self._order + 1):
                kernel = found[-1].odd if size % 2 else even
                index = np.zeros(comb(self._n, size)) if kernel is None else kernel.interactions(size)
                self._indices.setdefault(size, np.zeros((len(index), values.shape[2])))[:, o] = index
        self._values = np.stack([each.values for each in found], axis=1)
        self._variances = np.stack([each.variances for each in found], axis=1)
        self._indices[1] = self._values

    def _fit_even(
        self, pairs: one_game.Pairs, sums: Floats, output: int, known: float, rng: np.random.Generator
    ) -> GameKernel | None:
        """Fit the even part, of which interactions of 2, 4, ... players are made; None if it is constant."""
        y = np.append(self._base[output] + self._full[output], sums)
        y = y - y.mean()
        if not y.any():
            return None
        rows = np.concatenate([np.ones((1, self._n)), np.where(pairs.coalitions, 1.0, -1.0)])
        kept = rng.permutation(np.arange(1, len(y)))[: one_game.MOST_FITTED]
        kept = np.append(0, np.sort(kept))
        return GameKernel(rows[kept], y[kept], False, known, rng)

    def explanation(self, players: tuple[str, ...], order: int) -> GameExplanation:
        """Return what was found."""
        n_outputs = self._values.shape[1]
        single = n_outputs == 1
        outputs = ("",) if single else tuple(f"output {o}" for o in range(n_outputs))
        return GameExplanation(
            values=self._values[:, 0] if single else self._values,
            error_std=np.sqrt(self._variances[:, 0] if single else self._variances),
            base=self._base[0] if single else self._base,
            full=self._full[0] if single else self._full,
            interactions=None if order == 1 else self._interactions(players, outputs),
            is_exact=self._is_exact,
            n_queries=self._queries.count,
            players=players,
            outputs=outputs,
        )

    def _interactions(self, players: tuple[str, ...], outputs: tuple[str, ...]) -> Interactions:
        """Make lower orders add up with the highest: each gets its Bernoulli share of the sets that contain it."""
        values = {size: index.copy() for size, index in self._indices.items()}
        places = {
            size: {players: at for at, players in enumerate(combinations(range(self._n), size))}
            for size in values
        }
        for size, index in self._indices.items():
            for at, players_of in enumerate(combinations(range(self._n), size)):
                for smaller in range(1, size):
                    share = float(bernoulli(size - smaller))
                    for inside in combinations(players_of, smaller) if share else ():
                        values[smaller][places[smaller][inside]] += share * index[at]
        positions = [players_of for size in values for players_of in places[size]]
        stacked = np.concatenate([values[size] for size in values])
        strength = np.abs(stacked).mean(axis=1)
        ranked = np.argsort(-strength, kind="stable")
        ranked = ranked[strength[ranked] > 0]
        kept = stacked[ranked][None]
        return Interactions(
            index="k-SII",
            order=self._order,
            min_order=1,
            positions=tuple(positions[k] for k in ranked.tolist()),
            values=kept[..., 0] if len(outputs) == 1 else kept,
            strength=strength[ranked],
            rest=np.zeros((1, len(outputs))[: 1 + (len(outputs) > 1)]),
            base=np.array(self._base),
            n_met=len(ranked),
            players=players,
            outputs=outputs,
        )
