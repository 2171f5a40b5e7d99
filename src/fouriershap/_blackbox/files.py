"""A fitted black box as named arrays, and back: what its .fshap file holds. The model is no part of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import require, take, take_part
from fouriershap._base.short import short
from fouriershap._blackbox.bit_code import BitCode
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.select import Candidate
from fouriershap._blackbox.sum_surrogate import SumSurrogate
from fouriershap._blackbox.surrogates import LevelEngine, SpectrumSurrogate, Surrogate, TreeSurrogate
from fouriershap._blackbox.verify import (
    verify_background_bits,
    verify_bits,
    verify_code,
    verify_encoding,
    verify_tree_surrogate,
    verify_waves,
)
from fouriershap._blackbox.wave_surrogate import WaveSurrogate
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.levels import Encoding, Feature
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import find_index
from fouriershap._shapley.products.engine import ProductEngine
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.sum import SumEngine, part_contents
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._waves.waves import Waves

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
    }
    more, about = _surrogate_contents(fitted.surrogate)
    return arrays | more, header | about


def _surrogate_contents(surrogate: Surrogate) -> tuple[Arrays, dict[str, Any]]:
    """What its engine does not hold."""
    if isinstance(surrogate, SpectrumSurrogate):
        spectrum, about = surrogate.spectrum.to_contents()
        code, names = surrogate.code.to_contents()
        arrays = {f"spectrum.{name}": array for name, array in spectrum.items()} | code
        return arrays, {"representation": "spectrum", "spectrum": about, "code": names}
    if isinstance(surrogate, WaveSurrogate):
        waves, _ = surrogate.waves.to_contents()
        return {f"waves.{name}": array for name, array in waves.items()}, {"representation": "waves"}
    if isinstance(surrogate, SumSurrogate):
        arrays = {}
        for part in surrogate.parts:
            arrays |= _surrogate_contents(part)[0]
        return arrays, {"representation": "sum"}
    return {}, {"representation": "trees"}


def fitted_from_contents(arrays: Arrays, header: dict[str, Any]) -> tuple[Fitted, Engine]:
    """The inverse of `fitted_to_contents`, with the engine: nothing is compiled, tables stay where they are."""
    arrays, header, inner, about = _as_written_now(arrays, header)
    names, players = (take(header, key, tuple[str, ...]) for key in ("feature_names", "player_names"))
    encoding = Encoding(take(header, "features", tuple[Feature, ...]), arrays["column_player"], players)
    verify_encoding(encoding, len(names))
    surrogate, engine = _surrogate_from_contents(inner, about | _kind_of(header), encoding)
    fidelity = Fidelity.from_header(take_part(header, "fidelity"))
    require(len(fidelity.by_output) in (0, engine.n_outputs), "its certificate is that of other outputs")
    candidates = take(header, "candidates", tuple[Candidate, ...])
    return Fitted(take(header, "fitted_by", str), surrogate, encoding, fidelity, candidates), engine


def _kind_of(header: dict[str, Any]) -> dict[str, str]:
    return {"representation": take(header, "representation", str)}


def _surrogate_from_contents(
    arrays: Arrays, header: dict[str, Any], encoding: Encoding
) -> tuple[Surrogate, Engine]:
    kind = header["representation"]
    if kind == "spectrum":
        return _spectrum_from_contents(arrays, header, encoding)
    if kind == "waves":
        return _waves_from_contents(arrays, arrays, header, encoding)
    if kind == "trees":
        return _trees_from_contents(arrays, header, encoding)
    require(kind == "sum", "it holds a representation that nobody knows")
    trees, tree_engine = _trees_from_contents(*part_contents(arrays, header, 0), encoding)
    waves, wave_engine = _waves_from_contents(arrays, *part_contents(arrays, header, 1), encoding)
    require(tree_engine.n_outputs == wave_engine.n_outputs, "its parts have other outputs")
    require(tree_engine.index == wave_engine.index, "its parts have other indices")
    return SumSurrogate((trees, waves)), SumEngine((tree_engine, wave_engine))


def _trees_from_contents(
    arrays: Arrays, header: dict[str, Any], encoding: Encoding
) -> tuple[TreeSurrogate, TreeEngine]:
    engine = TreeEngine.from_contents(arrays, header)
    verify_tree_surrogate(engine, encoding)
    return TreeSurrogate(engine.representation, encoding.player), engine


def _waves_from_contents(
    arrays: Arrays, inner: Arrays, header: dict[str, Any], encoding: Encoding
) -> tuple[WaveSurrogate, ProductEngine]:
    """Waves from ``arrays``, and from ``inner`` what their background was compiled to."""
    parts = {name.removeprefix("waves."): a for name, a in arrays.items() if name.startswith("waves.")}
    waves = Waves.from_contents(parts)
    verify_waves(waves, encoding)
    engine = ProductEngine.from_contents(inner, header, waves)
    return WaveSurrogate(waves, engine.settings.tolerance, engine.settings.exact), engine


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
        return surrogate, LevelEngine(engine, surrogate.code)
    # Files of 0.1.0 kept the bits of the background in place of tables.
    bits, weights = arrays["background"], arrays.get("weights")
    verify_background_bits(spectrum, surrogate.code, bits, weights)
    return surrogate, surrogate.compile_bits(
        bits, weights, find_index(take(header, "index", str, "shapley"))
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
