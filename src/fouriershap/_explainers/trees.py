"""`TreeExplainer`: the front door for tree models."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import Progress, check_choice, check_device, check_number, check_progress
from fouriershap._base.errors import InputError, ModelWarning
from fouriershap._base.files import Contents
from fouriershap._base.headers import require, take
from fouriershap._base.parallel import Watch, count_jobs
from fouriershap._base.short import short
from fouriershap._base.warn import warn
from fouriershap._explainers.base import Explainer
from fouriershap._explainers.calling import in_shap_words
from fouriershap._explainers.explanation import make_explanation, without_single_output
from fouriershap._explainers.referee import CHECKS, check_reading
from fouriershap._explainers.tree_setup import (
    PRECISIONS,
    Settings,
    check_unknown,
    choose_trees,
    entered_background,
    name_features,
    native_rows,
    read_or_refuse,
    weighed_rows,
)
from fouriershap._rows.frames import Rows, as_rows, densified, in_order, is_sparse
from fouriershap._rows.opening import Opened
from fouriershap._rows.pipelines import LOST_PIPELINE, rows_of_inputs
from fouriershap._rows.players import find_players
from fouriershap._shapley.engine import Engine, check_additivity
from fouriershap._shapley.indices import INDICES
from fouriershap._shapley.interactions import interaction_values
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.rows import absent_is_missing, to_rows

if TYPE_CHECKING:
    from fouriershap._explainers.outputs import Fitted, Rescaled
    from fouriershap._explainers.saved_steps import Before

_PERTURBATIONS = ("auto", "interventional", "tree_path_dependent")
_METHODS = ("auto", "tables", "stream", "walk")


class TreeExplainer(Explainer):
    """Exact SHAP values of tree ensembles; a drop-in for ``shap.TreeExplainer``.

    Parameters
    ----------
    model : estimator, booster, Pipeline, or path
        A tree model of scikit-learn, XGBoost, LightGBM or CatBoost, or the path of a saved one; sums of such models
        (see ``docs/trees.md``); or a scikit-learn Pipeline, search or other wrapper around one. Background and rows
        are a pipeline's inputs.
    background : array or data frame, optional
        Rows that stand for "feature unknown"; any number, all of them are used. After the first calls the
        number of background rows costs nothing per explained row.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent"}
        "auto" is interventional where a background is given, else tree_path_dependent. The latter takes the
        shares of the training rows in the trees for a background; with one that is given, as in shap, the shares of
        its rows, and below nodes that none of them reaches those of training.
    output : {"raw", "probability", "response", "log_loss"}, or int
        What is explained: the model's raw output (margins; class probabilities for scikit-learn's forests), the
        probability, what ``predict`` returns (beside probabilities that is the exponential of a log link: Poisson,
        Gamma, Tweedie, the risk of Cox, the time of AFT), or the loss (`shap_values` then takes labels ``y``). The last
        three are the values of the margin, rescaled per background row as in shap, and cost a walk per row and
        background row. A number is one of the raw outputs, from 0.
    exact : bool
        With ``output="probability"`` or ``"response"``: SHAP values of that itself, by the definition where players and
        background rows are few, else by a fitted representation with its `fidelity`.
    tree_limit : int, optional
        Explain a boosted model as it was after its first so many trees: of several outputs that have trees of their own
        a multiple of these. By default all that the model itself predicts with.
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
    method : {"auto", "tables", "stream", "walk"}
        "tables" compiles look-up tables at once. "stream" builds those of a few leaves at a time, lets all rows read
        them, and drops them: for deep trees and many rows, in little memory. "walk" compares pairs of rows. "auto"
        takes what is expected to be quickest, and builds tables to keep when that has come to pay.
    memory : float, optional
        Budget of the tables in bytes; None for a quarter of the machine's memory.
    n_jobs : int, optional
        Threads; None for every core.
    device : {"cpu", "jax"}
        Where rows are explained: by the native kernels, or under XLA on whatever device JAX has (the tables
        are then built at the first call). Files do not remember it; see `to`.
    check : {"model", "off"}
        "model" asks the model itself for its raw output of some 30 background rows (of rows at the thresholds of its
        trees, where there is no background, or its library refuses it) and compares it with our reading, once, here:
        a difference beyond rounding is an error. Nothing is compared where there is no live model (a path, a
        `TreeEnsemble`), or its library answers no such rows; `checked` tells. "off" saves the milliseconds.
    progress : bool or callable, optional
        Whether long calls tell how far they are; see `Explainer`.
    data, model_output, ...
        shap's words for these are understood as keywords.

    Attributes
    ----------
    checked : bool
        Whether our reading was compared with the model itself when this explainer was made. False in what was loaded
        from a file.

    Raises
    ------
    UnsupportedModelError
        The model cannot be read, or what it says itself is not what we read.

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

    _kind = "tree explainer"
    checked: bool = False
    _before: Before | None = None  # what a Pipeline does before its trees
    _tried: Any = None  # rows on which its steps are tried out before they are saved
    _inputs: tuple[str, ...] | None = None  # its input columns, where they are the players
    _reading: tuple[Opened, TreeEnsemble] | None = None  # of a model that the front door has read already
    _lost_pipeline: bool = False  # a file held the trees of a Pipeline, not what comes before them

    @in_shap_words
    def __init__(
        self,
        model: Any,
        background: Any = None,
        *,
        feature_perturbation: str = "auto",
        output: str | int = "raw",
        exact: bool = False,
        tree_limit: int | None = None,
        feature_names: ArrayLike | None = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        index: str = "shapley",
        precision: str = "single",
        method: str = "auto",
        memory: int | float | None = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        check: str = "model",
        progress: Progress = None,
    ) -> None:
        check_device(device)
        check_choice("feature_perturbation", feature_perturbation, _PERTURBATIONS)
        check_choice("precision", precision, tuple(PRECISIONS))
        check_choice("method", method, _METHODS)
        check_choice("check", check, CHECKS)
        check_choice("index", index, INDICES)
        count_jobs(n_jobs)
        self.progress = check_progress(progress)
        opened, ensemble = self.__dict__.pop("_reading", None) or read_or_refuse(model)
        before = opened.before
        ensemble, limited, only, output = choose_trees(opened, ensemble, output, tree_limit)
        given, entered = entered_background(background, ensemble, before)
        check_unknown(feature_perturbation, entered, ensemble)
        ensemble, names = name_features(feature_names, ensemble, entered, before)
        player, player_names, inputs = np.arange(len(names), dtype=np.int32), names, None
        if groups is not None:
            player, player_names, inputs = find_players(groups, names, before, given)
        rows, share = weighed_rows(entered, weights, ensemble)
        by_path = feature_perturbation == "tree_path_dependent"
        settings = Settings(rows, share, by_path, player, memory, precision, method, index)
        engine = settings.engine(ensemble)
        checked = check == "model" and check_reading(opened, engine, entered, only)
        if limited is not None:  # of a model that was read right, some trees are right
            engine = settings.engine(limited.replace(feature_names=ensemble.feature_names))
        self._set(engine, names, player_names, n_jobs, output, exact)
        self._before, self._inputs, self.checked = before, inputs, checked
        self._tried = None if before is None else before.first_rows(given)
        self.has_pipeline = before is not None
        if device != "cpu":  # outputs beyond the margin have no tables to move, and say so
            self._engine = self._engine.to(device)

    def _set(
        self,
        trees: TreeEngine,
        names: tuple[str, ...],
        player_names: tuple[str, ...],
        n_jobs: int | None,
        output: str,
        exact: bool,
    ) -> None:
        self.output, self.exact, self.output_names = output, exact, trees.ensemble.output_names
        self._engine = trees
        if not isinstance(output, str) or output != "raw" or exact is not False:
            from fouriershap._explainers.outputs import make_output  # and with it all that black boxes need

            self._engine = make_output(trees, output, exact)
        self.feature_names, self.player_names, self.n_jobs = names, player_names, n_jobs

    @property
    def _trees(self) -> TreeEngine:
        """Of the raw output; `_engine` explains what was asked for."""
        engine = self._engine
        return engine if isinstance(engine, TreeEngine) else engine.engine  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        facts = self._trees.describe()
        state = "not compiled"
        if facts["n_tables"]:
            state = f"{facts['n_tables']} tables, {facts['table_bytes'] / 1e6:.1f} MB"
        return f"TreeExplainer({self.ensemble!r}, {self.feature_perturbation}, {state})"

    @property
    def feature_perturbation(self) -> str:
        """What stands for "feature unknown": a background ("interventional"), or shares in the trees."""
        return "tree_path_dependent" if self._trees.describe()["by_path"] else "interventional"

    @property
    def ensemble(self) -> TreeEnsemble:
        """The model as plain arrays."""
        return self._trees.ensemble

    def expected_loss(self, y: float) -> float | NDArray[np.float64]:
        """Mean loss of the background, were all of it labelled ``y``: what the values of such a row add to."""
        if self.output != "log_loss":
            raise InputError(f"expected_loss is for output='log_loss'; this has output={short(self.output)}.")
        label = int(y) if isinstance(y, bool | np.bool_) else y
        expected = cast("Rescaled", self._engine).expected_with(check_number("y", label))
        return float(expected[0]) if len(expected) == 1 else expected

    @property
    def fidelity(self) -> Any:
        """With ``exact=True``: how well the representation stands for the probability; None if it is exact."""
        return cast("Fitted", self._engine).fit[1] if self._is_fitted else None

    @property
    def _is_fitted(self) -> bool:
        return getattr(self._engine, "is_fitted", False)

    @property
    def input_names(self) -> tuple[str, ...] | None:
        if self._before is not None:
            return self._before.known_names()
        return self.ensemble.feature_names or super().input_names

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        if self._before is not None:
            return self._before.known_labels()
        names = self.input_names
        return {} if names is None else {names[f]: known for f, known in self.ensemble.vocabularies.items()}

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
            Or one row, as an array (n_features,) or a pandas Series: its values come back without the first axis. Or a
            ``xgboost.DMatrix`` or ``catboost.Pool`` whose data can be had.
        y : array_like, shape (n_rows,), optional
            Labels, for ``output="log_loss"``: 0 and 1 for a classifier.
        check_additivity : bool
            Compare the sums with what the trees, as we read them, say of the rows (see `__call__`).
        tolerance : float
            Largest difference, as a share of the scale of the outputs.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        X, is_one = as_rows(X)
        rows = self._read(X)
        values, _ = self._checked(rows, y, check_additivity, tolerance, self._jobs(n_jobs))
        values = without_single_output(values)
        return values[0] if is_one else values

    def __call__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        interactions: bool = False,
        check_additivity: bool = True,
        tolerance: float = 1e-4,
    ) -> Any:
        """Explain rows as a ``shap.Explanation``, for every plot of shap.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_features)
        y : array_like, shape (n_rows,), optional
            Labels, for ``output="log_loss"``.
        interactions : bool
            Whether the values are those of pairs, see `shap_interaction_values`.
        check_additivity : bool
            Check that values and expected value add up to what the trees, as we read them, say of the rows. The model
            itself is not asked again: where `checked`, it was when the explainer was made, on other rows.
        tolerance : float
            Largest difference, as a share of the scale of the outputs.

        Raises
        ------
        AdditivityError
            With the row, the difference, and the likely causes.
        """
        begin = time.perf_counter()
        X, is_one = as_rows(X)
        rows = self._read(X)
        if interactions:
            if y is not None:
                raise InputError("y was given, but losses have no interactions.")
            found = interaction_values(
                self._engine, rows.codes, self.player_names, None, None, self.n_jobs, False
            )
            values, expected = cast("NDArray[np.float64]", found), self._engine.expected
            if check_additivity:
                self._check_sums(values.sum(axis=2), rows, tolerance)
        else:
            values, engine = self._checked(rows, y, check_additivity, tolerance, self.n_jobs)
            expected = engine.expected
        names = self.player_names, self.output_names
        explanation = make_explanation(rows, values, expected, *names, time.perf_counter() - begin)
        return explanation[0] if is_one else explanation

    def _check_sums(self, values: NDArray[np.float64], rows: Rows, tolerance: float) -> None:
        if self._engine.index == "shapley" and not self._is_fitted:
            outputs = self._engine.predict(rows.codes, self.n_jobs)
            tolerance = check_number("tolerance", tolerance, 0)
            check_additivity(values, self._engine.expected, outputs, tolerance, self.checked)

    def _checked(
        self, rows: Rows, y: ArrayLike | None, check: bool, tolerance: float, n_jobs: int | None
    ) -> tuple[NDArray[np.float64], Engine]:
        """Values, and the engine that they are of; where ``check`` says so, compared with the outputs of the rows."""
        tolerance = check_number("tolerance", tolerance, 0)
        engine = self._engine
        if self.output == "log_loss":
            engine = cast("Rescaled", engine).labelled(y, len(rows))
        elif y is not None:
            raise InputError(
                f"y was given, but only output='log_loss' has labels; this is {short(self.output)}."
            )
        # Not the sums of another index, or of another function than the one that is fitted.
        adds_up = check and engine.index == "shapley" and not self._is_fitted
        outputs = np.empty((len(rows), engine.n_outputs)) if adds_up else None
        with Watch(self.progress):
            values = engine.shap_values(rows.codes, n_jobs, outputs)
        if outputs is not None:
            check_additivity(values, engine.expected, outputs, tolerance, self.checked)
        return values, engine

    def _code_players(self) -> NDArray[np.int32]:
        return self._trees.model.player

    def _output_link(self) -> str | None:
        objective = self.ensemble.objective
        if self.output == "probability" or objective == "probability":
            return "identity"
        return "logit" if self.output == "raw" and objective in ("binary", "multiclass") else None

    def _read(self, X: Any, name: str = "X") -> Rows:
        """Rows through the pipeline, where there is one, and as the trees compare them: both once."""
        X = in_order(native_rows(X, name), self.input_names)
        prepared = X if self._before is None else self._before.transform(X, name)
        model = self._trees.model
        entered = prepared
        if is_sparse(prepared):
            entered = densified(prepared, absent_is_missing(model.ensemble, name))
        try:
            codes = to_rows(entered, model.ensemble, name)
        except InputError as error:
            if not self._lost_pipeline:
                raise
            raise InputError(f"{error} {LOST_PIPELINE}") from error
        if self._inputs is None:
            return Rows(codes, entered, model.player, self.feature_names)
        return rows_of_inputs(codes, X, entered, self._inputs, self.player_names)

    def _header(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        had_pipeline = self.has_pipeline or self._lost_pipeline
        header = {"pipeline": had_pipeline, "output": self.output, "exact": self.exact}
        if self._before is not None:
            from fouriershap._explainers.saved_steps import steps_for_file

            header |= steps_for_file(self._before, self._tried, self._inputs, self.ensemble.absent_is_missing)
        return {}, header

    @classmethod
    def _from_contents(cls, contents: Contents) -> TreeExplainer:
        explainer, header = cls.__new__(cls), contents.header
        names, players = (take(header, key, tuple[str, ...]) for key in ("feature_names", "player_names"))
        what = (take(header, "output", str, "raw"), take(header, "exact", bool, False))
        engine = TreeEngine.from_contents(contents.arrays, header)
        as_many = (len(names), len(players)) == (engine.ensemble.n_features, engine.n_players)
        require(as_many, "it has not as many names as features and players")
        explainer._set(engine, names, players, None, *what)
        lost = explainer._engine is not engine and engine.background.is_lost
        require(not lost, f"output {short(what[0])} needs a background, which is not there")
        if "steps" in header:
            from fouriershap._explainers.saved_steps import steps_from_file

            explainer._before, explainer._inputs = steps_from_file(header, len(names), players)
            explainer.has_pipeline = True
        explainer._lost_pipeline = take(header, "pipeline", bool, False) and not explainer.has_pipeline
        if explainer._lost_pipeline:
            warn(LOST_PIPELINE, ModelWarning)
        return explainer
