"""`SumEngine`: several engines on the same rows, whose outputs add up; so do their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.engine import Contents, Engine, Floats
from fouriershap._shapley.orders.sets import Keys, SumSets, sets_of, sum_sets
from fouriershap._shapley.pairs import PairEngine, key_pairs, pair_keys
from fouriershap._shapley.products.engine import ProductEngine


@dataclass(frozen=True, eq=False)
class SumEngine:
    """The sum of engines (see `Engine`)."""

    parts: tuple[Engine, ...]

    @property
    def n_players(self) -> int:
        return self.parts[0].n_players

    @property
    def n_outputs(self) -> int:
        return self.parts[0].n_outputs

    @property
    def index(self) -> str:
        return self.parts[0].index

    @property
    def expected(self) -> Floats:
        return np.asarray(np.sum([part.expected for part in self.parts], axis=0))

    @property
    def device(self) -> str:
        return self.parts[0].device

    def shap_values(
        self, rows: NDArray[Any], n_jobs: int | None = None, outputs: Floats | None = None
    ) -> Floats:
        values = self.parts[0].shap_values(rows, n_jobs, outputs)
        for part in self.parts[1:]:
            values += part.shap_values(rows, n_jobs)
            if outputs is not None:
                outputs += part.predict(rows, n_jobs)
        return values

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> Floats:
        return np.asarray(np.sum([part.predict(rows, n_jobs) for part in self.parts], axis=0))

    def pairs(self, wanted: NDArray[np.int64] | None) -> SumPairs:
        return sum_pairs([part.pairs(wanted) for part in self.parts], self.n_players)

    def sets(self, index: str, order: int, wanted: Keys | None) -> SumSets:
        """See `HigherOrders`."""
        return sum_sets([sets_of(part, index, order, wanted) for part in self.parts])

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> SumEngine:
        return replace(self, parts=tuple(part.with_background(rows, weights) for part in self.parts))

    def to(self, device: str) -> SumEngine:
        return replace(self, parts=tuple(part.to(device) for part in self.parts))

    def build(self, n_jobs: int | None = None) -> None:
        for part in self.parts:
            part.build(n_jobs)

    def plan(self, n_rows: int | None) -> tuple[Any, ...]:
        return tuple(part.plan(n_rows) for part in self.parts)

    def describe(self) -> dict[str, Any]:
        facts = [part.describe() for part in self.parts]
        shared = {name: facts[0][name] for name in ("n_background", "by_path")}
        return {"kind": "sum", "parts": facts} | shared

    def to_contents(self, interactions: bool) -> Contents:
        arrays: dict[str, NDArray[Any]] = {}
        headers = []
        for k, part in enumerate(self.parts):
            mine, header = part.to_contents(interactions)
            arrays |= {f"part{k}.{name}": array for name, array in mine.items()}
            headers.append(header)
        return arrays, {"parts": headers, "index": self.index}


def background_error(engine: Engine) -> float:
    """What a compressed background misses of the values, as a share of their square sum; 0 where none is."""
    if isinstance(engine, SumEngine):
        return max(background_error(part) for part in engine.parts)
    return engine.error if isinstance(engine, ProductEngine) else 0.0


def part_contents(arrays: dict[str, NDArray[Any]], header: dict[str, Any], k: int) -> Contents:
    """What `SumEngine.to_contents` wrote of one part."""
    prefix = f"part{k}."
    mine = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
    return mine, dict(header["parts"][k])


@dataclass(frozen=True, eq=False)
class SumPairs:
    """Interactions that add up (see `PairEngine`).

    Attributes
    ----------
    parts : tuple of PairEngine
    columns : tuple of int arrays
        For each part, where its pairs are among ``pairs``.
    """

    parts: tuple[PairEngine, ...]
    pairs: NDArray[np.int32]
    columns: tuple[NDArray[np.int64], ...]

    @property
    def n_outputs(self) -> int:
        return self.parts[0].n_outputs

    @property
    def rows_per_block(self) -> int:
        return min(part.rows_per_block for part in self.parts)

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        for part, columns in zip(self.parts, self.columns, strict=True):
            mine = np.zeros((len(rows), len(columns), out.shape[2]))
            part.add(rows, mine)
            out[:, columns] += mine


def sum_pairs(parts: Sequence[PairEngine], n_players: int) -> SumPairs:
    keys = [pair_keys(part.pairs[:, 0], part.pairs[:, 1], n_players) for part in parts]
    every = np.unique(np.concatenate(keys))
    columns = tuple(np.searchsorted(every, mine).astype(np.int64) for mine in keys)
    return SumPairs(tuple(parts), key_pairs(every, n_players), columns)
