"""`BlackBox`: a model that can be asked, its background, and rows from which queries are put together."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.answer_file import open_store
from fouriershap._base.answers import AnswersOption
from fouriershap._base.checks import ProgressOption, check_int, check_weights
from fouriershap._base.errors import InputError, LabelWarning, UnsupportedModelError
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._base.parallel import count_jobs
from fouriershap._base.queries import QueryModel, check_random_state
from fouriershap._base.warn import warn
from fouriershap._blackbox.fidelity import noise_of, warn_if_noisy
from fouriershap._blackbox.hybrid_model import Hybrids
from fouriershap._libraries import find_function
from fouriershap._libraries.networks import network_advice, open_network
from fouriershap._rows.frames import densified, is_sparse, unmask
from fouriershap._rows.levels import LABEL, Encoding, make_encoding
from fouriershap._rows.players import check_groups
from fouriershap._rows.pool import Pool
from fouriershap._shapley.indices import INDICES, Index, semivalue
from fouriershap._shapley.players import players_and_index

Floats = NDArray[np.float64]
Function = Callable[[Any], Any]
_LOOKS = 20  # rows that are asked twice, for noise and for the time of a query


@dataclass(frozen=True, eq=False)
class Look:
    """What was seen of a model at first: answers to the background rows, noise, and the seconds of a query."""

    answers: Floats  # (n_background, n_outputs)
    noise: float  # see `Fidelity`
    variance: Floats  # (n_outputs,) of a repeated answer
    seconds: float


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A model that can be asked about rows put together from those at hand (see the module).

    Attributes
    ----------
    queries : QueryModel
    background : Pool
    weights : (n_background,) float64, optional
        They add up to 1.
    data : Pool, optional
        More rows from which queries are put together.
    column_player : (n_columns,) int32
    encoding : Encoding
        Features, levels and players, as background and data show them.
    categorical : names or positions of columns, optional
    output_names : tuple of str, optional
    index : Index
    random_state : int, optional
    model : object
        As the caller gave it.
    n_jobs : int
    """

    queries: QueryModel
    background: Pool
    weights: Floats | None
    data: Pool | None
    column_player: NDArray[np.int32]
    encoding: Encoding
    categorical: Any
    output_names: tuple[str, ...] | None
    index: Index
    random_state: Any
    model: Any
    n_jobs: int

    @cached_property
    def seed(self) -> int:
        """Where random numbers begin; first needed while the store of answers is open, which may keep it."""
        return int(np.random.default_rng(self.queries.resolve_seed(self.random_state)).integers(2**31))

    @property
    def shares(self) -> Floats:
        """(n_background,) weights that add up to 1."""
        n = self.background.n_rows
        return np.full(n, 1 / n) if self.weights is None else self.weights

    @property
    def n_players(self) -> int:
        return self.encoding.n_players

    def ask(self, pool: Pool, index: NDArray[np.int32]) -> Floats:
        """Return answers (n, n_outputs) to rows in which player j of row r is that of pool row ``index[r, j]``."""
        out = np.empty((len(index), self.queries.n_outputs))
        for at, answers in self.queries.answers_to(Hybrids(pool, index, self.column_player)):
            if not out.shape[1]:
                out = np.empty((len(index), answers.shape[1]))
            out[at] = answers
        return out

    def ask_rows(self, pool: Pool) -> Floats:
        """Return answers (n_rows, n_outputs) to rows as they are."""
        rows = np.arange(pool.n_rows, dtype=np.int32)
        return self.ask(pool, np.tile(rows[:, None], self.n_players))

    def look(self) -> Look:
        """Ask about the background rows, and about some of them again."""
        self.seed  # noqa: B018 - kept with the first answers
        begin = time.perf_counter()
        answers = self.ask_rows(self.background)
        asked = time.perf_counter()
        some = self.background.rows(np.arange(min(_LOOKS, self.background.n_rows)))
        again = self.ask_rows(some)
        paces = (asked - begin) / self.background.n_rows, (time.perf_counter() - asked) / some.n_rows
        seconds = min(paces)  # the first call may load something, and few rows share the time of a call
        first = answers[: some.n_rows]
        noise = noise_of(first, again, answers)
        warn_if_noisy(noise)
        variance = ((first - again) ** 2).mean(axis=0) / 2
        return Look(answers, noise, variance, seconds)

    def with_background(self, background: Pool, weights: Floats | None) -> BlackBox:
        """Return the same model against other rows."""
        encoding = encoding_of(
            background, self.data, self.column_player, self.encoding.player_names, self.categorical
        )
        return replace(self, background=background, weights=weights, encoding=encoding)

    def warn_of_new_labels(self, rows: Pool) -> None:
        """Warn of labels that neither background nor data have."""
        for feature in self.encoding.features:
            if feature.kind != LABEL:
                continue
            found = {label for label in rows.labels(feature.columns[0]) if label is not None}
            new = sorted(found - set(feature.levels), key=str)
            if new:
                warn(
                    f"X has labels in {truncated_repr(feature.name)} that neither background nor data have: "
                    f"{truncated_list(new)}. The model is asked about them as they are; if it does not know them, "
                    "its answers, and these values, may mean little.",
                    LabelWarning,
                )


def make_black_box(
    predict: Function | Any,
    background: Any,
    data: Any,
    categorical: Any,
    groups: Any,
    coalitions: str,
    causal_order: Any,
    weights: ArrayLike | None,
    index: str,
    random_state: int | None,
    n_jobs: int,
    batch_size: int,
    progress: ProgressOption,
    answers: AnswersOption,
) -> BlackBox:
    """Check the arguments of `BlackBoxExplainer`, which explains them; the model is not asked."""
    count_jobs(n_jobs)
    function, output_names = as_function(predict)
    if is_sparse(background):  # the model is asked in the caller's type
        function = _asked_in(function, type(background))
    against = Pool(densified(unmask(background)), "background")
    given = densified(unmask(data))
    more = None if given is None else against.like(given, "data")
    share = check_weights(weights, against.n_rows)
    if semivalue(index) not in (None, *INDICES.values()):
        raise InputError(
            f"index is {truncated_repr(index)}, which is not estimated for black boxes; use 'shapley' or 'banzhaf'."
        )
    (column_player, names), explained = players_and_index(
        groups, coalitions, causal_order, index, lambda groups: check_groups(groups, against.names)
    )
    encoding = encoding_of(against, more, column_player, names, categorical)
    store = open_store(answers, against.names)
    if store is not None:
        store.check_labels({f.name: f.levels for f in encoding.features if f.kind == LABEL})
    queries = QueryModel(function, "predict", check_int("batch_size", batch_size), None, progress, store)
    check_random_state(random_state)
    return BlackBox(
        queries,
        against,
        share,
        more,
        column_player,
        encoding,
        categorical,
        output_names,
        explained,
        random_state,
        predict,
        n_jobs,
    )


def encoding_of(
    background: Pool,
    data: Pool | None,
    column_player: NDArray[np.int32],
    player_names: tuple[str, ...],
    categorical: Any,
) -> Encoding:
    """Return the features and levels that rows show."""
    pool = background if data is None else background.joined(data)
    return make_encoding(pool, column_player, player_names, categorical)


def _asked_in(function: Function, kind: type) -> Function:
    return lambda rows: function(kind(rows))


def as_function(model: Any) -> tuple[Function, tuple[str, ...] | None]:
    """Return the function to explain, and the names of its outputs where they are classes.

    A classifier is explained in its probabilities, or, where it has none, in its decision function; any
    other object with ``predict`` in that; a plain function as it is.
    """
    if isinstance(model, type):
        raise UnsupportedModelError(
            f"predict is the class {model.__qualname__} itself; give a function or a fitted object."
        )
    network = open_network(model)
    if network is not None:
        return network, None
    advice = network_advice(model)
    if advice is not None:
        raise UnsupportedModelError(advice)
    classes = getattr(model, "classes_", None)
    if classes is not None and not len(classes):  # some regressors have the attribute, too
        classes = None
    names = None if classes is None else tuple(str(label) for label in classes)
    function = find_function(model)
    if function is not None:
        return function, None
    if hasattr(model, "predict_proba"):
        return model.predict_proba, names
    if names is not None:  # labels are not numbers that could be shared out
        if hasattr(model, "decision_function"):
            return model.decision_function, names if len(names) > 2 else None
        raise UnsupportedModelError(
            f"predict is a {type(model).__name__}, a classifier that only names a class. Give a function that "
            "returns numbers, such as `lambda rows: model.predict(rows) == label`."
        )
    if hasattr(model, "predict"):
        return model.predict, None
    if not callable(model):
        raise InputError(f"predict is a {type(model).__name__}; give a function, such as `model.predict`.")
    return model, None
