"""`Explainer`: the front door, and what every explainer can do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from fouriershap._explainers.batches import explain_batches
from fouriershap._explainers.dispatch import explainer_class
from fouriershap._explainers.explanation import make_explanation
from fouriershap._explainers.reasons import make_frame
from fouriershap._rows.display import displayed
from fouriershap._rows.frames import densified
from fouriershap._shapley.interactions import TopInteractions, interaction_values
from fouriershap._shapley.pairs import PairEngine


class Explainer:
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

    # What a subclass must have raises NotImplementedError here. Abstract methods would say the same, but type
    # checkers would then refuse Explainer(model, background).
    feature_names: tuple[str, ...]
    player_names: tuple[str, ...]
    n_jobs: int | None

    def __new__(cls, *args: Any, **options: Any) -> Self:
        # As pathlib.Path does: the base makes an object of a subclass, whose __init__ Python then runs.
        chosen = explainer_class(*args, **options) if cls is Explainer else cls
        return object.__new__(cast("type[Self]", chosen))

    def _explain(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """SHAP values (n_rows, n_players, n_outputs)."""
        raise NotImplementedError

    def _pairs(self, X: Any) -> tuple[Callable[[NDArray[np.int64] | None], PairEngine], NDArray[Any]]:
        """What makes the engine of pairs with some keys (None: all), and the rows as this engine takes them."""
        raise NotImplementedError

    @property
    def _expected(self) -> NDArray[np.float64]:
        """Mean output over the background, (n_outputs,)."""
        raise NotImplementedError

    @property
    def _column_player(self) -> NDArray[np.int32]:
        """Player of each column, (n_columns,)."""
        raise NotImplementedError

    @property
    def output_names(self) -> tuple[str, ...] | None:
        """Names of the outputs, where the model has some."""
        return None

    @property
    def _frame_names(self) -> tuple[str, ...] | None:
        """Names by which the columns of a frame are found; None where columns have positions only."""
        unnamed = all(name == f"Feature {i}" for i, name in enumerate(self.feature_names))
        return None if unnamed else self.feature_names

    def save(self, path: str | os.PathLike[str], *, interactions: bool = False) -> None:
        """Write everything that explaining needs to a .fshap file; the model is not needed.

        Parameters
        ----------
        interactions : bool
            Whether interaction tables go into the file too.
        """
        raise NotImplementedError

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

    def explain_batches(
        self,
        batches: Iterable[Any],
        *,
        ids: Sequence[str] | None = None,
        out: str = "columns",
        top_k: int = 3,
        n_jobs: int | None = None,
    ) -> Iterator[Any]:
        """Explain a stream of batches, one at a time.

        Memory does not grow with their number. Columns of frames are found by name, in any order.

        Parameters
        ----------
        batches : iterable of data frames, ``pyarrow.RecordBatch`` or arrays
            Rows to explain; a batch may be empty.
        ids : sequence of str, optional
            Columns that are carried into the answer and not shown to the model. Any other column must be a
            feature. Frames only.
        out : {"columns", "array", "top_k"}
            What follows the ids in the answer:

            - "columns": a number per player, named after it;
            - "array": ``shap_values``, a fixed-size list of numbers in the order of `player_names`;
            - "top_k": ``feature_1``, ``value_1`` (as text), ``contribution_1``, ``feature_2``, ...: the players
              with the largest contributions, in size.

            Then ``base_value``, so that a row adds up to the model's output. Where there are several outputs,
            each of these columns comes once per output and ends in ``__`` and the output's name (or number).
        top_k : int
            Reasons per row for "top_k"; at most the number of players.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Yields
        ------
        The same kind of frame, a row per row; pandas frames keep their index. For arrays "columns" is a matrix
        of numbers (the last column is the base value), "array" what `shap_values` returns.

        Raises
        ------
        InputError
            A column is missing, is not known to the model, or holds what the model cannot read. The message
            names the batch.

        Examples
        --------
        >>> import fouriershap as fs, numpy as np, pandas as pd
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = pd.DataFrame({"age": [20, 40, 60, 80], "height": [1.5, 1.9, 1.6, 1.8]})
        >>> model = DecisionTreeRegressor(random_state=0).fit(X, [1.0, 2.0, 3.0, 5.0])
        >>> explainer = fs.TreeExplainer(model, X)
        >>> batches = [X.assign(name=["Ann", "Bob", "Eve", "Kim"])]
        >>> for frame in explainer.explain_batches(batches, ids=["name"], out="top_k", top_k=1):
        ...     print(frame)
          name feature_1 value_1  contribution_1  base_value
        0  Ann       age      20           -1.75        2.75
        1  Bob       age      40           -0.75        2.75
        2  Eve       age      60            0.25        2.75
        3  Kim       age      80            2.25        2.75
        """
        return explain_batches(self, batches, ids, out, top_k, n_jobs)

    def __call__(self, X: Any) -> Any:
        """Explain rows as a ``shap.Explanation``, for every plot of shap."""
        begin = time.perf_counter()
        values = self._explain(X, self.n_jobs)
        return self._explanation(X, values, time.perf_counter() - begin)

    def report(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        rows: int | None = None,
        title: str | None = None,
        max_bytes: int = 15_000_000,
    ) -> Path:
        """Write a page that shows the SHAP values of rows, and computes new ones when its reader changes a row.

        One HTML file that opens from disk and fetches nothing. Needs ``pip install 'fouriershap[report]'``.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
            Rows to explain; importance is over all of them.
        path : path of the file
        rows : int, optional
            Most rows that the page holds, a random sample of X; by default 10,000.
        title : str, optional
        max_bytes : int
            Most bytes of the file. Where they are too few, the page holds fewer rows and, last, no what-if part,
            and says so.

        Returns
        -------
        pathlib.Path
            The file that was written.
        """
        from fouriershap.report import write_report

        return write_report(self, X, path, rows=rows, title=title, max_bytes=max_bytes)

    def _explanation(
        self,
        X: Any,
        values: NDArray[np.float64],
        seconds: float,
        expected: NDArray[np.float64] | None = None,
    ) -> Any:
        expected = self._expected if expected is None else expected
        data, labels = displayed(*self._shown(X), len(self.player_names))
        names = (self.player_names, self.output_names)
        return make_explanation(values, expected, data, labels, *names, seconds)

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
