"""What one kind of explainer has to tell on the page of `Explainer.report`, beside its values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.black_box_fit import BlackBoxFit
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.surrogates import LevelEngine
from fouriershap._explainers.page_inputs import bit_inputs, encoding_inputs, level_inputs, tree_inputs
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import Rows
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Engine, EngineInfo, PageLookup
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._waves.waves import Waves
from fouriershap.report import Input, WhatIf

_MOST_CURVE = 500
_TRIED_ROWS = 200  # on which the error of rounded tables is measured
# What raw outputs of trees are, and what turns them into what the model predicts, by the model's objective.
_RAW_UNITS = {"binary": "log-odds", "multiclass": "margin", "probability": "probability"}
_RAW_UNITS |= {"log": "log of the prediction", "log1p": "log of 1 + the prediction"}
_LINKS = {"binary": "sigmoid", "multiclass": "softmax", "log": "exp", "log1p": "expm1"}
_PRODUCT_UNITS = {"logistic": "log-odds", "softmax": "margin", "exp": "log of the prediction"}
_PRODUCT_UNITS |= {"expm1": "log of 1 + the prediction"}
_PRODUCT_LINKS = {"logistic": "sigmoid", "softmax": "softmax", "exp": "exp", "expm1": "expm1"}
_LINK_TEXTS = {
    "sigmoid": "The probability beside a prediction is the sigmoid of its log-odds.",
    "softmax": "The column “softmax” turns the outputs into shares of 1: the classes' probabilities.",
    "exp": "What the model predicts is the exponential of this output, and stands beside it.",
    "expm1": "What the model predicts is the exponential of this output less 1, and stands beside it.",
}


@dataclass(frozen=True, eq=False)
class Subject:
    """What one kind of explainer has to tell, beside its values."""

    kind: str  # what was explained, in a few words
    facts: list[tuple[str, str]]
    meaning: list[str]  # what the values are, and how far to trust them
    inputs: list[Input]
    lookups: list[PageLookup] = field(default_factory=list)  # that add up
    without: str = ""  # why there is no look-up
    unit: str = ""  # of the outputs that are explained
    link: str | None = None  # what turns raw outputs into predictions, see `fouriershap.report.Content`
    profile: dict[str, NDArray[Any]] = field(default_factory=dict)  # of a spectrum, see `_profile`
    beside: Engine | None = None  # explains the raw output, where another one is explained
    raw_unit: str = ""  # of its outputs
    tried: NDArray[Any] | None = None  # rows as the look-ups take them, to measure what rounding does

    @property
    def what_if(self) -> list[WhatIf] | str:
        if not self.lookups:
            return self.without
        return [_what_if(found, self.tried) for found in self.lookups]


def _what_if(found: PageLookup, tried: NDArray[Any] | None) -> WhatIf:
    coarser = None
    if tried is not None and found.rounded(16) is not None:
        coarser = partial(_rounded, found, tried[:_TRIED_ROWS])
    return WhatIf(found.header(), found.arrays(), found.nbytes, coarser)


def _rounded(found: PageLookup, tried: NDArray[Any], n_bits: int) -> WhatIf:
    """Smaller tables, and how far the values of some rows are off."""
    coarser, exact = found.rounded(n_bits), found.shap_values(tried)
    assert coarser is not None
    error = float(np.abs(coarser.shap_values(tried) - exact).max(initial=0.0))
    largest = float(np.abs(exact).max(initial=0.0)) or 1.0
    note = (
        f"The tables of the what-if part are rounded to make the page smaller. On {len(tried):,} rows its values "
        f"differ by at most {error:.1g} from the exact ones, which is {100 * error / largest:.1g} % of the largest."
    )
    return WhatIf(coarser.header(), coarser.arrays(), coarser.nbytes, note=note)


def tree_subject(
    engine: TreeEngine,
    rows: Rows,
    names: tuple[str, ...],
    budget: int,
    output: str = "raw",
    beside: BesideMargin | None = None,
) -> Subject:
    """Of a tree model; ``names`` of its features. Tables that exceed ``budget`` bytes by far are not built."""
    e, facts = engine.representation, engine.info
    entered = rows.shown if rows.entered is None else rows.entered
    lookups, without = _found(engine.lookups(budget))
    told = [
        ("Model", facts.model),
        ("Trees", f"{facts.n_trees:,} with {facts.n_leaves:,} leaves"),
        ("Features", _players_text(e.n_features, engine.n_players)),
        ("Background", _background_text(facts)),
    ]
    unit, link = _RAW_UNITS.get(e.objective, ""), _LINKS.get(e.objective)
    inputs = tree_inputs(entered, rows.codes, e, names, engine.model.player)
    subject = Subject(
        e.kind, told, _tree_meaning(facts), inputs, lookups, without, unit, link, tried=rows.codes
    )
    if link is not None:
        subject.meaning.append(_LINK_TEXTS[link])
    if beside is None:
        return subject
    meaning = _beside_meaning(beside, output, unit)
    return replace(
        subject,
        meaning=meaning,
        unit="probability" if output == "probability" else "",
        beside=engine,
        raw_unit=unit,
    )


@dataclass(frozen=True)
class BesideMargin:
    """How values of another output than the raw one were made."""

    rescaled: bool  # from the margin's
    fidelity: Fidelity | None  # of what was fitted to it


def _tree_meaning(facts: EngineInfo) -> list[str]:
    return [
        "These SHAP values are exact and path-dependent: an absent feature is spread over both sides of a "
        "split as the training rows were."
        if facts.is_path_dependent
        else "These SHAP values are exact: the trees are read as they are, all background rows count, and nothing is "
        "sampled.",
        "The prediction is the model's raw output: the expected value plus the SHAP values.",
    ]


def _beside_meaning(beside: BesideMargin, output: str, unit: str) -> list[str]:
    what, raw = ("probabilities" if output == "probability" else "responses"), unit or "raw output"
    if beside.rescaled:
        first = (
            f"These SHAP values are of {what}: the exact values of the {raw} against each background row, times the "
            "slope from that row's output to the explained one's. They add up to what the model predicts."
        )
    elif beside.fidelity is not None:
        first = _fidelity_meaning(beside.fidelity)
    else:
        first = f"These SHAP values are of {what} themselves, exact: over all coalitions and background rows."
    return [
        first,
        f"The values of the {raw} stand beside them; choose at the top what charts show. Interactions and the "
        f"what-if part are of the {raw}, where each move is exact, and tell the {output} that it comes to.",
    ]


def blackbox_subject(
    fitted: BlackBoxFit, engine: Engine, rows: Rows, names: tuple[str, ...], budget: int
) -> Subject:
    """Of a model that was asked; ``names`` of its columns."""
    encoding, profile = fitted.encoding, {}
    if isinstance(engine, LevelEngine):
        code = engine.code
        inputs = level_inputs(encoding, names, code, rows.codes)
        profile = _profile(engine.inner)
    else:
        inputs = encoding_inputs(encoding, names, rows.codes)
    lookups, without = _found(engine.lookups(budget))
    told = [
        ("Model", "any that can be called, asked for its answers"),
        ("Method", fitted.method),
        ("Representation", _representation_text(fitted.representation)),
        ("Features", _players_text(len(names), encoding.n_players)),
        ("Queries", f"{fitted.fidelity.n_queries:,}"),
        ("Fidelity", _fidelity_text(fitted.fidelity)),
        ("Background", _background_text(engine.info)),
    ]
    meaning = [
        _fidelity_meaning(fitted.fidelity),
        "The prediction is that of the representation: the expected value plus the SHAP values.",
    ]
    return Subject("black box", told, meaning, inputs, lookups, without, profile=profile)


def product_subject(
    kind: str,
    output: str,
    engine: Engine,
    rows: Rows,
    names: tuple[str, ...],
    player: NDArray[np.int32],
    link: str | None,
) -> Subject:
    """Of a sum of products; ``names`` and owners of its features, ``link`` of its raw output (`Reading`)."""
    facts, plan = engine.info, engine.plan(None)
    entered = rows.shown if rows.entered is None else rows.entered
    told = [
        ("Model", kind),
        ("Output", output),
        ("Terms", f"{facts.n_terms:,}"),
        ("Features", _players_text(len(names), engine.n_players)),
        ("Background", _background_text(facts)),
    ]
    exact = "These SHAP values are exact: the model is read as it is, and all background rows count."
    error = facts.background_error
    if plan.strategy == "fitted":
        exact = _fidelity_meaning(engine.quality.fidelity)  # type: ignore[arg-type]
    elif error and engine.raw is engine:
        exact = (
            "These SHAP values are those of the model as it is; a few products of marginals stand for the background, "
            f"which misses {error:.1e} of the values' square sum."
        )
    meaning = [exact, "The prediction is the expected value plus the SHAP values."]
    pool, inputs = Pool(entered, "X"), []
    for f, name in enumerate(pool.names if pool.is_frame else names):
        inputs.append(Input(name, int(player[f]), rows.codes[:, f], False))
    unit = "probability" if output == "probability" else _PRODUCT_UNITS.get(link or "", "")
    found = _PRODUCT_LINKS.get(link or "")
    meaning += [] if found is None else [_LINK_TEXTS[found]]
    lookups, without = _found(engine.lookups(0) if engine.raw is engine else "the output is not linear.")
    return Subject(kind, told, meaning, inputs, lookups, without, unit, found)


def _found(lookups: list[PageLookup] | str) -> tuple[list[PageLookup], str]:
    return ([], lookups) if isinstance(lookups, str) else (lookups, "")


def spectrum_subject(engine: SpectrumEngine, rows: Rows) -> Subject:
    """Of a spectrum on bits."""
    facts, (lookups, without) = engine.info, _found(engine.lookups(0))
    told = [
        ("Model", "a spectrum"),
        ("Terms", f"{facts.n_terms:,} that are not constant"),
        ("Features", _players_text(len(rows.names), engine.n_players)),
        ("Background", _background_text(facts)),
    ]
    meaning = [
        "These SHAP values are exact: every term of the spectrum and every background row counts.",
        "The prediction is the spectrum's value: the expected value plus the SHAP values.",
    ]
    inputs = bit_inputs(rows.codes, rows.names, rows.player)
    bits = np.column_stack([entry.values for entry in inputs]) if inputs else None
    return Subject(
        "spectrum", told, meaning, inputs, lookups, without, profile=_profile(engine), tried=bits
    )


def _profile(engine: SpectrumEngine) -> dict[str, NDArray[Any]]:
    """Number and energy of the terms by degree, and the share of the variance in the largest ones."""
    info = engine.info
    assert info.term_energy is not None
    total = max(float(info.term_energy.sum()), 1e-300)
    curve = np.cumsum(np.sort(info.term_energy)[::-1]) / total
    at = np.unique(np.linspace(1, len(curve), min(len(curve), _MOST_CURVE)).astype(np.int32))
    return {
        "degree_terms": np.bincount(engine.terms.degrees, minlength=1).astype(np.int32),
        "degree_share": info.degree_energy / total,
        "curve_terms": at,
        "curve_share": curve[at - 1],
    }


def _players_text(n_columns: int, n_players: int) -> str:
    grouped = "" if n_columns == n_players else f" that act as {n_players:,} groups"
    return f"{n_columns:,}{grouped}"


def _background_text(facts: EngineInfo) -> str:
    if facts.is_path_dependent:
        return "none: values by path"
    n_rows = facts.n_background
    return "compiled into the tables" if n_rows is None else f"{n_rows:,} rows"


def _representation_text(representation: Any) -> str:
    if isinstance(representation, Spectrum):
        return f"a spectrum of {len(representation):,} terms on {representation.n_bits} bits"
    if isinstance(representation, tuple):
        return " and ".join(map(_representation_text, representation))
    if isinstance(representation, Waves):
        return f"{len(representation):,} waves on {representation.columns.n_columns:,} columns"
    return f"{representation.n_trees:,} trees with {representation.n_leaves:,} leaves"


def _fidelity_text(fidelity: Fidelity) -> str:
    if fidelity.exact:
        return "exact: every combination of levels was asked"
    function = f"R² {fidelity.r2:.4f} (95 % interval {fidelity.low:.4f} to {fidelity.high:.4f})"
    if fidelity.shap is None:
        return function
    values = f"of the values R² {fidelity.shap.r2:.4f} ({fidelity.shap.low:.4f} to {fidelity.shap.high:.4f})"
    return f"{values}, of the function {function}"


def _fidelity_meaning(fidelity: Fidelity) -> str:
    noise = ""
    if fidelity.noise > 1e-4:
        noise = f" The model's own answers to one row spread by {100 * fidelity.noise:.2g} % of that."
    if fidelity.exact:
        return (
            "The model was asked about every combination of levels, so these SHAP values are its exact ones."
            + noise
        )
    error = 100 * np.sqrt(max(1 - fidelity.r2, 0.0))
    if fidelity.n_points == 0 and np.isnan(fidelity.noise):
        return (
            "The model was asked about every combination of levels once, and no query was left to see whether it "
            "always answers alike: if it does, these SHAP values are its exact ones."
        )
    if fidelity.n_points == 0:
        return (
            "The model was asked about every combination of levels, several times, since its answers differ. These "
            f"SHAP values are those of the mean answers, whose typical error is {error:.2g} % of their spread."
            + noise
        )
    values = ""
    if fidelity.shap is not None:
        values = (
            " Asked along permutations of a few rows, the model's own values are met with R² "
            f"{fidelity.shap.r2:.3f} (95 % interval {fidelity.shap.low:.3f} to {fidelity.shap.high:.3f})."
        )
    return (
        f"These SHAP values are exact for a representation of the model.{values} On {fidelity.n_points:,} mixed rows "
        f"that it had never seen, it explains {100 * fidelity.r2:.2f} % of the variance of the model's answers: its "
        f"typical error is {error:.2g} % of their spread, and smaller differences between values should not be read."
        + noise
    )
