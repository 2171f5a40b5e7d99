"""Text of a source -> bits: each data set as the paper's experiments encode it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
SITES = [
    "D20N",
    "V45A",
    "L63M",
    "T127P",
    "F143S",
    "N158A",
    "S168G",
    "A172C",
    "A174L",
    "Y197R",
    "N206D",
    "N207K",
    "K231R",
]
GB1_SITES = ("V39", "D40", "G41", "V54")
AVGFP_BITS = 236


@dataclass(frozen=True, eq=False)
class Encoded:
    """Bits (n_rows, n_bits) uint8, targets (n_rows,), and per bit its name and the player that owns it."""

    X: NDArray[np.uint8]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    groups: tuple[str, ...]


Reader = Callable[[str], Encoded]


def entacmaea(text: str) -> Encoded:
    """Thirteen columns of bits, then the brightness."""
    header, *lines = _lines(text)
    columns = [header.index(site) for site in SITES]
    bits = [[line[c] for c in columns] for line in lines]
    return _entacmaea(bits, [line[header.index("brightness")] for line in lines])


def entacmaea_original(text: str) -> Encoded:
    """Two header lines; a quoted genotype such as '0000000000001' first, the combined brightness last."""
    lines = _lines(text)[2:]
    return _entacmaea([list(line[0].strip("'")) for line in lines], [line[-1] for line in lines])


def _entacmaea(bits: Sequence[Sequence[str]], brightness: Sequence[str]) -> Encoded:
    names = tuple(SITES)
    return Encoded(np.array(bits, dtype=np.uint8), _floats(brightness), names, names)


def sgemm(text: str) -> Encoded:
    """Every level of the 14 settings as a bit, levels ascending; the mean of the four runs."""
    header = _lines(text[: text.index("\n")])[0]
    table = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)
    parts, names, groups = [], [], []
    for setting, column in zip(header[:14], table[:, :14].T, strict=True):
        levels = np.unique(column)
        parts.append(column[:, None] == levels)
        names += [f"{setting}={level:g}" for level in levels]
        groups += [setting] * len(levels)
    X = np.concatenate(parts, axis=1).astype(np.uint8)
    return Encoded(X, table[:, 14:18].mean(axis=1), tuple(names), tuple(groups))


def gb1(text: str) -> Encoded:
    """The measured variants; imputed ones are left out."""
    header, *lines = _lines(text)
    imputed = header.index("imputed")
    return _gb1((line[0], line[1]) for line in lines if line[imputed] == "0")


def gb1_original(text: str) -> Encoded:
    """The first supplement: variant first, fitness last."""
    return _gb1((line[0], line[-1]) for line in _lines(text)[1:])


def _gb1(variants: Iterable[tuple[str, str]]) -> Encoded:
    words, fitness = zip(*variants, strict=True)
    letters = np.array([list(word) for word in words])
    X = (letters[:, :, None] == np.array(list(AMINO_ACIDS))).reshape(len(words), -1)
    names = tuple(f"{site}{letter}" for site in GB1_SITES for letter in AMINO_ACIDS)
    groups = tuple(site for site in GB1_SITES for _ in AMINO_ACIDS)
    return Encoded(X.astype(np.uint8), _floats(fitness), names, groups)


def avgfp(text: str) -> Encoded:
    """Which sites are mutated; genotypes with the same sites are one row, with their mean brightness."""
    header, *lines = _lines(text, "\t" if "\t" in text[:100] else ",")
    mutations, brightness = (header.index(name) for name in ("aaMutations", "medianBrightness"))
    X = np.zeros((len(lines), AVGFP_BITS), dtype=np.uint8)
    for row, line in zip(X, lines, strict=True):
        row[[int(mutation[2:-1]) for mutation in line[mutations].split(":") if mutation]] = 1
    packed = np.packbits(X, axis=1)  # bytes sort as their bits do, and many times faster
    _, first, which = np.unique(packed.view(f"V{packed.shape[1]}"), return_index=True, return_inverse=True)
    which = which.reshape(-1)
    total = np.bincount(which, _floats([line[brightness] for line in lines]))
    names = tuple(f"site {site}" for site in range(AVGFP_BITS))
    return Encoded(X[first], total / np.bincount(which), names, names)


def _lines(text: str, delimiter: str = ",") -> list[list[str]]:
    return [line for line in csv.reader(text.splitlines(), delimiter=delimiter) if line]


def _floats(words: Sequence[str]) -> NDArray[np.float64]:
    return np.array(words, dtype=np.float64)
