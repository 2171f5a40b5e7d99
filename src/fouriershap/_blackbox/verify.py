"""Verifying what the file of a black box says: features, levels and representation must be of one model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._blackbox.bit_code import BitCode, PlayerLevels
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.levels import LABEL, NUMBER, ONE_HOT, Encoding, Feature
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.verify import verify_array, verify_owners, verify_players, verify_weights
from fouriershap._waves.waves import Waves

_LEVEL_TYPES = {"features": ("i8", 1), "levels": ("f8", 2), "rows": ("i4", 1), "edges": ("f8", 1)}


def verify_encoding(encoding: Encoding, n_columns: int) -> None:
    """Raise `FileFormatError` unless every column has a feature, and every feature the player of its columns."""
    verify_players(encoding.column_player, n_columns)
    n_players = int(encoding.column_player.max(initial=-1)) + 1
    require(n_players == encoding.n_players > 0, "it has not as many names as players")
    columns = [column for feature in encoding.features for column in feature.columns]
    require(sorted(columns) == list(range(n_columns)), "a column has no feature, or several")
    for feature in encoding.features:
        _verify_feature(feature)
        owners = encoding.column_player[list(feature.columns)]
        require((owners == feature.player).all(), "a feature has another player than its columns")


def _verify_feature(feature: Feature) -> None:
    require(feature.kind in (NUMBER, LABEL, ONE_HOT), "a feature is of no known kind")
    n_columns = len(feature.columns)
    require(
        n_columns > 1 if feature.kind == ONE_HOT else n_columns == 1,
        "a feature has too many columns, or none",
    )
    if feature.kind == NUMBER:
        require(not feature.levels, "a number has levels")
    elif feature.kind == ONE_HOT:
        positions = all(type(level) is int and -1 <= level < n_columns for level in feature.levels)
        require(positions and feature.levels, "the levels of a one-hot group are no positions")
    else:
        require(all(isinstance(level, str | int | float) for level in feature.levels), "levels are no labels")


def verify_tree_surrogate(engine: TreeEngine, encoding: Encoding) -> None:
    """Raise `FileFormatError` unless trees stand for a model of these features."""
    require(np.array_equal(engine.model.player, encoding.player), "its trees have other features or players")
    require(not engine.info.is_path_dependent, "its trees say something else")


def verify_waves(waves: Waves, encoding: Encoding) -> None:
    """Raise `FileFormatError` unless waves stand for a model of these features."""
    columns, features = waves.columns, encoding.features
    require(np.array_equal(columns.player, encoding.player), "its waves have other features or players")
    n_levels = [0 if feature.kind == NUMBER else len(feature.levels) for feature in features]
    require(np.array_equal(columns.n_levels, n_levels), "its waves have other levels")
    missing = [feature.missing for feature in features]
    require(np.array_equal(columns.missing, missing), "its waves know other missing values")


def verify_bits(spectrum: Spectrum, code: BitCode, engine: SpectrumEngine) -> None:
    """Raise `FileFormatError` unless spectrum, levels and tables speak of the same bits and players."""
    for player in code.players:
        _verify_levels(player)
    verify_owners(engine.terms, code.player)
    alike = engine.terms.n_bits == spectrum.n_bits == code.n_bits and engine.n_players == code.n_players
    require(alike and engine.n_outputs == spectrum.n_outputs, "spectrum, levels and tables have other bits")


def verify_background_bits(
    spectrum: Spectrum, code: BitCode, background: NDArray[np.uint8], weights: NDArray[np.float64] | None
) -> None:
    """Raise `FileFormatError` unless a spectrum is one on the bits of a code. `compile` looks at the bits."""
    for player in code.players:
        _verify_levels(player)
    verify_array("background", background, "u1", 2)
    require(len(background), "there is no background")
    require(background.shape[1] == spectrum.n_bits == code.n_bits, "spectrum and levels have other bits")
    verify_weights(weights, background)


def _verify_levels(player: PlayerLevels) -> None:
    """Raise `FileFormatError` unless the levels of a player can be looked for."""
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


def verify_code(code: BitCode, encoding: Encoding) -> None:
    """Raise `FileFormatError` unless the levels of a code are those of the features."""
    names = tuple(player.name for player in code.players)
    require(names == encoding.player_names, "levels have other players")
    for j, player in enumerate(code.players):
        owned = np.flatnonzero(encoding.player == j)
        require(np.array_equal(player.features, owned), "a player has levels of other features")
        for column, f in enumerate(player.features):
            feature, values = encoding.features[f], player.levels[:, column]
            if feature.kind != NUMBER:
                known = np.isin(values, np.arange(len(feature.levels))) | np.isnan(values)
                require(known.all(), "a level is none of its feature")
