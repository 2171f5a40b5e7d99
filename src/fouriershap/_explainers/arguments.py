"""Arguments of explainers that read models: the model inside, names, players, and shap's words for ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import numbered
from fouriershap._base.errors import InputError, ModelWarning, UnsupportedModelError
from fouriershap._base.short import short, short_list
from fouriershap._base.warn import warn
from fouriershap._explainers.links import OUTPUTS
from fouriershap._rows.frames import column_names
from fouriershap._rows.opening import Opened, open_model
from fouriershap._rows.pipelines import Preprocessing
from fouriershap._rows.players import check_groups
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.readers import is_readable, read_opened


def either(name: str, value: Any, alias: str, given: Any, default: Any) -> Any:
    """An argument under its name here, or under shap's."""
    if given is None:
        return value
    if value is default or (isinstance(value, str) and value == default):
        return given
    raise InputError(f"{name} and {alias} are the same argument; give one of them.")


def check_index(output: Any, ensemble: TreeEnsemble) -> int:
    """The number of an output."""
    if not 0 <= output < ensemble.n_outputs:
        raise InputError(
            f"output is {short(output)}; the model has {ensemble.n_outputs} outputs: give a number from 0 to "
            f"{ensemble.n_outputs - 1}, or one of {short_list(OUTPUTS)}."
        )
    return int(output)


def read_inside(model: Any) -> tuple[Opened, TreeEnsemble]:
    """What is inside a model, and its trees."""
    opened = (
        Opened(model) if is_readable(model) else open_model(model)
    )  # what is read as it is has no wrapper
    return opened, read_opened(opened)


def read_or_refuse(model: Any) -> tuple[Opened, TreeEnsemble]:
    """`read_inside`, whose errors name the way out."""
    try:
        return read_inside(model)
    except UnsupportedModelError as error:
        if not hasattr(model, "predict"):
            raise
        raise UnsupportedModelError(
            f"{error} fs.Explainer(model, background) fits it as a black box."
        ) from error


def say_what_is_explained(response: str, output: Any) -> None:
    """Warn that values are not in the units of what the model predicts."""
    if output == "response":
        return
    way = (
        "output='response' explains that, in its units."
        if response != "other"
        else ("fs.BlackBoxExplainer(model.predict, background) explains that, in its units.")
    )
    warn(
        "model is a TransformedTargetRegressor: values are those of the regressor inside it, in the units of the "
        f"transformed target, not of what model.predict returns. {way}",
        ModelWarning,
    )


def name_features(
    given: ArrayLike | None, ensemble: TreeEnsemble, background: Any, before: Preprocessing | None
) -> tuple[TreeEnsemble, tuple[str, ...]]:
    """Names of the features, and the ensemble with the names that frames are checked against."""
    made = before.output_names() if before is not None else None
    if made is not None and len(made) == ensemble.n_features:
        ensemble = ensemble.replace(feature_names=made)
    if given is not None:
        names = tuple(str(name) for name in np.asarray(given).reshape(-1).tolist())
        if len(names) != ensemble.n_features:
            raise InputError(f"feature_names has {len(names)} names for {ensemble.n_features} features.")
        return ensemble, names
    found = ensemble.feature_names
    if found is None and background is not None and not isinstance(background, np.ndarray):
        found = column_names(background)
    return ensemble, found or numbered(ensemble.n_features)


def native_rows(X: Any, name: str) -> Any:
    """Rows of a ``xgboost.DMatrix`` or a ``catboost.Pool`` as a matrix or a frame, anything else as it is."""
    if type(X).__module__.partition(".")[0] not in ("xgboost", "catboost"):
        return X
    from fouriershap._rows.foreign import given_back

    return given_back(X, name)


def find_players(
    groups: Any, names: tuple[str, ...], before: Preprocessing | None, background: Any
) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[str, ...] | None]:
    """Player of each feature, the players' names, and the input columns where they are the players."""
    if groups is None:
        return np.arange(len(names), dtype=np.int32), names, None
    if not isinstance(groups, str) or groups != "input":
        return *check_groups(groups, names), None
    if before is None:
        raise InputError("groups is 'input', which needs a Pipeline with steps before the model.")
    return before.input_players(background, len(names))
