"""`load`: any .fshap file as the object that wrote it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fouriershap._base import files
from fouriershap._base.errors import FileFormatError
from fouriershap._base.short import short

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer
    from fouriershap._fourier.spectrum import Spectrum
    from fouriershap._waves.waves import Waves
    from fouriershap.spectra import Tables

    Loaded = Spectrum | Tables | Waves | Explainer


def load(path: str | os.PathLike[str]) -> Loaded:
    """Open a .fshap file as what was saved there: a `Spectrum`, `Tables`, `Waves`, or an explainer of any kind.

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
    return files.load(path, None, _build)


def _build(contents: files.Contents) -> Loaded:
    """Each kind imports what it needs, and nothing else."""
    if contents.kind == "tree explainer":
        from fouriershap._explainers.trees import TreeExplainer

        return TreeExplainer._loaded(contents)
    if contents.kind == "product explainer":
        from fouriershap._explainers.products import ProductExplainer

        return ProductExplainer._loaded(contents)
    if contents.kind == "black box explainer":
        from fouriershap._explainers.blackbox import BlackBoxExplainer

        return BlackBoxExplainer._loaded(contents)
    if contents.kind == "spectrum explainer":
        from fouriershap._explainers.spectrum import SpectrumExplainer

        return SpectrumExplainer._loaded(contents)
    if contents.kind == "spectrum":
        from fouriershap._fourier.spectrum import Spectrum

        return Spectrum.from_contents(contents)
    if contents.kind == "waves":
        from fouriershap._waves.waves import Waves

        return Waves.from_contents(contents.arrays)
    if contents.kind == "tables":
        from fouriershap.spectra import Tables

        return Tables.from_contents(contents)
    raise FileFormatError(f"it holds a {short(contents.kind)}, which this fouriershap does not know.")
