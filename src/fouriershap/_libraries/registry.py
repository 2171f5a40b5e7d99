"""The registry of library adapters: which library a model belongs to, and how it is read.

To add a library, write a module that defines ``LIBRARY``, a `Library`, and add it to `BUILT_IN`. Other packages can
offer one as an entry point of the group "fouriershap.libraries", by the name of the package of the models.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from fouriershap._base.arguments import check_arguments
from fouriershap._base.errors import InputError, ModelWarning, UnsupportedModelError
from fouriershap._base.links import UNKNOWN
from fouriershap._base.messages import error_text
from fouriershap._base.warn import warn
from fouriershap._libraries.arithmetic import (
    merge_steps,
)
from fouriershap._libraries.files import read_file, read_or_explain
from fouriershap._libraries.opening import Opened, open_model
from fouriershap._libraries.reading import (
    Library,
    Reader,
    Reading,
    UnknownModelError,
    product_reading,
    read_ensemble,
)
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._waves.products import Products

# The package of a library's models, and the module here that knows it. Adapters are imported when they are needed.
BUILT_IN = {
    "sklearn": "sklearn.library",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
    "catboost": "catboost",
    "statsmodels": "statsmodels",
    "sksurv": "survival",
    "quantile_forest": "quantile_forest",
    "ngboost": "ngboost",
    "interpret": "interpret",
    "ydf": "ydf",
    "pyspark": "spark",
    "onnx": "onnx",
}
_GROUP = "fouriershap.libraries"
# Parameters of estimators that name a loss or a link, and words in them that mean a link other than the identity.
_LOSSES = ("loss", "objective", "objective_", "loss_function", "family", "link")
_LINKED_LOSSES = ("poisson", "gamma", "tweedie", "log", "binary", "cross", "survival", "cox")
_ROW_PACKAGES = {
    "builtins",
    "numpy",
    "scipy",
    "pandas",
    "polars",
    "pyarrow",
}  # of rows without a library of models
_PREDICTIONS = {"predict", "predict_proba", "decision_function"}


class _Adapter(NamedTuple):
    library: Library
    reader: Reader
    is_product: bool
    overridden_by: type | None  # a class of another package that predicts in its own way


@cache
def _library(package: str) -> Library | None:
    """Return the adapter of a package, imported now; None without one."""
    found: Library
    if package in BUILT_IN:
        found = import_module(f"{__package__}.{BUILT_IN[package]}").LIBRARY
        return found
    for entry in _third_party():
        if entry.name == package:
            found = entry.load()
            return found
    return None


@cache
def _third_party() -> tuple[Any, ...]:
    return tuple(entry_points(group=_GROUP))


def libraries() -> tuple[Library, ...]:
    """Return all adapters, built in and of other packages."""
    packages = dict.fromkeys((*BUILT_IN, *(entry.name for entry in _third_party())))
    return tuple(library for package in packages if (library := _library(package)) is not None)


def supported_text() -> str:
    """Return the models that can be read, a line for each, for messages."""
    return "\n".join(f"- {line};" for library in libraries() for line in library.supported)


def _package(class_: type) -> str:
    return class_.__module__.partition(".")[0]


def _adapter(model: Any) -> _Adapter | None:
    return _class_adapter(type(model))  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _class_adapter(class_: Any) -> _Adapter | None:
    predicting = next((base for base in class_.__mro__ if _PREDICTIONS & vars(base).keys()), None)
    for base in class_.__mro__:
        library = _library(_package(base))
        for is_product in (False, True) if library is not None else ():
            assert library is not None
            reader = (library.products if is_product else library.trees).get(base.__name__)
            if reader is not None:
                foreign = predicting is not None and _package(predicting) != library.package
                return _Adapter(library, reader, is_product, predicting if foreign else None)
    return None


def find_library(model: Any) -> Library | None:
    """Return the adapter of the model inside all wrappers; None where there is none, and for paths and arrays."""
    if isinstance(model, type):
        return None
    found = _adapter(model) or _adapter(open_model(model).final)
    return None if found is None else found.library


def find_function(model: Any) -> Callable[[Any], Any] | None:
    """Return what predicts from rows for a model that does not do so itself; None for any other."""
    for base in type(model).__mro__:
        library = _library(_package(base))
        make = None if library is None else library.functions.get(base.__name__)
        if make is not None:
            return make(model)
    return None


def reads_trees(model: Any) -> bool:
    """Return whether there is a reader of tree models for a model inside its wrappers; it may still refuse.

    For a model of models: whether there is one for some member.
    """
    found = _adapter(model)
    if found is None or found.is_product:
        return isinstance(model, TreeEnsemble)
    members = None if found.library.members is None else found.library.members(model)
    return not members or any(reads_trees(open_model(member).final) for member, _ in members)


def read(model: Any) -> Reading:
    """Read a model of any library, with what is around it.

    Parameters
    ----------
    model : estimator, booster, path, bytes, TreeEnsemble, Products, or Reading

    Raises
    ------
    UnknownModelError
        No library adapter recognises the model.
    UnsupportedModelError
        The model is recognised, but uses something that cannot be represented.
    InputError
        The model is not fitted, or the file cannot be read.
    """
    if isinstance(model, Reading):
        return model
    if isinstance(model, TreeEnsemble):
        return read_ensemble(model)
    if isinstance(model, Products):
        return product_reading("products", model, link=UNKNOWN)
    if isinstance(model, str | os.PathLike):
        return read_file(Path(model), libraries())
    if isinstance(model, bytes):
        return _read_bytes(model)
    if isinstance(model, type):
        raise UnknownModelError(
            f"model is the class {model.__module__}.{model.__qualname__} itself, not a fitted object."
        )
    # What has a reader has no wrapper.
    return _read_opened(Opened(model) if _adapter(model) is not None else open_model(model))


@check_arguments
def read_model(model: Any) -> Reading:
    """Read a fitted model: its raw output as arrays, and how it reads rows.

    Parameters
    ----------
    model : estimator, booster, path, bytes, or TreeEnsemble
        A model that `TreeExplainer` or `ProductExplainer` explains, or the path of a saved one. A file holds all trees
        of a booster, whatever its best iteration. Searches and other wrappers are opened.

    Returns
    -------
    Reading
        Its ``representation`` holds the arrays; its ``predict`` is the raw output of the model: margins before any link
        function; class probabilities for scikit-learn's trees and forests; mean path lengths for isolation forests.

    Raises
    ------
    UnsupportedModelError
        The model is of another kind, or uses something that cannot be represented.
    InputError
        The model is not fitted, or the file cannot be read.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> read_model(DecisionTreeRegressor().fit([[0.0], [1.0]], [1.0, 3.0]))
    Reading(scikit-learn DecisionTreeRegressor, TreeEnsemble(1 trees, 2 leaves, 1 features, 1 outputs))
    """
    reading = read(model)
    if reading.preprocessing is not None:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} with steps before its model, which change the rows. Give its last step "
            "alone; fs.Explainer takes the whole."
        )
    return reading


def _read_bytes(data: bytes) -> Reading:
    readers = [library.read_bytes for library in libraries() if library.read_bytes is not None]
    return read_or_explain("model is bytes", lambda: readers[0](data))


def _read_opened(opened: Opened) -> Reading:
    model = opened.final
    found = _adapter(model)
    if found is None:
        supported = "; ".join(line for library in libraries() for line in library.supported)
        raise UnknownModelError(
            f"model is a {type(model).__module__}.{type(model).__qualname__}, which cannot be read. Supported: "
            f"{supported}."
        )
    if found.overridden_by is not None:
        other = found.overridden_by
        own = " and ".join(sorted(_PREDICTIONS & vars(other).keys()))
        raise UnsupportedModelError(
            f"model is a {other.__module__}.{other.__qualname__}, which is built on {found.library.name} but has its "
            f"own {own}, so that what it holds does not tell what it predicts."
        )
    if not found.is_product and not reads_trees(model):
        raise UnknownModelError(
            f"model is a {type(model).__name__}, none of whose members is a tree model that can be read."
        )
    reading = _call(found, model)
    link, target = reading.link, opened.target_link
    if target is not None:
        link = target if link.is_identity and not link.gives_probability else UNKNOWN
    changes = {"model": model, "library": found.library, "preprocessing": opened.preprocessing}
    if target is not None:
        changes |= {"link": link, "target_link": target, "model_link": reading.link}
    if reading.feature_names is None and opened.feature_names is not None:
        changes["rules"] = reading.rules.replace(feature_names=opened.feature_names)
    return replace(reading, **changes)


def _call(found: _Adapter, model: Any) -> Reading:
    if not found.is_product:
        return found.reader(model)
    try:
        return found.reader(model)
    except (InputError, UnsupportedModelError):
        raise
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise UnknownModelError(
            f"model is a {type(model).__name__} of {found.library.version}, which stores it in a way that is not known "
            f"here ({error_text(error)})."
        ) from error


def read_member(model: Any) -> Reading:
    """Read a member of a model of models: what it predicts of the rows that the whole model gets."""
    opened = open_model(model)
    if not reads_trees(opened.final):
        raise UnsupportedModelError(
            f"the model has a {type(opened.final).__name__} for a member, which is not a tree model that can be read."
        )
    reading = _read_opened(opened).replace(preprocessing=None)
    return reading if opened.preprocessing is None else merge_steps(reading, opened.preprocessing, {})


def native_rows(X: Any, name: str) -> Any:
    """Return rows in a class of a model library as a matrix, or as a frame if they have names; others as they are."""
    package = _package(type(X))
    library = None if package in _ROW_PACKAGES else _library(package)
    convert = None if library is None else library.rows.get(type(X).__name__)
    if convert is None:
        return X
    try:
        return convert(X, name)
    except InputError:
        raise
    except Exception as error:  # libraries have errors of their own
        raise InputError(
            f"{name} is a {type(X).__name__} that does not give its rows back ({error_text(error)}). Give the "
            "rows that it "
            "was made from."
        ) from error


def response_is_linked(model: Any) -> bool:
    """Return whether what a model predicts is a function of its raw output: of a link, or of a transformed target."""
    opened = open_model(model)
    losses = [str(getattr(opened.final, name, "")).lower() for name in _LOSSES]
    return opened.target_link is not None or any(name in loss for loss in losses for name in _LINKED_LOSSES)


def warn_transformed_target(reading: Reading, output: object) -> None:
    """Warn that values of a TransformedTargetRegressor are not in the units of what it predicts."""
    if reading.target_link is None:
        return
    known = reading.link.response is not None
    if output == "response":
        if not known:
            raise UnsupportedModelError(
                "model is a TransformedTargetRegressor whose output='response' is not known: only np.exp and np.expm1 "
                "of a regressor without a link are. fs.BlackBoxExplainer(model.predict, background) explains it; "
                "output='raw' is in the units of the transformed target."
            )
        return
    way = "output='response'" if known else "fs.BlackBoxExplainer(model.predict, background)"
    warn(
        "model is a TransformedTargetRegressor: values are those of the regressor inside it, in the units of the "
        f"transformed target, not of what model.predict returns. {way} explains that, in its units.",
        ModelWarning,
    )
