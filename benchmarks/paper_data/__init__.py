"""The paper's four data sets, as bits.

They are public, and no part of this package: `load` reads them from the folder that the environment variable
``FOURIERSHAP_DATA`` names, or downloads them once into the user's cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap import InputError
from fouriershap._base.messages import truncated_list, truncated_repr
from paper_data.encodings import Encoded
from paper_data.sources import SOURCES, DatasetError, find

__all__ = ["NAMES", "Dataset", "DatasetError", "load"]

NAMES = tuple(SOURCES)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of bits and what to learn from them.

    Attributes
    ----------
    name : str
    X : ndarray, shape (n_rows, n_bits), uint8
    y : ndarray, shape (n_rows,), float64
        In the units of the source; nothing is rescaled.
    feature_names : tuple of str
        One per bit.
    players : ndarray, shape (n_bits,), int32
        The player that owns each bit: bits of one one-hot group share one. Fits `fouriershap.spectra.shap_values`.
    player_names : tuple of str
    citation : str
    """

    name: str
    X: NDArray[np.uint8]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    players: NDArray[np.int32]
    player_names: tuple[str, ...]
    citation: str

    @property
    def groups(self) -> list[str]:
        """The player's name per bit; fits the argument ``groups`` of the explainers."""
        return [self.player_names[player] for player in self.players]

    def __repr__(self) -> str:
        rows, bits = self.X.shape
        return f"Dataset({self.name!r}, {rows:,} rows, {bits} bits, {len(self.player_names)} players)"


def load(name: str) -> Dataset:
    """Load one of the paper's data sets.

    Parameters
    ----------
    name : {"entacmaea", "sgemm", "gb1", "avgfp"}
        13, 40, 80 and 236 bits; 8,192, 241,600, 149,361 and 49,089 rows.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        There is no data set of this name.
    DatasetError
        The folder lacks the file, the download failed, or the content is not what it should be.

    Notes
    -----
    With ``FOURIERSHAP_DATA`` set, only that folder is read. Without, the file comes from its public source, once.
    In both cases the bits are compared with a SHA-256 checksum and the targets with a weighted sum; a download
    whose bytes are known is also compared with the checksum of these bytes.

    Examples
    --------
    >>> import paper_data
    >>> paper_data.load("entacmaea")  # doctest: +SKIP
    Dataset('entacmaea', 8,192 rows, 13 bits, 13 players)
    """
    if name not in SOURCES:
        raise InputError(f"name is {truncated_repr(name)}; choose one of {truncated_list(NAMES)}.")
    encoded = find(name)
    return _from_encoded(name, encoded, SOURCES[name].citation)


def _from_encoded(name: str, encoded: Encoded, citation: str) -> Dataset:
    player_names = tuple(dict.fromkeys(encoded.groups))
    number = {player: i for i, player in enumerate(player_names)}
    players = np.array([number[group] for group in encoded.groups], dtype=np.int32)
    for array in (encoded.X, encoded.y, players):
        array.flags.writeable = False
    return Dataset(name, encoded.X, encoded.y, encoded.feature_names, players, player_names, citation)
