"""Answers in a SQLite file: every batch is a transaction, so a process that is killed loses at most its last batch."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.answers import AnsweredRows, Answers, AnswersOption, AnswerStore, Row, as_tuples
from fouriershap._base.errors import DiskFullError, FileFormatError, InputError
from fouriershap._base.messages import error_text, truncated_repr, truncated_text

VERSION = 1
_APPLICATION = 0x66736861  # SQLite's application_id of our files: "fsha"
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE answers (id INTEGER PRIMARY KEY, "row" TEXT NOT NULL, answer TEXT NOT NULL, dtype TEXT NOT NULL);
"""


class AnswerFile(AnswerStore):
    """Answers in a SQLite file, about rows with these columns.

    The table ``answers`` holds a row and its answer as JSON lists; ``about`` holds the names of the columns and the
    random state. The file is locked during a `session`.
    """

    def __init__(self, path: str | os.PathLike[str], names: Sequence[str]) -> None:
        super().__init__({}, names)
        self.where = os.fspath(path)
        self._path = Path(self.where).resolve()
        if self._path.is_dir() or not self._path.parent.is_dir():
            wrong = "is a folder" if self._path.is_dir() else "is in a folder that does not exist"
            raise InputError(
                f"answers is the path {truncated_repr(self.where)}, which {wrong}; give the path of a file."
            )
        self._random_state: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._columns = self.names  # in the order of the file
        self._file_id, self._last_id = "", 0  # what of which file is known already

    @property
    def to_give_back(self) -> str:
        return self.where

    def rescued(self, asked: Iterable[AnsweredRows]) -> Answers:
        return Answers(self.answers, random_state=self._random_state)

    def check_labels(self, labels: Mapping[str, Sequence[Any]]) -> None:
        for name, levels in labels.items():
            foreign = next((v for v in levels if not isinstance(v, str | int | float | None)), None)
            if foreign is not None:
                raise InputError(
                    f"answers: the column {truncated_repr(name)} has a {type(foreign).__name__} among its "
                    "labels, which a file "
                    "cannot hold. Make all labels text, or give answers= a dict."
                )

    @contextmanager
    def session(self) -> Iterator[None]:
        with self._translated_errors():
            connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with self._translated_errors():
                # A write-ahead log: a commit outlasts the process without waiting for the disk.
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._check_format(connection)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                self._open_tables(connection)
                self._load(connection)
            self._connection = connection
            yield
        finally:
            self._connection = None
            connection.close()

    def add(self, rows: list[Row], answers: NDArray[Any]) -> None:
        super().add(rows, answers)
        assert self._connection is not None
        order = [self.names.index(name) for name in self._columns]
        dtype = answers.dtype.str
        lines = [
            (json.dumps([row[j] for j in order]), json.dumps(answer), dtype)
            for row, answer in zip(rows, answers.tolist(), strict=True)
        ]
        with self._translated_errors():
            self._connection.execute("BEGIN")
            try:
                state = json.dumps(self._random_state)
                self._connection.execute("INSERT OR REPLACE INTO about VALUES ('random_state', ?)", (state,))
                self._connection.executemany(
                    'INSERT INTO answers ("row", answer, dtype) VALUES (?, ?, ?)', lines
                )
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._last_id += len(lines)

    def _known_random_state(self) -> int:
        if self._random_state is None:
            return int(np.random.default_rng().integers(2**31))
        return self._random_state

    def _keep_random_state(self, random_state: int) -> None:
        self._random_state = random_state

    def _check_format(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != _APPLICATION and n_tables:
            raise FileFormatError(
                f"{truncated_text(self._path)} is a SQLite file of something else. Give answers= another path."
            )
        if version > VERSION:
            raise FileFormatError(
                f"{truncated_text(self._path)} has version {version}; this fouriershap reads up to version {VERSION}. "
                "Upgrade with `pip install --upgrade fouriershap`."
            )

    def _open_tables(self, connection: sqlite3.Connection) -> None:
        """Lock the file, make its tables if it is new, and check that it is about these columns."""
        connection.execute("BEGIN IMMEDIATE")
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _TABLES.strip().splitlines():
                connection.execute(statement)
            about = {"columns": json.dumps(self.names), "file": secrets.token_hex(8), "random_state": "null"}
            connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")

    def _load(self, connection: sqlite3.Connection) -> None:
        """Read what the file holds beyond what is known already."""
        about = dict(connection.execute("SELECT name, value FROM about"))
        try:
            self._columns = tuple(json.loads(about["columns"]))
            state = json.loads(about["random_state"])
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(error) from error
        if sorted(self._columns) != sorted(self.names):
            other = next((name for name in self._columns if name not in self.names), self._columns[:1])
            raise InputError(
                f"answers: {truncated_text(self._path)} is about other data, with a column "
                f"{truncated_repr(other)}. Give "
                "another path."
            )
        if about["file"] != self._file_id:
            self.answers, self._last_id, self._file_id = {}, 0, about["file"]
        order = [self._columns.index(name) for name in self.names]
        found = connection.execute(
            'SELECT id, "row", answer, dtype FROM answers WHERE id > ? ORDER BY id', (self._last_id,)
        )
        for number, row, answer, dtype in found:
            try:
                values = json.loads(row)
                numbers = np.array(json.loads(answer), dtype=np.dtype(dtype))
                if numbers.ndim != 1 or numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all():
                    raise ValueError(f"an answer is {truncated_repr(answer)}")
                key = tuple(values[j] for j in order)
                self.answers.setdefault(key, []).append(as_tuples(numbers[None])[0])
            except (LookupError, RecursionError, TypeError, ValueError) as error:
                raise self._damaged(error) from error
            self._last_id = number
        self._random_state = state if isinstance(state, int) else None

    def _damaged(self, error: BaseException) -> FileFormatError:
        return FileFormatError(
            f"{truncated_text(self._path)} is not a SQLite file of answers, or damaged "
            f"({truncated_text(error)}): move it "
            "away, or give answers= another path."
        )

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise errors of SQLite as ours."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise InputError(
                    f"{truncated_text(self._path)} is in use by another explainer or process: wait until it has ended."
                ) from None
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise DiskFullError(
                    f"{truncated_text(self._path)} cannot be written: the disk is full ({error_text(error)}). "
                    "The answers "
                    "before are safe in it. Free some space and try again, or write elsewhere."
                ) from error
            if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
                raise self._damaged(error) from error
            raise InputError(
                f"answers: {truncated_text(self._path)} cannot be used: {error_text(error)}."
            ) from error


def open_store(answers: AnswersOption, names: Sequence[str]) -> AnswerStore | None:
    """Return the store that the argument ``answers`` asks for."""
    if answers is None:
        return None
    if isinstance(answers, str | os.PathLike):
        return AnswerFile(answers, names)
    if isinstance(answers, MutableMapping):
        return AnswerStore(answers, names)
    raise InputError(
        f"answers is a {type(answers).__name__}; give the path of a SQLite file, or a dict of rows to answers."
    )
