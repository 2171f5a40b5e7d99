"""Inputs of a page: what its reader sees of a row and may change, in the words of the user's own data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.bit_code import BitCode
from fouriershap._rows.levels import NUMBER, Encoding, Feature
from fouriershap._rows.pool import Pool
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap.report import Input

Floats = NDArray[np.float64]


def tree_inputs(
    X: Any, rows: NDArray[Any], ensemble: TreeEnsemble, names: Iterable[str], player: NDArray[np.int32]
) -> list[Input]:
    """Columns of a tree model. ``rows`` are those of X as the trees compare them (`_trees.rows.to_rows`)."""
    pool = Pool(X, "X")
    if pool.is_frame:
        names = pool.names  # the user's own: LightGBM keeps underscores for spaces
    is_choice = ensemble.is_categorical.copy()
    is_choice[list(ensemble.vocabularies)] = True
    inputs = []
    for f, name in enumerate(names):
        owner, missing = int(player[f]), ensemble.accepts_missing
        if is_choice[f]:
            labels, numbers, positions = _choices(pool.labels(f), rows[:, f], ensemble, f)
            inputs.append(Input(name, owner, positions, missing, labels, numbers))
        else:
            given = pool.numbers(f)  # in the caller's own precision, where it holds numbers
            values = rows[:, f].astype(np.float64) if given is None else given
            inputs.append(Input(name, owner, values, missing))
    return inputs


def _choices(
    found: list[Any], codes: NDArray[Any], ensemble: TreeEnsemble, f: int
) -> tuple[tuple[str, ...], tuple[float, ...], Floats]:
    """Labels of a categorical feature, their codes, and the position of each row's among them.

    The labels that the model knows come first, then what else the rows hold.
    """
    vocabulary = () if ensemble.hashed else ensemble.vocabularies.get(f, ())
    choices = {(str(label), float(c)): c for c, label in enumerate(vocabulary)}
    are_codes = not ensemble.numbers_are_labels
    positions = np.full(len(codes), np.nan)
    for r, (label, code) in enumerate(zip(found, codes.tolist(), strict=True)):
        if code != code:
            continue
        if are_codes and isinstance(label, int | float):
            whole = int(code)
            label = vocabulary[whole] if 0 <= whole < len(vocabulary) else whole
        positions[r] = choices.setdefault((str(label), code), len(choices))
    texts, numbers = zip(*choices, strict=True) if choices else ((), ())
    return texts, numbers, positions


def encoding_inputs(encoding: Encoding, names: tuple[str, ...], codes: Floats) -> list[Input]:
    """Features of a black box that trees on codes stand for; ``codes`` (n_rows, n_features)."""
    inputs = []
    for f, feature in enumerate(encoding.features):
        missing = bool(np.isnan(codes[:, f]).any())
        labels = None
        if feature.kind != NUMBER:
            labels = tuple(feature.text(c, names) for c in range(len(feature.levels)))
        numbers = tuple(float(c) for c in range(len(feature.levels)))
        inputs.append(Input(feature.name, feature.player, codes[:, f], missing, labels, numbers))
    return inputs


def level_inputs(encoding: Encoding, names: tuple[str, ...], code: BitCode, codes: Floats) -> list[Input]:
    """Players of a black box that a spectrum stands for: each is a choice among the levels it was asked about."""
    inputs = []
    for p, player in enumerate(code.players):
        features = [encoding.features[f] for f in player.features]
        labels = tuple(_combination(features, level, names) for level in player.levels)
        numbers = tuple(float(k) for k in range(len(labels)))
        values = player.find(codes, "X").astype(np.float64)
        inputs.append(Input(player.name, p, values, False, labels, numbers))
    return inputs


def bit_inputs(bits: NDArray[np.uint8], names: tuple[str, ...], player: NDArray[np.int32]) -> list[Input]:
    """Bits (n_rows, n_bits) of a spectrum: each is a choice between 0 and 1."""
    columns = bits.T.astype(np.float64)
    return [
        Input(name, int(player[j]), columns[j], False, ("0", "1"), (0.0, 1.0)) for j, name in enumerate(names)
    ]


def _combination(features: list[Feature], level: Floats, names: tuple[str, ...]) -> str:
    texts = [feature.text(code, names) for feature, code in zip(features, level, strict=True)]
    if len(texts) == 1:
        return texts[0]
    return ", ".join(f"{feature.name} = {text}" for feature, text in zip(features, texts, strict=True))
