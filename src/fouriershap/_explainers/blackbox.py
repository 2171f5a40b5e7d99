"""Explainers of models that can only be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fouriershap._base.answers import AnswersOption
from fouriershap._base.checks import ProgressOption
from fouriershap._base.files import Contents
from fouriershap._base.headers import get_part, require
from fouriershap._blackbox.black_box_fit import BlackBoxFit
from fouriershap._blackbox.build import fit_black_box
from fouriershap._explainers.parts import Parts, name_of
from fouriershap._rows.inputs import InputAdapter, LevelEncoder

KIND = "black box"


def black_box_parts(
    predict: Callable[[Any], Any] | Any,
    background: Any,
    *,
    data: Any = None,
    rows: Any = None,
    method: str = "auto",
    budget: int = 20_000,
    categorical: Any = None,
    groups: Any = None,
    n_terms: int | None = None,
    max_degree: int | None = None,
    weights: ArrayLike | None = None,
    index: str = "shapley",
    compress_background: bool = True,
    min_fidelity: float = 0.95,
    random_state: int | None = None,
    n_jobs: int = -1,
    batch_size: int = 8192,
    progress: ProgressOption = None,
    device: str = "cpu",
    answers: AnswersOption = None,
) -> Parts:
    """Explain any model that can be called, from a fixed number of calls.

    The model is queried ``budget`` times, about rows put together from data rows; a representation is fitted to the
    answers and tested on answers that it has not seen. Then any number of rows is explained exactly with respect to
    the representation, without calling the model again. `Explainer.fit` is the `BlackBoxFit` that tells about it.

    Parameters
    ----------
    predict : callable, or object with predict_proba or predict
        Takes rows of the type of ``background``, returns (n_rows,) or (n_rows, n_outputs) numbers. A classifier is
        explained in its probabilities (if it has none, in its decision function).
    background : array or data frame
        Rows that stand for "feature unknown"; all of them are used.
    data : array or data frame, optional
        Rows from which queries are put together; by default the background. Give training rows if the background is
        small: the representation is faithful where the data are.
    rows : array or data frame, optional
        Rows that will be explained, if they are known: four fifths of the queries then lie between these and the
        background, so that the values of these rows are more accurate.
    method : {"auto", "enumerate", "waves", "trees", "blend", "swht", "members"}
        What is fitted. "enumerate" queries every combination of levels, and is exact; "waves" fits a sum of cosines
        (`Waves`), "trees" boosts trees on level codes; "blend" is both together, weighted by K-fold; "swht" finds
        the terms of the model's spectrum by a sparse Walsh-Hadamard transform, with three quarters of the budget,
        and fits their coefficients to hybrids; "members" is for models of models (stacked, calibrated, voting) whose
        members are trees: these are read, weighted by least squares, and trees are boosted on the rest.
        "auto" enumerates if the budget allows, else takes "members" if there are some, else the best by K-fold R^2
        of waves, trees and their blend; it tries "swht" if levels are few and an eighth of the budget shows that the
        model is sparse.
    budget : int
        Maximum number of rows that the model is asked about. "enumerate" asks fewer, unless the model is noisy: then
        all go into repeats.
    categorical : sequence of names or positions, optional
        Categorical columns, in addition to those recognised by type.
    groups : mapping or sequence, optional
        Columns that act as one player: ``{"name": [columns]}`` or one group name per column.
    n_terms : int, optional
        "swht": most terms of the spectrum, the constant not counted; by default as many as there is evidence for.
    max_degree : int, optional
        "swht": most bits that a term depends on; 5 by default.
    weights : array_like, optional
        A weight per background row.
    index : {"shapley", "banzhaf"}
        How coalitions are averaged; see `TreeExplainer`.
    compress_background : bool
        Whether a few products of marginals may stand for a background of more than 32 rows and more than seven to
        nine players when waves are explained; ``fidelity.background`` is what they miss. The time of a row then does
        not depend on the number of background rows.
    min_fidelity : float
        Warn (`FidelityWarning`) if the lower end of the interval of `Explainer.fidelity`, or the whole interval of
        ``fidelity.shap``, is below this R^2.
    random_state : int, optional
        The same number asks about the same rows and gives the same values.
    n_jobs : int
        Threads for explaining; -1 for all cores.
    batch_size : int
        Most rows per call of ``predict``.
    progress : bool or callable, optional
        Whether the fit reports progress; see `Explainer`. A function gets (queries done, budget).
    device : {"cpu", "jax"}
        Where rows are explained: by the native kernels, or under XLA. Files do not keep it; see `Explainer.to`.
    answers : path or mapping, optional
        Where the model's answers are kept as they come, and looked up before it is asked: the same call resumes
        where it stopped, even if the process was killed. The path of a SQLite file, or a dict of rows, as tuples of
        values with None for missing ones, to lists of answers, as tuples of numbers. ``random_state=None`` is the
        number that the file keeps; with a dict it is 0. Without it, any exception, Ctrl-C included, carries the
        answers: give ``answers=error.answers``. Once something is fitted, ``error.finish()`` makes an explainer of
        that, without another query.

    Returns
    -------
    Explainer

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> X = np.random.default_rng(0).integers(0, 2, size=(100, 6))
    >>> explainer = fs.BlackBoxExplainer(lambda x: x[:, 0] * (1 + x[:, 1]), X)
    >>> explainer.fit.method, explainer.fidelity.r2
    ('enumerate', 1.0)
    >>> explainer.shap_values(X[:2]).shape
    (2, 6)
    """

    def parts_of(fit: BlackBoxFit) -> Parts:
        # The fit reports its own progress; explaining is quick, and stays silent only if that was asked for.
        progress_of_calls = False if progress is False else None
        return Parts(
            KIND,
            _inputs(fit),
            fit.engine,
            output_names=fit.output_names,
            n_jobs=n_jobs,
            progress=progress_of_calls,
            fit=fit,
            model_name=name_of(predict),
        )

    return parts_of(
        fit_black_box(
            predict,
            background,
            data=data,
            rows=rows,
            method=method,
            budget=budget,
            categorical=categorical,
            groups=groups,
            n_terms=n_terms,
            max_degree=max_degree,
            weights=weights,
            index=index,
            compress_background=compress_background,
            min_fidelity=min_fidelity,
            random_state=random_state,
            n_jobs=n_jobs,
            batch_size=batch_size,
            progress=progress,
            device=device,
            answers=answers,
            wrap=parts_of,
        )
    )


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
    return Parts(KIND, _inputs(fit), fit.engine, fit=fit)
