"""What the report says about an explainer and its engine, as plain facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.links import Link
from fouriershap._blackbox.black_box_fit import BlackBoxFit
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine, EngineInfo, PageLookup
from fouriershap.analysis.explainer import ExplainerLike
from fouriershap.report._content import Input


@dataclass(frozen=True, eq=False)
class EngineFacts:
    """What the report says about an explainer, and what its what-if part looks up."""

    kind: str
    info: EngineInfo
    output: str  # its name
    unit: str  # of the output that is explained
    raw_unit: str
    display_link: Link | None  # turns raw outputs into what the model predicts
    fidelity: Any  # Fidelity of what was fitted, None otherwise
    background_error: float
    is_rescaled: bool
    raw: Engine | None  # the engine of the raw output, if another one is explained
    lookups: list[PageLookup] | str
    inputs: list[Input]
    method: str = ""  # of a black box: how it was fitted
    rounding_rows: NDArray[Any] | None = None  # rows to measure the error of rounded look-ups on


def engine_facts(explainer: ExplainerLike, fit: BlackBoxFit | None, rows: Rows, budget: int) -> EngineFacts:
    """Return the facts of an explainer; look-ups that would be far larger than ``budget`` bytes are not made."""
    engine, output = explainer.engine, explainer.engine.output
    raw, info = engine.raw, engine.raw.info
    return EngineFacts(
        kind="black box" if fit is not None else info.model or info.kind,
        info=info,
        output=output.name,
        unit=output.unit,
        raw_unit=raw.output.unit,
        display_link=raw.output.display_link,
        fidelity=engine.quality.fidelity if fit is None else fit.fidelity,
        background_error=info.background_error,
        is_rescaled=engine.plan(None).strategy == "rescaled",
        raw=None if raw is engine else raw,
        lookups=raw.lookups(budget),
        inputs=[
            Input(field.name, field.player, field.values, field.missing, field.labels, field.numbers)
            for field in explainer.inputs.fields(rows)
        ],
        method="" if fit is None else fit.method,
        rounding_rows=rows.codes.astype(np.float64) if rows.codes.dtype == np.uint8 else rows.codes,
    )
