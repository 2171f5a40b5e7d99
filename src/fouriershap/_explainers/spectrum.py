"""Explainers of functions on bits that are spectra already."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fouriershap._base.checks import (
    ProgressOption,
    check_choice,
    check_device,
    check_progress,
    numbered_names,
)
from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import get_part, require
from fouriershap._base.messages import truncated_repr
from fouriershap._base.parallel import count_jobs
from fouriershap._explainers.parts import Parts, name_of
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import column_names, densified, unmask
from fouriershap._rows.inputs import BitEncoder, InputAdapter
from fouriershap._rows.players import check_groups
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import find_index
from fouriershap._shapley.jax import VERSIONS, prepare
from fouriershap._shapley.players import players_and_index
from fouriershap._shapley.spectrum.engine import SpectrumEngine, make_engine
from fouriershap._shapley.verify import verify_owners, verify_players

KIND = "spectrum"
_STRATEGIES = ("tables", *VERSIONS)


def spectrum_parts(
    spectrum: Spectrum,
    background: Any,
    *,
    feature_names: ArrayLike | None = None,
    groups: Any = None,
    coalitions: str = "whole",
    causal_order: Any = None,
    weights: ArrayLike | None = None,
    memory: int | float | None = None,
    index: str = "shapley",
    strategy: str = "tables",
    device: str = "cpu",
    precision: str | None = None,
    n_jobs: int = -1,
    progress: ProgressOption = None,
) -> Parts:
    """Explain a `Spectrum` exactly.

    Parameters
    ----------
    spectrum : Spectrum
    background : array or data frame, shape (n_background, n_bits)
        Rows of 0 and 1 that stand for "feature unknown".
    feature_names : sequence of str, optional
        By default those of the background, else "Feature 0", ...
    groups : mapping or sequence, optional
        Bits that act as one player: ``{"name": [columns]}`` or one group name per column.
    coalitions, causal_order
        Owen values and asymmetric values, as for `TreeExplainer`.
    weights : array_like, shape (n_background,), optional
        Weights of the background rows; None for equal ones.
    memory : float, optional
        Budget of the tables in bytes; None for a quarter of the machine's memory. Terms beyond it, and
        terms of more than 16 players, are explained by the closed form instead.
    index : {"shapley", "banzhaf", "weighted-banzhaf(p)", "beta-shapley(a, b)"}
        Which average over coalitions: see `TreeExplainer`.
    device : {"cpu", "jax"}
        "cpu" for the native kernels; "jax" reads the tables under XLA, on whatever device JAX has. The native kernels
        build them, and explain terms without a table, either way. Files do not record the device.
    precision : {None, "single", "double"}
        Precision on a device of JAX; None for double on a CPU, single on an accelerator.
    strategy : {"tables", "base", "precompute", "sparse", "positional"}
        Look-up tables, or one of the paper's versions in JAX. Interactions and files use tables in any case.
    n_jobs : int
        Threads; -1 for all cores.
    progress : bool or callable, optional
        Whether long calls report progress; see `Explainer`.

    Returns
    -------
    Explainer

    Examples
    --------
    >>> import fouriershap as fs
    >>> h = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
    >>> explainer = fs.Explainer(h, [[0, 0, 0]], groups={"last two": [1, 2]})
    >>> explainer.player_names
    ('Feature 0', 'last two')
    >>> explainer.shap_values([[1, 1, 0]])
    array([[-2., -1.]])
    """
    if not isinstance(spectrum, Spectrum):
        raise InputError(f"spectrum is a {type(spectrum).__name__}; give a Spectrum.")
    check_choice("strategy", strategy, _STRATEGIES)
    check_progress(progress)
    by_tables = strategy == "tables"
    if not by_tables and (coalitions != "whole" or causal_order is not None):
        raise InputError(
            f"strategy={truncated_repr(strategy)} has SHAP values only; leave it out with coalitions='owen' or "
            "causal_order=."
        )
    if not by_tables and not find_index(index).adds_up:
        raise InputError(
            f"strategy={truncated_repr(strategy)} has no index {truncated_repr(index)}; use strategy='tables'."
        )
    count_jobs(n_jobs)
    background = densified(unmask(background))
    names = _names(feature_names, background, spectrum.n_bits)
    (player, player_names), values_index = players_and_index(
        groups, coalitions, causal_order, index, lambda groups: check_groups(groups, names)
    )
    options: dict[str, Any] = {"players": player, "weights": weights, "memory": memory}
    if by_tables:
        check_device(device, precision)
        tables = make_engine(spectrum, background, index=values_index, **options)
        engine: Engine = tables if device == "cpu" else tables.to(device, precision)
    else:
        version = prepare(spectrum, background, strategy=strategy, precision=precision, **options)
        from fouriershap._shapley.jax.engine import VersionEngine  # it imports JAX

        engine = VersionEngine(make_engine(spectrum, background, index=values_index, **options), version)
    inputs = InputAdapter(BitEncoder(names), names, player, player_names)
    return Parts(KIND, inputs, engine, n_jobs=n_jobs, progress=progress, model_name=name_of(spectrum))


def spectrum_parts_from_contents(contents: Contents) -> Parts:
    """Build the parts of a saved explainer."""
    header = get_part(contents.header, "inputs")
    engine = SpectrumEngine.from_contents(contents.arrays, get_part(contents.header, "engine"))
    encoder = BitEncoder(tuple(header["feature_names"]))
    inputs = InputAdapter.from_contents(contents.arrays, header, encoder)
    verify_players(inputs.player, engine.terms.n_bits)
    verify_owners(engine.terms, inputs.player)
    require(len(inputs.player_names) == engine.n_players, "a player has no name")
    return Parts(KIND, inputs, engine)


def _names(given: ArrayLike | None, background: Any, n_bits: int) -> tuple[str, ...]:
    found = tuple(map(str, np.asarray(given).reshape(-1))) if given is not None else column_names(background)
    names = found or numbered_names(n_bits)
    if len(names) != n_bits:
        what = "feature_names" if given is not None else "background"
        raise InputError(f"{what} has {len(names)} columns, but the spectrum has {n_bits} bits.")
    return names
