"""`compile`: a spectrum and a background in, `Tables` out; built once, applied many times."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap import _io
from fouriershap._bits import check_bits, check_packed, pack, unpack
from fouriershap._errors import CapacityError, InputError
from fouriershap._memory import check_memory
from fouriershap._parallel import for_each_block
from fouriershap._spectrum import Spectrum
from fouriershap.shapley._background import check_weights
from fouriershap.shapley._cost import Plan, plan_terms
from fouriershap.shapley._direct import add_direct
from fouriershap.shapley._indices import check_index
from fouriershap.shapley._interactions import TopInteractions, interaction_values
from fouriershap.shapley._spectrum_pairs import SpectrumPairs, add_differences, make_spectrum_pairs
from fouriershap.shapley._spectrum_tables import MOST_ATOMS, Cover, atom_codes, compile_terms
from fouriershap.shapley._tables import TableSet, tables_from_arrays, tables_to_arrays
from fouriershap.shapley._terms import Terms, make_terms
from fouriershap.shapley._verify import verify_tables, verify_terms
from fouriershap.shapley.jax import VERSIONS, put_tables
from fouriershap.shapley.jax import shap_values as shap_values_jax

KIND = "tables"
METHODS = ("auto", "tables", "direct", *VERSIONS)
DEVICES = ("cpu", "jax")
_ROWS_PER_BLOCK = 4096


class Tables:
    """SHAP values of a spectrum against one background, ready to be looked up.

    Made by `compile`. Immutable, so any number of threads may explain with it at once. What one row costs
    does not depend on the size of the background.

    Attributes
    ----------
    expected_value : float or ndarray of shape (n_outputs,)
        Mean of the function over the background.
    plan : Plan
        Which terms went into tables, and why.
    n_background : int or None
        Rows of the background; None in files that do not tell.
    """

    def __init__(
        self,
        terms: Terms,
        tables: TableSet,
        rest: Terms,
        background: NDArray[np.uint8],
        weights: NDArray[np.float64] | None,
        expected: NDArray[np.float64],
        single: bool,
        plan: Plan,
        index: str = "shapley",
        memory: int = 0,
        n_background: int | None = None,
    ) -> None:
        self.n_background = n_background
        self._terms, self._tables, self._rest = terms, tables, rest
        # What terms without a table and interactions need; a file has it only for the former.
        self._background, self._weights = background, weights
        self._expected, self._single = expected, single
        self.plan = plan
        self.index, self._memory = index, memory
        self._pairs: tuple[NDArray[np.int64] | None, SpectrumPairs] | None = None
        self._on_device: Any = None  # the tables once more, where `to` put them

    @property
    def expected_value(self) -> float | NDArray[np.float64]:
        """Mean of the function over the background."""
        return float(self._expected[0]) if self._single else self._expected.copy()

    @property
    def n_players(self) -> int:
        return self._terms.n_players

    @property
    def nbytes(self) -> int:
        """Memory of the tables."""
        return self._tables.nbytes

    @property
    def n_tables(self) -> int:
        """Look-ups per row and output."""
        return self._tables.n_tables

    def __repr__(self) -> str:
        rest = f" + {self._rest.n_terms} terms by the closed form" if self._rest.n_terms else ""
        return f"Tables({self.n_tables} tables, {self.nbytes / 1e6:.1f} MB{rest}, {self.n_players} players)"

    def to(self, device: str, *, precision: str | None = None, memory: int | float | None = None) -> Tables:
        """The same tables, read elsewhere.

        Parameters
        ----------
        device : {"cpu", "jax"}
            "cpu" for the native kernels; "jax" for XLA, on whatever device JAX has. Terms without a table
            are explained by the native closed form either way. Files do not remember the device.
        precision : {None, "single", "double"}
            Of tables and totals on the device; None for double on a CPU, single on an accelerator.
        memory : float, optional
            Budget on the device in bytes; None for a quarter of the device's memory.
        """
        check_device(device, precision)
        other = copy(self)
        other._on_device = put_tables(self._tables, precision, memory) if device == "jax" else None
        return other

    def shap_values(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Explain rows of bits.

        Parameters
        ----------
        X : array_like, shape (n_rows, n_bits)
            Only 0 and 1.
        n_jobs : int, optional
            Threads; None for every core. The result is the same for any number. XLA has threads of its own.

        Returns
        -------
        ndarray, shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        """
        bits = check_bits(X, self._terms.n_bits)
        out = np.zeros((len(bits), self.n_players, self._terms.n_outputs))

        def work(first: int, last: int) -> None:
            self._tables.add(atom_codes(self._terms, bits[first:last]), out[first:last])

        if self._on_device is None:
            for_each_block(work, len(bits), _ROWS_PER_BLOCK, n_jobs)
        else:
            self._on_device.add(atom_codes(self._terms, bits), out)
        if self.index == "shapley":
            add_direct(self._rest, bits, self._background, self._weights, out, n_jobs)
        else:
            add_differences(self._rest, bits, self._background, self._weights, self.index, None, out)
        return out[:, :, 0] if self._single else out

    def shap_interaction_values(
        self, X: ArrayLike, *, pairs: Any = None, top: int | None = None, n_jobs: int | None = None
    ) -> NDArray[np.float64] | TopInteractions:
        """Interactions of pairs of players; see `fouriershap.Explainer.shap_interaction_values`.

        Players have their numbers for names.
        """
        bits = check_bits(X, self._terms.n_bits)
        names = tuple(map(str, range(self.n_players)))

        def values() -> NDArray[np.float64]:
            return self.shap_values(bits, n_jobs=n_jobs).reshape(len(bits), self.n_players, -1)

        return interaction_values(self.interactions, bits, values, names, pairs, top, n_jobs, self._single)

    def interactions(self, wanted: NDArray[np.int64] | None) -> SpectrumPairs:
        """What gives the interactions of the pairs with these keys, None for all; kept until others are wanted."""
        kept = self._pairs
        if kept is not None and (
            kept[0] is None or (wanted is not None and bool(np.isin(wanted, kept[0]).all()))
        ):
            return kept[1]
        if not len(self._background):
            raise InputError(
                "these tables were loaded from a file that has no interaction tables, and the background is not in "
                "it. Save them with tables.save(path, interactions=True)."
            )
        settings = (self._background, self._weights, self._memory, self.index, wanted)
        made = make_spectrum_pairs(self._terms, *settings)
        self._pairs = (wanted, made)
        return made

    def save(self, path: str | os.PathLike[str], *, interactions: bool = False) -> None:
        """Write to a .fshap file (see `fouriershap.load`).

        Parameters
        ----------
        interactions : bool
            Whether what interactions need goes into the file: the background.
        """
        arrays, header = self._to_contents(interactions)
        _io.write(path, KIND, arrays, header)

    def _to_contents(self, interactions: bool = False) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and header of a file; `_from_contents` is the way back."""
        arrays = tables_to_arrays(self._tables) | {"expected": self._expected}
        for name in _TERM_ARRAYS:
            arrays[f"terms.{name}"] = getattr(self._terms, name)
            arrays[f"rest.{name}"] = getattr(self._rest, name)
        needed = interactions or self._rest.n_terms > 0
        if interactions and not len(self._background):
            self.interactions(None)  # says why there is nothing to save
        arrays["background"] = pack(self._background if needed else self._background[:0])
        if self._weights is not None and needed:
            arrays["weights"] = self._weights
        header: dict[str, Any] = {
            "n_bits": self._terms.n_bits,
            "n_players": self.n_players,
            "single": self._single,
            "index": self.index,
            "memory": self._memory,
            "n_background": self.n_background,
        }
        header["plan"] = asdict(self.plan)
        return arrays, header

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tables:
        """Read a .fshap file that `save` wrote; the tables stay memory-mapped."""
        return _io.load(path, KIND, cls._from_contents)

    @classmethod
    def _from_contents(cls, contents: _io.Contents) -> Tables:
        arrays, header = contents.arrays, contents.header
        sizes = (header["n_bits"], header["n_players"])
        check_packed(arrays["background"], header["n_bits"])
        terms = Terms(*sizes, *(arrays[f"terms.{name}"] for name in _TERM_ARRAYS))
        rest = Terms(*sizes, *(arrays[f"rest.{name}"] for name in _TERM_ARRAYS))
        background = unpack(arrays["background"], header["n_bits"])
        tables = tables_from_arrays(arrays, terms.n_players, terms.n_outputs)
        plan = Plan(**header["plan"])
        weights = arrays.get("weights")
        for part in (terms, rest):
            verify_terms(part)
        verify_tables(tables, terms.n_atoms, 0)
        if rest.n_terms:
            check_weights(weights, len(background))
        single = bool(header["single"]) and terms.n_outputs == 1
        index, memory = check_index(header.get("index", "shapley")), check_memory(header.get("memory"))
        parts = (background, weights, arrays["expected"], single, plan, index, memory)
        return cls(terms, tables, rest, *parts, header.get("n_background"))


_TERM_ARRAYS = ("atom_start", "atom_bits", "atom_player", "start", "atoms", "coefficients", "constant")


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


def check_device(device: str, precision: str | None = None) -> None:
    """Raise `InputError` for a device that does not exist, or a precision that the native kernels lack."""
    if device not in DEVICES:
        raise InputError(f"device is {device!r}; choose one of {', '.join(map(repr, DEVICES))}.")
    if device == "cpu" and precision not in (None, "double"):
        raise InputError(
            f"precision is {precision!r}, but only JAX takes one; the native kernels compute in double precision."
        )


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
