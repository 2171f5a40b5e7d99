"""Groups of rows: by a column, an array, a mask, bins of numbers or periods of dates."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice, check_whole
from fouriershap._base.errors import InputError
from fouriershap._base.short import reason, short
from fouriershap._rows.batch import open_batch
from fouriershap._rows.frames import as_frame, is_missing
from fouriershap._rows.text import MISSING, text_of

PERIODS = ("day", "week", "month", "quarter", "year")
_MOST_GROUPS = 200


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each row belongs to."""

    labels: tuple[str, ...]
    member: NDArray[np.int64]  # (n_rows,)
    in_order: bool = True  # numbers, bins and periods come one after the other; names do not


def find_groups(
    X: Any, by: Any, known: tuple[str, ...] | None, every: Any = None, bins: Any = None
) -> tuple[Any, NDArray[Any]]:
    """The features among the columns of X, and what ``by`` says of each row, one value per row."""
    if not isinstance(by, str):
        array = np.asarray(by)
        if array.ndim != 1:
            raise InputError(f"by is {short(by)}; give the name of a column of X, or one entry per row.")
        return X, array
    frame = as_frame(X)
    if frame is None:
        raise InputError(f"by is {short(by)}, but X has no names of columns; give one entry per row.")
    if by not in frame.columns:
        raise InputError(f"by is {short(by)}, which X has no column of; it has {short(list(frame.columns))}.")
    column = np.asarray(frame[by].to_numpy())
    if known is not None and by in known:
        return X, column
    return open_batch(X, (by,), known).features, column


def make_groups(entries: NDArray[Any], n_rows: int, every: Any = None, bins: Any = None) -> Groups:
    """Groups of rows with equal entries, in the order of the entries; periods of dates, bins of numbers."""
    if len(entries) != n_rows:
        raise InputError(f"by has {len(entries)} entries for {n_rows} rows.")
    if every is not None:
        if bins is not None:
            raise InputError("every and bins were both given; every is for dates, bins for numbers.")
        return _numbered(_periods(entries, check_choice("every", every, PERIODS)))
    if bins is not None:
        return _binned(entries, check_whole("bins", bins, 2))
    if entries.dtype.kind == "M":
        return _numbered(entries.astype(f"datetime64[{_unit(entries)}]"))
    return _numbered(entries)


def _unit(dates: NDArray[Any]) -> str:
    """Days where the dates have no time of day, else seconds."""
    there = dates[~np.isnat(dates)]
    return "D" if (there == there.astype("datetime64[D]")).all() else "s"


def _periods(entries: NDArray[Any], every: str) -> NDArray[np.object_]:
    try:
        if entries.dtype.kind == "O":
            dates = np.array(
                [None if is_missing(e) else np.datetime64(_naive(e), "s") for e in entries.tolist()],
                dtype="datetime64[s]",
            )
        elif entries.dtype.kind in "MUST":
            dates = entries.astype("datetime64[s]")
        else:
            raise ValueError(f"entries are {entries.dtype}")
    except (TypeError, ValueError) as error:
        raise InputError(f"every={short(every)} needs dates in by, and {reason(error)}.") from None
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


def _naive(entry: Any) -> Any:
    """A time without its zone, as its clock shows it."""
    return entry.replace(tzinfo=None) if getattr(entry, "tzinfo", None) is not None else entry


def _binned(entries: NDArray[Any], bins: int) -> Groups:
    try:
        values = entries.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"bins={bins} needs numbers in by: {reason(error)}.") from None
    there = np.isfinite(values)
    if not there.any():
        raise InputError(f"bins={bins} needs numbers in by, and all are missing.")
    inner = np.quantile(values[there], np.arange(1, bins) / bins, method="higher")
    cuts = np.unique(inner[inner > values[there].min()])
    member = np.searchsorted(cuts, values, side="right")
    ends = [text_of(float(cut)) for cut in cuts]
    if not ends:
        return _numbered(entries)
    labels = [
        f"< {ends[0]}",
        *(f"{a} to < {b}" for a, b in itertools.pairwise(ends)),
        f">= {ends[-1]}",
    ]
    missing = np.isnan(values)
    if missing.any():
        labels.append(MISSING)
        member = np.where(missing, len(labels) - 1, member)
    used, member = np.unique(member, return_inverse=True)
    return Groups(tuple(labels[k] for k in used), member.astype(np.int64))


def _numbered(entries: NDArray[Any]) -> Groups:
    plain = (
        entries.tolist()
        if entries.dtype.kind != "M"
        else [None if e == "NaT" else e for e in entries.astype(str)]
    )
    plain = [None if is_missing(e) else e for e in plain]
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
    position = {entry: k for k, entry in enumerate(known)}
    labels = [text_of(entry) for entry in known]
    if None in plain:
        position[None] = len(labels)
        labels.append(MISSING)
    # "2025-01" and "3 rooms" have an order, "north" and True have none.
    in_order = all(not isinstance(e, bool) and text_of(e)[:1] in "-0123456789" for e in known)
    return Groups(tuple(labels), np.array([position[e] for e in plain], dtype=np.int64), in_order)
