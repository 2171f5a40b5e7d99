"""Labels of categorical columns: what a library takes for one, and what it does with any other value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isinf
from typing import Any

import numpy as np

from fouriershap._base.errors import InputError, LabelWarning
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._base.warn import warn
from fouriershap._rows.cityhash import hash_label
from fouriershap._rows.frames import is_missing

UNKNOWN = -1.0  # the code of a label that the model does not know: no category set holds a negative number
LABELS, CODES, REFUSED, EITHER = "labels", "codes", "refused", "either"
_NUMBER = "number"
_KINDS = {str: "text", bool: "truth value", int: "integer", float: _NUMBER, datetime: "datetime"}
_ALIKE = ("integer", "truth value")


@dataclass(frozen=True)
class LabelRule:
    """How a library compares values with the labels of its training data.

    Attributes
    ----------
    library : str
        Its name, for messages.
    in_frames, in_arrays : {"labels", "codes", "refused", "either"}
        What numbers are in a column of labels that is not categorical, of a frame and of an array. "either": labels
        or, where no label could be one, codes.
    needs_categories : bool
        Whether text is refused in columns of pandas that are not categorical, and in arrays.
    is_typed : bool
        Whether a value of another type than all labels is an error.
    alike : tuple of str
        Types whose values are numbers: "integer", "truth value". Otherwise they are labels of a type of their own.
    takes_bools : bool
        Whether columns of truth values, which are not categorical, hold labels.
    refuses_unknown, refuses_missing : bool
        Whether a label that the model does not know, or a missing one, is an error.
    empty_is_missing : bool
        Whether the label "" is a missing value.
    in_dtype : bool
        Whether labels that are floats are compared after the cast of the rows.
    hashed : bool
        Whether vocabularies hold 32-bit hashes of the labels' texts.
    in_splits_only : bool
        Whether vocabularies hold the labels that some split names, but not all that the model has seen.
    """

    library: str = "the model"
    in_frames: str = CODES
    in_arrays: str = CODES
    needs_categories: bool = False
    is_typed: bool = False
    alike: tuple[str, ...] = _ALIKE
    takes_bools: bool = True
    refuses_unknown: bool = False
    refuses_missing: bool = False
    empty_is_missing: bool = False
    in_dtype: bool = False
    hashed: bool = False
    in_splits_only: bool = False

    def of_streams(self) -> LabelRule:
        """Return the rule for rows that cannot hold categories: of files, of engines, of one pandas Series."""
        in_frames = EITHER if self.in_frames == REFUSED else self.in_frames
        return replace(self, needs_categories=False, in_frames=in_frames, alike=_ALIKE)

    def kind(self, label: Any) -> str:
        """Return the type of a label, for people."""
        kind = _KINDS.get(type(label))
        if kind is None:
            kind = next(
                (name for type_, name in _KINDS.items() if isinstance(label, type_)), type(label).__name__
            )
        return _NUMBER if kind in self.alike else kind

    def table(self, known: tuple[Any, ...]) -> Mapping[Any, float]:
        """Return the code of each label of a vocabulary."""
        codes: dict[Any, float] = {label: float(code) for code, label in enumerate(known)}
        return codes | {"": float("nan")} if self.empty_is_missing else codes

    def codes(
        self, labels: Sequence[Any], known: tuple[Any, ...], where: str, counts: Sequence[int] | None = None
    ) -> list[float]:
        """Return the code of each label: NaN where missing, `UNKNOWN` where the model does not know it.

        ``where`` is the column, for messages: an error says what its library does not take, a warning counts what the
        model does not know. ``counts`` says how many rows have each label.
        """
        table, kinds = self.table(known), {self.kind(label) for label in known}
        found, unknown, n_unknown = [], dict[Any, None](), 0
        seen: dict[Any, float] = {}
        for position, label in enumerate(labels):
            key = (label.__class__, label)
            try:
                code = seen[key]
            except KeyError:
                code = seen[key] = self._code(label, table, kinds, known, where)
            except TypeError:  # what cannot be hashed is not a label
                raise InputError(f"{where} has {truncated_repr(label)}, which is not a label.") from None
            if code == UNKNOWN:
                unknown[label] = None
                n_unknown += 1 if counts is None else counts[position]
            found.append(code)
        if unknown and not self.in_splits_only:
            others = "It knows" if not self.hashed else "Neither its splits nor the background have them"
            names = "" if self.hashed else f": {truncated_list(known)}"
            warn(
                f"{where} has {n_unknown:,} value{'s' * (n_unknown > 1)} that the model does not know "
                f"({truncated_list(list(unknown))}), which {self.library} sends where its trees send unknown or "
                f"missing labels. {others}{names}.",
                LabelWarning,
            )
        return found

    def _code(
        self, label: Any, table: Mapping[Any, float], kinds: set[str], known: tuple[Any, ...], where: str
    ) -> float:
        if isinstance(label, np.generic):
            label = label.item()
        if is_missing(label):
            if self.refuses_missing:
                raise InputError(
                    f"{where} has a missing value, but {self.library} takes labels alone. Give missing values a label "
                    "of their own, as in the model's training data."
                )
            return table.get(label, float("nan")) if label is None else float("nan")
        if isinstance(label, float) and isinf(label):
            raise InputError(f"{where} has {truncated_repr(label)}, which is not a label.")
        kind = self.kind(label)
        if self.hashed:
            if not isinstance(label, str | int):
                raise InputError(
                    f"{where} has the {kind} {truncated_repr(label)}, but {self.library} takes text and integers for "
                    "labels. Give one of these, as in the model's training data."
                )
            return table.get(hash_label(label), UNKNOWN)
        if self.is_typed and kinds and kind not in kinds:
            raise InputError(
                f"{where} has the {kind} {truncated_repr(label)}, but the labels of the model are of another type: "
                f"{truncated_list(known)}. Give labels as in its training data."
            )
        code = table.get(label, UNKNOWN)
        if code == UNKNOWN and self.refuses_unknown:
            raise InputError(
                f"{where} has the label {truncated_repr(label)}, which is not in the model's training data, and "
                f"{self.library} refuses such labels. It knows: {truncated_list(known)}."
            )
        return code


PLAIN_LABELS = LabelRule()
