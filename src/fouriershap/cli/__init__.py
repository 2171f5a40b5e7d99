"""The command ``fouriershap``: fit, explain, look into and check files without a line of Python."""

from __future__ import annotations

import sys

_NEEDED = {"typer", "rich", "pyarrow"}


def main() -> None:
    """Run the command line; without its extra, say how to install it."""
    try:
        from fouriershap.cli._app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        sys.exit(
            f"fouriershap: error: the command line needs {error.name}, which is not installed: "
            "pip install 'fouriershap[cli]'"
        )
    app()
