"""What the report asks of an explainer and its engine: the one place to change when engines answer it themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base import links
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.surrogates import LevelEngine
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.lookup import Lookup, bit_lookup, level_lookup, tree_lookup
from fouriershap._shapley.products.engine import ProductEngine
from fouriershap._shapley.products.linear_lookup import linear_lookup
from fouriershap._shapley.products.lookup import product_lookup
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.sum import SumEngine
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.leaves import leaf_lookup
from fouriershap._shapley.trees.model import make_background
from fouriershap.report import _inputs
from fouriershap.report._content import Input

Lookups = list[Any] | str
_ESTIMATE_SLACK = 24  # tables estimated larger than this many budgets are not built only to be left out
_OBJECTIVES = {
    "binary": links.LOGISTIC,
    "multiclass": links.SOFTMAX,
    "probability": links.PROBABILITY,
    "squared_error": links.MEAN,
    "regression": links.IDENTITY,
    "log": links.EXP,
    "log1p": links.EXPM1,
}
_PRODUCT_LINKS = {"normal": links.PROBIT} | {link.name: link for link in links.LINKS.values()}


@dataclass(frozen=True, eq=False)
class Info:
    """Facts about an engine."""

    n_background: int | None = None
    is_path_dependent: bool = False
    n_trees: int = 0
    n_leaves: int = 0
    n_terms: int = 0
    degrees: NDArray[np.int64] | None = None
    term_energy: NDArray[np.float64] | None = None
    parts: tuple[Info, ...] = ()


@dataclass(frozen=True, eq=False)
class EngineFacts:
    """What the report says about an explainer, and what its what-if part looks up."""

    kind: str
    info: Info
    output: str  # its name
    unit: str  # of the output that is explained
    raw_unit: str
    display_link: links.Link | None  # turns raw outputs into what the model predicts
    fidelity: Fidelity | None
    background_error: float
    is_rescaled: bool
    raw: Engine | None  # the engine of the raw output, if another one is explained
    lookups: Lookups
    inputs: list[Input]
    method: str = ""  # of a black box: how it was fitted
    rounding_rows: NDArray[Any] | None = None  # rows to measure the error of rounded look-ups on


def explains_trees(explainer: Any) -> bool:
    """Return whether the model itself is an ensemble of trees."""
    return hasattr(explainer, "ensemble")


def display_link(explainer: Any) -> links.Link | None:
    """Return what turns the explained output into what the model predicts; None if there is nothing to do."""
    return _find_link(explainer) if getattr(explainer, "output", "raw") == "raw" else None


def _find_link(explainer: Any) -> links.Link | None:
    if explains_trees(explainer):
        found = _OBJECTIVES.get(explainer.ensemble.objective, links.UNKNOWN)
    else:
        found = _PRODUCT_LINKS.get(getattr(explainer, "_link", None) or "", links.UNKNOWN)
    return None if found.is_identity or found is links.UNKNOWN else found


def engine_facts(explainer: Any, rows: Rows, budget: int) -> EngineFacts:
    """Return the facts of an explainer; look-ups that would be far larger than ``budget`` bytes are not made."""
    engine = explainer.engine
    shown = rows.shown if rows.entered is None else rows.entered
    names = explainer.feature_names
    output, link = getattr(explainer, "output", "raw"), _find_link(explainer)
    if explains_trees(explainer):
        trees, ensemble = explainer._trees, explainer.ensemble
        unit = _OBJECTIVES.get(ensemble.objective, links.UNKNOWN).raw_unit
        raw = trees if output != "raw" and engine is not trees else None
        own = unit if raw is None else "probability" if output == "probability" else ""
        inputs = _inputs.tree_inputs(shown, rows.codes, ensemble, names, trees.model.player)
        about = (_info(trees), output, own, unit, link, explainer.fidelity, 0.0, not explainer.exact)
        return EngineFacts(
            ensemble.kind, *about, raw, _tree_lookups(trees, budget), inputs, rounding_rows=rows.codes
        )
    if hasattr(explainer, "_fitted"):
        fitted = explainer._fitted
        if isinstance(engine, LevelEngine):
            code = engine.code
            inputs = _inputs.level_inputs(fitted.encoding, names, code, rows.codes)
            n_levels, n_bits = (
                np.array([getattr(p, name) for p in code.players]) for name in ("n_levels", "n_bits")
            )
            lookups = _found(level_lookup(engine.inner, n_levels, n_bits))
            info = _info(engine.inner)
        else:
            inputs, info = _inputs.encoding_inputs(fitted.encoding, names, rows.codes), _info(engine)
            lookups = _part_lookups(engine, budget)
        about = (info, output, "", "", None, fitted.fidelity, 0.0, False)
        return EngineFacts("black box", *about, None, lookups, inputs, fitted.method)
    if isinstance(engine, SpectrumEngine):
        inputs = _inputs.bit_inputs(rows.codes, rows.names, rows.player)
        about = (_info(engine), output, "", "", None, None, 0.0, False)
        bits = rows.codes.astype(np.float64)
        return EngineFacts("spectrum", *about, None, _found(bit_lookup(engine)), inputs, rounding_rows=bits)
    plan = engine.plan(None)
    fidelity = engine.fidelity if plan.method == "fitted" else None
    unit = "" if link is None or output != "raw" else link.raw_unit
    own = "probability" if output == "probability" else unit
    link = link if output == "raw" else None
    about = (_info(engine), output, own, unit, link, fidelity, plan.error, False)
    inputs = _inputs.number_inputs(shown, rows.codes, names, explainer.inputs.code_players)
    linear = linear_lookup(engine)
    lookups = "the model is not linear: it has no tables to look up." if linear is None else [linear]
    return EngineFacts(explainer.kind, *about, None, lookups, inputs)


def _info(engine: Engine) -> Info:
    facts = engine.describe()
    parts = tuple(_info(part) for part in engine.parts) if isinstance(engine, SumEngine) else ()
    found = Info(
        facts["n_background"],
        facts["by_path"],
        *(facts.get(n, 0) for n in ("n_trees", "n_leaves", "n_terms")),
    )
    if isinstance(engine, SpectrumEngine):
        found = replace(found, degrees=engine.terms.degrees, term_energy=engine.term_energy)
    return replace(found, parts=parts)


def _found(lookup: Any) -> Lookups:
    return [lookup] if lookup is not None else "some terms of the spectrum have no table."


def _part_lookups(engine: Engine, budget: int) -> Lookups:
    if isinstance(engine, TreeEngine):
        return _tree_lookups(engine, budget)
    if isinstance(engine, ProductEngine):
        return _found(product_lookup(engine))
    assert isinstance(engine, SumEngine)
    found: list[Any] = []
    for part in engine.parts:
        lookups = _part_lookups(part, budget)
        if isinstance(lookups, str):
            return lookups
        found += lookups
    return found


def _tree_lookups(engine: TreeEngine, budget: int) -> Lookups:
    found = leaf_lookup(engine)
    if found is not None:
        return [found]
    if engine.compiled is None or engine.compiled.tables is None:
        background = engine.background
        if engine.model.method in ("stream", "walk") and not background.is_lost:
            model = replace(engine.model, method="auto")
            engine = TreeEngine(model, make_background(model, background.rows, background.weights))
        if engine.plan(None).table_bytes > _ESTIMATE_SLACK * budget:
            return "the tables of these trees would be far larger than the page may be."
        engine.build()
    lookup = tree_lookup(engine)
    return "some trees are too deep for tables." if lookup is None else [lookup]


def rounded(lookup: Any, n_bits: int) -> Any:
    """Return the look-up with entries of ``n_bits`` bits, None if it cannot be rounded."""
    return lookup.rounded(n_bits) if isinstance(lookup, Lookup) else None
