"""Tables of CatBoost's target statistics (CTRs): which labels and bits are behind their hashes.

A table has a 64-bit hash and counts for each combination of labels and bits that training saw. Hashes are linear in
the 32-bit hashes of labels, so labels and combinations follow from the tables themselves, without the training data.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.messages import truncated_repr

ADVICE = "Train with a smaller max_ctr_complexity (1: no combinations), or explain the model as a black box."
COUNTS = ("Counter", "FeatureFreq")
_MEANS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue")
_MOST_COMBINATIONS = 1 << 28  # tried to decode a table
_CHUNK = 1 << 22  # combinations tried at a time
_FILTER_BITS = 22
_FACTOR = 0x4906BA494954CB65
_EMPTY = (1 << 64) - 1  # a free place in a hash table

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]


class Variable(NamedTuple):
    """Element of a combination: ``feature`` is its column, ``cut`` its border, or the label that it asks for."""

    feature: int
    kind: str  # "label", "border" or "value"
    cut: float


class Table(NamedTuple):
    """A table of a CTR: cell ``cells[i]`` (a code or a bit for each variable) has the counts ``entry[i]``."""

    variables: list[Variable]
    cells: Ints
    entry: Ints
    counts: NDArray[np.float64]
    denominator: float


def table_values(ctr: dict[str, Any], table: Table) -> tuple[NDArray[np.float32], np.float32]:
    """Return a CTR's value for each entry of its table, and for cells that have none, in CatBoost's precision."""
    counts = np.vstack([table.counts, np.zeros((1, table.counts.shape[1]))])
    kind, target = ctr["ctr_type"], ctr["target_border_idx"]
    if kind in COUNTS:
        good, total = counts[:, 0], np.full(len(counts), table.denominator)
    elif kind in _MEANS:
        good, total = counts[:, 0], counts[:, 1]
    elif kind in ("Borders", "Buckets"):
        total = counts.sum(axis=1)
        good = counts[:, target] if kind == "Buckets" else counts[:, target + 1 :].sum(axis=1)
    else:
        raise UnsupportedModelError(
            f"model is a CatBoost model with target statistics of the unknown type {truncated_repr(kind)}; update "
            "fouriershap."
        )
    prior, weight = np.float32(ctr["prior_numerator"]), np.float32(ctr["prior_denomerator"])
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (good.astype(np.float32) + prior) / (total.astype(np.float32) + weight)
    value = (value + np.float32(ctr["shift"])) * np.float32(ctr["scale"])
    return value[:-1], value[-1]


def decode(
    data: dict[str, Any], elements: dict[str, list[Variable]], codes: dict[int, dict[int, int]]
) -> dict[str, Table]:
    """Find the labels and bits behind the hashes of all tables; add labels to ``codes``."""
    known: dict[tuple[int, ...], Ints] = {}  # features -> hashes of their labels that occur together
    tables = {}
    for name in sorted(elements, key=lambda name: (_n_labels(elements[name]), len(elements[name]))):
        stored, variables = data[name], elements[name]
        stride = stored["hash_stride"]
        keys = np.array([int(key) for key in stored["hash_map"][::stride]], dtype=np.uint64)
        columns = [stored["hash_map"][i::stride] for i in range(1, stride)]
        counts = np.array(columns, dtype=np.float64).reshape(stride - 1, len(keys)).T
        is_used = keys != _EMPTY
        entry, cells = _cells(keys[is_used], variables, known)
        tables[name] = Table(variables, cells, entry, counts[is_used], stored["counter_denominator"])
        labels = [i for i, variable in enumerate(variables) if variable.kind == "label"]
        _learn(known, tuple(variables[i].feature for i in labels), cells[:, labels])
        for i in labels:
            _learn(known, (variables[i].feature,), cells[:, [i]])
    for table in tables.values():
        for i, variable in enumerate(table.variables):
            if variable.kind == "label":
                own = codes[variable.feature]
                seen, inverse = np.unique(table.cells[:, i], return_inverse=True)
                number = [own.setdefault(label & 0xFFFFFFFF, len(own)) for label in seen.tolist()]
                table.cells[:, i] = np.array(number, dtype=np.int64)[inverse]
    return tables


def _n_labels(variables: list[Variable]) -> int:
    return sum(variable.kind == "label" for variable in variables)


def _learn(known: dict[tuple[int, ...], Ints], features: tuple[int, ...], labels: Ints) -> None:
    """Add combinations of labels (n, n_features) to those that are known."""
    if features in known:
        labels = np.concatenate([known[features], labels])
    powers = np.array([pow(_FACTOR, i, 1 << 64) for i in range(len(features))], dtype=np.uint64)
    _, first = np.unique(labels.astype(np.uint64) @ powers, return_index=True)
    known[features] = labels[first]


def _cells(keys: Words, variables: list[Variable], known: dict[tuple[int, ...], Ints]) -> tuple[Ints, Ints]:
    """Return all combinations with these keys: positions among the keys, and hashes of labels and bits."""
    n = len(variables)
    powers = [pow(_FACTOR, n - i + 1, 1 << 64) for i in range(n)]
    bits = [i for i in range(n) if variables[i].kind != "label"]
    labels = [i for i in range(n) if variables[i].kind == "label"]
    settings = np.array(list(product((0, 1), repeat=len(bits))), dtype=np.uint64)
    shift = settings @ np.array([powers[i] for i in bits], dtype=np.uint64)
    targets = (keys[None, :] - shift[:, None]).ravel()
    features = tuple(variables[i].feature for i in labels)
    for place, tuples in _searches(targets, features, [powers[i] for i in labels], known):
        setting, entry = np.divmod(place, max(len(keys), 1))
        if len(np.unique(entry)) == len(keys):
            cells = np.empty((len(place), n), dtype=np.int64)
            cells[:, labels], cells[:, bits] = tuples, settings[setting].astype(np.int64)
            return entry, cells
    raise UnsupportedModelError(
        "model is a CatBoost model with target statistics (CTR) of combinations of features whose labels cannot be "
        f"found from their hashes. {ADVICE}"
    )


def _searches(
    targets: Words, features: tuple[int, ...], powers: list[int], known: dict[tuple[int, ...], Ints]
) -> Iterator[tuple[Ints, Ints]]:
    """Yield labels whose sums, each times its power, are targets, cheap searches first: positions and labels."""
    searches: list[tuple[int, int, Ints, Words, Ints | None]] = []
    for i, feature in enumerate(features):
        rest = _combinations(features[:i] + features[i + 1 :], known)
        if rest is None:
            continue
        sums = rest.astype(np.uint64) @ np.array(powers[:i] + powers[i + 1 :], dtype=np.uint64)
        labels = known.get((feature,))
        if labels is not None:
            searches.append((len(rest) * len(labels), i, rest, sums, labels[:, 0]))
        searches.append((len(rest) * len(targets), i, rest, sums, None))
    for cost, i, rest, sums, labels in sorted(searches, key=lambda search: search[0]):
        if cost > _MOST_COMBINATIONS:
            return
        search = (
            _solve(targets, sums, powers[i]) if labels is None else _look_up(targets, sums, labels, powers[i])
        )
        place, row, label = (np.concatenate(part) for part in zip(*search, strict=True))
        yield place, np.insert(rest[row], i, label, axis=1)


def _combinations(features: tuple[int, ...], known: dict[tuple[int, ...], Ints]) -> Ints | None:
    """Return the combinations of labels of some features, (n, n_features): those of a table, else all."""
    if not features:
        return np.empty((1, 0), dtype=np.int64)
    if features in known:
        return known[features]
    if any((feature,) not in known for feature in features):
        return None
    columns = [known[feature,][:, 0] for feature in features]
    if np.prod([float(len(column)) for column in columns]) > _MOST_COMBINATIONS:
        return None
    return np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, len(features))


def _solve(targets: Words, sums: Words, power: int) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield where ``sums[row] + power * label`` is a target for a label of 32 bits: place, row, label."""
    inverse = np.uint64(pow(power, -1, 1 << 64))
    step = max(1, _CHUNK // max(len(targets), 1))
    for start in range(0, len(sums), step):
        label = ((targets[None, :] - sums[start : start + step, None]) * inverse).view(np.int64)
        row, place = np.nonzero((label >= -(1 << 31)) & (label < 1 << 31))
        yield place, start + row, label[row, place]


def _look_up(targets: Words, sums: Words, labels: Ints, power: int) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield the same for known labels."""
    order = np.argsort(targets)
    sorted_targets = targets[order]
    low = np.uint64((1 << _FILTER_BITS) - 1)
    occurs = np.zeros(1 << _FILTER_BITS, dtype=bool)
    occurs[targets & low] = True
    last = labels.astype(np.uint64) * np.uint64(power)
    step = max(1, _CHUNK // max(len(labels), 1))
    for start in range(0, len(sums), step):
        total = sums[start : start + step, None] + last[None, :]
        row, column = np.nonzero(occurs[total & low])
        found = total[row, column]
        place = np.minimum(np.searchsorted(sorted_targets, found), max(len(targets) - 1, 0))
        is_target = sorted_targets[place] == found if len(targets) else np.zeros(0, dtype=bool)
        yield order[place[is_target]], start + row[is_target], labels[column[is_target]]
