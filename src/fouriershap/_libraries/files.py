"""Saved models: which reader a file, a folder or bytes go to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from fouriershap._base.checks import is_folder, need
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.short import reason, short
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.readers import catboost, lightgbm, onnx, spark, xgboost, ydf
from fouriershap._trees.readers.ubjson import decode


def read_file(path: Path) -> TreeEnsemble:
    """A model that its library saved."""
    if is_folder(path):
        return _read_folder(path)
    suffix = path.suffix.lower()
    readers = {
        ".json": _read_json,
        ".ubj": _read_ubj,
        ".txt": _read_txt,
        ".cbm": _read_cbm,
        ".onnx": _read_onnx,
    }
    if suffix not in readers:
        raise InputError(
            f"model is the path {short(str(path))}, whose suffix says no known format. Known: .json and .ubj "
            "(XGBoost), .txt (LightGBM), .cbm and .json (CatBoost), .onnx (ONNX)."
        )
    if not path.is_file():
        raise InputError(f"model is the path {short(str(path))}, where there is no file.")
    return _named(f"model is the path {short(str(path))}", lambda: readers[suffix](path))


# What readers meet in files that no library wrote.
_DAMAGE = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, OSError),
    *(OverflowError, MemoryError),
)


def _read_folder(path: Path) -> TreeEnsemble:
    what = f"model is the path {short(str(path))}"
    if spark.is_folder(path):
        return _named(what, lambda: spark.read(path))
    if ydf.find_folder(path) is not None:
        return _named(what, lambda: ydf.read(path))
    raise InputError(f"{what} of a folder, but neither Spark nor YDF saved a model in it.")


def read_bytes(data: bytes, what: str) -> TreeEnsemble:
    """An ONNX model; ``what`` it is, for messages."""
    return _named(what, lambda: onnx.read(data))


def _named(what: str, read: Callable[[], TreeEnsemble]) -> TreeEnsemble:
    """What ``read`` reads; where it cannot, an error that says of what."""
    try:
        return read()
    except UnsupportedModelError:
        raise
    except InputError as error:
        raise error if str(error).startswith("model is") else InputError(f"{what}: {error}") from error
    except _DAMAGE as error:
        deep = isinstance(error, RecursionError)
        why = "it is nested too deeply" if deep else f"{type(error).__name__}: {reason(error)}"
        raise InputError(
            f"{what}, which does not read as a model ({why}). Save the model again with its library."
        ) from error


def _read_json(path: Path) -> TreeEnsemble:
    document = json.loads(path.read_text(encoding="utf-8"))
    if "learner" in document:
        return xgboost.read_document(document)
    if "features_info" in document:
        return catboost.read_document(document)
    raise InputError(f"model is the path {short(str(path))}: JSON, but neither of XGBoost nor of CatBoost.")


def _read_txt(path: Path) -> TreeEnsemble:
    text = path.read_text(encoding="utf-8")
    if not text.startswith("tree"):
        raise InputError(
            f"model is the path {short(str(path))}: a text file, but not one that LightGBM saved."
        )
    return lightgbm.read_text(text)


def _read_ubj(path: Path) -> TreeEnsemble:
    return xgboost.read_document(decode(path.read_bytes()))


def _read_cbm(path: Path) -> TreeEnsemble:
    library = need("catboost", f"reading {short(str(path))}", "catboost")
    try:
        return catboost.read_estimator(library.CatBoost().load_model(str(path)))
    except library.CatBoostError as error:
        raise InputError(
            f"model is the path {short(str(path))}, which CatBoost cannot load: {reason(error)}"
        ) from error


def _read_onnx(path: Path) -> TreeEnsemble:
    return onnx.read(path.read_bytes())
