"""`SpectrumExplainer`: the front door for functions on bits that are spectra already."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base import files
from fouriershap._base.bits import check_bits
from fouriershap._base.errors import FileFormatError, InputError
from fouriershap._base.parallel import count_jobs
from fouriershap._explainers.base import Explainer
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import check_columns, column_names, densified, unmask
from fouriershap._rows.groups import check_groups
from fouriershap._shapley import Tables
from fouriershap._shapley import compile as compile_tables
from fouriershap._shapley.jax import VERSIONS, prepare
from fouriershap._shapley.pairs import PairEngine

if TYPE_CHECKING:
    from fouriershap._shapley.jax.prepared import Prepared

KIND = "spectrum explainer"
_METHODS = ("tables", *VERSIONS)


class SpectrumExplainer(Explainer):
    """Exact SHAP values of a `Spectrum`: `compile` and its `Tables` behind the interface of every explainer.

    Parameters
    ----------
    spectrum : Spectrum
    background : array or data frame, shape (n_background, n_bits)
        Rows of 0 and 1 that stand for "feature unknown".
    feature_names : sequence of str, optional
        By default those of the background, else "Feature 0", ...
    groups : mapping or sequence, optional
        Bits that act as one player: ``{"name": [columns]}`` or one group name per column.
    weights, memory, index, device, precision
        As in `fouriershap.compile`.
    method : {"tables", "base", "precompute", "sparse", "positional"}
        Look-up tables, or one of the paper's versions in JAX. Interactions and files use tables in any case.
    n_jobs : int, optional
        Threads; None for every core.

    Attributes
    ----------
    tables : Tables
        Stage 2, compiled.

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

    def __init__(
        self,
        spectrum: Spectrum,
        background: Any,
        *,
        feature_names: ArrayLike | None = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        memory: int | float | None = None,
        index: str = "shapley",
        method: str = "tables",
        device: str = "cpu",
        precision: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if not isinstance(spectrum, Spectrum):
            raise InputError(f"spectrum is a {type(spectrum).__name__}; give a Spectrum.")
        if method not in _METHODS:
            raise InputError(f"method is {method!r}; choose one of {', '.join(map(repr, _METHODS))}.")
        if method != "tables" and index != "shapley":
            raise InputError(f"method={method!r} has no index {index!r}; use method='tables'.")
        count_jobs(n_jobs)
        background = densified(unmask(background))
        names = _names(feature_names, background, spectrum.n_bits)
        player, player_names = check_groups(groups, names)
        options: dict[str, Any] = {"players": player, "weights": weights, "memory": memory}
        version = None
        if method != "tables":
            version = prepare(spectrum, background, method=method, precision=precision, **options)
            device, precision = "cpu", None  # of the tables, which explain nothing here
        tables = compile_tables(
            spectrum, background, index=index, device=device, precision=precision, **options
        )
        self._set(tables, player, names, player_names, n_jobs, version)

    def _set(
        self,
        tables: Tables,
        player: NDArray[np.int32],
        names: tuple[str, ...],
        player_names: tuple[str, ...],
        n_jobs: int | None,
        version: Prepared | None = None,
    ) -> None:
        self.tables, self._player, self._version = tables, player, version
        self.feature_names, self.player_names, self.n_jobs = names, player_names, n_jobs

    def __repr__(self) -> str:
        return f"SpectrumExplainer({self.tables!r})"

    @property
    def _expected(self) -> NDArray[np.float64]:
        return np.atleast_1d(np.asarray(self.tables.expected_value))

    @property
    def _column_player(self) -> NDArray[np.int32]:
        return self._player

    def _explain(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        check_columns(X, self.feature_names, "X")
        rows = densified(X)
        if self._version is not None:
            values = self._version.shap_values(rows)
        else:
            values = self.tables.shap_values(rows, n_jobs=n_jobs)
        return values.reshape(len(values), len(self.player_names), -1)

    def _pairs(self, X: Any) -> tuple[Callable[[NDArray[np.int64] | None], PairEngine], NDArray[Any]]:
        check_columns(X, self.feature_names, "X")
        return self.tables.interactions, check_bits(densified(X), len(self.feature_names))

    def save(self, path: str | os.PathLike[str], *, interactions: bool = False) -> None:
        """Write everything that explaining needs to a .fshap file (see `fouriershap.load`).

        Parameters
        ----------
        interactions : bool
            Whether what interactions need goes into the file: the background.
        """
        arrays, header = self.tables._to_contents(interactions)
        header |= {"feature_names": self.feature_names, "player_names": self.player_names}
        files.write(path, KIND, arrays | {"player": self._player}, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SpectrumExplainer:
        """Read a .fshap file that `save` wrote; the tables stay memory-mapped."""
        return files.load(path, KIND, cls._from_contents)

    @classmethod
    def _from_contents(cls, contents: files.Contents) -> SpectrumExplainer:
        explainer = cls.__new__(cls)
        tables, player = Tables._from_contents(contents), contents.arrays["player"]
        names, players = (tuple(contents.header[key]) for key in ("feature_names", "player_names"))
        fits = len(names) == len(player) == contents.header["n_bits"] and len(players) == tables.n_players
        if not fits or player.dtype != np.int32 or not ((player >= 0) & (player < len(players))).all():
            raise FileFormatError("names and players of the spectrum explainer do not fit its tables.")
        explainer._set(tables, player, names, players, None)
        return explainer


def _names(given: ArrayLike | None, background: Any, n_bits: int) -> tuple[str, ...]:
    found = tuple(map(str, np.asarray(given).reshape(-1))) if given is not None else column_names(background)
    names = found or tuple(f"Feature {i}" for i in range(n_bits))
    if len(names) != n_bits:
        what = "feature_names" if given is not None else "background"
        raise InputError(f"{what} has {len(names)} columns, but the spectrum has {n_bits} bits.")
    return names
