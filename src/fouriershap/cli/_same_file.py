"""What is read is never written over."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import IO, Any

from fouriershap._base.errors import InputError
from fouriershap._base.short import short_text
from fouriershap.cli._rows import PIPE


def check_apart(output: Path, *inputs: Path | None) -> None:
    """Raise where ``output`` is one of the inputs, however it is spelled: as a link, or redirected by the shell."""
    written = _status(output, sys.stdout)
    if written is None or not stat.S_ISREG(written.st_mode):  # all may read and write one terminal
        return
    for path in inputs:
        read = None if path is None else _status(path, sys.stdin)
        if read is not None and os.path.samestat(read, written):
            source = "standard input" if path == PIPE else short_text(path)
            target = "standard output" if output == PIPE else short_text(output)
            raise InputError(
                f"{target}: is the same file as the input {source}; give the output another name."
            )


def _status(path: Path, stream: IO[Any]) -> os.stat_result | None:
    """What the system knows of a file or, for ``-``, of a stream; None where there is none."""
    try:
        return os.fstat(stream.fileno()) if path == PIPE else path.stat()
    except OSError:  # io.UnsupportedOperation of streams in memory, too
        return None
