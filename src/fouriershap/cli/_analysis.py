"""Questions about many rows: drift, importance, cohorts, interactions and reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fouriershap import Cohorts, Drift, Explainer, Importance, InputError, Interactions, Reasons
from fouriershap._base.short import reason, short, short_text
from fouriershap.cli._answers import answer_format, check_apart, check_folder, open_answer
from fouriershap.cli._explainers import csv_kinds, open_explainer
from fouriershap.cli._options import ROWS, Debug, Drop, File, Quiet, RowsFile
from fouriershap.cli._report import named, reported
from fouriershap.cli._rows import PIPE, open_rows, read_all

Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="OUT", help="As ROWS, or .json; by default a summary is printed."),
]
Plot = Annotated[Path | None, typer.Option(metavar="PICTURE", help="Draw it, too: .png, .svg or .pdf.")]
Against = Annotated[Path | None, typer.Option("-b", "--background", help=f"Rows to compare with. {ROWS}")]
By = Annotated[str | None, typer.Option(help="A column of ROWS, a feature or not.")]
Every = Annotated[str | None, typer.Option(help="Of dates: day, week, month, quarter or year.")]
Bins = Annotated[int | None, typer.Option(min=2, help="Of numbers: so many groups.")]
Level = Annotated[float, typer.Option(help="Coverage of the intervals.")]


@reported
def drift(
    file: File,
    rows: RowsFile,
    output: Output = None,
    background: Against = None,
    by: By = None,
    every: Every = None,
    bins: Bins = None,
    interactions: Annotated[bool, typer.Option("--interactions", help="Split into pairs, too.")] = False,
    level: Level = 0.95,
    plot: Plot = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Split the change of the mean prediction over players.

    A file has no rows of the background: without --background the intervals count the error of ROWS alone.
    """
    explainer, against = _open(file, rows, output, plot, background)
    table = _read(explainer, rows, drop, by)
    with named(str(rows)):
        found = explainer.drift(
            table,
            by=by,
            every=every,
            bins=bins,
            interactions=interactions,
            level=level,
            background=against,
        )
        _tell(found, output, plot, quiet)


@reported
def importance(
    file: File,
    rows: RowsFile,
    output: Output = None,
    label: Annotated[
        str | None, typer.Option(help="The column of labels: what players save of a loss.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="squared_error or log_loss.")] = None,
    link: Annotated[str | None, typer.Option(help="Of log_loss: identity (probabilities) or logit.")] = None,
    background: Against = None,
    budget: Annotated[int, typer.Option(min=1, help="Most predictions that losses may take.")] = 1_000_000,
    level: Level = 0.95,
    plot: Plot = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Tell what matters over all rows, and how surely; rows are read as a stream."""
    explainer, against = _open(file, rows, output, plot, background)
    stream = open_rows(rows, csv_kinds(explainer, ()), tuple(drop or ()))
    if label is not None and label not in stream.schema.names:
        raise InputError(f"{stream.name}: has no column {short(label)}, which --label names.")
    with named(stream.name):
        batches = _labelled(explainer, stream.tables, label)
        found = explainer.importance(
            batches, loss=loss, link=link, budget=budget, level=level, background=against
        )
        _tell(found, output, plot, quiet)


def _labelled(explainer: Explainer, tables: Iterator[Any], label: str | None) -> Iterator[Any]:
    for table in tables:
        if label is None:
            yield explainer.select(table)
        else:
            yield explainer.select(table, ids=[label]), table[label].to_numpy()


@reported
def cohorts(
    file: File,
    rows: RowsFile,
    output: Output = None,
    by: By = None,
    every: Every = None,
    bins: Bins = None,
    leaves: Annotated[int, typer.Option(min=2, max=4, help="Without --by: most groups of a tree.")] = 4,
    background: Against = None,
    level: Level = 0.95,
    plot: Plot = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare mean explanations of groups of rows; without --by a small tree finds groups."""
    explainer, against = _open(file, rows, output, plot, background)
    table = _read(explainer, rows, drop, by)
    with named(str(rows)):
        found = explainer.cohorts(
            table, by, every=every, bins=bins, leaves=leaves, level=level, background=against
        )
        _tell(found, output, plot, quiet)


@reported
def interactions(
    file: File,
    rows: RowsFile,
    output: Output = None,
    background: Against = None,
    order: Annotated[int, typer.Option(min=1, help="Most players of a set.")] = 3,
    index: Annotated[str, typer.Option(help="k-SII, STII, FSII or SII.")] = "k-SII",
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="So many of the strongest sets.")] = 20,
    min_order: Annotated[int, typer.Option(min=1, help="Fewest players of a set.")] = 1,
    plot: Plot = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """List the sets of players that act together most strongly, over all rows.

    A file has no rows of the background, which sets are compared with: give --background.
    """
    explainer, against = _open(file, rows, output, plot, background)
    table = _read(explainer, rows, drop)
    with named(str(rows)):
        found = explainer.interactions(
            table, order, index=index, top_k=top_k, min_order=min_order, background=against
        )
        _tell(found, output, plot, quiet)


@reported
def reasons(
    file: File,
    rows: RowsFile,
    output: Output = None,
    top_k: Annotated[int, typer.Option(min=1, help="Most reasons of a row.")] = 4,
    against: Annotated[str, typer.Option(help="What they speak against: lower, higher or both.")] = "lower",
    cohort: Annotated[Path | None, typer.Option(help=f"Rows to compare with. {ROWS}")] = None,
    of: Annotated[str | None, typer.Option(help="Which output, by name or number.")] = None,
    text: Annotated[
        Path | None, typer.Option(metavar="TEXT.json", help='Sentences, {"debt": "Your debt of {value}"}.')
    ] = None,
    actionable: Annotated[
        list[str] | None, typer.Option(help="What can be changed; may be repeated.")
    ] = None,
    least: Annotated[float, typer.Option(min=0.0, help="Size that makes a reason.")] = 0.0,
    ids: Annotated[str | None, typer.Option("--id", help="A column carried along.")] = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Name the reasons of each row, for a letter."""
    _check_outputs(output, None, file, rows, cohort, text)
    explainer = open_explainer(file)
    compared = _read(explainer, cohort, drop=()) if cohort is not None else None
    kinds = csv_kinds(explainer, () if ids is None else (ids,))
    stream = open_rows(rows, kinds, tuple(drop or ()))
    with named(stream.name):
        table = read_all(stream)
        found = explainer.reasons(
            table if ids is not None else explainer.select(table),
            top_k,
            against=against,
            cohort=compared,
            output=int(of) if of is not None and of.isdecimal() else of,
            text=None if text is None else read_sentences(text),
            actionable=actionable or None,
            least=least,
            ids=ids,
        )
        _tell(found, output, None, quiet)


def read_sentences(path: Path) -> Any:
    """What a file of sentences holds."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{short_text(path)}: there is no such file.") from None
    except ValueError as error:
        raise InputError(f"{short_text(path)}: is no JSON: {reason(error)}") from None


def _open(
    file: Path, rows: Path, output: Path | None, plot: Path | None, background: Path | None
) -> tuple[Explainer, Any]:
    """The explainer of a question, and the rows to compare with, if any; what cannot be written is told first."""
    _check_outputs(output, plot, file, rows, background)
    explainer = open_explainer(file)
    return explainer, None if background is None else _read(explainer, background, drop=())


def _read(explainer: Explainer, path: Path, drop: Any, by: str | None = None) -> Any:
    """All rows of a file; the columns of the model alone, unless one more is wanted."""
    stream = open_rows(path, csv_kinds(explainer, ()), tuple(drop or ()))
    with named(stream.name):
        table = read_all(stream)
        return table if by is not None else explainer.select(table)


def _check_outputs(output: Path | None, plot: Path | None, *inputs: Path | None) -> None:
    """Raise now rather than after the work."""
    for path in (output, plot):
        if path is None:
            continue
        if path == plot and path.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise InputError(f"{short_text(path)}: give the picture the suffix .png, .svg or .pdf.")
        if path == output and path.suffix.lower() != ".json":
            answer_format(path, None)
        elif path != PIPE:
            check_folder(path)
        check_apart(path, *inputs)


def _tell(
    answer: Drift | Importance | Cohorts | Interactions | Reasons,
    output: Path | None,
    plot: Path | None,
    quiet: bool,
) -> None:
    """Print an answer, or write it."""
    if plot is not None:
        axes: Any = answer.plot()
        axes.figure.savefig(plot, dpi=120)
    if output is None:
        typer.echo(repr(answer))
        return
    if output.suffix.lower() == ".json":
        answer.to_json(output)
    else:
        import pyarrow as pa

        with open_answer(output, answer_format(output, None), behind=False, raw_text=False) as writer:
            writer.write(pa.table(answer.table()))
    if not quiet and output != PIPE:
        typer.echo(f"{short_text(output)}: {answer.question}", err=True)
