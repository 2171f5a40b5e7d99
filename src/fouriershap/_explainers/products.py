"""`ProductExplainer`: the front door for models that are sums of products over features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import (
    Progress,
    check_choice,
    check_device,
    check_progress,
    check_weights,
    numbered,
    unshared,
)
from fouriershap._base.errors import FidelityWarning, InputError, ModelWarning
from fouriershap._base.files import Contents
from fouriershap._base.headers import require, take, take_part
from fouriershap._base.parallel import count_jobs
from fouriershap._base.short import short
from fouriershap._base.warn import warn
from fouriershap._explainers.base import Explainer
from fouriershap._explainers.calling import in_shap_words
from fouriershap._explainers.links import OF_TARGETS, PRODUCT_LINKS, fit_lazily, say_what_is_explained
from fouriershap._explainers.product_referee import check_products
from fouriershap._explainers.referee import CHECKS
from fouriershap._rows.frames import Rows, column_names, densified, in_order, unmask
from fouriershap._rows.numbers import to_numbers
from fouriershap._rows.opening import open_model
from fouriershap._rows.pipelines import LOST_PIPELINE, Preprocessing, rows_of_inputs
from fouriershap._rows.players import find_players
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import find_index
from fouriershap._shapley.outputs.kinds import find_output
from fouriershap._shapley.outputs.products import explain_products, load_products
from fouriershap._shapley.products.engine import ProductSettings
from fouriershap._waves.products import Products
from fouriershap._waves.readers import read_products
from fouriershap._waves.readers.reading import Reading

if TYPE_CHECKING:
    from fouriershap._explainers.page_subjects import Subject
    from fouriershap._explainers.saved_steps import Before

OUTPUTS = ("raw", "probability", "response")
TOLERANCE = 1e-4  # of the square sum of the values, for a compressed background
BUDGET = 1 << 26  # multiplications that an exact row may take
_LEAST = 0.01  # share of the values that a compressed background may miss without a warning


class ProductExplainer(Explainer):
    """Exact SHAP values of linear models, kernel machines and small networks: sums of products over features.

    Nothing is fitted and the model is not asked: its coefficients say everything.

    Parameters
    ----------
    model : estimator, results, or Pipeline
        A linear model of scikit-learn, statsmodels or XGBoost (``gblinear``); SVR, SVC, OneClassSVM, KernelRidge or
        GaussianProcessRegressor with kernels that are products over features (RBF, Laplace, linear, polynomial, and
        sums, products, multiples of these); MLPRegressor or MLPClassifier with one hidden layer of up to 128 tanh or
        logistic units; or a Pipeline that ends in one, in which case background and rows are the pipeline's inputs.
    background : array or data frame
        Rows that stand for "feature unknown"; all of them are used.
    output : {"raw", "probability", "response"}
        What is explained: the raw output (the decision function, the linear predictor, what enters the last
        activation of a network), the probability, or the mean that the model predicts. An exponential or a sigmoid of
        a linear score is explained exactly (to 1e-10), several classes by the definition, or fitted, see `fidelity`.
    feature_names : sequence of str, optional
        By default those of the model, else of the background, else "Feature 0", ...
    groups : mapping or sequence, or "input", optional
        Columns that act as one player, as for `TreeExplainer`; with "input" the input columns of a Pipeline.
    weights : array_like, optional
        A weight per background row.
    index : {"shapley", "banzhaf"}
        Which average over coalitions: see `TreeExplainer`.
    exact_background : bool
        Compare with every row of the background, however long that takes. By default a few products of marginals
        stand for it where a row would take more than some 50 ms, and `plan` tells what they miss. Linear models, and
        models of up to about ten players, are exact in any case.
    n_jobs : int, optional
        Threads; None for every core.
    device : {"cpu", "jax"}
        Where rows are explained: by the native kernels, or under XLA. Files do not remember it; see `to`.
    check : {"model", "off"}
        "model" asks the model itself about some 30 background rows and compares, once, here: a difference beyond
        rounding is an error. `checked` tells whether it answered.
    progress : bool or callable, optional
        Whether long calls tell how far they are; see `Explainer`.

    Attributes
    ----------
    checked : bool
        Whether our reading was compared with the model itself when this explainer was made.
    kind : str
        Library and class of the model.
    representation : Products
        What is explained, as plain arrays.

    Raises
    ------
    UnsupportedModelError
        The model is no sum of products that can be read or paid for, or what it says itself is not what we read.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> model = LogisticRegression().fit(X, X[:, 0] > X[:, 1])
    >>> explainer = fs.ProductExplainer(model, X, output="probability")
    >>> values = explainer.shap_values(X[:5])
    >>> np.allclose(values.sum(axis=1) + explainer.expected_value, model.predict_proba(X[:5])[:, 1])
    True
    """

    _kind = "product explainer"
    checked: bool = False
    _before: Before | None = None  # what a Pipeline does before its model
    _tried: Any = None  # rows on which its steps are tried out before they are saved
    _inputs: tuple[str, ...] | None = None  # its input columns, where they are the players
    _link: str | None = None  # of the raw output, see `Reading`
    _lost_pipeline: bool = False  # a file held the model of a Pipeline, not what comes before it

    @in_shap_words
    def __init__(
        self,
        model: Any,
        background: Any,
        *,
        output: str = "raw",
        feature_names: ArrayLike | None = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        index: str = "shapley",
        exact_background: bool = False,
        n_jobs: int | None = None,
        device: str = "cpu",
        check: str = "model",
        progress: Progress = None,
    ) -> None:
        check_device(device)
        self.progress = check_progress(progress)
        check_choice("output", output, OUTPUTS)
        by = find_index(index)
        check_choice("check", check, CHECKS)
        count_jobs(n_jobs)
        self.progress = check_progress(progress)
        if background is None:
            raise InputError("background is None; give rows that stand for 'feature unknown'.")
        if not isinstance(exact_background, bool | np.bool_):
            raise InputError(f"exact_background is {short(exact_background)}; give True or False.")
        opened = open_model(model)
        before, final = opened.before, opened.final
        reading = read_products(final)
        if opened.response != "same":
            say_what_is_explained(behind_target(reading, opened.response).link != "other", output)
        if reading.feature_names is None:
            reading = reading.with_names(opened.names)
        given = unmask(background)
        given = in_order(given, reading.feature_names if before is None else before.known_names())
        entered = given if before is None else before.transform(given, "background")
        known, names = _names(feature_names, reading, entered, before)
        player, player_names, self._inputs = find_players(groups, names, before, given)
        self._before, self._tried = before, None if before is None else before.first_rows(given)
        self._known, self._missing, self._player = known, reading.missing_is_zero, player
        rows = unshared(self._numbers(entered, "background"), entered)
        share = check_weights(weights, len(rows))
        self.checked = check == "model" and check_products(final, reading, rows)
        reading = behind_target(reading, opened.response)
        what = find_output(output, PRODUCT_LINKS[reading.link])
        settings = ProductSettings(TOLERANCE, bool(exact_background), BUDGET)
        raw = reading.model.with_players(player)
        engine = explain_products(raw, what, rows, share, by, settings, fit_lazily, reading.kind)
        if not np.isfinite(engine.expected).all():
            raise InputError(f"output={short(output)} is not finite on the background; explain output='raw'.")
        self.output, self.kind, self.output_names = output, reading.kind, reading.output_names
        self._link = reading.link
        self.feature_names, self.player_names, self.n_jobs = names, player_names, n_jobs
        self.has_pipeline = self._before is not None
        self._engine = engine if device == "cpu" else engine.to(device)
        self._against = (rows, share)
        self._warn()

    def _warn(self) -> None:
        """Say so where a compressed background misses more than a little."""
        missed = self._engine.quality.background_error
        if missed > _LEAST:
            warn(
                f"a few products of marginals stand for the background, and miss {missed:.1%} of the values. Give "
                "fewer background rows, exact_background=True, or groups= that leave fewer players.",
                FidelityWarning,
            )

    def __repr__(self) -> str:
        return f"ProductExplainer({self.kind}, output={self.output!r}, {self.representation!r})"

    @property
    def representation(self) -> Products:
        return self._engine.representation  # type: ignore[return-value]

    @property
    def fidelity(self) -> Any:
        """Of a fitted response (several classes, many players): how well it stands for the model; else None."""
        return self._engine.quality.fidelity

    @property
    def input_names(self) -> tuple[str, ...] | None:
        if self._before is not None:
            return self._before.known_names()
        return self._known or super().input_names

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        return {} if self._before is None else self._before.known_labels()

    def _with_engine(self, engine: Engine) -> ProductExplainer:
        other = super()._with_engine(engine)
        other._warn()
        return other

    def _numbers(self, entered: Any, name: str) -> NDArray[np.float64]:
        """Rows as the model takes them."""
        rows = to_numbers(entered, self._known, len(self._player), name, self._missing)
        return np.nan_to_num(rows, nan=0.0) if self._missing else rows

    def _code_players(self) -> NDArray[np.int32]:
        return self._player

    def _output_link(self) -> str | None:
        return self._engine.output.probability_link

    def _read(self, X: Any, name: str = "X") -> Rows:
        """Rows through the pipeline, where there is one, as numbers: both once."""
        X = in_order(X, self.input_names)
        entered = densified(X if self._before is None else self._before.transform(X, name))
        try:
            codes = self._numbers(entered, name)
        except InputError as error:
            if not self._lost_pipeline:
                raise
            raise InputError(f"{error} {LOST_PIPELINE}") from error
        if self._inputs is None:
            return Rows(codes, entered, self._player, self.feature_names)
        return rows_of_inputs(codes, X, entered, self._inputs, self.player_names)

    def _subject(self, rows: Rows, budget: int) -> Subject:
        from fouriershap._explainers.page_subjects import product_subject

        link = self._link if self.output == "raw" else None
        about = (self.kind, self.output, self._engine)
        return product_subject(*about, rows, self.feature_names, self._player, link)

    def _header(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, header = self.representation.to_contents()
        about = {
            "kind": self.kind,
            "output": self.output,
            "output_names": self.output_names,
            "model_link": self._link or "",
            "known_names": self._known,
            "missing_is_zero": self._missing,
            "pipeline": self.has_pipeline or self._lost_pipeline,
        }
        if self._before is not None:
            from fouriershap._explainers.saved_steps import steps_for_file

            about |= steps_for_file(self._before, self._tried, self._inputs)
        return arrays, header | about

    @classmethod
    def _from_contents(cls, contents: Contents) -> ProductExplainer:
        explainer, arrays, header = cls.__new__(cls), contents.arrays, contents.header
        model = Products.from_contents(arrays, take_part(header, "model"))
        explainer._engine = load_products(arrays, header, model, fit_lazily)
        explainer._player, explainer.n_jobs = model.player, None
        names, players = (take(header, key, tuple[str, ...]) for key in ("feature_names", "player_names"))
        as_many = (len(names), len(players)) == (model.n_features, model.n_players)
        require(as_many, "it has not as many names as features and players")
        explainer.feature_names, explainer.player_names = names, players
        explainer.output = check_choice("output", take(header, "output", str), OUTPUTS)
        explainer.kind, explainer._link = take(header, "kind", str), take(header, "model_link", str, "") or None
        explainer.output_names = take(header, "output_names", tuple[str, ...] | None)
        many = explainer.output_names is None or len(explainer.output_names) == model.n_outputs
        require(many, "it has not as many names as outputs")
        explainer._known = take(header, "known_names", tuple[str, ...] | None)
        require(
            explainer._known is None or len(explainer._known) == len(names), "its names are not its features'"
        )
        explainer._missing = take(header, "missing_is_zero", bool)
        if "steps" in header:
            from fouriershap._explainers.saved_steps import steps_from_file

            explainer._before, explainer._inputs = steps_from_file(header, len(names), players)
            explainer.has_pipeline = True
        explainer._lost_pipeline = take(header, "pipeline", bool) and not explainer.has_pipeline
        if explainer._lost_pipeline:
            warn(LOST_PIPELINE, ModelWarning)
        return explainer


def _names(
    given: ArrayLike | None, reading: Reading, background: Any, before: Preprocessing | None
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Names that frames are checked against, where there are some, and the names of the features."""
    n_features = reading.model.n_features
    made = before.output_names() if before is not None else None
    known = made if made is not None and len(made) == n_features else reading.feature_names
    if given is not None:
        names = tuple(str(name) for name in np.asarray(given).reshape(-1).tolist())
        if len(names) != n_features:
            raise InputError(f"feature_names has {len(names)} names for {n_features} features.")
        return known, names
    found = known
    if found is None and not isinstance(background, np.ndarray):
        found = column_names(background)
    if found is not None and len(found) != n_features:
        found = None  # reading the rows says what is wrong with them
    return known, found or numbered(n_features)


def behind_target(reading: Reading, response: str) -> Reading:
    """The reading of a regressor whose predictions go through the inverse of what was done to its target."""
    if response == "same":
        return reading
    return replace(reading, link=OF_TARGETS[response] if reading.link == "identity" else "other")
