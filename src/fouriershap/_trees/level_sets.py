"""Trees that test labels, in the codes of another list of labels: nodes that say which levels go left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.labels import category_codes

Levels = Mapping[int, tuple[Any, ...]]  # the labels of each column that holds labels
Floats = NDArray[np.float64]


def by_level(e: TreeEnsemble, tables: Mapping[int, Floats], missing: Floats | None = None) -> TreeEnsemble:
    """The same decisions, where features hold the number of a level instead of what the trees compare.

    Parameters
    ----------
    tables : mapping
        Of each such feature what the trees compare, (n_levels,), for each of its levels.
    missing : (n_features,) float64, optional
        What they compare where the level is missing; NaN, and without this, that it is.
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
        vocabularies={f: labels for f, labels in e.vocabularies.items() if f not in tables},
    )


def _goes_left(e: TreeEnsemble, node: int, values: Floats) -> NDArray[np.bool_]:
    """Where a node sends what it compares, (n_values,)."""
    values = values.astype(e.dtype).astype(np.float64)
    found = e.category_set[node]
    if found < 0:
        left = ~(values >= e.threshold[node])
    else:
        left = np.isin(np.trunc(values), e.set_categories[e.set_start[found] : e.set_start[found + 1]])
    return np.asarray(np.where(np.isnan(values), e.missing_left[node], left), dtype=bool)


def recoded(e: TreeEnsemble, changes: Mapping[int, NDArray[Any]]) -> TreeEnsemble:
    """The same trees after levels got other numbers: ``changes[f]`` (n_levels,) is the new one of each old one."""
    categories = e.set_categories.copy()
    for node in np.flatnonzero((e.category_set >= 0) & np.isin(e.feature, list(changes))):
        s = e.category_set[node]
        members = slice(e.set_start[s], e.set_start[s + 1])
        categories[members] = np.sort(
            changes[int(e.feature[node])][e.set_categories[members]].astype(np.int64)
        )
    return e.replace(set_categories=categories)


def of_levels(e: TreeEnsemble, levels: Levels) -> TreeEnsemble:
    """The trees where these columns hold the number of a level; `UnsupportedModelError` where labels are not known."""
    tables = {}
    for f in np.unique(e.feature[e.feature >= 0]).tolist():
        if f not in levels:
            continue
        labels = np.array([*levels[f], None], dtype=object)[:-1]
        if f in e.vocabularies:
            tables[f] = category_codes(e, f, labels)
        elif e.is_categorical[f] or not all(isinstance(label, int | float) for label in levels[f]):
            raise UnsupportedModelError(f"the model does not tell which labels its feature {f} has.")
        else:
            tables[f] = labels.astype(np.float64)
    return by_level(e, tables)
