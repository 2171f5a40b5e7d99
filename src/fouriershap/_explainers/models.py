"""What explainers of trees and of products share: the model read once, its background, its names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_array, numbered_names
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._explainers.parts import Parts
from fouriershap._libraries import ModelCheck, Reading, native_rows, read
from fouriershap._rows.cityhash import hash_label
from fouriershap._rows.frames import column_names, in_order, unmask
from fouriershap._rows.inputs import InputAdapter, RulesEncoder
from fouriershap._rows.pool import Pool
from fouriershap._rows.preprocessing import InputColumn
from fouriershap._rows.rules import InputRules
from fouriershap._shapley.engine import Engine


class Entered(NamedTuple):
    """A background as it was given, as it enters the model, and some rows of it for trying out steps."""

    given: Any
    rows: Any
    sample: Any


def read_or_refuse(model: Any, trees: bool) -> Reading:
    """Read a model that must be of trees, or of products; errors name the alternative."""
    try:
        reading = read(model)
        if reading.is_trees != trees:
            kind = "a tree model" if trees else "a sum of products"
            raise UnsupportedModelError(f"model ({reading.kind}) is not {kind}.")
        return reading
    except UnsupportedModelError as error:
        if not trees or not hasattr(model, "predict"):
            raise
        raise UnsupportedModelError(
            f"{error} fs.Explainer(model, background) explains it as a black box."
        ) from error


def enter_background(reading: Reading, background: Any) -> Entered:
    """Put the columns of a background in the model's order, and take it through the steps before the model."""
    steps = reading.preprocessing
    given = native_rows(unmask(background), "background")
    given = in_order(given, reading.feature_names if steps is None else steps.known_names())
    if steps is None or given is None:
        return Entered(given, given, None)
    return Entered(given, steps.transform(given, "background"), steps.first_rows(given))


def feature_names_of(
    given: ArrayLike | None, reading: Reading, entered: Entered
) -> tuple[InputRules, tuple[str, ...]]:
    """Return the names of the features, and the rules with the names that frames are checked against."""
    rules, n_features = reading.rules, reading.n_features
    made = None if reading.preprocessing is None else reading.preprocessing.output_names()
    if made is not None and len(made) == n_features:
        rules = rules.replace(feature_names=made)
    if given is not None:
        names = tuple(str(name) for name in as_array(given, "feature_names").reshape(-1).tolist())
        if len(names) != n_features:
            raise InputError(f"feature_names has {len(names)} names for {n_features} features.")
        return rules, names
    found = rules.feature_names
    if found is None and entered.rows is not None and not isinstance(entered.rows, np.ndarray):
        found = column_names(entered.rows)
    if found is not None and len(found) != n_features:
        found = None  # encoding the rows says what is wrong with them
    return rules, found or numbered_names(n_features)


def with_labels_of(rules: InputRules, background: Any) -> InputRules:
    """Return rules that know the labels of a background, too, where the model names only those of its splits."""
    if not (rules.labels.in_splits_only and rules.vocabularies):
        return rules
    pool = Pool(background, "background")
    known = {
        f: tuple(dict.fromkeys([*known, *map(hash_label, set(pool.labels(f)) - {None})]))
        for f, known in rules.vocabularies.items()
    }
    return rules.replace(vocabularies=known, labels=replace(rules.labels, in_splits_only=False))


def model_parts(
    kind: str,
    reading: Reading,
    engine: Engine,
    rules: InputRules,
    names: tuple[str, ...],
    players: tuple[NDArray[np.int32], tuple[str, ...], tuple[InputColumn, ...] | None],
    sample: Any,
    check: ModelCheck | None,
    **others: Any,
) -> Parts:
    """Put together the parts of an explainer of a model that was read; ``others`` are fields of `Parts`."""
    player, player_names, columns = players
    inputs = InputAdapter(
        encoder=RulesEncoder(rules, names),
        feature_names=names,
        player=player,
        player_names=player_names,
        preprocessing=reading.preprocessing,
        input_columns=columns,
        sample=sample,
        unpack=native_rows,
        check=check,
    )
    return Parts(kind, inputs, engine, output_names=reading.output_names, **others)
