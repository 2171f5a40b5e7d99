"""Arithmetic of tree readings: sums, linear maps of outputs, other columns.

A sum reads a row once, so its parts must agree on how rows are read. Where they read numbers in different precision,
thresholds are moved so that every number stays on its side; where they differ in what is missing, or in what a label
is, there is no such sum, and an error says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import UNKNOWN
from fouriershap._base.messages import error_text, truncated_repr, truncated_text
from fouriershap._libraries.reading import Floats, Reading
from fouriershap._libraries.sklearn.preprocessing import PipelineSteps
from fouriershap._rows.labels import CODES
from fouriershap._rows.preprocessing import UnknownStepError
from fouriershap._rows.rules import MIXED, STEPS, STEPS_MIXED, Casting
from fouriershap._rows.steps import StepError
from fouriershap._trees import arithmetic as trees
from fouriershap._trees.ensemble import LEAF, TreeEnsemble
from fouriershap._trees.level_sets import Levels, remap_levels
from fouriershap._trees.linear import LinearTrees
from fouriershap._trees.through_steps import before_steps

_LABEL_RULES = ("labels", "negative_is_unknown", "frame_labels", "lost_labels")


def map_outputs(reading: Reading, matrix: ArrayLike, shift: ArrayLike = 0.0) -> Reading:
    """Return a reading whose outputs are ``matrix @ outputs + shift``; matrix (n_new, n_outputs)."""
    return reading.replace(representation=trees.map_outputs(reading.trees, matrix, shift), output_names=None)


def map_leaves(reading: Reading, function: Callable[[Floats], Floats]) -> Reading:
    """Return a reading with other values at its leaves, which hold vectors (n_leaves, n_outputs)."""
    return reading.replace(representation=trees.map_leaves(reading.trees, function), output_names=None)


def scaled(reading: Reading, factor: float) -> Reading:
    """Return a reading with every output times a number."""
    return reading.replace(representation=trees.scaled(reading.trees, factor))


def map_columns(reading: Reading, columns: ArrayLike, n_features: int) -> Reading:
    """Return the reading for a wider row: its feature f is column ``columns[f]``; columns may repeat."""
    place, rules = np.asarray(columns, dtype=np.int64), reading.rules
    same = n_features == rules.n_features and np.array_equal(place, np.arange(n_features))
    made = reading.with_trees(trees.map_columns(reading.trees, place, n_features))
    return made.replace(
        zero_as_missing=tuple(sorted({int(place[f]) for f in rules.zero_as_missing})),
        vocabularies={int(place[f]): labels for f, labels in rules.vocabularies.items()},
        lost_labels=tuple(int(place[f]) for f in rules.lost_labels),
        feature_names=rules.feature_names if same else None,
        frame_labels=rules.frame_labels if same else (),
    )


def one_output(reading: Reading, output: int) -> Reading:
    """Return one of the raw outputs; its link stays where it depends on no other output."""
    if not 0 <= output < reading.n_outputs:
        raise InputError(
            f"output is {truncated_repr(output)}; the model has {reading.n_outputs} outputs: give an integer from 0 to "
            f"{reading.n_outputs - 1}, or the name of what is explained."
        )
    names, e = reading.output_names, reading.representation
    one = e.one_output(output) if isinstance(e, LinearTrees) else trees.one_output(reading.trees, output)
    return reading.replace(
        representation=one,
        output_names=None if names is None else (names[output],),
        link=reading.link if reading.n_outputs == 1 or reading.link.is_elementwise else UNKNOWN,
    )


def first_trees(reading: Reading, limit: int) -> Reading:
    """Return a boosted model as it was after its first trees."""
    e = reading.representation if isinstance(reading.representation, LinearTrees) else reading.trees
    if not reading.is_boosted:
        raise InputError(
            f"tree_limit is {truncated_repr(limit)}, but the model ({truncated_text(reading.kind)}) is not "
            "boosted: some of its "
            "trees are not a model of their own. Leave tree_limit out, or train a model with fewer trees."
        )
    per_round = len(np.unique(e.tree_output))
    if not 0 < limit <= e.n_trees or limit % per_round:
        step = f", a multiple of its {per_round} outputs" if per_round > 1 else ""
        raise InputError(
            f"tree_limit is {truncated_repr(limit)}; give a number of trees from 1 to {e.n_trees}{step}."
        )
    return reading.replace(representation=e.select(np.arange(e.n_trees) < limit))


def side_by_side(parts: Sequence[Reading]) -> Reading:
    """Return all outputs of all parts, in their order."""
    ends, placed = np.cumsum([part.n_outputs for part in parts]).tolist(), []
    for part, end in zip(parts, ends, strict=True):
        among = trees.among_outputs(part.trees, end - part.n_outputs, ends[-1])
        placed.append(part.replace(representation=among, output_names=None))
    return add(placed)


def average(parts: Sequence[Reading], weights: ArrayLike | None = None) -> Reading:
    """Return the weighted mean of readings of the same outputs."""
    share = np.ones(len(parts)) if weights is None else np.asarray(weights, dtype=np.float64)
    return add([scaled(part, w) for part, w in zip(parts, share / share.sum(), strict=True)])


def add(parts: Sequence[Reading]) -> Reading:
    """Return the sum of readings of the same features and outputs; its kind and names are those of the first."""
    for what in ("n_features", "n_outputs"):
        found = sorted({getattr(part, what) for part in parts})
        if len(found) > 1:
            _refuse(
                parts, f"they differ in their numbers of {what.removeprefix('n_')}, {truncated_repr(found)}."
            )
    testing = [part for part in parts if (part.trees.feature != LEAF).any()] or list(parts)
    _check_missing(testing)
    _check_labels(testing)
    vocabularies, ensembles = _one_vocabulary(parts, testing)
    if len({part.rules.dtype for part in testing}) > 1:
        ensembles = [trees.to_float64(e) for e in ensembles]
    dtype = next(e.dtype for e, part in zip(ensembles, parts, strict=True) if part is testing[0])
    total = trees.add([e if e.dtype == dtype else e.replace(dtype=dtype) for e in ensembles])
    labelled = next((part for part in testing if _has_labels(part)), testing[0]).rules
    names = [part.feature_names for part in testing if part.feature_names is not None]
    made = parts[0].with_trees(total)
    return made.replace(
        rules=made.rules.replace(
            casting=_casting(testing),
            feature_names=names[0] if names and all(other == names[0] for other in names) else None,
            missing_value=testing[0].rules.missing_value,
            zero_as_missing=tuple(sorted({f for part in testing for f in part.rules.zero_as_missing})),
            absent_is_missing=testing[0].rules.absent_is_missing,
            accepts_missing=all(part.rules.accepts_missing for part in testing),
            accepts_infinite=all(part.rules.accepts_infinite for part in testing),
            vocabularies=vocabularies,
            **{rule: getattr(labelled, rule) for rule in _LABEL_RULES},
        ),
        computes_in=min((part.computes_in for part in parts), key=lambda dtype: dtype.itemsize),
    )


def merge_steps(reading: Reading, before: PipelineSteps, levels: Levels) -> Reading:
    """Return the reading on the columns that enter the steps before it.

    In columns for which ``levels`` are given, rows hold the number of a level.
    """
    rules = reading.rules
    try:
        if rules.vocabularies or rules.zero_as_missing or not np.isnan(rules.missing_value):
            raise ValueError("the trees have labels, or read a number as missing")
        found = before_steps(reading.trees, *before.read_steps(), levels)
    except (UnknownStepError, StepError, TypeError, ValueError) as error:
        raise UnsupportedModelError(
            f"the model has trees behind steps through which they cannot be read ({error_text(error)}). A "
            "Pipeline around "
            "the whole model is read, whatever its steps."
        ) from error
    return reading.with_trees(found.trees).replace(
        accepts_missing=found.steps_accept_missing and (rules.accepts_missing or found.fills_missing),
        feature_names=before.known_names(),
        casting=_behind_steps([rules.casting]),
        absent_is_missing=False,
    )


def _behind_steps(castings: Sequence[Casting]) -> Casting:
    return STEPS if all(casting.rounds_once for casting in castings) else STEPS_MIXED


def _casting(parts: Sequence[Reading]) -> Casting:
    castings = [part.rules.casting for part in parts]
    if any(casting.behind_steps for casting in castings):
        return _behind_steps(castings)
    alike = len({(part.rules.casting, part.rules.absent_is_missing) for part in parts}) == 1
    return castings[0] if alike else MIXED


def _refuse(parts: Sequence[Reading], why: str) -> NoReturn:
    kinds = truncated_text(", ".join(dict.fromkeys(part.kind for part in parts)))
    raise UnsupportedModelError(f"the members of this model ({kinds}) are not one sum of trees: {why}")


def _check_missing(parts: Sequence[Reading]) -> None:
    rules = [part.rules for part in parts]
    stated = {None if np.isnan(part.missing_value) else part.missing_value for part in rules}
    if len(stated) > 1 or (stated != {None} and len({part.dtype for part in rules}) > 1):
        _refuse(parts, f"the number {truncated_repr(stated - {None})} counts as missing in some of them.")
    zeros = {f for part in rules for f in part.zero_as_missing}
    for part in parts if zeros else ():
        differs = sorted(zeros - set(part.rules.zero_as_missing) - set(part.rules.unused))
        if differs:
            _refuse(parts, f"zero counts as missing in some of them, for feature {differs[0]}.")


def _has_labels(reading: Reading) -> bool:
    rules = reading.rules
    return bool(rules.vocabularies or rules.lost_labels or rules.frame_labels or rules.categorical)


def _check_labels(parts: Sequence[Reading]) -> None:
    labelled = [part for part in parts if _has_labels(part)]
    if not labelled:
        return
    first = labelled[0].rules
    if any(getattr(part.rules, rule) != getattr(first, rule) for rule in _LABEL_RULES for part in labelled):
        _refuse(labelled, "they read labels of categories in different ways.")
    if len({part.rules.dtype for part in parts}) > 1 and first.labels.in_arrays == CODES:
        _refuse(parts, "they read the codes of categories in different precision.")
    categorical = {f for part in labelled for f in (*part.rules.categorical, *part.rules.vocabularies)}
    for part in parts:
        as_number = sorted(categorical - set(part.rules.unused) - set(part.rules.categorical))
        if as_number and not _has_labels(part):
            _refuse(parts, f"feature {as_number[0]} is a number to some of them, and a category to others.")


def _one_vocabulary(
    parts: Sequence[Reading], testing: Sequence[Reading]
) -> tuple[dict[int, tuple[Any, ...]], list[TreeEnsemble]]:
    """One vocabulary per feature, and the trees of all parts in its codes."""
    found: dict[int, dict[Any, int]] = {}
    for part in testing:
        for feature, labels in part.rules.vocabularies.items():
            codes = found.setdefault(feature, {})
            for label in labels:
                codes.setdefault(label, len(codes))
    merged = {feature: tuple(codes) for feature, codes in found.items()}
    remapped = []
    for part in parts:
        known = part.rules.vocabularies
        changed = [f for f, labels in known.items() if labels != merged.get(f, labels)]
        if changed and part.rules.labels.in_arrays == CODES:
            _refuse(testing, f"feature {changed[0]} has different labels in them, whose codes are rows, too.")
        changes = {f: np.array([found[f][label] for label in known[f]]) for f in changed}
        remapped.append(remap_levels(part.trees, changes) if changes else part.trees)
    return merged, remapped
