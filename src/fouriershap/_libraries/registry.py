"""Readers: the models of each library as a `TreeEnsemble`.

A model is recognised by the names of its class and its bases, so that no library is imported that its user
has not imported. Each library has one file; ``assemble.py`` is what they share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._rows.opening import Opened, open_model
from fouriershap._trees.arithmetic import behind_steps
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.level_sets import Levels, of_levels
from fouriershap._trees.readers import (
    catboost,
    interpret,
    lightgbm,
    quantile_forest,
    sklearn,
    sklearn_layers,
    sklearn_members,
    sklearn_sums,
    spark,
    survival,
    xgboost,
    ydf,
)
from fouriershap._trees.readers.files import read_bytes, read_file
from fouriershap._trees.readers.sklearn_sums import members_of
from fouriershap._trees.through_steps import before_steps

_READERS: dict[tuple[str, str], Callable[[Any], TreeEnsemble]] = {
    ("sklearn", "BaseDecisionTree"): sklearn.read_tree,
    ("sklearn", "ForestClassifier"): sklearn.read_forest,
    ("sklearn", "ForestRegressor"): sklearn.read_forest,
    ("sklearn", "BaseGradientBoosting"): sklearn.read_gradient_boosting,
    ("sklearn", "BaseHistGradientBoosting"): sklearn.read_hist_gradient_boosting,
    ("sklearn", "IsolationForest"): sklearn.read_isolation_forest,
    ("xgboost", "XGBModel"): xgboost.read_estimator,
    ("xgboost", "Booster"): xgboost.read_booster,
    ("lightgbm", "LGBMModel"): lightgbm.read_estimator,
    ("lightgbm", "Booster"): lightgbm.read_booster,
    ("catboost", "CatBoost"): catboost.read_estimator,
    ("sksurv", "SurvivalTree"): survival.read_tree,
    ("sksurv", "RandomSurvivalForest"): survival.read_forest,
    ("sksurv", "ExtraSurvivalTrees"): survival.read_forest,
    ("sksurv", "GradientBoostingSurvivalAnalysis"): survival.read_gradient_boosting,
    ("quantile_forest", "BaseForestQuantileRegressor"): quantile_forest.read,
    ("ydf", "DecisionForestModel"): ydf.read_live,
    ("pyspark", "JavaPredictionModel"): spark.read_live,
    ("interpret", "EBMModel"): interpret.read,
    ("onnx", "ModelProto"): lambda model: read_bytes(model.SerializeToString(), "model is a ModelProto"),
}
# Readers of models of models, read(model, read=reader of a member).
_SUMS: dict[tuple[str, str], Callable[..., TreeEnsemble]] = {
    ("sklearn", "BaggingClassifier"): sklearn_sums.read_bagging,
    ("sklearn", "BaggingRegressor"): sklearn_sums.read_bagging,
    ("sklearn", "VotingClassifier"): sklearn_sums.read_voting,
    ("sklearn", "VotingRegressor"): sklearn_sums.read_voting,
    ("sklearn", "MultiOutputClassifier"): sklearn_sums.read_multi_output,
    ("sklearn", "MultiOutputRegressor"): sklearn_sums.read_multi_output,
    ("sklearn", "OneVsRestClassifier"): sklearn_sums.read_one_vs_rest,
    ("sklearn", "AdaBoostClassifier"): sklearn_sums.read_ada_boost,
    ("sklearn", "AdaBoostRegressor"): sklearn_sums.refuse_ada_boost_regressor,
    ("sklearn", "StackingClassifier"): sklearn_layers.read_stacking,
    ("sklearn", "StackingRegressor"): sklearn_layers.read_stacking,
    ("sklearn", "CalibratedClassifierCV"): sklearn_layers.read_calibrated,
}


def read_model(model: Any) -> TreeEnsemble:
    """Read a fitted tree model.

    Parameters
    ----------
    model : estimator, booster, path, bytes, or TreeEnsemble
        A tree model of scikit-learn, XGBoost, LightGBM, CatBoost, scikit-survival, quantile-forest (its mean),
        interpret or YDF, an ONNX ``ModelProto`` or its bytes, or the path of a saved model: ``.json`` or ``.ubj``
        (XGBoost), ``.txt`` (LightGBM), ``.cbm`` or ``.json`` (CatBoost), ``.onnx``, a folder of Spark, YDF or
        TensorFlow Decision Forests. A file of XGBoost is read as its ``Booster`` predicts: with all trees. Sums of such
        models, as scikit-learn's Bagging, Voting, MultiOutput, OneVsRest, AdaBoost, Stacking and Calibrated estimators
        are where ``docs/trees.md`` says so. Searches and other wrappers are opened.

    Returns
    -------
    TreeEnsemble
        Its `~TreeEnsemble.predict` is the raw output of the model: margins before any link function; class
        probabilities for scikit-learn's trees and forests; mean path lengths for `IsolationForest`; decision functions
        for AdaBoost and stacked classifiers; scores before they are divided by their sum for OneVsRest.

    Raises
    ------
    UnsupportedModelError
        The model is of another kind, or its trees use something that plain trees cannot represent.
    InputError
        The model is not fitted, or the file cannot be read.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> read_model(DecisionTreeRegressor().fit([[0.0], [1.0]], [1.0, 3.0]))
    TreeEnsemble(scikit-learn DecisionTreeRegressor: 1 trees, 2 leaves, 1 features, 1 outputs)
    """
    opened = open_model(model)
    if opened.before is not None:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} with steps before its trees: these read other rows than it does. Give "
            "its last step alone; TreeExplainer takes the whole."
        )
    return read_opened(opened)


def read_opened(opened: Opened) -> TreeEnsemble:
    """What `read_model` reads, of a model that was taken out of its wrappers."""
    model = opened.final
    if isinstance(model, TreeEnsemble):
        return model
    if isinstance(model, str | Path):
        return read_file(Path(model))
    if isinstance(model, bytes):
        return read_bytes(model, "model is bytes")
    ensemble = _with_response(_read_final(model), opened.response)
    if ensemble.feature_names is None and opened.names is not None:
        return ensemble.replace(feature_names=opened.names)
    return ensemble


def read_inside(model: Any) -> tuple[Opened, TreeEnsemble]:
    """What is inside a model, and its trees."""
    opened = Opened(model) if is_readable(model) else open_model(model)  # what is read has no wrapper
    return opened, read_opened(opened)


def read_members(model: Any, levels: Levels, most_leaves: float = math.inf) -> TreeEnsemble | None:
    """The raw outputs of the trees among the members of a model of models, side by side; None where there are none.

    What the model makes of them need be no sum of trees. In columns for which ``levels`` are given, rows hold the
    number of a level. None where they have more than ``most_leaves``, before anything is done to them.
    """
    if isinstance(model, str | bytes | Path | TreeEnsemble | type):
        return None
    opened = open_model(model)
    if not any(key in _SUMS for key in _keys(type(opened.final))):  # type: ignore[arg-type]
        return None
    if opened.before is None:
        return sklearn_members.read(opened.final, _read_member, levels, most_leaves)
    found = sklearn_members.read(opened.final, _read_member, {}, most_leaves)
    try:
        return None if found is None else before_steps(found, opened.before, levels)
    except UnsupportedModelError:
        return None


def _read_final(model: Any) -> TreeEnsemble:
    found = _find_reader(model)
    if found is not None:
        reader, library = found
        _refuse_other_predictions(model, library)
        return reader(model)
    raise UnsupportedModelError(
        f"model is a {type(model).__module__}.{type(model).__qualname__}, which is no tree model that can be "
        "read. Readable: scikit-learn's DecisionTree, ExtraTree, RandomForest, ExtraTrees, GradientBoosting, "
        "HistGradientBoosting and IsolationForest, and sums of models; models of XGBoost, LightGBM and CatBoost; "
        "forests and boosting of scikit-survival, means of quantile-forest, interpret's boosting machines, YDF; trees "
        "in ONNX; paths of their files, and folders of Spark and YDF."
    )


def _with_response(ensemble: TreeEnsemble, response: str) -> TreeEnsemble:
    """The ensemble behind a function of its predictions, which does not change it, but what it means."""
    if response == "same":
        return ensemble
    known = ensemble.objective in ("squared_error", "regression") and response != "other"
    return ensemble.replace(objective=response if known else "")


def _read_member(model: Any, levels: Levels | None = None, most_leaves: float = math.inf) -> TreeEnsemble:
    """A member of a model of models: what it predicts, of the rows that the whole model gets.

    In columns for which ``levels`` are given, rows hold the number of a level.
    """
    opened = open_model(model)
    if not is_readable(opened.final):
        raise UnsupportedModelError(
            f"the model has a {type(opened.final).__name__} for a member, which is no tree model that can be read."
        )
    trees = read_opened(opened)
    if trees.n_leaves > most_leaves:
        raise sklearn_members.TooLargeError(f"a member has {trees.n_leaves} leaves.")
    if opened.before is not None:
        behind = before_steps(trees, opened.before, levels or {})
        return behind.replace(casting=behind_steps({trees.casting}))
    return of_levels(trees, levels) if levels else trees


def is_readable(model: Any) -> bool:
    """Whether `read_model` has a reader for what ``model`` is; it may still refuse this one.

    Of a model of models: whether it has one for some member.
    """
    if isinstance(model, TreeEnsemble | str | bytes | Path):
        return True
    keys = _keys(type(model))  # type: ignore[arg-type]
    if any(key in _SUMS for key in keys):
        members = members_of(model)
        return not members or any(is_readable(open_model(member).final) for member in members)
    return any(key in _READERS for key in keys)


def _find_reader(model: Any) -> tuple[Callable[[Any], TreeEnsemble], str] | None:
    """The reader of a model, and the library that it is for."""
    for key in _keys(type(model)):  # type: ignore[arg-type]
        if key in _READERS:
            return _READERS[key], key[0]
        if key in _SUMS:
            return partial(_SUMS[key], read=_read_member), key[0]
    return None


@lru_cache(maxsize=256)
def _keys(class_: Any) -> tuple[tuple[str, str], ...]:
    """Library and name of a model's class and of its bases."""
    return tuple((_library(base), base.__name__) for base in class_.__mro__)


def _library(class_: type) -> str:
    return class_.__module__.partition(".")[0]


def _refuse_other_predictions(model: Any, library: str) -> None:
    """Raise where a subclass from elsewhere predicts in its own way (quantile forests, survival forests)."""
    for base in type(model).__mro__:
        own = {"predict", "predict_proba", "decision_function"} & vars(base).keys()
        if own and _library(base) != library:
            raise UnsupportedModelError(
                f"model is a {base.__module__}.{base.__qualname__}, which is built on {library} but has its "
                f"own {' and '.join(sorted(own))}: its trees alone do not say what it predicts."
            )
        if own:
            return
