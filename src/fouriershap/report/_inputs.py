"""Inputs of the page: what its reader sees of a row and may change, in the terms of the user's own data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.bit_code import BitCode
from fouriershap._rows.levels import NUMBER, Encoding
from fouriershap._rows.pool import Pool
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap.report._content import Floats, Input


def tree_inputs(
    X: Any, rows: NDArray[Any], ensemble: TreeEnsemble, names: Iterable[str], player: NDArray[np.int32]
) -> list[Input]:
    """Return the columns of a tree model; ``rows`` are the rows of X as the trees compare them."""
    pool = Pool(X, "X")
    if pool.is_frame:
        names = pool.names  # the user's own: LightGBM replaces spaces by underscores
    is_choice = ensemble.is_categorical.copy()
    is_choice[list(ensemble.vocabularies)] = True
    inputs = []
    for f, name in enumerate(names):
        owner, missing = int(player[f]), ensemble.accepts_missing
        if is_choice[f]:
            labels, numbers, positions = _choices(pool.labels(f), rows[:, f], ensemble, f)
            inputs.append(Input(name, owner, positions, missing, labels, numbers))
        else:
            given = pool.numbers(f)  # in the caller's own precision, if it holds numbers
            values = rows[:, f].astype(np.float64) if given is None else given
            inputs.append(Input(name, owner, values, missing))
    return inputs


def _choices(
    found: list[Any], codes: NDArray[Any], ensemble: TreeEnsemble, f: int
) -> tuple[tuple[str, ...], tuple[float, ...], Floats]:
    """Return the labels of a categorical feature, their codes, and the position of each row's label among them.

    The labels that the model knows come first, then other labels of the rows.
    """
    vocabulary = () if ensemble.hashed else ensemble.vocabularies.get(f, ())
    choices = {(str(label), float(c)): c for c, label in enumerate(vocabulary)}
    positions = np.full(len(codes), np.nan)
    for r, (label, code) in enumerate(zip(found, codes.tolist(), strict=True)):
        if code != code:
            continue
        if isinstance(label, int | float) and not ensemble.numbers_are_labels:
            position = int(code)
            label = vocabulary[position] if 0 <= position < len(vocabulary) else position
        positions[r] = choices.setdefault((str(label), code), len(choices))
    texts, numbers = zip(*choices, strict=True) if choices else ((), ())
    return texts, numbers, positions


def number_inputs(
    X: Any, codes: NDArray[Any], names: Iterable[str], player: NDArray[np.int32]
) -> list[Input]:
    """Return columns of numbers, under the names of X if it is a frame."""
    pool = Pool(X, "X")
    shown = pool.names if pool.is_frame else names
    return [Input(name, int(player[f]), codes[:, f], False) for f, name in enumerate(shown)]


def encoding_inputs(encoding: Encoding, names: tuple[str, ...], codes: Floats) -> list[Input]:
    """Return the features of a black box that is represented by trees on codes (n_rows, n_features)."""
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
    """Return the players of a black box that is represented by a spectrum: choices among the queried levels."""
    inputs = []
    for p, player in enumerate(code.players):
        features = [encoding.features[f] for f in player.features]
        labels = []
        for level in player.levels:
            texts = [feature.text(c, names) for feature, c in zip(features, level, strict=True)]
            named = [f"{feature.name} = {text}" for feature, text in zip(features, texts, strict=True)]
            labels.append(texts[0] if len(texts) == 1 else ", ".join(named))
        numbers = tuple(float(k) for k in range(len(labels)))
        values = player.find(codes, "X").astype(np.float64)
        inputs.append(Input(player.name, p, values, False, tuple(labels), numbers))
    return inputs


def bit_inputs(bits: NDArray[np.uint8], names: tuple[str, ...], player: NDArray[np.int32]) -> list[Input]:
    """Return the bits (n_rows, n_bits) of a spectrum: choices between 0 and 1."""
    columns = bits.T.astype(np.float64)
    return [
        Input(name, int(player[j]), columns[j], False, ("0", "1"), (0.0, 1.0)) for j, name in enumerate(names)
    ]
