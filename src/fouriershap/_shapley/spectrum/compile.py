"""`compile`: a spectrum and a background in, `Tables` out; and explaining in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.bits import check_bits
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.memory import check_memory
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley.indices import check_index
from fouriershap._shapley.interactions import TopInteractions
from fouriershap._shapley.jax import VERSIONS
from fouriershap._shapley.jax import shap_values as shap_values_jax
from fouriershap._shapley.spectrum.blocks import MOST_ATOMS, Cover, compile_terms
from fouriershap._shapley.spectrum.engine import Tables, check_device
from fouriershap._shapley.spectrum.plan import Plan, plan_terms
from fouriershap._shapley.spectrum.terms import Terms, make_terms
from fouriershap._shapley.tables import TableSet
from fouriershap._shapley.weights import check_weights

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
    tables = compile_rows(spectrum, background, players, weights, check_memory(memory), None, index=index)
    return tables if device == "cpu" else tables.to(device, precision=precision)


def compile_rows(
    spectrum: Spectrum,
    background: ArrayLike,
    players: ArrayLike | None,
    weights: ArrayLike | None,
    memory: int,
    n_rows: int | None,
    method: str = "auto",
    index: str = "shapley",
) -> Tables:
    """`compile`, where the number of rows to come may decide what is worth a table."""
    check_index(index)
    terms = make_terms(spectrum, players)
    rows = check_bits(background, spectrum.n_bits, name="background")
    if isinstance(background, np.ndarray) and np.may_share_memory(rows, background):
        rows = rows.copy()  # terms without tables read it at every call
    share = check_weights(weights, len(rows))
    plan, wanted = plan_terms(terms, n_rows, len(rows), share is not None, memory, method)
    tables, in_tables = _tables_within(terms, wanted, rows, share, memory, index)
    plan = plan.after(int(in_tables.sum()), tables.nbytes, memory)
    left_over = plan.n_direct_terms
    if method == "tables" and left_over:
        raise CapacityError(
            f"{left_over} of {terms.n_terms} terms do not fit into tables (at most {MOST_ATOMS} players a "
            f"term, and {memory:,} bytes in all). Raise `memory`, or use method='auto', which explains them "
            "by the closed form."
        )
    expected = np.average(spectrum(rows).reshape(len(rows), -1), axis=0, weights=share)
    rest = terms.select(~in_tables)
    return Tables(
        terms, tables, rest, rows, share, expected, spectrum._single, plan, index, memory, len(rows)
    )


def _tables_within(
    terms: Terms,
    wanted: NDArray[np.bool_],
    background: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    memory: int,
    index: str,
) -> tuple[TableSet, NDArray[np.bool_]]:
    """Compile the wanted terms; where their blocks come out larger than the budget, fewer of them."""
    kept = wanted.copy()
    while True:
        cover = Cover(terms.select(kept))
        if cover.nbytes(terms) <= memory:
            return compile_terms(terms.select(kept), cover, background, weights, index), kept
        by_degree = np.flatnonzero(kept)[np.argsort(terms.degrees[kept], kind="stable")]
        share = 0.9 * memory / cover.nbytes(terms)
        kept[by_degree[int(share * len(by_degree)) :]] = False


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
    >>> fs.plan(h, n_rows=10, n_background=10).method, fs.plan(h, 10**6, 10**4).method
    ('direct', 'tables')
    """
    for name, count, least in (
        ("n_rows", 0 if n_rows is None else n_rows, 0),
        ("n_background", n_background, 1),
    ):
        if not isinstance(count, int | np.integer) or count < least:
            raise InputError(f"{name} is {count!r}; give a whole number >= {least}.")
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
    if method not in METHODS:
        raise InputError(f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}.")
    bits = check_bits(X, spectrum.n_bits)
    if method in VERSIONS:
        if check_index(index) != "shapley":
            raise InputError(
                f"method={method!r} computes Shapley values only; use 'auto', 'tables' or 'direct' for index={index!r}."
            )
        given = {"players": players, "weights": weights, "memory": memory, "precision": precision}
        return shap_values_jax(spectrum, bits, background, method=method, **given)
    check_device("cpu", precision)
    budget = check_memory(memory)
    compiled = compile_rows(spectrum, background, players, weights, budget, len(bits), method, index)
    return compiled.shap_values(bits, n_jobs=n_jobs)


def shap_interaction_values(
    spectrum: Spectrum,
    X: ArrayLike,
    background: ArrayLike,
    *,
    pairs: Any = None,
    top: int | None = None,
    players: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    memory: int | float | None = None,
    index: str = "shapley",
    n_jobs: int | None = None,
) -> NDArray[np.float64] | TopInteractions:
    """Exact interventional SHAP interaction values of a spectrum, in one call.

    Parameters
    ----------
    spectrum, X, background, players, weights, memory, index, n_jobs
        As in `shap_values`.
    pairs, top
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
    tables = compile_rows(
        spectrum, background, players, weights, check_memory(memory), len(bits), index=index
    )
    return tables.shap_interaction_values(bits, pairs=pairs, top=top, n_jobs=n_jobs)
