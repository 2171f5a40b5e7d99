"""The command `report`: write a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fouriershap import Explainer, InputError
from fouriershap._base.messages import truncated_list, truncated_repr, truncated_text
from fouriershap.cli._analysis import read_sentences
from fouriershap.cli._errors import add_file_name, report_errors
from fouriershap.cli._explainers import csv_kinds, open_explainer
from fouriershap.cli._options import Background, Debug, Drop, File, Quiet, RowsFile
from fouriershap.cli._output import check_folder, check_not_input
from fouriershap.cli._rows import PIPE, open_rows, read_all


@report_errors
def report(
    file: File,
    rows: RowsFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE.html", help="The file to write.")],
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    max_rows: Annotated[int | None, typer.Option(min=1, help="Most rows that the page holds.")] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="A column that names the rows; may be repeated.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", help="The column of observations, to show how well the model predicts."),
    ] = None,
    drift: Annotated[
        Path | None, typer.Option(metavar="NEW", help="Other rows: why the mean prediction changed.")
    ] = None,
    cohorts: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Groups to compare; tree to let a tree find them."),
    ] = None,
    interactions: Annotated[
        int | None, typer.Option(min=2, metavar="ORDER", help="List sets of up to this many features.")
    ] = None,
    background: Background = None,
    text: Annotated[
        Path | None, typer.Option(metavar="TEXT.json", help="Sentences of reasons, as for `reasons`.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Unit of the predictions.")] = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TEXT", help="A fact to show, such as Owner=..., Limits=...; may be repeated."
        ),
    ] = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a page that explains rows, and answers "what if" in the browser.

    A file may have no background rows: --background makes the what-if part exact, and intervals include its error.
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{truncated_text(output)}: give the output the suffix .html.")
    check_folder(output)
    check_not_input(output, file, rows, drift, background, text)
    explainer = open_explainer(file)
    facts = {"Explainer file": file.name, "Rows file": _name(rows)}
    for given in fact or ():
        told, equals, what = given.partition("=")
        if not equals:
            raise InputError(f"--fact is {truncated_repr(given)}; give NAME=TEXT, such as Owner=us.")
        facts[told.strip()] = what.strip()
    groups = None if cohorts in (None, "tree") else cohorts
    known = explainer.input_names or ()
    wanted = [*(ids or ()), *(name for name in (label, groups) if name is not None)]
    extra = tuple(name for name in dict.fromkeys(wanted) if name not in known)
    if background is not None:
        explainer = explainer.with_background(_features(explainer, background, (*extra, *(drop or ()))))
        facts["Background file"] = _name(background)
    changed = None
    if drift is not None:
        changed = _features(explainer, drift, (*extra, *(drop or ())))
        facts["File of the change"] = _name(drift)
    sentences = None if text is None else read_sentences(text)
    stream = open_rows(rows, csv_kinds(explainer, tuple(ids or ())), tuple(drop or ()))
    for name, option in ((label, "--label"), (groups, "--cohorts")):
        if name is not None and name not in stream.schema.names:
            raise InputError(
                f"{stream.name}: has no column {truncated_repr(name)}, which {option} names; it has "
                f"{truncated_list(stream.schema.names)}."
            )
    with add_file_name(stream.name):
        table = read_all(stream)
        features = explainer.select(table, ids=extra)
        page = explainer.report(
            features,
            output,
            None if label is None else table[label].to_numpy(),
            ids=_ids(table, ids),
            drift=changed,
            cohorts=True if cohorts == "tree" else None if groups is None else table[groups].to_numpy(),
            interactions=interactions,
            text=sentences,
            unit=unit,
            facts=facts,
            max_rows=max_rows,
            title=title,
        )
    if not quiet:
        typer.echo(
            f"{truncated_text(page)}: {table.num_rows:,} rows, {page.stat().st_size / 1e6:.1f} MB", err=True
        )


def _name(path: Path) -> str:
    return "standard input" if path == PIPE else path.name


def _features(explainer: Explainer, path: Path, extra: tuple[str, ...]) -> Any:
    """Return all rows of a file, only the columns of the model; ``extra`` columns are left out."""
    stream = open_rows(path, csv_kinds(explainer, ()), ())
    with add_file_name(stream.name):
        return explainer.select(read_all(stream), ids=[name for name in extra if name in stream.schema.names])


def _ids(table: Any, ids: list[str] | None) -> list[str] | None:
    """Return the names of the rows: the entries of one column, or of several."""
    if not ids:
        return None
    columns = [[str(value) for value in table.column(name).to_pylist()] for name in ids]
    return [", ".join(parts) for parts in zip(*columns, strict=True)]
