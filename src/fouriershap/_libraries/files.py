"""Saved models: which library a file, a folder or bytes belong to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from fouriershap._base.checks import is_folder
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.messages import error_text, truncated_repr
from fouriershap._libraries.reading import Library, Reading

# What readers raise for files that no library wrote.
_DAMAGE = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, OSError),
    *(OverflowError, MemoryError),
)


def read_file(path: Path, libraries: Sequence[Library]) -> Reading:
    """Read a model that its library saved as a file or a folder."""
    what = f"model is the path {truncated_repr(str(path))}"
    suffix = "" if is_folder(path) else path.suffix.lower()
    formats = [(library, form) for library in libraries for form in library.formats]
    mine = [(library, form) for library, form in formats if form.suffix == suffix]
    if (suffix == "" and not is_folder(path)) or not mine:
        known = [f"{form.suffix} ({library.name})" for library, form in formats if form.suffix]
        raise InputError(f"{what}, whose suffix is not a known format. Known: {', '.join(sorted(known))}.")
    if suffix and not path.is_file():
        raise InputError(f"{what}, where there is no file.")

    def read() -> Reading:
        source = json.loads(path.read_text(encoding="utf-8")) if suffix == ".json" else path
        for library, form in mine:
            found = form.read(source)
            if found is not None:
                return found.replace(library=library)
        names = " or ".join(dict.fromkeys(library.name for library, _ in mine))
        raise InputError(
            f"{what}{'' if suffix else ' of a folder'}, which is not a model that {names} saved."
        )

    return read_or_explain(what, read)


def read_or_explain(what: str, read: Callable[[], Reading]) -> Reading:
    """Return what ``read`` reads; where it fails, raise an error that says of what."""
    try:
        return read()
    except UnsupportedModelError:
        raise
    except InputError as error:
        raise error if str(error).startswith("model is") else InputError(f"{what}: {error}") from error
    except _DAMAGE as error:
        deep = isinstance(error, RecursionError)
        why = "it is nested too deeply" if deep else f"{type(error).__name__}: {error_text(error)}"
        raise InputError(
            f"{what}, which does not read as a model ({why}). Save the model again with its library."
        ) from error
