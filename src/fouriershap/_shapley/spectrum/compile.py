"""`compile`: a spectrum and a background in, `Tables` out; and explaining in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.bits import check_bits
from fouriershap._base.checks import (
    check_choice,
    check_device,
    check_memory,
    check_weights,
    check_whole,
    unshared,
)
from fouriershap._base.errors import InputError
from fouriershap._base.short import short
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley.indices import find_index
from fouriershap._shapley.jax import VERSIONS, prepare
from fouriershap._shapley.spectrum.engine import compile_spectrum
from fouriershap._shapley.spectrum.plan import Plan, plan_terms
from fouriershap._shapley.spectrum.tables import Tables
from fouriershap._shapley.spectrum.terms import make_terms

METHODS = ("auto", "tables", "direct", *VERSIONS)


def compile(  # noqa: A001 - what it does; used as `fs.compile`
    spectrum: Spectrum,
    background: ArrayLike,
    *,
    players: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    memory: int | float | None = None,
    index: str = "shapley",
    device: str = "cpu",
    precision: str | None = None,
) -> Tables:
    """Compile a spectrum with a background into look-up tables, once; then explain any number of rows.

    Parameters
    ----------
    spectrum : Spectrum
    background : array_like, shape (n_background, n_bits)
        Rows of 0 and 1 that stand for "feature unknown".
    players : array_like of int, shape (n_bits,), optional
        Player that owns each bit, numbered from 0; None for one player per bit.
    weights : array_like, shape (n_background,), optional
        Weights of the background rows; None for equal ones.
    memory : float, optional
        Budget of the tables in bytes; None for a quarter of the machine's memory. Terms beyond it, and
        terms of more than 16 players, are explained by the closed form instead.
    index : {"shapley", "banzhaf"}
        Which average over coalitions: see `TreeExplainer`.
    device, precision
        Where rows are explained, and how precisely; see `Tables.to`, which also takes a budget of the
        device. The tables are built by the native kernels in any case.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> h = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
    >>> tables = fs.compile(h, background=np.zeros((1, 3)))
    >>> tables.shap_values([[1, 1, 0]])
    array([[-2., -1., 0.]])
    >>> tables.expected_value
    1.5
    """
    check_device(device, precision)
    tables = compile_rows(spectrum, background, players, weights, memory, None, index=index)
    return tables if device == "cpu" else tables.to(device, precision=precision)


def compile_rows(
    spectrum: Spectrum,
    background: ArrayLike,
    players: ArrayLike | None,
    weights: ArrayLike | None,
    memory: int | float | None,
    n_rows: int | None,
    method: str = "auto",
    index: str = "shapley",
) -> Tables:
    """`compile`, where the number of rows to come may decide what is worth a table."""
    terms = make_terms(spectrum, players)
    rows = unshared(check_bits(background, spectrum.n_bits, name="background"), background)
    share = check_weights(weights, len(rows))
    engine = compile_spectrum(terms, rows, share, check_memory(memory), n_rows, method, find_index(index))
    return Tables(engine, spectrum.is_single)


def plan(
    spectrum: Spectrum,
    n_rows: int | None,
    n_background: int,
    *,
    players: ArrayLike | None = None,
    weighted: bool = False,
    memory: int | float | None = None,
) -> Plan:
    """How ``method="auto"`` would explain ``n_rows`` rows, and why.

    Parameters
    ----------
    n_rows : int or None
        None for "any number", as `compile` assumes.

    Examples
    --------
    >>> import fouriershap as fs
    >>> h = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
    >>> fs.plan(h, n_rows=10, n_background=10).strategy, fs.plan(h, 10**6, 10**4).strategy
    ('direct', 'tables')
    """
    if n_rows is not None:
        check_whole("n_rows", n_rows, 0)
    check_whole("n_background", n_background)
    return plan_terms(make_terms(spectrum, players), n_rows, n_background, weighted, check_memory(memory))[0]


def shap_values(
    spectrum: Spectrum,
    X: ArrayLike,
    background: ArrayLike,
    *,
    players: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    method: str = "auto",
    memory: int | float | None = None,
    index: str = "shapley",
    precision: str | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Exact interventional SHAP values of a spectrum, in one call.

    Parameters
    ----------
    spectrum : Spectrum
    X : array_like, shape (n_rows, n_bits)
        Rows to explain, of 0 and 1.
    background : array_like, shape (n_background, n_bits)
    players, weights, memory, index
        As in `compile`.
    method : {"auto", "tables", "direct", "base", "precompute", "sparse", "positional"}
        "tables" builds look-up tables and reads them, "direct" evaluates the closed form for every row
        and background row, "auto" chooses one of these per term by cost (see `plan`). The others are the
        closed form as the paper's four JAX versions compute it, on whatever device JAX has. All are exact.
    precision : {None, "single", "double"}
        Of the JAX versions; None for double on a CPU, single on an accelerator.
    n_jobs : int, optional
        Threads; None for every core. XLA has threads of its own.

    Returns
    -------
    ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)

    Examples
    --------
    >>> import fouriershap as fs
    >>> h = fs.Spectrum([[1, 1]], [1.0])
    >>> fs.shap_values(h, X=[[0, 1]], background=[[0, 0], [1, 1]])
    array([[-1., -1.]])
    """
    check_choice("method", method, METHODS)
    bits = check_bits(X, spectrum.n_bits)
    if method in VERSIONS:
        if not find_index(index).adds_up:
            raise InputError(
                f"method={short(method)} computes Shapley values only; use 'auto', 'tables' or 'direct' for "
                f"index={short(index)}."
            )
        given: dict[str, Any] = {
            "players": players,
            "weights": weights,
            "memory": memory,
            "precision": precision,
        }
        return prepare(spectrum, background, method=method, **given).shap_values(bits)
    check_device("cpu", precision)
    compiled = compile_rows(spectrum, background, players, weights, memory, len(bits), method, index)
    return compiled.shap_values(bits, n_jobs=n_jobs)


def shap_interaction_values(
    spectrum: Spectrum,
    X: ArrayLike,
    background: ArrayLike,
    *,
    pairs: Any = None,
    players: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    memory: int | float | None = None,
    index: str = "shapley",
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Exact interventional SHAP interaction values of a spectrum, in one call.

    Parameters
    ----------
    spectrum, X, background, players, weights, memory, index, n_jobs
        As in `shap_values`.
    pairs
        As in `Explainer.shap_interaction_values`; players have their numbers for names.

    Examples
    --------
    >>> import fouriershap as fs
    >>> h = fs.Spectrum([[1, 1]], [1.0])
    >>> fs.shap_interaction_values(h, X=[[1, 1]], background=[[0, 0]])
    array([[[-2.,  2.],
            [ 2., -2.]]])
    """
    bits = check_bits(X, spectrum.n_bits)
    tables = compile_rows(spectrum, background, players, weights, memory, len(bits), index=index)
    return tables.shap_interaction_values(bits, pairs=pairs, n_jobs=n_jobs)
