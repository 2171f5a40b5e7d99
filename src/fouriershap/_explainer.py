"""`Explainer`: what every explainer can do."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._explanation import make_explanation
from fouriershap.shapley._interactions import TopInteractions, interaction_values
from fouriershap.shapley._pairs import PairEngine


class Explainer(ABC):
    """A model and a background, ready to explain rows.

    Attributes
    ----------
    feature_names : tuple of str
        The columns of the rows.
    player_names : tuple of str
        What gets a value: columns, or groups of them.
    n_jobs : int, optional
        Threads; None for every core.
    """

    feature_names: tuple[str, ...]
    player_names: tuple[str, ...]
    n_jobs: int | None

    @abstractmethod
    def _explain(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """SHAP values (n_rows, n_players, n_outputs)."""

    @abstractmethod
    def _pairs(self, X: Any) -> tuple[Callable[[NDArray[np.int64] | None], PairEngine], NDArray[Any]]:
        """What makes the engine of pairs with some keys (None: all), and the rows as this engine takes them."""

    @property
    @abstractmethod
    def _expected(self) -> NDArray[np.float64]:
        """Mean output over the background, (n_outputs,)."""

    @property
    @abstractmethod
    def _column_player(self) -> NDArray[np.int32]:
        """Player of each column, (n_columns,)."""

    @property
    def output_names(self) -> tuple[str, ...] | None:
        """Names of the outputs, where the model has some."""
        return None

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that explaining needs to a .fshap file; the model is not needed."""

    @property
    def expected_value(self) -> float | NDArray[np.float64]:
        """Mean output over the background; an array where there are several outputs."""
        expected = self._expected
        return float(expected[0]) if len(expected) == 1 else expected.copy()

    def shap_values(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Explain rows.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        return without_single_output(self._explain(X, self.n_jobs if n_jobs is None else n_jobs))

    def shap_interaction_values(
        self, X: Any, *, pairs: Any = None, top: int | None = None, n_jobs: int | None = None
    ) -> NDArray[np.float64] | TopInteractions:
        """Interactions of pairs of players: the exact Shapley interaction index, in shap's convention.

        The entry [i, j] of a row's matrix, i != j, is half of the interaction of players i and j, so that [i, j]
        and [j, i] together are the whole; the diagonal holds the main effects, what a player's value has beyond
        its halves. A line of the matrix sums to the player's SHAP value.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        pairs : sequence of pairs, optional
            Players by name or position: only these are computed.
        top : int, optional
            Only the strongest pairs, by mean absolute value over the rows. Rows are taken in blocks: no more than
            a block has its matrices in memory at a time.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Returns
        -------
        ndarray, shape (n_rows, n_players, n_players) or (n_rows, n_players, n_players, n_outputs)
            With ``pairs``: (n_rows, n_pairs) or (n_rows, n_pairs, n_outputs), the entries [i, j].
        TopInteractions
            With ``top``: names, strengths and values of the pairs.
        """
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        make, rows = self._pairs(X)
        single = len(self._expected) == 1
        return interaction_values(
            make, rows, lambda: self._explain(X, n_jobs), self.player_names, pairs, top, n_jobs, single
        )

    def __call__(self, X: Any) -> Any:
        """Explain rows as a ``shap.Explanation``, for every plot of shap."""
        begin = time.perf_counter()
        values = self._explain(X, self.n_jobs)
        return self._explanation(X, values, time.perf_counter() - begin)

    def _explanation(self, X: Any, values: NDArray[np.float64], seconds: float) -> Any:
        return make_explanation(
            values, self._expected, X, self._column_player, self.player_names, self.output_names, seconds
        )


def without_single_output(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (..., n_outputs) as users expect them: no last axis where there is one output."""
    return values[..., 0] if values.shape[-1] == 1 else values
