"""Options that several commands have, and the parsing of those that are more than a word."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fouriershap import InputError
from fouriershap._base.messages import truncated_repr, truncated_text

MODEL = (
    "XGBoost .json .ubj, LightGBM .txt, CatBoost .cbm .json, .onnx, .skops, a folder of Spark or YDF, "
    "package.module:function; .pkl .pickle .joblib if trusted."
)
ROWS = "Parquet, CSV, Arrow or feather, by suffix; - for standard input (Arrow stream or CSV)."
File = Annotated[Path, typer.Argument(metavar="FILE.fshap", help="A file that `fit` wrote.")]
RowsFile = Annotated[Path, typer.Argument(metavar="ROWS", help=ROWS)]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")]
Trust = Annotated[bool, typer.Option("--trust-pickle", help="Open pickles, which can run arbitrary code.")]
Jobs = Annotated[int, typer.Option(help="Number of threads; -1 for all cores.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Background = Annotated[Path | None, typer.Option("-b", "--background", help=f"Rows to compare with. {ROWS}")]


def parse_groups(given: list[str]) -> dict[str, Any]:
    """Return the argument ``groups`` of explainers from ``NAME=COLUMN,COLUMN`` of each --group, if there is one.

    Or from "input" or "encoded" alone.
    """
    if given in (["input"], ["encoded"]):
        return {"groups": given[0]}
    groups: dict[str, list[str]] = {}
    for text in given:
        name, sign, columns = text.partition("=")
        members = [column.strip() for column in columns.split(",") if column.strip()]
        if not (sign and name.strip() and members):
            raise InputError(f"--group {truncated_text(text)}: give NAME=COLUMN,COLUMN.")
        if name.strip() in groups:
            raise InputError(
                f"--group: {truncated_repr(name.strip())} is given twice; list all its columns at once."
            )
        groups[name.strip()] = members
    return {"groups": groups} if groups else {}


def parse_output(text: str) -> str | int:
    """Return a name, or the number of an output."""
    return int(text) if text.isdecimal() else text


def parse_values(
    coalitions: str | None, causal_order: str | None, confounded: str | None, dependence: str | None
) -> dict[str, Any]:
    """Return the arguments of explainers that say which values are computed."""
    given: dict[str, Any] = {"coalitions": coalitions, "dependence": dependence}
    if dependence is not None:
        given["feature_perturbation"] = "conditional"
    if causal_order is not None:
        groups = [
            [column.strip() for column in group.split(",") if column.strip()]
            for group in causal_order.split(";")
        ]
        given["causal_order"] = [group for group in groups if group]
    if confounded is not None:
        flags = [word.strip() for word in confounded.split(",")]
        if not set(flags) <= {"yes", "no"}:
            raise InputError(
                f"--confounded {truncated_text(confounded)}: give yes or no, once or for each group of --causal-order."
            )
        given["confounded"] = flags[0] == "yes" if len(flags) == 1 else [flag == "yes" for flag in flags]
    return {name: value for name, value in given.items() if value is not None}
