"""A fitted black box as named arrays, and back: what its .fshap file holds. The model is no part of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FileFormatError, InputError
from fouriershap._base.files import Contents
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.select import Candidate
from fouriershap._blackbox.surrogates import (
    Compiled,
    CompiledSpectrum,
    CompiledTrees,
    Surrogate,
    TreeSurrogate,
)
from fouriershap._rows.levels import Encoding, Feature

KIND = "black box explainer"


def state_to_contents(
    fitted: Fitted, compiled: Compiled, names: tuple[str, ...], interactions: bool
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and header."""
    arrays, inner = compiled.to_contents(interactions)
    encoding = fitted.encoding
    header = {
        "method": fitted.method,
        "representation": "trees" if isinstance(fitted.surrogate, TreeSurrogate) else "spectrum",
        "surrogate": inner,
        "feature_names": names,
        "player_names": encoding.player_names,
        "features": [_feature_header(feature) for feature in encoding.features],
        "fidelity": fitted.fidelity.to_header(),
        "candidates": [asdict(line) for line in fitted.candidates],
    }
    stored = {f"surrogate.{name}": array for name, array in arrays.items()}
    return stored | {"column_player": encoding.column_player}, header


def state_from_contents(contents: Contents) -> tuple[Fitted, Compiled, tuple[str, ...]]:
    """The inverse of `state_to_contents`."""
    header = contents.header
    features = tuple(_feature(entry) for entry in header["features"])
    column_player = np.asarray(contents.arrays["column_player"], dtype=np.int32)
    encoding = Encoding(features, column_player, tuple(header["player_names"]))
    _verify(encoding, len(header["feature_names"]))
    parts = {name[10:]: array for name, array in contents.arrays.items() if name.startswith("surrogate.")}
    inner = Contents(KIND, parts, header["surrogate"])
    surrogate: Surrogate
    if header["representation"] == "trees":
        surrogate, compiled = CompiledTrees.from_contents(inner, encoding.player)
    elif header["representation"] == "spectrum":
        surrogate, compiled = CompiledSpectrum.from_contents(inner)
    else:
        raise FileFormatError(f"the file holds a representation of kind {header['representation']!r}.")
    fidelity = Fidelity.from_header(header["fidelity"])
    candidates = tuple(Candidate(**line) for line in header["candidates"])
    fitted = Fitted(header["method"], surrogate, encoding, fidelity, candidates)
    return fitted, compiled, tuple(header["feature_names"])


def _verify(encoding: Encoding, n_columns: int) -> None:
    """Raise `FileFormatError` unless columns, features and players belong together."""
    columns = [column for feature in encoding.features for column in feature.columns]
    fits = encoding.column_player.shape == (n_columns,) and bool(encoding.features)
    fits = fits and all(feature.columns for feature in encoding.features)
    fits = fits and all(isinstance(column, int) and 0 <= column < n_columns for column in columns)
    owners = [*encoding.column_player.tolist(), *(feature.player for feature in encoding.features)]
    if not fits or not all(isinstance(p, int) and 0 <= p < encoding.n_players for p in owners):
        raise FileFormatError(
            "the file is damaged: its columns, features and players do not belong together."
        )


def _feature_header(feature: Feature) -> dict[str, Any]:
    for level in feature.levels:
        if not isinstance(level, str | int | float | bool):
            raise InputError(
                f"the level {level!r} of {feature.name!r} is a {type(level).__name__}, which a file cannot "
                "hold. Use text or numbers as labels."
            )
    return asdict(feature)


def _feature(entry: dict[str, Any]) -> Feature:
    return Feature(**(entry | {"columns": tuple(entry["columns"]), "levels": tuple(entry["levels"])}))
