"""A fitted black box as named arrays, and back: what its .fshap file holds. The model is no part of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FileFormatError, InputError
from fouriershap._base.files import Contents
from fouriershap._blackbox.bit_code import BitCode
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.select import Candidate
from fouriershap._blackbox.surrogates import LevelEngine, SpectrumSurrogate, Surrogate, TreeSurrogate
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.levels import Encoding, Feature
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.trees.engine import TreeEngine

Arrays = dict[str, NDArray[Any]]


def fitted_to_contents(fitted: Fitted) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and header of what was fitted, beside those of its engine."""
    encoding = fitted.encoding
    arrays: Arrays = {"column_player": encoding.column_player}
    header: dict[str, Any] = {
        "fitted_by": fitted.method,
        "features": [_feature_header(feature) for feature in encoding.features],
        "fidelity": fitted.fidelity.to_header(),
        "candidates": [asdict(line) for line in fitted.candidates],
        "representation": "trees",
    }
    if isinstance(fitted.surrogate, SpectrumSurrogate):
        spectrum, about = fitted.surrogate.spectrum.to_contents()
        code, names = fitted.surrogate.code.to_contents()
        arrays |= {f"spectrum.{name}": array for name, array in spectrum.items()} | code
        header |= {"representation": "spectrum", "spectrum": about, "code": names}
    return arrays, header


def fitted_from_contents(arrays: Arrays, header: dict[str, Any]) -> tuple[Fitted, Engine]:
    """The inverse of `fitted_to_contents`, with the engine: nothing is compiled, tables stay where they are."""
    arrays, header, inner, about = _as_written_now(arrays, header)
    features = tuple(_feature(entry) for entry in header["features"])
    column_player = np.asarray(arrays["column_player"], dtype=np.int32)
    encoding = Encoding(features, column_player, tuple(header["player_names"]))
    _verify(encoding, len(header["feature_names"]))
    surrogate: Surrogate
    engine: Engine
    if header["representation"] == "trees":
        engine = TreeEngine.from_contents(inner, about)
        surrogate = TreeSurrogate(engine.ensemble, encoding.player)
    elif header["representation"] == "spectrum":
        parts = {name[9:]: array for name, array in inner.items() if name.startswith("spectrum.")}
        spectrum = Spectrum.from_contents(Contents("spectrum", parts, about["spectrum"]))
        surrogate = SpectrumSurrogate(spectrum, BitCode.from_contents(inner, about["code"]))
        if "terms.start" in inner:
            engine = LevelEngine(surrogate.code, SpectrumEngine.from_contents(inner, about))
        else:  # files of 0.1.0 kept the bits of the background in place of tables
            bits, weights = inner["background"], inner.get("weights")
            engine = surrogate.compile_bits(bits, weights, about.get("index", "shapley"))
    else:
        raise FileFormatError(f"the file holds a representation of kind {header['representation']!r}.")
    fidelity = Fidelity.from_header(header["fidelity"])
    candidates = tuple(Candidate(**line) for line in header["candidates"])
    return Fitted(header["fitted_by"], surrogate, encoding, fidelity, candidates), engine


def _as_written_now(
    arrays: Arrays, header: dict[str, Any]
) -> tuple[Arrays, dict[str, Any], Arrays, dict[str, Any]]:
    """What was fitted, and its engine: one flat space of names; files of 0.1.0 had the engine in one of its own."""
    if "surrogate" not in header:
        return arrays, header, arrays, header
    inner = {name[10:]: array for name, array in arrays.items() if name.startswith("surrogate.")}
    return arrays, header | {"fitted_by": header["method"]}, inner, header["surrogate"]


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
