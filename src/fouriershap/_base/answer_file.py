"""A store in a Parquet file, with a journal beside it for what came since the file was written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.asking import parquet
from fouriershap._base.asking.answers import Answers, Part, Row
from fouriershap._base.asking.journal import Batch, Header, Journal
from fouriershap._base.asking.store import Given, Store
from fouriershap._base.checks import need
from fouriershap._base.errors import FourierShapError, FourierShapWarning, InputError
from fouriershap._base.short import reason, short, short_text
from fouriershap._base.warn import warn


class FileStore(Store):
    """Answers in a Parquet file, about rows with these columns.

    In a `session` every batch is appended to a journal at once. However the session ends, the journal is folded into
    the file, which replaces the old one as a whole. What a process that was killed left in the journal, the next
    session folds in.
    """

    def __init__(self, path: str | os.PathLike[str], names: Sequence[str]) -> None:
        super().__init__({}, names)
        self.where = os.fspath(path)
        self._path = _check_path(self.where)
        need("pyarrow.parquet", "answers= with a path", "pyarrow", "A dict needs nothing more.")
        own = next((name for name in names if name == "answer" or name.startswith("answer_")), None)
        if own is not None:
            raise InputError(
                f"answers: the data have a column {short(own)}, a name that the file needs for itself. Rename the "
                "column, or give answers= a dict."
            )
        self._random_state: int | None = None
        self._stamp: tuple[int, ...] = ()
        self._journal: Journal | None = None
        self._is_started = False

    @property
    def to_give_back(self) -> str:
        return self.where

    def rescued(self, asked: Iterable[Part]) -> Answers:
        return Answers(self.answers, random_state=self._random_state)

    def check_labels(self, labels: Mapping[str, Sequence[Any]]) -> None:
        for name, levels in labels.items():
            fault = parquet.column_fault(levels)
            if fault is not None:
                raise InputError(
                    f"answers: the column {short(name)} has {fault} among its labels, which a column of a Parquet file "
                    "cannot hold. Make all of them text, or give answers= a dict."
                )

    @contextmanager
    def session(self) -> Iterator[None]:
        mode = self._path.stat().st_mode & 0o777 if self._path.exists() else 0o666
        journal = Journal(self._path.with_name(f"{self._path.name}.journal"), mode)
        try:
            self._fold(journal)
            self._load()
            self._journal, self._is_started = journal, False
            yield
        finally:
            is_open, self._journal = self._journal is not None, None
            try:
                if is_open:
                    self._fold_at_last(journal)
            finally:
                journal.close()

    def add(self, rows: list[Row], answers: NDArray[Any]) -> None:
        super().add(rows, answers)
        assert self._journal is not None
        if not self._is_started:
            self._journal.start(self.names, self._random_state)
            self._is_started = True
        self._journal.append(rows, answers)

    def _known_random_state(self) -> int:
        if self._random_state is None:
            return int(np.random.default_rng().integers(2**31))
        return self._random_state

    def _keep_random_state(self, random_state: int) -> None:
        self._random_state = random_state

    def _fold(self, journal: Journal) -> None:
        """Bring what the journal holds into the file, and empty it."""
        header, batches = journal.read()
        if header is None:
            return
        contents = parquet.read(self._path, self.names)
        if batches and header.name != contents.folded:  # else the process died between writing and emptying
            contents = contents._replace(random_state=header.random_state, folded=header.name)
            batches = [
                Batch(self._in_order(header, batch.rows, journal.path), batch.answers) for batch in batches
            ]
            parquet.write(self._path, contents, self.names, batches)
        journal.clear()

    def _fold_at_last(self, journal: Journal) -> None:
        try:
            self._fold(journal)
            self._stamp = _stamp(self._path)
        except (FourierShapError, OSError, MemoryError) as error:
            warn(
                f"{reason(error)} The answers are safe in {journal.path}: the next call folds them in.",
                FourierShapWarning,
            )

    def _in_order(self, header: Header, rows: list[Row], path: Path) -> list[Row]:
        if sorted(header.columns) != sorted(self.names):
            other = next((name for name in header.columns if name not in self.names), header.columns[0])
            raise InputError(
                f"answers: {short_text(path)} is about other data, with a column {short(other)}. Give another path."
            )
        order = [header.columns.index(name) for name in self.names]
        return [tuple(row[j] for j in order) for row in rows]

    def _load(self) -> None:
        """Read the file, if it is not the one that is known already."""
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        contents = parquet.read(self._path, self.names)
        self.answers = {}
        if contents.table is not None:
            rows, answers = parquet.rows_and_answers(contents.table, len(self.names))
            for row, answer in zip(rows, answers, strict=True):
                self.answers.setdefault(row, []).append(answer)
        self._random_state, self._stamp = contents.random_state, stamp


def _check_path(given: str) -> Path:
    path = Path(given).resolve()  # a link stays one: what it points to is replaced
    if path.suffix != ".parquet":
        raise InputError(f"answers is the path {short(given)}; give one that ends in .parquet, or a dict.")
    if path.is_dir():
        raise InputError(f"answers is the path {short(given)}, a folder; give that of a file.")
    if not path.parent.is_dir():
        raise InputError(
            f"answers is the path {short(given)}, in a folder that does not exist: make it first."
        )
    return path


def _stamp(path: Path) -> tuple[int, ...]:
    if not path.exists():
        return (0,)
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def make_store(answers: Given, names: Sequence[str]) -> Store | None:
    """The store that the argument ``answers`` stands for."""
    if answers is None:
        return None
    if isinstance(answers, str | os.PathLike):
        return FileStore(answers, names)
    if isinstance(answers, MutableMapping):
        return Store(answers, names)
    raise InputError(
        f"answers is a {type(answers).__name__}; give a path that ends in .parquet, or a dict of rows to answers."
    )
