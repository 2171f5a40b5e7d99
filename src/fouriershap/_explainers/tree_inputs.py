"""What a `TreeExplainer` is given, checked: background, names, players."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import InputError
from fouriershap._rows.frames import column_names, to_rows
from fouriershap._rows.groups import check_groups
from fouriershap._rows.pipelines import Preprocessing
from fouriershap._shapley.weights import check_weights
from fouriershap._trees import TreeEnsemble


def background_rows(
    background: Any, weights: ArrayLike | None, ensemble: TreeEnsemble
) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
    """Rows as the ensemble takes them, and their shares; None for none."""
    if background is None:
        if weights is not None:
            raise InputError("weights were given, but no background whose rows they could weigh.")
        return None, None
    rows = to_rows(background, ensemble, name="background")
    if isinstance(background, np.ndarray) and np.may_share_memory(rows, background):
        rows = rows.copy()  # tables may be built much later, and the caller's array may change until then
    return rows, check_weights(weights, len(rows))


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
    found = ensemble.feature_names or (column_names(background) if background is not None else None)
    return ensemble, found or _numbered(ensemble.n_features)


@lru_cache(maxsize=8)
def _numbered(n: int) -> tuple[str, ...]:
    return tuple(f"Feature {i}" for i in range(n))


def find_players(
    groups: Any, names: tuple[str, ...], before: Preprocessing | None, background: Any
) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[str, ...] | None]:
    """Player of each feature, the players' names, and the input columns where they are the players."""
    if not isinstance(groups, str) or groups != "input":
        return *check_groups(groups, names), None
    if before is None:
        raise InputError("groups is 'input', which needs a Pipeline with steps before the model.")
    return before.input_players(background, len(names))
