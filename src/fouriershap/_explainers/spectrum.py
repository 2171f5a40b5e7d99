"""`SpectrumExplainer`: the front door for functions on bits that are spectra already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.bits import check_bits
from fouriershap._base.checks import check_choice, numbered
from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import require, take
from fouriershap._base.parallel import count_jobs
from fouriershap._base.short import short
from fouriershap._explainers.base import Explainer
from fouriershap._explainers.calling import in_shap_words
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.frames import Rows, check_columns, column_names, densified, in_order, unmask
from fouriershap._rows.players import check_groups
from fouriershap._shapley.jax import VERSIONS, prepare
from fouriershap._shapley.spectrum.compile import compile as compile_tables
from fouriershap._shapley.spectrum.engine import SpectrumEngine
from fouriershap._shapley.spectrum.tables import Tables
from fouriershap._shapley.verify import verify_owners, verify_players

if TYPE_CHECKING:
    from fouriershap._shapley.jax.prepared import Prepared

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

    _kind = "spectrum explainer"
    _engine: SpectrumEngine

    @in_shap_words
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
        check_choice("method", method, _METHODS)
        if method != "tables" and index != "shapley":
            raise InputError(f"method={short(method)} has no index {short(index)}; use method='tables'.")
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
        self._set(tables.engine, player, names, player_names, n_jobs, version)

    def _set(
        self,
        engine: SpectrumEngine,
        player: NDArray[np.int32],
        names: tuple[str, ...],
        player_names: tuple[str, ...],
        n_jobs: int | None,
        version: Prepared | None = None,
    ) -> None:
        self._engine, self._player, self._version = engine, player, version
        self.feature_names, self.player_names, self.n_jobs = names, player_names, n_jobs

    @property
    def tables(self) -> Tables:
        return Tables(self._engine, self._engine.n_outputs == 1)

    def __repr__(self) -> str:
        return f"SpectrumExplainer({self.tables!r})"

    def _code_players(self) -> NDArray[np.int32]:
        return self._player

    def _read(self, X: Any, name: str = "X") -> Rows:
        X = in_order(X, self.feature_names)
        check_columns(X, self.feature_names, name)
        rows = densified(X)
        return Rows(
            check_bits(rows, len(self.feature_names), name=name), rows, self._player, self.feature_names
        )

    def _explain(self, rows: Rows, n_jobs: int | None) -> NDArray[np.float64]:
        if self._version is None:
            return super()._explain(rows, n_jobs)
        return self._version.shap_values(rows.codes).reshape(len(rows), len(self.player_names), -1)

    def _with_engine(self, engine: Any) -> SpectrumExplainer:
        if self._version is not None:
            raise InputError(
                "this explainer has one of the paper's JAX versions, which is laid out for one background and device. "
                "Make another, or use method='tables'."
            )
        return super()._with_engine(engine)

    def _header(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return {"player": self._player}, {"single": self._engine.n_outputs == 1}

    @classmethod
    def _from_contents(cls, contents: Contents) -> SpectrumExplainer:
        explainer, header, player = cls.__new__(cls), contents.header, contents.arrays["player"]
        engine = SpectrumEngine.from_contents(contents.arrays, header)
        names, players = (take(header, key, tuple[str, ...]) for key in ("feature_names", "player_names"))
        verify_players(player, engine.terms.n_bits)
        verify_owners(engine.terms, player)
        fits = len(names) == len(player) and len(players) == engine.n_players
        require(fits, "it has not as many names as bits and players")
        explainer._set(engine, player, names, players, None)
        return explainer


def _names(given: ArrayLike | None, background: Any, n_bits: int) -> tuple[str, ...]:
    found = tuple(map(str, np.asarray(given).reshape(-1))) if given is not None else column_names(background)
    names = found or numbered(n_bits)
    if len(names) != n_bits:
        what = "feature_names" if given is not None else "background"
        raise InputError(f"{what} has {len(names)} columns, but the spectrum has {n_bits} bits.")
    return names
