"""`SumEngine`: several engines on the same rows, whose outputs add up; so do their values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.engine import (
    BackgroundRows,
    BaseEngine,
    Contents,
    Engine,
    EngineInfo,
    Floats,
    PageLookup,
    Plan,
    Quality,
)
from fouriershap._shapley.indices import Index, InteractionIndex
from fouriershap._shapley.means import PlayerSets
from fouriershap._shapley.outputs.kinds import Output
from fouriershap._shapley.sets import Keys, SumInteractions, sum_interactions


@dataclass(frozen=True)
class SumPlan(Plan):
    """How each part of a sum is explained."""

    parts: tuple[Plan, ...]


@dataclass(frozen=True, eq=False)
class SumEngine(BaseEngine):
    """The sum of engines (see `Engine`)."""

    parts: tuple[Engine, ...]

    @property
    def n_players(self) -> int:
        return self.parts[0].n_players

    @property
    def n_outputs(self) -> int:
        return self.parts[0].n_outputs

    @property
    def index(self) -> Index:
        return self.parts[0].index

    @property
    def output(self) -> Output:
        return self.parts[0].output

    @property
    def expected(self) -> Floats:
        return np.asarray(np.sum([part.expected for part in self.parts], axis=0))

    @property
    def device(self) -> str:
        return self.parts[0].device

    @property
    def representation(self) -> tuple[object, ...]:
        return tuple(part.representation for part in self.parts)

    @property
    def background(self) -> BackgroundRows | None:
        return next((found for part in self.parts if (found := part.background) is not None), None)

    @property
    def quality(self) -> Quality:
        return Quality(max(part.quality.background_error for part in self.parts))

    @property
    def info(self) -> EngineInfo:
        parts = tuple(part.info for part in self.parts)
        return EngineInfo("sum", parts[0].n_background, parts[0].is_path_dependent, parts=parts)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        values = self.parts[0].shap_values(rows, n_jobs, outputs)
        for part in self.parts[1:]:
            values += part.shap_values(rows, n_jobs)
            if outputs is not None:
                outputs += part.predict(rows, n_jobs)
        return values

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        return np.asarray(np.sum([part.predict(rows, n_jobs) for part in self.parts], axis=0))

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> SumInteractions:
        return sum_interactions([part.interactions(index, order, wanted, min_order) for part in self.parts])

    def partial_means(self, rows: NDArray[Any], sets: PlayerSets, n_jobs: int = -1) -> Floats:
        return np.asarray(np.sum([part.partial_means(rows, sets, n_jobs) for part in self.parts], axis=0))

    def lookups(self, budget: int) -> list[PageLookup] | str:
        found: list[PageLookup] = []
        for part in self.parts:
            mine = part.lookups(budget)
            if isinstance(mine, str):
                return mine
            found += mine
        return found

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> SumEngine:
        return replace(self, parts=tuple(part.with_background(rows, weights) for part in self.parts))

    def to(self, device: str) -> SumEngine:
        return replace(self, parts=tuple(part.to(device) for part in self.parts))

    def build(self, n_jobs: int = -1) -> None:
        for part in self.parts:
            part.build(n_jobs)

    def plan(self, n_rows: int | None) -> SumPlan:
        parts = tuple(part.plan(n_rows) for part in self.parts)
        names, reasons = (part.strategy for part in parts), (part.reason for part in parts)
        seconds = sum(part.seconds for part in parts)
        return SumPlan("+".join(names), "; ".join(reasons), parts, seconds=seconds)

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        arrays: dict[str, NDArray[Any]] = {}
        headers = []
        for k, part in enumerate(self.parts):
            mine, header = part.to_contents(interactions, background)
            arrays |= {f"part{k}.{name}": array for name, array in mine.items()}
            headers.append(header)
        return arrays, {"parts": headers, "index": self.index.name}


def part_contents(arrays: dict[str, NDArray[Any]], header: dict[str, Any], k: int) -> Contents:
    """Return what `SumEngine.to_contents` wrote of one part."""
    prefix = f"part{k}."
    mine = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
    return mine, dict(header["parts"][k])
