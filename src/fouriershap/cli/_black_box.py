"""Fitting a black box from the command line."""

from __future__ import annotations

from typing import Any

from fouriershap import BlackBoxExplainer, InputError
from fouriershap._base.checks import need
from fouriershap._base.short import short_list
from fouriershap.cli._functions import OnnxModel, ask_estimator, wanted_columns
from fouriershap.cli._models import ModelFile
from fouriershap.cli._report import progress
from fouriershap.cli._rows import as_pandas

_BUDGET = 20_000


def fit_black_box(
    opened: ModelFile, table: Any, options: dict[str, Any], n_jobs: int | None, quiet: bool
) -> BlackBoxExplainer:
    """Ask a model about rows put together from an Arrow table, and fit what it says."""
    need("sklearn", "fitting a black box", "scikit-learn")
    model, frame = opened.estimator, frame_for(opened, table)
    if isinstance(model, OnnxModel):
        model.check_width(frame.shape[1])
    elif not callable(model) or hasattr(model, "predict"):
        model = ask_estimator(model)
    settings = {"budget": _BUDGET} | options
    with progress(settings["budget"], quiet) as advance:
        asked = 0

        def step(done: int, budget: int) -> None:
            nonlocal asked
            advance(done - asked)
            asked = done

        return BlackBoxExplainer(model, frame, n_jobs=n_jobs, progress=step, **settings)


def frame_for(opened: ModelFile, table: Any) -> Any:
    """An Arrow table as the pandas frame that a model takes."""
    need("pandas", "asking a model", "pandas")
    return as_pandas(_columns(table, opened.estimator))


def _columns(table: Any, model: Any) -> Any:
    """The columns that the model takes, in its order; all of them, where it does not say."""
    wanted = model.columns if isinstance(model, OnnxModel) else wanted_columns(model)
    if wanted is None:
        return table
    lacking = [name for name in wanted if name not in table.column_names]
    if lacking:
        raise InputError(f"lacks the columns {short_list(lacking)}, which the model takes.")
    extra = [name for name in table.column_names if name not in wanted]
    if extra:
        raise InputError(f"has the columns {short_list(extra)}, which the model does not know: --drop them.")
    return table.select(list(wanted))
