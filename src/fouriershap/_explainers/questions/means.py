"""Mean SHAP values of groups of rows, and what each row on both sides brings to them.

The SHAP values of one row x against one background row b are antisymmetric: phi(x; b) = -phi(b; x), since the game
from the other side is v(N - S). So the mean over x of phi(x; b), as a function of b, is what a pass over the background
gives against the rows as a background. Two passes have all that the error of a mean over both samples needs: its
first-order (Hoeffding) terms. Interactions of pairs are symmetric, by the same argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_floats
from fouriershap._base.errors import InputError
from fouriershap._base.parallel import enter
from fouriershap._base.progress import Progress
from fouriershap._base.short import short
from fouriershap._explainers.questions.moments import Floats
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.interactions import met_pairs, pair_interactions

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_BLOCK_NUMBERS = 1 << 23  # most values of a block of rows


@dataclass(frozen=True, eq=False)
class Terms:
    """What is summed: players, or main effects of players and interactions of pairs."""

    players: tuple[str, ...]
    pairs: NDArray[np.int32] | None  # (n_pairs, 2), None for players alone

    @property
    def names(self) -> tuple[str, ...]:
        if self.pairs is None:
            return self.players
        return (*self.players, *(f"{self.players[i]} x {self.players[j]}" for i, j in self.pairs))

    def __len__(self) -> int:
        return len(self.players) + (0 if self.pairs is None else len(self.pairs))

    def rows_per_block(self, n_outputs: int) -> int:
        return max(256, _BLOCK_NUMBERS // max(len(self) * n_outputs, 1))


def check_engine(explainer: Explainer, method: str) -> Engine:
    """The engine, if what it explains adds up and has no labels."""
    engine = explainer._engine
    if not engine.index.adds_up:
        raise InputError(
            f"this explainer has index={short(engine.index.name)}, whose values do not add up. {method} needs "
            "index='shapley'."
        )
    if engine.output.needs_labels:
        raise InputError(
            f"{method} explains predictions; this explainer has output='log_loss'. Use another output."
        )
    return engine


def names_of_outputs(explainer: Explainer) -> tuple[str, ...]:
    """Names of the outputs, numbered where they have none."""
    return explainer.output_names or tuple(f"output {k}" for k in range(explainer._engine.n_outputs))


def read_rows(explainer: Explainer, X: Any, name: str = "X") -> Rows:
    """Rows, of which there are some."""
    rows = explainer._read(X, name)
    if not len(rows):
        raise InputError(f"{name} has 0 rows; there is no mean of none.")
    return rows


def check_row_weights(weights: ArrayLike | None, n_rows: int) -> Floats | None:
    """A weight per row of X."""
    if weights is None:
        return None
    array = as_floats(weights, "weights")
    if array.shape != (n_rows,):
        raise InputError(f"weights has shape {array.shape}; give one weight per row of X, ({n_rows},).")
    if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
        raise InputError("weights must be finite and >= 0, and not all zero.")
    return array


def terms_of(explainer: Explainer, engine: Engine, interactions: bool) -> Terms:
    """Players, or with ``interactions`` pairs, too."""
    return Terms(explainer.player_names, met_pairs(engine) if interactions else None)


def row_blocks(
    explainer: Explainer, rows: Rows, terms: Terms, n_outputs: int
) -> Iterator[tuple[slice, Floats]]:
    """What each row has of each term, and in all: (n_rows, n_terms + 1, n_outputs), block by block."""
    step = terms.rows_per_block(n_outputs)
    for first in range(0, len(rows), step):
        part = replace(rows, codes=rows.codes[first : first + step])
        values = explainer._explain(part, explainer.n_jobs)
        yield slice(first, first + step), _all_terms(explainer, explainer._engine, part.codes, values, terms)


def background_blocks(
    explainer: Explainer, codes: NDArray[Any], engines: list[Engine], terms: Terms, n_outputs: int
) -> Iterator[tuple[slice, list[Floats]]]:
    """What each background row brings to the mean of each group: ``engines`` have the groups as backgrounds."""
    step = terms.rows_per_block(n_outputs * len(engines))
    for first in range(0, len(codes), step):
        part = codes[first : first + step]
        with Progress(explainer.progress):
            enter("the background's own error", len(engines))
            values = [engine.shap_values(part, explainer.n_jobs) for engine in engines]
        found = [
            _all_terms(explainer, engine, part, -mine, terms)
            for engine, mine in zip(engines, values, strict=True)
        ]
        yield slice(first, first + step), found


def _all_terms(
    explainer: Explainer, engine: Engine, codes: NDArray[Any], values: Floats, terms: Terms
) -> Floats:
    """Players' values (n_rows, n_players, n_outputs) as terms, their sum last.

    From the background's side values come with their sign changed; interactions are the same from both sides.
    """
    total = values.sum(axis=1, keepdims=True)
    if terms.pairs is None:
        return np.concatenate([values, total], axis=1)
    halves = pair_interactions(engine, codes, terms.pairs, explainer.n_jobs)
    main = values.copy()
    for k, (i, j) in enumerate(terms.pairs):
        main[:, i] -= halves[:, k]
        main[:, j] -= halves[:, k]
    return np.concatenate([main, 2 * halves, total], axis=1)
