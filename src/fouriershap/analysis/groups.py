"""Groups of rows: by a column, an array, a mask, bins of numbers or periods of dates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import as_array, check_choice, check_int
from fouriershap._base.errors import InputError
from fouriershap._base.messages import error_text, truncated_list, truncated_repr
from fouriershap._rows.batch import open_batch
from fouriershap._rows.frames import as_frame, is_missing
from fouriershap._rows.text import MISSING, text_of

PERIODS = ("day", "week", "month", "quarter", "year")
_MOST_GROUPS = 200


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row."""

    labels: tuple[str, ...]
    member: NDArray[np.int64]  # (n_rows,)
    in_order: bool = True  # numbers, bins and periods are ordered; names are not


def split_columns(
    X: Any, given: Mapping[str, Any], input_names: tuple[str, ...] | None
) -> tuple[Any, dict[str, Any]]:
    """Return the features of X, and ``given``, a value per argument, with columns of X in place of their names.

    These columns are left out of the features unless they are among ``input_names``.
    """
    found = dict(given)
    named = {argument: name for argument, name in given.items() if isinstance(name, str)}
    if not named:
        return X, found
    frame = as_frame(X)
    for argument, name in named.items():
        if frame is None:
            raise InputError(
                f"{argument} is {truncated_repr(name)}, but X has no column names; give one entry per row."
            )
        if name not in frame.columns:
            raise InputError(
                f"{argument} is {truncated_repr(name)}, which is not a column of X; it has "
                f"{truncated_list(frame.columns)}."
            )
        found[argument] = np.asarray(frame[name].to_numpy())
    extra = tuple(dict.fromkeys(name for name in named.values() if name not in (input_names or ())))
    return open_batch(X, extra, input_names).features if extra else X, found


def split_column(
    X: Any, given: Any, argument: str, input_names: tuple[str, ...] | None
) -> tuple[Any, NDArray[Any]]:
    """Return the features of X, and one entry per row: ``given``, or the column of X that it names."""
    features, found = split_columns(X, {argument: given}, input_names)
    entries = as_array(found[argument], argument)
    if entries.ndim != 1:
        raise InputError(
            f"{argument} is {truncated_repr(given)}; give the name of a column of X, or one entry per row."
        )
    return features, entries


def make_groups(entries: NDArray[Any], n_rows: int, every: Any = None, bins: Any = None) -> Groups:
    """Return groups of rows with equal entries, in the order of the entries; periods of dates, bins of numbers."""
    if len(entries) != n_rows:
        raise InputError(f"by has {len(entries)} entries for {n_rows} rows.")
    if every is not None:
        if bins is not None:
            raise InputError("every and bins were both given; every is for dates, bins for numbers.")
        return _group_equal(_periods(entries, check_choice("every", every, PERIODS)))
    if bins is not None:
        return _group_bins(entries, check_int("bins", bins, 2))
    if entries.dtype.kind == "M":  # days unless there are times of day
        known = entries[~np.isnat(entries)]
        unit = "D" if (known == known.astype("datetime64[D]")).all() else "s"
        entries = entries.astype(f"datetime64[{unit}]")
    return _group_equal(entries)


def _periods(entries: NDArray[Any], every: str) -> NDArray[np.object_]:
    """Return the name of the period of each date, None where it is missing."""

    def to_date(entry: Any) -> Any:
        if is_missing(entry):
            return None
        # The time that the clock of its zone shows.
        naive = entry.replace(tzinfo=None) if getattr(entry, "tzinfo", None) is not None else entry
        return np.datetime64(naive, "s")

    try:
        if entries.dtype.kind == "O":
            dates = np.array([to_date(entry) for entry in entries.tolist()], dtype="datetime64[s]")
        elif entries.dtype.kind in "MUST":
            dates = entries.astype("datetime64[s]")
        else:
            raise ValueError(f"entries are {entries.dtype}")
    except (TypeError, ValueError) as error:
        raise InputError(f"every={truncated_repr(every)} needs dates in by: {error_text(error)}.") from None
    days = dates.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    if every == "week":  # Mondays: day 0 of the epoch was a Thursday
        days = days - ((days.astype(np.int64) + 3) % 7).astype("timedelta64[D]")
    texts = {"month": months, "year": dates.astype("datetime64[Y]")}.get(every, days).astype(str)
    if every == "quarter":
        quarter = months.astype(np.int64) % 12 // 3 + 1
        texts = np.char.add(np.char.add(dates.astype("datetime64[Y]").astype(str), "-Q"), quarter.astype(str))
    found = texts.astype(object)
    found[np.isnat(dates)] = None
    return found


def _group_bins(entries: NDArray[Any], bins: int) -> Groups:
    try:
        values = entries.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"bins={bins} needs numbers in by: {error_text(error)}.") from None
    known = values[np.isfinite(values)]
    if not len(known):
        raise InputError(f"bins={bins} needs numbers in by, but all are missing.")
    inner = np.quantile(known, np.arange(1, bins) / bins, method="higher")
    cuts = np.unique(inner[inner > known.min()])
    if not len(cuts):
        return _group_equal(entries)
    member = np.searchsorted(cuts, values, side="right")
    ends = [text_of(float(cut)) for cut in cuts]
    between = [f"{a} to < {b}" for a, b in itertools.pairwise(ends)]
    labels = [f"< {ends[0]}", *between, f">= {ends[-1]}", MISSING]
    member = np.where(np.isnan(values), len(labels) - 1, member)
    used, member = np.unique(member, return_inverse=True)
    return Groups(tuple(labels[k] for k in used), member.astype(np.int64))


def _group_equal(entries: NDArray[Any]) -> Groups:
    plain = entries.astype(str).tolist() if entries.dtype.kind == "M" else entries.tolist()
    is_date = entries.dtype.kind == "M"
    plain = [None if (is_date and e == "NaT") or is_missing(e) else e for e in plain]
    found = {e for e in plain if e is not None}
    if len(found) > _MOST_GROUPS:
        raise InputError(
            f"by has {len(found):,} different entries; at most {_MOST_GROUPS} groups are compared. Give bins= for "
            "numbers, every='month' (or another period) for dates, or coarser groups."
        )
    try:
        known: list[Any] = sorted(found)
    except TypeError:
        known = sorted(found, key=str)
    labels = [text_of(entry) for entry in known]
    # "2025-01" and "3 rooms" have an order, "north" and True have none.
    in_order = all(not isinstance(e, bool) and text_of(e)[:1] in "-0123456789" for e in known)
    if None in plain:
        known.append(None)
        labels.append(MISSING)
    position = {entry: k for k, entry in enumerate(known)}
    return Groups(tuple(labels), np.array([position[e] for e in plain], dtype=np.int64), in_order)
