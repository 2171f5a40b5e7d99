"""Outputs that are functions of the raw output: probabilities, responses of links, and losses.

Three ways lead there. *Rescaled* values, shap's: the SHAP values of the raw output against one background row, times
the slope of the line from that row's output to the explained row's; then the mean over the background. They add up and
cost a walk per pair of rows, but whatever only bends the output is attributed in proportion to the raw output. The
SHAP values of the output itself, as a function, come *by definition*, from all coalitions, where players and
background rows are few, and else from a representation that is *fitted* to it, with its fidelity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_floats
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap._base.parallel import for_each_block
from fouriershap._shapley.coalitions import CoalitionInteractions, coalition_values, values_of_game
from fouriershap._shapley.engine import (
    BackgroundRows,
    Contents,
    Engine,
    EngineInfo,
    FidelityReport,
    Floats,
    Plan,
    Quality,
    WrappingEngine,
)
from fouriershap._shapley.indices import InteractionIndex
from fouriershap._shapley.outputs.kinds import OUTPUTS, Output
from fouriershap._shapley.sets import InteractionEngine, Keys, RecodedInteractions, all_keys, select_keys
from fouriershap._shapley.trees import walk
from fouriershap._shapley.trees.engine import TreeEngine

_ROWS = 64  # rows per job
_MOST_HYBRIDS = 1 << 18  # of one row: coalitions times background rows
_MOST_PLAYERS = 15  # of values by definition
_SAME = 1e-12  # raw outputs closer than this, relative, count as equal
_NEEDS_LABELS = "output='log_loss' needs the labels of the rows: shap_values(X, y)."


class Margin(Engine, Protocol):
    """An engine of the raw output whose rows have a column per feature; ``player`` (n_features,) owns them."""

    @property
    def player(self) -> NDArray[np.int32]: ...

    @property
    def outline(self) -> EngineInfo:
        """The facts for which nothing needs to be compiled."""


class FittedOutput(NamedTuple):
    """A representation of an output: how rows become its codes, its fidelity, and its engine."""

    encode: Callable[[NDArray[Any]], NDArray[Any]]
    fidelity: FidelityReport
    engine: Engine


# Fits a representation to a function of the rows of an engine; the text names the argument that asked for it.
Fit = Callable[[Margin, Callable[[NDArray[Any]], Floats], str], FittedOutput]


@dataclass(frozen=True, eq=False)
class TransformedOutput(WrappingEngine):
    """Base class of engines of a function of the raw output (see `Engine`); ``inner`` explains the raw output."""

    inner: Margin
    explained: Output

    @property
    def output(self) -> Output:
        return self.explained

    @property
    def raw(self) -> Margin:  # type: ignore[override]
        return self.inner

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def quality(self) -> Quality:
        return Quality()

    @property
    def info(self) -> EngineInfo:
        return replace(self.inner.outline, strategy=self.plan(None).strategy)

    @property
    def _rows(self) -> BackgroundRows:
        found = self.inner.background
        assert found is not None  # `make_output` has checked it
        return found

    @property
    def expected(self) -> Floats:
        outputs = self.predict(self._rows.rows)
        return np.asarray(np.average(outputs, axis=0, weights=self._rows.weights))

    def to(self, device: str) -> Engine:
        if device != "cpu":
            raise InputError(f"device={truncated_repr(device)} is for output='raw' only; use device='cpu'.")
        return self

    def build(self, n_jobs: int = -1) -> None:
        """Build nothing: these outputs have no tables."""

    def to_contents(self, interactions: bool, background: bool = True) -> Contents:
        del background
        arrays, header = self.inner.to_contents(interactions, background=True)
        return arrays, header | {"output": self.output.name, "exact": True}


@dataclass(frozen=True, eq=False)
class Rescaled(TransformedOutput):
    """Values of a function of the raw output of trees, rescaled per background row, as shap defines them."""

    inner: TreeEngine
    labels: Floats | None = None  # (n_rows,) of the rows that are explained, see `labelled`

    def labelled(self, y: ArrayLike | None, n_rows: int) -> Engine:
        if not self.output.needs_labels:
            return super().labelled(y, n_rows)
        if y is None:
            raise InputError(_NEEDS_LABELS)
        labels = as_floats(y, "y").reshape(-1)
        if len(labels) != n_rows:
            raise InputError(f"y has {len(labels)} labels for {n_rows} rows.")
        if self.output.link.has_binary_labels and not np.isin(labels, (0, 1)).all():
            raise InputError("y has labels other than 0 and 1; the model is a binary classifier.")
        return replace(self, labels=labels)

    def _transform(self, raw: Floats, labels: Floats) -> Floats:
        transform = self.output.transform
        assert transform is not None  # `make_output` has checked it
        return transform(raw, labels)

    def _labels_of(self, rows: NDArray[Any]) -> Floats:
        if self.labels is None and self.output.needs_labels:
            raise InputError(_NEEDS_LABELS)
        return np.zeros((len(rows), 1)) if self.labels is None else self.labels[:, None]

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        return self._transform(self.inner.predict(rows, n_jobs), self._labels_of(rows))

    @property
    def expected(self) -> Floats:
        """(n_outputs,); of a loss (n_rows, n_outputs), since it depends on the label."""
        if not self.output.needs_labels:
            return self._expected_with(0.0)
        if self.labels is None:
            raise InputError(
                "the mean log_loss depends on the label: use expected_loss(y), or shap_values(X, y) for rows."
            )
        distinct, which = np.unique(self.labels, return_inverse=True)
        means = [self._expected_with(float(label)) for label in distinct]
        return np.reshape(means, (len(distinct), self.n_outputs))[which]

    def _expected_with(self, label: float) -> Floats:
        """Return the mean over the background, (n_outputs,), with this label for all of it."""
        outputs = self._transform(self.inner.predict(self._rows.rows), np.asarray(label))
        return np.asarray(np.average(outputs, axis=0, weights=self._rows.weights))

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        model, background = self.inner.model, self.inner.tree_background
        codes, labels = background.codes, self._labels_of(rows)
        assert codes is not None
        n_background = codes.shape[1]
        share = np.full(n_background, 1 / n_background) if background.weights is None else background.weights
        others, raw = self.inner.predict(self._rows.rows, n_jobs), self.inner.predict(rows, n_jobs)
        mine = model.coded.book.encode(rows)
        out = np.zeros((len(rows), self.n_players, self.n_outputs))

        def work(first: int, last: int) -> None:
            part = np.ascontiguousarray(mine[:, first:last])
            own, label = raw[first:last], labels[first:last]
            found = self._transform(own, label)
            for b in range(n_background):
                slope = _slope(own - others[b], found - self._transform(others[b][None], label), own)
                one = np.ascontiguousarray(codes[:, b : b + 1])
                values = walk.interventional(model.walk_trees, part, one)
                out[first:last] += share[b] * slope[:, None] * values

        for_each_block(work, len(rows), _ROWS, n_jobs)
        if outputs is not None:
            outputs[:] = self._transform(raw, labels)
        return out

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        raise InputError(
            "rescaled values (of a probability, a response or a loss) have no interactions. Use output='raw', or "
            "exact=True."
        )

    def plan(self, n_rows: int | None) -> Plan:
        return Plan("rescaled", "values of the raw output, rescaled for each background row")

    def to_contents(self, interactions: bool, background: bool = True) -> Contents:
        arrays, header = super().to_contents(interactions, background)
        return arrays, header | {"exact": False}


def _slope(change: Floats, output_change: Floats, scale: Floats) -> Floats:
    """Return the change of the output per change of the raw output; 1, as in shap, where raw outputs are the same."""
    same = np.abs(change) <= _SAME * np.maximum(np.abs(scale), 1.0)
    return np.where(same, 1.0, output_change / np.where(same, 1.0, change))


@dataclass(frozen=True, eq=False)
class ByDefinition(TransformedOutput):
    """SHAP values of the output itself over all coalitions: for few players and background rows."""

    fit: Fit
    asked_by: str

    def predict(self, rows: NDArray[Any], n_jobs: int = 1) -> Floats:
        function = self.output.function
        assert function is not None  # `make_output` has checked it
        return function(self.inner.predict(rows, n_jobs))

    def _game(self, row: NDArray[Any]) -> Floats:
        return coalition_values(self.predict, row, self._rows.rows, self.inner.player, self._rows.weights)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))

        def work(first: int, last: int) -> None:
            for r in range(first, last):
                out[r] = values_of_game(self._game(rows[r]), self.n_players, self.index)

        for_each_block(work, len(rows), 1, n_jobs)
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return out

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        keys = all_keys(range(self.n_players), order, self.n_players)
        keys = select_keys(keys, wanted, min_order, self.n_players)
        return CoalitionInteractions(self._game, self.n_players, self.n_outputs, index, order, keys)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        other: Any = self.inner.with_background(rows, weights)
        return explain_exactly(other, self.output, self.fit, self.asked_by)

    def plan(self, n_rows: int | None) -> Plan:
        return Plan("definition", "few players and background rows: all coalitions")


@dataclass(frozen=True, eq=False)
class Fitted(ByDefinition):
    """SHAP values of a representation that is fitted to the output when it is first needed."""

    @property
    def adds_up(self) -> bool:
        return False  # they are those of the representation

    @property
    def quality(self) -> Quality:
        return Quality(fidelity=lambda: self.fitted.fidelity)

    @cached_property
    def fitted(self) -> FittedOutput:
        """The representation, the same at every run."""
        return self.fit(self.inner, self.predict, self.asked_by)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return self.fitted.engine.shap_values(self.fitted.encode(rows), n_jobs)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        inner = self.fitted.engine.interactions(index, order, wanted, min_order)
        return RecodedInteractions(inner, self.fitted.encode)

    def plan(self, n_rows: int | None) -> Plan:
        return Plan("fitted", "too many coalitions: a representation is fitted to the output")


def make_output(engine: TreeEngine, output: Output, exact: bool, fit: Fit) -> Engine:
    """Return what explains this output of trees: the engine itself, where its raw output is that.

    Parameters
    ----------
    exact : bool
        Whether values are those of the output itself, not of the raw output rescaled.
    fit : Fit
        Fits a representation where there are too many coalitions.
    """
    if not isinstance(exact, bool | np.bool_):
        raise InputError(f"exact is {truncated_repr(exact)}; give True or False.")
    if exact and (output.needs_labels or output.name == engine.output.name == "raw"):
        raise InputError(
            f"exact=True is for output='probability' and 'response'; got output={truncated_repr(output.name)}."
        )
    if output.is_raw:
        return engine if output.name == engine.output.name else engine.named(output)
    if engine.tree_background.rows is None:
        raise InputError(
            f"output={truncated_repr(output.name)} needs a background; pass one, or use output='raw'."
        )
    if not exact and not engine.index.adds_up:
        raise InputError(
            f"rescaled values add up, and those of index={truncated_repr(engine.index.name)} do not; use "
            "output='raw' or "
            "exact=True."
        )
    if (output.function if exact else output.transform) is None:
        raise _unknown(engine, output)
    return explain_exactly(engine, output, fit, "exact=True") if exact else Rescaled(engine, output)


def _unknown(engine: TreeEngine, output: Output) -> UnsupportedModelError:
    link, name = output.link, truncated_repr(output.name)
    model = f"{truncated_text(engine.model.kind) or 'the model'} ({link.name} link)"
    if output.function is not None and not link.is_elementwise:
        return UnsupportedModelError(
            f"{model}: a class probability depends on the raw outputs of all classes, so no single slope rescales it. "
            f"Use output={name}, exact=True: SHAP values of the probabilities themselves."
        )
    if link.response is not None and not link.gives_probability and not output.needs_labels:
        return UnsupportedModelError(f"{model} predicts no probability. Use output='response'.")
    return UnsupportedModelError(
        f"{model} has no known output={name}. Use output='raw', or give fouriershap.BlackBoxExplainer a function that "
        "returns what you want explained."
    )


def explain_exactly(engine: Margin, output: Output, fit: Fit, asked_by: str) -> Engine:
    """Return SHAP values of the output itself: by definition where that is affordable, else fitted.

    ``asked_by``: the argument that asks for this, for messages.
    """
    n_background = 0 if engine.background is None else len(engine.background)
    if engine.n_players <= _MOST_PLAYERS and n_background << engine.n_players <= _MOST_HYBRIDS:
        return ByDefinition(engine, output, fit, asked_by)
    if n_background < 2:
        raise InputError(
            f"{asked_by} with {engine.n_players} players has too many coalitions, and one background row is too few to "
            "fit a representation to. Give more background rows, or groups= that leave fewer than 16 players."
        )
    return Fitted(engine, output, fit, asked_by)


def load_output(engine: TreeEngine, header: dict[str, Any], fit: Fit) -> Engine:
    """Return what explains the output that `to_contents` of an engine of trees wrote."""
    name = get_typed(header, "output", str)
    require(name in OUTPUTS, "its output is unknown")
    output = OUTPUTS[name](engine.output.link)
    if output.is_raw:
        return engine
    require(
        engine.background is not None, f"output {truncated_repr(name)} needs a background, which is not there"
    )
    return make_output(engine, output, get_typed(header, "exact", bool), fit)
