"""What the page of `Explainer.report` shows: gathered here, drawn by `fouriershap.report`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_number
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.short import short
from fouriershap._blackbox.fidelity import Fidelity
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.surrogates import LevelEngine
from fouriershap._explainers.page_inputs import bit_inputs, encoding_inputs, level_inputs, tree_inputs
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import Rows
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.interactions import interaction_values
from fouriershap._shapley.lookup import Lookup, bit_lookup, level_lookup, tree_lookup
from fouriershap._shapley.products.engine import ProductEngine
from fouriershap._shapley.products.lookup import ProductLookup, product_lookup
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.sum import SumEngine
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background
from fouriershap._waves.waves import Waves
from fouriershap.report import Content, Input, WhatIf, write_report

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_ESTIMATE_SLACK = 8  # tables estimated larger than this many budgets are not built only to be left out
_MOST_CURVE = 500
_MOST_HEAT, _HEAT_ROWS = 30, 200  # players and rows of the interaction heat map
_NO_TABLE = "some terms of the spectrum have no table."
_NO_PRODUCTS = "sums of products are no tables that a page could look up."
_MARGINS = ("xgboost", "lightgbm gbdt", "catboost", "scikit-learn GradientB", "scikit-learn HistG")


@dataclass(frozen=True, eq=False)
class Subject:
    """What one kind of explainer has to tell, beside its values."""

    kind: str  # what was explained, in a few words
    facts: list[tuple[str, str]]
    meaning: list[str]  # what the values are, and how far to trust them
    inputs: list[Input]
    lookups: list[Lookup | ProductLookup] = field(default_factory=list)  # that add up
    without: str = ""  # why there is no look-up
    link: str | None = None  # {None, "softmax"} what turns the outputs into probabilities
    profile: dict[str, NDArray[Any]] = field(default_factory=dict)  # of a spectrum, see `_profile`

    @property
    def what_if(self) -> list[WhatIf] | str:
        if not self.lookups:
            return self.without
        return [WhatIf(found.header(), found.arrays(), found.nbytes) for found in self.lookups]


def write_page(
    explainer: Explainer,
    X: Any,
    path: str | os.PathLike[str],
    *,
    rows: int | None,
    title: str | None,
    max_bytes: int,
) -> Path:
    """Write the page of an explainer (see `Explainer.report`)."""
    check_number("rows", 1 if rows is None else rows, 1)
    check_number("max_bytes", max_bytes, 1)
    if title is not None and not isinstance(title, str):
        raise InputError(f"title is {short(title)}; give a text, or None.")
    index = explainer._engine.index
    if index != "shapley":
        raise InputError(
            f"this explainer has index={short(index)}, whose values do not add up to a prediction, as those of a "
            "report must. Use index='shapley'."
        )
    given = explainer._read(X)
    if not len(given):
        raise InputError("X has 0 rows; a page shows some.")
    subject = explainer._subject(given, max_bytes)
    values = explainer._explain(given, explainer.n_jobs)
    wrong = explainer._engine.expected[~np.isfinite(explainer._engine.expected)]
    if len(wrong):
        raise InputError(f"the expected value of the explainer is {wrong[0]}; a page shows finite numbers.")
    content = Content(
        title=title or f"{subject.kind}, explained",
        facts=subject.facts,
        meaning=subject.meaning,
        inputs=subject.inputs,
        players=_player_names(explainer.player_names, subject.inputs),
        outputs=explainer.output_names or tuple(f"output {k}" for k in range(values.shape[2])),
        expected=explainer._engine.expected,
        values=values,
        row_names=_row_names(X),
        what_if=subject.what_if,
        link=subject.link,
        profile=subject.profile,
        interactions=_interactions(explainer, given),
    )
    return write_report(content, path, rows=rows, max_bytes=max_bytes)


def _player_names(names: tuple[str, ...], inputs: list[Input]) -> list[str]:
    """Names of the players; of one that owns a single input, the input's, as the rows call it."""
    owned: dict[int, list[str]] = {}
    for entry in inputs:
        owned.setdefault(entry.player, []).append(entry.name)
    return [owned[p][0] if len(owned.get(p, ())) == 1 else name for p, name in enumerate(names)]


def _row_names(X: Any) -> list[str] | None:
    """The labels of a frame's index, where it has one that says more than positions."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex" or len(index) != len(X):
        return None
    return [str(label) for label in index]


def _interactions(explainer: Explainer, rows: Rows) -> NDArray[np.float64] | None:
    """Mean size of the pair interactions (n_outputs, n_players, n_players) of the first rows; None if too many."""
    names = explainer.player_names
    if len(names) > _MOST_HEAT:
        return None
    first, jobs = rows.codes[:_HEAT_ROWS], explainer.n_jobs
    try:
        pairs = np.asarray(interaction_values(explainer._engine, first, names, None, None, jobs, False))
    except (CapacityError, InputError):  # tables of pairs that no memory holds; explainers that have none
        return None
    return np.ascontiguousarray(np.moveaxis(np.abs(pairs).mean(axis=0), -1, 0))


def tree_subject(engine: TreeEngine, rows: Rows, names: tuple[str, ...], budget: int) -> Subject:
    """Of a tree model; ``names`` of its features. Tables that exceed ``budget`` bytes by far are not built."""
    e, facts = engine.ensemble, engine.describe()
    entered = rows.shown if rows.entered is None else rows.entered
    lookups, without = _tree_tables(engine, budget)
    told = [
        ("Model", facts["kind"]),
        ("Trees", f"{facts['n_trees']:,} with {facts['n_leaves']:,} leaves"),
        ("Features", _players_text(e.n_features, engine.n_players)),
        ("Background", _background_text(facts)),
        ("Tables", _tables_text(lookups)),
    ]
    meaning = [
        "These SHAP values are exact and path-dependent: an absent feature is spread over both sides of a "
        "split as the training rows were."
        if facts["by_path"]
        else "These SHAP values are exact: the trees are read as they are, all background rows count, and nothing is "
        "sampled.",
        "The prediction is the model's raw output: the expected value plus the SHAP values.",
    ]
    margins = e.kind.startswith(_MARGINS) and e.n_outputs > 1 and e.output_names is not None
    if margins:
        meaning.append("The column “softmax” turns the outputs into shares of 1: the classes' probabilities.")
    inputs = tree_inputs(entered, rows.codes, e, names, engine.model.player)
    return Subject(e.kind, told, meaning, inputs, lookups, without, "softmax" if margins else None)


def blackbox_subject(
    fitted: Fitted, engine: Engine, rows: Rows, names: tuple[str, ...], budget: int
) -> Subject:
    """Of a model that was asked; ``names`` of its columns."""
    encoding, profile = fitted.encoding, {}
    if isinstance(engine, LevelEngine):
        code = engine.code
        inputs = level_inputs(encoding, names, code, rows.codes)
        n_levels = np.array([player.n_levels for player in code.players])
        n_bits = np.array([player.n_bits for player in code.players])
        lookups, without = _those_found(level_lookup(engine.inner, n_levels, n_bits)), _NO_TABLE
        profile = _profile(engine.inner)
    else:
        inputs = encoding_inputs(encoding, names, rows.codes)
        lookups, without = _part_lookups(engine, budget)
    told = [
        ("Model", "any that can be called, asked for its answers"),
        ("Method", fitted.method),
        ("Representation", _representation_text(fitted.surrogate.representation)),
        ("Features", _players_text(len(names), encoding.n_players)),
        ("Queries", f"{fitted.fidelity.n_queries:,}"),
        ("Fidelity", _fidelity_text(fitted.fidelity)),
        ("Background", _background_text(engine.describe())),
        ("Tables", _tables_text(lookups)),
    ]
    meaning = [
        _fidelity_meaning(fitted.fidelity),
        "The prediction is that of the representation: the expected value plus the SHAP values.",
    ]
    return Subject("black box", told, meaning, inputs, lookups, without, profile=profile)


def product_subject(
    kind: str, output: str, engine: Engine, rows: Rows, names: tuple[str, ...], player: NDArray[np.int32]
) -> Subject:
    """Of a sum of products; ``names`` and owners of its features."""
    facts, plan = engine.describe(), engine.plan(None)
    entered = rows.shown if rows.entered is None else rows.entered
    told = [
        ("Model", kind),
        ("Output", output),
        ("Terms", f"{facts['n_terms']:,}"),
        ("Features", _players_text(len(names), engine.n_players)),
        ("Background", _background_text(facts)),
    ]
    exact = "These SHAP values are exact: the model is read as it is, and all background rows count."
    if plan.method == "fitted":
        exact = _fidelity_meaning(engine.fidelity)  # type: ignore[attr-defined]
    elif plan.error:
        exact = (
            "These SHAP values are those of the model as it is; a few products of marginals stand for the background, "
            f"which misses {plan.error:.1e} of the values' square sum."
        )
    meaning = [exact, "The prediction is the expected value plus the SHAP values."]
    pool, inputs = Pool(entered, "X"), []
    for f, name in enumerate(pool.names if pool.is_frame else names):
        inputs.append(Input(name, int(player[f]), rows.codes[:, f], False))
    return Subject(kind, told, meaning, inputs, without=_NO_PRODUCTS)


def spectrum_subject(engine: SpectrumEngine, rows: Rows) -> Subject:
    """Of a spectrum on bits."""
    facts, lookups = engine.describe(), _those_found(bit_lookup(engine))
    told = [
        ("Model", "a spectrum"),
        ("Terms", f"{facts['n_terms']:,} that are not constant"),
        ("Features", _players_text(len(rows.names), engine.n_players)),
        ("Background", _background_text(facts)),
        ("Tables", _tables_text(lookups)),
    ]
    meaning = [
        "These SHAP values are exact: every term of the spectrum and every background row counts.",
        "The prediction is the spectrum's value: the expected value plus the SHAP values.",
    ]
    inputs = bit_inputs(rows.codes, rows.names, rows.player)
    return Subject("spectrum", told, meaning, inputs, lookups, _NO_TABLE, profile=_profile(engine))


def _profile(engine: SpectrumEngine) -> dict[str, NDArray[Any]]:
    """Number and energy of the terms by degree, and the share of the variance in the largest ones."""
    total = max(float(engine.term_energy.sum()), 1e-300)
    curve = np.cumsum(np.sort(engine.term_energy)[::-1]) / total
    at = np.unique(np.linspace(1, len(curve), min(len(curve), _MOST_CURVE)).astype(np.int32))
    return {
        "degree_terms": np.bincount(engine.terms.degrees, minlength=1).astype(np.int32),
        "degree_share": engine.degree_energy / total,
        "curve_terms": at,
        "curve_share": curve[at - 1],
    }


def _those_found(lookup: Lookup | ProductLookup | None) -> list[Lookup | ProductLookup]:
    return [] if lookup is None else [lookup]


def _part_lookups(engine: Engine, budget: int) -> tuple[list[Lookup | ProductLookup], str]:
    """The look-ups of trees, of waves, or of both; or why there are none."""
    if isinstance(engine, TreeEngine):
        return _tree_tables(engine, budget)
    if isinstance(engine, ProductEngine):
        return _those_found(product_lookup(engine)), ""
    assert isinstance(engine, SumEngine)
    found = [_part_lookups(part, budget) for part in engine.parts]
    reasons = [without for lookups, without in found if not lookups]
    return ([], reasons[0]) if reasons else ([each for lookups, _ in found for each in lookups], "")


def _tree_tables(engine: TreeEngine, budget: int) -> tuple[list[Lookup | ProductLookup], str]:
    """The tables of an engine, built if need be; or why there are none."""
    if engine.compiled is None or engine.compiled.tables is None:
        background = engine.background
        if engine.model.method in ("stream", "walk") and not background.is_lost:
            model = replace(engine.model, method="auto")
            engine = TreeEngine(model, make_background(model, background.rows, background.weights))
        if engine.plan(None).table_bytes > _ESTIMATE_SLACK * budget:
            return [], "the tables of these trees would be far larger than the page may be."
        engine.build()
    lookups = _those_found(tree_lookup(engine))
    return lookups, "" if lookups else "some trees are too deep for tables."


def _players_text(n_columns: int, n_players: int) -> str:
    grouped = "" if n_columns == n_players else f" that act as {n_players:,} groups"
    return f"{n_columns:,}{grouped}"


def _background_text(facts: dict[str, Any]) -> str:
    if facts["by_path"]:
        return "none: values by path"
    n_rows = facts["n_background"]
    return "compiled into the tables" if n_rows is None else f"{n_rows:,} rows"


def _tables_text(lookups: list[Lookup | ProductLookup]) -> str:
    tables = [found for found in lookups if isinstance(found, Lookup)]
    if not tables:
        return "none"
    n_tables, nbytes = (
        sum(each) for each in zip(*((t.tables.n_tables, t.nbytes) for t in tables), strict=True)
    )
    return f"{n_tables:,} ({nbytes / 1e6:.1f} MB in memory)"


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
