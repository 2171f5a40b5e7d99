"""Trees on columns that hold the number of a level: nodes that say which levels go left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._trees.ensemble import TreeEnsemble

Levels = Mapping[int, tuple[Any, ...]]  # the labels of each column that holds labels
Floats = NDArray[np.float64]


def split_by_level(
    e: TreeEnsemble, tables: Mapping[int, Floats], missing: Floats | None = None
) -> TreeEnsemble:
    """Return trees that decide the same where features hold the number of a level instead of what trees compare.

    Parameters
    ----------
    tables : mapping
        Feature to what the trees compare at each of its levels, (n_levels,).
    missing : (n_features,) float64, optional
        What they compare where the level is missing; NaN by default.
    """
    if not tables:
        return e
    sets = [e.set_categories[e.set_start[s] : e.set_start[s + 1]] for s in range(len(e.set_start) - 1)]
    category_set, missing_left = e.category_set.copy(), e.missing_left.copy()
    for f, values in tables.items():
        compared = np.append(values, np.nan if missing is None else missing[f])
        for node in np.flatnonzero(e.feature == f):
            left = _goes_left(e, int(node), compared)
            category_set[node], missing_left[node] = len(sets), left[-1]
            sets.append(np.flatnonzero(left[:-1]))
    ends = np.cumsum([0, *map(len, sets)])
    return e.replace(
        category_set=category_set,
        missing_left=missing_left,
        set_start=ends,
        set_categories=np.concatenate(sets),
    )


def _goes_left(e: TreeEnsemble, node: int, values: Floats) -> NDArray[np.bool_]:
    """Whether a node sends each of the values (n_values,) left."""
    values = values.astype(e.dtype).astype(np.float64)
    found = e.category_set[node]
    if found < 0:
        left = ~(values >= e.threshold[node])
    else:
        left = np.isin(np.trunc(values), e.set_categories[e.set_start[found] : e.set_start[found + 1]])
    return np.asarray(np.where(np.isnan(values), e.missing_left[node], left), dtype=bool)


def remap_levels(e: TreeEnsemble, changes: Mapping[int, NDArray[Any]]) -> TreeEnsemble:
    """Return the trees for levels with other numbers: ``changes[f]`` (n_levels,) has the new number of each old one."""
    categories = e.set_categories.copy()
    for node in np.flatnonzero((e.category_set >= 0) & np.isin(e.feature, list(changes))):
        s = e.category_set[node]
        members = slice(e.set_start[s], e.set_start[s + 1])
        categories[members] = np.sort(
            changes[int(e.feature[node])][e.set_categories[members]].astype(np.int64)
        )
    return e.replace(set_categories=categories)
