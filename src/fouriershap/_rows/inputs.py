"""`InputAdapter`: from the caller's rows to what an engine takes, and what people see of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.bits import check_bits
from fouriershap._base.checks import are_numbered_names
from fouriershap._base.errors import InputError, ModelWarning
from fouriershap._base.headers import get_typed, require
from fouriershap._base.warn import warn
from fouriershap._rows.frames import Rows, check_columns, densified, in_order
from fouriershap._rows.labels import CODES
from fouriershap._rows.levels import LABEL, NUMBER, Encoding, Feature, make_encoding
from fouriershap._rows.pool import Pool
from fouriershap._rows.preprocessing import InputColumn, Preprocessing, UnknownStepError
from fouriershap._rows.recipes import Recipe
from fouriershap._rows.rules import InputRules
from fouriershap._rows.tables import from_records

Floats = NDArray[np.float64]

LOST_PIPELINE = (
    "This explainer was saved from a Pipeline whose transformers are not in the file: give it transformed rows, "
    "`pipeline[:-1].transform(X)`."
)


@dataclass(frozen=True, eq=False)
class InputField:
    """One input of the model that a person can read and change: a number, or a choice among labels."""

    name: str
    player: int
    values: Floats  # (n_rows,) numbers, or positions among the labels; NaN where missing
    missing: bool  # whether the value may be missing
    labels: tuple[str, ...] | None = None
    numbers: tuple[float, ...] = ()  # the number by which the engine knows each label


class RowCheck(Protocol):
    """Compares rows with the live model, if their form is new; see `ModelCheck`."""

    answered: bool

    def __call__(self, X: Any, rows: NDArray[Any], name: str, is_stream: bool = False) -> None:
        """Raise if the model refuses these rows, or answers them in another way."""


class Encoder(Protocol):
    """The columns that enter a model as numbers and codes."""

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names that the columns of frames must have; None if any will do."""

    def densify(self, X: Any, name: str) -> Any:
        """Return a sparse matrix as an array; anything else as it is."""

    def encode(self, X: Any, name: str, is_stream: bool = False) -> NDArray[Any]:
        """Return the rows that an engine takes."""

    def labels(self) -> Mapping[int, tuple[Any, ...]]:
        """Return the labels that are known, by column."""

    def label_codes(self) -> tuple[bool, ...]:
        """Return which columns of codes hold labels."""

    def code_players(self, player: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the player of each column of codes, from that of each column."""

    def fields(self, X: Any, codes: NDArray[Any], player: NDArray[np.int32]) -> list[InputField]:
        """Return the inputs of rows ``X`` with these codes as a person reads and changes them."""


@dataclass(frozen=True, eq=False)
class RulesEncoder:
    """Columns as a library reads them: trees and sums of products."""

    rules: InputRules
    names: tuple[str, ...]

    @property
    def column_names(self) -> tuple[str, ...] | None:
        return self.rules.feature_names or (None if are_numbered_names(self.names) else self.names)

    def densify(self, X: Any, name: str) -> Any:
        return self.rules.densify(X, name)

    def encode(self, X: Any, name: str, is_stream: bool = False) -> NDArray[Any]:
        if is_stream and self.rules.vocabularies:
            return self.rules.of_streams().encode(X, name)
        return self.rules.encode(X, name)

    def labels(self) -> Mapping[int, tuple[Any, ...]]:
        return self.rules.vocabularies

    def label_codes(self) -> tuple[bool, ...]:
        choices = {*self.rules.categorical, *self.rules.vocabularies}
        return tuple(f in choices for f in range(len(self.names)))

    def code_players(self, player: NDArray[np.int32]) -> NDArray[np.int32]:
        return player

    def fields(self, X: Any, codes: NDArray[Any], player: NDArray[np.int32]) -> list[InputField]:
        rules, pool = self.rules, Pool(X, "X")
        names = pool.names if pool.is_frame else self.names  # the caller's own, if there are some
        choices = self.label_codes()
        may_be_missing = rules.accepts_missing and not rules.finite_only
        fields = []
        for f, name in enumerate(names):
            owner = int(player[f])
            if choices[f]:
                labels, numbers, positions = _label_choices(pool.labels(f), codes[:, f], rules, f)
                fields.append(InputField(name, owner, positions, may_be_missing, labels, numbers))
                continue
            given = None if rules.finite_only else pool.numbers(f)  # in the caller's own precision
            values = codes[:, f].astype(np.float64) if given is None else given
            values = np.where(np.isnan(codes[:, f]), np.nan, values)  # some numbers count as missing
            fields.append(InputField(name, owner, values, may_be_missing))
        return fields


@dataclass(frozen=True, eq=False)
class LevelEncoder:
    """Columns of a black box: numbers, and levels of labels and one-hot groups."""

    encoding: Encoding
    names: tuple[str, ...]
    choices: Sequence[Any] | None = None  # each player's levels, if a spectrum stands for the model

    @property
    def column_names(self) -> tuple[str, ...] | None:
        return None if are_numbered_names(self.names) else self.names

    def densify(self, X: Any, name: str) -> Any:
        return densified(X)

    def encode(self, X: Any, name: str, is_stream: bool = False) -> NDArray[Any]:
        pool = Pool(X, name)
        pool.check_names(self.names, name)
        return self.encoding.encode(pool, name)

    def labels(self) -> Mapping[int, tuple[Any, ...]]:
        return {c: f.levels for f in self.encoding.features if f.kind == LABEL for c in f.columns}

    def label_codes(self) -> tuple[bool, ...]:
        return tuple(feature.kind != NUMBER for feature in self.encoding.features)

    def code_players(self, player: NDArray[np.int32]) -> NDArray[np.int32]:
        return self.encoding.player

    def fields(self, X: Any, codes: NDArray[Any], player: NDArray[np.int32]) -> list[InputField]:
        fields, features = [], self.encoding.features
        if self.choices is not None:  # each player is a choice among the levels that were queried
            for p, levels in enumerate(self.choices):
                mine = [features[f] for f in levels.features]
                labels = tuple(_combination(mine, level, self.names) for level in levels.levels)
                values = levels.find(codes, "X").astype(np.float64)
                numbers = tuple(float(k) for k in range(len(labels)))
                fields.append(InputField(levels.name, p, values, False, labels, numbers))
            return fields
        for f, feature in enumerate(features):
            texts = None
            if feature.kind != NUMBER:
                texts = tuple(feature.text(c, self.names) for c in range(len(feature.levels)))
            numbers = tuple(float(c) for c in range(len(feature.levels)))
            missing = bool(np.isnan(codes[:, f]).any())
            fields.append(InputField(feature.name, feature.player, codes[:, f], missing, texts, numbers))
        return fields


@dataclass(frozen=True, eq=False)
class PoolEncoder:
    """Columns of a model that is asked about rows as they are; ``background`` has the same."""

    background: Pool

    @property
    def column_names(self) -> tuple[str, ...] | None:
        names = self.background.names
        return None if are_numbered_names(names) else names

    def densify(self, X: Any, name: str) -> Any:
        return densified(X)

    def encode(self, X: Any, name: str, is_stream: bool = False) -> Any:
        """Return the rows as a pool."""
        return self.background.like(X, name)

    def labels(self) -> Mapping[int, tuple[Any, ...]]:
        return {}

    def label_codes(self) -> tuple[bool, ...]:
        return tuple(self.background.numbers(j) is None for j in range(len(self.background.names)))

    def code_players(self, player: NDArray[np.int32]) -> NDArray[np.int32]:
        return player

    def fields(self, X: Any, codes: Any, player: NDArray[np.int32]) -> list[InputField]:
        encoding = make_encoding(codes, np.arange(len(player), dtype=np.int32), codes.names, None)
        found = LevelEncoder(encoding, codes.names).fields(X, encoding.encode(codes, "X"), player)
        return [replace(entry, player=int(player[entry.player])) for entry in found]


@dataclass(frozen=True, eq=False)
class BitEncoder:
    """Columns of 0 and 1, for a spectrum."""

    names: tuple[str, ...]

    @property
    def column_names(self) -> tuple[str, ...] | None:
        return None if are_numbered_names(self.names) else self.names

    def densify(self, X: Any, name: str) -> Any:
        return densified(X)

    def encode(self, X: Any, name: str, is_stream: bool = False) -> NDArray[Any]:
        check_columns(X, self.names, name)
        return check_bits(X, len(self.names), name=name)

    def labels(self) -> Mapping[int, tuple[Any, ...]]:
        return {}

    def label_codes(self) -> tuple[bool, ...]:
        return (True,) * len(self.names)

    def code_players(self, player: NDArray[np.int32]) -> NDArray[np.int32]:
        return player

    def fields(self, X: Any, codes: NDArray[Any], player: NDArray[np.int32]) -> list[InputField]:
        bits = codes.T.astype(np.float64)
        return [
            InputField(name, int(player[j]), bits[j], False, ("0", "1"), (0.0, 1.0))
            for j, name in enumerate(self.names)
        ]


def _unchanged(X: Any, name: str) -> Any:
    return X


@dataclass(frozen=True, eq=False)
class InputAdapter:
    """Names, Pipeline steps, labels and players: everything between the caller's rows and an engine.

    Attributes
    ----------
    encoder : Encoder
    feature_names : tuple of str
        Columns that enter the model.
    player : (n_features,) int32
        The player of each of them.
    player_names : tuple of str
    preprocessing : Preprocessing, optional
        Steps of a Pipeline before the model.
    input_columns : tuple of InputColumn, optional
        The Pipeline's own input columns, if players are made of them.
    sample : rows, optional
        Rows on which the steps of a live Pipeline are tried out before they are saved.
    is_missing_pipeline : bool
        Whether a file held the model of a Pipeline without the steps before it.
    unpack : callable
        Turns data containers of libraries into arrays or frames.
    check : RowCheck, optional
        Compares rows in new forms with the live model.
    """

    encoder: Encoder
    feature_names: tuple[str, ...]
    player: NDArray[np.int32]
    player_names: tuple[str, ...]
    preprocessing: Preprocessing | None = None
    input_columns: tuple[InputColumn, ...] | None = None
    sample: Any = None
    is_missing_pipeline: bool = False
    unpack: Callable[[Any, str], Any] = _unchanged
    check: RowCheck | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the live model behind, as a file does."""
        return vars(self) | {"check": None}

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """Names by which the columns of a frame are found; None if they have positions only."""
        if self.preprocessing is not None:
            return self.preprocessing.known_names()
        return self.encoder.column_names

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        """Labels that the model knows, by the name of the column."""
        if self.preprocessing is not None:
            return self.preprocessing.known_labels()
        names = self.input_names
        return {} if names is None else {names[c]: known for c, known in self.encoder.labels().items()}

    @property
    def code_players(self) -> NDArray[np.int32]:
        """(n_codes,) the player of each column of codes."""
        return self.encoder.code_players(self.player)

    def encode(self, X: Any, name: str = "X", is_stream: bool = False) -> Rows:
        """Read rows once: through the Pipeline, if there is one, and as the engine takes them.

        ``is_stream``: whether they come from where there are no categories, so that labels may be plain text.
        """
        names = self.input_names if self.preprocessing is not None else self.input_names or self.feature_names
        X, are_records = from_records(self.unpack(X, name), self.input_names, name)
        X, is_stream = in_order(X, names), is_stream or are_records
        entered = X if self.preprocessing is None else self.preprocessing.transform(X, name)
        entered = self.encoder.densify(entered, name)
        try:
            codes = self.encoder.encode(entered, name, is_stream)
        except InputError as error:
            if not self.is_missing_pipeline:
                raise
            raise InputError(f"{error} {LOST_PIPELINE}") from error
        if self.check is not None:
            self.check(entered, codes, name, is_stream)
        if self.input_columns is None:
            return Rows(codes, entered, self.player, self.feature_names)
        columns, owner = zip(*self.input_columns, strict=True)
        return Rows(codes, densified(X), np.array(owner, dtype=np.int32), columns, entered)

    def fields(self, rows: Rows) -> list[InputField]:
        """Return the inputs of rows as a person reads and changes them."""
        entered = rows.shown if rows.entered is None else rows.entered
        return self.encoder.fields(entered, rows.codes, self.player)

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return named arrays and a header for a file; warn if it cannot keep the steps of a Pipeline."""
        header: dict[str, Any] = {
            "feature_names": self.feature_names,
            "player_names": self.player_names,
            "has_pipeline": self.preprocessing is not None or self.is_missing_pipeline,
        }
        absent_is_missing = False
        if isinstance(self.encoder, RulesEncoder):
            header["rules"] = self.encoder.rules.to_json()
            absent_is_missing = self.encoder.rules.absent_is_missing
        if self.preprocessing is not None:
            try:
                recipe = self.preprocessing.to_recipe(self.sample, absent_is_missing)
                header |= {"steps": recipe.to_json(), "input_columns": self.input_columns}
            except UnknownStepError as error:
                warn(
                    f"the file does not hold the steps of the Pipeline: {error}. Give what is loaded from it "
                    "transformed rows, `pipeline[:-1].transform(X)`.",
                    ModelWarning,
                )
        return {"input_player": self.player}, header

    @classmethod
    def from_contents(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        header: Mapping[str, Any],
        encoder: Encoder | None = None,
        unpack: Callable[[Any, str], Any] = _unchanged,
    ) -> InputAdapter:
        """Build what `to_contents` describes; ``encoder`` is that of the model if files keep it elsewhere."""
        names, players = (
            get_typed(header, key, tuple[str, ...]) for key in ("feature_names", "player_names")
        )
        player = np.asarray(arrays["input_player"])
        require(player.shape == (len(names),) and player.dtype == np.int32, "a feature has no player")
        require(((player >= 0) & (player < len(players))).all(), "a player has no name")
        if encoder is None:
            rules = InputRules.from_json(get_typed(header, "rules", Any))
            require(rules.n_features == len(names), "a feature has no name")
            encoder = RulesEncoder(rules, names)
        recipe, columns = None, None
        if "steps" in header:
            recipe = Recipe.from_json(header["steps"], len(names))
            columns = get_typed(header, "input_columns", tuple[InputColumn, ...] | None)
            if columns is not None:
                require(len(columns) == recipe.n_columns, "its input columns differ from those of its steps")
                owners = {column.player for column in columns} - {-1}
                require(
                    owners == {*range(len(players))}, "its players differ from those of its input columns"
                )
        lost = get_typed(header, "has_pipeline", bool) and recipe is None
        if lost:
            warn(LOST_PIPELINE, ModelWarning)
        return cls(encoder, names, player, players, recipe, columns, None, lost, unpack)


def _label_choices(
    found: list[Any], codes: NDArray[Any], rules: InputRules, f: int
) -> tuple[tuple[str, ...], tuple[float, ...], Floats]:
    """Return labels of a categorical feature, their codes, and the position of each row's among them.

    The labels that the model knows come first, then what else the rows hold.
    """
    vocabulary = () if rules.labels.hashed else rules.vocabularies.get(f, ())
    choices = {(str(label), float(c)): c for c, label in enumerate(vocabulary)}
    positions = np.full(len(codes), np.nan)
    for r, (label, code) in enumerate(zip(found, codes.tolist(), strict=True)):
        if code != code:
            continue
        if rules.labels.in_arrays == CODES and isinstance(label, int | float):
            whole = int(code)
            label = vocabulary[whole] if 0 <= whole < len(vocabulary) else whole
        positions[r] = choices.setdefault((str(label), code), len(choices))
    texts, numbers = zip(*choices, strict=True) if choices else ((), ())
    return texts, numbers, positions


def _combination(features: list[Feature], level: Floats, names: tuple[str, ...]) -> str:
    texts = [feature.text(code, names) for feature, code in zip(features, level, strict=True)]
    if len(texts) == 1:
        return texts[0]
    return ", ".join(f"{feature.name} = {text}" for feature, text in zip(features, texts, strict=True))
