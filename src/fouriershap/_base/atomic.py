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

from fouriershap._base.errors import DiskFullError
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
    with translate_disk_full(path):
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
            _permit(temporary, old or made)
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


def _permit(temporary: Path, like: os.stat_result) -> None:
    """Copy owner, where that is allowed, and permissions of another file. Writers may have made a file of their own."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(temporary, like.st_uid, like.st_gid)
    temporary.chmod(stat.S_IMODE(like.st_mode))


@contextmanager
def translate_disk_full(path: Path) -> Iterator[None]:
    """Translate a full disk into `DiskFullError` while a file is written."""
    try:
        yield
    except DiskFullError:
        raise
    except OSError as error:
        if error.errno not in _FULL:
            raise
        full = DiskFullError(
            f"{truncated_text(path)} cannot be written: the disk is full ({error.strerror or error}). The file "
            "that was "
            "there is unchanged. Free some space and try again, or write elsewhere."
        )
        full.errno = error.errno
        raise full from error
