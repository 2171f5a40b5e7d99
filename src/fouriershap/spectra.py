"""Functions on bits: SHAP values of a `Spectrum` in one call, how they would be computed, and spectra of trees.

`SpectrumExplainer` compiles a spectrum with a background once, and explains any number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.bits import check_bits
from fouriershap._base.checks import check_bool, check_choice, check_device, check_int, check_memory
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._fourier.tree_spectrum import MAX_TERMS, ensemble_spectrum
from fouriershap._libraries import read_model
from fouriershap._shapley.indices import SHAPLEY, find_index
from fouriershap._shapley.jax import VERSIONS, prepare
from fouriershap._shapley.spectrum.engine import make_engine
from fouriershap._shapley.spectrum.plan import Plan, plan_terms
from fouriershap._shapley.spectrum.terms import make_terms

STRATEGIES = ("auto", "tables", "direct", *VERSIONS)

__all__ = [
    "Plan",
    "plan",
    "shap_values",
    "tree_spectrum",
]


@check_arguments
def plan(
    spectrum: Spectrum,
    n_rows: int | None,
    n_background: int,
    *,
    players: ArrayLike | None = None,
    weighted: bool = False,
    memory: int | float | None = None,
) -> Plan:
    """Tell how ``strategy="auto"`` would explain ``n_rows`` rows, and why.

    Parameters
    ----------
    n_rows : int or None
        None for any number, as `SpectrumExplainer` assumes.

    Examples
    --------
    >>> import fouriershap as fs
    >>> h = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
    >>> fs.spectra.plan(h, n_rows=10, n_background=10).strategy, fs.spectra.plan(h, 10**6, 10**4).strategy
    ('direct', 'tables')
    """
    if n_rows is not None:
        check_int("n_rows", n_rows, 0)
    check_int("n_background", n_background)
    return plan_terms(make_terms(spectrum, players), n_rows, n_background, weighted, check_memory(memory))[0]


@check_arguments
def shap_values(
    spectrum: Spectrum,
    X: ArrayLike,
    background: ArrayLike,
    *,
    players: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    strategy: str = "auto",
    memory: int | float | None = None,
    index: str = "shapley",
    precision: str | None = None,
    n_jobs: int = -1,
) -> NDArray[np.float64]:
    """Return the exact interventional SHAP values of a spectrum, in one call.

    Parameters
    ----------
    spectrum : Spectrum
    X : array_like, shape (n_rows, n_bits)
        Rows to explain, of 0 and 1.
    background : array_like, shape (n_background, n_bits)
    players : array_like of int, shape (n_bits,), optional
        Player that owns each bit, numbered from 0; None for one player per bit.
    weights, memory, index
        As in `SpectrumExplainer`.
    strategy : {"auto", "tables", "direct", "base", "precompute", "sparse", "positional"}
        "tables" builds look-up tables and reads them, "direct" evaluates the closed form for every row
        and background row, "auto" chooses one of these per term by cost (see `plan`). The others are the
        closed form as the paper's four JAX versions compute it, on whatever device JAX has. All are exact.
    precision : {None, "single", "double"}
        Precision of the JAX versions; None for double on a CPU, single on an accelerator.
    n_jobs : int
        Threads; -1 for every core. XLA has threads of its own.

    Returns
    -------
    ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)

    Examples
    --------
    >>> import fouriershap as fs
    >>> h = fs.Spectrum([[1, 1]], [1.0])
    >>> fs.spectra.shap_values(h, X=[[0, 1]], background=[[0, 0], [1, 1]])
    array([[-1., -1.]])
    """
    check_choice("strategy", strategy, STRATEGIES)
    bits = check_bits(X, spectrum.n_bits)
    options: dict[str, Any] = {"players": players, "weights": weights, "memory": memory}
    if strategy in VERSIONS:
        if find_index(index) is not SHAPLEY:
            raise InputError(
                f"strategy={truncated_repr(strategy)} computes Shapley values only; use 'auto', 'tables' or "
                "'direct' for "
                f"index={truncated_repr(index)}."
            )
        prepared = prepare(spectrum, background, strategy=strategy, precision=precision, **options)
        values = prepared.shap_values(bits)
        return values[:, :, 0] if spectrum.is_single else values
    check_device("cpu", precision)
    engine = make_engine(spectrum, background, index=index, strategy=strategy, n_rows=len(bits), **options)
    values = engine.shap_values(bits, n_jobs)
    return values[:, :, 0] if spectrum.is_single else values


@check_arguments
def tree_spectrum(model: Any, *, prune: bool = False, max_terms: int = MAX_TERMS) -> Spectrum:
    """Return the exact spectrum of a tree model on binary features (paper, Eq. 4).

    Parameters
    ----------
    model : estimator, booster, path, or TreeEnsemble
        As in `TreeExplainer`. Features hold 0 or 1 and are never missing.
    prune : bool
        Apply the paper's pruning, ``prune(energy=0.9995, min_amplitude=0.005)``; see `Spectrum.prune`, and
        `Spectrum.prune_bound` for how far it can move a SHAP value.
    max_terms : int
        Limit of the number of terms that are formed before equal frequencies are summed: the sum over leaves
        of ``2 ** (distinct features on the path)``.

    Returns
    -------
    Spectrum
        Spectrum of the model's raw output; coefficients (n_terms, n_outputs) where the model has several outputs.

    Raises
    ------
    CapacityError
        More than ``max_terms`` terms would be formed. The message states how many.

    Warns
    -----
    FourierShapWarning
        Splits do not separate 0 from 1, as happens where the model was trained on other values. The
        spectrum is then exact on rows of 0 and 1, but says nothing about other rows.

    Notes
    -----
    A leaf with value v, whose path tests d features, is ``v * prod (1 + s_i chi_i) / 2``, with s_i = 1 where
    the path needs x_i = 0 and -1 where it needs x_i = 1. Terms whose contributions cancel up to rounding
    (1e-14 of their absolute sum) are left out.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> model = DecisionTreeRegressor().fit(X, X[:, 0] & X[:, 1])
    >>> h = fs.tree_spectrum(model)
    >>> h.coefficients
    array([ 0.25, -0.25, -0.25, 0.25])
    >>> np.allclose(h(X), model.predict(X))
    True
    """
    check_int("max_terms", max_terms)
    check_bool("prune", prune)
    reading = read_model(model)
    # Encoded as any other rows, since some libraries treat 0 as missing or as a label; labels are integers.
    zeros_and_ones = np.repeat(np.array([[0], [1]]), reading.n_features, axis=1)
    spectrum = ensemble_spectrum(reading.trees, reading.rules.encode(zeros_and_ones), max_terms)
    return spectrum.prune(energy=0.9995, min_amplitude=0.005) if prune else spectrum
