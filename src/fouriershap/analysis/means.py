"""Mean SHAP values of groups of rows, and what each row on both sides adds to them.

The SHAP values of one row x against one background row b are antisymmetric: phi(x; b) = -phi(b; x), since the game
from the other side is v(N - S). So the mean over x of phi(x; b), as a function of b, is the negative of what explaining
the background against the rows gives. Two passes give all that the error of a mean over both samples needs: its
first-order (Hoeffding) terms. Interactions of pairs are symmetric, by the same argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import check_bool
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.parallel import enter
from fouriershap._base.progress import Progress
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.interactions import met_pairs, pair_interactions
from fouriershap.analysis.explainer import (
    Background,
    ExplainerLike,
    check_row_weights,
    encode_rows,
    shap_values,
)
from fouriershap.analysis.groups import Groups, make_groups, split_column
from fouriershap.analysis.moments import Floats, Moments

_BLOCK_NUMBERS = 1 << 23  # most values in a block of rows


def rows_per_block(n_terms: int, n_outputs: int) -> int:
    """Return how many rows are explained at a time."""
    return max(256, _BLOCK_NUMBERS // max(n_terms * n_outputs, 1))


@dataclass(frozen=True, eq=False)
class Terms:
    """What is averaged: values of players or, with pairs, main effects and pair interactions; their sum comes last."""

    players: tuple[str, ...]
    pairs: NDArray[np.int32] | None = None  # (n_pairs, 2)

    @property
    def names(self) -> tuple[str, ...]:
        if self.pairs is None:
            return self.players
        return (*self.players, *(f"{self.players[i]} x {self.players[j]}" for i, j in self.pairs))

    def from_values(self, engine: Engine, codes: NDArray[Any], values: Floats, n_jobs: Any) -> Floats:
        """Return the terms and their sum, (n_rows, n_terms + 1, n_outputs), from the players' values.

        Values of background rows come with their sign changed; interactions are the same from both sides.
        """
        total = values.sum(axis=1, keepdims=True)
        if self.pairs is None:
            return np.concatenate([values, total], axis=1)
        halves = pair_interactions(engine, codes, self.pairs, n_jobs)
        main = values.copy()
        for k, (i, j) in enumerate(self.pairs):
            main[:, i] -= halves[:, k]
            main[:, j] -= halves[:, k]
        return np.concatenate([main, 2 * halves, total], axis=1)


def make_terms(explainer: ExplainerLike, interactions: bool = False) -> Terms:
    """Return players or, with ``interactions``, players and the pairs that interact."""
    pairs = met_pairs(explainer.engine) if check_bool("interactions", interactions) else None
    return Terms(explainer.player_names, pairs)


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows, their weights (None: equal), and the group of each row."""

    rows: Rows
    weights: Floats | None
    groups: Groups

    def __len__(self) -> int:
        return len(self.groups.labels)

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of rows of each group."""
        return np.bincount(self.groups.member, minlength=len(self))

    def check_weights(self) -> None:
        """Raise if all rows of a group have weight 0."""
        if self.weights is None:
            return
        total = np.bincount(self.groups.member, weights=self.weights, minlength=len(self))
        empty = np.flatnonzero(total <= 0)
        if len(empty):
            raise InputError(
                f"weights are 0 for all rows of the group {truncated_repr(self.groups.labels[empty[0]])}; leave it out."
            )

    def moments(self, explainer: ExplainerLike, terms: Terms) -> list[Moments]:
        """Return the moments of the terms of each group."""
        engine, codes = explainer.engine, self.rows.codes
        found = [Moments() for _ in self.groups.labels]
        step = rows_per_block(len(terms.names), engine.n_outputs)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            values = shap_values(explainer, codes[part])
            values = terms.from_values(engine, codes[part], values, explainer.n_jobs)
            member = self.groups.member[part]
            weights = None if self.weights is None else self.weights[part]
            for g, moments in enumerate(found):
                mine = slice(None) if len(found) == 1 else member == g
                moments.add(values[mine], None if weights is None else weights[mine])
        return found

    def background_terms(
        self, explainer: ExplainerLike, terms: Terms, background: Background, groups: list[int]
    ) -> Iterator[tuple[list[Floats], Floats | None]]:
        """Yield what background rows add to the mean of each of ``groups``, block by block, and their weights."""
        engine, (codes, background_weights) = explainer.engine, background
        engines = []
        for g in groups:
            mine = self.groups.member == g
            weights = None if self.weights is None else self.weights[mine] / self.weights[mine].sum()
            engines.append(engine.with_background(self.rows.codes[mine], weights))
        step = rows_per_block(len(terms.names), engine.n_outputs * len(engines))
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            with Progress(explainer.progress):
                enter("error of the background", len(engines))
                values = [-each.shap_values(codes[part], explainer.n_jobs) for each in engines]
            found = [
                terms.from_values(each, codes[part], mine, explainer.n_jobs)
                for each, mine in zip(engines, values, strict=True)
            ]
            yield found, None if background_weights is None else background_weights[part]


def group_rows(
    explainer: ExplainerLike,
    X: Any,
    name: str,
    weights: ArrayLike | None,
    by: Any,
    every: Any,
    bins: Any,
) -> GroupedRows:
    """Return the encoded rows in the groups that ``by`` defines; in one group without a name if it is None."""
    features, entries = (X, None) if by is None else split_column(X, by, "by", explainer.input_names)
    rows = encode_rows(explainer, features, name)
    groups = Groups(("",), np.zeros(len(rows), dtype=np.int64))
    if entries is not None:
        groups = make_groups(entries, len(rows), every, bins)
    return GroupedRows(rows, check_row_weights(weights, len(rows)), groups)
