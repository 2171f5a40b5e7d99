"""`SpectrumEngine`: a spectrum against one background, by tables of its terms and the closed form."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.bits import check_bits, check_packed, pack, unpack
from fouriershap._base.checks import check_memory, check_weights, copy_if_shared, stored_memory
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.headers import get_size, get_typed, require
from fouriershap._base.parallel import for_each_block
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley.engine import BackgroundRows, BaseEngine, Contents, EngineInfo, Floats, PageLookup
from fouriershap._shapley.indices import (
    MAIN_EFFECT,
    SHAPLEY,
    Index,
    InteractionIndex,
    find_index,
    stored_index,
)
from fouriershap._shapley.jax import put_tables
from fouriershap._shapley.means import PlayerSets, means_by_effects
from fouriershap._shapley.outputs.kinds import Raw
from fouriershap._shapley.policy import LastPairs
from fouriershap._shapley.sets import InteractionEngine, Keys, lost_background
from fouriershap._shapley.spectrum.blocks import MOST_ATOMS, atom_codes, compile_terms, cover_within
from fouriershap._shapley.spectrum.direct import add_differences, add_direct
from fouriershap._shapley.spectrum.interactions import SpectrumPairs, make_spectrum_pairs, make_spectrum_sets
from fouriershap._shapley.spectrum.lookups import bit_lookup
from fouriershap._shapley.spectrum.plan import Plan, compiled_seconds, plan_terms
from fouriershap._shapley.spectrum.terms import Terms, make_terms
from fouriershap._shapley.tables import TableSet, tables_from_arrays, tables_to_arrays
from fouriershap._shapley.verify import verify_numbers, verify_tables, verify_terms, verify_weights

_ROWS_PER_BLOCK = 4096
NO_TABLE = "some terms of the spectrum have no table."
_TERM_ARRAYS = ("atom_start", "atom_bits", "atom_player", "start", "atoms", "coefficients", "constant")


@dataclass(frozen=True, eq=False)
class SpectrumEngine(BaseEngine):
    """Exact SHAP values of a spectrum (see `Engine`); rows are bits (n_rows, n_bits) uint8."""

    terms: Terms  # all of them
    tables: TableSet
    rest: Terms  # those without a table
    # (n, n_bits) background rows, for terms without a table and interactions; files keep them only for these.
    kept_rows: NDArray[np.uint8]
    weights: Floats | None  # (n,)
    expected: Floats  # (n_outputs,)
    made_by: Plan  # which terms went into tables, and why
    index: Index
    memory: int
    n_background: int | None
    reader: Any = None  # reads the tables under XLA; None for the native kernels
    last_pairs: LastPairs[SpectrumPairs] = field(default_factory=LastPairs)
    output = Raw()

    @property
    def n_players(self) -> int:
        return self.terms.n_players

    @property
    def n_outputs(self) -> int:
        return self.terms.n_outputs

    @property
    def representation(self) -> Terms:
        return self.terms

    @property
    def background(self) -> BackgroundRows | None:
        return BackgroundRows(self.kept_rows, self.weights) if len(self.kept_rows) else None

    @property
    def device(self) -> str:
        return "cpu" if self.reader is None else "jax"

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))

        def work(first: int, last: int) -> None:
            self.tables.add(atom_codes(self.terms, rows[first:last]), out[first:last])

        if self.reader is None:
            for_each_block(work, len(rows), _ROWS_PER_BLOCK, n_jobs)
        else:
            self.reader.add(atom_codes(self.terms, rows), out)
        if self.index is SHAPLEY:  # which has a kernel of its own
            add_direct(self.rest, rows, self.kept_rows, self.weights, out, n_jobs)
        else:
            add_differences(self.rest, rows, self.kept_rows, self.weights, self.index, None, out)
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return out

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        return self.terms.evaluate(rows, n_jobs)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        if self.are_own_pairs(index, order, min_order):
            return self._pairs(wanted)
        settings = (self.kept_rows, self.weights, index, order, wanted, min_order)
        return make_spectrum_sets(self.terms, *settings)

    def partial_means(self, rows: NDArray[Any], sets: PlayerSets, n_jobs: int = -1) -> Floats:
        if not len(self.kept_rows):
            raise lost_background()
        return means_by_effects(self._main_effects, rows, sets, n_jobs)

    @cached_property
    def _main_effects(self) -> SpectrumEngine:
        settings = (self.kept_rows, self.weights, self.memory, None, "auto", MAIN_EFFECT)
        return compile_spectrum(self.terms, *settings)

    def _pairs(self, wanted: Keys | None) -> SpectrumPairs:
        def make() -> SpectrumPairs:
            if not len(self.kept_rows):
                raise InputError(
                    "these tables were loaded from a file without the background, which interactions need. Save "
                    "with save(path, interactions=True)."
                )
            settings = (self.kept_rows, self.weights, self.memory, self.index, wanted)
            return make_spectrum_pairs(self.terms, *settings)

        return self.last_pairs.get(wanted, make)

    def lookups(self, budget: int) -> list[PageLookup] | str:
        del budget  # tables are built already
        return NO_TABLE if self.rest.n_terms else [bit_lookup(self.terms, self.tables)]

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> SpectrumEngine:
        other = compile_spectrum(self.terms, rows, weights, self.memory, None, "auto", self.index)
        return other.to(self.device)

    def to(
        self, device: str, precision: str | None = None, memory: int | float | None = None
    ) -> SpectrumEngine:
        """Return the same on a device; on "jax" with a precision of tables and totals, and a budget in bytes."""
        reader = put_tables(self.tables, precision, memory) if device == "jax" else None
        return replace(self, reader=reader)

    def plan(self, n_rows: int | None) -> Plan:
        if n_rows is None:
            return self.made_by
        weighted = self.weights is not None
        seconds = compiled_seconds(n_rows, self.tables.n_tables, self.rest, self.n_background, weighted)
        return replace(self.made_by, seconds=seconds)

    @property
    def info(self) -> EngineInfo:
        with np.errstate(over="ignore"):
            energy = np.asarray((self.terms.coefficients**2).sum(axis=1))
        return EngineInfo(
            kind="spectrum",
            n_background=self.n_background,
            n_terms=self.terms.n_terms,
            n_tables=self.tables.n_tables,
            table_bytes=self.tables.nbytes,
            n_without_table=self.rest.n_terms,
            degrees=self.terms.degrees,
            term_energy=energy,
        )

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        """Return tables, terms, and the background where interactions or terms without a table need it."""
        if interactions and not len(self.kept_rows):
            self._pairs(None)  # raises
        arrays = tables_to_arrays(self.tables) | {"expected": self.expected}
        for name in _TERM_ARRAYS:
            arrays[f"terms.{name}"] = getattr(self.terms, name)
            arrays[f"rest.{name}"] = getattr(self.rest, name)
        needed = interactions or background or self.rest.n_terms > 0
        arrays["background"] = pack(self.kept_rows if needed else self.kept_rows[:0])
        if self.weights is not None and needed:
            arrays["weights"] = self.weights
        header: dict[str, Any] = {"n_bits": self.terms.n_bits, "n_players": self.n_players}
        header |= {"index": self.index.name, "memory": self.memory, "n_background": self.n_background}
        return arrays, header | {"plan": asdict(self.made_by)}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> SpectrumEngine:
        """Build from what `to_contents` returned: nothing is compiled, tables stay memory-mapped."""
        sizes = (get_typed(header, "n_bits", int), get_typed(header, "n_players", int))
        check_packed(arrays["background"], sizes[0])
        terms, rest = (
            Terms(*sizes, *(arrays[f"{part}.{name}"] for name in _TERM_ARRAYS)) for part in ("terms", "rest")
        )
        for part in (terms, rest):
            verify_terms(part, terms.n_outputs)
        background, weights = unpack(arrays["background"], sizes[0]), arrays.get("weights")
        tables = tables_from_arrays(arrays, terms.n_players, terms.n_outputs)
        verify_tables(tables, terms.n_atoms, 0)
        verify_weights(weights, background)
        verify_numbers(np.dtype(np.float64), (arrays["expected"],), terms.n_outputs)
        lost = rest.n_terms and not len(background)
        require(not lost, "terms without tables need a background, which is missing")
        n_background = get_size(header, "n_background")
        known = not len(background) or n_background in (None, len(background))
        require(known, "its background does not have the stated number of rows")
        plan = replace(get_typed(header, "plan", Plan), seconds=math.nan)  # which is of a number of rows
        counts = (plan.n_direct_terms, plan.n_table_terms) == (rest.n_terms, terms.n_terms - rest.n_terms)
        require(counts, "its plan does not match its terms")
        index = stored_index(get_typed(header, "index", str), terms.n_players)
        parts = (background, weights, arrays["expected"], plan, index, stored_memory(header.get("memory")))
        return cls(terms, tables, rest, *parts, n_background)


def compile_spectrum(
    terms: Terms,
    background: NDArray[np.uint8],
    weights: Floats | None,
    memory: int,
    n_rows: int | None,
    strategy: str = "auto",
    index: Index = SHAPLEY,
) -> SpectrumEngine:
    """Compile terms into tables where that pays for ``n_rows`` rows; None for any number."""
    plan, wanted = plan_terms(terms, n_rows, len(background), weights is not None, memory, strategy)
    cover, in_tables = cover_within(terms, wanted, memory, order=1)
    tables = compile_terms(terms.select(in_tables), cover, background, weights, index)
    plan = plan.after(int(in_tables.sum()), tables.nbytes, memory)
    if strategy == "tables" and plan.n_direct_terms:
        raise CapacityError(
            f"{plan.n_direct_terms} of {terms.n_terms} terms do not fit into tables (at most {MOST_ATOMS} players per "
            f"term, and {memory:,} bytes in all). Raise `memory`, or use strategy='auto', which explains them "
            "by the closed form."
        )
    expected = np.asarray(np.average(terms.evaluate(background), axis=0, weights=weights))
    rest = terms.select(~in_tables)
    parts = (background, weights, expected, plan, index, memory, len(background))
    return SpectrumEngine(terms, tables, rest, *parts)


def make_engine(
    spectrum: Spectrum,
    background: ArrayLike,
    *,
    players: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    memory: int | float | None = None,
    index: str | Index = "shapley",
    strategy: str = "auto",
    n_rows: int | None = None,
) -> SpectrumEngine:
    """Check arguments as callers give them (see `fouriershap.spectra.shap_values`), and compile."""
    terms = make_terms(spectrum, players)
    rows = copy_if_shared(check_bits(background, spectrum.n_bits, name="background"), background)
    share = check_weights(weights, len(rows))
    by = index if isinstance(index, Index) else find_index(index)
    return compile_spectrum(terms, rows, share, check_memory(memory), n_rows, strategy, by)
