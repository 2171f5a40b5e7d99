"""The command `check`: whether an explainer in a file agrees with the model, by the library that made it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from fouriershap import (
    Explainer,
    InputError,
    ProductExplainer,
    Reading,
    TreeExplainer,
    UnsupportedModelError,
)
from fouriershap._base.checks import import_optional
from fouriershap._base.messages import error_text, truncated_repr
from fouriershap.cli._errors import CHECK_FAILED, add_file_name, report_errors
from fouriershap.cli._explainers import csv_kinds, open_explainer
from fouriershap.cli._models import ModelFile, open_model
from fouriershap.cli._options import MODEL, Debug, Drop, File, RowsFile, Trust
from fouriershap.cli._rows import Rows, as_pandas, open_rows


@report_errors
def check(
    file: File,
    rows: RowsFile,
    model: Annotated[Path, typer.Option(metavar="MODEL", help=MODEL)],
    sample: Annotated[int, typer.Option(min=1, help="Number of rows to check, from the first.")] = 1000,
    tolerance: Annotated[float, typer.Option(min=0.0, help="Relative to the scale of the outputs.")] = 1e-4,
    drop: Drop = None,
    trust_pickle: Trust = False,
    debug: Debug = False,
) -> None:
    """Check that explanations add up to the predictions of the model's own library; exit code 3 if not."""
    explainer = open_explainer(file)
    opened = open_model(model, trust_pickle)
    stream = open_rows(rows, csv_kinds(explainer, ()), tuple(drop or ()))
    with add_file_name(stream.name):
        table = _first_rows(stream, sample)
        if not table.num_rows:
            raise InputError("has no rows to check.")
        gaps = _largest_gaps(explainer, opened, table)
    for what, gap in zip(("additivity", "agreement with the model"), gaps, strict=True):
        verdict = "ok" if gap <= tolerance else "FAILED"
        typer.echo(f"{what}: {verdict}, largest difference {gap:.1e} of the scale, {table.num_rows:,} rows")
    if not all(gap <= tolerance for gap in gaps):
        raise typer.Exit(CHECK_FAILED)


def _first_rows(stream: Rows, n_rows: int) -> Any:
    tables, found = [], 0
    for table in stream.tables:
        tables.append(table.slice(0, n_rows - found))
        found += tables[-1].num_rows
        if found >= n_rows:
            break
    return pa.concat_tables(tables)


def _largest_gaps(explainer: Explainer, model: ModelFile, table: Any) -> tuple[float, float]:
    """Return the largest differences of base value plus SHAP values, relative to the scale of the outputs.

    From the output of the trees in the file, and from the predictions of the model's own library.
    """
    if explainer.kind not in ("trees", "products"):
        raise InputError(
            f"the file explains a {explainer.kind} model; only exact explainers can be checked from files."
        )
    if explainer.output != "raw":
        raise InputError(
            f"the file explains output={truncated_repr(explainer.output)}; check compares raw outputs."
        )
    rows = explainer.select(table)
    own = explainer.predict(rows).reshape(rows.num_rows, -1)
    theirs = _model_outputs(explainer, model, rows)
    if own.shape != theirs.shape:
        raise InputError(
            f"the model has {theirs.shape[1]} outputs, the file {own.shape[1]}: it was made from another model."
        )
    expected = np.atleast_1d(explainer.expected_value)
    sums = explainer.shap_values(rows).sum(axis=1).reshape(own.shape) + expected
    scale = max(float(np.abs(theirs).max()), float(np.abs(theirs - expected).max()), 1e-300)
    return _largest(sums - own) / scale, _largest(sums - theirs) / scale


def _model_outputs(explainer: Explainer, model: ModelFile, rows: Any) -> NDArray[np.float64]:
    """Return raw outputs (n_rows, n_outputs) by the model's library, or by a copy that was compared with it."""
    read, is_trees = model.reading, explainer.kind == "trees"
    if read is not None:
        n_features = len(explainer.feature_names)
        if not is_trees or read.n_features != n_features:
            raise InputError(
                f"the model has trees of {read.n_features} features, the file {explainer.kind} of {n_features}: it was "
                "made from another model."
            )
        return ask_library(read, model.path, rows)
    import_optional("pandas", "check", "pandas")
    frame = as_pandas(rows)
    build = TreeExplainer if is_trees else ProductExplainer
    try:  # with all that a Pipeline does before its model
        copy = build(model.estimator, frame, output="raw")
    except UnsupportedModelError as error:
        raise InputError(
            f"the model is a black box, or not {explainer.kind} ({model.why}), but the file holds {explainer.kind} of "
            "another model."
        ) from error
    if not copy.checked:
        raise InputError("the model's own library does not answer these rows.")
    return copy.predict(frame).reshape(rows.num_rows, -1)


def _largest(gap: NDArray[np.float64]) -> float:
    return float(np.abs(gap).max()) if np.isfinite(gap).all() else float("inf")


def ask_library(reading: Reading, path: Path, rows: Any) -> NDArray[np.float64]:
    """Return raw outputs (n_rows, n_outputs) of an Arrow table in the model's order of columns."""
    import_optional("pandas", "check", "pandas")
    library = reading.library
    assert library is not None
    if reading.model is None and library.load is not None:
        import_optional(
            library.package, "check, which predicts with the model's own library,", library.package
        )
    try:
        return reading.library_output(as_pandas(rows), path)
    except UnsupportedModelError:
        raise
    except Exception as error:
        raise InputError(
            f"{library.name} itself cannot predict these rows ({type(error).__name__}: {error_text(error)})."
        ) from error
