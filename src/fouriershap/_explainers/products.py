"""Explainers of models that are sums of products over features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fouriershap._base.checks import (
    ProgressOption,
    check_bool,
    check_choice,
    check_device,
    check_progress,
    check_weights,
    copy_if_shared,
    is_integer,
)
from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import get_part, require
from fouriershap._base.messages import truncated_repr
from fouriershap._base.parallel import count_jobs
from fouriershap._explainers.models import (
    enter_background,
    feature_names_of,
    model_parts,
    read_or_refuse,
)
from fouriershap._explainers.parts import Parts, name_of, warn_of_compression
from fouriershap._libraries import model_check, native_rows, warn_transformed_target
from fouriershap._rows.inputs import InputAdapter
from fouriershap._rows.players import find_players
from fouriershap._shapley.outputs.kinds import LOSSES, OUTPUTS, find_output
from fouriershap._shapley.outputs.products import explain_products, load_products
from fouriershap._shapley.players import players_and_index
from fouriershap._shapley.products.engine import ProductSettings
from fouriershap._waves.products import Products

KIND = "products"
_TOLERANCE = 1e-4  # of the square sum of the values, for a compressed background
_BUDGET = 1 << 26  # multiplications that an exact row may take


def product_parts(
    model: Any,
    background: Any,
    *,
    output: str = "raw",
    feature_names: ArrayLike | None = None,
    groups: Any = None,
    coalitions: str = "whole",
    causal_order: Any = None,
    weights: ArrayLike | None = None,
    index: str = "shapley",
    compress_background: bool = True,
    n_jobs: int = -1,
    device: str = "cpu",
    check: bool = True,
    progress: ProgressOption = None,
) -> Parts:
    """Explain linear models, kernel machines and small networks exactly: they are sums of products over features.

    Nothing is fitted, and the model is not queried: its coefficients say everything.

    Parameters
    ----------
    model : estimator, results, or Pipeline
        A linear model of one of the supported libraries; SVR, SVC, OneClassSVM, KernelRidge or
        GaussianProcessRegressor with kernels that are products over features (RBF, Laplace, linear, polynomial, and
        sums, products, multiples of these); MLPRegressor or MLPClassifier with one hidden layer of up to 128 tanh or
        logistic units; or a Pipeline that ends in one, in which case background and rows are the pipeline's inputs.
    background : array or data frame
        Rows that stand for "feature unknown"; all of them are used.
    output : {"raw", "probability", "response"}
        What is explained: the raw output (the decision function, the linear predictor, what enters the last
        activation of a network), the probability, or the mean that the model predicts. An exponential or a sigmoid
        of a linear score is explained exactly (to 1e-10), several classes by the definition or by a fit, see
        `Explainer.fidelity`.
    feature_names : sequence of str, optional
        By default those of the model, else of the background, else "Feature 0", ...
    groups : mapping or sequence, or "input" or "encoded", optional
        Columns that act as one player, as for `TreeExplainer`.
    coalitions, causal_order
        Owen values and asymmetric values, as for `TreeExplainer`.
    weights : array_like, optional
        A weight per background row.
    index : {"shapley", "banzhaf", "weighted-banzhaf(p)", "beta-shapley(a, b)"}
        How coalitions are averaged; see `TreeExplainer`.
    compress_background : bool
        Whether a few products of marginals may stand for the background if a row would take more than about 50 ms;
        `Explainer.plan` tells what they miss. Linear models, and models of up to about ten players, are exact in any
        case.
    n_jobs : int
        Threads; -1 for all cores.
    device : {"cpu", "jax"}
        Where rows are explained: by the native kernels, or under XLA. Files do not keep it; see `Explainer.to`.
    check : bool
        Whether to ask the model itself about up to 32 rows in each form in which the background and rows first come,
        as for `TreeExplainer`. `Explainer.checked` tells whether it answered.
    progress : bool or callable, optional
        Whether long calls report progress; see `Explainer`.

    Returns
    -------
    Explainer

    Raises
    ------
    UnsupportedModelError
        The model is not a sum of products that can be read or afforded, or fouriershap's copy of it disagrees with
        the model itself.

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
    check_device(device)
    if is_integer(output):
        raise InputError(
            f"output is {output}, but only trees select an output by its number: take it from the values, "
            f"explainer.shap_values(X)[..., {output}]."
        )
    check_choice("output", output, tuple(name for name in OUTPUTS if name not in LOSSES))
    check = check_bool("check", check)
    compress_background = check_bool("compress_background", compress_background)
    count_jobs(n_jobs)
    check_progress(progress)
    if background is None:
        raise InputError("background is None; give rows that stand for 'feature unknown'.")
    reading = read_or_refuse(model, trees=False)
    warn_transformed_target(reading, output)
    entered = enter_background(reading, background)
    rules, names = feature_names_of(feature_names, reading, entered)
    if groups is None and feature_names is not None and reading.preprocessing is not None:
        groups = "encoded"  # the names are those of the features that enter the final model
    players, values_index = players_and_index(
        groups,
        coalitions,
        causal_order,
        index,
        lambda groups: find_players(groups, names, reading.preprocessing, entered.given),
    )
    rows = copy_if_shared(rules.encode(entered.rows, "background"), entered.rows)
    share = check_weights(weights, len(rows))
    asks = model_check(reading) if check else None
    if asks is not None:
        asks(entered.rows, rows, "background")
    products = reading.representation
    assert isinstance(products, Products)
    engine = explain_products(
        products.with_players(players[0]),
        find_output(output, reading.link),
        rows,
        share,
        values_index,
        ProductSettings(_TOLERANCE, not compress_background, _BUDGET),
        reading.kind,
    )
    if not np.isfinite(engine.expected).all():
        raise InputError(
            f"output={truncated_repr(output)} is not finite on the background; explain output='raw'."
        )
    warn_of_compression(engine)
    return model_parts(
        KIND,
        reading,
        engine if device == "cpu" else engine.to(device),
        rules,
        names,
        players,
        entered.sample,
        n_jobs=n_jobs,
        progress=progress,
        check=asks,
        model_name=name_of(model),
    )


def product_parts_from_contents(contents: Contents) -> Parts:
    """Build the parts of a saved explainer."""
    header = get_part(contents.header, "engine")
    model = Products.from_contents(contents.arrays, get_part(header, "model"))
    inputs = InputAdapter.from_contents(
        contents.arrays, get_part(contents.header, "inputs"), unpack=native_rows
    )
    fits = (len(inputs.feature_names), len(inputs.player_names)) == (model.n_features, model.n_players)
    require(fits, "a feature or a player has no name")
    require(np.array_equal(inputs.player, model.player), "its terms have other players")
    return Parts(KIND, inputs, load_products(contents.arrays, header, model))
