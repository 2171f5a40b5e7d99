"""`load`: any .fshap file as the object that wrote it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from fouriershap._base import files
from fouriershap._base.arguments import check_arguments
from fouriershap._base.errors import FileFormatError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr

if TYPE_CHECKING:
    from fouriershap._explainers.explainer import Explainer
    from fouriershap._explainers.parts import Parts
    from fouriershap._fourier.spectrum import Spectrum
    from fouriershap._waves.waves import Waves

    Loaded = Spectrum | Waves | Explainer

# Imported when a file of this kind is opened.
_EXPLAINERS = {
    "explainer of trees": ("trees", "tree_parts_from_contents"),
    "explainer of products": ("products", "product_parts_from_contents"),
    "explainer of spectrum": ("spectrum", "spectrum_parts_from_contents"),
    "explainer of black box": ("blackbox", "black_box_parts_from_contents"),
}


@check_arguments
def load(path: str | os.PathLike[str]) -> Loaded:
    """Open a .fshap file as what was saved there: a `Spectrum`, `Waves`, or an `Explainer`.

    The file is verified against its checksum and memory-mapped, so that processes on one machine share it.

    Raises
    ------
    FileFormatError
        The file is truncated, changed, foreign, or of another format version.

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
    if contents.kind in _EXPLAINERS:
        from fouriershap._explainers.explainer import Explainer

        return Explainer(_load_parts(contents))
    if contents.kind == "spectrum":
        from fouriershap._fourier.spectrum import Spectrum

        return Spectrum.from_contents(contents)
    if contents.kind == "waves":
        from fouriershap._waves.waves import Waves

        return Waves.from_contents(contents.arrays)
    raise FileFormatError(
        f"it holds a {truncated_repr(contents.kind)}, which this fouriershap does not know."
    )


def _load_parts(contents: files.Contents) -> Parts:
    module, function = _EXPLAINERS[contents.kind]
    from fouriershap._explainers.conditional import conditional_from_contents

    build: Callable[[files.Contents], Parts] = getattr(
        import_module(f"fouriershap._explainers.{module}"), function
    )
    parts = conditional_from_contents(build(contents), contents)
    own, given = (
        get_typed(contents.header, name, tuple[str, ...] | None, None)
        for name in ("output_names", "given_names")
    )
    for names in (own, given):
        require(names is None or len(names) == parts.engine.n_outputs, "an output has no name")
    model_name = get_typed(contents.header, "model_name", str, "") or None
    names = {"output_names": own, "given_names": given}
    return replace(parts, **names, model_name=model_name, checksum=contents.checksum)
