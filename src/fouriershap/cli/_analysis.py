"""The commands of analyses: drift, importance, cohorts, interactions and reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fouriershap import Cohorts, Drift, Explainer, Importance, InputError, Interactions, Reasons
from fouriershap._base.messages import error_text, truncated_repr, truncated_text
from fouriershap.cli._errors import add_file_name, report_errors
from fouriershap.cli._explainers import csv_kinds, open_explainer
from fouriershap.cli._options import ROWS, Background, Debug, Drop, File, Quiet, RowsFile, parse_output
from fouriershap.cli._output import check_folder, check_not_input, find_format, open_output
from fouriershap.cli._rows import PIPE, open_rows, read_all

Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="OUT", help="As ROWS, or .json; by default a summary is printed."),
]
Plot = Annotated[Path | None, typer.Option(metavar="PLOT", help="Plot to write as well: .png, .svg or .pdf.")]
By = Annotated[str | None, typer.Option(help="A column of ROWS, a feature or not.")]
Every = Annotated[str | None, typer.Option(help="Period of dates: day, week, month, quarter or year.")]
Bins = Annotated[int | None, typer.Option(min=2, help="Number of groups of numbers.")]
Level = Annotated[float, typer.Option(help="Coverage of the intervals.")]


@report_errors
def drift(
    file: File,
    rows: RowsFile,
    output: Output = None,
    background: Background = None,
    by: By = None,
    every: Every = None,
    bins: Bins = None,
    interactions: Annotated[bool, typer.Option("--interactions", help="Split into pairs as well.")] = False,
    level: Level = 0.95,
    plot: Plot = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Split the change of the mean prediction over players.

    A file may have no background rows: without --background the intervals count the error of ROWS alone.
    """
    options = {"by": by, "every": every, "bins": bins, "interactions": interactions, "level": level}
    _analyse("drift", file, rows, output, plot, background, drop, quiet, options)


@report_errors
def importance(
    file: File,
    rows: RowsFile,
    output: Output = None,
    label: Annotated[
        str | None, typer.Option(help="The column of labels, to measure the loss that players save.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="squared_error or log_loss.")] = None,
    link: Annotated[str | None, typer.Option(help="For log_loss: identity (probabilities) or logit.")] = None,
    background: Background = None,
    budget: Annotated[int, typer.Option(min=1, help="Most predictions to spend on losses.")] = 1_000_000,
    level: Level = 0.95,
    plot: Plot = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure which players matter over all rows, with intervals; rows are read as a stream."""
    explainer, compared = _open(file, rows, output, plot, background)
    stream = open_rows(rows, csv_kinds(explainer, ()), tuple(drop or ()))
    if label is not None and label not in stream.schema.names:
        raise InputError(f"{stream.name}: has no column {truncated_repr(label)}, which --label names.")
    with add_file_name(stream.name):
        batches = _labelled(explainer, stream.tables, label)
        found = explainer.importance(
            batches, loss=loss, link=link, budget=budget, level=level, background=compared
        )
        _show(found, output, plot, quiet)


def _labelled(explainer: Explainer, tables: Iterator[Any], label: str | None) -> Iterator[Any]:
    for table in tables:
        if label is None:
            yield explainer.select(table)
        else:
            yield explainer.select(table, ids=[label]), table[label].to_numpy()


@report_errors
def cohorts(
    file: File,
    rows: RowsFile,
    output: Output = None,
    by: By = None,
    every: Every = None,
    bins: Bins = None,
    max_leaves: Annotated[int, typer.Option(min=2, max=4, help="Most groups of a tree, without --by.")] = 4,
    background: Background = None,
    level: Level = 0.95,
    plot: Plot = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare mean explanations of groups of rows; without --by a small tree finds groups."""
    options = {"by": by, "every": every, "bins": bins, "max_leaves": max_leaves, "level": level}
    _analyse("cohorts", file, rows, output, plot, background, drop, quiet, options)


@report_errors
def interactions(
    file: File,
    rows: RowsFile,
    output: Output = None,
    background: Background = None,
    order: Annotated[int, typer.Option(min=1, help="Most players of a set.")] = 3,
    index: Annotated[str, typer.Option(help="k-SII, STII, FSII, SII, BII, FBII or Moebius.")] = "k-SII",
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="Number of the strongest sets.")] = 20,
    min_order: Annotated[int, typer.Option(min=1, help="Fewest players of a set.")] = 1,
    plot: Plot = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """List the sets of players that interact most strongly, over all rows.

    A file may have no background rows, which interactions need: give --background.
    """
    options = {"order": order, "index": index, "top_k": top_k, "min_order": min_order}
    _analyse("interactions", file, rows, output, plot, background, drop, quiet, options)


@report_errors
def reasons(
    file: File,
    rows: RowsFile,
    output: Output = None,
    top_k: Annotated[int, typer.Option(min=1, help="Most reasons per row.")] = 4,
    direction: Annotated[
        str, typer.Option(help="What they did to the output: raised, lowered or both.")
    ] = "raised",
    cohort: Annotated[Path | None, typer.Option(help=f"Rows to compare with. {ROWS}")] = None,
    model_output: Annotated[str | None, typer.Option(help="Output to explain, by name or number.")] = None,
    text: Annotated[
        Path | None,
        typer.Option(metavar="TEXT.json", help='Sentences, {"debt": {"raises": "A debt of {value}"}}.'),
    ] = None,
    actionable: Annotated[
        list[str] | None, typer.Option(help="A reason that can be changed; may be repeated.")
    ] = None,
    min_contribution: Annotated[float, typer.Option(min=0.0, help="Smallest size of a reason.")] = 0.0,
    ids: Annotated[str | None, typer.Option("--id", help="A column to carry along.")] = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """List the main reasons of each row, as for a letter."""
    _check_outputs(output, None, file, rows, cohort, text)
    explainer = open_explainer(file)
    compared = _read(explainer, cohort, drop=()) if cohort is not None else None
    kinds = csv_kinds(explainer, () if ids is None else (ids,))
    stream = open_rows(rows, kinds, tuple(drop or ()))
    with add_file_name(stream.name):
        table = read_all(stream)
        found = explainer.reasons(
            table if ids is not None else explainer.select(table),
            top_k,
            direction=direction,
            cohort=compared,
            output=None if model_output is None else parse_output(model_output),
            text=None if text is None else read_sentences(text),
            actionable=actionable or None,
            min_contribution=min_contribution,
            ids=ids,
        )
        _show(found, output, None, quiet)


def read_sentences(path: Path) -> Any:
    """Return the content of a file of sentences."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{truncated_text(path)}: does not exist.") from None
    except ValueError as error:
        raise InputError(f"{truncated_text(path)}: is not JSON: {error_text(error)}") from None


def _analyse(
    method: str,
    file: Path,
    rows: Path,
    output: Path | None,
    plot: Path | None,
    background: Path | None,
    drop: list[str] | None,
    quiet: bool,
    options: dict[str, Any],
) -> None:
    """Call a method of the explainer with all rows and these options; print or write its result."""
    explainer, compared = _open(file, rows, output, plot, background)
    table = _read(explainer, rows, drop, options.get("by"))
    with add_file_name(str(rows)):
        _show(getattr(explainer, method)(table, background=compared, **options), output, plot, quiet)


def _open(
    file: Path, rows: Path, output: Path | None, plot: Path | None, background: Path | None
) -> tuple[Explainer, Any]:
    """Return the explainer, and the rows to compare with, if any; check first what is to be written."""
    _check_outputs(output, plot, file, rows, background)
    explainer = open_explainer(file)
    return explainer, None if background is None else _read(explainer, background, drop=())


def _read(explainer: Explainer, path: Path, drop: Any, by: str | None = None) -> Any:
    """Return all rows of a file; only the columns of the model unless ``by`` is one more."""
    stream = open_rows(path, csv_kinds(explainer, ()), tuple(drop or ()))
    with add_file_name(stream.name):
        table = read_all(stream)
        return table if by is not None else explainer.select(table)


def _check_outputs(output: Path | None, plot: Path | None, *inputs: Path | None) -> None:
    """Raise before any work is done."""
    for path in (output, plot):
        if path is None:
            continue
        if path == plot and path.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError(f"{truncated_text(path)}: give the plot the suffix .png, .svg or .pdf.")
        if path == output and path.suffix.lower() != ".json":
            find_format(path, None)
        elif path != PIPE:
            check_folder(path)
        check_not_input(path, *inputs)


def _show(
    result: Drift | Importance | Cohorts | Interactions | Reasons,
    output: Path | None,
    plot: Path | None,
    quiet: bool,
) -> None:
    """Print a result, or write it."""
    if plot is not None:
        axes: Any = result.plot()
        axes.figure.savefig(plot, dpi=120)
    if output is None:
        typer.echo(repr(result))
        return
    if output.suffix.lower() == ".json":
        result.to_json(output)
    else:
        import pyarrow as pa

        with open_output(output, find_format(output, None), behind=False, raw_text=False) as writer:
            writer.write(pa.table(result.table()))
    if not quiet and output != PIPE:
        typer.echo(f"{truncated_text(output)}: {result.analysis}", err=True)
