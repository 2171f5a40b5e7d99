"""Arguments, checked: each check once, each error naming the argument, what came and what to do."""

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
from fouriershap._base.short import reason, short, short_list

ProgressOption = bool | Callable[..., Any] | None
DEVICES = ("cpu", "jax")
_UNKNOWN_MACHINE = 4 << 30
_LARGEST = np.iinfo(np.int64).max


def as_array(value: ArrayLike, name: str) -> NDArray[Any]:
    """An array of whatever type ``value`` has."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array: {reason(error)}") from error


def as_floats(value: ArrayLike, name: str, *, copy: bool = False) -> NDArray[np.float64]:
    """A float64 array; ``copy`` for one that shares no memory with ``value``."""
    try:
        return np.array(value, dtype=np.float64, copy=True if copy else None)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} cannot be read as numbers: {reason(error)}") from error


def unshared(rows: NDArray[Any], given: Any) -> NDArray[Any]:
    """Rows to keep: the caller's array may change before they are read for the last time."""
    shared = isinstance(given, np.ndarray) and np.may_share_memory(rows, given)
    return rows.copy() if shared else rows


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} is {short(value)}; choose one of {short_list(choices)}.")
    return str(value)


def is_whole(value: Any) -> bool:
    """Whether this is a whole number; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_whole(name: str, value: Any, least: int = 1, or_else: str = "") -> int:
    """A whole number that is not under ``least``; ``or_else`` names what else is understood."""
    if not is_whole(value) or value < least:
        raise InputError(f"{name} is {short(value)}; give a whole number >= {least}{or_else}.")
    if value > _LARGEST:
        raise InputError(f"{name} is {short(value)}; give a whole number up to {_LARGEST}.")
    return int(value)


def check_number(name: str, value: Any, least: float = -math.inf) -> float:
    """A number, infinity included, that is not under ``least``."""
    number = math.nan
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not number >= least:
        bound = "" if least == -math.inf else f" >= {least:g}"
        raise InputError(f"{name} is {short(value)}; give a number{bound}.")
    return number


def find_position(entry: Any, names: Sequence[str], argument: str) -> int:
    """Where a column or player is that was given by name or position."""
    if isinstance(entry, str):
        if entry not in names:
            raise InputError(
                f"{argument} names {short(entry)}, which does not exist; there are {short_list(names)}."
            )
        return list(names).index(entry)
    if not is_whole(entry) or not 0 <= entry < len(names):
        raise InputError(
            f"{argument} holds {short(entry)}; give names, or positions from 0 to {len(names) - 1}."
        )
    return int(entry)


def check_memory(memory: int | float | None) -> int:
    """The budget in bytes; None is a quarter of the machine's memory."""
    if memory is None:
        try:
            return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) // 4
        except (AttributeError, ValueError, OSError):
            return _UNKNOWN_MACHINE // 4
    number = isinstance(memory, int | float | np.integer) and not isinstance(memory, bool)
    if not number or not 0 <= memory <= _LARGEST:
        raise InputError(
            f"memory is {short(memory)}; give a budget in bytes, or None for a quarter of the machine's."
        )
    return int(memory)


def stored_memory(memory: Any) -> int:
    """The budget that a file states, but no more than this machine's: a file does not know where it is opened."""
    return min(check_memory(memory), check_memory(None))


def check_weights(weights: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Weights (n_rows,) float64 that sum to 1, or None where every row counts the same."""
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
    """A device that exists and is there, and a precision that its kernels have."""
    check_choice("device", device, DEVICES)
    if device == "cpu" and precision not in (None, "double"):
        raise InputError(
            f"precision is {short(precision)}, but only JAX takes one; the native kernels compute in double precision."
        )
    if device == "jax":
        need("jax", "device='jax'", "[jax]", "device='cpu' needs nothing more.")
    return device


def is_folder(path: Path) -> bool:
    """Whether there is a folder of this name; False where no file could have it."""
    try:
        return path.is_dir()
    except OSError:  # it is too long
        return False


def descends_from(value: Any, library: str, name: str) -> bool:
    """Whether a value's class, or a base of it, has this name in this library, which is not imported for it."""
    return any(c.__name__ == name and c.__module__.partition(".")[0] == library for c in type(value).__mro__)


def need(module: str, what: str, install: str, otherwise: str = "") -> Any:
    """An optional library; where it is missing, an error that says what needs it and how to get it.

    ``install`` is what ``pip install`` takes, an extra of ours as "[jax]".
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = f"'fouriershap{install}'" if install.startswith("[") else install
        raise MissingDependencyError(
            f"{what} needs {module.partition('.')[0]}, which cannot be imported ({reason(error)}): "
            f"pip install {package}. {otherwise}".rstrip()
        ) from error


@lru_cache(maxsize=8)
def numbered(n: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(f"Feature {i}" for i in range(n))


def are_numbered(names: Sequence[str]) -> bool:
    """Whether the columns have no names of their own."""
    return tuple(names) == numbered(len(names))


def check_progress(progress: Any) -> ProgressOption:
    """What callers may give: None for the default, True, False, or a function."""
    if progress is None or isinstance(progress, bool) or callable(progress):
        return progress  # type: ignore[no-any-return]
    raise InputError(f"progress is {short(progress)}; give None, True, False or a function of (done, total).")
