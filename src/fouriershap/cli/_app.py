"""The application with its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fouriershap import __version__
from fouriershap import calibrate as measure_speed
from fouriershap.cli._analysis import cohorts, drift, importance, interactions, reasons
from fouriershap.cli._check import check
from fouriershap.cli._errors import Commands, report_errors
from fouriershap.cli._explain import explain
from fouriershap.cli._fit import fit
from fouriershap.cli._info import describe
from fouriershap.cli._lines import installed, print_lines
from fouriershap.cli._options import Debug
from fouriershap.cli._report import report

app = typer.Typer(
    name="fouriershap",
    cls=Commands,
    help="Exact SHAP values from model files and tables of rows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fouriershap {__version__}")
        raise typer.Exit


@app.callback()
def commands(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Exact SHAP values from model files and tables of rows."""


@report_errors
def info(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE.fshap]", help="A file that `fit` wrote.", show_default=False),
    ] = None,
    debug: Debug = False,
) -> None:
    """Print what a .fshap file holds or, without a file, what is installed and which models can be read."""
    print_lines(installed() if file is None else describe(file))


@report_errors
def calibrate(debug: Debug = False) -> None:
    """Measure how quick this machine is: tree explainers then choose between their strategies accordingly."""
    print_lines([(way, f"{factor:g} times the time assumed") for way, factor in measure_speed().items()])
    typer.echo("Processes that start from now on use this.")


_COMMANDS = (fit, explain, report, drift, importance, cohorts, interactions, reasons, info, check, calibrate)
for command in _COMMANDS:
    app.command()(command)
