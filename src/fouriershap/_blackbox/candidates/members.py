"""Candidate "members": trees that a model is made of, weighted by least squares, and boosted trees for the rest.

A calibration or a last step is mostly linear in its members' outputs, and that part has exact values.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._blackbox.candidates.quick_trees import fit_quick_trees
from fouriershap._blackbox.surrogates import TreeSurrogate
from fouriershap._blackbox.task import CandidateFit, Task
from fouriershap._libraries import read_members
from fouriershap._rows.levels import LABEL, NUMBER, Encoding
from fouriershap._shapley.engine import Floats
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model
from fouriershap._trees.arithmetic import add, map_columns, map_outputs, to_float64
from fouriershap._trees.ensemble import LEAF, TreeEnsemble
from fouriershap._trees.level_sets import split_by_level

NAME = "members"
MOST_LEAVES = (
    30_000  # about a millisecond to explain a row: from there on fitted trees are the better bargain
)
_SAME_SUM = 1e-9
_ALIKE = 1e-9  # singular values below this share mean outputs that are the same


def find_members(model: Any, encoding: Encoding) -> TreeEnsemble | None:
    """Return the members of a model as trees on codes; None where it has none, or they take long to explain."""
    labels = {f.columns[0]: f.levels for f in encoding.features if f.kind == LABEL}
    found = read_members(model, labels, MOST_LEAVES)
    if found is None or found.rules.zero_as_missing or not np.isnan(found.rules.missing_value):
        return None
    return None if found.rules.vocabularies else members_on_codes(found.trees, encoding)


def members_on_codes(members: TreeEnsemble | None, encoding: Encoding) -> TreeEnsemble | None:
    """Return members on codes, given members on rows that hold the numbers of levels in place of labels."""
    if members is None or members.n_features != len(encoding.column_player):
        return None
    place = np.zeros(members.n_features, dtype=np.int64)
    kind = np.full(members.n_features, "", dtype=object)
    for f, feature in enumerate(encoding.features):
        if feature.kind in (NUMBER, LABEL):
            place[feature.columns[0]], kind[feature.columns[0]] = f, feature.kind
    tested = np.unique(members.feature[members.feature != LEAF])
    as_coded = kind[tested] == np.where(members.is_categorical[tested], LABEL, NUMBER)
    if not as_coded.all() or members.n_leaves > MOST_LEAVES:
        return None
    return map_columns(to_float64(members), place, len(encoding.features))


def fit_members(task: Task) -> CandidateFit:
    """Fit weights of the members' outputs by least squares, then trees to the rest; judge on one fold."""
    members = task.members
    if members is None:
        raise InputError(
            "method='members' is for a model of models whose members are trees, not too large; this one has none that "
            "can be read. Use method='auto'."
        )
    begin = time.perf_counter()
    inside = task.fold != 0
    every, shift = _dependent(task.answers)
    answers = task.answers[:, : every.shape[1]]
    said = _outputs(members, task.codes, task.n_jobs)
    weights, mean = _least_squares(said[inside], answers[inside])
    linear = said @ weights + mean
    rest = fit_quick_trees(replace(task, answers=answers - linear))
    predictions = (rest.predictions + linear) @ every.T + shift

    def make() -> TreeSurrogate:
        fitted = rest.make()
        weighted = map_outputs(members, weights.T, mean)
        trees = map_outputs(
            add([weighted, _alike(fitted.representation, members, task.encoding)]), every, shift
        )
        return TreeSurrogate(trees, fitted.player)

    alone = task.judge(np.where(np.isnan(predictions), np.nan, linear @ every.T + shift))
    note = f"the members' outputs ({said.shape[1]} numbers) have R^2 {alone:.4f}; the rest: {rest.note}"
    return CandidateFit(NAME, task.judge(predictions), predictions, make, time.perf_counter() - begin, note)


def _alike(fitted: TreeEnsemble, members: TreeEnsemble, encoding: Encoding) -> TreeEnsemble:
    """Return fitted trees, which test the numbers of levels, with sets of levels where members have these."""
    labelled = np.flatnonzero(members.is_categorical)
    tables = {int(f): np.arange(len(encoding.features[f].levels), dtype=np.float64) for f in labelled}
    return split_by_level(fitted, tables)


def _dependent(answers: Floats) -> tuple[Floats, Floats]:
    """Return all outputs as ``matrix @ some + shift``: without the last where their sum is constant."""
    n = answers.shape[1]
    total = answers.sum(axis=1)
    if n == 1 or np.ptp(total) > _SAME_SUM * np.abs(answers).max():
        return np.eye(n), np.zeros(n)
    return np.vstack([np.eye(n - 1), -np.ones(n - 1)]), np.append(np.zeros(n - 1), total.mean())


def _outputs(members: TreeEnsemble, codes: Floats, n_jobs: int) -> Floats:
    player = np.arange(members.n_features, dtype=np.int32)
    model = make_model(members, player, 0, np.dtype(np.float64))
    return TreeEngine(model, make_background(model, None)).predict(codes, n_jobs)


def _least_squares(said: Floats, answers: Floats) -> tuple[NDArray[np.float64], Floats]:
    """Return weights (n_members, n_outputs) and shift (n_outputs,)."""
    centre, mean = said.mean(axis=0), answers.mean(axis=0)
    scale = said.std(axis=0)
    scale[scale == 0] = 1.0
    found = np.linalg.lstsq((said - centre) / scale, answers - mean, rcond=_ALIKE)[0] / scale[:, None]
    return found, mean - centre @ found
