"""Model files of the real libraries, by suffix."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fouriershap import InputError, MissingDependencyError, TreeEnsemble, read_model
from fouriershap._base.checks import need
from fouriershap._base.short import reason, short, short_text

_NATIVE = (".json", ".ubj", ".txt", ".cbm")
# Of scikit-learn's tree models, and not on skops' own list: arrays of nodes, and how columns are checked.
_HARMLESS = {
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.utils.validation.check_array",
    "functools.partial",  # skops lists the function inside on its own
    # Those of histogram boosting, which skops itself knows only since 0.14.
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    *(f"sklearn._loss.link.{name}" for name in ("Interval", "IdentityLink", "LogLink", "LogitLink")),
    *(f"sklearn._loss.link.{name}" for name in ("HalfLogitLink", "MultinomialLogit")),
    *(f"sklearn._loss.loss.{name}" for name in ("HalfSquaredError", "AbsoluteError", "PinballLoss")),
    *(f"sklearn._loss.loss.{name}" for name in ("HalfPoissonLoss", "HalfGammaLoss", "HalfBinomialLoss")),
    "sklearn._loss.loss.HalfMultinomialLoss",
}
_PICKLES = (".pkl", ".pickle", ".joblib")


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model as we read it, and as its library does."""

    path: Path
    ensemble: TreeEnsemble
    estimator: Any = None  # the library's own, where reading went through it


def open_model(path: Path, trust_pickle: bool) -> ModelFile:
    """Read a model file, by its suffix; ``trust_pickle``: whether code in the file may run."""
    suffix = path.suffix.lower()
    if suffix not in (*_NATIVE, *_PICKLES, ".skops"):
        raise InputError(
            f"{short_text(path)}: the suffix {short(suffix)} says no known model format; known are "
            f"{', '.join(_NATIVE)}, .skops and, with --trust-pickle, {', '.join(_PICKLES)}."
        )
    if not path.is_file():
        raise InputError(f"{short_text(path)}: there is no such file.")
    if suffix in _NATIVE:
        return ModelFile(path, read_model(path))
    if suffix != ".skops" and not trust_pickle:
        raise InputError(
            f"{short_text(path)}: a pickle can run any program when it is opened. If you trust where it comes from, "
            "add --trust-pickle; safer: save the model with skops, or in its library's own format."
        )
    estimator = _from_skops(path) if suffix == ".skops" else _from_pickle(path)
    return ModelFile(path, read_model(estimator), estimator)


def _from_skops(path: Path) -> Any:
    """An estimator from skops' format, whose types of scikit-learn and NumPy are known to be harmless."""
    skops = need("skops.io", "a .skops file", "skops")
    try:
        types = skops.get_untrusted_types(file=path)
        unknown = sorted(set(types) - _HARMLESS)
        if unknown:
            named = ", ".join(map(short_text, unknown[:5]))
            raise InputError(
                f"{short_text(path)}: holds the types {named}, which skops does not know as harmless."
            )
        return skops.load(path, trusted=types)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{short_text(path)}: skops cannot read it ({type(error).__name__}: {reason(error)})."
        ) from error


def _from_pickle(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".joblib":
            return need("joblib", "a .joblib file", "joblib").load(path)
        with path.open("rb") as file:
            return import_module("pickle").load(file)
    except (MissingDependencyError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise InputError(
            f"{short_text(path)}: cannot be unpickled ({type(error).__name__}: {reason(error)})."
        ) from error
