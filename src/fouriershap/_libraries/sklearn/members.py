"""scikit-learn's models of models that are no sums of trees: their members, which may be trees all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._trees.arithmetic import map_outputs, on_columns, side_by_side
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.level_sets import Levels
from fouriershap._trees.readers.sklearn_sums import members_of


class TooLargeError(UnsupportedModelError):
    """A member has more leaves than all of them may have."""


def read(
    model: Any, read: Callable[[Any, Levels, float], TreeEnsemble], levels: Levels, most_leaves: float
) -> TreeEnsemble | None:
    """Raw outputs of all members that are trees, side by side, on the columns of the whole; None for none.

    In columns for which ``levels`` are given, rows hold the number of a level. None, too, where the members have more
    than ``most_leaves``; then as few of them as possible are read.
    """
    parts: list[TreeEnsemble] = []
    for k, member in enumerate(members_of(model)):
        known = levels
        if hasattr(model, "estimators_features_"):
            seen = enumerate(model.estimators_features_[k])
            known = {i: levels[int(column)] for i, column in seen if int(column) in levels}
        try:
            part = read(member, known, most_leaves - sum(part.n_leaves for part in parts))
        except TooLargeError:
            return None
        except (UnsupportedModelError, InputError):
            continue  # what it adds is left to be fitted
        if part.objective == "probability" and part.n_outputs == 2:  # the first tells nothing more
            part = map_outputs(part, [[0.0, 1.0]])
        if hasattr(model, "estimators_features_"):
            part = on_columns(part, model.estimators_features_[k], model.n_features_in_)
        parts.append(part)
    try:
        return side_by_side(parts) if parts else None
    except (
        UnsupportedModelError,
        InputError,
    ):  # members that read rows in ways that no one row can be read in
        return None
