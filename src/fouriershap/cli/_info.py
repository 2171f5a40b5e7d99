"""The content of a .fshap file, as lines of (name, value)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import BlackBoxExplainer, Explainer, ProductExplainer, Spectrum, Tables, TreeExplainer, Waves
from fouriershap._base.short import short_text
from fouriershap.cli._explainers import open_file

Lines = list[tuple[str, str]]


def describe(path: Path) -> Lines:
    """Return what a file holds."""
    loaded = open_file(path)
    return [("file", f"{short_text(path)}, {_size(path.stat().st_size)}"), *_describe(loaded)]


def _describe(loaded: Spectrum | Tables | Waves | Explainer) -> Lines:
    if isinstance(loaded, Spectrum):
        return [("holds", "spectrum"), *_spectrum(loaded)]
    if isinstance(loaded, Waves):
        return [
            ("holds", "waves"),
            ("waves", f"{len(loaded):,}"),
            ("features", str(loaded.columns.n_features)),
        ]
    if isinstance(loaded, Tables):
        expected = np.atleast_1d(loaded.expected_value)
        lines = [("holds", "tables of a spectrum"), ("players", str(loaded.n_players))]
        return [*lines, *_facts(loaded.describe()), ("expected value", _numbers(expected))]
    lines = _holds(loaded) + _names(loaded)
    if isinstance(loaded, BlackBoxExplainer) and isinstance(loaded.representation, Spectrum):
        lines += [*_spectrum(loaded.representation), _background(loaded.describe())]
    else:
        lines += _facts(loaded.describe())
    return [*lines, ("expected value", _numbers(np.atleast_1d(loaded.expected_value)))]


def _holds(explainer: Explainer) -> Lines:
    if isinstance(explainer, TreeExplainer):
        return [("holds", "tree explainer"), ("model", explainer.ensemble.kind)]
    if isinstance(explainer, ProductExplainer):
        return [("holds", "product explainer"), ("model", explainer.kind), ("output", explainer.output)]
    if not isinstance(explainer, BlackBoxExplainer):
        return [("holds", "spectrum explainer")]
    found = explainer.fidelity
    lines = [("holds", "black box explainer"), ("model", f"{found.n_queries:,} queries")]
    return [
        *lines,
        ("method", explainer.method),
        ("fidelity", f"R² {found.r2:.4f} [{found.low:.4f}, {found.high:.4f}]"),
    ]


def _names(explainer: Explainer) -> Lines:
    names, outputs = explainer.player_names, explainer.output_names or ()
    shown = ", ".join(map(short_text, names[:6])) + (", ..." if len(names) > 6 else "")
    n_outputs = len(np.atleast_1d(explainer.expected_value))
    return [
        ("features", str(len(explainer.feature_names))),
        ("players", f"{len(names)}: {shown}"),
        ("outputs", str(n_outputs) + (f": {', '.join(map(short_text, outputs))}" if outputs else "")),
    ]


def _facts(facts: dict[str, Any]) -> Lines:
    """Return the facts about trees, terms or waves."""
    if facts.get("kind") == "sum":
        parts = [line for part in facts["parts"] for line in _facts(part)[:-1]]
        return [*parts, _background(facts)]
    if facts.get("kind") == "products":
        strategy = f"{facts['road']}, background error {facts['background_error']:.1e}"
        return [("terms", f"{facts['n_terms']:,}"), ("strategy", strategy), _background(facts)]
    if "n_terms" in facts:
        what, lines = "terms", [("terms", f"{facts['n_terms']:,}"), *_energy(facts["degree_energy"])]
    else:
        what, degrees = "trees", facts["degrees"]
        counts = enumerate(np.bincount(degrees))
        profile = ", ".join(f"{degree}: {count:,}" for degree, count in counts if count)
        lines = [("terms", f"{facts['n_leaves']:,} leaves of {facts['n_trees']:,} trees")]
        lines += [("degree", f"{degrees.max()} (most features on a path)"), ("trees by degree", profile)]
    n_tables, without = facts["n_tables"], facts["n_without_table"]
    tables = f"{n_tables:,}, {_size(facts['table_bytes'])}" if n_tables or "n_terms" in facts else "none"
    lines += [("tables", tables + (f"; {without:,} {what} without" if without else ""))]
    return [*lines, _background(facts)]


def _background(facts: dict[str, Any]) -> tuple[str, str]:
    n_rows = facts["n_background"]
    if facts["by_path"]:
        return "background", "none: path-dependent"
    return "background", "unknown" if n_rows is None else f"{n_rows:,} rows"


def _spectrum(spectrum: Spectrum) -> Lines:
    lines = [("bits", str(spectrum.n_bits)), ("terms", f"{len(spectrum):,}")]
    return [*lines, *_energy(np.atleast_1d(spectrum.degree_profile()))]


def _energy(by_degree: NDArray[np.float64]) -> Lines:
    total = by_degree.sum() or 1.0
    shares = ", ".join(f"{degree}: {part / total:.2%}" for degree, part in enumerate(by_degree) if part)
    return [("degree", str(len(by_degree) - 1)), ("energy by degree", shares or "none")]


def _numbers(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"
