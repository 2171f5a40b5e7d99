"""Means over groups of rows: how drift and cohorts read rows, and what they sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.short import short
from fouriershap._explainers.questions.groups import Groups, find_groups, make_groups
from fouriershap._explainers.questions.means import (
    Terms,
    background_blocks,
    check_row_weights,
    read_rows,
    row_blocks,
)
from fouriershap._explainers.questions.moments import Floats, Moments
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows, what each counts (None: all the same), and the group that each is in."""

    rows: Rows
    share: Floats | None
    groups: Groups

    def __len__(self) -> int:
        return len(self.groups.labels)

    def sizes(self) -> NDArray[np.int64]:
        return np.bincount(self.groups.member, minlength=len(self))

    def only(self, g: int) -> GroupedRows:
        """One group; the other rows are in none."""
        single = Groups((self.groups.labels[g],), np.where(self.groups.member == g, 0, -1))
        return GroupedRows(self.rows, self.share, single)

    def check_weighed(self) -> None:
        """Raise where all rows of a group have weight 0."""
        if self.share is None:
            return
        weight = np.bincount(self.groups.member, weights=self.share, minlength=len(self))
        empty = np.flatnonzero(weight <= 0)
        if len(empty):
            raise InputError(
                f"weights are 0 for all rows of the group {short(self.groups.labels[empty[0]])}; leave it out."
            )

    def moments(self, explainer: Explainer, terms: Terms) -> list[Moments]:
        """Of the values of each group."""
        found = [Moments() for _ in self.groups.labels]
        for part, values in row_blocks(explainer, self.rows, terms, explainer._engine.n_outputs):
            member, share = self.groups.member[part], None if self.share is None else self.share[part]
            for g, one in enumerate(found):
                mine = slice(None) if len(found) == 1 else member == g
                one.add(values[mine], None if share is None else share[mine])
        return found

    def engines(self, engine: Engine) -> list[Engine]:
        """The same representation against each group."""
        made = []
        for g in range(len(self)):
            mine = self.groups.member == g
            weights = None if self.share is None else self.share[mine] / self.share[mine].sum()
            made.append(engine.with_background(self.rows.codes[mine], weights))
        return made

    def from_background(
        self, explainer: Explainer, terms: Terms, kept: tuple[NDArray[Any], Floats | None]
    ) -> Iterator[tuple[list[Floats], Floats | None]]:
        """What background rows bring to the mean of each group, block by block, and their weights."""
        codes, weights = kept
        engine = explainer._engine
        for part, values in background_blocks(
            explainer, codes, self.engines(engine), terms, engine.n_outputs
        ):
            yield values, None if weights is None else weights[part]


def read_grouped(
    explainer: Explainer,
    X: Any,
    argument: str,
    weights: ArrayLike | None,
    by: Any,
    every: Any,
    bins: Any,
) -> GroupedRows:
    """Rows in the groups that ``by`` tells; in a single one without a name where it is None."""
    features, entries = (X, None) if by is None else find_groups(X, by, explainer.input_names)
    rows = read_rows(explainer, features, argument)
    share = check_row_weights(weights, len(rows))
    groups = Groups(("",), np.zeros(len(rows), dtype=np.int64))
    if entries is not None:
        groups = make_groups(entries, len(rows), every, bins)
    return GroupedRows(rows, share, groups)
