"""Explainers of tree ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fouriershap._base.checks import (
    ProgressOption,
    check_bool,
    check_choice,
    check_device,
    check_int,
    check_memory,
    check_progress,
    check_weights,
    copy_if_shared,
    is_integer,
)
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.files import Contents
from fouriershap._base.headers import get_part, require
from fouriershap._base.messages import truncated_list, truncated_repr, truncated_text
from fouriershap._base.parallel import count_jobs
from fouriershap._explainers.models import (
    Entered,
    enter_background,
    feature_names_of,
    model_parts,
    read_or_refuse,
    with_labels_of,
)
from fouriershap._explainers.parts import Parts, name_of
from fouriershap._libraries import (
    Reading,
    first_trees,
    model_check,
    native_rows,
    one_output,
    warn_transformed_target,
)
from fouriershap._rows.inputs import InputAdapter
from fouriershap._rows.players import find_players
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.outputs.kinds import OUTPUTS, Raw, find_output
from fouriershap._shapley.outputs.transformed import load_output, make_output
from fouriershap._shapley.players import players_and_index
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.linear import LinearModel, LinearTreeEngine
from fouriershap._shapley.trees.model import make_background, make_model, tables_type
from fouriershap._trees.covers import recounted
from fouriershap._trees.linear import LinearTrees

KIND = "trees"
_PERTURBATIONS = ("auto", "interventional", "tree_path_dependent")
_STRATEGIES = ("auto", "tables", "stream", "walk")
_PRECISIONS = ("single", "double")
_LARGEST_LEAF = 1e300


def tree_parts(
    model: Any,
    background: Any = None,
    *,
    feature_perturbation: str = "auto",
    output: str | int = "raw",
    exact: bool = False,
    tree_limit: int | None = None,
    feature_names: ArrayLike | None = None,
    groups: Any = None,
    coalitions: str = "whole",
    causal_order: Any = None,
    weights: ArrayLike | None = None,
    index: str = "shapley",
    precision: str = "single",
    strategy: str = "auto",
    memory: int | float | None = None,
    n_jobs: int = -1,
    device: str = "cpu",
    check: bool = True,
    progress: ProgressOption = None,
) -> Parts:
    """Explain tree ensembles exactly; a drop-in for ``shap.TreeExplainer``.

    Parameters
    ----------
    model : estimator, booster, Pipeline, or path
        A tree model of one of the supported libraries, or the path of a saved one; sums of such models (see
        ``docs/trees.md``); or a scikit-learn Pipeline, search or other wrapper around one. Background and rows are
        then the pipeline's inputs.
    background : array or data frame, optional
        Rows that stand for "feature unknown"; any number, all of them are used. Once the tables are built, the
        number of background rows costs nothing per explained row.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent", "conditional"}
        "auto" is interventional if a background is given, else tree_path_dependent. The latter uses the shares of
        the training rows in the trees; with a background, as in shap, the shares of its rows, except below nodes
        that no background row reaches. "conditional": what is unknown follows what is known; see `Explainer`.
    output : {"raw", "probability", "response"}, a loss such as "log_loss", int, or the name of a class
        What is explained: the model's raw output (margins; class probabilities for scikit-learn's forests), the
        probability, what ``predict`` returns (the exponential of a log link, for instance), or the loss
        (`Explainer.shap_values` then takes labels ``y``). The last three are the values of the margin, rescaled per
        background row as in shap, and cost about ten times as much. A number, from 0, or a class selects one of the
        raw outputs.
    exact : bool
        With ``output="probability"`` or ``"response"``: SHAP values of that output itself, by the definition if
        players and background rows are few, else sampled until standard errors are below 1 % of a row's largest value.
    tree_limit : int, optional
        Explain a boosted model as it was after its first trees; with several outputs that have their own trees, a
        multiple of their number. By default all trees that the model itself predicts with.
    feature_names : sequence of str, optional
        By default those of the model, else of the background, else "Feature 0", ...
    groups : mapping or sequence, or "input" or "encoded", optional
        Columns that act as one player: ``{"name": [columns]}`` or one group name per column. A Pipeline is explained
        in its own input columns ("input", the default), so that the one-hot columns of an input column are one player,
        or in the features that enter its final model ("encoded"); groups name its input columns, or else encoded ones.
    coalitions : {"whole", "owen"}
        "whole": a group of ``groups`` is one player. "owen": its columns get values of their own, the Owen values,
        which add up to the value of the group; groups may hold groups, ``{"name": {"name": [columns]}}`` (Winter
        values). See ``docs/owen-and-asymmetric.md``.
    causal_order : list of lists, optional
        All players, causes first: ``[["age", "sex"], ["income"]]``. Values are then asymmetric Shapley values, the
        mean over orders in which every player of a list comes before those of later lists.
    weights : array_like, optional
        A weight per background row.
    index : {"shapley", "banzhaf", "weighted-banzhaf(p)", "beta-shapley(a, b)"}
        How coalitions are averaged: every size alike (Shapley), every coalition alike (Banzhaf), or by weights: each
        other player joins with probability p, such as "weighted-banzhaf(0.3)", or with one that is drawn from a Beta
        distribution, such as "beta-shapley(16, 1)", which stresses small coalitions. Only Shapley values add up to the
        prediction.
    precision : {"single", "double"}
        Precision of the tables: float32 with float64 totals (errors of about 1e-7 of the largest value), or float64.
        Tables are float64 in any case where the largest leaf is beyond 1e25 or below 1e-25, or where there are few
        trees and their largest leaf is more than 32 times as large as usual ones.
    strategy : {"auto", "tables", "stream", "walk"}
        "tables" compiles look-up tables at once. "stream" builds those of a few leaves at a time, lets all rows read
        them, and drops them: for deep trees and many rows, in little memory. "walk" compares pairs of rows. "auto"
        takes what is expected to be quickest, and builds tables to keep once that pays.
    memory : float, optional
        Budget of the tables in bytes; None for a quarter of the machine's memory.
    n_jobs : int
        Threads; -1 for all cores.
    device : {"cpu", "jax"}
        Where rows are explained: by the native kernels, or under XLA on whatever device JAX has (the tables are then
        built at the first call). Files do not keep it; see `Explainer.to`.
    check : bool
        Whether to ask the model itself about up to 32 rows in each form (container, types of columns, kinds of labels)
        in which the background and rows first come, and compare its answers with fouriershap's copy of the model. A
        difference beyond rounding is an error, and so are rows that the library refuses. Without a background, rows at
        the thresholds of its trees are asked about as well. Nothing is compared if there is no live model (a path);
        `Explainer.checked` tells whether some of your rows were answered.
    progress : bool or callable, optional
        Whether long calls report progress; see `Explainer`.
    data, model_output, ...
        shap's names for these arguments are accepted as keywords.

    Returns
    -------
    Explainer

    Raises
    ------
    UnsupportedModelError
        The model cannot be read, or fouriershap's copy of it disagrees with the model itself.

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
    check_device(device)
    check_choice("feature_perturbation", feature_perturbation, _PERTURBATIONS)
    check_choice("precision", precision, _PRECISIONS)
    check_choice("strategy", strategy, _STRATEGIES)
    check, exact = check_bool("check", check), check_bool("exact", exact)
    budget = check_memory(memory)
    count_jobs(n_jobs)
    check_progress(progress)
    whole = read_or_refuse(model, trees=True)
    reading = whole
    if tree_limit is not None and not (is_integer(tree_limit) and tree_limit == -1):  # shap: -1 for all
        reading = first_trees(reading, check_int("tree_limit", tree_limit))
    warn_transformed_target(reading, output)
    output = _number_of_class(output, reading.output_names)
    if is_integer(output):
        reading, output = one_output(reading, int(output)), "raw"
    entered = enter_background(whole, background)
    _check_unknown_features(feature_perturbation, entered, reading)
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
    rows = share = None
    if entered.rows is not None:
        rows = copy_if_shared(rules.encode(entered.rows, "background"), entered.rows)
        rules = with_labels_of(rules, entered.rows)
        share = check_weights(weights, len(rows))
    elif weights is not None:
        raise InputError("weights were given without a background; give one.")
    asks = model_check(whole) if check else None
    if asks is not None and rows is not None:
        asks(entered.rows, rows, "background")
    elif asks is not None:
        asks.ask_made_up_rows()
    trees: Any = reading.representation
    if rows is not None and feature_perturbation == "tree_path_dependent":
        trees, rows, share = recounted(trees, rows, share), None, None
    if isinstance(trees, LinearTrees):
        asked = np.dtype(np.float64 if precision == "double" else np.float32)
        about = (asked, strategy, values_index, reading.link, reading.kind)
        linear = LinearModel(trees, players[0], budget, *about)
        raw: Any = LinearTreeEngine.of(linear, np.asarray(rows), share, Raw(reading.link))
    elif not np.abs(trees.values).max(initial=0.0) < _LARGEST_LEAF:
        raise UnsupportedModelError(
            f"model has a leaf beyond {_LARGEST_LEAF:g}; sums of such leaves overflow. Scale its target."
        )
    else:
        dtype = np.dtype(np.float64) if precision == "double" else tables_type(trees)
        model_on_codes = make_model(
            trees, players[0], budget, dtype, strategy, values_index, reading.link, reading.kind
        )
        raw = TreeEngine(model_on_codes, make_background(model_on_codes, rows, share))
    engine = _output_engine(raw, output, exact)
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


def tree_parts_from_contents(contents: Contents) -> Parts:
    """Build the parts of a saved explainer."""
    header = get_part(contents.header, "engine")
    inputs = InputAdapter.from_contents(
        contents.arrays, get_part(contents.header, "inputs"), unpack=native_rows
    )
    engine = LinearTreeEngine if "linear" in header else TreeEngine
    trees: Any = engine.from_contents(contents.arrays, header)
    fits = (len(inputs.feature_names), len(inputs.player_names)) == (
        trees.representation.n_features,
        trees.n_players,
    )
    require(fits, "a feature or a player has no name")
    require(np.array_equal(inputs.player, trees.player), "its trees have other players")
    return Parts(KIND, inputs, load_output(trees, contents.arrays, header))


def refuse_single_precision(reading: Reading, background: Any) -> None:
    """Raise if steps before the trees would compute in single precision with this background."""
    if not reading.rules.casting.behind_steps:
        return
    if reading.rules.refuses_single(enter_background(reading, background).rows, "background"):
        raise UnsupportedModelError(
            f"background has float32 numbers, which the steps before the trees of the model "
            f"({truncated_text(reading.kind)}) round differently. Convert it to float64 for exact values."
        )


def _number_of_class(output: Any, names: tuple[str, ...] | None) -> Any:
    """Return the number of the output that has this name; any other ``output`` as it is."""
    if not isinstance(output, str) or output in OUTPUTS or not names:
        return output
    if output not in names:
        raise InputError(
            f"output is {truncated_repr(output)}; choose one of {truncated_list(OUTPUTS)}, or a class: "
            f"{truncated_list(names)}."
        )
    return names.index(output)


def _check_unknown_features(feature_perturbation: str, entered: Entered, reading: Reading) -> None:
    is_linear = isinstance(reading.representation, LinearTrees)
    if is_linear and (entered.rows is None or feature_perturbation == "tree_path_dependent"):
        raise InputError(
            f"the model ({truncated_text(reading.kind)}) does not tell the means of its training rows in each leaf, "
            "which path-dependent values of linear leaves would need (LightGBM has none, either). "
            + ("Give a background." if entered.rows is None else "Leave feature_perturbation out.")
        )
    if entered.rows is not None:
        return
    if feature_perturbation == "interventional":
        raise InputError("feature_perturbation='interventional' needs a background; give one.")
    if not reading.representation.has_cover:  # type: ignore[union-attr]
        raise InputError(
            f"the model ({truncated_text(reading.kind)}) does not tell how many training rows reached its nodes, which "
            "path-dependent values need. Give a background."
        )


def _output_engine(trees: TreeEngine | LinearTreeEngine, output: Any, exact: bool) -> Engine:
    """Return the engine of an output; that of the raw output itself for "raw"."""
    if isinstance(output, str) and output == "raw" and not exact:
        return trees
    return make_output(trees, find_output(output, trees.model.link), exact)
