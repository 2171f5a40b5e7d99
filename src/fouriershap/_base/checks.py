"""Checks of arguments: each error names the argument, what was given and what to do."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import InputError, MissingDependencyError
from fouriershap._base.messages import error_text, truncated_list, truncated_repr

ProgressOption = bool | Callable[..., Any] | None
DEVICES = ("cpu", "jax")
_UNKNOWN_MACHINE = 4 << 30
_LARGEST = np.iinfo(np.int64).max


def as_array(value: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array of whatever type ``value`` has."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array: {error_text(error)}") from error


def as_floats(value: ArrayLike, name: str, *, copy: bool = False) -> NDArray[np.float64]:
    """Return a float64 array; with ``copy`` one that shares no memory with ``value``."""
    try:
        return np.array(value, dtype=np.float64, copy=True if copy else None)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} cannot be read as numbers: {error_text(error)}") from error


def copy_if_shared(rows: NDArray[Any], given: Any) -> NDArray[Any]:
    """Return rows to keep, copied if the caller's array shares their memory."""
    shared = isinstance(given, np.ndarray) and np.may_share_memory(rows, given)
    return rows.copy() if shared else rows


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return the value, which must be one of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} is {truncated_repr(value)}; choose one of {truncated_list(choices)}.")
    return str(value)


def is_integer(value: Any) -> bool:
    """Return whether this is an integer; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_int(name: str, value: Any, least: int = 1, or_else: str = "") -> int:
    """Return an integer, which must be at least ``least``; ``or_else`` names what else is accepted."""
    if not is_integer(value) or value < least:
        raise InputError(f"{name} is {truncated_repr(value)}; give an integer >= {least}{or_else}.")
    if value > _LARGEST:
        raise InputError(f"{name} is {truncated_repr(value)}; give an integer up to {_LARGEST}.")
    return int(value)


def check_number(name: str, value: Any, least: float = -math.inf) -> float:
    """Return a number, infinity included, which must be at least ``least``."""
    number = math.nan
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not number >= least:
        bound = "" if least == -math.inf else f" >= {least:g}"
        raise InputError(f"{name} is {truncated_repr(value)}; give a number{bound}.")
    return number


def find_position(entry: Any, names: Sequence[str], argument: str) -> int:
    """Return the position of a column or player that was given by name or position."""
    if isinstance(entry, str):
        if entry not in names:
            raise InputError(
                f"{argument} names {truncated_repr(entry)}, which does not exist; there are {truncated_list(names)}."
            )
        return list(names).index(entry)
    if not is_integer(entry) or not 0 <= entry < len(names):
        raise InputError(
            f"{argument} holds {truncated_repr(entry)}; give names, or positions from 0 to {len(names) - 1}."
        )
    return int(entry)


def check_memory(memory: int | float | None) -> int:
    """Return the budget in bytes; None is a quarter of the machine's memory."""
    if memory is None:
        try:
            return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) // 4
        except (AttributeError, ValueError, OSError):
            return _UNKNOWN_MACHINE // 4
    number = isinstance(memory, int | float | np.integer) and not isinstance(memory, bool)
    if not number or not 0 <= memory <= _LARGEST:
        raise InputError(
            f"memory is {truncated_repr(memory)}; give a budget in bytes, or None for a quarter of the machine's."
        )
    return int(memory)


def stored_memory(memory: Any) -> int:
    """Return the budget that a file states, but no more than this machine's default."""
    return min(check_memory(memory), check_memory(None))


def check_weights(weights: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Return weights (n_rows,) float64 that sum to 1, or None where every row counts the same."""
    if n_rows == 0:
        raise InputError("background has no rows; SHAP values need at least one row to compare with.")
    if weights is None:
        return None
    array = as_floats(weights, "weights")
    if array.shape != (n_rows,):
        raise InputError(f"weights has shape {array.shape}; give one weight per background row, ({n_rows},).")
    with np.errstate(over="ignore"):
        total = array.sum()
    if not ((array >= 0).all() and 0 < total < np.inf):
        raise InputError("weights must be finite, their sum included, and >= 0, and not all zero.")
    normalised: NDArray[np.float64] = array / total
    return normalised


def check_device(device: str, precision: str | None = None) -> str:
    """Return a device, which must be available and have the precision."""
    check_choice("device", device, DEVICES)
    if device == "cpu" and precision not in (None, "double"):
        raise InputError(
            f"precision is {truncated_repr(precision)}, but only JAX takes one; the native kernels compute in "
            "double precision."
        )
    if device == "jax":
        import_optional("jax", "device='jax'", "[jax]", "device='cpu' needs nothing more.")
    return device


def check_bool(name: str, value: Any) -> bool:
    """Return an argument that must be True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {truncated_repr(value)}; give True or False.")
    return bool(value)


def check_path(path: Any) -> Path:
    """Return the path of a file."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path is {truncated_repr(path)}; give the path of a file.")
    return Path(path)


def is_folder(path: Path) -> bool:
    """Return whether there is a folder of this name; False where the name is too long for a file."""
    try:
        return path.is_dir()
    except OSError:  # the name is too long
        return False


def descends_from(value: Any, library: str, name: str) -> bool:
    """Return whether a value's class, or a base of it, has this name in this library, without importing it."""
    return any(c.__name__ == name and c.__module__.partition(".")[0] == library for c in type(value).__mro__)


def import_optional(module: str, what: str, install: str, otherwise: str = "") -> Any:
    """Import an optional library; where it is missing, raise an error that says what needs it and how to get it.

    ``install`` is what ``pip install`` takes, an extra of ours as "[jax]".
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = f"'fouriershap{install}'" if install.startswith("[") else install
        raise MissingDependencyError(
            f"{what} needs {module.partition('.')[0]}, which cannot be imported ({error_text(error)}): "
            f"pip install {package}. {otherwise}".rstrip()
        ) from error


@lru_cache(maxsize=8)
def numbered_names(n: int) -> tuple[str, ...]:
    """Return names for columns without names."""
    return tuple(f"Feature {i}" for i in range(n))


def are_numbered_names(names: Sequence[str]) -> bool:
    """Return whether the columns have no names of their own."""
    return tuple(names) == numbered_names(len(names))


def check_progress(progress: Any) -> ProgressOption:
    """Return the argument ``progress``: None for the default, True, False, or a function."""
    if progress is None or isinstance(progress, bool) or callable(progress):
        return progress  # type: ignore[no-any-return]
    raise InputError(
        f"progress is {truncated_repr(progress)}; give None, True, False or a function of (done, total)."
    )
