"""A fitted black box as named arrays, and back: the contents of its .fshap file. The model is not part of it.

The contents are verified: features, levels and representation must be of one model.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import get_part, get_typed, require
from fouriershap._base.messages import truncated_repr
from fouriershap._blackbox.bit_code import BitCode, PlayerLevels
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.fit import FitResult
from fouriershap._blackbox.selection import Candidate
from fouriershap._blackbox.surrogates import (
    LevelEngine,
    SpectrumSurrogate,
    SumSurrogate,
    Surrogate,
    TreeSurrogate,
    WaveSurrogate,
)
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.levels import LABEL, NUMBER, ONE_HOT, Encoding, Feature
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.products.engine import ProductEngine
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.sum import SumEngine, part_contents
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.verify import verify_array, verify_owners, verify_players
from fouriershap._waves.waves import Waves

Arrays = dict[str, NDArray[Any]]
_LEVEL_TYPES = {"features": ("i8", 1), "levels": ("f8", 2), "rows": ("i4", 1), "edges": ("f8", 1)}


def result_to_contents(result: FitResult) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays and header of a fit, beside those of its engine."""
    encoding = result.encoding
    for feature in encoding.features:
        foreign = next((v for v in feature.levels if not isinstance(v, str | int | float | bool)), None)
        if foreign is not None:
            raise InputError(
                f"the level {truncated_repr(foreign)} of {truncated_repr(feature.name)} is a "
                f"{type(foreign).__name__}, which a file "
                "cannot hold. Use text or numbers as labels."
            )
    header: dict[str, Any] = {
        "fitted_by": result.method,
        "features": [asdict(feature) for feature in encoding.features],
        "fidelity": asdict(result.fidelity),
        "candidates": [asdict(line) for line in result.candidates],
    }
    more, about = _surrogate_contents(result.surrogate)
    return {"column_player": encoding.column_player} | more, header | about


def _surrogate_contents(surrogate: Surrogate) -> tuple[Arrays, dict[str, Any]]:
    """Return what the engine of a surrogate does not hold."""
    if isinstance(surrogate, SpectrumSurrogate):
        spectrum, about = surrogate.representation.to_contents()
        code, names = surrogate.code.to_contents()
        arrays = {f"spectrum.{name}": array for name, array in spectrum.items()} | code
        return arrays, {"representation": "spectrum", "spectrum": about, "code": names}
    if isinstance(surrogate, WaveSurrogate):
        waves, _ = surrogate.representation.to_contents()
        return {f"waves.{name}": array for name, array in waves.items()}, {"representation": "waves"}
    if isinstance(surrogate, SumSurrogate):
        arrays = {}
        for part in surrogate.parts:
            arrays |= _surrogate_contents(part)[0]
        return arrays, {"representation": "sum"}
    return {}, {"representation": "trees"}


def result_from_contents(arrays: Arrays, header: dict[str, Any]) -> tuple[FitResult, Engine]:
    """Return the fit of a file, and its engine: nothing is compiled, tables stay where they are."""
    names, players = (get_typed(header, key, tuple[str, ...]) for key in ("feature_names", "player_names"))
    encoding = Encoding(get_typed(header, "features", tuple[Feature, ...]), arrays["column_player"], players)
    _verify_encoding(encoding, len(names))
    surrogate, engine = _surrogate_from_contents(arrays, header, encoding)
    fidelity = get_typed(header, "fidelity", Fidelity)
    require(len(fidelity.by_output) in (0, engine.n_outputs), "its certificate is that of other outputs")
    candidates = get_typed(header, "candidates", tuple[Candidate, ...])
    return FitResult(get_typed(header, "fitted_by", str), surrogate, encoding, fidelity, candidates), engine


def _surrogate_from_contents(
    arrays: Arrays, header: dict[str, Any], encoding: Encoding
) -> tuple[Surrogate, Engine]:
    kind = get_typed(header, "representation", str)
    if kind == "spectrum":
        return _spectrum_from_contents(arrays, header, encoding)
    if kind == "waves":
        return _waves_from_contents(arrays, arrays, header, encoding)
    if kind == "trees":
        return _trees_from_contents(arrays, header, encoding)
    require(kind == "sum", "it holds an unknown representation")
    trees, tree_engine = _trees_from_contents(*part_contents(arrays, header, 0), encoding)
    waves, wave_engine = _waves_from_contents(arrays, *part_contents(arrays, header, 1), encoding)
    require(tree_engine.n_outputs == wave_engine.n_outputs, "its parts have other outputs")
    require(tree_engine.index == wave_engine.index, "its parts have other indices")
    return SumSurrogate((trees, waves)), SumEngine((tree_engine, wave_engine))


def _trees_from_contents(
    arrays: Arrays, header: dict[str, Any], encoding: Encoding
) -> tuple[TreeSurrogate, TreeEngine]:
    engine = TreeEngine.from_contents(arrays, header)
    require(np.array_equal(engine.model.player, encoding.player), "its trees have other features or players")
    require(not engine.info.is_path_dependent, "its trees have no background")
    return TreeSurrogate(engine.representation, encoding.player), engine


def _waves_from_contents(
    arrays: Arrays, inner: Arrays, header: dict[str, Any], encoding: Encoding
) -> tuple[WaveSurrogate, ProductEngine]:
    """Return waves from ``arrays``, and from ``inner`` what their background was compiled to."""
    parts = {name.removeprefix("waves."): a for name, a in arrays.items() if name.startswith("waves.")}
    waves = Waves.from_contents(parts)
    columns, features = waves.columns, encoding.features
    require(np.array_equal(columns.player, encoding.player), "its waves have other features or players")
    n_levels = [0 if feature.kind == NUMBER else len(feature.levels) for feature in features]
    require(np.array_equal(columns.n_levels, n_levels), "its waves have other levels")
    missing = [feature.missing for feature in features]
    require(np.array_equal(columns.missing, missing), "its waves know other missing values")
    engine = ProductEngine.from_contents(inner, header, waves)
    return WaveSurrogate(waves, engine.settings.tolerance, engine.settings.exact), engine


def _spectrum_from_contents(
    arrays: Arrays, header: dict[str, Any], encoding: Encoding
) -> tuple[SpectrumSurrogate, LevelEngine]:
    prefix = "spectrum."
    parts = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    spectrum = Spectrum.from_contents(Contents("spectrum", parts, get_part(header, "spectrum")))
    code = BitCode.from_contents(arrays, get_part(header, "code"))
    _verify_code(code, encoding)
    engine = SpectrumEngine.from_contents(arrays, header)
    verify_owners(engine.terms, code.player)
    same = engine.terms.n_bits == spectrum.n_bits == code.n_bits and engine.n_players == code.n_players
    require(same and engine.n_outputs == spectrum.n_outputs, "spectrum, levels and tables have other bits")
    return SpectrumSurrogate(spectrum, code), LevelEngine(engine, code)


def _verify_encoding(encoding: Encoding, n_columns: int) -> None:
    """Raise `FileFormatError` unless every column has a feature, and every feature the player of its columns."""
    verify_players(encoding.column_player, n_columns)
    n_players = int(encoding.column_player.max(initial=-1)) + 1
    require(n_players == encoding.n_players > 0, "it has not as many names as players")
    columns = [column for feature in encoding.features for column in feature.columns]
    require(sorted(columns) == list(range(n_columns)), "a column has no feature, or several")
    for feature in encoding.features:
        require(feature.kind in (NUMBER, LABEL, ONE_HOT), "a feature is of an unknown kind")
        width, levels = len(feature.columns), feature.levels
        require(
            width > 1 if feature.kind == ONE_HOT else width == 1, "a feature has too many columns, or none"
        )
        if feature.kind == NUMBER:
            require(not levels, "a number has levels")
        elif feature.kind == ONE_HOT:
            positions = all(type(level) is int and -1 <= level < width for level in levels)
            require(positions and levels, "the levels of a one-hot group are not positions")
        else:
            require(all(isinstance(level, str | int | float) for level in levels), "levels are not labels")
        owners = encoding.column_player[list(feature.columns)]
        require((owners == feature.player).all(), "a feature has another player than its columns")


def _verify_code(code: BitCode, encoding: Encoding) -> None:
    """Raise `FileFormatError` unless the levels of a code are those of the features, and can be looked for."""
    names = tuple(player.name for player in code.players)
    require(names == encoding.player_names, "levels have other players")
    for j, player in enumerate(code.players):
        _verify_levels(player)
        owned = np.flatnonzero(encoding.player == j)
        require(np.array_equal(player.features, owned), "a player has levels of other features")
        for column, f in enumerate(player.features):
            feature, values = encoding.features[f], player.levels[:, column]
            if feature.kind != NUMBER:
                known = np.isin(values, np.arange(len(feature.levels))) | np.isnan(values)
                require(known.all(), "a player has a level that its feature has not")


def _verify_levels(player: PlayerLevels) -> None:
    for name, (kind, n_axes) in _LEVEL_TYPES.items():
        verify_array(f"the {name} of a player", getattr(player, name), kind, n_axes)
    n_features, n_edges = len(player.features), len(player.edges)
    require(player.n_levels and n_features, "a player has no levels")
    require(
        player.levels.shape == (player.n_levels, n_features), "levels have another number than their rows"
    )
    require((np.diff(player.edges) > 0).all(), "the edges of intervals do not rise")
    intervals = n_features == 1 and player.n_levels in (n_edges + 1, n_edges + 2)
    require(not n_edges or intervals, "a player has another number of intervals than of levels")
