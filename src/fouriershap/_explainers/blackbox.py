"""Explainers of models that can only be called."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fouriershap._base.answers import AnswersOption
from fouriershap._base.checks import ProgressOption, check_int, check_number
from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import get_part, require
from fouriershap._base.messages import truncated_repr
from fouriershap._blackbox.black_box import make_black_box
from fouriershap._blackbox.black_box_fit import BlackBoxFit
from fouriershap._blackbox.build import fit_representation
from fouriershap._blackbox.live import Limits, LiveEngine
from fouriershap._explainers.parts import Parts, name_of
from fouriershap._rows.frames import densified
from fouriershap._rows.inputs import InputAdapter, LevelEncoder, PoolEncoder

KIND = "black box"


def black_box_parts(
    predict: Callable[[Any], Any] | Any,
    background: Any,
    *,
    data: Any = None,
    tolerance: float = 0.02,
    max_queries: int | None = None,
    max_seconds: float | None = 600.0,
    categorical: Any = None,
    groups: Any = None,
    coalitions: str = "whole",
    causal_order: Any = None,
    weights: ArrayLike | None = None,
    index: str = "shapley",
    random_state: int | None = None,
    n_jobs: int = -1,
    batch_size: int = 8192,
    progress: ProgressOption = None,
    answers: AnswersOption = None,
) -> Parts:
    """Explain any model that can be called: every SHAP value comes with a standard error.

    Nothing is asked now. When rows are explained, the model is asked about the background and then on until the
    standard error of each value is below ``tolerance`` times the row's largest value. What is asked is chosen by cost:
    all coalitions of a row (then values are exact), some of them, or what a representation misses that is fitted on
    the way. The values of a row always add up to the model's own output. `Explainer.plan` tells how long that takes;
    `Explainer.fit` fits a representation that explains rows without the model, and can be saved.

    Parameters
    ----------
    predict : callable, or object with predict_proba or predict
        Takes rows of the type of ``background``, returns (n_rows,) or (n_rows, n_outputs) numbers. A classifier is
        explained in its probabilities (if it has none, in its decision function).
    background : array or data frame
        Rows that stand for "feature unknown"; all of them are used.
    data : array or data frame, optional
        More rows from which a representation is fitted, such as training rows. `Explainer.fit` is as faithful as
        these rows are many.
    tolerance : float
        Largest standard error of a value, as a share of the row's largest value (or of a tenth of what that usually
        is, if this is more).
    max_queries : int, optional
        Most rows that the model is asked about in one call; values are then as good as their errors say, and a
        `FidelityWarning` says so. The first draws, about ``8 * n_players`` for a row, are made in any case.
    max_seconds : float or None
        Most seconds of one call, about.
    categorical : sequence of names or positions, optional
        Categorical columns, in addition to those recognised by type.
    groups : mapping or sequence, optional
        Columns that act as one player: ``{"name": [columns]}`` or one group name per column.
    coalitions, causal_order
        Owen values and asymmetric values, as for `TreeExplainer`.
    weights : array_like, optional
        A weight per background row.
    index : {"shapley", "banzhaf"}
        How coalitions are averaged; see `TreeExplainer`.
    random_state : int, optional
        The same number draws the same coalitions. Which way is the quickest also depends on the machine.
    n_jobs : int
        Threads for what is computed here; -1 for all cores.
    batch_size : int
        Most rows per call of ``predict``.
    progress : bool or callable, optional
        Whether calls report progress; see `Explainer`. A function gets (queries done, queries expected).
    answers : path or mapping, optional
        Where the model's answers are kept as they come, and looked up before it is asked: the same call resumes
        where it stopped, even if the process was killed. The path of a SQLite file, or a dict of rows, as tuples of
        values with None for missing ones, to lists of answers, as tuples of numbers. ``random_state=None`` is the
        number that the file keeps; with a dict it is 0. Without it, any exception carries the answers to its last
        queries: give ``answers=error.answers``.

    Returns
    -------
    Explainer

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> explainer = fs.BlackBoxExplainer(lambda x: x[:, 0] * x[:, 1], X)
    >>> values, errors = explainer.shap_values(X[:3], errors=True)
    >>> values.shape, bool(errors.max() < 0.02 * np.abs(values).max())
    ((3, 6), True)
    """
    limits = Limits(
        _check_tolerance(tolerance),
        math.inf if max_queries is None else float(check_int("max_queries", max_queries)),
        math.inf if max_seconds is None else check_number("max_seconds", max_seconds, 0),
    )
    box = make_black_box(
        predict,
        background,
        data,
        categorical,
        groups,
        coalitions,
        causal_order,
        weights,
        index,
        random_state,
        n_jobs,
        batch_size,
        progress,
        answers,
    )
    against, player = box.background, box.column_player
    return Parts(
        KIND,
        InputAdapter(PoolEncoder(against), against.names, player, box.encoding.player_names),
        LiveEngine(box, limits),
        output_names=box.output_names,
        n_jobs=n_jobs,
        # The queries report their own progress.
        progress=False if progress is False else None,
        model_name=name_of(predict),
        fit=_fit_parts,
    )


def _fit_parts(parts: Parts, rows: Any, options: dict[str, Any]) -> Parts:
    """Return the parts of an explainer of a representation that is fitted now."""
    engine: Any = parts.engine  # a `LiveEngine`: these are parts of one
    pool = None if rows is None else engine.box.background.like(densified(rows), "rows")

    def parts_of(fit: BlackBoxFit) -> Parts:
        names, jobs = fit.output_names, parts.n_jobs
        return Parts(
            KIND,
            _inputs(fit),
            fit.engine,
            names,
            parts.given_names,
            jobs,
            parts.progress,
            fitted=fit,
            model_name=parts.model_name,
        )

    with engine.memory.lock:
        return parts_of(fit_representation(engine.box, pool, **options, wrap=parts_of))


def _check_tolerance(tolerance: Any) -> float:
    value = check_number("tolerance", tolerance)
    if not 0 < value <= 1:
        raise InputError(f"tolerance is {truncated_repr(tolerance)}; give a number above 0, up to 1.")
    return value


def _inputs(fit: BlackBoxFit) -> InputAdapter:
    encoder = LevelEncoder(fit.encoding, fit.feature_names, fit.level_choices)
    return InputAdapter(encoder, fit.feature_names, fit.column_player, fit.player_names)


def black_box_parts_from_contents(contents: Contents) -> Parts:
    """Build the parts of a saved explainer."""
    parts = (get_part(contents.header, name) for name in ("engine", "fit", "inputs"))
    header = {key: value for part in parts for key, value in part.items()}
    fit = BlackBoxFit.from_contents(
        contents.arrays, header | {"output_names": contents.header["output_names"]}
    )
    player = contents.arrays["input_player"]
    require(np.array_equal(player, fit.column_player), "its fit has other players")
    return Parts(KIND, _inputs(fit), fit.engine, fitted=fit)
