"""Outputs that are functions of the raw output: probabilities, responses of links, and losses.

Two ways lead there. *Rescaled* values, shap's: the SHAP values of the raw output against one background row, times
the slope of the line from that row's output to the explained row's; then the mean over the background. They add up and
cost a few times those of the raw output, but whatever only bends the output is attributed in proportion to the raw
output. The SHAP values of the output itself, as a function, come *by definition*, from all coalitions, where players
and background rows are few, and else are *sampled* until their standard errors are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_floats
from fouriershap._base.errors import FidelityWarning, InputError, UnsupportedModelError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap._base.parallel import cpu_seconds, enter, for_each_block, warn_if_long
from fouriershap._base.warn import warn
from fouriershap._shapley.coalitions import CoalitionInteractions, values_of_game
from fouriershap._shapley.engine import (
    BackgroundRows,
    Contents,
    Engine,
    EngineInfo,
    Estimates,
    Floats,
    Plan,
    Quality,
    WrappingEngine,
)
from fouriershap._shapley.indices import InteractionIndex
from fouriershap._shapley.means import PlayerSets, means_by_definition
from fouriershap._shapley.outputs.hybrids import hybrids_of
from fouriershap._shapley.outputs.kinds import OUTPUTS, Output, needs_labels
from fouriershap._shapley.outputs.sampled import FIRST_DRAWS, Task, count_draws, sample_values
from fouriershap._shapley.outputs.slopes import find_channels, slope
from fouriershap._shapley.policy import Memo
from fouriershap._shapley.sets import InteractionEngine, Keys, all_keys, select_keys
from fouriershap._shapley.trees.channels import ChannelTrees, MixedTrees, channel_trees
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.linear import LinearTreeEngine
from fouriershap._shapley.trees.plan import add_plans
from fouriershap._shapley.verify import verify_array, verify_weights

_MOST_HYBRIDS = 1 << 18  # of one row: coalitions times background rows
_MOST_PLAYERS = 15  # of values by definition
_TOLERANCES = {4: 1e-7, 8: 1e-10}  # of mean slopes, by the bytes of a number in tables
_SAMPLED_TO = 0.01  # standard errors, as a share of the row's largest value
_PART = 1 << 16  # hybrids at a time
_TIMED = 3  # rows whose time is that of all
_TRIED = 8  # background rows by which a plan is made
_FAR_MORE = 3.0  # times the median of draws
_LEAST = 0.1  # of the spread of the output over the background: the least that this refers to
_RESCALED = "values of the raw output, times slopes at a few reference margins"


RawTrees = TreeEngine | LinearTreeEngine


class Margin(Engine, Protocol):
    """An engine of the raw output whose rows have a column per feature; ``player`` (n_features,) owns them."""

    @property
    def player(self) -> NDArray[np.int32]: ...

    @property
    def outline(self) -> EngineInfo:
        """The facts for which nothing needs to be compiled."""


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

    def partial_means(self, rows: NDArray[Any], sets: PlayerSets, n_jobs: int = -1) -> Floats:
        """Return means of the output itself, whatever is explained of it."""
        return means_by_definition(self.predict, rows, self._rows, self.inner.player, sets, n_jobs)

    def build(self, n_jobs: int = -1) -> None:
        """Build nothing: these outputs have no tables."""

    def to_contents(self, interactions: bool, background: bool = True) -> Contents:
        del background
        arrays, header = self.inner.to_contents(interactions, background=True)
        return arrays, header | {"output": self.output.name, "exact": True}


@dataclass(frozen=True, eq=False)
class Margins:
    """Margins of a background, (n_rows, n_outputs), and its rows as channels of slopes for each output."""

    values: Floats
    weights: Floats | None
    channels: tuple[Floats, ...]  # reference margins (n_channels,) of each output
    trees: tuple[MixedTrees, ...]

    @classmethod
    def of(cls, engine: RawTrees, output: Output) -> Margins:
        """Return those of the background of an engine of the raw output."""
        background = engine.background
        assert background is not None  # `make_output` has checked it
        values = engine.predict(background.rows)
        tolerance = _TOLERANCES[engine.model.dtype.itemsize]
        share = 1 / len(values) if background.weights is None else background.weights[:, None]
        channels: list[Floats] = []
        trees: list[MixedTrees] = []
        for k, margins in enumerate(values.T):
            found = find_channels(_functions(output), margins, background.weights, tolerance)
            channels.append(found.margins)
            shares = found.shares * share
            if isinstance(engine, TreeEngine):
                trees.append(channel_trees(engine, k, shares))
            else:
                trees.append(engine.channels(k, shares))
        return cls(values, background.weights, tuple(channels), tuple(trees))

    @property
    def are_tables(self) -> bool:
        """Whether all trees have tables, which a file can keep."""
        return all(isinstance(trees, ChannelTrees) and trees.is_whole for trees in self.trees)

    def mean(self, outputs: Floats) -> Floats:
        """Return the mean (n_outputs,) of outputs of the background."""
        return np.asarray(np.average(outputs, axis=0, weights=self.weights))

    def to(self, device: str) -> Margins:
        """Return the same on another device."""
        return replace(self, trees=tuple(each.to(device) for each in self.trees))

    def to_contents(self) -> Contents:
        """Return named arrays and a header, without the rows of the background."""
        arrays, headers = {"margins": self.values}, []
        if self.weights is not None:
            arrays["margin_weights"] = self.weights
        for k, (reference, trees) in enumerate(zip(self.channels, self.trees, strict=True)):
            assert isinstance(trees, ChannelTrees)  # of others a file keeps the background
            mine, header = trees.to_contents(False)
            arrays |= {f"channels{k}.{name}": array for name, array in mine.items()}
            arrays[f"channels{k}.margins"] = reference
            headers.append(header)
        return arrays, {"channels": headers}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], headers: list[Any], engine: RawTrees) -> Margins:
        """Return what `to_contents` wrote."""
        values, weights = arrays.get("margins"), arrays.get("margin_weights")
        require(values is not None and len(headers) == engine.n_outputs, "its margins are not there")
        assert values is not None
        verify_array("margins", values, "f8", 2)
        fits = len(values) > 0 and values.shape[1] == engine.n_outputs and np.isfinite(values).all()
        require(bool(fits), "its margins are not finite numbers of its outputs")
        verify_weights(weights, values)
        channels, trees = [], []
        for k, header in enumerate(headers):
            require(isinstance(header, dict), "its channels are not there")
            start = f"channels{k}."
            mine = {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
            require("margins" in mine, "its channels are not there")
            reference = mine.pop("margins")
            verify_array("margins", reference, "f8")
            part = ChannelTrees.from_contents(mine, header)
            fits = (part.model.n_channels,) == reference.shape and part.n_players == engine.n_players
            fits = fits and part.model.ensemble.n_features == len(engine.player)
            require(fits and np.isfinite(reference).all(), "its channels do not fit its trees")
            require(
                isinstance(engine, TreeEngine) and part.model.ensemble.dtype == engine.model.ensemble.dtype,
                "its channels have another type",
            )
            require(part.in_tables.all(), "its channels have trees without tables")
            channels.append(reference)
            trees.append(part)
        return cls(values, weights, tuple(channels), tuple(trees))


def _functions(output: Output) -> list[Callable[[Floats], Floats]]:
    """Return functions of a margin from which the output of any label is made: losses are linear in the label."""
    transform = output.transform
    assert transform is not None  # `make_output` has checked it
    zero, one = np.zeros(()), np.ones(())
    if not output.needs_labels:
        return [lambda raw: transform(raw, zero)]
    return [lambda raw: transform(raw, zero), lambda raw: transform(raw, one) - transform(raw, zero)]


@dataclass(frozen=True, eq=False)
class Rescaled(TransformedOutput):
    """Values of a function of the raw output of trees, rescaled per background row, as shap defines them."""

    inner: RawTrees
    labels: Floats | None = None  # (n_rows,) of the rows that are explained, see `labelled`
    built: Memo[Margins] = field(default_factory=Memo)

    @property
    def margins(self) -> Margins:
        """Margins of the background and its channels, made when they are first needed."""
        return self.built.get(0, lambda _: Margins.of(self.inner, self.output))

    @property
    def quality(self) -> Quality:
        return Quality(is_rescaled=True)

    @property
    def device(self) -> str:
        return self.inner.device

    def to(self, device: str) -> Engine:
        built: Memo[Margins] = Memo()
        built.get(0, lambda _: self.margins.to(device))
        return replace(self, inner=self.inner.to(device), built=built)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        return replace(self, inner=self.inner.with_background(rows, weights), built=Memo())

    def labelled(self, y: ArrayLike | None, n_rows: int) -> Engine:
        if not self.output.needs_labels:
            return super().labelled(y, n_rows)
        if y is None:
            raise needs_labels(self.output)
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
            raise needs_labels(self.output)
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
                "the mean loss depends on the label: use expected_loss(y), or shap_values(X, y) for rows."
            )
        distinct, which = np.unique(self.labels, return_inverse=True)
        means = [self._expected_with(float(label)) for label in distinct]
        return np.reshape(means, (len(distinct), self.n_outputs))[which]

    def _expected_with(self, label: float) -> Floats:
        """Return the mean over the background, (n_outputs,), with this label for all of it."""
        margins = self.margins
        return margins.mean(self._transform(margins.values, np.asarray(label)))

    def build(self, n_jobs: int = -1) -> None:
        for trees in self.margins.trees:
            trees.build(n_jobs)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        margins, labels = self.margins, self._labels_of(rows)
        raw = self.inner.predict(rows, n_jobs)
        out = np.empty((len(rows), self.n_players, self.n_outputs))
        for k, (reference, trees) in enumerate(zip(margins.channels, margins.trees, strict=True)):
            mix = slope(lambda margin: self._transform(margin, labels), raw[:, k : k + 1], reference)
            out[:, :, k] = trees.mixed_values(rows, mix, n_jobs)
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
        return add_plans([trees.plan(n_rows) for trees in self.margins.trees], _RESCALED)

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        self.build()
        if not self.margins.are_tables:
            arrays, header = super().to_contents(interactions)
            return arrays, header | {"exact": False}
        arrays, header = self.inner.to_contents(interactions, background)
        mine, parts = self.margins.to_contents()
        return arrays | mine, header | parts | {"output": self.output.name, "exact": False}


@dataclass(frozen=True, eq=False)
class ByDefinition(TransformedOutput):
    """SHAP values of the output itself over all coalitions: for few players and background rows."""

    asked_by: str

    def predict(self, rows: NDArray[Any], n_jobs: int = 1) -> Floats:
        function = self.output.function
        assert function is not None  # `make_output` has checked it
        return function(self.inner.predict(rows, n_jobs))

    def _game(self, row: NDArray[Any]) -> Floats:
        """Return v(S), (2^n_players, n_outputs): the mean over the background, with the players of S from the row."""
        function, n_background = self.output.function, len(self._rows)
        assert function is not None
        weights = self._rows.weights
        share = np.full(n_background, 1 / n_background) if weights is None else weights
        hybrids = hybrids_of(self.inner.raw, self.inner.player, row[None])
        v, size = np.zeros((1 << self.n_players, self.n_outputs)), max(_PART >> self.n_players, 1)
        for first in range(0, n_background, size):
            part = slice(first, first + size)
            raw = hybrids.coalitions(0, part)
            outputs = function(raw.reshape(-1, raw.shape[2])).reshape(*raw.shape[:2], -1)
            v += np.tensordot(share[part], outputs, axes=1)
        return v

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))

        def work(first: int, last: int) -> None:
            for r in range(first, last):
                out[r] = values_of_game(self._game(rows[r]), self.n_players, self.index)

        _for_each_row(work, len(rows), "all coalitions", n_jobs)
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
        return explain_exactly(other, self.output, self.asked_by)

    @cached_property
    def _seconds(self) -> tuple[float, float]:
        """Seconds of a call, and of each row, as measured on background rows."""
        begin = cpu_seconds()
        self._game(self._rows.rows[0])
        return 0.0, cpu_seconds() - begin

    def plan(self, n_rows: int | None) -> Plan:
        seconds = np.nan if n_rows is None else self._seconds[0] + n_rows * self._seconds[1]
        return Plan("definition", "few players and background rows: all coalitions", seconds=seconds)


@dataclass(frozen=True, eq=False)
class Sampled(ByDefinition):
    """SHAP values of the output itself from permutations, until every standard error is below a tolerance.

    They add up exactly. The values of the raw output, which are known, take most of the chance out of them.
    """

    @property
    def quality(self) -> Quality:
        return Quality(tolerance=_SAMPLED_TO)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        return self.estimate(rows, n_jobs, outputs).values

    def estimate(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Estimates:
        raw, task = self.inner.raw, self._task(rows, n_jobs)
        known = raw.shap_values(rows, n_jobs) if raw.quality.is_exact else None
        values, errors = np.zeros((2, len(rows), self.n_players, self.n_outputs))

        def work(first: int, last: int) -> None:
            for r in range(first, last):
                rng = np.random.default_rng(crc32(np.ascontiguousarray(rows[r]).tobytes()))
                values[r], errors[r] = sample_values(task, r, None if known is None else known[r], rng)

        _for_each_row(work, len(rows), f"permutations of {self.n_players} players", n_jobs)
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        target = _SAMPLED_TO * np.maximum(np.abs(values).max(axis=(1, 2)), task.least)
        n_worse = int((errors.max(axis=(1, 2)) > target).sum())
        if n_worse:
            warn(
                f"{n_worse} of {len(rows)} rows were sampled as long as is allowed, and have standard errors above "
                f"{_SAMPLED_TO:.0%} of their largest value. groups= that leave fewer players take less.",
                FidelityWarning,
            )
        return Estimates(values, errors)

    @cached_property
    def _margins(self) -> Floats:
        """Raw outputs (n_background, n_raw) of the background."""
        return self.inner.raw.predict(self._rows.rows)

    def _task(self, rows: NDArray[Any], n_jobs: int) -> Task:
        function, background, raw = self.output.function, self._rows, self.inner.raw
        assert function is not None  # `make_output` has checked it
        margins = self._margins
        others = function(margins)
        mean = np.average(others, axis=0, weights=background.weights)
        spread = np.sqrt(np.average((others - mean) ** 2, axis=0, weights=background.weights))
        equal = background.weights is None or np.ptp(background.weights) == 0
        return Task(
            hybrids_of(raw, self.inner.player, rows),
            function,
            None if equal else background.weights,
            raw.predict(rows, n_jobs),
            margins,
            self.n_players,
            self.index.places,
            _SAMPLED_TO,
            _LEAST * float(spread.max()),
        )

    @cached_property
    def _seconds(self) -> tuple[float, float]:
        """Seconds of a call, and of each row: those of a draw, as measured, times the draws that it needs."""
        rows = self._rows.rows[np.random.default_rng(0).permutation(len(self._rows))[:_TRIED]]
        start = cpu_seconds()
        task, is_known = self._task(rows, 1), self.inner.raw.quality.is_exact
        begin = cpu_seconds()
        draws = [count_draws(task, r, is_known, np.random.default_rng(r)) for r in range(len(rows))]
        each = (cpu_seconds() - begin) / (FIRST_DRAWS * len(rows))
        usual = np.minimum(draws, _FAR_MORE * np.median(draws))  # the first draws of some rows mislead
        return begin - start, each * float(usual.mean())

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        raise InputError(
            f"{self.asked_by}: interactions need all coalitions, and {self.n_players} players with "
            f"{len(self._rows)} background rows have too many. Use output='raw', fewer background rows, or groups= "
            f"that leave at most {_MOST_PLAYERS} players."
        )

    def plan(self, n_rows: int | None) -> Plan:
        plan, of_raw = super().plan(n_rows), self.inner.raw.plan(n_rows).seconds
        return replace(
            plan,
            seconds=plan.seconds + (0.0 if np.isnan(of_raw) else of_raw),
            strategy="sampled",
            reason=f"too many coalitions: standard errors below {_SAMPLED_TO:.0%} of the largest value",
        )


def _for_each_row(work: Callable[[int, int], None], n_rows: int, what: str, n_jobs: int) -> None:
    """Call ``work`` for each row: the first ones tell how long all take."""
    begin, n_first = cpu_seconds(), min(n_rows, _TIMED)
    work(0, n_first)
    seconds = (cpu_seconds() - begin) * n_rows / max(n_first, 1)
    less = "Fewer of them, or a smaller background, take less"
    warn_if_long("these values", seconds, f"{what}, for {n_rows:,} rows. {less}", n_jobs)
    enter("explaining")
    for_each_block(lambda first, last: work(first + n_first, last + n_first), n_rows - n_first, 1, n_jobs)


def make_output(engine: RawTrees, output: Output, exact: bool) -> Engine:
    """Return what explains this output of trees: the engine itself, where its raw output is that.

    Parameters
    ----------
    exact : bool
        Whether values are those of the output itself, not of the raw output rescaled.
    """
    if not isinstance(exact, bool | np.bool_):
        raise InputError(f"exact is {truncated_repr(exact)}; give True or False.")
    if exact and (output.needs_labels or output.name == engine.output.name == "raw"):
        raise InputError(
            f"exact=True is for output='probability' and 'response'; got output={truncated_repr(output.name)}."
        )
    if output.is_raw:
        return engine if output.name == engine.output.name else engine.named(output)
    if engine.info.is_path_dependent:
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
    return explain_exactly(engine, output, "exact=True") if exact else Rescaled(engine, output)


def _unknown(engine: RawTrees, output: Output) -> UnsupportedModelError:
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


def explain_exactly(engine: Margin, output: Output, asked_by: str) -> Engine:
    """Return SHAP values of the output itself: by definition where that is affordable, else sampled.

    ``asked_by``: the argument that asks for this, for messages.
    """
    n_background = 0 if engine.background is None else len(engine.background)
    if engine.n_players <= _MOST_PLAYERS and n_background << engine.n_players <= _MOST_HYBRIDS:
        return ByDefinition(engine, output, asked_by)
    if not engine.index.adds_up:
        raise InputError(
            f"{asked_by} with {engine.n_players} players has too many coalitions for "
            f"index={truncated_repr(engine.index.name)}. Give groups= that leave fewer than 16 players, or a smaller "
            "background."
        )
    return Sampled(engine, output, asked_by)


def load_output(engine: RawTrees, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> Engine:
    """Return what explains the output that `to_contents` of an engine of trees wrote."""
    name = get_typed(header, "output", str)
    require(name in OUTPUTS, "its output is unknown")
    output = OUTPUTS[name](engine.output.link)
    if output.is_raw:
        return engine
    if "channels" in header:
        require(output.transform is not None, "its output has no slopes")
        loaded, built = (
            Margins.from_contents(arrays, get_typed(header, "channels", list), engine),
            Memo[Margins](),
        )
        built.get(0, lambda _: loaded)
        return Rescaled(engine, output, built=built)
    require(
        engine.background is not None, f"output {truncated_repr(name)} needs a background, which is not there"
    )
    return make_output(engine, output, get_typed(header, "exact", bool))
