"""The command that writes a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fouriershap import Explainer, InputError
from fouriershap._base.short import short, short_list, short_text
from fouriershap.cli._answers import check_apart, check_folder
from fouriershap.cli._explainers import csv_kinds, open_explainer
from fouriershap.cli._options import ROWS, Debug, Drop, File, Quiet, RowsFile
from fouriershap.cli._questions import read_sentences
from fouriershap.cli._report import named, reported
from fouriershap.cli._rows import PIPE, open_rows, read_all


@reported
def report(
    file: File,
    rows: RowsFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE.html", help="What is written.")],
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    most: Annotated[int | None, typer.Option("--rows", min=1, help="Most rows that the page holds.")] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="A column that names the rows; may be repeated.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="The column of what was observed: how well the model does.")
    ] = None,
    drift: Annotated[
        Path | None, typer.Option(metavar="NEW", help="Other rows: why the mean prediction changed.")
    ] = None,
    cohorts: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Groups to compare; tree for those that a tree finds."),
    ] = None,
    interactions: Annotated[
        int | None, typer.Option(min=2, metavar="ORDER", help="List sets of up to so many features.")
    ] = None,
    background: Annotated[
        Path | None, typer.Option("-b", "--background", help=f"Rows to compare with. {ROWS}")
    ] = None,
    text: Annotated[
        Path | None, typer.Option(metavar="TEXT.json", help="Sentences of reasons, as for `reasons`.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="What predictions are counted in.")] = None,
    drop: Drop = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a page that explains rows, and answers "what if" in the browser.

    A file has no rows of the background: with --background intervals count them, too, and the what-if part is exact.
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{short_text(output)}: give the output the suffix .html.")
    check_folder(output)
    check_apart(output, file, rows, drift, background, text)
    explainer = open_explainer(file)
    facts = {"Explainer file": file.name, "Rows file": _name(rows)}
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
                f"{stream.name}: has no column {short(name)}, which {option} names; it has "
                f"{short_list(stream.schema.names)}."
            )
    with named(stream.name):
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
            rows=most,
            title=title,
        )
    if not quiet:
        typer.echo(
            f"{short_text(page)}: {table.num_rows:,} rows, {page.stat().st_size / 1e6:.1f} MB", err=True
        )


def _name(path: Path) -> str:
    return "standard input" if path == PIPE else path.name


def _features(explainer: Explainer, path: Path, extra: tuple[str, ...]) -> Any:
    """All rows of a file, the columns of the model alone; ``extra`` ones are left out where it has them, too."""
    stream = open_rows(path, csv_kinds(explainer, ()), ())
    with named(stream.name):
        return explainer.select(read_all(stream), ids=[name for name in extra if name in stream.schema.names])


def _ids(table: Any, ids: list[str] | None) -> list[str] | None:
    """What the rows are called: the entries of one column, or of several."""
    if not ids:
        return None
    columns = [[str(value) for value in table.column(name).to_pylist()] for name in ids]
    return [", ".join(parts) for parts in zip(*columns, strict=True)]
