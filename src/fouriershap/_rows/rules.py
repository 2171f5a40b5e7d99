"""`InputRules`: how a library turns the caller's rows into the numbers that its models compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.headers import Label, from_json, get_typed, require
from fouriershap._base.messages import error_text, truncated_list, truncated_repr, truncated_text
from fouriershap._rows.cityhash import hash_label
from fouriershap._rows.frames import (
    as_frame,
    as_matrix,
    check_names,
    densified,
    float_matrix,
    integers_of,
    is_missing,
    is_sparse,
    numbers_of,
)
from fouriershap._rows.labels import CODES, EITHER, LABELS, PLAIN_LABELS, REFUSED, UNKNOWN, LabelRule

if TYPE_CHECKING:
    import narwhals as nw

ZERO_BAND = float(np.float32(1e-35))  # a float32 constant held in a double
_SINGLE = ("float32", "float16")
_SINGLE_BESIDE_SINGLE = ("bool", "boolean", "int8", "uint8", "int16", "uint16")  # NumPy promotes to float32


@dataclass(frozen=True)
class Casting:
    """What a library does to the types of rows before it compares them with thresholds.

    One rounding more or less than the library's own sends a row to another leaf.

    Attributes
    ----------
    name : str
    rounds_once : bool
        Whether integers up to 2^53 are rounded at most once, as after a cast to float64.
    by_column : bool
        Whether each column of a frame is cast on its own. Otherwise a frame is first cast to the type that all its
        columns share, if its library has one.
    integers_to_single, objects_to_single : bool
        Whether arrays of integers, or of objects, are cast to float32 first.
    lists_to_double, longdouble_to_double : bool
        Whether lists, or arrays of long doubles, are cast to float64 first.
    missing_to_double : tuple of str
        Data frame libraries whose integers are cast to float64 first where some are missing.
    largest_integer : int, optional
        Largest integer that everything inside the model rounds alike; None for no limit.
    reads_sparse : bool
        Whether the model takes sparse matrices, and everything inside it agrees on what they do not store.
    behind_steps : bool
        Whether some trees lie behind steps that were merged into their thresholds. Such steps compute in float64, and
        may ignore columns.
    """

    name: str
    rounds_once: bool = False
    by_column: bool = False
    integers_to_single: bool = False
    objects_to_single: bool = False
    lists_to_double: bool = False
    longdouble_to_double: bool = False
    missing_to_double: tuple[str, ...] = ()
    largest_integer: int | None = None
    reads_sparse: bool = True
    behind_steps: bool = False


PLAIN = Casting("plain")
MIXED = Casting("mixed", largest_integer=1 << 24, reads_sparse=False)  # several libraries read the same row
STEPS = Casting("steps", rounds_once=True, largest_integer=1 << 53, reads_sparse=False, behind_steps=True)
STEPS_MIXED = replace(STEPS, name="mixed steps", rounds_once=False, largest_integer=1 << 24)


@dataclass(frozen=True, eq=False)
class InputRules:
    """How a model reads rows: casts, names, labels, missing values.

    Attributes
    ----------
    n_features : int
    dtype : numpy.dtype
        float32 or float64: what rows are cast to.
    casting : Casting
    feature_names : tuple of str, optional
        Names that the columns of a data frame must have.
    missing_value : float
        A number that counts as missing beside NaN; NaN for none.
    zero_as_missing : tuple of int
        Features in which ``|x| <= 1e-35`` counts as missing.
    absent_is_missing : bool
        Whether a cell that a sparse matrix does not store is missing instead of 0.
    accepts_missing : bool
    missing_is_zero : bool
        Whether a missing value is read as 0.
    accepts_infinite : bool
        Whether the library takes numbers that are infinite as float32.
    finite_only : bool
        Whether a row has to be finite, and is made so.
    vocabularies : dict
        Feature to labels; the label at position c is category c of that feature.
    frame_labels : tuple of tuples
        Labels of the categorical columns of a frame, by the order of these columns, if the frame has as many.
    lost_labels : tuple of int
        Categorical features whose labels the model does not keep: they take codes alone.
    labels : LabelRule
        What a value of a column with a vocabulary is: a label or a code.
    negative_is_unknown : bool
        Whether a number between -1 and 0 is an unknown category instead of category 0.
    categorical, unused : tuple of int
        Features that the model tests for categories, and features that it does not test at all.
    numeric : tuple of int
        Features that were numbers in training, whether the model tests them or not, as far as it says so.
    """

    n_features: int
    dtype: np.dtype[Any]
    casting: Casting = PLAIN
    feature_names: tuple[str, ...] | None = None
    missing_value: float = float("nan")
    zero_as_missing: tuple[int, ...] = ()
    absent_is_missing: bool = False
    accepts_missing: bool = True
    missing_is_zero: bool = False
    accepts_infinite: bool = True
    finite_only: bool = False
    vocabularies: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    frame_labels: tuple[tuple[Any, ...], ...] = ()
    lost_labels: tuple[int, ...] = ()
    labels: LabelRule = PLAIN_LABELS
    negative_is_unknown: bool = False
    categorical: tuple[int, ...] = ()
    unused: tuple[int, ...] = ()
    numeric: tuple[int, ...] = ()

    def replace(self, **changes: Any) -> InputRules:
        """Return a copy with some attributes changed."""
        return replace(self, **changes)

    def encode(self, X: Any, name: str = "X") -> NDArray[Any]:
        """Return rows (n_rows, n_features) of ``dtype`` as the model compares them, missing values as NaN.

        Parameters
        ----------
        X : array, sparse matrix, or data frame of any library that narwhals reads
            Categories are labels where the model has a vocabulary for the column, otherwise codes.
        name : str
            What error messages call ``X``.
        """
        if not isinstance(X, np.ndarray):
            if is_sparse(X):
                X = self.densify(X, name)
            frame = as_frame(X, name)
            if frame is not None:
                self._check_doubles(list(frame.schema.values()), name)
                return self._checked(self._from_frame(frame, name), name)
        array = as_matrix(X, self.n_features, name)
        if array.dtype.kind in "biuf":
            self._check_doubles([array.dtype] * array.shape[1], name)
            self._check_integers(array, name)
            array = self._cast_array(array, hasattr(X, "dtype"))
            return self._checked(self._code_numbers(array, name), name)
        objects: NDArray[Any] = self._from_objects(array, name)
        return self._checked(objects.astype(np.float32) if self.casting.objects_to_single else objects, name)

    def of_streams(self) -> InputRules:
        """Return the rules for rows that cannot hold categories, see `LabelRule.of_streams`."""
        return replace(self, labels=self.labels.of_streams())

    def clean(self, X: NDArray[Any]) -> NDArray[Any]:
        """Cast numbers and codes (n_rows, n_features) to ``dtype``, with every missing value as NaN."""
        with np.errstate(over="ignore"):
            rows = np.asarray(X).astype(self.dtype, copy=False)
        if self.missing_value == self.missing_value:  # not NaN
            rows = np.where(rows == self.dtype.type(self.missing_value), self.dtype.type("nan"), rows)
        if self.zero_as_missing:
            zeros = self._mask(self.zero_as_missing) & (np.abs(rows) <= ZERO_BAND)
            rows = np.where(zeros, self.dtype.type("nan"), rows)
        if self.negative_is_unknown and self.categorical:
            rows = np.where(self._mask(self.categorical) & (rows < 0), np.floor(rows), rows)
        return rows

    def densify(self, X: Any, name: str = "X") -> Any:
        """Return a sparse matrix as a dense one, the way the model's library reads it; anything else as it is."""
        if not is_sparse(X):
            return X
        if not self.casting.reads_sparse:
            raise InputError(
                f"{name} is sparse, which the model does not take, or whose members may disagree on whether the "
                f"cells that it does not store are 0 or missing. Give a dense matrix, {name}.toarray()."
            )
        if self.absent_is_missing and X.dtype.kind in "iu":
            X = X.astype(self.dtype)  # integers have no NaN
        return densified(X, self.absent_is_missing)

    def refuses_single(self, X: Any, name: str = "X") -> bool:
        """Return whether `encode` refuses rows because steps before the trees would compute in float32."""
        if not self.casting.behind_steps or is_sparse(X):
            return False
        frame = None if isinstance(X, np.ndarray) else as_frame(X, name)
        if frame is not None:
            return self._in_single(list(frame.schema.values()))
        return self._in_single([as_matrix(X, self.n_features, name).dtype] * self.n_features)

    def category_codes(
        self, feature: int, column: ArrayLike, where: str = "the column"
    ) -> NDArray[np.float64]:
        """Return the codes (n_rows,) of one column of labels: NaN where missing, -1 where unknown.

        ``feature`` has a vocabulary. Labels are compared as they are, each distinct one once; see `LabelRule.codes`.
        """
        labels, rule, known = np.asarray(column), self.labels, self.vocabularies[feature]
        if labels.dtype.kind == "f" and rule.in_dtype:
            labels = labels.astype(self.dtype)
        if labels.dtype.kind == "b" and not rule.takes_bools:
            raise InputError(
                f"{where} has truth values, in which {rule.library} takes no labels; those of the model are "
                f"{truncated_list(known)}."
            )
        if labels.dtype.kind not in "biuf":
            return np.array(rule.codes(labels.tolist(), known, where), dtype=np.float64)
        distinct, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
        codes = rule.codes(distinct.tolist(), known, where, counts.tolist())
        return np.array(codes, dtype=np.float64)[place]

    def knows(self, feature: int, label: Any) -> bool:
        """Return whether a label is in the vocabulary of a feature."""
        return (hash_label(label) if self.labels.hashed else label) in self.vocabularies[feature]

    def as_trained(self, frame: Any) -> Any:
        """Return a pandas frame whose columns of labels are categories again: files have none, or have them at will."""
        pandas = import_module("pandas")
        made = {}
        for feature, name in enumerate(frame.columns):
            column, known = frame[name], self.vocabularies.get(feature)
            if known is None:
                is_categorical = hasattr(column, "cat") and feature in self.categorical
                made[name] = (
                    column if is_categorical else column.astype(np.float64)
                )  # null and True are numbers, too
            elif self.labels.hashed:
                made[name] = column.astype(object)
            else:
                unknown = [label for label in column.dropna().unique() if label not in known]
                made[name] = pandas.Categorical(column.astype(object), categories=[*known, *unknown])
        return pandas.DataFrame(made, index=frame.index)

    def to_json(self) -> dict[str, Any]:
        """Return what a file's header holds."""
        header: dict[str, Any] = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        header |= {"dtype": self.dtype.name, "casting": asdict(self.casting), "labels": asdict(self.labels)}
        header["missing_value"] = repr(self.missing_value)
        header["vocabularies"] = [[f, list(map(_plain, known))] for f, known in self.vocabularies.items()]
        return header

    @classmethod
    def from_json(cls, header: Mapping[str, Any]) -> InputRules:
        """Return the rules that a file's header holds; `FileFormatError` where it is damaged."""
        kinds: dict[str, Any] = {"n_features": int, "casting": Casting, "labels": LabelRule}
        kinds["feature_names"] = tuple[str, ...] | None
        kinds["frame_labels"] = tuple[tuple[Label, ...], ...]
        features = ("zero_as_missing", "lost_labels", "categorical", "unused", "numeric")
        kinds |= dict.fromkeys(features, tuple[int, ...])
        flags = ["absent_is_missing", "accepts_missing", "missing_is_zero", "accepts_infinite", "finite_only"]
        flags += ["negative_is_unknown"]
        values = {
            name: get_typed(header, name, kind) for name, kind in (kinds | dict.fromkeys(flags, bool)).items()
        }
        dtype = get_typed(header, "dtype", str)
        require(dtype in ("float32", "float64"), "dtype is not float32 or float64")
        entries = get_typed(header, "vocabularies", tuple[tuple[Any, ...], ...])
        require(all(len(entry) == 2 for entry in entries), "vocabularies are not pairs")
        rules = cls(
            **values,
            dtype=np.dtype(dtype),
            missing_value=float(get_typed(header, "missing_value", str)),
            vocabularies={
                from_json(int, f, "vocabularies"): from_json(tuple[Label, ...], known, "vocabularies")
                for f, known in entries
            },
        )
        known = rules.feature_names
        require(known is None or len(known) == rules.n_features, "it has not as many names as features")
        named = (*rules.vocabularies, *rules.lost_labels, *rules.zero_as_missing, *rules.categorical)
        inside = all(0 <= f < rules.n_features for f in (*named, *rules.unused))
        require(inside, "its input rules name a feature that does not exist")
        return rules

    def _mask(self, features: Sequence[int]) -> NDArray[np.bool_]:
        mask = np.zeros(self.n_features, dtype=bool)
        mask[list(features)] = True
        return mask

    def _read_columns(self) -> NDArray[np.bool_]:
        """(n_features,) columns whose content matters: all, but that steps may ignore some."""
        return ~self._mask(self.unused if self.casting.behind_steps else ())

    def _checked(self, matrix: NDArray[Any], name: str) -> NDArray[Any]:
        rows = self.clean(matrix)
        if self.finite_only:
            self._check_finite(rows, name)
            return np.nan_to_num(rows, nan=0.0) if self.missing_is_zero else rows
        if not self.accepts_infinite:
            with np.errstate(over="ignore"):
                infinite = np.isinf(rows.astype(np.float32, copy=False))
            if infinite.any():
                self._refuse_infinite(infinite & self._read_columns(), rows, name)
        if not self.accepts_missing:
            missing = np.isnan(rows) & self._read_columns()
            if missing.any():
                self._refuse_missing(missing, name)
        return rows

    def _check_finite(self, rows: NDArray[Any], name: str) -> None:
        wrong = ~np.isfinite(rows)
        if not wrong.any():
            return
        missing = np.isnan(rows)
        if missing.any() and not self.missing_is_zero:
            self._refuse_missing(missing, name)
        wrong &= ~missing
        self._refuse_infinite(wrong, rows, name)

    def _refuse_infinite(self, wrong: NDArray[np.bool_], rows: NDArray[Any], name: str) -> None:
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InputError(
                f"{name} has {rows[row, column]} in row {row}, column {self._name(column)}; give finite numbers "
                "that are not too large for the precision in which the model reads them."
            )

    def _name(self, column: int) -> str:
        """Return the name of a column for errors; its position if it has none."""
        return str(column) if self.feature_names is None else truncated_repr(self.feature_names[column])

    def _refuse_missing(self, missing: NDArray[np.bool_], name: str) -> None:
        row, column = np.argwhere(missing)[0]
        raise InputError(
            f"{name} has a missing value in row {row}, column {self._name(column)}, but the model does not accept "
            "missing values. Fill it in as in the model's training data."
        )

    def _code_numbers(self, array: NDArray[Any], name: str) -> NDArray[Any]:
        """Numbers of an array; where numbers are labels of a categorical feature, their codes."""
        if self.labels.in_arrays == CODES or not self.vocabularies:
            return array
        out = array.astype(self.dtype)
        for f in self.vocabularies:
            out[:, f] = self.category_codes(f, array[:, f], f"{name}, column {self._name(f)},")
        return out

    def _from_objects(self, array: NDArray[Any], name: str) -> NDArray[np.float64]:
        out = np.zeros(array.shape)
        for f in np.flatnonzero(self._read_columns()).tolist():
            if f in self.vocabularies and (
                self.labels.in_arrays != CODES or not self.labels.needs_categories
            ):
                out[:, f] = self.category_codes(f, array[:, f], f"{name}, column {self._name(f)},")
                continue
            try:
                out[:, f] = numbers_of(array[:, f], takes_na=False)
            except (TypeError, ValueError, OverflowError) as error:
                raise InputError(
                    f"{name} has dtype {truncated_text(array.dtype)}, and column {self._name(f)} has a value that is "
                    f"not a number ({error_text(error)}), but the model has no categories for it. Encode it as in the "
                    "model's training data."
                ) from None
        return out

    def _from_frame(self, frame: nw.DataFrame[Any], name: str) -> NDArray[Any]:
        """Return numbers and codes (n_rows, n_features) of a frame."""
        columns = [str(column) for column in frame.columns]
        check_names(columns, self.feature_names, self.n_features, name)
        plain = None if self.vocabularies else float_matrix(frame)
        if plain is not None:  # no cast in between could round: widening is exact, and narrowing comes last
            return plain
        in_order, is_read = self._labels_in_order(frame, name), self._read_columns()
        parts = [
            self._positions(frame[column], in_order[column], name)
            if column in in_order
            else self._column(frame, f, column, name, not in_order)
            if is_read[f]
            else np.zeros(len(frame))
            for f, column in enumerate(frame.columns)
        ]
        if not parts:
            return np.empty((len(frame), 0))
        if self.casting.by_column or _comes_apart(frame):
            with np.errstate(over="ignore"):
                parts = [part.astype(self.dtype, copy=False) for part in parts]
        return np.column_stack(parts)

    def _labels_in_order(self, frame: nw.DataFrame[Any], name: str) -> dict[str, tuple[Any, ...]]:
        """Labels by column, where a model knows them by the order of a frame's categorical columns."""
        if not self.frame_labels:
            return {}
        import narwhals as nw

        columns = [c for c, dtype in frame.schema.items() if isinstance(dtype, nw.Categorical | nw.Enum)]
        known = self.frame_labels
        if len(columns) > len(known):
            raise InputError(
                f"{name} has the categorical columns {truncated_list(columns)}, but in training {len(known)} were. "
                "Give numbers as numbers."
            )
        return dict(zip(columns, known, strict=True)) if len(columns) == len(known) else {}

    def _positions(self, series: Any, known: tuple[Any, ...], name: str) -> NDArray[np.float64]:
        """Return positions among labels, NaN for any other."""
        where = f"{name}, column {truncated_repr(series.name)},"
        codes = self._codes_of_categories(series, known, where)
        return np.where(codes == UNKNOWN, np.nan, codes)

    def _column(
        self, frame: nw.DataFrame[Any], f: int, column: str, name: str, may_be_labels: bool
    ) -> NDArray[Any]:
        """Return numbers and codes of a column; ``may_be_labels``: whether numbers can be labels."""
        import narwhals as nw

        series = frame[column]
        dtype = series.dtype
        if dtype.is_integer() and f not in self.vocabularies:
            self._check_integers(integers_of(series)[0], name)
        if isinstance(dtype, nw.Categorical | nw.Enum):
            return self._categorical(series, f, name)
        if f in self.vocabularies and may_be_labels:
            return self._labels(series, f, name)
        if dtype in (nw.Int64, nw.UInt64):  # float64 would round what lies beyond 2^53
            return self._integers(*integers_of(series), frame.implementation.name.lower())
        if dtype.is_numeric() or dtype == nw.Boolean:
            return series.cast(nw.Float64).to_numpy()
        try:
            if self.finite_only and dtype == nw.Object:
                return numbers_of(np.array(series.to_list(), dtype=object))
        except (TypeError, ValueError, OverflowError):
            pass
        wanted = (
            "numbers"
            if self.finite_only
            else "numbers, or a categorical type with the categories of training"
        )
        raise InputError(
            f"{name} has a column {truncated_repr(column)} of type {truncated_text(dtype)}, but the model has "
            "no categories for it. "
            f"Give {wanted}."
        )

    def _labels(self, series: Any, f: int, name: str) -> NDArray[np.float64]:
        """Return codes of a column that has a vocabulary, but is not categorical."""
        import narwhals as nw

        rule, known = self.labels, self.vocabularies[f]
        where = f"{name}, column {truncated_repr(series.name)},"
        is_pandas = series.implementation.is_pandas_like()
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            if is_pandas and rule.needs_categories:
                raise InputError(
                    f"{where} has the type {truncated_text(series.dtype)}, in which {rule.library} takes no labels. "
                    f"Make it categorical: {name}[{truncated_repr(series.name)}].astype('category')."
                )
            return np.array(rule.codes(series.to_list(), known, where), dtype=np.float64)
        way = rule.in_frames
        if way == EITHER:
            found = {entry for entry in series.unique().to_list() if not is_missing(entry)}
            codes, numeric = set(range(len(known))), not any(isinstance(label, str) for label in known)
            way = CODES if numeric and found <= codes and codes.isdisjoint(known) else LABELS
        if way == CODES:
            return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        if way == REFUSED or (
            series.dtype == nw.Boolean and not rule.takes_bools and not series.null_count()
        ):
            raise InputError(
                f"{where} has the type {truncated_text(series.dtype)}, in which {rule.library} takes no labels. It "
                f"knows {truncated_list(known)}. Make it categorical, with these labels, or give codes as an array."
            )
        numbers = np.asarray(series.to_numpy())
        if numbers.dtype.kind in "biuf" and not series.null_count():
            return self.category_codes(f, numbers, where)
        return np.array(rule.codes(series.to_list(), known, where), dtype=np.float64)

    def _categorical(self, series: Any, f: int, name: str) -> NDArray[np.float64]:
        """Return codes of labels by the model's vocabulary; without one, the positions of the categories."""
        if f in self.vocabularies:
            where = f"{name}, column {truncated_repr(series.name)},"
            return self._codes_of_categories(series, self.vocabularies[f], where)
        if f in self.lost_labels:
            raise InputError(
                f"{name} has a categorical column {truncated_repr(series.name)}, but the model does not tell "
                "which labels it "
                "was trained on. Give the codes of the training data, as numbers."
            )
        if f not in self.categorical and (f not in self.unused or f in self.numeric):
            raise InputError(
                f"{name} has a categorical column {truncated_repr(series.name)}, but the model treats this "
                "feature as a number."
            )
        native = series.to_native()
        if hasattr(native, "cat") and hasattr(native.cat, "codes"):  # pandas
            labels = native.cat.categories.tolist() if self.labels.is_typed else ()
            odd = [label for label in labels if self.labels.kind(label) not in ("text", "integer")]
            if odd:
                raise InputError(
                    f"{name}, column {truncated_repr(series.name)}, has the category {truncated_repr(odd[0])}, but "
                    f"{self.labels.library} takes text and integers for labels."
                )
            codes = np.array(native.cat.codes, dtype=np.float64)
        elif hasattr(series.dtype, "categories"):  # Enum
            positions = {label: float(c) for c, label in enumerate(series.dtype.categories)}
            codes = np.array([positions.get(label, -1.0) for label in series.to_list()])
        else:  # dictionaries of Arrow, too, may differ from batch to batch
            raise InputError(
                f"{name} has a column {truncated_repr(series.name)} of type {truncated_text(series.dtype)}, "
                "whose categories have "
                "no fixed order, and the model keeps no labels. Give the codes of the training data, or an Enum."
            )
        return np.where(codes < 0, np.nan, codes)

    def _codes_of_categories(self, series: Any, known: tuple[Any, ...], where: str) -> NDArray[np.float64]:
        """Return codes of a categorical column by the labels that are known."""
        rule, native = self.labels, series.to_native()
        if not (hasattr(native, "cat") and hasattr(native.cat, "codes")):
            return np.array(rule.codes(series.to_list(), known, where), dtype=np.float64)
        labels, given = [*native.cat.categories.tolist(), None], np.asarray(native.cat.codes)
        positions: NDArray[np.intp] = np.where(given < 0, len(labels) - 1, given)
        counts = np.bincount(positions, minlength=len(labels))
        # XGBoost compares all categories of a column, also those that no row has.
        used = np.flatnonzero((counts > 0) | rule.refuses_unknown)
        used = used[(used < len(labels) - 1) | (counts[used] > 0)]
        table: NDArray[np.float64] = np.full(len(labels), np.nan)
        table[used] = rule.codes([labels[k] for k in used], known, where, counts[used].tolist())
        return table[positions]

    def _integers(
        self, integers: NDArray[Any], missing: NDArray[np.bool_], frame_library: str
    ) -> NDArray[Any]:
        """Return a column of integers as it is, or as floats with NaN where some are missing (0 in ``integers``)."""
        if not missing.any():
            return integers
        through_double = frame_library in self.casting.missing_to_double
        numbers = integers.astype(np.float64 if through_double else self.dtype)
        numbers[missing] = np.nan
        return numbers

    def _cast_array(self, array: NDArray[Any], was_array: bool) -> NDArray[Any]:
        """Return an array of numbers after what the library does to its type; lists have no type of their own."""
        casting = self.casting
        if casting.integers_to_single and array.dtype not in (np.float32, np.float64):
            return array.astype(np.float32)
        from_lists = casting.lists_to_double and not was_array
        if from_lists or (casting.longdouble_to_double and array.dtype == np.longdouble):
            return array.astype(np.float64)
        return array

    def _check_integers(self, values: NDArray[Any], name: str) -> None:
        """Raise where what reads the same row rounds its integers in different ways."""
        limit = self.casting.largest_integer
        if limit is None or values.dtype.kind not in "iu":
            return
        if values.ndim == 2:
            values = values[:, self._read_columns()]
        largest = max(int(values.max()), -int(values.min())) if values.size else 0
        if largest > limit:
            raise InputError(
                f"{name} has the integer {largest}, which parts of the model may round in different ways. Give float64."
            )

    def _check_doubles(self, types: Sequence[Any], name: str) -> None:
        if self._in_single(types):
            raise InputError(
                f"{name} has float32 numbers, which the steps before the trees of the model would round in their own "
                "way. Give float64."
            )

    def _in_single(self, types: Sequence[Any]) -> bool:
        """Whether steps before the trees would compute with columns of these types in single precision."""
        if not self.casting.behind_steps:
            return False
        names = [str(dtype).lower() for dtype in types]
        tested = {name for name, is_read in zip(names, self._read_columns(), strict=False) if is_read}
        if not tested.isdisjoint(_SINGLE):
            return True
        return not set(names).isdisjoint(_SINGLE) and not tested.isdisjoint(_SINGLE_BESIDE_SINGLE)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _comes_apart(frame: nw.DataFrame[Any]) -> bool:
    """Whether a frame has no common type to cast to: pyarrow's, and pandas' with Booleans or nullable types."""
    if frame.implementation.is_pyarrow():
        return True
    if not frame.implementation.is_pandas():
        return False
    return any(not isinstance(dtype, np.dtype) or dtype.kind == "b" for dtype in frame.to_native().dtypes)
