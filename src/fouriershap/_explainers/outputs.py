"""Outputs beyond the margin: probabilities, responses of log links, and losses of tree models.

Two ways lead there. *Rescaled* values, shap's: the SHAP values of the margin against one background row, times
the slope of the line from that row's output to the explained row's; then the mean over the background. They add
up, and cost a walk per pair of rows, but they share the margin's mistakes: what only bends the output is
attributed in proportion to the margin. *Exact* values are the SHAP values of the output itself, as a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_floats, check_choice
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.parallel import for_each_block
from fouriershap._base.queries import QueryModel
from fouriershap._base.short import short, short_text
from fouriershap._blackbox.candidates.members import members_on_codes
from fouriershap._blackbox.fidelity import Fidelity, warn_if_low
from fouriershap._blackbox.fit import Fitter
from fouriershap._blackbox.hybrid_model import HybridModel
from fouriershap._blackbox.transform import Limits
from fouriershap._explainers.links import (
    OUTPUTS,
    Floats,
    exponential,
    exponential_less_one,
    shares,
    shares_of_sigmoids,
    sigmoid,
    softmax,
)
from fouriershap._rows.levels import LABEL, Encoding, make_encoding
from fouriershap._rows.pool import Pool
from fouriershap._shapley.coalitions import CoalitionPairs, CoalitionSets, coalition_values, values_of_game
from fouriershap._shapley.engine import Contents, Engine
from fouriershap._shapley.orders.sets import Keys, RecodedSets, SetEngine, sets_of
from fouriershap._shapley.pairs import PairEngine, RecodedPairs
from fouriershap._shapley.trees import walk
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.plan import TreePlan
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.level_sets import by_level

_LEAST_FIDELITY = 0.95
_BUDGET = 20_000  # queries of the probability, which the trees answer quickly
_BATCH = 8192
_ROWS = 64  # rows per job
MOST_HYBRIDS = 1 << 18  # of one row: coalitions times background rows
_WAYS_OUT = (
    "fewer players by groups= and a smaller background (under 16 players the definition may be affordable), or "
    "BlackBoxExplainer(model.predict_proba, background, budget=...) with a larger budget"
)
_NOT_RESCALED = (
    "rescaled values (of a probability, a response or a loss) have no interactions. Use output='raw', or "
    "exact=True."
)
_SAME = 1e-12  # margins closer than this, relative, count as equal


def _logistic_loss(margin: Floats, y: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, margin) - y * margin)


def _squared_loss(margin: Floats, y: Floats) -> Floats:
    return np.asarray((margin - y) ** 2)


# What a raw output is turned into, element by element, and from all outputs of a row together.
_ELEMENTWISE: dict[str, Callable[[Floats], Floats]] = {
    "binary": sigmoid,
    "log": exponential,
    "log1p": exponential_less_one,
}
_TOGETHER: dict[str, Callable[[Floats], Floats]] = {
    "multiclass": softmax,
    "one against the rest: binary": shares_of_sigmoids,
    "one against the rest: probability": shares,
}
_SAME_AS_RAW = {
    "probability": ("probability",),
    "response": ("probability", "squared_error", "regression"),
}
_LOSSES = {"binary": _logistic_loss, "squared_error": _squared_loss}


def _links(output: str) -> dict[str, Callable[[Floats], Floats]]:
    """Link by objective; log links are a response, and no probability."""
    links = _ELEMENTWISE | _TOGETHER
    return (
        links if output == "response" else {o: link for o, link in links.items() if not o.startswith("log")}
    )


def _rescaling(output: str, objective: str) -> Callable[[Floats, Floats], Floats] | None:
    """The function of margins and labels whose values are the margin's, rescaled; None where there is none."""
    if output == "log_loss":
        return _LOSSES.get(objective)
    link = _links(output).get(objective) if objective in _ELEMENTWISE else None
    return None if link is None else partial(_of_margin, link)


def _of_margin(link: Callable[[Floats], Floats], margin: Floats, y: Floats) -> Floats:
    return link(margin)


def check_output(engine: TreeEngine, output: str, exact: bool) -> None:
    """Raise unless this output of this model can be explained, naming the way out."""
    check_choice("output", output, OUTPUTS)
    if not isinstance(exact, bool | np.bool_):
        raise InputError(f"exact is {short(exact)}; give True or False.")
    objective = engine.ensemble.objective
    if exact and output not in ("probability", "response"):
        raise InputError(
            f"exact=True is for output='probability' and 'response'; got output={short(output)}."
        )
    if output == "raw" or objective in _SAME_AS_RAW.get(output, ()):
        return
    if engine.background.rows is None:
        raise InputError(
            f"output={short(output)} compares with background rows; give a background, or use output='raw'."
        )
    if not exact and engine.index != "shapley":
        raise InputError(
            f"rescaled values keep sums, which index={short(engine.index)} does not have; use output='raw' "
            "or exact=True."
        )
    known = _links(output).get(objective) if exact else _rescaling(output, objective)
    if known is None:
        _refuse(engine, output, objective)


def _refuse(engine: TreeEngine, output: str, objective: str) -> None:
    model = f"{engine.ensemble!r} (objective {short_text(objective or 'unknown')})"
    if output in ("probability", "response") and objective in _TOGETHER:
        raise UnsupportedModelError(
            f"{model}: a class probability depends on the margins of all classes, so no one slope rescales it. Use "
            f"output={short(output)}, exact=True: SHAP values of the probabilities themselves."
        )
    if output == "probability" and objective in ("log", "log1p"):
        raise UnsupportedModelError(
            f"{model} predicts an exponential of its raw output, and no probability. Use output='response'."
        )
    raise UnsupportedModelError(
        f"{model} has no output={short(output)} that is known here. Explain output='raw', or give "
        "fouriershap.BlackBoxExplainer a function that returns what you want explained."
    )


@dataclass(frozen=True, eq=False)
class BeyondTheMargin:
    """What all outputs of trees beyond the margin share (see `Engine`); rows are cleaned."""

    engine: TreeEngine  # that of the margin
    is_fitted: ClassVar[bool] = False  # whether values are a representation's, and not the output's own

    @property
    def n_players(self) -> int:
        return self.engine.n_players

    @property
    def n_outputs(self) -> int:
        return self.engine.n_outputs

    @property
    def index(self) -> str:
        return self.engine.index

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def background(self) -> NDArray[Any]:
        rows = self.engine.background.rows
        assert rows is not None  # `check_output` has seen to it
        return rows

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> Floats:
        raise NotImplementedError

    @property
    def expected(self) -> Floats:
        outputs = self.predict(self.background)
        return np.asarray(np.average(outputs, axis=0, weights=self.engine.background.weights))

    def values(self, rows: NDArray[Any], n_jobs: int | None) -> Floats:
        raise NotImplementedError

    def shap_values(
        self, rows: NDArray[Any], n_jobs: int | None = None, outputs: Floats | None = None
    ) -> Floats:
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return self.values(rows, n_jobs)

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        raise NotImplementedError

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        return replace(self, engine=self.engine.with_background(rows, weights))

    def to(self, device: str) -> Engine:
        if device != "cpu":
            raise InputError(
                f"device={short(device)} reads tables, and only output='raw' has some; use device='cpu'."
            )
        return self

    def build(self, n_jobs: int | None = None) -> None:
        """Nothing: there are no tables of these."""

    def plan(self, n_rows: int | None) -> TreePlan:
        return self.engine.plan(n_rows)

    def describe(self) -> dict[str, Any]:
        return self.engine.describe()

    def to_contents(self, interactions: bool) -> Contents:
        return self.engine.to_contents(interactions, background=True)


@dataclass(frozen=True, eq=False)
class Rescaled(BeyondTheMargin):
    """Values of a function of the margin, rescaled per background row, as shap defines them."""

    transform: Callable[[Floats, Floats], Floats]  # of margins and labels
    needs_labels: bool = False  # whether the function is a loss
    labels: Floats | None = None  # (n_rows,) of the rows that are explained, see `labelled`

    def labelled(self, y: ArrayLike | None, n_rows: int) -> Rescaled:
        """The same for rows with these labels."""
        if y is None:
            raise InputError("output='log_loss' needs the labels of the rows: shap_values(X, y).")
        labels = as_floats(y, "y").reshape(-1)
        if len(labels) != n_rows:
            raise InputError(f"y has {len(labels)} labels for {n_rows} rows.")
        if self.engine.ensemble.objective == "binary" and not np.isin(labels, (0, 1)).all():
            raise InputError("y holds labels other than 0 and 1; the model is a binary classifier.")
        return replace(self, labels=labels)

    def _labels_of(self, rows: NDArray[Any]) -> Floats:
        if self.labels is None and self.needs_labels:
            raise InputError("output='log_loss' needs the labels of the rows: shap_values(X, y).")
        return np.zeros((len(rows), 1)) if self.labels is None else self.labels[:, None]

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> Floats:
        return self.transform(self.engine.predict(rows, n_jobs), self._labels_of(rows))

    @property
    def expected(self) -> Floats:
        """(n_outputs,); of a loss (n_rows, n_outputs), since it depends on the label."""
        if not self.needs_labels:
            return self.expected_with(0.0)
        if self.labels is None:
            raise InputError(
                "the mean log_loss depends on the label: ask expected_loss(y), or shap_values(X, y) about rows."
            )
        distinct, which = np.unique(self.labels, return_inverse=True)
        means = [self.expected_with(float(label)) for label in distinct]
        return np.reshape(means, (len(distinct), self.n_outputs))[which]

    def expected_with(self, label: float) -> Floats:
        """Mean over the background, (n_outputs,), with this label for all of it."""
        outputs = self.transform(self.engine.predict(self.background), np.asarray(label))
        return np.asarray(np.average(outputs, axis=0, weights=self.engine.background.weights))

    def values(self, rows: NDArray[Any], n_jobs: int | None) -> Floats:
        model, background = self.engine.model, self.engine.background
        codes, labels = background.codes, self._labels_of(rows)
        assert codes is not None
        n_background = codes.shape[1]
        share = np.full(n_background, 1 / n_background) if background.weights is None else background.weights
        others, margins = self.engine.predict(self.background, n_jobs), self.engine.predict(rows, n_jobs)
        mine = model.coded.book.encode(rows)
        out = np.zeros((len(rows), self.n_players, self.n_outputs))

        def work(first: int, last: int) -> None:
            part = np.ascontiguousarray(mine[:, first:last])
            margin, label = margins[first:last], labels[first:last]
            outputs = self.transform(margin, label)
            for b in range(n_background):
                slope = _slope(margin - others[b], outputs - self.transform(others[b][None], label), margin)
                one = np.ascontiguousarray(codes[:, b : b + 1])
                out[first:last] += (
                    share[b] * slope[:, None] * walk.interventional(model.walk_trees, part, one)
                )

        for_each_block(work, len(rows), _ROWS, n_jobs)
        return out

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        raise InputError(_NOT_RESCALED)

    def sets(self, index: str, order: int, wanted: Keys | None) -> SetEngine:
        """See `HigherOrders`."""
        raise InputError(_NOT_RESCALED)


def _slope(change: Floats, output_change: Floats, scale: Floats) -> Floats:
    """Change of the output per change of the margin; 1, as in shap, where the margins are the same."""
    same = np.abs(change) <= _SAME * np.maximum(np.abs(scale), 1.0)
    return np.where(same, 1.0, output_change / np.where(same, 1.0, change))


@dataclass(frozen=True, eq=False)
class ByDefinition(BeyondTheMargin):
    """SHAP values of the probabilities themselves, or responses, over all coalitions: for few players and rows."""

    link: Callable[[Floats], Floats]

    def predict(self, rows: NDArray[Any], n_jobs: int | None = 1) -> Floats:
        return self.link(self.engine.predict(rows, n_jobs))

    def _game(self, row: NDArray[Any]) -> Floats:
        weights, player = self.engine.background.weights, self.engine.model.player
        return coalition_values(self.predict, row, self.background, player, weights)

    def values(self, rows: NDArray[Any], n_jobs: int | None) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))

        def work(first: int, last: int) -> None:
            for r in range(first, last):
                out[r] = values_of_game(self._game(rows[r]), self.n_players, self.index)

        for_each_block(work, len(rows), 1, n_jobs)
        return out

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        return _exactly(self.engine.with_background(rows, weights), self.link)

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        return CoalitionPairs(self._game, self.n_players, self.n_outputs, self.index)

    def sets(self, index: str, order: int, wanted: Keys | None) -> SetEngine:
        """See `HigherOrders`."""
        return CoalitionSets(self._game, self.n_players, self.n_outputs, index, order, wanted)


@dataclass(frozen=True, eq=False)
class Fitted(ByDefinition):
    """SHAP values of the probabilities, by a representation fitted as for a black box, with its fidelity."""

    is_fitted = True
    asked_by: ClassVar[str] = "exact=True"  # the argument that led here, for messages

    @property
    def label_columns(self) -> list[int]:
        """Features that are labels."""
        return np.flatnonzero(self.engine.model.ensemble.is_categorical).tolist()

    def members(self, encoding: Encoding) -> TreeEnsemble | None:
        """The trees behind the output, for rows in which everything that counts as missing is NaN already."""
        e = self.engine.ensemble
        e = e.replace(
            missing_value=np.nan, zero_as_missing=np.zeros(e.n_features, dtype=bool), vocabularies={}
        )
        labels = [f for f in encoding.features if f.kind == LABEL]
        return by_level(e, {f.columns[0]: np.array(f.levels, dtype=np.float64) for f in labels})

    @cached_property
    def fit(self) -> tuple[Encoding, Fidelity, Engine]:
        """The probability as a black box, the same at every run: how rows become codes, the certificate, the engine."""
        model, background = self.engine.model, self.engine.background
        pool = Pool(self.background, "background")
        names = tuple(map(str, range(self.n_players)))
        encoding = make_encoding(pool, model.player, names, self.label_columns)
        every = np.arange(pool.n_rows)
        asker = QueryModel(self.predict, "the output", _BATCH, _BUDGET)
        fitter = Fitter(
            model=HybridModel(asker, model.player),
            pool=pool,
            first_rows=every,
            second_rows=every,
            encoding=encoding,
            budget=_BUDGET,
            seed=0,
            limits=Limits(),
            members=members_on_codes(self.members(encoding), encoding),
        )
        fitted = fitter.fit("auto")
        codes = fitted.encoding.encode(pool, "background")
        engine = fitted.surrogate.compile(codes, background.weights, self.index)
        of = f"{self.asked_by}: of the output, "
        warn_if_low(fitted.fidelity, _LEAST_FIDELITY, fitted.method, of, _WAYS_OUT)
        return fitted.encoding, fitted.fidelity, engine

    def _codes(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows as the representation takes them; what it does not know is said in the words of this class."""
        try:
            return self.fit[0].encode(Pool(rows, "X"), "X")
        except InputError as error:
            raise InputError(
                f"{self.asked_by} explains these rows by a representation that was fitted to hybrids of the background,"
                f" and {error} Here that means: more background rows, or groups= that leave fewer than 16 players."
            ) from error

    def values(self, rows: NDArray[Any], n_jobs: int | None) -> Floats:
        return self.fit[2].shap_values(self._codes(rows), n_jobs)

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        return RecodedPairs(self.fit[2].pairs(wanted), self._codes)

    def sets(self, index: str, order: int, wanted: Keys | None) -> SetEngine:
        return RecodedSets(sets_of(self.fit[2], index, order, wanted), self._codes)


def make_output(engine: TreeEngine, output: str, exact: bool) -> Engine:
    """What explains this output: the engine itself where it is the raw one."""
    check_output(engine, output, exact)
    objective = engine.ensemble.objective
    if output == "raw" or objective in _SAME_AS_RAW.get(output, ()):
        return engine
    if exact:
        return _exactly(engine, _links(output)[objective])
    transform = _rescaling(output, objective)
    assert transform is not None  # `check_output` has seen to it
    return Rescaled(engine, transform, output == "log_loss")


def _exactly(engine: TreeEngine, link: Callable[[Floats], Floats]) -> Engine:
    """By the definition where that is affordable, else by a representation."""
    n_background = 0 if engine.background.rows is None else len(engine.background.rows)
    if engine.n_players < 16 and n_background << engine.n_players <= MOST_HYBRIDS:
        return ByDefinition(engine, link)
    if n_background < 2:
        raise InputError(
            f"exact=True has {engine.n_players} players, too many for all coalitions, and one background row, too "
            "few to fit a representation to. Give more background rows, or groups= that leave fewer than 16 players."
        )
    return Fitted(engine, link)
