"""What is in a .fshap file, as lines of (what, value)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.short import short_text
from fouriershap._explainers.blackbox import BlackBoxExplainer
from fouriershap._explainers.load import Loaded
from fouriershap._explainers.spectrum import SpectrumExplainer
from fouriershap._explainers.trees import TreeExplainer
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley.spectrum.tables import Tables
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap.cli._explainers import open_file

Lines = list[tuple[str, str]]


def describe(path: Path) -> Lines:
    """Everything that is worth knowing about a file."""
    loaded = open_file(path)
    return [("file", f"{short_text(path)}, {_size(path.stat().st_size)}"), *_describe(loaded)]


def _describe(loaded: Loaded) -> Lines:
    if isinstance(loaded, Spectrum):
        return [("holds", "spectrum"), *_spectrum(loaded)]
    if isinstance(loaded, Tables):
        return [("holds", "tables of a spectrum"), ("players", str(loaded.n_players)), *_tables(loaded)]
    if isinstance(loaded, TreeExplainer):
        return [("holds", "tree explainer"), ("model", short_text(loaded.ensemble.kind)), *_explainer(loaded)]
    if isinstance(loaded, SpectrumExplainer):
        return [("holds", "spectrum explainer"), *_explainer(loaded), *_tables(loaded.tables)]
    lines = [("holds", "black box explainer"), ("model", f"asked {loaded.fidelity.n_queries:,} times")]
    fidelity = f"R² {loaded.fidelity.r2:.4f} [{loaded.fidelity.low:.4f}, {loaded.fidelity.high:.4f}]"
    return [*lines, ("method", short_text(loaded.method)), ("fidelity", fidelity), *_explainer(loaded)]


def _explainer(explainer: TreeExplainer | BlackBoxExplainer | SpectrumExplainer) -> Lines:
    names = explainer.player_names
    shown = ", ".join(map(short_text, names[:6])) + (", ..." if len(names) > 6 else "")
    outputs = explainer.output_names or ()
    lines = [("features", str(len(explainer.feature_names))), ("players", f"{len(names)}: {shown}")]
    named = f": {', '.join(map(short_text, outputs))}" if outputs else ""
    lines += [("outputs", f"{len(explainer._expected)}{named}")]
    if isinstance(explainer, TreeExplainer):
        lines += _trees(explainer._engine)
    elif isinstance(explainer, SpectrumExplainer):
        return lines
    elif isinstance(explainer.representation, Spectrum):
        n_background = len(explainer._compiled.background)  # type: ignore[attr-defined]
        lines += [*_spectrum(explainer.representation), ("background", _rows(n_background))]
    else:
        lines += _trees(explainer._compiled.explainer._engine)  # type: ignore[attr-defined]
    return [*lines, ("expected value", _numbers(explainer._expected))]


def _trees(engine: TreeEngine) -> Lines:
    e, tables = engine.ensemble, engine.tables
    degrees = engine._profile[:, 2].astype(np.int64)
    counts = np.bincount(degrees)
    profile = ", ".join(f"{degree}: {count:,}" for degree, count in enumerate(counts) if count)
    lines = [("terms", f"{e.n_leaves:,} leaves of {e.n_trees:,} trees")]
    lines += [("degree", f"{degrees.max()} (most features on a path)"), ("trees by degree", profile)]
    size = "none" if tables is None else f"{tables.n_tables:,}, {_size(tables.nbytes)}"
    walked = int((~engine._feasible).sum())
    lines += [("tables", size + (f"; {walked:,} trees without" if walked else ""))]
    rows = "none: tree_path_dependent" if engine.background is None else _rows(engine.n_background)
    return [*lines, ("background", rows)]


def _tables(tables: Tables) -> Lines:
    terms = tables._terms
    energies = (terms.coefficients**2).sum(axis=1)
    energy = np.bincount(terms.degrees, energies, minlength=1).astype(np.float64)
    lines = [("terms", f"{terms.n_terms:,}"), *_energy(energy)]
    rest = tables.plan.n_direct_terms
    size = f"{tables.n_tables:,}, {_size(tables.nbytes)}" + (f"; {rest:,} terms without" if rest else "")
    lines += [("tables", size), ("background", _rows(tables.n_background))]
    return [*lines, ("expected value", _numbers(np.atleast_1d(tables.expected_value)))]


def _spectrum(spectrum: Spectrum) -> Lines:
    lines = [("bits", str(spectrum.n_bits)), ("terms", f"{len(spectrum):,}")]
    return [*lines, *_energy(np.atleast_1d(spectrum.degree_profile()))]


def _energy(by_degree: NDArray[np.float64]) -> Lines:
    total = by_degree.sum() or 1.0
    shares = ", ".join(f"{degree}: {part / total:.2%}" for degree, part in enumerate(by_degree) if part)
    return [("degree", str(len(by_degree) - 1)), ("energy by degree", shares or "none")]


def _rows(n: int | None) -> str:
    return "unknown" if n is None else f"{n:,} rows"


def _numbers(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"
