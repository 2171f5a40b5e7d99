"""A fitted black box as named arrays, and back: what its .fshap file holds. The model is no part of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray

from fouriershap._base.checks import check_choice
from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import require, take, take_part
from fouriershap._base.short import short
from fouriershap._blackbox.bit_code import BitCode
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.select import Candidate
from fouriershap._blackbox.surrogates import LevelEngine, SpectrumSurrogate, Surrogate, TreeSurrogate
from fouriershap._blackbox.verify import (
    verify_background_bits,
    verify_bits,
    verify_code,
    verify_encoding,
    verify_tree_surrogate,
)
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.levels import Encoding, Feature
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import INDICES
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
    names, players = (take(header, key, tuple[str, ...]) for key in ("feature_names", "player_names"))
    encoding = Encoding(take(header, "features", tuple[Feature, ...]), arrays["column_player"], players)
    verify_encoding(encoding, len(names))
    surrogate: Surrogate
    engine: Engine
    kind = take(header, "representation", str)
    require(kind in ("trees", "spectrum"), "it holds a representation that nobody knows")
    if kind == "trees":
        engine = TreeEngine.from_contents(inner, about)
        verify_tree_surrogate(engine, encoding)
        surrogate = TreeSurrogate(engine.ensemble, encoding.player)
    else:
        surrogate, engine = _spectrum_from_contents(inner, about, encoding)
    fidelity = Fidelity.from_header(take_part(header, "fidelity"))
    require(len(fidelity.by_output) in (0, engine.n_outputs), "its certificate is that of other outputs")
    candidates = take(header, "candidates", tuple[Candidate, ...])
    return Fitted(take(header, "fitted_by", str), surrogate, encoding, fidelity, candidates), engine


def _spectrum_from_contents(
    arrays: Arrays, header: dict[str, Any], encoding: Encoding
) -> tuple[SpectrumSurrogate, LevelEngine]:
    parts = {name[9:]: array for name, array in arrays.items() if name.startswith("spectrum.")}
    spectrum = Spectrum.from_contents(Contents("spectrum", parts, take_part(header, "spectrum")))
    surrogate = SpectrumSurrogate(spectrum, BitCode.from_contents(arrays, take_part(header, "code")))
    verify_code(surrogate.code, encoding)
    if "terms.start" in arrays:
        engine = SpectrumEngine.from_contents(arrays, header)
        verify_bits(spectrum, surrogate.code, engine)
        return surrogate, LevelEngine(surrogate.code, engine)
    # Files of 0.1.0 kept the bits of the background in place of tables.
    bits, weights = arrays["background"], arrays.get("weights")
    verify_background_bits(spectrum, surrogate.code, bits, weights)
    return surrogate, surrogate.compile_bits(
        bits, weights, check_choice("index", take(header, "index", str, "shapley"), INDICES)
    )


def _as_written_now(
    arrays: Arrays, header: dict[str, Any]
) -> tuple[Arrays, dict[str, Any], Arrays, dict[str, Any]]:
    """What was fitted, and its engine: one flat space of names; files of 0.1.0 had the engine in one of its own."""
    if "surrogate" not in header:
        return arrays, header, arrays, header
    inner = {name[10:]: array for name, array in arrays.items() if name.startswith("surrogate.")}
    return arrays, header | {"fitted_by": header["method"]}, inner, take_part(header, "surrogate")


def _feature_header(feature: Feature) -> dict[str, Any]:
    for level in feature.levels:
        if not isinstance(level, str | int | float | bool):
            raise InputError(
                f"the level {short(level)} of {short(feature.name)} is a {type(level).__name__}, which a file cannot "
                "hold. Use text or numbers as labels."
            )
    return asdict(feature)
