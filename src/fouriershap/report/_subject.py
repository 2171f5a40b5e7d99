"""`Subject`: what the page tells about an explainer, and what it needs to answer "what if"."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from fouriershap import Explainer, InputError
from fouriershap._base.short import short
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.surrogates import CompiledSpectrum, CompiledTrees
from fouriershap._explainers.blackbox import BlackBoxExplainer
from fouriershap._explainers.spectrum import SpectrumExplainer
from fouriershap._explainers.trees import TreeExplainer
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import densified
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap.report._inputs import Input, bit_inputs, encoding_inputs, level_inputs, tree_inputs
from fouriershap.report._lookup import Lookup, bit_lookup, level_lookup, tree_lookup

_ESTIMATE_SLACK = 8  # tables estimated larger than this many budgets are not built only to be left out
_NO_TABLE = "some terms of the spectrum have no table."
_MARGINS = ("xgboost", "lightgbm gbdt", "catboost", "scikit-learn GradientB", "scikit-learn HistG")


@dataclass(eq=False)
class Subject:
    """What the page says and needs.

    Attributes
    ----------
    kind : str
        What was explained, in a few words.
    facts : list of (str, str)
    meaning : list of str
        What the values are, and how far to trust them.
    inputs : list of Input
    lookup : Lookup or None
    without : str
        Why there is no look-up.
    terms : Terms or None
        Those of a spectrum, for the profile of its degrees.
    link : {None, "softmax"}
        What turns the outputs into probabilities.
    """

    kind: str
    facts: list[tuple[str, str]]
    meaning: list[str]
    inputs: list[Input]
    lookup: Lookup | None = None
    without: str = ""
    terms: Terms | None = None
    link: str | None = None


@singledispatch
def describe(explainer: Explainer, X: Any, budget: int) -> Subject:
    """What the page tells about an explainer. Tables that exceed ``budget`` bytes by far are not built."""
    raise TypeError(f"there is no report of a {type(explainer).__name__}.")


@describe.register
def _(explainer: TreeExplainer, X: Any, budget: int) -> Subject:
    engine = explainer._engine
    _check_additive(engine.index)
    if explainer._output is not None:  # the page computes by the tables, and these are the margin's
        raise InputError(
            f"this explainer has output={short(explainer.output)}, which the page could not compute anew: it "
            "has the tables of the raw output. Use output='raw'."
        )
    e = engine.ensemble
    shown = densified(explainer._prepared(X, "X"), e.absent_is_missing)
    inputs = tree_inputs(shown, explainer._rows(X), e, explainer.feature_names, engine.player)
    lookup, without = _tree_tables(engine, budget)
    facts = [
        ("Model", e.kind),
        ("Trees", f"{e.n_trees:,} with {e.n_leaves:,} leaves"),
        ("Features", _players_text(e.n_features, engine.n_players)),
        ("Background", _background_text(engine)),
        ("Tables", _tables_text(lookup)),
    ]
    meaning = [
        "These SHAP values are exact: the trees are read as they are, all background rows count, and nothing is "
        "sampled."
        if engine.background is not None
        else "These SHAP values are exact and path-dependent: an absent feature is spread over both sides of a "
        "split as the training rows were.",
        "The prediction is the model's raw output: the expected value plus the SHAP values.",
    ]
    margins = e.kind.startswith(_MARGINS) and e.n_outputs > 1 and e.output_names is not None
    if margins:
        meaning.append("The column “softmax” turns the outputs into shares of 1: the classes' probabilities.")
    return Subject(e.kind, facts, meaning, inputs, lookup, without, link="softmax" if margins else None)


@describe.register
def _(explainer: BlackBoxExplainer, X: Any, budget: int) -> Subject:
    _check_additive(explainer._index)
    fitted, compiled = explainer._fitted, explainer._compiled
    encoding, names = fitted.encoding, explainer.feature_names
    codes = explainer._encode(X)[1]
    representation = explainer.representation
    lookup, without, terms = None, "", None
    if isinstance(compiled, CompiledTrees):
        inputs = encoding_inputs(encoding, names, codes)
        lookup, without = _tree_tables(compiled.explainer._engine, budget)
    elif isinstance(compiled, CompiledSpectrum):
        inputs = level_inputs(encoding, names, compiled.surrogate.code, codes)
        lookup = level_lookup(compiled.tables, compiled.surrogate.code) if compiled.tables else None
        without = _NO_TABLE
        terms = compiled.tables._terms if compiled.tables else None
    else:
        raise TypeError(f"there is no report of a {type(compiled).__name__}.")
    facts = [
        ("Model", "any that can be called, asked for its answers"),
        ("Method", fitted.method),
        ("Representation", _representation_text(representation)),
        ("Features", _players_text(len(names), len(explainer.player_names))),
        ("Queries", f"{fitted.fidelity.n_queries:,}"),
        ("Fidelity", _fidelity_text(fitted.fidelity)),
    ]
    if explainer._background is not None:
        facts.append(("Background", f"{explainer._background[0].n_rows:,} rows"))
    facts.append(("Tables", _tables_text(lookup)))
    meaning = [
        _fidelity_meaning(fitted.fidelity),
        "The prediction is that of the representation: the expected value plus the SHAP values.",
    ]
    return Subject("black box", facts, meaning, inputs, lookup, without, terms)


@describe.register
def _(explainer: SpectrumExplainer, X: Any, budget: int) -> Subject:
    tables = explainer.tables
    _check_additive(tables.index)
    inputs = bit_inputs(densified(X), explainer.feature_names, explainer._column_player)
    lookup = bit_lookup(tables)
    facts = [
        ("Model", "a spectrum"),
        ("Terms", f"{tables._terms.n_terms:,} that are not constant"),
        ("Features", _players_text(len(inputs), tables.n_players)),
        ("Tables", _tables_text(lookup)),
    ]
    meaning = [
        "These SHAP values are exact: every term of the spectrum and every background row counts.",
        "The prediction is the spectrum's value: the expected value plus the SHAP values.",
    ]
    return Subject("spectrum", facts, meaning, inputs, lookup, _NO_TABLE, tables._terms)


def _tree_tables(engine: TreeEngine, budget: int) -> tuple[Lookup | None, str]:
    """The tables of an engine, built if need be; or why there are none."""
    if engine.tables is None:
        if engine.method == "walk" and (engine.background is None or len(engine.background)):
            settings = (engine.memory, engine.dtype, "auto")
            engine = TreeEngine(engine.ensemble, engine.player, engine.background, engine.weights, *settings)
        if engine.plan(None).table_bytes > _ESTIMATE_SLACK * budget:
            return None, "the tables of these trees would be far larger than the page may be."
        engine.compile()
    lookup = tree_lookup(engine)
    return lookup, "" if lookup is not None else "some trees are too deep for tables."


def _players_text(n_columns: int, n_players: int) -> str:
    grouped = "" if n_columns == n_players else f" that act as {n_players:,} groups"
    return f"{n_columns:,}{grouped}"


def _check_additive(index: str) -> None:
    if index != "shapley":
        raise InputError(
            f"this explainer has index={short(index)}, whose values do not add up to a prediction, as those "
            "of a report must. Use index='shapley'."
        )


def _background_text(engine: TreeEngine) -> str:
    if engine.background is None:
        return "none: values by path"
    return "compiled into the tables" if engine.n_background is None else f"{engine.n_background:,} rows"


def _tables_text(lookup: Lookup | None) -> str:
    if lookup is None:
        return "none"
    return f"{lookup.tables.n_tables:,} ({lookup.tables.nbytes / 1e6:.1f} MB in memory)"


def _representation_text(representation: Any) -> str:
    if isinstance(representation, Spectrum):
        return f"a spectrum of {len(representation):,} terms on {representation.n_bits} bits"
    return f"{representation.n_trees:,} trees with {representation.n_leaves:,} leaves"


def _fidelity_text(fidelity: Fidelity) -> str:
    if fidelity.exact:
        return "exact: every combination of levels was asked"
    return f"R² {fidelity.r2:.4f} (95 % interval {fidelity.low:.4f} to {fidelity.high:.4f})"


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
    return (
        "These SHAP values are exact for a representation of the model. On "
        f"{fidelity.n_points:,} mixed rows that it had never seen, it explains {100 * fidelity.r2:.2f} % of the "
        f"variance of the model's answers: its typical error is {error:.2g} % of their spread, and smaller "
        "differences between values should not be read." + noise
    )
