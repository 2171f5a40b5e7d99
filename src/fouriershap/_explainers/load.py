"""`load`: any .fshap file as the object that wrote it."""

from __future__ import annotations

import os
from collections.abc import Callable

from fouriershap._base import files
from fouriershap._base.errors import FileFormatError
from fouriershap._explainers.blackbox import BlackBoxExplainer
from fouriershap._explainers.spectrum import SpectrumExplainer
from fouriershap._explainers.trees import TreeExplainer
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley import Tables

Loaded = Spectrum | Tables | TreeExplainer | BlackBoxExplainer | SpectrumExplainer
_READERS: dict[str, Callable[[files.Contents], Loaded]] = {
    "spectrum": Spectrum._from_contents,
    "tables": Tables._from_contents,
    "tree explainer": TreeExplainer._from_contents,
    "black box explainer": BlackBoxExplainer._from_contents,
    "spectrum explainer": SpectrumExplainer._from_contents,
}


def load(path: str | os.PathLike[str]) -> Loaded:
    """Open a .fshap file as what was saved there: a `Spectrum`, `Tables`, or an explainer of any kind.

    The file is verified against its checksum and memory-mapped, so that processes on one machine share it.

    Raises
    ------
    FileFormatError
        The file is truncated, changed, foreign, or of a newer version.

    Examples
    --------
    >>> import fouriershap as fs, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "h.fshap"
    >>> fs.Spectrum([[1, 0]], [2.0]).save(path)
    >>> fs.load(path)
    Spectrum(1 terms, 2 bits, degree 1)
    """

    def build(contents: files.Contents) -> Loaded:
        reader = _READERS.get(contents.kind)
        if reader is None:
            raise FileFormatError(f"{path} holds a {contents.kind!r}, which this fouriershap does not know.")
        return reader(contents)

    return files.load(path, None, build)
