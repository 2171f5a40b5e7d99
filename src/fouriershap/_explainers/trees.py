"""`TreeExplainer`: the front door for tree models."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base import files
from fouriershap._base.arrays import as_floats
from fouriershap._base.errors import FileFormatError, InputError
from fouriershap._base.memory import check_memory
from fouriershap._base.parallel import count_jobs
from fouriershap._explainers.base import Explainer, without_single_output
from fouriershap._explainers.explanation import check_additivity
from fouriershap._explainers.outputs import OUTPUTS, Exact, make_output
from fouriershap._explainers.tree_inputs import background_rows, find_players, name_features
from fouriershap._rows.frames import densified, to_rows, unmask
from fouriershap._rows.pipelines import Preprocessing, split_pipeline
from fouriershap._shapley.indices import check_index
from fouriershap._shapley.pairs import PairEngine
from fouriershap._shapley.spectrum.engine import check_device
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.files import engine_from_contents, engine_to_contents
from fouriershap._shapley.trees.plan import TreePlan
from fouriershap._trees import TreeEnsemble, read_model

if TYPE_CHECKING:
    from fouriershap._blackbox.fidelity import Fidelity

KIND = "tree explainer"
_PERTURBATIONS = ("auto", "interventional", "tree_path_dependent")
_PRECISIONS = {"single": np.float32, "double": np.float64}
_METHODS = ("auto", "tables", "walk")


class TreeExplainer(Explainer):
    """Exact SHAP values of tree ensembles; a drop-in for ``shap.TreeExplainer``.

    Parameters
    ----------
    model : estimator, booster, Pipeline, or path
        A tree model of scikit-learn, XGBoost, LightGBM or CatBoost, or the path of a saved one; or a
        scikit-learn Pipeline that ends in one, in which case background and rows are the pipeline's inputs.
    background : array or data frame, optional
        Rows that stand for "feature unknown"; any number, all of them are used. After the first calls the
        number of background rows costs nothing per explained row.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent"}
        "auto" is interventional where a background is given, else tree_path_dependent. The latter takes the
        shares of the training rows in the trees for a background, and uses none that is given.
    output : {"raw", "probability", "log_loss"}
        What is explained: the model's raw output (margins; class probabilities for scikit-learn's forests), the
        probability, or the loss (`shap_values` then takes labels ``y``). The last two are the values of the margin,
        rescaled per background row as in shap, and cost a walk per row and background row.
    exact : bool
        With ``output="probability"``: SHAP values of the probability itself, by the definition where players and
        background rows are few, else by a fitted representation with its `fidelity`.
    feature_names : sequence of str, optional
        By default those of the model, else of the background, else "Feature 0", ...
    groups : mapping or sequence, or "input", optional
        Columns that act as one player: ``{"name": [columns]}`` or one group name per column. A Pipeline is
        explained in the features that enter its final model; with "input" in its own input columns, so that
        the one-hot columns of an input column are one player.
    weights : array_like, optional
        A weight per background row.
    index : {"shapley", "banzhaf"}
        Which average over coalitions: of every size alike (Shapley, the default), or of every coalition alike
        (Banzhaf, whose values do not add up to the prediction).
    precision : {"single", "double"}
        Of the tables: float32 with float64 totals (errors about 1e-7 of the largest value), or float64.
    method : {"auto", "tables", "walk"}
        "tables" compiles look-up tables at once, "walk" never does, "auto" builds them when the rows to
        explain are worth it, and walks the trees until then, and those trees that are too deep for tables.
    memory : float, optional
        Budget of the tables in bytes; None for a quarter of the machine's memory.
    n_jobs : int, optional
        Threads; None for every core.
    device : {"cpu", "jax"}
        Where rows are explained: by the native kernels, or under XLA on whatever device JAX has (the tables
        are then built at the first call). Files do not remember it; see `to`.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> model = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> explainer = fs.TreeExplainer(model, X)
    >>> values = explainer.shap_values(X[:5])
    >>> values.shape
    (5, 4)
    >>> np.allclose(values.sum(axis=1) + explainer.expected_value, model.predict(X[:5]))
    True
    """

    _before: Preprocessing | None  # what a Pipeline does before its trees
    _inputs: tuple[str, ...] | None  # its input columns, where they are the players
    _lost_pipeline: bool  # a file held the trees of a Pipeline, not what comes before them

    def __init__(
        self,
        model: Any,
        background: Any = None,
        *,
        feature_perturbation: str = "auto",
        output: str = "raw",
        exact: bool = False,
        feature_names: ArrayLike | None = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        index: str = "shapley",
        precision: str = "single",
        method: str = "auto",
        memory: int | float | None = None,
        n_jobs: int | None = None,
        device: str = "cpu",
    ) -> None:
        check_device(device)
        _check_choice("feature_perturbation", feature_perturbation, _PERTURBATIONS)
        _check_choice("output", output, OUTPUTS)
        _check_choice("precision", precision, tuple(_PRECISIONS))
        _check_choice("method", method, _METHODS)
        count_jobs(n_jobs)
        before, final = split_pipeline(model)
        ensemble = read_model(final)
        given = unmask(background)
        background = given if before is None or given is None else before.transform(given, "background")
        if feature_perturbation == "interventional" and background is None:
            raise InputError("feature_perturbation='interventional' needs a background; give one.")
        if feature_perturbation == "tree_path_dependent":
            background = None
        ensemble, names = name_features(feature_names, ensemble, background, before)
        player, player_names, inputs = find_players(groups, names, before, given)
        rows, share = background_rows(background, weights, ensemble)
        dtype = np.dtype(_PRECISIONS[precision])
        engine = TreeEngine(
            ensemble, player, rows, share, check_memory(memory), dtype, method, check_index(index)
        )
        self._set(engine, names, player_names, n_jobs, output, exact)
        self._before, self._inputs = before, inputs
        self._move(device)

    def to(self, device: str) -> TreeExplainer:
        """The same explainer, explaining by the native kernels ("cpu") or under XLA ("jax")."""
        check_device(device)
        other = copy(self)
        other._engine = copy(self._engine)
        other._move(device)
        return other

    def _move(self, device: str) -> None:
        if device == "jax" and self._output is not None:
            raise InputError(
                f"device='jax' reads tables, and output={self.output!r} has none; use device='cpu'."
            )
        if device == "jax" and self._engine.method == "walk":
            raise InputError("device='jax' reads tables, and method='walk' has none; use method='auto'.")
        self._engine.move(device)

    def _set(
        self,
        engine: TreeEngine,
        names: tuple[str, ...],
        player_names: tuple[str, ...],
        n_jobs: int | None,
        output: str,
        exact: bool,
    ) -> None:
        self._engine = engine
        self.output, self.exact = output, exact
        self._output = make_output(engine, output, exact)
        self.feature_names, self.player_names, self.n_jobs = names, player_names, n_jobs
        self._before, self._inputs, self._lost_pipeline = None, None, False

    def __repr__(self) -> str:
        mode = "tree_path_dependent" if self._engine.background is None else "interventional"
        tables = self._engine.tables
        state = (
            "not compiled" if tables is None else f"{tables.n_tables} tables, {tables.nbytes / 1e6:.1f} MB"
        )
        return f"TreeExplainer({self._engine.ensemble!r}, {mode}, {state})"

    @property
    def ensemble(self) -> TreeEnsemble:
        """The model as plain arrays."""
        return self._engine.ensemble

    @property
    def output_names(self) -> tuple[str, ...] | None:
        """Names of the outputs, where the model has some."""
        return self.ensemble.output_names

    @property
    def _expected(self) -> NDArray[np.float64]:
        if self._output is None:
            return self._engine.expected_value
        if self.output == "log_loss":
            raise InputError("the mean log_loss depends on the label: ask expected_loss(y).")
        return self._output.expected(0.0)

    def expected_loss(self, y: float) -> float | NDArray[np.float64]:
        """Mean loss of the background, were all of it labelled ``y``: what the values of such a row add to."""
        if self._output is None or self.output != "log_loss":
            raise InputError(
                f"expected_loss is for output='log_loss'; this explainer has output={self.output!r}."
            )
        expected = self._output.expected(float(y))
        return float(expected[0]) if len(expected) == 1 else expected

    @property
    def fidelity(self) -> Fidelity | None:
        """With ``exact=True``: how well the representation stands for the probability; None if it is exact."""
        return self._output.fidelity if isinstance(self._output, Exact) else None

    @property
    def _column_player(self) -> NDArray[np.int32]:
        return self._engine.player

    @property
    def _frame_names(self) -> tuple[str, ...] | None:
        if self._before is not None:
            return self._before.known_names()
        return self.ensemble.feature_names or super()._frame_names

    def plan(self, n_rows: int | None = None) -> TreePlan:
        """How ``n_rows`` rows would be explained, and why; None for "any number"."""
        if n_rows is not None and (
            isinstance(n_rows, bool) or not hasattr(n_rows, "__index__") or n_rows < 0
        ):
            raise InputError(f"n_rows is {n_rows!r}; give a number of rows, or None for any number.")
        return self._engine.plan(n_rows)

    def compile(self) -> TreeExplainer:
        """Build the tables now, whatever the number of rows to come."""
        self._engine.compile(self.n_jobs)
        return self

    def shap_values(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        check_additivity: bool = False,
        tolerance: float = 1e-4,
        n_jobs: int | None = None,
    ) -> NDArray[np.float64]:
        """Explain rows.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_features)
        y : array_like, shape (n_rows,), optional
            Labels, for ``output="log_loss"``: 0 and 1 for a classifier.
        check_additivity : bool
            Compare the sums with the model's own prediction (see `__call__`).
        tolerance : float
            Largest difference, as a share of the scale of the outputs.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        values = self._explain(X, self.n_jobs if n_jobs is None else n_jobs, check_additivity, tolerance, y)
        return without_single_output(values)

    def __call__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        check_additivity: bool = True,
        tolerance: float = 1e-4,
    ) -> Any:
        """Explain rows as a ``shap.Explanation``, for every plot of shap.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_features)
        y : array_like, shape (n_rows,), optional
            Labels, for ``output="log_loss"``.
        check_additivity : bool
            Check that values and expected value add up to the model's own prediction.
        tolerance : float
            Largest difference, as a share of the scale of the outputs.

        Raises
        ------
        AdditivityError
            With the row, the difference, and the likely causes.
        """
        begin = time.perf_counter()
        values = self._explain(X, self.n_jobs, check_additivity, tolerance, y)
        seconds = time.perf_counter() - begin
        expected = self._expected_of(self._labels(y, len(values))) if self.output == "log_loss" else None
        return self._explanation(X, values, seconds, expected)

    def _explain(
        self,
        X: Any,
        n_jobs: int | None,
        additivity: bool = False,
        tolerance: float = 1e-4,
        y: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        if not isinstance(tolerance, int | float | np.number) or not tolerance >= 0:
            raise InputError(f"tolerance is {tolerance!r}; give a number >= 0.")
        rows = self._rows(X)
        labels = self._labels(y, len(rows))
        if self._output is None:
            values = self._engine.shap_values(rows, n_jobs)
        else:
            values = self._output.shap_values(rows, labels, n_jobs)
        if additivity and self._adds_up:
            check_additivity(values, *self._sums(rows, labels, n_jobs), tolerance)
        return values

    @property
    def _adds_up(self) -> bool:
        """Whether values and expected value must add up to the output: not those of another index or function."""
        fitted = isinstance(self._output, Exact) and not self._output.by_definition
        return self._engine.index == "shapley" and not fitted

    def _sums(
        self, rows: NDArray[Any], labels: NDArray[np.float64], n_jobs: int | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Expected and own output of rows."""
        if self._output is None:
            return self._expected, self._engine.predict(rows, n_jobs)
        predicted = self._output.predict(rows, labels, n_jobs)
        if self.output != "log_loss":
            return self._expected, predicted
        return self._expected_of(labels), predicted

    def _expected_of(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean loss (n_rows, n_outputs) of the background with the label of each row."""
        assert self._output is not None
        distinct, which = np.unique(labels, return_inverse=True)
        means = [self._output.expected(float(label)) for label in distinct]
        return np.reshape(means, (len(distinct), self.ensemble.n_outputs))[which]

    def _labels(self, y: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
        if self.output != "log_loss":
            if y is not None:
                raise InputError(
                    f"y was given, but only output='log_loss' has labels; this is {self.output!r}."
                )
            return np.zeros(n_rows)
        if y is None:
            raise InputError("output='log_loss' needs the labels of the rows: shap_values(X, y).")
        labels = as_floats(y, "y").reshape(-1)
        if len(labels) != n_rows:
            raise InputError(f"y has {len(labels)} labels for {n_rows} rows.")
        if self.ensemble.objective == "binary" and not np.isin(labels, (0, 1)).all():
            raise InputError("y holds labels other than 0 and 1; the model is a binary classifier.")
        return labels

    def _pairs(self, X: Any) -> tuple[Callable[[NDArray[np.int64] | None], PairEngine], NDArray[Any]]:
        rows = self._rows(X)
        if isinstance(self._output, Exact):
            return self._output.pairs(rows)
        if self._output is not None:
            raise InputError(
                f"rescaled values (output={self.output!r}) have no interactions. Use output='raw', or "
                "output='probability', exact=True."
            )
        return self._engine.interactions, rows

    def _rows(self, X: Any) -> NDArray[Any]:
        try:
            return to_rows(self._prepared(X, "X"), self.ensemble)
        except InputError as error:
            if not self._lost_pipeline:
                raise
            raise InputError(
                f"{error} This explainer was saved from a Pipeline whose transformers are not in the file: give it "
                "transformed rows, `pipeline[:-1].transform(X)`."
            ) from error

    def _prepared(self, X: Any, name: str) -> Any:
        """Rows as the final model takes them: through the pipeline, where there is one."""
        return X if self._before is None else self._before.transform(X, name)

    def _shown(self, X: Any) -> tuple[Any, NDArray[np.int32], tuple[str, ...]]:
        if self._inputs is None:
            rows = densified(self._prepared(X, "X"), self.ensemble.absent_is_missing)
            return rows, self._column_player, self.feature_names
        position = {name: i for i, name in enumerate(self.player_names)}
        owner = np.array([position.get(name, -1) for name in self._inputs], dtype=np.int32)
        return densified(X), owner, self._inputs

    def with_background(self, background: Any, *, weights: ArrayLike | None = None) -> TreeExplainer:
        """The same model against another background; only what the background touches is compiled again."""
        if background is None:
            raise InputError("background is None; give rows, as to the constructor.")
        prepared = self._prepared(unmask(background), "background")
        rows, share = background_rows(prepared, weights, self.ensemble)
        other = copy(self)
        other._engine = self._engine.with_background(rows, share)
        other._output = make_output(other._engine, self.output, self.exact)
        return other

    def save(self, path: str | os.PathLike[str], *, interactions: bool = False) -> None:
        """Compile, and write everything that explaining needs to a .fshap file; the model is not needed.

        The transformers of a Pipeline are no part of it: what is loaded takes transformed rows,
        ``pipeline[:-1].transform(X)``.

        Parameters
        ----------
        interactions : bool
            Whether interaction tables go into the file too. Without them, a loaded explainer has interactions
            only where they need no background (tree_path_dependent).
        """
        self.compile()
        arrays, header = engine_to_contents(self._engine, interactions, self._output is not None)
        header |= {"feature_names": self.feature_names, "player_names": self.player_names}
        header["pipeline"] = self._before is not None or self._lost_pipeline
        header |= {"output": self.output, "exact": self.exact}
        files.write(path, KIND, arrays, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TreeExplainer:
        """Read a .fshap file that `save` wrote; the tables stay memory-mapped."""
        return files.load(path, KIND, cls._from_contents)

    @classmethod
    def _from_contents(cls, contents: files.Contents) -> TreeExplainer:
        explainer = cls.__new__(cls)
        names, players = contents.header["feature_names"], contents.header["player_names"]
        what = (contents.header.get("output", "raw"), contents.header.get("exact", False))
        engine = engine_from_contents(contents)
        if (len(names), len(players)) != (engine.ensemble.n_features, engine.n_players):
            raise FileFormatError("the file is damaged: it has not as many names as features and players.")
        explainer._set(engine, tuple(names), tuple(players), None, *what)
        explainer._lost_pipeline = bool(contents.header.get("pipeline", False))
        return explainer


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}.")
