"""`Tables`: a spectrum against one background, compiled, as users hold it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base import files
from fouriershap._base.bits import check_bits
from fouriershap._base.checks import check_device
from fouriershap._base.headers import require, take
from fouriershap._shapley.engine import EngineInfo
from fouriershap._shapley.interactions import find_pairs, interaction_matrices, pair_interactions
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.spectrum.plan import Plan

KIND = "tables"


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """SHAP values of a spectrum against one background, ready to be looked up.

    Made by `compile`. Immutable, so any number of threads may explain with it at once. What one row costs
    does not depend on the size of the background.

    Attributes
    ----------
    engine : SpectrumEngine
        What computes.
    single : bool
        Whether the axis of the one output is left out.
    """

    engine: SpectrumEngine
    single: bool

    @property
    def expected_value(self) -> float | NDArray[np.float64]:
        """Mean of the function over the background; (n_outputs,) where there are several."""
        return float(self.engine.expected[0]) if self.single else self.engine.expected.copy()

    @property
    def plan(self) -> Plan:
        """Which terms went into tables, and why."""
        return self.engine.made_by

    @property
    def index(self) -> str:
        return self.engine.index.name

    @property
    def n_background(self) -> int | None:
        """Rows of the background; None in files that do not tell."""
        return self.engine.n_background

    @property
    def n_players(self) -> int:
        return self.engine.n_players

    @property
    def nbytes(self) -> int:
        """Memory of the tables."""
        return self.engine.tables.nbytes

    @property
    def n_tables(self) -> int:
        """Look-ups per row and output."""
        return self.engine.tables.n_tables

    def __repr__(self) -> str:
        n_rest = self.engine.rest.n_terms
        rest = f" + {n_rest} terms by the closed form" if n_rest else ""
        return f"Tables({self.n_tables} tables, {self.nbytes / 1e6:.1f} MB{rest}, {self.n_players} players)"

    def describe(self) -> EngineInfo:
        """Facts about the tables: terms, sizes, background."""
        return self.engine.info

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
        return Tables(self.engine.to(device, precision, memory), self.single)

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
        out = self.engine.shap_values(check_bits(X, self.engine.terms.n_bits), n_jobs)
        return out[:, :, 0] if self.single else out

    def shap_interaction_values(
        self, X: ArrayLike, *, pairs: Any = None, n_jobs: int = -1
    ) -> NDArray[np.float64]:
        """Interactions of pairs of players; see `fouriershap.Explainer.shap_interaction_values`.

        Players have their numbers for names.
        """
        bits = check_bits(X, self.engine.terms.n_bits)
        names = tuple(map(str, range(self.n_players)))
        if pairs is None:
            out = interaction_matrices(self.engine, bits, n_jobs)
        else:
            out = pair_interactions(self.engine, bits, find_pairs(pairs, names), n_jobs)
        return out[..., 0] if self.single else out

    def save(self, path: str | os.PathLike[str], *, interactions: bool = False) -> None:
        """Write to a .fshap file (see `fouriershap.load`).

        Parameters
        ----------
        interactions : bool
            Whether what interactions need goes into the file: the background.
        """
        arrays, header = self.engine.to_contents(interactions)
        files.write(path, KIND, arrays, header | {"single": self.single})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tables:
        """Read a .fshap file that `save` wrote; the tables stay memory-mapped."""
        return files.load(path, KIND, cls.from_contents)

    @classmethod
    def from_contents(cls, contents: files.Contents) -> Tables:
        """What a file holds, as `save` wrote it."""
        engine = SpectrumEngine.from_contents(contents.arrays, contents.header)
        single = take(contents.header, "single", bool)
        require(engine.n_outputs == 1 or not single, "it has several outputs, and says that it has one")
        return cls(engine, single)
