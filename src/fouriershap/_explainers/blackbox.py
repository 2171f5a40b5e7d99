"""`BlackBoxExplainer`: the front door for models that can only be asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.asking.asker import Asker
from fouriershap._base.asking.store import Given
from fouriershap._base.checks import (
    Progress,
    check_choice,
    check_device,
    check_number,
    check_weights,
    check_whole,
)
from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import require, take
from fouriershap._base.parallel import count_jobs
from fouriershap._base.short import short
from fouriershap._base.threads import one_blas_thread
from fouriershap._blackbox.arguments import (
    answer_store,
    as_function,
    asked_in,
    check_limits,
    join,
    with_known,
)
from fouriershap._blackbox.bit_code import bit_names
from fouriershap._blackbox.candidates.members import find_members
from fouriershap._blackbox.fidelity import Fidelity, warn_if_low
from fouriershap._blackbox.files import fitted_from_contents, fitted_to_contents
from fouriershap._blackbox.fit import CERTIFYING, COMPILING, Fitted, Fitter
from fouriershap._blackbox.hybrids import second_rows
from fouriershap._blackbox.oracle import Oracle
from fouriershap._blackbox.select import BLEND, CANDIDATES, Candidate
from fouriershap._blackbox.shap_certificate import reserved_queries
from fouriershap._blackbox.sum_surrogate import without_compression
from fouriershap._blackbox.surrogates import SpectrumSurrogate
from fouriershap._explainers.asking_again import AskingAgain
from fouriershap._explainers.calling import in_shap_words
from fouriershap._explainers.explanation import without_single_output
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._fourier.top_terms import TopTerms
from fouriershap._rows.frames import Rows, densified, unmask
from fouriershap._rows.levels import LABEL, make_encoding
from fouriershap._rows.players import check_groups
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import INDICES
from fouriershap._shapley.sum import background_error
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._waves.waves import Waves

METHODS = ("auto", "exact", *CANDIDATES, BLEND)


class BlackBoxExplainer(AskingAgain):
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
    exact_background : bool
        Explain waves against every row of the background. By default a few products of marginals stand for more
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
        exact_background: bool = False,
        min_fidelity: float = 0.95,
        random_state: int | None = None,
        n_jobs: int | None = None,
        batch_size: int = 8192,
        progress: Progress = None,
        device: str = "cpu",
        answers: Given = None,
    ) -> None:
        check_choice("method", method, METHODS)
        check_choice("index", index, INDICES)
        check_device(device)
        limits = check_limits(n_terms, max_degree, method)
        budget, min_fidelity = check_whole("budget", budget), check_number("min_fidelity", min_fidelity)
        function, output_names = as_function(predict)
        function, background = asked_in(function, background), densified(unmask(background))
        against = Pool(background, "background")
        pool, first = join(against, densified(unmask(data)))
        second = second_rows(against.n_rows, pool.n_rows)
        pool, known = with_known(pool, against, densified(unmask(rows)))
        share = check_weights(weights, against.n_rows)
        count_jobs(n_jobs)
        certified = known if len(known) else first  # rows whose values are to be right
        column_player, names = np.arange(len(against.names), dtype=np.int32), against.names
        if groups is not None:
            column_player, names = check_groups(groups, against.names)
        encoding = make_encoding(pool, column_player, names, categorical)
        n_certified = len(certified) if index == "shapley" else 0
        reserved = reserved_queries(budget, encoding.n_players, n_certified)
        store = answer_store(answers, encoding, against.names)
        asker = Asker(function, "predict", check_whole("batch_size", batch_size), budget, progress, store)
        self.progress = False if progress is False else None  # of explaining, which is quick
        with asker.keeping():
            seed = int(np.random.default_rng(asker.settle(random_state)).integers(2**31))
            self._oracle = Oracle(asker, column_player)
            fitter = Fitter(
                oracle=self._oracle,
                pool=pool,
                first_rows=first,
                second_rows=second,
                known_rows=known,
                n_background=against.n_rows,
                reserved=reserved,
                encoding=encoding,
                budget=budget,
                seed=seed,
                limits=limits,
                n_jobs=n_jobs,
                members=None if callable(predict) else find_members(predict, encoding),
            )
            self._seed = seed
            self._pool = pool
            self._background = (against, share)

            def compile_into(explainer: BlackBoxExplainer, fitted: Fitted) -> None:
                asker.report.enter(COMPILING)
                if exact_background:
                    fitted = replace(fitted, surrogate=without_compression(fitted.surrogate))
                codes = fitted.encoding.encode(against, "background")
                with one_blas_thread():
                    engine = fitted.surrogate.compile(codes, share, index)
                engine = engine if device == "cpu" else engine.to(device)
                explainer._set(fitted, engine, against.names, n_jobs, output_names)

            with self._finishing(fitter, compile_into):
                fitted = fitter.fit(method)
                compile_into(self, fitted)
                if fitter.reserved and fitted.method != "exact":
                    asker.report.enter(CERTIFYING, fitter.reserved)
                    self._certify_fit(pool.rows(certified), fitter.reserved)
            warn_if_low(self.fidelity, min_fidelity, self.method)

    @contextlib.contextmanager
    def _finishing(
        self, fitter: Fitter, compile_into: Callable[[BlackBoxExplainer, Fitted], None]
    ) -> Iterator[None]:
        """Whatever is raised within, once something is fitted, has a function `finish` that makes an explainer."""

        def finish() -> BlackBoxExplainer:
            other = type(self).__new__(type(self))
            for name in ("_oracle", "_pool", "_background", "_seed"):
                setattr(other, name, getattr(self, name))
            compile_into(other, fitter.finish())
            return other

        try:
            yield
        except BaseException as error:
            if fitter.has_fits:
                with contextlib.suppress(AttributeError):  # a property of the caller's own
                    error.finish = finish  # type: ignore[attr-defined]
                error.add_note(
                    "`.finish()` of this exception makes an explainer of what is fitted already, without a query."
                )
            raise

    def _set(
        self,
        fitted: Fitted,
        engine: Engine,
        names: tuple[str, ...],
        n_jobs: int | None,
        output_names: tuple[str, ...] | None,
    ) -> None:
        self._fitted, self._engine, self.output_names = fitted, engine, output_names
        self.player_names = fitted.encoding.player_names
        self.feature_names, self.n_jobs = names, n_jobs

    def __repr__(self) -> str:
        f = self.fidelity
        cube = "" if f.cube is None else f"{f.cube.r2:.4f} on the cube, "
        shap = "" if f.shap is None else f"SHAP R^2 {f.shap.r2:.4f} [{f.shap.low:.4f}, {f.shap.high:.4f}], "
        return (
            f"BlackBoxExplainer(method={self.method!r}, {shap}R^2 {f.r2:.4f} [{f.low:.4f}, {f.high:.4f}], {cube}"
            f"{f.n_queries:,} queries, {len(self.player_names)} players)"
        )

    @property
    def method(self) -> str:
        return self._fitted.method

    @property
    def fidelity(self) -> Fidelity:
        return replace(self._fitted.fidelity, background=background_error(self._engine))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return self._fitted.candidates

    @property
    def representation(self) -> TreeEnsemble | Spectrum | Waves | tuple[TreeEnsemble, Waves]:
        """What stands for the model: waves or trees on codes, or a spectrum on bits; of a blend trees and waves."""
        found: TreeEnsemble | Spectrum | Waves = self._fitted.surrogate.representation
        return found

    @property
    def bit_names(self) -> tuple[str, ...]:
        """Where the representation is a spectrum: for each bit, a name that says where it is 1.

        "age" of a column of 0 and 1, "temp=high", "gear in {2, 4}"; "weight[bit 2]" where levels are many.
        """
        return bit_names(self._spectral().code, self._fitted.encoding, self.feature_names)

    def top_terms(self, k: int = 10) -> TopTerms:
        """The largest terms of the spectrum, by the names of players and levels: see `Spectrum.top_terms`."""
        return self._spectral().spectrum.top_terms(k, self.bit_names)

    def _spectral(self) -> SpectrumSurrogate:
        surrogate = self._fitted.surrogate
        if not isinstance(surrogate, SpectrumSurrogate):
            raise InputError(
                f"method {short(self.method)} represents the model by waves or trees, which have no bits. Use "
                "method='swht' or, where levels are few, 'exact'."
            )
        return surrogate

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        features = [f for f in self._fitted.encoding.features if f.kind == LABEL]
        return {self.feature_names[column]: f.levels for f in features for column in f.columns}

    def predict(self, X: Any) -> NDArray[np.float64]:
        """What the representation says of rows: (n_rows,) or (n_rows, n_outputs)."""
        return without_single_output(self._fitted.surrogate.predict(self._read(X).codes))

    def with_background(self, background: Any, *, weights: ArrayLike | None = None) -> BlackBoxExplainer:
        """The same representation against another background; the model is not asked.

        So ``fidelity.shap``, which is about values against the first background, is None; `certify` asks.
        """
        rows, codes = self._encode(unmask(background), "background")
        share = check_weights(weights, rows.n_rows)
        other = self._with_engine(self._engine.with_background(codes, share))
        other._background = (rows, share)
        other._fitted = replace(self._fitted, fidelity=replace(self._fitted.fidelity, shap=None))
        return other

    def _background_codes(self) -> tuple[NDArray[Any], NDArray[np.float64] | None] | None:
        if self._background is None:
            return super()._background_codes()
        pool, share = self._background
        return self._fitted.encoding.encode(pool, "background"), share

    def _code_players(self) -> NDArray[np.int32]:
        return self._fitted.encoding.player

    def _read(self, X: Any, name: str = "X") -> Rows:
        pool, codes = self._encode(X, name)
        return Rows(codes, pool.native, self._fitted.encoding.column_player, self.feature_names)

    def _header(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, header = fitted_to_contents(self._fitted)
        return arrays, header | {"output_names": self.output_names}

    @classmethod
    def _from_contents(cls, contents: Contents) -> BlackBoxExplainer:
        explainer, header = cls.__new__(cls), contents.header
        fitted, engine = fitted_from_contents(contents.arrays, header)
        outputs = take(header, "output_names", tuple[str, ...] | None)
        require(outputs is None or len(outputs) == engine.n_outputs, "it has not as many names as outputs")
        explainer._set(fitted, engine, tuple(header["feature_names"]), None, outputs)
        explainer._oracle, explainer._background, explainer._pool, explainer._seed = None, None, None, 0
        return explainer
