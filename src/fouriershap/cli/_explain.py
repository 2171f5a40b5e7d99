"""The command `explain`: SHAP values of all rows of a file or a pipe."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fouriershap import Explainer, InputError
from fouriershap._base.atomic import atomic_file
from fouriershap._base.checks import import_optional
from fouriershap._base.messages import truncated_text
from fouriershap.cli._errors import add_file_name, progress_bar, report_errors
from fouriershap.cli._explainers import csv_kinds, open_explainer
from fouriershap.cli._options import Debug, Drop, File, Jobs, Quiet, RowsFile
from fouriershap.cli._output import check_not_input, find_format, open_output
from fouriershap.cli._rows import PIPE, Rows, open_rows

_MANY_ROWS = 100_000
_PLOTTED_ROWS = 2000


@report_errors
def explain(
    file: File,
    rows: RowsFile,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="As ROWS; - for standard output.")
    ],
    layout: Annotated[
        str | None, typer.Option(help="columns, array or top_k; by default columns, or top_k with --top-k.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Only the largest contributions, as reasons.")
    ] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="A column to carry along; may be repeated.")
    ] = None,
    drop: Drop = None,
    form: Annotated[
        str | None, typer.Option("--format", help="parquet, csv or arrow; by default by suffix.")
    ] = None,
    raw_text: Annotated[
        bool, typer.Option("--raw-text", help="Do not escape texts in CSV that a spreadsheet would run.")
    ] = False,
    plots: Annotated[Path | None, typer.Option(help="A folder for plots of the first rows.")] = None,
    n_jobs: Jobs = -1,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Explain every row of a file or a pipe."""
    if form not in (None, "parquet", "csv", "arrow"):
        raise InputError(f"--format {truncated_text(form)}: choose parquet, csv or arrow.")
    chosen = find_format(output, form)
    check_not_input(output, file, rows)
    if plots is not None:
        # Before any work is done.
        import_optional("shap", "--plots", "[shap]")
        import_optional("matplotlib", "--plots", "matplotlib").use("Agg")
    explainer = open_explainer(file)
    carried = tuple(ids or ())
    stream = open_rows(rows, csv_kinds(explainer, carried), tuple(drop or ()))
    kept: list[Any] = []
    batches = stream.tables if plots is None else _keep_first(stream, kept)
    chosen_layout = layout or ("columns" if top_k is None else "top_k")
    begin, n_rows = time.perf_counter(), 0
    writing = open_output(output, chosen, n_jobs != 1, raw_text)
    with add_file_name(stream.name), writing as writer, progress_bar(stream.total, quiet) as advance:
        options: dict[str, Any] = {
            "ids": carried,
            "layout": chosen_layout,
            "top_k": top_k or 3,
            "n_jobs": n_jobs,
        }
        for result in explainer.explain_batches(batches, **options):
            writer.write(result)
            n_rows += result.num_rows
            advance(result.num_rows)
    seconds = time.perf_counter() - begin
    if plots is not None and kept and kept[0].num_rows:
        features = explainer.select(kept[0], ids=carried)
        _draw_plots(explainer, features.to_pandas(), plots)
    if not quiet and output != PIPE:
        # For few rows the speed would be that of starting up.
        speed = f", {n_rows / seconds:,.0f} per second" if n_rows >= _MANY_ROWS else ""
        typer.echo(f"{truncated_text(output)}: {n_rows:,} rows in {seconds:.1f} s{speed}", err=True)


def _keep_first(stream: Rows, kept: list[Any]) -> Iterator[Any]:
    for table in stream.tables:
        if not kept:
            kept.append(table.slice(0, _PLOTTED_ROWS))
        yield table


def _draw_plots(explainer: Explainer, rows: Any, folder: Path) -> None:
    """Draw beeswarm, bars and the waterfall of the first row, per output, with shap."""
    import matplotlib.pyplot as plt
    import shap

    folder.mkdir(parents=True, exist_ok=True)
    explanation = explainer(rows)
    outputs = [("", explanation)]
    if explanation.values.ndim == 3:
        names = explainer.output_names or tuple(map(str, range(explanation.values.shape[2])))
        plain = [re.sub(r"[^\w-]+", "_", name) for name in names]
        outputs = [(f"-{name}", explanation[..., o]) for o, name in enumerate(plain)]
    for suffix, one in outputs:
        plots = {"beeswarm": one, "bar": one, "waterfall": one[0]}
        for kind, content in plots.items():
            plt.figure()
            getattr(shap.plots, kind)(content, show=False)
            path = folder / f"{kind}{suffix}.png"
            with atomic_file(path) as temporary:
                plt.savefig(temporary, dpi=120, bbox_inches="tight", format="png")
            plt.close("all")
