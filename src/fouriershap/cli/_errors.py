"""One-line errors with exit codes, and a progress bar."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text
from typer.core import TyperGroup

from fouriershap import FourierShapError, FourierShapWarning, InputError
from fouriershap._base.messages import error_text, truncated_text

FAILED, CHECK_FAILED, INTERRUPTED = 1, 3, 130
_MOST_WARNING = 400  # characters of a library's warning


class Commands(TyperGroup):
    """The commands, with short messages about wrong options."""

    def parse_args(self, *arguments: Any) -> Any:
        """Parse the options before the name of a command."""
        with _short_messages():
            return super().parse_args(*arguments)

    def invoke(self, *arguments: Any) -> Any:
        """Parse the name and the options of a command, and run it."""
        with _short_messages():
            return super().invoke(*arguments)


@contextmanager
def _short_messages() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # an error of click, or typer's copy of it
        if isinstance(getattr(error, "message", None), str):
            error.message = truncated_text(error.message)  # type: ignore[attr-defined]
        raise


def report_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn exceptions of a command into one line and an exit code; print a traceback only with --debug."""

    @wraps(command)
    def run(**options: Any) -> None:
        signal.signal(signal.SIGTERM, _terminate)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                command(**options)
            except (typer.Exit, typer.Abort):
                raise
            except BrokenPipeError:  # as with `| head`
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(FAILED) from None
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a command ends in one line
                raise typer.Exit(_print_error(error, options["debug"])) from None

    return run


def _print_error(error: BaseException, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        typer.echo("fouriershap: interrupted; no file was written", err=True)
        return INTERRUPTED
    text = " ".join(error_text(error).split())
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{truncated_text(error.filename)}: {error.strerror}"
    elif not isinstance(error, FourierShapError | OSError):
        text = f"unexpected {type(error).__name__}: {text} (--debug shows where)"
    typer.echo(f"fouriershap: error: {text}", err=True)
    return FAILED


def _terminate(number: int, frame: Any) -> None:
    raise KeyboardInterrupt  # to remove incomplete files


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    words = str(message).split()
    text = " ".join(words)
    if not isinstance(message, FourierShapWarning):
        text = textwrap.shorten(" ".join(map(truncated_text, words)), _MOST_WARNING, placeholder=" ...")
    typer.echo(f"fouriershap: warning: {text}", err=True)


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} rows/s")


@contextmanager
def progress_bar(total: int | None, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of new rows; it draws a bar in a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda n_rows: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), _Speed(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=False) as bar:
        task = bar.add_task("explain", total=total)
        yield lambda n_rows: bar.update(task, advance=n_rows)


@contextmanager
def add_file_name(name: str) -> Iterator[None]:
    """Put the name of a file before errors about its rows."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(f"{name}: "):
            raise
        raise InputError(f"{name}: {error}") from error
