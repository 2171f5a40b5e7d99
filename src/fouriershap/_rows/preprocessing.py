"""`Preprocessing`: what happens to rows before the model, whichever library does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fouriershap._rows.recipes import Recipe


class InputColumn(NamedTuple):
    """A column that enters a Pipeline, and the player that it belongs to: -1 if the Pipeline drops it."""

    name: str
    player: int


class UnknownStepError(Exception):
    """A transformer that files cannot keep; its text says which, and why."""


class Preprocessing(Protocol):
    """Steps before a model: the live transformers of a Pipeline, or the `Recipe` that a file keeps of them."""

    def transform(self, X: Any, name: str) -> Any:
        """Return rows as the model takes them; errors call X by ``name``."""

    def known_names(self) -> tuple[str, ...] | None:
        """Return the names of the columns that enter; None if there are none."""

    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        """Return the labels that the steps know, by column."""

    def to_recipe(self, sample: Any, absent_is_missing: bool) -> Recipe:
        """Return what a file keeps, tried out on rows; `UnknownStepError` if it cannot keep everything."""


class LivePreprocessing(Preprocessing, Protocol):
    """The transformers of a Pipeline."""

    def first_rows(self, background: Any) -> Any:
        """Return some rows to try steps on before a file keeps them."""

    def output_names(self) -> tuple[str, ...] | None:
        """Return the names of the features that enter the final model; None if they are unknown."""

    def input_players(
        self, background: Any, n_features: int
    ) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[InputColumn, ...]]:
        """Return input columns as players: that of each feature, their names, and all input columns."""
