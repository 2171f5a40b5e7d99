"""`LinearTreeEngine`: trees whose leaves hold linear functions, as a sum of engines of plain trees.

Let g(z) be the sum of the slopes in column j of the leaves that z reaches. Of z_j g(z), a row x and a background row b
make the game "x_j g if j is in the coalition, else b_j g". The first part is x_j times the values of g against b
without its number in column j, the second b_j times those of x without its own, since g is 0 where that number is
missing. So a column takes two engines of plain trees, one of which weights the background by its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import stored_memory
from fouriershap._base.errors import InputError
from fouriershap._base.headers import get_part, get_size, get_typed, require
from fouriershap._base.links import UNKNOWN, Link
from fouriershap._shapley.engine import (
    BackgroundRows,
    Contents,
    EngineInfo,
    Floats,
    PageLookup,
    WrappingEngine,
)
from fouriershap._shapley.indices import SHAPLEY, Index, InteractionIndex
from fouriershap._shapley.means import PlayerSets
from fouriershap._shapley.outputs.kinds import OUTPUTS, Output, Raw
from fouriershap._shapley.policy import Memo
from fouriershap._shapley.sets import InteractionEngine, Keys, RecodedInteractions, lost_background
from fouriershap._shapley.sum import SumEngine, part_contents
from fouriershap._shapley.trees.channels import ChannelTrees, channel_trees
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.files import ensemble_from_contents, ensemble_to_contents
from fouriershap._shapley.trees.model import Background, TreeModel, make_background, make_model, tables_type
from fouriershap._shapley.trees.plan import TreePlan, add_plans
from fouriershap._shapley.verify import verify_array, verify_rows, verify_trees
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.linear import LinearTrees

_USUAL, _LONG_TAIL = (
    0.9,
    32.0,
)  # a range of so many usual deviations: float32 would round away those of usual rows
_REASON = "trees of constants, and trees of slopes for each column, twice"
_TERM_TYPES = {"constant": "f8", "leaf": "i4", "column": "i4", "slope": "f8"}


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Trees with linear leaves, and how to explain them; attributes are those of `TreeModel`."""

    trees: LinearTrees
    player: NDArray[np.int32]
    memory: int
    dtype: np.dtype[Any]
    strategy: str = "auto"
    index: Index = SHAPLEY
    link: Link = UNKNOWN
    kind: str = ""

    def plain(self, e: TreeEnsemble, n_parts: int, is_double: bool) -> TreeModel:
        """Return the model of plain trees."""
        dtype = np.dtype(np.float64) if is_double or self.dtype.itemsize == 8 else tables_type(e)
        about = (self.strategy, self.index, self.link, self.kind)
        return make_model(e, self.player, max(self.memory // n_parts, 1), dtype, *about)


class SlopeTerms(NamedTuple):
    """Numbers in a column, less ``shift``, that slopes are multiplied by: those of rows, or of the background.

    ``total`` is None where they are the row's; the background lacks its own. Else the background's numbers weight its
    rows, ``total`` is their mean, and rows lack theirs.
    """

    column: int
    shift: float
    total: float | None

    def numbers(self, rows: NDArray[Any]) -> Floats:
        """Return the numbers of rows, 0 where they are missing."""
        return np.nan_to_num(rows[:, self.column].astype(np.float64) - self.shift)

    def weights(self, given: BackgroundRows) -> Floats | None:
        """Return the weights of the background rows."""
        if self.total is None:
            return given.weights
        share = self.numbers(given.rows) * (1.0 if given.weights is None else given.weights)
        return np.asarray(share / share.sum())

    def encode(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows as trees of slopes read them."""
        return rows if self.total is None else _without(rows, self.column)

    def factor(self, rows: NDArray[Any]) -> Floats:
        """Return the number of each row, (n_rows, 1, 1)."""
        numbers = self.numbers(rows) if self.total is None else np.full(len(rows), self.total)
        return numbers[:, None, None]


def _without(rows: NDArray[Any], column: int) -> NDArray[Any]:
    """Return rows without their numbers in a column."""
    hidden = rows.copy()
    hidden[:, column] = np.nan
    return hidden


@dataclass(frozen=True, eq=False)
class SlopeEngine(WrappingEngine):
    """Values of trees of slopes in a column, times numbers in it (see `Engine`)."""

    inner: TreeEngine
    terms: SlopeTerms

    def encode(self, rows: NDArray[Any], name: str = "X") -> NDArray[Any]:
        del name
        return self.terms.encode(rows)

    @property
    def expected(self) -> Floats:
        return (self.terms.total or 0.0) * self.inner.expected

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        return super().shap_values(rows, n_jobs) * self.terms.factor(rows)

    def partial_means(self, rows: NDArray[Any], sets: PlayerSets, n_jobs: int = -1) -> Floats:
        return super().partial_means(rows, sets, n_jobs) * self.terms.factor(rows)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        return _SlopeInteractions(
            self.inner.interactions(index, order, wanted, min_order), self.encode, self.terms
        )


@dataclass(frozen=True, eq=False)
class _SlopeInteractions(RecodedInteractions):
    terms: SlopeTerms

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        mine = np.zeros_like(out)
        super().add(rows, mine)
        out += mine * self.terms.factor(rows)


def _add_up(model: LinearModel, background: BackgroundRows, missing: NDArray[np.bool_]) -> SumEngine:
    """Return the sum of engines of plain trees, for rows that miss numbers in the columns ``missing`` (n_features,)."""
    rows, trees = background.rows, model.trees
    columns = trees.columns.tolist()
    # Numbers less the least of their column are weights.
    shift, mean, is_double = *np.zeros((2, rows.shape[1])), False
    for j in columns:
        known = ~np.isnan(rows[:, j])
        shift[j] = rows[known, j].min() if known.any() else 0.0
        excess = np.nan_to_num(rows[:, j] - shift[j])
        mean[j] = np.average(excess, weights=background.weights)
        usual = np.quantile(np.abs(excess - np.median(excess)), _USUAL)
        is_double |= bool(excess.max() > _LONG_TAIL * usual)
    settings = (1 + 2 * len(columns), is_double)
    constants = model.plain(trees.at(shift, missing), *settings)
    parts: list[Any] = [TreeEngine(constants, make_background(constants, rows, background.weights))]
    for j in columns:
        slopes = model.plain(trees.slopes(j, missing), *settings)
        for total in (None, float(mean[j])):
            terms = SlopeTerms(j, float(shift[j]), total)
            if total != 0:
                lacks = j if total is None else None
                others = Background(slopes, rows, terms.weights(background), len(rows), lacks)
                parts.append(SlopeEngine(TreeEngine(slopes, others), terms))
    return SumEngine(tuple(parts))


def _values(whole: SumEngine, rows: NDArray[Any], n_jobs: int) -> Floats:
    """Return the values of a sum that `_add_up` made; where tables pay for the constants, they do for the slopes."""
    first, *slopes = whole.parts
    values = first.shap_values(rows, n_jobs)
    for part in slopes:
        if isinstance(first, TreeEngine) and first.compiled is not None:
            part.build(n_jobs)
        values += part.shap_values(rows, n_jobs)
    return values


@dataclass(frozen=True, eq=False)
class LinearTreeEngine(WrappingEngine):
    """Exact SHAP values of trees with linear leaves against a background (see `Engine`).

    Attributes
    ----------
    inner : SumEngine
        For rows that miss numbers in no other columns than the background.
    model : LinearModel
    given : BackgroundRows or None
        None where it was loaded from a file that has tables instead.
    n_background : int
    missing : (n_features,) bool
        Columns with slopes in which the background misses numbers.
    explained : Output
    """

    inner: SumEngine
    model: LinearModel
    given: BackgroundRows | None
    n_background: int
    missing: NDArray[np.bool_]
    explained: Output
    others: Memo[SumEngine] = field(default_factory=Memo)

    @classmethod
    def of(cls, model: LinearModel, rows: NDArray[Any], weights: Floats | None, explained: Output) -> Self:
        """Return the engine of a model and the rows of a background."""
        _check_finite(model, rows, "background")
        background = BackgroundRows(rows, weights)
        missing = np.isnan(rows).any(axis=0) & np.isin(np.arange(rows.shape[1]), model.trees.columns)
        return cls(_add_up(model, background, missing), model, background, len(rows), missing, explained)

    @property
    def complete(self) -> SumEngine:
        """The sum of engines for rows that miss numbers in any columns."""
        if self.given is None:
            raise lost_background()
        background, everywhere = self.given, np.ones_like(self.missing)
        return self.others.get(0, lambda _: _add_up(self.model, background, everywhere).to(self.device))

    def misses_more(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether rows miss numbers where the background does not, (n_rows,)."""
        _check_finite(self.model, rows, "X")
        columns = self.model.trees.columns
        return np.asarray(np.isnan(rows[:, columns[~self.missing[columns]]]).any(axis=1))

    @property
    def output(self) -> Output:
        return self.explained

    @property
    def player(self) -> NDArray[np.int32]:
        """(n_features,) int32: the player that owns each column of rows."""
        return self.model.player

    @property
    def representation(self) -> LinearTrees:
        return self.model.trees

    @property
    def background(self) -> BackgroundRows | None:
        return self.given

    @property
    def info(self) -> EngineInfo:
        parts, e = self.inner.info.parts, self.model.trees.trees
        return EngineInfo(
            kind="trees",
            n_background=self.n_background,
            model=self.model.kind,
            n_trees=e.n_trees,
            n_leaves=e.n_leaves,
            n_tables=sum(part.n_tables for part in parts),
            table_bytes=sum(part.table_bytes for part in parts),
            n_without_table=max(part.n_without_table for part in parts),
            degrees=parts[0].degrees,
        )

    @property
    def outline(self) -> EngineInfo:
        """The facts for which nothing needs to be compiled: all of them."""
        return self.info

    def named(self, output: Output) -> LinearTreeEngine:
        """Return the same, with another name for its raw output."""
        return replace(self, explained=output)

    def channels(self, output: int, shares: Floats) -> LinearChannels:
        """Return the trees of one output with weights ``shares`` (n_background, n_channels) of any sign and sum."""
        return LinearChannels(self, output, shares)

    def plan(self, n_rows: int | None) -> TreePlan:
        plans: list[Any] = [part.plan(n_rows) for part in self.inner.parts]
        return add_plans(plans, _REASON)

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        del n_jobs
        return self.model.trees.predict(rows)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        more = self.misses_more(rows)
        out = np.empty((len(rows), self.n_players, self.n_outputs))
        out[~more] = _values(self.inner, rows[~more], n_jobs)
        if more.any():
            out[more] = _values(self.complete, rows[more], n_jobs)
        if outputs is not None:
            outputs[:] = self.predict(rows)
        return out

    def partial_means(self, rows: NDArray[Any], sets: PlayerSets, n_jobs: int = -1) -> Floats:
        more = self.misses_more(rows)
        out = np.empty((len(rows), len(sets), self.n_outputs))
        out[~more] = self.inner.partial_means(rows[~more], sets, n_jobs)
        if more.any():
            out[more] = self.complete.partial_means(rows[more], sets, n_jobs)
        return out

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        return _LinearInteractions(self, (index, order, wanted, min_order))

    def lookups(self, budget: int) -> list[PageLookup] | str:
        del budget
        return "the leaves of these trees hold linear functions, which a page does not compute."

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> LinearTreeEngine:
        return LinearTreeEngine.of(self.model, rows, weights, self.explained)

    def to(self, device: str) -> LinearTreeEngine:
        return replace(self, inner=self.inner.to(device), others=Memo())

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        """Return named arrays and a header; with the background also where some tree has no table."""
        model = self.model
        arrays, header = self.inner.to_contents(interactions)
        names = [name for name in arrays if name.endswith((".background", ".weights"))]
        if (names or background) and self.given is not None:
            arrays["background"] = self.given.rows
            if self.given.weights is not None:
                arrays["weights"] = self.given.weights
        arrays = {name: array for name, array in arrays.items() if name not in names}
        of_trees, size = ensemble_to_contents(model.trees.trees)
        arrays |= of_trees | {name: getattr(model.trees, name) for name in _TERM_TYPES}
        arrays |= {"player": model.player, "missing": self.missing}
        slopes: Any = self.inner.parts[1:]
        about = {"memory": model.memory, "precision": model.dtype.name, "strategy": model.strategy}
        about |= {"slopes": [list(part.terms) for part in slopes]}
        return arrays, header | {
            "linear": size | about,
            "n_background": self.n_background,
            "output": self.output.name,
        }

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> Self:
        """Return the engine that `to_contents` wrote."""
        about = get_part(header, "linear")
        names = (*_TERM_TYPES, "player", "missing")
        require(all(name in arrays for name in names), "its linear functions are not there")
        for name, kind in _TERM_TYPES.items():
            verify_array(name, arrays[name], kind)
        e = ensemble_from_contents({k: a for k, a in arrays.items() if k.startswith("trees.")}, about)
        trees = LinearTrees(e, *(arrays[name] for name in _TERM_TYPES))
        verify_trees(e, arrays["player"], np.ones(e.n_trees, dtype=bool))
        verify_array("missing", arrays["missing"], "?")
        require(arrays["missing"].shape == (e.n_features,), "missing has the wrong length")
        rows, weights = arrays.get("background"), arrays.get("weights")
        verify_rows(e, rows, weights)
        dtype, strategy = get_typed(about, "precision", str), get_typed(about, "strategy", str)
        require(dtype in ("float32", "float64"), "precision is unknown")
        memory = stored_memory(get_typed(about, "memory", int))
        given = None if rows is None else BackgroundRows(rows, weights)
        inner = SumEngine(_parts_from_contents(arrays, header, given, (e.n_features, e.n_outputs)))
        first: Any = inner.parts[0]
        same = np.array_equal(first.model.player, arrays["player"])
        require(
            same and all(part.n_players == first.n_players for part in inner.parts),
            "its parts differ in players",
        )
        strategy = "auto" if strategy == "tables" else strategy
        about_engine = (first.index, first.model.link, first.model.kind)
        model = LinearModel(trees, arrays["player"], memory, np.dtype(dtype), strategy, *about_engine)
        n_background = get_size(header, "n_background") or 0
        output = OUTPUTS.get(get_typed(header, "output", str), Raw)(model.link)
        explained = output if output.is_raw else Raw(model.link)
        return cls(inner, model, given, n_background, arrays["missing"], explained)


def _parts_from_contents(
    arrays: dict[str, NDArray[Any]],
    header: dict[str, Any],
    given: BackgroundRows | None,
    shape: tuple[int, int],
) -> tuple[Any, ...]:
    """Return the parts of a sum that `_add_up` made, with their backgrounds where these were kept."""
    n_features, n_outputs = shape
    slopes = get_typed(get_part(header, "linear"), "slopes", tuple[SlopeTerms, ...])
    require(len(slopes) + 1 == len(get_typed(header, "parts", list)), "it has other parts than columns")
    parts: list[Any] = []
    for k, about in enumerate((None, *slopes)):
        mine, of_part = part_contents(arrays, header, k)
        require(about is None or 0 <= about.column < n_features, "a column with slopes is not there")
        if given is not None:
            lacks = about is not None and about.total is None
            weights = given.weights if about is None else about.weights(given)
            mine["background"] = _without(given.rows, about.column) if lacks else given.rows
            mine |= {} if weights is None else {"weights": weights}
        engine = TreeEngine.from_contents(mine, of_part)
        fits = (engine.model.ensemble.n_features, engine.n_outputs) == (n_features, n_outputs)
        require(fits and engine.model.ensemble.dtype == np.float64, "a part does not fit its trees")
        parts.append(engine if about is None else SlopeEngine(engine, about))
    return tuple(parts)


@dataclass(frozen=True, eq=False)
class _LinearInteractions:
    """Interactions of rows by the engine that knows what they miss (see `InteractionEngine`)."""

    engine: LinearTreeEngine
    asked: tuple[Any, ...]

    @cached_property
    def usual(self) -> InteractionEngine:
        return self.engine.inner.interactions(*self.asked)

    @cached_property
    def complete(self) -> InteractionEngine:
        return self.engine.complete.interactions(*self.asked)

    @property
    def keys(self) -> Keys:
        return self.usual.keys

    @property
    def n_outputs(self) -> int:
        return self.usual.n_outputs

    @property
    def rows_per_block(self) -> int:
        return self.usual.rows_per_block

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        more = self.engine.misses_more(rows)
        for which, part in ((~more, self.usual), (more, self.complete if more.any() else self.usual)):
            # Linear leaves use the columns of their path, so that sets of players are the same in both.
            assert np.array_equal(part.keys, self.keys)
            mine = np.zeros((int(which.sum()), *out.shape[1:]))
            part.add(rows[which], mine)
            out[which] += mine

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        return self.usual.seconds(rows)


@dataclass(frozen=True, eq=False)
class LinearChannels:
    """Trees with linear leaves against a background with several weights per row (see `MixedTrees`)."""

    engine: LinearTreeEngine
    output: int
    shares: Floats

    def _channels(self, whole: SumEngine) -> list[tuple[SlopeTerms | None, ChannelTrees]]:
        found: list[tuple[SlopeTerms | None, ChannelTrees]] = []
        for part in whole.parts:
            terms = part.terms if isinstance(part, SlopeEngine) else None
            engine, shares = part.inner if isinstance(part, SlopeEngine) else part, self.shares
            assert isinstance(engine, TreeEngine) and self.engine.given is not None
            if terms is not None and terms.total is not None:  # the sum of weights is in them
                shares = shares * (terms.numbers(self.engine.given.rows) / terms.total)[:, None]
            found.append((terms, channel_trees(engine, self.output, shares)))
        return found

    @cached_property
    def usual(self) -> list[tuple[SlopeTerms | None, ChannelTrees]]:
        return self._channels(self.engine.inner)

    @cached_property
    def complete(self) -> list[tuple[SlopeTerms | None, ChannelTrees]]:
        return self._channels(self.engine.complete)

    def mixed_values(self, rows: NDArray[Any], mix: Floats, n_jobs: int = -1) -> Floats:
        more = self.engine.misses_more(rows)
        out = np.zeros((len(rows), self.engine.n_players))
        for which, parts in ((~more, self.usual), (more, self.complete if more.any() else [])):
            some, weights = rows[which], mix[which]
            for terms, trees in parts:
                if terms is None:
                    out[which] += trees.mixed_values(some, weights, n_jobs)
                else:
                    found = trees.mixed_values(terms.encode(some), weights, n_jobs)
                    out[which] += found * terms.factor(some)[:, 0]
        return out

    def plan(self, n_rows: int | None) -> TreePlan:
        return add_plans([trees.plan(n_rows) for _, trees in self.usual], _REASON)

    def build(self, n_jobs: int = -1) -> None:
        for _, trees in self.usual:
            trees.build(n_jobs)

    def to(self, device: str) -> LinearChannels:
        return LinearChannels(self.engine.to(device), self.output, self.shares)


def _check_finite(model: LinearModel, rows: NDArray[Any], name: str) -> None:
    """Raise if a linear function would be infinite."""
    columns = model.trees.columns
    bad = np.argwhere(np.isinf(rows[:, columns]))
    if len(bad):
        raise InputError(
            f"{name} has an infinite number in row {bad[0, 0]}, column {columns[bad[0, 1]]}, of which leaves of the "
            "model hold linear functions. Replace it by a finite number, or by NaN."
        )
