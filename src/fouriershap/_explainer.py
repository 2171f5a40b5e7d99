"""`Explainer`: the front door, and what every explainer can do."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from fouriershap._dispatch import explainer_class
from fouriershap._display import displayed
from fouriershap._explanation import make_explanation
from fouriershap._frames import densified
from fouriershap._reasons import make_frame


class Explainer(ABC):
    """A model and a background, ready to explain rows.

    ``Explainer(model, background, **options)`` makes the explainer that fits the model, as its own class
    would: a `TreeExplainer` for tree models and Pipelines that end in one, a `BlackBoxExplainer` for
    functions and anything else that predicts, a `SpectrumExplainer` for a `Spectrum`.

    Parameters
    ----------
    model : object
        What is explained.
    background : array or data frame
        Rows that stand for "feature unknown"; all of them are used.
    **options
        Those of the class that is made.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    >>> type(fs.Explainer(model, X)).__name__, type(fs.Explainer(lambda rows: rows[:, 0], X)).__name__
    ('TreeExplainer', 'BlackBoxExplainer')

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

    def __new__(cls, *args: Any, **options: Any) -> Self:
        # As pathlib.Path does: the base makes an object of a subclass, whose __init__ Python then runs.
        chosen = explainer_class(*args, **options) if cls is Explainer else cls
        return object.__new__(cast("type[Self]", chosen))

    @abstractmethod
    def _explain(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """SHAP values (n_rows, n_players, n_outputs)."""

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

    def __call__(self, X: Any) -> Any:
        """Explain rows as a ``shap.Explanation``, for every plot of shap."""
        begin = time.perf_counter()
        values = self._explain(X, self.n_jobs)
        return self._explanation(X, values, time.perf_counter() - begin)

    def _explanation(self, X: Any, values: NDArray[np.float64], seconds: float) -> Any:
        data, labels = displayed(*self._shown(X), len(self.player_names))
        names = (self.player_names, self.output_names)
        return make_explanation(values, self._expected, data, labels, *names, seconds)

    def _shown(self, X: Any) -> tuple[Any, NDArray[np.int32], tuple[str, ...]]:
        """What people see of rows: columns, the player of each (-1 for none), and their names."""
        return densified(X), self._column_player, self.feature_names

    def frame(self, X: Any, top_k: int | None = None) -> Any:
        """The reasons of each row as a tidy table, the largest first.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        top_k : int, optional
            Reasons per row (and output); None for all players.

        Returns
        -------
        data frame
            In the library of X (pandas, polars, pyarrow); for arrays the first of these that is installed.
            Columns: ``row`` (position in X), ``output`` where there are several, ``feature``, ``value`` (text
            where some column holds labels or a group has several columns), ``contribution`` (the SHAP value),
            ``rank`` (1 for the largest in size).

        Examples
        --------
        >>> import numpy as np, pandas as pd, fouriershap as fs
        >>> h = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
        >>> bits = pd.DataFrame([[1, 1, 0]], columns=["a", "b", "c"])
        >>> fs.Explainer(h, bits - bits).frame(bits, top_k=2)
           row feature  value  contribution  rank
        0    0       a    1.0          -2.0     1
        1    0       b    1.0          -1.0     2
        """
        values = self._explain(X, self.n_jobs)
        data, labels = displayed(*self._shown(X), len(self.player_names))
        return make_frame(values, data, labels, self.player_names, self.output_names, X, top_k)


def without_single_output(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (..., n_outputs) as users expect them: no last axis where there is one output."""
    return values[..., 0] if values.shape[-1] == 1 else values
