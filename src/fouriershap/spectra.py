"""Functions on bits: compile a `Spectrum` with a background, explain rows, or read a spectrum from trees.

`compile` builds look-up tables once and explains any number of rows; `shap_values` does both in one call;
`plan` tells what these would do.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base import files
from fouriershap._base.arguments import check_arguments
from fouriershap._base.bits import check_bits
from fouriershap._base.checks import check_bool, check_choice, check_device, check_int, check_memory
from fouriershap._base.errors import InputError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._fourier.tree_spectrum import MAX_TERMS, ensemble_spectrum
from fouriershap._libraries import read_model
from fouriershap._shapley.indices import SHAPLEY, find_index
from fouriershap._shapley.interactions import find_pairs, interaction_matrices, pair_interactions
from fouriershap._shapley.jax import VERSIONS, prepare
from fouriershap._shapley.spectrum.engine import SpectrumEngine, make_engine
from fouriershap._shapley.spectrum.plan import Plan, plan_terms
from fouriershap._shapley.spectrum.terms import make_terms

KIND = "tables"
STRATEGIES = ("auto", "tables", "direct", *VERSIONS)

__all__ = [
    "Plan",
    "Tables",
    "compile",
    "plan",
    "shap_interaction_values",
    "shap_values",
    "tree_spectrum",
]


@check_arguments
def compile(  # noqa: A001 - used as `fs.spectra.compile`
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
        Where rows are explained, and how precisely; see `Tables.to`. The native kernels build the tables
        in any case.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> h = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
    >>> tables = fs.spectra.compile(h, background=np.zeros((1, 3)))
    >>> tables.shap_values([[1, 1, 0]])
    array([[-2., -1., 0.]])
    >>> tables.expected_value
    1.5
    """
    check_device(device, precision)
    engine = make_engine(spectrum, background, players=players, weights=weights, memory=memory, index=index)
    tables = Tables(engine, spectrum.is_single)
    return tables if device == "cpu" else tables.to(device, precision=precision)


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
        None for any number, as `compile` assumes.

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
    players, weights, memory, index
        As in `compile`.
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
    return Tables(engine, spectrum.is_single).shap_values(bits, n_jobs=n_jobs)


@check_arguments
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
    n_jobs: int = -1,
) -> NDArray[np.float64]:
    """Return the exact interventional SHAP interaction values of a spectrum, in one call.

    Parameters
    ----------
    spectrum, X, background, players, weights, memory, index, n_jobs
        As in `shap_values`.
    pairs
        As in `Explainer.shap_interaction_values`; players are named by their numbers.

    Examples
    --------
    >>> import fouriershap as fs
    >>> h = fs.Spectrum([[1, 1]], [1.0])
    >>> fs.spectra.shap_interaction_values(h, X=[[1, 1]], background=[[0, 0]])
    array([[[-2.,  2.],
            [ 2., -2.]]])
    """
    bits = check_bits(X, spectrum.n_bits)
    options: dict[str, Any] = {"players": players, "weights": weights, "memory": memory, "index": index}
    engine = make_engine(spectrum, background, **options, n_rows=len(bits))
    tables = Tables(engine, spectrum.is_single)
    return tables.shap_interaction_values(bits, pairs=pairs, n_jobs=n_jobs)


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """A spectrum compiled with one background: SHAP values by look-up.

    Made by `compile`. Immutable, so any number of threads may explain with it at once. The cost of a row
    does not depend on the size of the background.

    Attributes
    ----------
    engine : SpectrumEngine
    single : bool
        Whether results leave out the axis of the one output.
    """

    engine: SpectrumEngine
    single: bool

    @property
    def expected_value(self) -> float | NDArray[np.float64]:
        """Mean of the function over the background; (n_outputs,) where there are several outputs."""
        return float(self.engine.expected[0]) if self.single else self.engine.expected.copy()

    @property
    def plan(self) -> Plan:
        """Which terms went into tables, and why."""
        return self.engine.made_by

    @property
    def n_players(self) -> int:
        return self.engine.n_players

    @property
    def nbytes(self) -> int:
        """Memory of the tables in bytes."""
        return self.engine.tables.nbytes

    @property
    def n_tables(self) -> int:
        """Look-ups per row and output."""
        return self.engine.tables.n_tables

    def __repr__(self) -> str:
        n_rest = self.engine.rest.n_terms
        rest = f" + {n_rest} terms by the closed form" if n_rest else ""
        return f"Tables({self.n_tables} tables, {self.nbytes / 1e6:.1f} MB{rest}, {self.n_players} players)"

    def to(self, device: str, *, precision: str | None = None, memory: int | float | None = None) -> Tables:
        """Return the same tables on another device.

        Parameters
        ----------
        device : {"cpu", "jax"}
            "cpu" for the native kernels; "jax" for XLA, on whatever device JAX has. Terms without a table
            are explained by the native closed form either way. Files do not record the device.
        precision : {None, "single", "double"}
            Precision of tables and totals on the device; None for double on a CPU, single on an accelerator.
        memory : float, optional
            Budget on the device in bytes; None for a quarter of the device's memory.
        """
        check_device(device, precision)
        return Tables(self.engine.to(device, precision, memory), self.single)

    def shap_values(self, X: ArrayLike, *, n_jobs: int = -1) -> NDArray[np.float64]:
        """Explain rows of bits.

        Parameters
        ----------
        X : array_like, shape (n_rows, n_bits)
            Only 0 and 1.
        n_jobs : int
            Threads; -1 for every core. The result is the same for any number. XLA has threads of its own.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        out = self.engine.shap_values(check_bits(X, self.engine.terms.n_bits), n_jobs)
        return out[:, :, 0] if self.single else out

    def shap_interaction_values(
        self, X: ArrayLike, *, pairs: Any = None, n_jobs: int = -1
    ) -> NDArray[np.float64]:
        """Return interactions of pairs of players; see `fouriershap.Explainer.shap_interaction_values`.

        Players are named by their numbers.
        """
        bits = check_bits(X, self.engine.terms.n_bits)
        if pairs is None:
            out = interaction_matrices(self.engine, bits, n_jobs)
        else:
            positions = find_pairs(pairs, tuple(map(str, range(self.n_players))))
            out = pair_interactions(self.engine, bits, positions, n_jobs)
        return out[..., 0] if self.single else out

    def save(self, path: str | os.PathLike[str], *, interactions: bool = False) -> None:
        """Write to a .fshap file (see `fouriershap.load`).

        Parameters
        ----------
        interactions : bool
            Whether to include the background, which interactions need.
        """
        arrays, header = self.engine.to_contents(interactions)
        files.write(path, KIND, arrays, header | {"single": self.single})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tables:
        """Read a .fshap file that `save` wrote; the tables stay memory-mapped."""
        return files.load(path, KIND, cls.from_contents)

    @classmethod
    def from_contents(cls, contents: files.Contents) -> Tables:
        """Build from the contents of a file that `save` wrote."""
        engine = SpectrumEngine.from_contents(contents.arrays, contents.header)
        single = get_typed(contents.header, "single", bool)
        require(engine.n_outputs == 1 or not single, "it has several outputs, but is marked as having one")
        return cls(engine, single)


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
    # Encoded as any other rows, since some libraries treat 0 as missing or as a label.
    zeros_and_ones = np.repeat(np.array([[0.0], [1.0]]), reading.n_features, axis=1)
    spectrum = ensemble_spectrum(reading.trees, reading.rules.encode(zeros_and_ones), max_terms)
    return spectrum.prune(energy=0.9995, min_amplitude=0.005) if prune else spectrum
