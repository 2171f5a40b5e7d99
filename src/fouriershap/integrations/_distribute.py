"""How the workers of a cluster get an explainer: as the path of its file, or as an object."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fouriershap import Explainer, FileFormatError, InputError, OutputColumn, load
from fouriershap._base.checks import import_optional
from fouriershap._base.messages import truncated_text

_MOST_OPEN = 8  # explainers per worker process
_lock = threading.Lock()  # so that one thread of a worker opens a file
_opened: dict[SavedExplainer, Explainer] = {}  # the oldest first


@dataclass(frozen=True)
class SavedExplainer:
    """A .fshap file that every worker can read."""

    path: str  # absolute
    # A worker that finds another checksum fails, since all rows of a job need the same explainer.
    checksum: str


@dataclass(frozen=True)
class Job:
    """What each worker gets: the explainer, or where to find it, and how to explain batches."""

    source: Explainer | SavedExplainer
    ids: tuple[str, ...]
    layout: str
    top_k: int
    n_jobs: int

    def explain(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Explain batches; see `Explainer.explain_batches`."""
        return self.explainer.explain_batches(
            batches, ids=self.ids, layout=self.layout, top_k=self.top_k, n_jobs=self.n_jobs
        )

    @property
    def explainer(self) -> Explainer:
        if isinstance(self.source, Explainer):
            return self.source
        with _lock:
            if self.source not in _opened:
                explainer = load_explainer(self.source.path)
                if explainer.checksum != self.source.checksum:
                    raise FileFormatError(
                        f"{truncated_text(self.source.path)} has changed since the job was made: give every "
                        "version of an "
                        "explainer its own path."
                    )
                _keep(self.source, explainer)
            return _opened[self.source]

    @property
    def schema(self) -> tuple[OutputColumn, ...]:
        """The columns of the result that follow the ids."""
        return self.explainer.output_schema(ids=self.ids, layout=self.layout, top_k=self.top_k)


def make_job(
    explainer: Explainer | str | os.PathLike[str],
    ids: Sequence[str] | None,
    layout: str,
    top_k: int,
    n_jobs: int,
) -> Job:
    """Check the arguments, and return what workers need."""
    source: Explainer | SavedExplainer
    if isinstance(explainer, Explainer):
        # What a file would keep: tables, but not the model; the background only if it is needed.
        with tempfile.TemporaryDirectory(prefix="fouriershap-", ignore_cleanup_errors=True) as folder:
            source = opened = save_and_load(explainer, Path(folder) / "explainer.fshap")
    elif isinstance(explainer, str | os.PathLike):
        path = str(Path(explainer).absolute())
        opened = load_explainer(path)
        source = SavedExplainer(path, opened.checksum or "")
        with _lock:
            _keep(source, opened)
    else:
        raise InputError(
            f"explainer is a {type(explainer).__name__}; give an explainer or the path of a .fshap file."
        )
    # Wrong options are an error here, not on a worker.
    opened.explain_batches([], ids=ids, layout=layout, top_k=top_k, n_jobs=n_jobs)
    return Job(source, tuple(ids or ()), layout, top_k, n_jobs)


def save_and_load(explainer: Explainer, path: Path, *, interactions: bool = False) -> Explainer:
    """Save an explainer, and return what the file holds; raise if it lacks the steps of a Pipeline."""
    explainer.save(path, interactions=interactions)
    loaded = load_explainer(path)
    if explainer.has_pipeline and not loaded.has_pipeline:
        raise InputError(
            "explainer explains a Pipeline with a step that cannot be saved (a warning names it): give one of the "
            "last step, `TreeExplainer(pipeline[-1], pipeline[:-1].transform(background))`, and transformed rows."
        )
    return loaded


def _keep(saved: SavedExplainer, explainer: Explainer) -> None:
    _opened[saved] = explainer
    while len(_opened) > _MOST_OPEN:
        del _opened[next(iter(_opened))]


def load_explainer(path: str | os.PathLike[str]) -> Explainer:
    """Return the explainer in a file."""
    loaded = load(path)
    if not isinstance(loaded, Explainer):
        raise InputError(
            f"{truncated_text(path)} holds a {type(loaded).__name__}; give the file of an explainer."
        )
    return loaded


def import_engine(name: str) -> Any:
    """Import a module of an engine, whose extra has the name of the package."""
    extra = name.partition(".")[0].removeprefix("py")
    return import_optional(name, f"fouriershap.integrations.{extra}", f"[{extra}]")


def check_frame(frame: Any, argument: str, method: str, wanted: str) -> None:
    """Raise unless a frame has this method of the engine's frames."""
    if not hasattr(frame, method):
        raise InputError(f"{argument} is a {type(frame).__name__}; give {wanted}.")
