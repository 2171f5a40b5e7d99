"""The content of a .fshap file, as lines of (name, value)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import Explainer, Spectrum, Waves, load
from fouriershap._base.messages import truncated_text

Lines = list[tuple[str, str]]


def describe(path: Path) -> Lines:
    """Return what a file holds."""
    loaded = load(path)
    return [("file", f"{truncated_text(path)}, {_size(path.stat().st_size)}"), *_describe(loaded)]


def _describe(loaded: Spectrum | Waves | Explainer) -> Lines:
    if isinstance(loaded, Spectrum):
        return [("holds", "spectrum"), *_spectrum(loaded)]
    if isinstance(loaded, Waves):
        return [
            ("holds", "waves"),
            ("waves", f"{len(loaded):,}"),
            ("features", str(loaded.columns.n_features)),
        ]
    lines = _holds(loaded) + _names(loaded)
    lines += [("values", loaded.info.which_values)] if loaded.info.which_values else []
    if isinstance(loaded.representation, Spectrum):
        lines += [*_spectrum(loaded.representation), _background(loaded.info)]
    else:
        lines += _facts(loaded.info)
    return [*lines, ("expected value", _numbers(np.atleast_1d(loaded.expected_value)))]


def _holds(explainer: Explainer) -> Lines:
    lines = [("holds", f"explainer of {explainer.kind}")]
    if explainer.fitted is None:
        model = explainer.info.model or explainer.model_name
        return [*lines, *([("model", truncated_text(model))] if model else []), ("output", explainer.output)]
    found = explainer.fitted.fidelity
    return [
        *lines,
        ("model", f"{found.n_queries:,} queries"),
        ("method", explainer.fitted.method),
        ("fidelity", f"R² {found.r2:.4f} [{found.low:.4f}, {found.high:.4f}]"),
    ]


def _names(explainer: Explainer) -> Lines:
    names, outputs = explainer.player_names, explainer.output_names or ()
    shown = ", ".join(map(truncated_text, names[:6])) + (", ..." if len(names) > 6 else "")
    n_outputs = len(np.atleast_1d(explainer.expected_value))
    return [
        ("features", str(len(explainer.feature_names))),
        ("players", f"{len(names)}: {shown}"),
        ("outputs", str(n_outputs) + (f": {', '.join(map(truncated_text, outputs))}" if outputs else "")),
    ]


def _facts(info: Any) -> Lines:
    """Return the facts about trees, terms or waves (an `EngineInfo`)."""
    if info.parts:
        return [*(line for part in info.parts for line in _facts(part)[:-1]), _background(info)]
    if info.kind == "products":
        strategy = f"{info.strategy}, background error {info.background_error:.1e}"
        return [("terms", f"{info.n_terms:,}"), ("strategy", strategy), _background(info)]
    if info.kind == "trees":
        counts = enumerate(np.bincount(info.degrees))
        profile = ", ".join(f"{degree}: {count:,}" for degree, count in counts if count)
        lines = [("terms", f"{info.n_leaves:,} leaves of {info.n_trees:,} trees")]
        lines += [("degree", f"{info.degrees.max()} (most features on a path)"), ("trees by degree", profile)]
        tables = f"{info.n_tables:,}, {_size(info.table_bytes)}" if info.n_tables else "none"
    else:
        lines = [("terms", f"{info.n_terms:,}"), *_energy(info.degree_energy)]
        tables = f"{info.n_tables:,}, {_size(info.table_bytes)}"
    if info.n_without_table:
        tables += f"; {info.n_without_table:,} {'trees' if info.kind == 'trees' else 'terms'} without"
    return [*lines, ("tables", tables), _background(info)]


def _background(info: Any) -> tuple[str, str]:
    if info.is_path_dependent:
        return "background", "none: path-dependent"
    return "background", "unknown" if info.n_background is None else f"{info.n_background:,} rows"


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
