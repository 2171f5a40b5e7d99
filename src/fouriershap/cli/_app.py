"""The commands and their options."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fouriershap import (
    BlackBoxExplainer,
    Explainer,
    InputError,
    MissingDependencyError,
    TreeExplainer,
    about,
)
from fouriershap._base.short import short_text
from fouriershap.cli._answers import answer_format, check_apart, check_folder, open_answer
from fouriershap.cli._black_box import fit_black_box
from fouriershap.cli._check import largest_gaps
from fouriershap.cli._exact import save_exactly
from fouriershap.cli._explainers import csv_kinds, open_explainer, tree_kinds
from fouriershap.cli._info import describe
from fouriershap.cli._lines import print_lines
from fouriershap.cli._models import ModelFile, open_model
from fouriershap.cli._options import ROWS, Debug, Drop, File, Jobs, Quiet, RowsFile, Trust
from fouriershap.cli._page import report
from fouriershap.cli._parsed import parse_groups, parse_output
from fouriershap.cli._plots import MOST_ROWS, check_plots, draw_plots
from fouriershap.cli._questions import cohorts, drift, importance, interactions, reasons
from fouriershap.cli._report import CHECK_FAILED, Commands, named, progress, reported
from fouriershap.cli._rows import PIPE, Rows, open_rows, read_all

app = typer.Typer(
    name="fouriershap",
    cls=Commands,
    help="Exact SHAP values from model files and tables of rows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fouriershap {about()['fouriershap']}")
        raise typer.Exit


@app.callback()
def commands(
    version: Annotated[
        bool,
        typer.Option("--version", help="Say the version, and end.", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """Exact SHAP values from model files and tables of rows."""


_MANY_ROWS = 100_000
_MODEL = (
    "XGBoost .json .ubj, LightGBM .txt, CatBoost .cbm .json, .onnx, .skops, a folder of Spark or YDF, "
    "package.module:function; .pkl .pickle .joblib if trusted."
)


@app.command()
@reported
def fit(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=_MODEL)],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.fshap", help="What is written.")],
    background: Annotated[Path | None, typer.Option("-b", "--background", help=ROWS)] = None,
    path_dependent: Annotated[
        bool, typer.Option("--path-dependent", help="Take the training counts in the trees for a background.")
    ] = False,
    drop: Drop = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="NAME=COLUMN,COLUMN", help="Columns as one player; may be repeated."),
    ] = None,
    model_output: Annotated[
        str,
        typer.Option(
            help="What is explained of trees: raw, probability, response, or the number of an output."
        ),
    ] = "raw",
    precision: Annotated[str, typer.Option(help="Of the tables: single or double.")] = "single",
    budget: Annotated[
        int | None, typer.Option(min=1, help="Most rows that a black box is asked; by default 20,000.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="Parquet file that keeps what a black box says.")
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are labels; may be repeated.")
    ] = None,
    random_state: Annotated[int | None, typer.Option(help="Seed of the queries of a black box.")] = None,
    trust_pickle: Trust = False,
    n_jobs: Jobs = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compile a model and a background into a file that explains rows.

    Models of trees, linear models and kernel machines are read, and explained exactly. All others are black boxes: they
    are asked, and what is fitted to their answers is certified.
    """
    if (background is None) != path_dependent:
        raise InputError("give either --background ROWS or --path-dependent.")
    if output.suffix.lower() != ".fshap":
        raise InputError(f"{short_text(output)}: give the output the suffix .fshap.")
    check_folder(output)
    check_apart(output, model, background, answers)
    opened = open_model(model, trust_pickle)
    asked = {"budget": budget, "answers": answers, "categorical": categorical, "random_state": random_state}
    given = {name: value for name, value in asked.items() if value is not None}
    players = parse_groups(groups or [])
    begin = time.perf_counter()
    if opened.ensemble is None:
        asking = (given | players, model_output, precision, n_jobs, quiet)
        explainer = _fit_estimator(opened, background, tuple(drop or ()), output, *asking, bool(given))
    else:
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise InputError(
                f"{short_text(model)}: is read exactly; {names} is for models that can only be asked."
            )
        options = players | {"precision": precision, "output": parse_output(model_output), "n_jobs": n_jobs}
        explainer = _compile_trees(opened, background, tuple(drop or ()), options)
        explainer.save(output)
    if not quiet:
        typer.echo(f"{short_text(output)}: {explainer!r} in {time.perf_counter() - begin:.1f} s", err=True)


def _fit_estimator(
    opened: ModelFile,
    background: Path | None,
    drop: tuple[str, ...],
    output: Path,
    options: dict[str, Any],
    model_output: str,
    precision: str,
    n_jobs: int | None,
    quiet: bool,
    is_asked: bool,
) -> Explainer:
    """Read what an estimator is where that can be done and no option is for asking; else ask it, and fit."""
    refusal = InputError(
        f"{short_text(opened.path)}: is a black box ({opened.why}), which needs --background ROWS, and has no "
        "--precision and no --model-output."
    )
    if background is None:
        raise refusal
    rows = open_rows(background, {}, drop)
    with named(rows.name):
        table = read_all(rows)
        if not is_asked:
            exactly = options | {"output": parse_output(model_output), "n_jobs": n_jobs}
            explainer = save_exactly(opened, table, exactly, precision, output)
            if explainer is not None:
                return explainer
        if precision != "single" or model_output != "raw":
            raise refusal
        fitted = fit_black_box(opened, table, options, n_jobs, quiet)
    fitted.save(output)
    if not quiet:
        _tell_certificate(opened, fitted)
    return fitted


def _compile_trees(
    opened: ModelFile, background: Path | None, drop: tuple[str, ...], options: dict[str, Any]
) -> TreeExplainer:
    ensemble, rows = opened.ensemble, None
    assert ensemble is not None
    if background is not None:
        stream = open_rows(background, tree_kinds(ensemble, ensemble.feature_names), drop)
        with named(stream.name):
            rows = ensemble.select_columns(read_all(stream))
    # An estimator that was unpickled is asked whether it is read right; files of the libraries need none of them.
    live = ensemble if opened.estimator is None else opened.estimator
    return TreeExplainer(live, rows, **options)


def _tell_certificate(opened: ModelFile, explainer: BlackBoxExplainer) -> None:
    """What was fitted, and how far it can be trusted, on standard error."""
    found = explainer.fidelity
    typer.echo(f"black box: {opened.why}; asked {found.n_queries:,} times", err=True)
    typer.echo(
        f"fidelity: R² {found.r2:.4f} [{found.low:.4f}, {found.high:.4f}] on answers kept apart", err=True
    )
    if found.shap is not None:
        shap = found.shap
        typer.echo(
            f"certificate: SHAP values have R² {shap.r2:.4f} [{shap.low:.4f}, {shap.high:.4f}], by the model itself",
            err=True,
        )


@app.command()
@reported
def explain(
    file: File,
    rows: RowsFile,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="As ROWS; - for standard output.")
    ],
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Only the largest contributions, as reasons.")
    ] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="A column carried along; may be repeated.")
    ] = None,
    drop: Drop = None,
    form: Annotated[
        str | None, typer.Option("--format", help="parquet, csv or arrow; by default by suffix.")
    ] = None,
    raw_text: Annotated[
        bool, typer.Option("--raw-text", help="In CSV, leave texts alone that a spreadsheet would run.")
    ] = False,
    plots: Annotated[Path | None, typer.Option(help="A folder for pictures of the first rows.")] = None,
    n_jobs: Jobs = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Explain every row of a file or a pipe."""
    if form not in (None, "parquet", "csv", "arrow"):
        raise InputError(f"--format {short_text(form)}: choose parquet, csv or arrow.")
    chosen = answer_format(output, form)
    check_apart(output, file, rows)
    if plots is not None:
        check_plots()
    explainer = open_explainer(file)
    carried = tuple(ids or ())
    stream = open_rows(rows, csv_kinds(explainer, carried), tuple(drop or ()))
    kept: list[Any] = []
    batches = stream.tables if plots is None else _keep_first(stream, kept)
    out = "columns" if top_k is None else "top_k"
    begin, n_rows = time.perf_counter(), 0
    writing = open_answer(output, chosen, n_jobs != 1, raw_text)
    with named(stream.name), writing as writer, progress(stream.total, quiet) as advance:
        answers = explainer.explain_batches(batches, ids=carried, out=out, top_k=top_k or 1, n_jobs=n_jobs)
        for answer in answers:
            writer.write(answer)
            n_rows += answer.num_rows
            advance(answer.num_rows)
    seconds = time.perf_counter() - begin
    if plots is not None and kept and kept[0].num_rows:
        features = explainer.select(kept[0], ids=carried)
        draw_plots(explainer, features.to_pandas(), plots)
    if not quiet and output != PIPE:
        # The speed of a few rows would be that of starting up.
        speed = f", {n_rows / seconds:,.0f} a second" if n_rows >= _MANY_ROWS else ""
        typer.echo(f"{short_text(output)}: {n_rows:,} rows in {seconds:.1f} s{speed}", err=True)


for command in (report, drift, importance, cohorts, interactions, reasons):
    app.command()(command)


@app.command()
@reported
def info(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE.fshap]", help="A file that `fit` wrote.", show_default=False),
    ] = None,
    debug: Debug = False,
) -> None:
    """Tell what a .fshap file holds; without one, what is installed here."""
    print_lines(list(about().items()) if file is None else describe(file))


@app.command()
@reported
def check(
    file: File,
    rows: RowsFile,
    model: Annotated[Path, typer.Option(metavar="MODEL", help=_MODEL)],
    sample: Annotated[int, typer.Option(min=1, help="Rows to look at, from the first.")] = 1000,
    tolerance: Annotated[float, typer.Option(min=0.0, help="As a share of the scale of the outputs.")] = 1e-4,
    drop: Drop = None,
    trust_pickle: Trust = False,
    debug: Debug = False,
) -> None:
    """Check that explanations add up, and to what the model's own library predicts; exit code 3 if not."""
    explainer = open_explainer(file)
    opened = open_model(model, trust_pickle)
    stream = open_rows(rows, csv_kinds(explainer, ()), tuple(drop or ()))
    with named(stream.name):
        table = _first_rows(stream, sample)
        if not table.num_rows:
            raise InputError("has no rows to check.")
        gaps = largest_gaps(explainer, opened, table)
    for what, gap in zip(("additivity", "agreement with the model"), gaps, strict=True):
        verdict = "ok" if gap <= tolerance else "FAILED"
        typer.echo(f"{what}: {verdict}, largest difference {gap:.1e} of the scale, {table.num_rows:,} rows")
    if not all(gap <= tolerance for gap in gaps):
        raise typer.Exit(CHECK_FAILED)


@app.command()
@reported
def demo(debug: Debug = False) -> None:
    """Explain a model on real data, beside shap; pictures go to the folder demo/."""
    try:
        from fouriershap.demo.__main__ import main

        main()
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"the demo needs {error.name}, which is not installed: pip install 'fouriershap[demo]'"
        ) from error


def _keep_first(stream: Rows, kept: list[Any]) -> Iterator[Any]:
    for table in stream.tables:
        if not kept:
            kept.append(table.slice(0, MOST_ROWS))
        yield table


def _first_rows(stream: Rows, n_rows: int) -> Any:
    import pyarrow as pa

    tables, found = [], 0
    for table in stream.tables:
        tables.append(table.slice(0, n_rows - found))
        found += tables[-1].num_rows
        if found >= n_rows:
            break
    return pa.concat_tables(tables)
