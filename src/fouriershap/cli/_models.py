"""Model files of the libraries, by suffix."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fouriershap import (
    InputError,
    MissingDependencyError,
    OnnxModel,
    Reading,
    UnsupportedModelError,
    libraries,
    read_model,
)
from fouriershap._base.checks import import_optional, is_folder
from fouriershap._base.messages import error_text, truncated_repr, truncated_text
from fouriershap.cli._functions import import_function, is_function

_NATIVE = (".json", ".ubj", ".txt", ".cbm")
_PICKLES = (".pkl", ".pickle", ".joblib")


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model as fouriershap reads it, and the object of its library."""

    path: Path
    reading: Reading | None  # None: not read as trees
    estimator: Any = None  # the library's object, or a function to query
    why: str = ""  # why it is not read as trees


def open_model(path: Path, trust_pickle: bool) -> ModelFile:
    """Read a model file by its suffix; with ``trust_pickle`` code in the file may run."""
    suffix = path.suffix.lower()
    if is_function(str(path)):
        return ModelFile(path, None, import_function(str(path)), "a function")
    if suffix not in (*_NATIVE, *_PICKLES, ".skops", ".onnx"):
        if is_folder(path):
            return ModelFile(path, read_model(path))
        raise InputError(
            f"{truncated_text(path)}: the suffix {truncated_repr(suffix)} is not a known model format; known are "
            f"{', '.join(_NATIVE)}, .onnx, .skops and, with --trust-pickle, {', '.join(_PICKLES)}; folders of Spark "
            "and YDF, and package.module:function."
        )
    if not path.is_file():
        raise InputError(f"{truncated_text(path)}: does not exist.")
    if suffix in _NATIVE:
        return ModelFile(path, read_model(path))
    if suffix == ".onnx":
        try:
            return ModelFile(path, read_model(path))
        except UnsupportedModelError as error:
            return ModelFile(path, None, OnnxModel(path), _first_sentence(error))
    if suffix != ".skops" and not trust_pickle:
        raise InputError(
            f"{truncated_text(path)}: a pickle can run arbitrary code when it is opened. If you trust its source, "
            "add --trust-pickle; safer: save the model with skops, or in its library's own format."
        )
    estimator = _from_skops(path, trust_pickle) if suffix == ".skops" else _from_pickle(path)
    try:
        reading = read_model(estimator)
        if reading.is_trees:
            return ModelFile(path, reading, estimator)
        return ModelFile(path, None, estimator, f"not trees, but a {reading.kind}")
    except UnsupportedModelError as error:
        if not (callable(estimator) or hasattr(estimator, "predict")):
            raise
        return ModelFile(path, None, estimator, _first_sentence(error))


def _first_sentence(error: Exception) -> str:
    """Return the first sentence of an error."""
    return error_text(error).partition(". ")[0].rstrip(".")


def _from_skops(path: Path, trust: bool) -> Any:
    """Load an estimator from skops' format; raise if it has types that are not known as harmless."""
    skops = import_optional("skops.io", "a .skops file", "skops")
    try:
        types = skops.get_untrusted_types(file=path)
        # skops lists the function inside a partial on its own.
        unknown = sorted(
            set(types).difference({"functools.partial"}, *(each.harmless for each in libraries()))
        )
        if unknown and not trust:
            named = ", ".join(map(truncated_text, unknown[:5]))
            raise InputError(
                f"{truncated_text(path)}: holds the types {named}, which are not known as harmless. If you trust its "
                "source, add --trust-pickle."
            )
        return skops.load(path, trusted=types)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{truncated_text(path)}: skops cannot read it ({type(error).__name__}: {error_text(error)})."
        ) from error


def _from_pickle(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".joblib":
            return import_optional("joblib", "a .joblib file", "joblib").load(path)
        with path.open("rb") as file:
            return import_module("pickle").load(file)
    except (MissingDependencyError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise InputError(
            f"{truncated_text(path)}: cannot be unpickled ({type(error).__name__}: {error_text(error)})."
        ) from error
