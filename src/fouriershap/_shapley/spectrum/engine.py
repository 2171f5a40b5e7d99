"""`Tables`: a spectrum against one background, compiled, ready to explain."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base import files
from fouriershap._base.bits import check_bits, check_packed, pack, unpack
from fouriershap._base.errors import InputError
from fouriershap._base.memory import check_memory
from fouriershap._base.parallel import for_each_block
from fouriershap._shapley.indices import check_index
from fouriershap._shapley.interactions import TopInteractions, interaction_values
from fouriershap._shapley.jax import put_tables
from fouriershap._shapley.spectrum.blocks import atom_codes
from fouriershap._shapley.spectrum.direct import add_direct
from fouriershap._shapley.spectrum.pairs import SpectrumPairs, add_differences, make_spectrum_pairs
from fouriershap._shapley.spectrum.plan import Plan
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.tables import TableSet, tables_from_arrays, tables_to_arrays
from fouriershap._shapley.verify import verify_tables, verify_terms
from fouriershap._shapley.weights import check_weights

KIND = "tables"
DEVICES = ("cpu", "jax")
_ROWS_PER_BLOCK = 4096
_TERM_ARRAYS = ("atom_start", "atom_bits", "atom_player", "start", "atoms", "coefficients", "constant")


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
        files.write(path, KIND, arrays, header)

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
        return files.load(path, KIND, cls._from_contents)

    @classmethod
    def _from_contents(cls, contents: files.Contents) -> Tables:
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
        if rest.n_terms or weights is not None:
            check_weights(weights, len(background))
        single = bool(header["single"]) and terms.n_outputs == 1
        index, memory = check_index(header.get("index", "shapley")), check_memory(header.get("memory"))
        parts = (background, weights, arrays["expected"], single, plan, index, memory)
        return cls(terms, tables, rest, *parts, header.get("n_background"))


def check_device(device: str, precision: str | None = None) -> None:
    """Raise `InputError` for a device that does not exist, or a precision that the native kernels lack."""
    if device not in DEVICES:
        raise InputError(f"device is {device!r}; choose one of {', '.join(map(repr, DEVICES))}.")
    if device == "cpu" and precision not in (None, "double"):
        raise InputError(
            f"precision is {precision!r}, but only JAX takes one; the native kernels compute in double precision."
        )
