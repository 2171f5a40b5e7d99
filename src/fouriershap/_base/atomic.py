"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fouriershap._base.checks import is_folder
from fouriershap._base.errors import DiskFullError, FileAccessError, FourierShapError, MissingFileError
from fouriershap._base.messages import truncated_text

_FULL = {errno.ENOSPC, errno.EFBIG} | {getattr(errno, name) for name in ("EDQUOT",) if hasattr(errno, name)}
_UNFINISHED = re.compile(
    r"\.(?P<name>.+)\.[0-9a-f]{12}\.part", re.DOTALL
)  # what `atomic_file` calls its files


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to: the file appears whole under ``path`` when the block ends, or not at all.

    An existing file keeps its permissions, and a link stays one: its target is replaced. A pipe or a device cannot be
    replaced, and is written to directly. A full disk raises `DiskFullError` and leaves ``path`` as it was.
    """
    with translate_os_errors(path):
        old = _status(path)
        if old is not None and not stat.S_ISREG(old.st_mode):
            yield path
            return
        target = Path(os.path.realpath(path))
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
        # Nobody may read the unfinished file who may not read the old one; its writers must be able to open it.
        mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) | stat.S_IWUSR
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
        try:
            made = temporary.stat()  # with what the umask leaves, which to ask for would change it for all
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            like = old or made
            if hasattr(os, "chown"):
                with suppress(PermissionError):
                    os.chown(temporary, like.st_uid, like.st_gid)
            temporary.chmod(stat.S_IMODE(like.st_mode))  # writers may have made a file of their own
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def remove_unfinished(folder: Path, names: Collection[str]) -> None:
    """Remove unfinished files that killed writers of these names left in a folder, and nothing else.

    Call it when all of the files are there: a writer that is still at work would lose its own.
    """
    for path in folder.iterdir():
        found = _UNFINISHED.fullmatch(path.name)
        if found and found["name"] in names and path.is_file():
            with suppress(PermissionError):  # on Windows, while it is open elsewhere
                path.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    """Return the status of what is there, behind all links; None where nothing is."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


@contextmanager
def translate_os_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Translate errors of the system, while a file is read or written, into ours."""
    try:
        yield
    except FourierShapError:
        raise
    except OSError as error:
        names = {Path(path).name, Path(os.path.realpath(path)).name}
        if error.errno not in _FULL and not any(name in str(error.filename) for name in names):
            raise  # of another file
        name, why = truncated_text(path), error.strerror or error
        kind, text = FileAccessError, f"{name} cannot be read or written: {why}."
        if error.errno in _FULL:
            unchanged = (
                "The file that was there is unchanged. Free some space and try again, or write elsewhere."
            )
            kind, text = DiskFullError, f"{name} cannot be written: the disk is full ({why}). {unchanged}"
        elif isinstance(error, FileNotFoundError):
            folder = Path(path).parent
            missing = name if folder.is_dir() else f"the folder {truncated_text(folder)}"
            kind, text = MissingFileError, f"{missing} does not exist."
        elif is_folder(Path(path)):
            text = f"{name} is a folder; give a file."
        ours = kind(text)
        ours.errno = error.errno
        raise ours from error
