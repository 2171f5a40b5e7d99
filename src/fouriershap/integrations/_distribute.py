"""How an explainer travels to the workers of an engine: as the path of its file, or as an object."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fouriershap import Explainer, FileFormatError, InputError, OutputColumn, load
from fouriershap._base.checks import need
from fouriershap._base.short import short_text

_KEPT = 8  # explainers that a worker process keeps open
_opening = threading.Lock()  # threads of one worker wait for the first to open a file
_opened: dict[SavedExplainer, Explainer] = {}  # by this process, the oldest first


@dataclass(frozen=True)
class SavedExplainer:
    """A .fshap file that every worker can read."""

    path: str  # absolute
    # Of the contents. A worker that finds other contents fails: the rows of one job share one explainer.
    checksum: str


@dataclass(frozen=True)
class Job:
    """What is sent to each worker: the explainer, or where to find it, and what to do with batches."""

    source: Explainer | SavedExplainer
    ids: tuple[str, ...]
    out: str
    top_k: int
    n_jobs: int | None

    def explain(self, batches: Iterable[Any]) -> Iterator[Any]:
        """See `Explainer.explain_batches`."""
        return self.explainer.explain_batches(
            batches, ids=self.ids, out=self.out, top_k=self.top_k, n_jobs=self.n_jobs
        )

    @property
    def explainer(self) -> Explainer:
        if isinstance(self.source, Explainer):
            return self.source
        with _opening:
            return _open(self.source)

    @property
    def schema(self) -> tuple[OutputColumn, ...]:
        """The columns of the answer that follow the ids."""
        return self.explainer.output_schema(ids=self.ids, out=self.out, top_k=self.top_k)


def make_job(
    explainer: Explainer | str | os.PathLike[str],
    ids: Sequence[str] | None,
    out: str,
    top_k: int,
    n_jobs: int | None,
) -> Job:
    """Check the arguments, and make the explainer ready to travel."""
    source: Explainer | SavedExplainer
    if isinstance(explainer, Explainer):
        source = opened = _portable(explainer)
    elif isinstance(explainer, str | os.PathLike):
        path = str(Path(explainer).absolute())
        opened = _load(path)
        source = SavedExplainer(path, opened.checksum or "")
        with _opening:
            _keep(source, opened)
    else:
        raise InputError(
            f"explainer is a {type(explainer).__name__}; give an explainer or the path of a .fshap file."
        )
    # What is wrong with the options is raised here, not on a worker.
    opened.explain_batches([], ids=ids, out=out, top_k=top_k, n_jobs=n_jobs)
    return Job(source, tuple(ids or ()), out, top_k, n_jobs)


def _portable(explainer: Explainer) -> Explainer:
    """The same explainer with what a file would keep: tables, but not the model; the background only if need be."""
    with tempfile.TemporaryDirectory(prefix="fouriershap-", ignore_cleanup_errors=True) as folder:
        return through_file(
            explainer,
            Path(folder) / "explainer.fshap",
            "explainer explains a Pipeline, some of whose steps do not travel: give one of the last step, "
            "`TreeExplainer(pipeline[-1], pipeline[:-1].transform(background))`, and transformed rows.",
        )


def through_file(explainer: Explainer, path: Path, refusal: str, *, interactions: bool = False) -> Explainer:
    """Save an explainer; what the file holds. ``refusal`` is the error where that lacks the steps of a Pipeline."""
    explainer.save(path, interactions=interactions)
    loaded = _load(path)
    if explainer.has_pipeline and not loaded.has_pipeline:
        raise InputError(refusal)
    return loaded


def _open(saved: SavedExplainer) -> Explainer:
    if saved in _opened:
        return _opened[saved]
    explainer = _load(saved.path)
    if explainer.checksum != saved.checksum:
        raise FileFormatError(
            f"{short_text(saved.path)} has changed since the job was made: give every version of an "
            "explainer its own path."
        )
    _keep(saved, explainer)
    return explainer


def _keep(saved: SavedExplainer, explainer: Explainer) -> None:
    _opened[saved] = explainer
    while len(_opened) > _KEPT:
        del _opened[next(iter(_opened))]


def _load(path: str | os.PathLike[str]) -> Explainer:
    loaded = load(path)
    if not isinstance(loaded, Explainer):
        raise InputError(
            f"{short_text(path)} holds a {type(loaded).__name__}; give the file of an explainer."
        )
    return loaded


def import_engine(name: str) -> Any:
    """A module of the engine; its extra has the name of the package."""
    extra = name.partition(".")[0].removeprefix("py")
    return need(name, f"fouriershap.integrations.{extra}", f"[{extra}]")


def check_frame(frame: Any, argument: str, method: str, wanted: str) -> None:
    """A frame of the engine has this method; say how to get one from what came."""
    if not hasattr(frame, method):
        raise InputError(f"{argument} is a {type(frame).__name__}; give {wanted}.")
