"""`Explainer`: the front door, and what every explainer can do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base import files
from fouriershap._base.checks import (
    Progress,
    are_numbered,
    check_device,
    check_weights,
    check_whole,
    unshared,
)
from fouriershap._base.errors import CostWarning, InputError
from fouriershap._base.headers import take
from fouriershap._base.parallel import Watch
from fouriershap._base.short import short_text
from fouriershap._base.warn import warn
from fouriershap._explainers.backgrounds import kept_background
from fouriershap._explainers.batches import Streams
from fouriershap._explainers.calling import SignatureOfInit, name_of
from fouriershap._explainers.explanation import make_explanation, without_single_output
from fouriershap._explainers.public_parts import PublicParts
from fouriershap._explainers.reasons import make_frame
from fouriershap._rows.frames import Rows, as_rows, unmask
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.interactions import TopInteractions, interaction_values

_LARGE_FILE = 1 << 30  # bytes


class Explainer(Streams, PublicParts):
    """A model and a background, ready to explain rows.

    ``Explainer(model, background, **options)`` makes the explainer that fits the model, as its own class
    would: a `TreeExplainer` for tree models, sums of them, and whatever is wrapped around one (Pipelines, searches),
    a `ProductExplainer` for linear models, kernel machines and small networks that are sums of products, a
    `BlackBoxExplainer` for functions and anything else that predicts, a `SpectrumExplainer` for a `Spectrum`. A tree
    model that `TreeExplainer` refuses is fitted as a black box, and a `ModelWarning` says why.

    Parameters
    ----------
    model : object
        What is explained.
    background : array or data frame
        Rows that stand for "feature unknown"; all of them are used.
    output : {"raw", "probability", "response", "log_loss"}, or int
        What is explained, of trees and sums of products; see `TreeExplainer`.
    groups : mapping or sequence, or "input", optional
        Columns that act as one player: ``{"name": [columns]}`` or one group name per column.
    weights : array_like, optional
        A weight per background row.
    budget : int
        Most rows that a black box is asked.
    n_jobs : int, optional
        Threads; None for every core.
    **options
        Any other argument of the class that is made. An argument that this class does not have is an error.

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
    output_names : tuple of str, optional
        Names of the outputs, where the model has some: the classes; of one output for two classes the positive one.
    n_jobs : int, optional
        Threads; None for every core.
    progress : bool or callable, optional
        Whether long calls tell how far they are: None after two seconds, by a bar in a terminal or notebook (with tqdm)
        and else in the log "fouriershap"; True at once, False never. A function is called with (done, total), in
        percent of a stage; where it has a parameter ``stage``, it gets a `Stage`, too.
    has_pipeline : bool
        Whether rows go through the steps of a Pipeline before they are explained; files keep those that they know.
    checksum : str, optional
        Of the file that this explainer was loaded from, over all its contents; None where there was none.
    """

    # What a subclass must have raises NotImplementedError here. Abstract methods would say the same, but type
    # checkers would then refuse Explainer(model, background).
    has_pipeline: bool = False
    checksum: str | None = None
    progress: Progress = None
    _given: str | None = None  # what was explained, by name, for pages
    _kind: ClassVar[str]  # of its files
    # Codes and weights of the background, where the engine does not keep them; None where files did not either.
    _against: tuple[NDArray[Any], NDArray[np.float64] | None] | None = None
    _choose: ClassVar[Callable[..., Explainer] | None] = (
        None  # the front door: a bare object of the right class
    )

    def __new__(cls, *args: Any, **options: Any) -> Self:
        # As pathlib.Path does: the base makes an object of a subclass, whose __init__ Python then runs.
        is_open = cls is Explainer and cls._choose is not None
        made = cast("Self", cls._choose(*args, **options)) if is_open else object.__new__(cls)  # type: ignore[misc]
        made._given = name_of(args[0] if args else options.get("model", options.get("predict")))
        return made

    __signature__ = SignatureOfInit()

    # What editors complete. It is never run: `__new__` makes an object of a subclass, whose own __init__ is.
    def __init__(
        self,
        model: Any,
        background: Any = None,
        *,
        output: str | int = "raw",
        exact: bool = False,
        tree_limit: int | None = None,
        feature_perturbation: str = "auto",
        feature_names: ArrayLike | None = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        index: str = "shapley",
        method: str = "auto",
        precision: str | None = "single",
        memory: int | float | None = None,
        check: str = "model",
        data: Any = None,
        rows: Any = None,
        budget: int = 20_000,
        categorical: Any = None,
        n_terms: int | None = None,
        max_degree: int | None = None,
        exact_background: bool = False,
        min_fidelity: float = 0.95,
        random_state: int | None = None,
        batch_size: int = 8192,
        answers: Any = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        progress: Progress = None,
        model_output: str | int | None = None,
        masker: Any = None,
    ) -> None:
        raise NotImplementedError

    def _header(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What a file needs beside the engine and the names."""
        raise NotImplementedError

    @classmethod
    def _from_contents(cls, contents: files.Contents) -> Self:
        """The inverse of `save`."""
        raise NotImplementedError

    def _explain(self, rows: Rows, n_jobs: int | None) -> NDArray[np.float64]:
        with Watch(self.progress):
            return self._engine.shap_values(rows.codes, n_jobs)

    @property
    def fidelity(self) -> Any:
        """How well a fitted representation stands for the model, see `Fidelity`; None where nothing is fitted."""
        return None

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        """Of each column that holds labels, those that the model knows; other columns hold numbers.

        Nothing is known of the columns that enter a live Pipeline, and of columns without names.
        """
        return {}

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """Names by which the columns of a frame are found; None where columns have positions only."""
        return None if are_numbered(self.feature_names) else self.feature_names

    def predict(self, X: Any) -> NDArray[np.float64]:
        """What the values add up to, by the representation: (n_rows,) or (n_rows, n_outputs)."""
        return without_single_output(self._engine.predict(self._read(X).codes, self.n_jobs))

    def describe(self) -> dict[str, Any]:
        """Facts about what explains: the representation, its tables, its background."""
        return self._engine.describe()

    def plan(self, n_rows: int | None = None) -> Any:
        """How ``n_rows`` rows would be explained, and why (`TreePlan` or `Plan`); None for "any number"."""
        if n_rows is not None:
            check_whole("n_rows", n_rows, 0, ", or None for any number")
        return self._engine.plan(n_rows)

    def compile(self) -> Self:
        """Build the tables now, whatever the number of rows to come; by default the first calls decide."""
        with Watch(self.progress):
            self._engine.build(self.n_jobs)
        return self

    def to(self, device: str) -> Self:
        """The same explainer, explaining by the native kernels ("cpu") or under XLA ("jax")."""
        return self._with_engine(self._engine.to(check_device(device)))

    def with_background(self, background: Any, *, weights: ArrayLike | None = None) -> Self:
        """The same representation against another background; the model is not asked.

        Only what the background touches is compiled again.
        """
        if background is None:
            raise InputError("background is None; give rows, as to the constructor.")
        rows = self._read(unmask(background), "background")
        share = check_weights(weights, len(rows))
        codes = unshared(rows.codes, background)
        other = self._with_engine(self._engine.with_background(codes, share))
        other._against = (codes, share)
        return other

    def _background_codes(self) -> tuple[NDArray[Any], NDArray[np.float64] | None] | None:
        """The background as the engine takes rows, and its weights; None where there is none, or a file lost it."""
        return self._against or kept_background(self._engine)

    def _code_players(self) -> NDArray[np.int32]:
        """The player of each column of codes."""
        raise NotImplementedError

    def _output_link(self) -> str | None:
        """Whether outputs are probabilities ("identity") or their margins ("logit"); None where nobody knows."""
        return None

    def _with_engine(self, engine: Engine) -> Self:
        other = copy(self)
        other._engine, other.checksum = engine, None
        return other

    def save(self, path: str | os.PathLike[str], *, interactions: bool = False) -> None:
        """Compile, and write everything that explaining needs to a .fshap file; the model is not needed.

        Parameters
        ----------
        interactions : bool
            Whether interaction tables, or what they need, go into the file too.
        """
        arrays, header = self._engine.to_contents(interactions)
        more, about = self._header()
        names = {"feature_names": self.feature_names, "player_names": self.player_names}
        given = {} if self._given is None else {"given": self._given}
        _tell_size(path, sum(array.nbytes for array in arrays.values()))
        files.write(path, self._kind, arrays | more, header | names | about | given)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a .fshap file that `save` wrote; the tables stay memory-mapped."""
        return files.load(path, cls._kind, cls._loaded)

    @classmethod
    def _loaded(cls, contents: files.Contents) -> Self:
        """`_from_contents`, and whose contents they are."""
        explainer = cls._from_contents(contents)
        explainer.checksum = contents.checksum
        explainer._given = take(contents.header, "given", str, "") or None
        return explainer

    @property
    def expected_value(self) -> float | NDArray[np.float64]:
        """Mean output over the background; an array where there are several outputs."""
        expected = self._engine.expected
        return float(expected[0]) if len(expected) == 1 else expected.copy()

    def shap_values(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Explain rows.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
            Or one row, as an array (n_columns,) or a pandas Series: its values come back without the first axis.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        X, is_one = as_rows(X)
        values = without_single_output(self._explain(self._read(X), self._jobs(n_jobs)))
        return values[0] if is_one else values

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
        X, is_one = as_rows(X)
        codes = self._read(X).codes
        single = self._engine.n_outputs == 1
        with Watch(self.progress):
            found = interaction_values(
                self._engine, codes, self.player_names, pairs, top, self._jobs(n_jobs), single
            )
        return found[0] if is_one and isinstance(found, np.ndarray) else found

    def __call__(self, X: Any) -> Any:
        """Explain rows as a ``shap.Explanation``, for every plot of shap."""
        begin = time.perf_counter()
        X, is_one = as_rows(X)
        rows = self._read(X)
        values = self._explain(rows, self.n_jobs)
        names = self.player_names, self.output_names
        explanation = make_explanation(
            rows, values, self._engine.expected, *names, time.perf_counter() - begin
        )
        return explanation[0] if is_one else explanation

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
            In the library of X (pandas with its index, polars, pyarrow); for arrays the first that is installed.
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
        rows = self._read(X)
        values = self._explain(rows, self.n_jobs)
        data, labels = rows.display(len(self.player_names))
        return make_frame(values, data, labels, self.player_names, self.output_names, X, top_k)


def _tell_size(path: str | os.PathLike[str], n_bytes: int) -> None:
    if n_bytes > _LARGE_FILE:
        warn(
            f"{short_text(os.fspath(path))} takes {n_bytes / 1e9:.1f} GB, most of it tables of the background. With "
            "less memory= for an explainer of trees, for instance memory=100_000_000, tables take no more than that; "
            "trees without one are explained from the background rows.",
            CostWarning,
        )
