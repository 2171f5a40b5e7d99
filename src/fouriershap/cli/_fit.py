"""The command `fit`: compile a model and a background into a file."""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fouriershap import (
    BlackBoxExplainer,
    Explainer,
    InputError,
    ModelWarning,
    OnnxModel,
    ProductExplainer,
    TreeExplainer,
    UnsupportedModelError,
)
from fouriershap._base.checks import import_optional
from fouriershap._base.messages import truncated_list, truncated_text
from fouriershap.cli._errors import add_file_name, progress_bar, report_errors
from fouriershap.cli._explainers import tree_kinds
from fouriershap.cli._functions import make_predict, trained_columns
from fouriershap.cli._models import ModelFile, open_model
from fouriershap.cli._options import (
    MODEL,
    ROWS,
    Debug,
    Drop,
    Jobs,
    Quiet,
    Trust,
    parse_groups,
    parse_output,
    parse_values,
)
from fouriershap.cli._output import check_folder, check_not_input
from fouriershap.cli._rows import as_pandas, open_rows, read_all

_BUDGET = 20_000


@report_errors
def fit(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL)],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.fshap", help="The file to write.")],
    background: Annotated[Path | None, typer.Option("-b", "--background", help=ROWS)] = None,
    path_dependent: Annotated[
        bool, typer.Option("--path-dependent", help="Use the training counts in the trees as background.")
    ] = False,
    drop: Drop = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="NAME=COLUMN,COLUMN",
            help="Columns as one player; may be repeated. Or encoded: the features that a Pipeline makes.",
        ),
    ] = None,
    model_output: Annotated[
        str, typer.Option(help="What is explained: raw, probability, response, or the number of an output.")
    ] = "raw",
    coalitions: Annotated[
        str | None, typer.Option(help="owen: the columns of each --group share its value.")
    ] = None,
    causal_order: Annotated[
        str | None, typer.Option(metavar="COLUMN,COLUMN;COLUMN", help="Groups of columns, causes first.")
    ] = None,
    confounded: Annotated[
        str | None,
        typer.Option(metavar="yes,no", help="Causal values: whether each group of causes is confounded."),
    ] = None,
    dependence: Annotated[
        str | None,
        typer.Option(help="Conditional values: auto, gaussian, copula, mixture, or data."),
    ] = None,
    precision: Annotated[str, typer.Option(help="Precision of the tables: single or double.")] = "single",
    budget: Annotated[
        int | None, typer.Option(min=1, help="Most queries of a black box; by default 20,000.")
    ] = None,
    answers: Annotated[Path | None, typer.Option(help="File that keeps the answers of a black box.")] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are labels; may be repeated.")
    ] = None,
    random_state: Annotated[int | None, typer.Option(help="Seed of the queries of a black box.")] = None,
    trust_pickle: Trust = False,
    n_jobs: Jobs = -1,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compile a model and a background into a file that explains rows.

    Tree models, linear models and kernel machines are read, and explained exactly. All others are black boxes: they are
    queried, and the fidelity of what is fitted to their answers is measured.
    """
    if (background is None) != path_dependent:
        raise InputError("give either --background ROWS or --path-dependent.")
    if output.suffix.lower() != ".fshap":
        raise InputError(f"{truncated_text(output)}: give the output the suffix .fshap.")
    check_folder(output)
    check_not_input(output, model, background, answers)
    opened = open_model(model, trust_pickle)
    asked = {"budget": budget, "answers": answers, "categorical": categorical, "random_state": random_state}
    queries = {name: value for name, value in asked.items() if value is not None}
    players = parse_groups(groups or []) | parse_values(coalitions, causal_order, confounded, dependence)
    exact = players | {"output": parse_output(model_output), "n_jobs": n_jobs}
    begin = time.perf_counter()
    if opened.reading is not None:
        if queries:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in queries)
            raise InputError(f"{truncated_text(model)}: is read exactly; {names} is for black boxes.")
        options = exact | {"precision": precision}
        explainer = _compile_trees(opened, background, tuple(drop or ()), options)
        explainer.save(output)
    else:
        refusal = InputError(
            f"{truncated_text(model)}: is a black box ({opened.why}), which needs --background ROWS, and has no "
            "--precision, no --model-output and no --dependence."
        )
        if background is None:
            raise refusal
        rows = open_rows(background, {}, tuple(drop or ()))
        with add_file_name(rows.name):
            table = read_all(rows)
            read = None if queries else _save_exact(opened, table, exact, precision, output)
            if read is None:
                if precision != "single" or model_output != "raw" or dependence is not None:
                    raise refusal
                explainer = _fit_black_box(opened, table, queries | players, n_jobs, quiet)
                explainer.save(output)
            else:
                explainer = read
    if not quiet:
        typer.echo(
            f"{truncated_text(output)}: {explainer!r} in {time.perf_counter() - begin:.1f} s", err=True
        )


def _compile_trees(
    opened: ModelFile, background: Path | None, drop: tuple[str, ...], options: dict[str, Any]
) -> Explainer:
    reading, rows = opened.reading, None
    assert reading is not None
    if background is not None:
        stream = open_rows(background, tree_kinds(reading.rules, reading.feature_names), drop)
        with add_file_name(stream.name):
            rows = reading.select(read_all(stream))
    # An unpickled estimator is compared with our copy of it; files of the libraries are not.
    explainer = TreeExplainer(reading if opened.estimator is None else opened.estimator, rows, **options)
    if opened.estimator is None:
        explainer.model_name = opened.path.name.encode("utf-8", "replace").decode("utf-8")
    return explainer


def _save_exact(
    opened: ModelFile, table: Any, options: dict[str, Any], precision: str, path: Path
) -> Explainer | None:
    """Read an estimator and save its explainer; None if it is a black box.

    A Pipeline whose steps cannot be saved is a black box as well: what is fitted to it takes the Pipeline's own rows.
    """
    model = opened.estimator
    if isinstance(model, OnnxModel) or not hasattr(model, "predict"):
        return None
    frame = _to_pandas(opened, table)
    constructors: tuple[Any, ...] = (partial(TreeExplainer, precision=precision), ProductExplainer)
    for construct in constructors:
        try:
            explainer: Explainer = construct(model, frame, **options)
            with warnings.catch_warnings():
                warnings.simplefilter("error", ModelWarning)
                explainer.save(path)
        except (UnsupportedModelError, ModelWarning):
            continue
        return explainer
    return None


def _fit_black_box(
    opened: ModelFile, table: Any, options: dict[str, Any], n_jobs: int, quiet: bool
) -> Explainer:
    import_optional("sklearn", "fitting a black box", "scikit-learn")
    model, frame = opened.estimator, _to_pandas(opened, table)
    if isinstance(model, OnnxModel):
        model.check_width(frame.shape[1])
    elif not callable(model) or hasattr(model, "predict"):
        model = make_predict(model)
    options = dict(options)
    most = options.pop("budget", _BUDGET)
    with progress_bar(most, quiet) as advance:
        queried = 0

        def step(done: int, budget: int) -> None:
            nonlocal queried
            advance(done - queried)
            queried = done

        explainer = BlackBoxExplainer(model, frame, n_jobs=n_jobs, progress=step, **options).fit(budget=most)
    if not quiet and explainer.fitted is not None:
        found = explainer.fitted.fidelity
        lines = [f"black box: {opened.why}; {found.n_queries:,} queries"]
        lines.append(f"fidelity: R² {found.r2:.4f} [{found.low:.4f}, {found.high:.4f}] on held-out answers")
        if found.shap is not None:
            interval = f"[{found.shap.low:.4f}, {found.shap.high:.4f}]"
            lines.append(
                f"certificate: R² {found.shap.r2:.4f} {interval} of SHAP values at {found.judged_on}"
            )
        typer.echo("\n".join(lines), err=True)
    return explainer


def _to_pandas(opened: ModelFile, table: Any) -> Any:
    """Return an Arrow table as the pandas frame that a model takes: its columns in its order, if it knows them."""
    import_optional("pandas", "querying a model", "pandas")
    model = opened.estimator
    wanted = model.columns if isinstance(model, OnnxModel) else trained_columns(model)
    if wanted is None:
        return as_pandas(table)
    lacking = [name for name in wanted if name not in table.column_names]
    if lacking:
        raise InputError(f"lacks the columns {truncated_list(lacking)}, which the model takes.")
    extra = [name for name in table.column_names if name not in wanted]
    if extra:
        raise InputError(
            f"has the columns {truncated_list(extra)}, which are unknown to the model: --drop them."
        )
    return as_pandas(table.select(list(wanted)))
