"""`Explainer`: names, an `InputAdapter` and an `Engine`, put together. It does not compute."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base import files
from fouriershap._base.answers import AnswersOption
from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import (
    ProgressOption,
    check_bool,
    check_device,
    check_int,
    check_number,
    check_weights,
    copy_if_shared,
)
from fouriershap._base.errors import InputError
from fouriershap._base.html import facts_table
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._base.parallel import count_jobs
from fouriershap._base.progress import Progress
from fouriershap._explainers.batches import BatchWriter, OutputColumn, check_ids
from fouriershap._explainers.explanation import make_explanation, make_frame, without_single_output
from fouriershap._explainers.parts import Parts, warn_of_compression
from fouriershap._rows.batch import open_batch
from fouriershap._rows.frames import Rows, as_rows, some_columns, unmask
from fouriershap._rows.inputs import InputAdapter
from fouriershap._shapley.engine import Engine, EngineInfo, Estimates, FidelityReport, Plan, Quality
from fouriershap._shapley.engine import check_additivity as check_sums
from fouriershap._shapley.indices import title
from fouriershap._shapley.interactions import find_pairs, interaction_matrices, pair_interactions
from fouriershap.analysis.cohorts import cohorts
from fouriershap.analysis.dependence import partial_dependence
from fouriershap.analysis.drift import drift
from fouriershap.analysis.effects import effects
from fouriershap.analysis.explainer import output_names
from fouriershap.analysis.importance import importance
from fouriershap.analysis.interactions import interactions
from fouriershap.analysis.reasons import reasons
from fouriershap.report import write_report

if TYPE_CHECKING:
    from fouriershap._blackbox.black_box_fit import BlackBoxFit


_ROWS = 1000  # that a notebook shows the costs of


@check_arguments
class Explainer:
    """A model and a background, ready to explain rows.

    ``Explainer(model, background)`` inspects the model and builds the matching explainer, like these functions:
    `TreeExplainer` for tree models, sums of them, and wrappers around them (Pipelines, searches), `ProductExplainer`
    for linear models, kernel machines and small networks, `SpectrumExplainer` for a `Spectrum`, and
    `BlackBoxExplainer` for functions and any other object that predicts. All of them return an `Explainer`. A tree
    model that cannot be read exactly is explained as a black box, and a `ModelWarning` says why.

    Parameters
    ----------
    model : object
        What is explained: a fitted model, the path of a saved one, a `Spectrum`, or a function of rows.
    background : array or data frame, optional
        Rows that stand for "feature unknown"; all of them are used. Only tree models do without.
    output : {"raw", "probability", "response"}, a loss such as "log_loss", or int, optional
        What is explained, by default the raw output; a number selects one of several; of trees, so does the name
        of a class. Black boxes are explained in what they return.
    groups : mapping or sequence, or "input" or "encoded", optional
        Columns that act as one player: ``{"name": [columns]}`` or one group name per column. A Pipeline is explained
        in its own input columns ("input", the default), or in the features that enter its final model ("encoded").
    weights : array_like, optional
        A weight per background row.
    feature_names : sequence of str, optional
        By default those of the model, else of the background, else "Feature 0", ...
    output_names : str or sequence of str, optional
        What the outputs are called in tables, plots, reasons and reports, by default the model's classes. One name of
        a classifier with two classes is that of the positive one: "default" makes "probability of default".
    coalitions : {"whole", "owen", "ordered"}
        "owen": the columns of a group get values of their own, which add up to the value of the group.
    causal_order : list of lists, optional
        All players, causes first: values are then asymmetric Shapley values.
    index : {"shapley", "banzhaf"}
        How coalitions are averaged.
    n_jobs : int
        Threads; -1 for all cores.
    progress : bool or callable, optional
        Whether long calls report progress. None: after two seconds, by a line on the standard error, which is kept up
        to date. True: at once. False: never. A function is called with (done, total), in percent of a stage; if it
        has a parameter ``stage``, it gets a `Stage` as well.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent", "conditional"}
        What stands for unknown features: the background; without one, the training rows in the trees. "conditional":
        they follow the known ones, under a model of their dependence (see ``docs/correlated-features.md``).
    dependence : {"auto", "gaussian", "copula", "mixture", "data"}
        Of conditional values; fitted to the background or to ``data``. "gaussian": a Gaussian of the numbers.
        "copula": a Gaussian of the normal scores of their ranks, for skewed numbers. "mixture": several Gaussians,
        within each of which labels and missing values are independent. "auto": the simplest of those whose
        conditional means are nearest to the outputs of held-out rows, within two standard errors;
        ``quality.dependence`` compares them. "data": no model, but boosted trees that learn the mean output from rows
        with unknown features; for thousands of rows.
    data : array or data frame, optional
        Rows that a dependence, or a representation of a black box, is fitted to; by default the background.
    tolerance : float
        Largest standard error of estimated values, as a share of the row's largest value.
    random_state : int, optional
        The same number draws the same rows.
    confounded : bool or list of bool, optional
        With ``causal_order`` and a dependence: causal values (see ``docs/owen-and-asymmetric.md``). A known feature is
        *set* to its value, which acts on later groups alone, and on its own group unless that is confounded: whether
        each is, or one bool for all. All orders count; with ``coalitions="ordered"`` only those that respect the chain.
    exact, tree_limit, precision, strategy, memory
        Of tree models (the last three also of a spectrum): see `TreeExplainer` and `SpectrumExplainer`.
    compress_background
        Of linear models, kernel machines and networks: see `ProductExplainer`.
    check, device
        Of models that are read: whether the model is asked if fouriershap's copy of it agrees, and where rows are
        explained ("cpu" or "jax"): see `TreeExplainer`.
    max_queries, max_seconds, categorical, batch_size, answers
        Of black boxes: see `BlackBoxExplainer`.
    **shap_names
        shap's names for these, such as ``masker`` and ``model_output``. Any other argument, and one that explainers
        of the model at hand do not take, is an error.

    Attributes
    ----------
    inputs : InputAdapter
        How the caller's rows become what the engine takes: columns, Pipeline, labels, players.
    engine : Engine
        What computes: the representation of the model against the background.
    kind : {"trees", "products", "spectrum", "black box"}
    output_names : tuple of str, optional
        Names of the outputs: those that were given, or the model's, such as its classes; for a binary classifier with
        one output, the positive class.
    class_labels : tuple of str, optional
        The model's own names of its classes, as labels of rows have them.
    fitted : BlackBoxFit or None
        The representation that `fit` fitted to a black box, with its fidelity; None for other explainers.
    checksum : str or None
        Checksum of the file that this explainer was loaded from.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    >>> fs.Explainer(model, X).kind, fs.Explainer(lambda rows: rows[:, 0], X).kind
    ('trees', 'black box')
    """

    def __init__(
        self,
        model: Any = None,
        background: Any = None,
        *,
        output: str | int | None = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
        output_names: str | ArrayLike | None = None,
        coalitions: str = "whole",
        causal_order: Any = None,
        index: str = "shapley",
        n_jobs: int = -1,
        progress: ProgressOption = None,
        feature_perturbation: str = "auto",
        dependence: str = "auto",
        data: Any = None,
        tolerance: float = 0.02,
        random_state: int | None = None,
        confounded: Any = None,
        exact: bool = False,
        tree_limit: int | None = None,
        precision: str | None = None,
        strategy: str | None = None,
        memory: float | None = None,
        compress_background: bool = True,
        check: bool = True,
        device: str = "cpu",
        max_queries: int | None = None,
        max_seconds: float | None = 600.0,
        categorical: Any = None,
        batch_size: int = 8192,
        answers: AnswersOption = None,
        **shap_names: Any,
    ) -> None:
        if isinstance(model, Parts):
            parts = model
        else:
            from fouriershap._explainers.dispatch import build_parts

            # A kind of model takes some of the options: only those that are not at their default reach its builder.
            given, defaults = locals(), _option_defaults()
            options = {name: given[name] for name, default in defaults if given[name] is not default}
            options |= shap_names
            with explaining_unfinished_fits():
                parts = build_parts(model, background, options)
        self._parts = parts
        self._offline: tuple[Any, Explainer] | None = None
        self.kind = parts.kind
        self.inputs: InputAdapter = parts.inputs
        self.engine: Engine = parts.engine
        self.output_names = parts.given_names or parts.output_names
        self.class_labels = parts.output_names
        self.n_jobs = parts.n_jobs
        self.progress: ProgressOption = parts.progress
        self.fitted: BlackBoxFit | None = parts.fitted
        self.checksum = parts.checksum
        self.model_name = parts.model_name

    def __repr__(self) -> str:
        info = self.info
        facts = [self.kind if not self.model_name else f"{self.kind} of {self.model_name}"]
        if not self.engine.output.is_raw:
            facts.append(f"{self.engine.output.name} ({_precision_text(self.engine.quality)})")
        facts += [info.which_values] if info.which_values else []
        facts += [] if self.fitted is None else [repr(self.fitted)]
        background = "path-dependent" if info.is_path_dependent else "background in tables"
        if info.n_background is not None:
            background = f"{info.n_background:,} background rows"
        tables = f", {info.n_tables:,} tables" if info.n_tables else ""
        return f"Explainer({', '.join(facts)}, {background}{tables})"

    def _repr_html_(self) -> str:
        """Return what notebooks show: what is explained, against what, how well, at what price."""
        n_columns, n_players, info = len(self.feature_names), len(self.player_names), self.info
        facts = {"Model": self.model_name or info.model or self.kind, "Read as": self.kind}
        facts["Explained"] = f"{self.engine.output.name} output" if self.engine.output.is_raw else self.output
        if info.which_values:
            facts["Values"] = info.which_values
        if self.output_names is not None:
            facts["Outputs"] = truncated_list(self.output_names)
        facts["Features"] = f"{n_players:,}" + (f", made of {n_columns:,} columns" * (n_columns != n_players))
        facts["Background"] = (
            "compiled into the tables" if info.n_background is None else f"{info.n_background:,} rows"
        )
        if info.is_path_dependent:
            facts["Background"] = "none: path-dependent values, from the training rows in the trees"
        facts["Quality"] = (
            repr(self.fitted) if self.fitted is not None else _quality_text(self.engine.quality)
        )
        plan = self.plan(_ROWS)
        seconds = plan.seconds
        cost = "" if np.isnan(seconds) else f"about {seconds:.2g} s on one core, "
        facts[f"{_ROWS:,} rows"] = f"{cost}by {plan.strategy}: {plan.reason}"
        return facts_table("Explainer", facts)

    # What is explained

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns that the model reads."""
        return self.inputs.feature_names

    @property
    def player_names(self) -> tuple[str, ...]:
        """Names of what gets a value: columns, or groups of them."""
        return self.inputs.player_names

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """Names by which the columns of a data frame are found; None if columns have positions only."""
        return self.inputs.input_names

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        """Labels that the model knows, by column; other columns hold numbers.

        Empty for columns that enter a live Pipeline and for columns without names.
        """
        return self.inputs.known_labels

    @property
    def has_pipeline(self) -> bool:
        """Whether rows go through the steps of a Pipeline before they are explained."""
        return self.inputs.preprocessing is not None

    @property
    def representation(self) -> Any:
        """The model as plain data: a `TreeEnsemble`, `Products`, `Waves`, or the terms of a spectrum."""
        return self.engine.representation if self.fitted is None else self.fitted.representation

    @property
    def feature_perturbation(self) -> str:
        """What stands for "feature unknown": a background ("interventional"), a dependence, or shares in the trees."""
        if self.info.is_conditional:
            return "conditional"
        return "tree_path_dependent" if self.info.is_path_dependent else "interventional"

    @property
    def output(self) -> str:
        """What is explained: "raw", "probability", "response" or "log_loss"."""
        return self.engine.output.name

    @property
    def checked(self) -> bool:
        """Whether the model itself answered some of the caller's rows, and fouriershap's copy of it agreed.

        False after loading, and where there is no live model to ask.
        """
        return self.inputs.check is not None and self.inputs.check.answered

    @property
    def quality(self) -> Quality:
        """Whether values are exact, and otherwise how large their errors are."""
        quality, fit = self.engine.quality, self.fitted
        return quality if fit is None else Quality(quality.background_error, lambda: fit.fidelity)

    @property
    def fidelity(self) -> FidelityReport | None:
        """How well a fitted representation stands for the model (`Fidelity`); None if nothing was fitted."""
        return self.quality.fidelity

    @property
    def info(self) -> EngineInfo:
        """Facts about the representation, its tables and its background."""
        return replace(self.engine.info, values=title(self.engine.index))

    @property
    def expected_value(self) -> float | NDArray[np.float64]:
        """Mean output over the background; an array if there are several outputs."""
        expected = self.engine.expected
        return float(expected[0]) if len(expected) == 1 else expected.copy()

    def expected_loss(self, y: float) -> float | NDArray[np.float64]:
        """Return the mean loss of the background if all of it were labelled ``y``.

        With ``output="log_loss"`` the values of a row with that label add up to its loss minus this.
        """
        label = check_number("y", int(y) if isinstance(y, bool | np.bool_) else y)
        expected = self.engine.labelled([label], 1).expected[0]
        return float(expected[0]) if len(expected) == 1 else np.asarray(expected)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the output that the values add up to: (n_rows,) or (n_rows, n_outputs)."""
        return without_single_output(self.engine.predict(self.inputs.encode(X).codes, self.n_jobs))

    # How it is explained

    def plan(self, n_rows: int | None = None) -> Plan:
        """Return how ``n_rows`` rows would be explained, and why; None stands for any number."""
        if n_rows is not None:
            check_int("n_rows", n_rows, 0, ", or None for any number")
        return self.engine.plan(n_rows)

    def compile(self) -> Self:
        """Build the look-up tables now; by default they are built as soon as they pay."""
        with Progress(self.progress):
            self.engine.build(self.n_jobs)
        return self

    def to(self, device: str) -> Self:
        """Return the same explainer on the native kernels ("cpu") or under XLA ("jax")."""
        engine = self.engine.to(check_device(device))
        return self._with(engine, None if self.fitted is None else self.fitted.with_engine(engine))

    def with_background(self, background: Any, *, weights: ArrayLike | None = None) -> Self:
        """Return an explainer of the same model against another background.

        A representation is kept, and only what depends on the background is compiled again. A black box that was not
        fitted is asked about the new background rows.
        """
        if background is None:
            raise InputError("background is None; give background rows, as to the constructor.")
        if self.fitted is not None:
            fit = self.fitted.with_background(background, weights=weights)
            return self._with(fit.engine, fit)
        rows = self.inputs.encode(unmask(background), "background")
        share = check_weights(weights, len(rows))
        return self._with(self.engine.with_background(copy_if_shared(rows.codes, background), share))

    def _with(self, engine: Engine, fit: BlackBoxFit | None = None) -> Self:
        """Return a copy with another engine, and the fit that it belongs to."""
        other = copy(self)
        other.engine, other.fitted, other.checksum = engine, fit, None
        other._parts, other._offline = replace(self._parts, engine=engine, fitted=fit), None
        if fit is None:
            warn_of_compression(engine)
        return other

    def fit(
        self,
        rows: Any = None,
        *,
        budget: int = 20_000,
        method: str = "auto",
        n_terms: int | None = None,
        max_degree: int | None = None,
    ) -> Explainer:
        """Fit a representation to a black box now, and return an explainer of that, which does not need the model.

        It explains a row in microseconds, computes interactions, and can be saved. Its values have no errors of their
        own. `fidelity` tells how good they are: ``fidelity.shap`` at rows that took no part, those of ``data=`` or of
        the background.

        Parameters
        ----------
        rows : array or data frame, optional
            Rows that will be explained, if they are known: four fifths of the queries then lie between these and the
            background, so that the values of these rows are more accurate.
        budget : int
            Most rows that the model is asked about. If it covers every combination of levels, all are asked, and
            values are exact.
        method : {"auto", "enumerate", "waves", "trees", "blend", "swht"}
            What is fitted. "enumerate" asks about every combination of levels; "waves" fits a sum of cosines
            (`Waves`), "trees" boosts trees on level codes; "blend" is both together, weighted by K-fold; "swht" finds
            the terms of the model's spectrum by a sparse Walsh-Hadamard transform. "auto" enumerates if the budget
            allows, else takes the best by K-fold R^2 of waves, trees and their blend; it tries "swht" if levels are
            few and the model looks sparse.
        n_terms, max_degree : int, optional
            "swht": most terms of the spectrum, and most bits that a term depends on.

        Raises
        ------
        InputError
            The model is not a black box, or cannot be asked since this explainer was loaded from a file.
        """
        if self._parts.fit is None:
            raise InputError(
                "there is nothing to fit: "
                + (
                    "this explainer was fitted already."
                    if self.fitted is not None
                    else "the model was read exactly."
                )
            )
        options = {"budget": budget, "method": method, "n_terms": n_terms, "max_degree": max_degree}
        with explaining_unfinished_fits():
            return Explainer(self._parts.fit(self._parts, rows, options))

    def offline(self, rows: Any) -> Explainer:
        """Return an explainer of a representation: this one, or, of a black box, one that is fitted to these rows.

        Other columns of the rows are left out; of a stream, whose rows are not known yet, those at hand are taken.
        Analyses of many rows use it: `drift`, `importance`, `cohorts`, `interactions` and `report`.
        """
        if self._parts.fit is None:
            return self
        if self._offline is None or self._offline[0] is not rows:
            logging.getLogger("fouriershap").info("fitting a representation, which the analysis uses")
            fitted = self.fit(some_columns(rows, self.input_names) if hasattr(rows, "shape") else None)
            self._offline = (rows, fitted)
        return self._offline[1]

    # Values of rows

    def shap_values(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        check_additivity: bool = False,
        tolerance: float = 1e-4,
        n_jobs: int | None = None,
        errors: bool = False,
    ) -> Any:
        """Explain rows.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
            Or one row, as an array (n_columns,), a dict or a pandas Series: its values come back without the first
            axis. Every method takes a dict, a list of dicts and a Series where columns have names. Data containers of
            XGBoost and CatBoost are accepted if they give their rows back.
        y : array_like, shape (n_rows,), optional
            Labels, for ``output="log_loss"``: 0 and 1 for a classifier.
        check_additivity : bool
            Whether to compare the sums of the values with the outputs of the rows, and raise an `AdditivityError` if
            they differ.
        tolerance : float
            Largest difference that ``check_additivity`` accepts, as a share of the scale of the outputs.
        n_jobs : int, optional
            Threads; by default those of the explainer.
        errors : bool
            Whether to return standard errors as well: those of a black box that is asked itself; 0 where values are
            exact.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
            With ``errors``: a tuple of two, values and errors.
        """
        X, is_one = as_rows(X)
        read = self.inputs.encode(X, is_stream=is_one)
        _, found = self._explain(read, y, check_additivity, tolerance, self._jobs(n_jobs))
        values, spread = (None if each is None else without_single_output(each) for each in found)
        assert values is not None
        if check_bool("errors", errors) and spread is None:
            raise InputError(
                "errors is True, but values of a fitted representation, or of dependence='data', have no errors of "
                "their own. `fidelity` tells how good a representation is."
            )
        first = values[0] if is_one else values
        if not errors:
            return first
        assert spread is not None
        return first, spread[0] if is_one else spread

    def __call__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        interactions: bool = False,
        check_additivity: bool = False,
        tolerance: float = 1e-4,
    ) -> Any:
        """Explain rows as a ``shap.Explanation``, for every plot of shap.

        Parameters
        ----------
        X, y, check_additivity, tolerance
            As in `shap_values`.
        interactions : bool
            Whether the values are those of pairs, as in `shap_interaction_values`.
        """
        begin, given = time.perf_counter(), X
        X, is_one = as_rows(X)
        rows = self.inputs.encode(X, is_stream=is_one)
        if interactions:
            if y is not None:
                raise InputError("y cannot be combined with interactions=True: losses have no interactions.")
            if self._parts.fit is not None:
                return self.offline(X)(given, interactions=True, check_additivity=check_additivity)
            engine, errors = self.engine, None
            with Progress(self.progress):
                values = interaction_matrices(engine, rows.codes, self.n_jobs)
            tolerance = check_number("tolerance", tolerance, 0)
            if check_additivity and engine.adds_up:
                outputs = engine.predict(rows.codes, self.n_jobs)
                check_sums(values.sum(axis=2), engine.expected, outputs, tolerance, self.checked)
        else:
            engine, (values, errors) = self._explain(rows, y, check_additivity, tolerance, self.n_jobs)
        seconds = time.perf_counter() - begin
        explanation = make_explanation(
            rows, values, errors, engine.expected, self.player_names, self.output_names, seconds
        )
        return explanation[0] if is_one else explanation

    def _explain(
        self, rows: Rows, y: ArrayLike | None, check: bool, tolerance: float, n_jobs: int
    ) -> tuple[Engine, Estimates]:
        """Return the engine for rows with these labels, and their values with errors."""
        tolerance = check_number("tolerance", tolerance, 0)
        engine = self.engine.labelled(y, len(rows))
        can_check = check and engine.adds_up
        outputs = np.empty((len(rows), engine.n_outputs)) if can_check else None
        with Progress(self.progress):
            found = engine.estimate(rows.codes, n_jobs, outputs)
        if self.fitted is not None and not self.fitted.fidelity.exact:
            found = Estimates(found.values, None)  # its errors are unknown
        if outputs is not None:
            check_sums(found.values, engine.expected, outputs, tolerance, self.checked)
        return engine, found

    def _jobs(self, n_jobs: int | None) -> int:
        return self.n_jobs if n_jobs is None else n_jobs

    def shap_interaction_values(
        self, X: Any, *, pairs: Any = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the interactions of pairs of players: the Shapley interaction index, in shap's convention.

        The entry [i, j] of a row's matrix, i != j, is half of the interaction of players i and j, so that [i, j] and
        [j, i] together are the whole. The diagonal holds the main effects. A row of the matrix sums to the player's
        SHAP value. `interactions` gives the strongest pairs, and larger sets.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        pairs : sequence of pairs, optional
            Players by name or position: only these pairs are computed.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Returns
        -------
        ndarray, shape (n_rows, n_players, n_players) or (n_rows, n_players, n_players, n_outputs)
            With ``pairs``: (n_rows, n_pairs) or (n_rows, n_pairs, n_outputs), the entries [i, j].
        """
        if self._parts.fit is not None:
            return self.offline(as_rows(X)[0]).shap_interaction_values(X, pairs=pairs, n_jobs=n_jobs)
        X, is_one = as_rows(X)
        codes = self.inputs.encode(X, is_stream=is_one).codes
        with Progress(self.progress):
            if pairs is None:
                found = interaction_matrices(self.engine, codes, self._jobs(n_jobs))
            else:
                wanted = find_pairs(pairs, self.player_names)
                found = pair_interactions(self.engine, codes, wanted, self._jobs(n_jobs))
        found = without_single_output(found)
        return found[0] if is_one else found

    def frame(self, X: Any, top_k: int | None = None) -> Any:
        """Return the contributions of each row as a tidy table, largest first.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        top_k : int, optional
            Players per row (and output); None for all.

        Returns
        -------
        data frame
            In the library of X (pandas with its index, polars, pyarrow); for arrays the first one that is installed.
            Columns: ``row`` (position in X), ``output`` if there are several or they were named, ``feature``, ``value``
            (text if some column holds labels or a group has several columns), ``contribution`` (the SHAP value),
            ``error`` (its standard error, where values are estimated), ``rank`` (1 for the largest absolute value).

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
        rows = self.inputs.encode(X)
        _, found = self._explain(rows, None, False, 0, self.n_jobs)
        data, labels = rows.display(len(self.player_names))
        outputs, n = None, self.engine.n_outputs
        if n > 1 or self._parts.given_names is not None:
            outputs = tuple(map(str, range(n))) if self.output_names is None else output_names(self)
        return make_frame(found, data, labels, self.player_names, outputs, X, top_k)

    # Streams of rows

    def select(self, frame: Any, *, ids: Sequence[str] | None = None) -> Any:
        """Return the columns of the model out of a data frame, found by name, in the model's order.

        Parameters
        ----------
        frame : data frame, ``pyarrow.RecordBatch`` or array
            An array has no names and is returned as it is.
        ids : sequence of str, optional
            Columns that are left out. Any other column must be a feature.

        Raises
        ------
        InputError
            A column is missing, or unknown to the model.

        Examples
        --------
        >>> import fouriershap as fs, pandas as pd
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = pd.DataFrame({"age": [20, 40, 60, 80], "height": [1.5, 1.9, 1.6, 1.8]})
        >>> explainer = fs.Explainer(DecisionTreeRegressor().fit(X, [1.0, 2.0, 3.0, 5.0]), X)
        >>> explainer.select(pd.DataFrame({"height": [1.7], "name": ["Ann"], "age": [33]}), ids=["name"])
           age  height
        0   33     1.7
        """
        return open_batch(frame, check_ids(ids), self.input_names).features

    def explain_batches(
        self,
        batches: Iterable[Any],
        *,
        ids: Sequence[str] | None = None,
        layout: str = "columns",
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
            Columns that are copied to the result and not shown to the model. Any other column must be a feature.
            Frames only.
        layout : {"columns", "array", "top_k"}
            What follows the ids in the result:

            - "columns": a number per player, named after it;
            - "array": ``shap_values``, a fixed-size list of numbers in the order of `player_names`;
            - "top_k": ``feature_1``, ``value_1`` (as text), ``contribution_1``, ``feature_2``, ...: the players
              with the largest contributions, by absolute value.

            Then ``base_value``, so that a row adds up to the model's output. If there are several outputs, each of
            these columns comes once per output and ends in ``__`` and the output's name (or number).
        top_k : int
            Players per row for "top_k"; at most the number of players.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Yields
        ------
        A frame of the same kind, with one row per input row; pandas frames keep their index. For arrays "columns" is
        a matrix of numbers (the last column is the base value), "array" what `shap_values` returns.

        Raises
        ------
        InputError
            A column is missing, is unknown to the model, or holds what the model cannot read. The message names the
            batch.

        Examples
        --------
        >>> import fouriershap as fs, numpy as np, pandas as pd
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = pd.DataFrame({"age": [20, 40, 60, 80], "height": [1.5, 1.9, 1.6, 1.8]})
        >>> model = DecisionTreeRegressor(random_state=0).fit(X, [1.0, 2.0, 3.0, 5.0])
        >>> explainer = fs.TreeExplainer(model, X)
        >>> batches = [X.assign(name=["Ann", "Bob", "Eve", "Kim"])]
        >>> for frame in explainer.explain_batches(batches, ids=["name"], layout="top_k", top_k=1):
        ...     print(frame)
          name feature_1 value_1  contribution_1  base_value
        0  Ann       age      20           -1.75        2.75
        1  Bob       age      40           -0.75        2.75
        2  Eve       age      60            0.25        2.75
        3  Kim       age      80            2.25        2.75
        """
        jobs = self._jobs(n_jobs)
        count_jobs(jobs)
        features = [name for name in check_ids(ids) if name in (self.input_names or ())]
        if features:
            raise InputError(f"ids names {truncated_repr(features[0])}, which is a feature of the model.")
        writer = BatchWriter(self.player_names, self.output_names, self.engine.expected, layout, top_k, ids)
        return writer.explain(
            batches, self.inputs, lambda rows: self._explain(rows, None, False, 0, jobs)[1].values
        )

    def output_schema(
        self, *, ids: Sequence[str] | None = None, layout: str = "columns", top_k: int = 3
    ) -> tuple[OutputColumn, ...]:
        """Return the columns that follow the ids in what `explain_batches` yields.

        Parameters
        ----------
        ids : sequence of str, optional
            Columns that are copied. They come first, in the order given and with the types that they have in the
            batches; they are not part of the result, but must not share a name with it.
        layout, top_k
            As in `explain_batches`.
        """
        return BatchWriter(
            self.player_names, self.output_names, self.engine.expected, layout, top_k, ids
        ).schema

    # Analyses of many rows, whose functions take the explainer first

    drift = drift
    importance = importance
    cohorts = cohorts
    interactions = interactions
    partial_dependence = partial_dependence
    effects = effects
    reasons = reasons
    report = write_report

    # Files

    def save(self, path: str | os.PathLike[str], *, interactions: bool = False) -> None:
        """Compile the explainer and save it to a .fshap file, which can be loaded without the model.

        A black box is fitted first (`fit`).

        Parameters
        ----------
        path : path
        interactions : bool
            Whether the file also holds what interactions need.
        """
        if self._parts.fit is not None:
            self.fit().save(path, interactions=interactions)
            return
        arrays, header = self.engine.to_contents(interactions)
        more, inputs = self.inputs.to_contents()
        about: dict[str, Any] = {"inputs": inputs, "output_names": self.class_labels}
        if self._parts.given_names is not None:
            about["given_names"] = self._parts.given_names
        if self.fitted is not None:
            fitted, about["fit"] = self.fitted.to_contents()
            more |= fitted
        if self.model_name is not None:
            about["model_name"] = self.model_name
        files.write(path, f"explainer of {self.kind}", arrays | more, {"engine": header} | about)


def _precision_text(quality: Quality) -> str:
    if quality.tolerance:
        return f"± {quality.tolerance:.0%}"
    if not quality.is_exact:
        return "approximate"
    return "rescaled" if quality.is_rescaled else "exact"


def _quality_text(quality: Quality) -> str:
    if quality.tolerance:
        return f"standard errors of at most {quality.tolerance:.0%} of the largest value of a row"
    if quality.background_error:
        return (
            f"the background is compressed, which misses {quality.background_error:.1e} of the sum of squares"
        )
    if quality.is_exact:
        return "exact for the raw output, rescaled" if quality.is_rescaled else "exact"
    return "fitted: see .fidelity" if quality.dependence is None else "learned from rows, with unknown errors"


@cache
def _option_defaults() -> tuple[tuple[str, Any], ...]:
    """Return the keyword arguments of `Explainer` with their defaults."""
    options = signature(Explainer).parameters.values()
    return tuple((option.name, option.default) for option in options if option.kind is option.KEYWORD_ONLY)


@contextmanager
def explaining_unfinished_fits() -> Iterator[None]:
    """Let ``finish()`` of an exception, raised once something was fitted, return an `Explainer`."""
    try:
        yield
    except BaseException as error:
        finish = getattr(error, "finish", None)
        if finish is not None:
            error.finish = lambda: Explainer(finish())  # type: ignore[attr-defined]
        raise
