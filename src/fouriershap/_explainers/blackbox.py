"""`BlackBoxExplainer`: the front door for models that can only be asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
from fouriershap._blackbox.fidelity import Fidelity, Interval, warn_if_low
from fouriershap._blackbox.files import fitted_from_contents, fitted_to_contents
from fouriershap._blackbox.fit import CERTIFYING, COMPILING, Fitted, Fitter
from fouriershap._blackbox.hybrids import second_rows
from fouriershap._blackbox.oracle import Oracle
from fouriershap._blackbox.refine import (
    cube_fidelity,
    refine_cost,
    refined_values,
    true_outputs,
    values_against_all,
)
from fouriershap._blackbox.select import BLEND, CANDIDATES, Candidate
from fouriershap._blackbox.shap_certificate import MOST_ROWS, certify_values, reserved_queries
from fouriershap._blackbox.sum_surrogate import without_compression
from fouriershap._blackbox.surrogates import SpectrumSurrogate
from fouriershap._explainers.base import Explainer, in_shap_words, without_single_output
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._fourier.top_terms import TopTerms
from fouriershap._rows.frames import Rows, as_rows, densified, in_order, unmask
from fouriershap._rows.levels import LABEL, make_encoding
from fouriershap._rows.players import check_groups
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import INDICES
from fouriershap._shapley.sum import background_error
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._waves.waves import Waves

if TYPE_CHECKING:
    from fouriershap._explainers.page_subjects import Subject

METHODS = ("auto", "exact", *CANDIDATES, BLEND)


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
    exact_background : bool
        Explain waves against every row of the background. By default a few products of marginals stand for more
        than 32 rows of more than about ten columns, as many as keep what they miss (``fidelity.background``) to a
        tenth of what the fit itself misses; then the time of a row does not depend on their number.
    min_fidelity : float
        R^2 below which a `FidelityWarning` is given: where the lower end of the interval of `fidelity` is.
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
        with a dict it is 0. `gap`, ``refine`` and `cube_fidelity` use it, too.
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
    _fitted: Fitted

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
            self._oracle: Oracle | None = Oracle(asker, column_player)
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
            self._pool: Pool | None = pool
            self._background: tuple[Pool, NDArray[np.float64] | None] | None = (against, share)

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

    def _certify_fit(self, rows: Pool, queries: int) -> None:
        """What fitting left of the budget tells how good the values of rows are."""
        oracle, _ = self._model("certify")
        some = np.random.default_rng([self._seed, 2]).permutation(rows.n_rows)[:MOST_ROWS]
        interval = self._certify(rows.rows(some), queries, np.random.default_rng([self._seed, 3]), True)
        fidelity = replace(self._fitted.fidelity, shap=interval, n_queries=oracle.count)
        self._fitted = replace(self._fitted, fidelity=fidelity)

    def _certify(
        self, rows: Pool, queries: int, rng: np.random.Generator, is_sample: bool = False
    ) -> Interval:
        oracle, background = self._model("certify")
        values = self._engine.shap_values(self._fitted.encoding.encode(rows, "X"), self.n_jobs)
        settings = (queries, background_error(self._engine), rng, is_sample)
        return certify_values(oracle, self._fitted, rows, background, values, *settings)

    def certify(self, X: Any, *, queries: int) -> Interval:
        """R^2 of the SHAP values of rows against the model's own, estimated without bias from the model itself.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        queries : int
            Most that the model is asked: about ``4 * n_players`` for a row; where they are too few for all rows, some
            are left out.

        Returns
        -------
        Interval
            ``r2``, about the mean of all values, and the ends ``low`` and ``high`` of a 95 % interval.
        """
        if self._engine.index != "shapley":
            raise InputError(
                f"certify is for Shapley values; this explainer has {short(self._engine.index)}."
            )
        oracle, _ = self._model("certify")
        pool, _ = self._encode(X)
        with oracle.keeping():
            return self._certify(
                pool, check_whole("queries", queries), np.random.default_rng([self._seed, 4])
            )

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
    def n_asked(self) -> int:
        return 0 if self._oracle is None else self._oracle.n_asked

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

    def cube_fidelity(self, n: int = 1000) -> Interval:
        """R^2 at uniform points of the cube, for which the model is asked up to ``n`` times.

        Each level of each player is as likely as the next. It says nothing about SHAP values (`fidelity` does); it
        is what the literature on spectra reports.
        """
        oracle, _ = self._model("cube_fidelity")
        assert self._pool is not None
        rng = np.random.default_rng([self._seed, 1])
        with oracle.keeping():
            return cube_fidelity(oracle, self._fitted, self._pool, check_whole("n", n), rng)

    @property
    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        features = [f for f in self._fitted.encoding.features if f.kind == LABEL]
        return {self.feature_names[column]: f.levels for f in features for column in f.columns}

    def predict(self, X: Any) -> NDArray[np.float64]:
        """What the representation says of rows: (n_rows,) or (n_rows, n_outputs)."""
        return without_single_output(self._fitted.surrogate.predict(self._read(X).codes))

    def shap_values(
        self, X: Any, *, refine: int | None = None, spread_gap: bool = False, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Explain rows.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
            Or one row, as an array (n_columns,) or a pandas Series: its values come back without the first axis.
        refine : int, optional
            Pairs of permutations for which the model itself is asked, per row: accuracy does not end at the
            representation, nor at a compressed background, and from two pairs on values are exact where players
            interact in pairs only. Costs `refine_cost` queries.
        spread_gap : bool
            Share the `gap` of each row among its players, in proportion to the size of their values. Costs a
            query per row and, once, per background row.
        n_jobs : int, optional
            Threads; by default those of the explainer.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        if self._engine.index != "shapley" and (refine is not None or spread_gap):
            raise InputError(
                f"refine and spread_gap are for Shapley values; this explainer has {short(self._engine.index)}."
            )
        X, is_one = as_rows(X)
        pool, codes = self._encode(X)
        values = self._engine.shap_values(codes, self._jobs(n_jobs))
        if refine is not None:
            oracle, background = self._model("refine")
            pairs = check_whole("refine", refine)
            if background_error(self._engine) > 0:
                values = values_against_all(self._fitted, codes, background, self._jobs(n_jobs))
            rng = np.random.default_rng(self._seed)
            with oracle.keeping():
                values = refined_values(oracle, self._fitted, pool, codes, background, values, pairs, rng)
        elif spread_gap:
            gap = self._gap(pool, codes, values)
            size = np.abs(values) + 1e-300
            values = values + gap[:, None] * size / size.sum(axis=1, keepdims=True)
        values = without_single_output(values)
        return values[0] if is_one else values

    def gap(self, X: Any) -> NDArray[np.float64]:
        """Per row, the model's f(x) - mean f(background) less the sum of the values.

        Only Shapley values add up to the model. Asks it once per row and, the first time, once per background row.
        """
        pool, codes = self._encode(X)
        return without_single_output(self._gap(pool, codes, self._engine.shap_values(codes, self.n_jobs)))

    def _gap(
        self, pool: Pool, codes: NDArray[np.float64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self._engine.index != "shapley":
            raise InputError(
                f"only Shapley values add up; this explainer has index={short(self._engine.index)}."
            )
        oracle, background = self._model("gap")
        with oracle.keeping():
            outputs, expected = true_outputs(oracle, self._fitted.encoding, pool, codes, background)
        return np.asarray(outputs - expected - values.sum(axis=1))

    def refine_cost(self, n_rows: int, pairs: int) -> int:
        """Most queries that ``shap_values(X, refine=pairs)`` asks for ``n_rows`` rows."""
        _, (background, _) = self._model("refine_cost")
        return refine_cost(n_rows, pairs, len(self.player_names), background.n_rows)

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

    def _subject(self, rows: Rows, budget: int) -> Subject:
        from fouriershap._explainers.page_subjects import blackbox_subject

        return blackbox_subject(self._fitted, self._engine, rows, self.feature_names, budget)

    def _encode(self, X: Any, name: str = "X") -> tuple[Pool, NDArray[np.float64]]:
        pool = Pool(in_order(densified(X), self.feature_names), name)
        pool.check_names(self.feature_names, name)
        return pool, self._fitted.encoding.encode(pool, name)

    def _model(self, what: str) -> tuple[Oracle, tuple[Pool, NDArray[np.float64] | None]]:
        if self._oracle is None or self._background is None:
            raise InputError(f"{what} asks the model, which a loaded explainer does not have.")
        return self._oracle, self._background

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
