"""`ProductEngine`: a sum of products over players against one background."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.errors import CapacityError, FidelityWarning, InputError
from fouriershap._base.headers import get_size, get_typed, require
from fouriershap._base.links import LINKS
from fouriershap._base.messages import truncated_repr
from fouriershap._base.warn import warn
from fouriershap._shapley.engine import (
    BackgroundRows,
    BaseEngine,
    Contents,
    EngineInfo,
    Floats,
    PageLookup,
    Plan,
    Quality,
)
from fouriershap._shapley.indices import Index, InteractionIndex, index_of_sets, stored_index, title
from fouriershap._shapley.means import PlayerSets
from fouriershap._shapley.outputs.kinds import OUTPUTS, Output, Raw
from fouriershap._shapley.products.components import Pairs, compile_pairs
from fouriershap._shapley.products.lookups import LinearLookup, WaveLookup
from fouriershap._shapley.products.mixture import Mixture, compile_mixture
from fouriershap._shapley.products.model import (
    ProductSum,
    WeightedRows,
    by_blocks,
    product_means,
    rows_per_block,
    weighted_rows,
)
from fouriershap._shapley.products.strategy import Additive, Strategy
from fouriershap._shapley.products.subsets import MOST_NUMBERS, MOST_PLAYERS, Subsets, compile_subsets
from fouriershap._shapley.sets import (
    InteractionEngine,
    Keys,
    QuickInteractions,
    all_keys,
    check_count,
    first_key,
    key_sets,
    lost_background,
    sum_interactions,
)
from fouriershap._waves.products import Products
from fouriershap._waves.waves import Waves

MOST_PAIRS = 32  # rows of a background that is not compressed
MOST_WORK = 1 << 23  # multiplications for a row that few background rows may take, about a millisecond
MOST_BYTES = 2 << 30  # of what an exact strategy holds
_TRIED_ROWS, _TRIED_PAIRS = 2, 100  # in which a compressed background is compared with all of it
_QUIET = 0.01  # what it may miss without a warning
_STRATEGIES: dict[str, Any] = {each.name: each for each in (Additive, Pairs, Subsets, Mixture)}
_REASONS = {
    "additive": "no player's part depends on another's",
    "pairs": "every row of the background",
    "subsets": "few players: every coalition has its table",
    "mixture": "a few products of marginals stand for the background",
}
_RAW = Raw()
NO_LOOKUP = "a report cannot look up products over features, which are not linear."


@dataclass(frozen=True)
class ProductPlan(Plan):
    """How a sum of products is explained, and why.

    Attributes
    ----------
    strategy : {"additive", "pairs", "subsets", "mixture"}
        Players by themselves, every row of the background, every coalition, or a few products of marginals.
    n_components : int
        Products that stand for the background; 0 where nothing does.
    error : float
        Share of the square sum of the values that is missed by that; 0 where exact.
    """

    n_components: int
    error: float


@dataclass(frozen=True)
class ProductSettings:
    """How a background is compiled.

    Attributes
    ----------
    tolerance : float
        Most of the square sum of the values that a compressed background may miss.
    exact : bool
        Compress no background, however long its rows take.
    budget : int
        Compress none either while a row takes no more multiplications than this.
    """

    tolerance: float = 1e-3
    exact: bool = False
    budget: int = 0

    def to_header(self) -> dict[str, Any]:
        """Return the settings for the header of a file."""
        return {"tolerance": self.tolerance, "exact_background": self.exact, "budget": self.budget}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> ProductSettings:
        """Return what `to_header` wrote."""
        exact = get_typed(header, "exact_background", bool)
        return cls(get_typed(header, "tolerance", float), exact, get_typed(header, "budget", int))


@dataclass(frozen=True, eq=False)
class ModelEngine(BaseEngine):
    """An engine of a sum of products."""

    model: ProductSum

    @property
    def n_players(self) -> int:
        return self.model.n_players

    @property
    def n_outputs(self) -> int:
        return self.model.n_outputs

    @property
    def representation(self) -> ProductSum:
        return self.model

    @property
    def player(self) -> NDArray[np.int32]:
        """(n_features,) int32: the player that owns each column of rows."""
        assert isinstance(self.model, Products)
        return self.model.player


@dataclass(frozen=True, eq=False)
class ProductEngine(ModelEngine):
    """SHAP values of a sum of products (see `Engine`); rows are what the sum takes.

    Attributes
    ----------
    model : ProductSum
    strategy : Strategy
    centre : (n_players, n_outputs) float64
        Mean over the background of what players add by themselves.
    expected : (n_outputs,) float64
    index : Index
    n_background : int or None
    settings : ProductSettings
    background : BackgroundRows or None
    output : Output
        What the sum stands for.
    device : {"cpu", "jax"}
    """

    strategy: Strategy
    centre: Floats
    expected: Floats
    index: Index
    n_background: int | None
    settings: ProductSettings
    background: BackgroundRows | None = None
    output: Output = _RAW
    device: str = "cpu"

    @property
    def kernel(self) -> Any:
        """Functions on factors: the native kernels, or the same under XLA."""
        if self.device == "cpu":
            return kernels.products
        return import_module("fouriershap._shapley.jax.products")

    @property
    def quality(self) -> Quality:
        return Quality(self.strategy.error)

    @property
    def outline(self) -> EngineInfo:
        """The facts for which nothing needs to be compiled."""
        return EngineInfo("products", self.n_background, n_terms=self.model.coefficients.shape[2])

    @property
    def info(self) -> EngineInfo:
        name, n, error = self.strategy.name, self.strategy.n_components, self.strategy.error
        return replace(self.outline, strategy=name, n_components=n, background_error=error)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))

        def work(some: NDArray[Any]) -> Floats:
            products = self.strategy.values(self.model, some, self.kernel)
            return products + self.model.additive(some) - self.centre

        with np.errstate(over="ignore", invalid="ignore"):
            by_blocks(work, self.model, rows, out, n_jobs)
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return out if self.output.is_raw else check_finite(out, self.output)

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        out = np.zeros((len(rows), self.n_outputs))
        return by_blocks(self.model.predict, self.model, rows, out, n_jobs)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        n_players = self.n_players
        if isinstance(self.strategy, Mixture) and order > 1 and self.background is not None:
            self._warn_of_missed_pairs(self.background, index_of_sets(index, order, 2))
        most = 1 if isinstance(self.strategy, Additive) else order
        if wanted is None:
            check_count(n_players, most)
            wanted = all_keys(range(n_players), most, n_players)
        start = [np.searchsorted(wanted, first_key(s, n_players)) for s in range(min_order, order + 2)]
        parts = [
            ProductSets(self, index_of_sets(index, order, size), wanted[first:last], size)
            for size, first, last in zip(range(min_order, order + 1), start, start[1:], strict=False)
        ]
        return sum_interactions(parts)

    def _warn_of_missed_pairs(self, background: BackgroundRows, index: Index) -> None:
        """Warn of what the products that stand for the background miss of some pairs: they were chosen for players."""
        weighted, n_terms = (
            weighted_rows(background.rows, background.weights),
            self.model.coefficients.shape[2],
        )
        if 16 * len(weighted) * self.n_players * n_terms > MOST_BYTES:
            missed = "more of interactions than of SHAP values"
        else:
            pairs = np.stack(np.triu_indices(self.n_players, 1), axis=1)
            some = np.random.default_rng(0).permutation(len(pairs))[:_TRIED_PAIRS]
            rows, every = weighted.rows[:_TRIED_ROWS], compile_pairs(self.model, weighted, self.index)
            found, true = (
                strategy.interactions(self.model, rows, index, pairs[some], self.kernel)
                for strategy in (self.strategy, every)
            )
            share = float(np.sqrt(((found - true) ** 2).sum() / max((true**2).sum(), 1e-300)))
            if share < _QUIET:
                return
            missed = f"{share:.1%} of the interactions of {len(some)} pairs"
        warn(
            f"products of marginals stand for the background, which miss {missed}. `ProductExplainer` takes "
            "compress_background=False: all rows, and more time.",
            FidelityWarning,
        )

    def partial_means(self, rows: NDArray[Any], sets: PlayerSets, n_jobs: int = -1) -> Floats:
        del n_jobs  # matrix products
        if self.background is None:
            raise lost_background()
        others = weighted_rows(self.background.rows, self.background.weights)
        change = self.model.additive(rows) - self.centre
        members = [list(players) for players in sets]
        out = np.stack([change[:, players].sum(axis=1) for players in members], axis=1)
        return out + self.expected + product_means(self.model, rows, others, members)

    def lookups(self, budget: int) -> list[PageLookup] | str:
        del budget  # these are small
        if self.index.subgames and not isinstance(self.strategy, Additive):
            return f"a report cannot look up {title(self.index)} of waves."
        if isinstance(self.model, Waves):
            return [WaveLookup(self.model, self.strategy, self.centre)]
        if isinstance(self.model, Products) and isinstance(self.strategy, Additive):
            return [LinearLookup(self.model.player, self.model.linear, self.centre)]
        return NO_LOOKUP

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> ProductEngine:
        other = compile_products(self.model, rows, weights, self.index, self.settings, self.output)
        return other.to(self.device)

    def to(self, device: str) -> ProductEngine:
        return replace(self, device=device)

    def plan(self, n_rows: int | None) -> ProductPlan:
        del n_rows  # what is compiled is used
        name = self.strategy.name
        return ProductPlan(name, _REASONS[name], self.strategy.n_components, self.strategy.error)

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        """Return the model (waves are stored with their fit) and what the background was compiled to."""
        del interactions  # they need nothing more
        arrays, header = self.strategy.to_contents()
        if isinstance(self.model, Products):
            model, about_model = self.model.to_contents()
            arrays, header = arrays | model, header | about_model
        arrays |= {"centre": self.centre, "expected": self.expected}
        if background and self.background is not None:
            arrays |= weighted_rows(self.background.rows, self.background.weights).to_arrays()
        about = product_header(self.index, self.n_background, self.settings, self.output)
        return arrays, header | about | {"strategy": self.strategy.name}

    @classmethod
    def from_contents(
        cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: ProductSum
    ) -> ProductEngine:
        """Return what `to_contents` wrote: nothing is compiled."""
        name = get_typed(header, "strategy", str)
        require(name in _STRATEGIES, "its strategy is unknown")
        index, n_background, settings, output = read_product_header(header, model.n_players)
        strategy = _STRATEGIES[name].from_contents(arrays, header, model, index)
        centre, expected = arrays["centre"], arrays["expected"]
        shapes = (model.n_players, model.n_outputs), (model.n_outputs,)
        for array, shape in zip((centre, expected), shapes, strict=True):
            fits = array.shape == shape and array.dtype == np.float64 and np.isfinite(array).all()
            require(fits, "its means are those of another model")
        background = None
        if "background" in arrays and isinstance(model, Products):
            kept = WeightedRows.from_arrays(arrays, model.n_features)
            background = BackgroundRows(kept.rows, kept.weights)
        return cls(model, strategy, centre, expected, index, n_background, settings, background, output)


def product_header(
    index: Index, n_background: int | None, settings: ProductSettings, output: Output
) -> dict[str, Any]:
    """Return what engines of products write to the header of a file."""
    about = {"index": index.name, "n_background": n_background}
    return about | settings.to_header() | {"output": output.name, "link": output.link.name}


def read_product_header(
    header: dict[str, Any], n_players: int
) -> tuple[Index, int | None, ProductSettings, Output]:
    """Return index, number of background rows, settings and output of what `product_header` wrote."""
    name, link = get_typed(header, "output", str), get_typed(header, "link", str)
    require(name in OUTPUTS and link in LINKS, "its output is unknown")
    sizes = (stored_index(get_typed(header, "index", str), n_players), get_size(header, "n_background"))
    return *sizes, ProductSettings.from_header(header), OUTPUTS[name](LINKS[link])


@dataclass(frozen=True, eq=False)
class ProductSets(QuickInteractions):
    """Interactions of sets of one size in a sum of products (see `InteractionEngine`)."""

    engine: ProductEngine
    index: Index
    keys: Keys
    size: int

    @cached_property
    def _sets(self) -> NDArray[np.int64]:
        sets = key_sets(self.keys, self.engine.n_players)
        return np.array(sets, dtype=np.int64).reshape(-1, self.size)

    @property
    def n_outputs(self) -> int:
        return self.engine.n_outputs

    @property
    def rows_per_block(self) -> int:
        return rows_per_block(self.engine.model)

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        engine, sets = self.engine, self._sets
        if not len(sets):
            return
        out += engine.strategy.interactions(engine.model, rows, self.index, sets, engine.kernel)
        if self.size == 1:  # what a player adds by itself is its own, by every index
            out += (engine.model.additive(rows) - engine.centre)[:, sets[:, 0]]


def compile_products(
    model: ProductSum,
    rows: NDArray[Any],
    weights: Floats | None,
    index: Index,
    settings: ProductSettings,
    output: Output | None = None,
) -> ProductEngine:
    """Compile a sum of products against a background."""
    weighted = weighted_rows(rows, weights)
    strategy = _choose(model, weighted, index, settings)
    centre = np.average(model.additive(weighted.rows), axis=0, weights=weighted.weights)
    expected = np.average(model.predict(weighted.rows), axis=0, weights=weighted.weights)
    background = BackgroundRows(rows, weights)
    about = (len(rows), settings, background, _RAW if output is None else output)
    return ProductEngine(model, strategy, centre, expected, index, *about)


def _choose(model: ProductSum, background: WeightedRows, index: Index, settings: ProductSettings) -> Strategy:
    n_players, n_terms, budget = model.n_players, model.coefficients.shape[2], settings.budget
    if n_terms == 0:
        return Additive(index)
    few = n_players <= MOST_PLAYERS and (1 << n_players) * n_terms <= MOST_NUMBERS
    by_pairs = len(background) * n_players * (n_players + 1) // 2
    if few and not by_pairs < 1 << n_players:
        return compile_subsets(model, background, index)
    # What was fitted is no more exact than the fit: there, rows are compressed if they would take long.
    is_quick = bool(budget) or by_pairs * n_terms <= MOST_WORK
    exactly = settings.exact or (len(background) <= MOST_PAIRS and is_quick)
    if budget and n_players <= MOST_PLAYERS and (1 << n_players) < by_pairs:
        numbers = (1 << n_players) * n_terms * model.n_outputs
        if (exactly or numbers <= budget) and 16 * numbers <= MOST_BYTES:
            return compile_subsets(model, background, index)
    if exactly or by_pairs * n_terms <= budget:
        n_bytes = 16 * len(background) * n_players * n_terms
        if n_bytes > MOST_BYTES:
            raise CapacityError(
                f"the factors of all background rows would take {n_bytes / 1e9:.1f} GB. Use fewer background rows, or "
                "leave out compress_background=False: then a few products of marginals stand for them."
            )
        return compile_pairs(model, background, index)
    return compile_mixture(model, background, index, settings.tolerance)


def check_finite(values: Floats, output: Output) -> Floats:
    """Return values, or raise `InputError` that names the row whose output overflows."""
    wrong = ~np.isfinite(values).all(axis=(1, 2))
    if wrong.any():
        raise InputError(
            f"output={truncated_repr(output.name)} of row {int(wrong.argmax())} overflows. Use output='raw', "
            "or check the row."
        )
    return values
