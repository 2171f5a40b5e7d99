"""Corrupt files: of every kind, altered, written with a valid checksum; and all that can be done with a file.

`python corrupt_files.py first last` tries files number first ... last - 1, each in a child process with limited memory.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fouriershap as fs
from fouriershap._base import files as _io
from fouriershap.cli._explainers import csv_kinds
from fouriershap.cli._info import _describe as describe
from valid_files import NAMES, original

ROOM = 1 << 30  # bytes that a child may take beyond what it has when it starts
NUMBERS = [0, -1, 1, 2, 3, 7, 10**9, 10**18, 2**31, 2**63, -(2**63), 10**400, 0.5, -1.5, 1e300]
NUMBERS += [float("nan"), float("inf"), -float("inf")]
TEXTS = ["x", "0", "shapley", "trees", "raw", "float32", "float64", "int8", "number", "label", "one-hot"]
TEXTS += ["tables", "walk", "probability", "binary"]
OTHERS = [None, True, False, "", *TEXTS, "x" * 5000, [], {}, [1], ["a"], [[]], {"a": 1}, [None]]
TYPES = [np.float64, np.float32, np.int64, np.int32, np.uint64, np.uint16, np.uint8, np.bool_]


# Changes


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a header has values, at any depth."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*at, key))


def pick(rng: np.random.Generator, items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


def changed_value(rng: np.random.Generator, value: Any) -> Any:
    """Another value: near the old one, or anything."""
    if rng.random() < 0.4:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float) and abs(value) < 1e9:
            near = [value + 1, value - 1, -value, value * 1000, value + 0.5]
            return pick(rng, [*near, str(value), [value], bool(value)])
        if isinstance(value, str):
            return pick(rng, [value[1:], value + "x", value.upper(), [value], None])
        if isinstance(value, list):
            longer = value + (value[:1] or [1])
            changed = [value[1:], value[:-1], longer, value[::-1], [value], value * 50, dict.fromkeys("ab")]
            return pick(rng, changed)
    return anything(rng)


def anything(rng: np.random.Generator) -> Any:
    return _copied(pick(rng, NUMBERS + OTHERS))


def lie_in_header(rng: np.random.Generator, header: Any) -> None:
    every = list(places(header))
    # Deep lists (labels, names) have most places: choose the depth first.
    depth = pick(rng, sorted({len(at) for at in every}))
    *at, key = pick(rng, [at for at in every if len(at) == depth])
    inner = header
    for step in at:
        inner = inner[step]
    what = rng.random()
    if what < 0.12:
        del inner[key]
    elif what < 0.17 and isinstance(inner, dict):
        inner[pick(rng, ["extra", "n_bits", "kind", "weights"])] = anything(rng)
    else:
        inner[key] = changed_value(rng, inner[key])


def lie_in_array(rng: np.random.Generator, arrays: dict[str, np.ndarray]) -> None:
    name = pick(rng, sorted(arrays))
    array = arrays[name]
    change = pick(rng, ARRAY_LIES)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = change(rng, array, arrays)
    if found is None:
        del arrays[name]
    else:
        arrays[name] = np.ascontiguousarray(found)


def lie_together(rng: np.random.Generator, arrays: dict[str, np.ndarray], header: Any) -> None:
    """All that has one size gets another, in arrays and header alike."""
    # A lie before this one may have made an array without entries very long.
    sizes = {n for array in arrays.values() for n in array.shape if 1 < n < 10**6}
    if not sizes:
        return
    size = pick(rng, sorted(sizes))
    first, last, more = pick(rng, [(0, 1, 0), (1, 0, 0), (0, 0, 1)])

    def kept(n: int) -> list[int]:
        return [*range(first, n - last), *[0] * more]

    for name, array in arrays.items():
        for axis, n in enumerate(array.shape):
            if n in (size, size + 1) and rng.random() < 0.95:
                array = array.take(kept(n), axis=axis)
        arrays[name] = np.ascontiguousarray(array)
    for *path, key in reversed(list(places(header))):  # what is inside before what it is in
        inner = header
        for step in path:
            inner = inner[step]
        if isinstance(inner[key], list) and len(inner[key]) == size:
            inner[key] = [inner[key][i] for i in kept(size)]
        elif type(inner[key]) is int and inner[key] == size:
            inner[key] = len(kept(size))


def set_one(rng: np.random.Generator, array: np.ndarray, _: Any) -> np.ndarray:
    out = array.copy()
    if out.size:
        flat, at = out.reshape(-1), int(rng.integers(out.size))
        if out.dtype.kind == "f":
            flat[at] = pick(rng, [0.0, -1.0, np.nan, np.inf, -np.inf, 1e300, flat[at] + 1, -flat[at], 0.5])
        elif out.dtype.kind == "b":
            flat[at] = not flat[at]
        else:
            limits = np.iinfo(out.dtype)
            near = [
                int(flat[at]) + 1,
                int(flat[at]) - 1,
                int(flat[at]) + 7,
                int(flat[at]) * 2,
                int(flat.max()) + 1,
            ]
            value = pick(rng, [0, 1, -1, 255, 256, 10**6, limits.max, limits.min, *near, *near])
            flat[at] = min(max(value, limits.min), limits.max)
    return out


def set_some(rng: np.random.Generator, array: np.ndarray, arrays: Any) -> np.ndarray:
    for _ in range(4):
        array = set_one(rng, array, arrays)
    return array


def reshaped(rng: np.random.Generator, array: np.ndarray, _: Any) -> np.ndarray:
    shapes = [(-1,), (*array.shape, 1), (1, *array.shape), (array.size, 1)]
    return pick(rng, [array.reshape(shape) if array.size else array[None] for shape in shapes])


def empty(rng: np.random.Generator, array: np.ndarray, _: Any) -> np.ndarray:
    shapes = [(0,), (0, 0), (0, *array.shape[1:]), (0, 10**9), (10**9, 0), (10**15, 0), ()]
    shape = pick(rng, shapes)
    return np.zeros(shape, dtype=array.dtype)


def resized(rng: np.random.Generator, array: np.ndarray, _: Any) -> np.ndarray:
    if not array.ndim or not len(array):
        return array
    more = np.concatenate([array, array[: int(rng.integers(1, 4))]])
    doubled = np.concatenate([array, array], axis=-1)
    return pick(
        rng, [array[1:], array[:-1], array[: len(array) // 2], more, doubled, array[..., :-1], array[::-1]]
    )


ARRAY_LIES: list[Callable[[np.random.Generator, np.ndarray, dict[str, np.ndarray]], np.ndarray | None]] = [
    *[set_one] * 6,
    *[set_some] * 2,
    *[resized] * 3,
    reshaped,
    empty,
    lambda rng, array, _: array.astype(pick(rng, TYPES)),
    lambda rng, array, _: rng.permutation(array) if array.ndim else array,
    lambda rng, array, _: np.full_like(array, pick(rng, [0, 1])),
    lambda rng, array, _: -array if array.dtype.kind in "if" else array,
    lambda rng, array, arrays: arrays[pick(rng, sorted(arrays))],
    lambda rng, array, arrays: None,
]


def lie(name: str, seed: int) -> _io.Contents:
    """A lying file: one to three changes, in header and arrays alike."""
    rng = np.random.default_rng([seed, sum(name.encode())])
    honest = original(name).contents
    kind, arrays, header = honest.kind, dict(honest.arrays), _copied(honest.header)
    for _ in range(pick(rng, [1, 1, 1, 2, 3])):
        what = rng.random()
        if what < 0.1 and any(max(array.shape, default=0) > 1 for array in arrays.values()):
            lie_together(rng, arrays, header)
        elif what < 0.5 and header:
            lie_in_header(rng, header)
        elif arrays:
            lie_in_array(rng, arrays)
    if rng.random() < 0.01:
        kind = pick(
            rng,
            [
                "spectrum",
                "tables",
                "explainer of trees",
                "explainer of black box",
                "explainer of spectrum",
                "x",
            ],
        )
    return _io.Contents(kind, arrays, header)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list | tuple) else value


# What can be done with a file


def exercise(path: Path, rows: Any, report: bool = False) -> str:
    """Load a file and use it in every way: "refused", or "loaded"; any other exception is a fault."""
    try:
        loaded: Any = fs.load(path)
    except fs.FileFormatError as error:
        if len(str(error)) > 1000 or "\n" in str(error):
            raise AssertionError(f"a message of {len(str(error))} characters") from error
        return "refused"
    for act in acts(loaded, rows, path.with_name("again.fshap"), report):
        try:
            act()
        except (fs.InputError, fs.AdditivityError):  # the rows do not fit the file, or the file not itself
            continue
    return "loaded"


def acts(loaded: Any, rows: Any, again: Path, report: bool) -> list[Callable[[], Any]]:
    shared: list[Callable[[], Any]] = [
        lambda: repr(loaded),
        lambda: describe(loaded),
        lambda: saved_again(loaded, again),
    ]
    if isinstance(loaded, fs.Spectrum):
        more = [
            lambda: loaded(rows),
            loaded.prune_bound,
            lambda: repr(loaded.top_terms()),
            lambda: loaded.frequencies,
        ]
        more += [
            lambda: loaded + loaded,
            lambda: loaded.degree_profile(),
            lambda: fs.SpectrumExplainer(loaded, rows),
        ]
        return shared + more
    if isinstance(loaded, fs.Waves):
        return [*shared, lambda: loaded(rows), lambda: loaded.importance(rows), lambda: loaded.factors(rows)]
    shared += [
        lambda: loaded.expected_value,
        lambda: loaded.shap_values(rows, n_jobs=1),
        lambda: loaded.shap_interaction_values(rows, n_jobs=1),
        lambda: loaded.shap_interaction_values(rows, pairs=[(0, 1)], n_jobs=1),
    ]
    shared += [lambda: loaded(rows), lambda: loaded.frame(rows, top_k=2), lambda: csv_kinds(loaded, ())]
    shared += [lambda: loaded.predict(rows), lambda: repr(loaded.interactions(rows, 2, top_k=2))]
    shared.append(lambda: repr(loaded.plan()))
    if loaded.kind in ("trees", "products"):
        shared += [lambda: loaded.plan(10), lambda: repr(loaded.fidelity)]
        shared += [lambda: loaded.with_background(rows).shap_values(rows, n_jobs=1)]
    if loaded.kind == "black box":
        shared += [
            lambda: repr(loaded.fitted.candidates),
            lambda: repr(loaded.fidelity),
        ]
        shared += [
            lambda: float(loaded.fidelity),
            lambda: loaded.fitted.bit_names,
            lambda: repr(loaded.fitted.top_terms(3)),
        ]
        shared += [lambda: loaded.with_background(rows).shap_values(rows, n_jobs=1)]
    if report:
        shared.append(lambda: loaded.report(rows, again.with_suffix(".html")))
    return shared


def saved_again(loaded: Any, path: Path) -> None:
    loaded.save(path)
    fs.load(path)


# In child processes, for a crash or a gigabyte to be noticed


def limit_memory() -> None:
    """At most `ROOM` more than now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _try_all(numbers: range, log: Any, folder: str) -> None:
    limit_memory()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    path = Path(folder) / "lie.fshap"
    for number in numbers:
        name = NAMES[number % len(NAMES)]
        log.put((number, name, "begin", ""))
        try:
            contents = lie(name, number)
            path.unlink(missing_ok=True)
            _io.write(path, contents.kind, contents.arrays, contents.header)
            result = exercise(path, original(name).rows, report=number % 20 == 0)
            log.put((number, name, result, ""))
        except BaseException:  # noqa: BLE001 - whatever it is, it is reported
            log.put((number, name, "fault", traceback.format_exc(limit=-4)))


def try_all(numbers: range) -> tuple[dict[str, int], list[tuple[int, str, str]]]:
    """How many files were refused and loaded, and the faults: number, name, traceback or how the child ended."""
    for name in NAMES:
        original(name)  # before the fork: once for all children
    context = multiprocessing.get_context("fork")
    counts, faults = {"refused": 0, "loaded": 0}, []
    while len(numbers):
        with tempfile.TemporaryDirectory() as folder:
            log = context.SimpleQueue()
            child = context.Process(target=_try_all, args=(numbers, log, folder))
            child.start()
            last = (numbers[0], "", "begin", "")
            while child.is_alive() or not log.empty():
                if log.empty():
                    child.join(0.01)
                    continue
                last = log.get()
                number, name, result, text = last
                if result == "fault":
                    faults.append((number, name, text))
                elif result != "begin":
                    counts[result] += 1
            child.join()
        if last[2] == "begin":  # the child is gone in the middle of it
            faults.append((last[0], last[1], f"the process ended with {child.exitcode}"))
        numbers = range(last[0] + 1, numbers.stop)
    return counts, faults


if __name__ == "__main__":
    counts, faults = try_all(range(int(sys.argv[1]), int(sys.argv[2])))
    for number, name, text in faults:
        print(f"--- {number} {name}\n{text}")
    print(counts, len(faults), "faults")
