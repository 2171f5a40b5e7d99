"""Options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ROWS = "Parquet, CSV, Arrow or feather, by suffix; - for standard input (Arrow stream or CSV)."
File = Annotated[Path, typer.Argument(metavar="FILE.fshap", help="A file that `fit` wrote.")]
RowsFile = Annotated[Path, typer.Argument(metavar="ROWS", help=ROWS)]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")]
Trust = Annotated[bool, typer.Option("--trust-pickle", help="Open pickles, which can run any program.")]
Jobs = Annotated[int | None, typer.Option(help="Threads; by default every core.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
