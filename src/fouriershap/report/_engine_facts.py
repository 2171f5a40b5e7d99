"""What the report says about an explainer and its engine, as plain facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.links import Link
from fouriershap._rows.frames import Rows
from fouriershap._rows.inputs import InputField, RulesEncoder
from fouriershap._shapley.engine import Engine, EngineInfo, PageLookup
from fouriershap.analysis.explainer import ExplainerLike


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
    inputs: list[InputField]
    method: str  # of a black box: how it was fitted; "" otherwise
    codes: NDArray[Any]  # the rows as look-ups take them
    missing_value: float | None  # a number that counts as missing when a reader types it
    zero_as_missing: NDArray[np.bool_]  # (n_inputs,) whether 0 does


def engine_facts(explainer: ExplainerLike, rows: Rows, budget: int) -> EngineFacts:
    """Return the facts of an explainer; look-ups that would be far larger than ``budget`` bytes are not made."""
    engine, output, fit = explainer.engine, explainer.engine.output, explainer.fitted
    raw, info = engine.raw, engine.raw.info
    inputs = explainer.inputs.fields(rows)
    missing_value, zero_as_missing = None, np.zeros(len(inputs), dtype=bool)
    encoder = explainer.inputs.encoder
    if isinstance(encoder, RulesEncoder):
        number = encoder.rules.missing_value
        missing_value = None if np.isnan(number) else number
        zero_as_missing[list(encoder.rules.zero_as_missing)] = True
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
        inputs=inputs,
        method="" if fit is None else fit.method,
        codes=rows.codes.astype(np.float64) if rows.codes.dtype == np.uint8 else rows.codes,
        missing_value=missing_value,
        zero_as_missing=zero_as_missing,
    )
