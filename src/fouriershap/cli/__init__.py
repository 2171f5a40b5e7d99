"""The command ``fouriershap``: fit, explain, inspect and check files without Python code."""

from __future__ import annotations

import os
import sys

from fouriershap import __version__
from fouriershap.cli._lines import installed, print_lines

_NEEDED = {"typer", "rich", "pyarrow"}


def main() -> None:
    """Run the command line; without its extra, print how to install it."""
    if sys.argv[1:] == ["--version"]:  # for bug reports; needs no extra, nor does `info`
        sys.stdout.write(f"fouriershap {__version__}\n")
        return
    if sys.argv[1:] == ["info"]:
        print_lines(installed())
        return
    try:
        from fouriershap.cli._app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        sys.exit(
            f"fouriershap: error: the command line needs {error.name}, which is not installed: "
            "pip install 'fouriershap[cli]'"
        )
    try:
        app()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        if end.code:
            # A thread of pyarrow may still read standard input, which would crash at a normal exit.
            os._exit(end.code if isinstance(end.code, int) else 1)
        raise
