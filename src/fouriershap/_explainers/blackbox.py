"""`BlackBoxExplainer`: explains models that can only be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.answers import AnswersOption
from fouriershap._base.checks import ProgressOption
from fouriershap._base.files import Contents
from fouriershap._blackbox.black_box_fit import BlackBoxFit
from fouriershap._blackbox.build import fit_black_box
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._explainers.base import Explainer
from fouriershap._explainers.calling import in_shap_words
from fouriershap._explainers.explanation import without_single_output
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._waves.waves import Waves

if TYPE_CHECKING:
    from fouriershap._explainers.page_subjects import Subject


class BlackBoxExplainer(Explainer):
    """SHAP values of any model that can be called, from a fixed number of calls.

    The model is asked ``budget`` times, about rows put together from data rows; a representation is fitted to
    the answers and certified on answers that it has not seen. Then any number of rows is explained exactly
    with respect to the representation, without asking the model again.

    Parameters
    ----------
    predict : callable, or object with predict_proba or predict
        Takes rows of the type of ``background``, returns (n_rows,) or (n_rows, n_outputs) numbers. A
        classifier is explained in its probabilities (where it has none, in its decision function).
    background : array or data frame
        Rows that stand for "feature unknown"; all of them are used.
    data : array or data frame, optional
        Rows from which queries are put together; by default the background. Give training rows where the
        background is small: the representation is faithful where the data are.
    rows : array or data frame, optional
        Rows that will be explained, where they are known: four fifths of the queries then lie between these and the
        background, so that the values of just these rows are more accurate.
    method : {"auto", "exact", "waves", "trees", "blend", "swht", "members"}
        "exact" asks every combination of levels; "waves" fits a sum of cosines (`Waves`), "trees" boosts trees on
        level codes; "blend" is both together, by the weight that K folds ask for; "swht" finds the terms of the
        model's spectrum by a sparse Walsh-Hadamard transform, with three quarters of the budget, and fits their
        coefficients to hybrids; "members" is for models of models (stacked, calibrated, voting ones) whose members are
        trees: these are read, weighted by least squares, and trees are boosted on what is left.
        "auto" is exact where the budget allows, else "members" where there are some, else the best by K-fold R^2 of
        waves, of trees where a first look says that these come near, and of their blend; it tries "swht" where levels
        are few and an eighth of the budget shows that the model is sparse.
    budget : int
        Most rows that the model is asked. "exact" asks fewer, unless the model is noisy: then all go into repeats.
    categorical : sequence of names or positions, optional
        Columns of labels, beside those whose type says so.
    groups : mapping or sequence, optional
        Columns that act as one player: ``{"name": [columns]}`` or one group name per column.
    n_terms : int, optional
        "swht": most terms of the spectrum, the constant not counted; by default as many as there is evidence for.
    max_degree : int, optional
        "swht": most bits that a term depends on; 5 by default.
    weights : array_like, optional
        A weight per background row.
    index : {"shapley", "banzhaf"}
        Which average over coalitions: see `TreeExplainer`.
    compress_background : bool
        False explains waves against every row of the background. By default a few products of marginals stand for more
        than 32 rows of more than seven to nine players (fewer, the more waves there are), as many as keep what they
        miss (``fidelity.background``) to a tenth of what the fit itself misses, or to 0.0008 where that is more; then
        the time of a row does not depend on their number.
    min_fidelity : float
        R^2 below which a `FidelityWarning` is given: where the lower end of the interval of `fidelity` is, or the whole
        interval of ``fidelity.shap``.
    random_state : int, optional
        The same number asks the same rows and gives the same values.
    n_jobs : int, optional
        Threads for explaining; None for every core.
    batch_size : int
        Most rows per call of ``predict``.
    progress : bool or callable, optional
        False is silent; None draws a tqdm bar after two seconds, in a terminal or notebook that has it. True for a bar
        at once. It also names the stage (asking, fitting waves, fitting
        trees, choosing, compiling the background, certifying) and guesses what is left. Or a function of (queries
        done, budget); if it has a parameter ``stage``, it is told that, too: ``name``, ``share`` done and
        ``seconds_left``.
    device : {"cpu", "jax"}
        Where rows are explained: by the native kernels, or under XLA on whatever device JAX has. Files do not
        remember it; see `to`.
    answers : path or mapping, optional
        Where the model's answers are kept as they come, and looked up before it is asked: the same call goes on
        where it stopped, even if the process was killed. The path of a Parquet file (needs pyarrow), with the
        columns of the rows and "answer" (of several outputs "answer_0" and so on); until the call ends, new
        answers are in the ``.journal`` beside it. Or a dict of rows, as tuples of values with None for missing
        ones, to lists of answers, as tuples of numbers. ``random_state=None`` is the number that the file keeps;
        with a dict it is 0. `gap`, ``refine``, `certify` and `cube_fidelity` use it, too.
        Without it, whatever is raised, Ctrl-C included, carries the answers: give ``answers=error.answers``. Once
        something is fitted, ``error.finish()`` makes an explainer of that, without another query.

    Attributes
    ----------
    method : str
        The method that was used.
    fidelity : Fidelity
        R^2 on held-out hybrids with its interval; queries used; noise.
    candidates : tuple of Candidate
        The comparison: K-fold R^2 and time of each candidate.
    n_asked : int
        Rows that the model itself was asked so far. ``fidelity.n_queries`` counts those of the fit, also where
        ``answers`` knew them already.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> X = np.random.default_rng(0).integers(0, 2, size=(100, 6))
    >>> explainer = fs.BlackBoxExplainer(lambda x: x[:, 0] * (1 + x[:, 1]), X)
    >>> explainer.method, explainer.fidelity.r2
    ('exact', 1.0)
    >>> explainer.shap_values(X[:2]).shape
    (2, 6)
    """

    _kind = "black box explainer"

    @in_shap_words
    def __init__(
        self,
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
    ) -> None:
        self.progress = False if progress is False else None  # of explaining, which is quick
        self._set(
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
                wrap=self._of_fit,
            )
        )

    @classmethod
    def _of_fit(cls, fit: BlackBoxFit) -> BlackBoxExplainer:
        explainer = cls.__new__(cls)
        explainer._set(fit)
        return explainer

    def _set(self, fit: BlackBoxFit) -> None:
        self.fit, self._engine = fit, fit.engine
        self.player_names, self.feature_names = fit.player_names, fit.feature_names
        self.output_names, self.n_jobs = fit.output_names, fit.n_jobs

    def _with_engine(self, engine: Engine) -> BlackBoxExplainer:
        other = super()._with_engine(engine)
        other.fit = self.fit.with_engine(engine)
        return other

    def __repr__(self) -> str:
        return repr(self.fit).replace("BlackBoxFit", "BlackBoxExplainer")

    @property
    def fidelity(self) -> Fidelity:
        return self.fit.fidelity

    @property
    def representation(self) -> TreeEnsemble | Spectrum | Waves | tuple[TreeEnsemble, Waves]:
        """What stands for the model: waves or trees on codes, or a spectrum on bits; of a blend trees and waves."""
        return self.fit.representation

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        return self.fit.known_labels

    def predict(self, X: Any) -> NDArray[np.float64]:
        """What the representation says of rows: (n_rows,) or (n_rows, n_outputs)."""
        return without_single_output(self.fit.predict(self._read(X).codes))

    def with_background(self, background: Any, *, weights: ArrayLike | None = None) -> BlackBoxExplainer:
        """The same representation against another background; the model is not asked.

        So ``fidelity.shap``, which is about values against the first background, is None; `certify` asks.
        """
        fit = self.fit.with_background(background, weights)
        other = self._with_engine(fit.engine)
        other.fit = fit
        return other

    def _background_codes(self) -> tuple[NDArray[Any], NDArray[np.float64] | None] | None:
        return self.fit.background_codes or super()._background_codes()

    def _code_players(self) -> NDArray[np.int32]:
        return self.fit.encoding.player

    def _read(self, X: Any, name: str = "X") -> Rows:
        pool, codes = self.fit.encode(X, name)
        return Rows(codes, pool.native, self.fit.column_player, self.feature_names)

    def _subject(self, rows: Rows, budget: int) -> Subject:
        from fouriershap._explainers.page_subjects import blackbox_subject

        return blackbox_subject(self.fit, self._engine, rows, self.feature_names, budget)

    def _header(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return self.fit.to_contents()

    @classmethod
    def _from_contents(cls, contents: Contents) -> BlackBoxExplainer:
        return cls._of_fit(BlackBoxFit.from_contents(contents.arrays, contents.header))
