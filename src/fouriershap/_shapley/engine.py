"""`Engine`: a representation against one background. Everything that explains implements this page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import AdditivityError, InputError
from fouriershap._base.html import facts_table
from fouriershap._base.messages import truncated_repr
from fouriershap._shapley.indices import Index, InteractionIndex
from fouriershap._shapley.outputs.kinds import LOSSES, Output
from fouriershap._shapley.sets import InteractionEngine, Keys, RecodedInteractions

Floats = NDArray[np.float64]
Contents = tuple[dict[str, NDArray[Any]], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class BackgroundRows:
    """Rows that stand for "feature unknown", as an engine takes rows; ``weights`` None for equal ones."""

    rows: NDArray[Any]
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.rows)


class FidelityReport(Protocol):
    """How well a fitted representation stands for a function: R^2 with its 95 % interval."""

    @property
    def r2(self) -> float: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...

    @property
    def exact(self) -> bool: ...


class Estimates(NamedTuple):
    """SHAP values and their standard errors, (n_rows, n_players, n_outputs); None where errors are unknown."""

    values: Floats
    errors: Floats | None


@dataclass(frozen=True)
class DependenceReport:
    """Which model of the features' dependence conditional values use, and how well candidates describe held-out rows.

    Attributes
    ----------
    name : {"gaussian", "copula", "mixture", "data"}
    losses : dict of str to float
        Mean over held-out rows and coalitions of (f(x) - v(S))^2, by candidate, where some were compared: the smaller,
        the nearer v is to the mean output given the features of S.
    independent : float, optional
        The same where unknown features are drawn independently of known ones, as for interventional values.
    """

    name: str
    losses: dict[str, float] = field(default_factory=dict)
    independent: float | None = None

    @property
    def is_learned(self) -> bool:
        """Whether conditional means are learned from rows, with errors that are unknown."""
        return self.name == "data"


class Quality:
    """How close values are to the SHAP values of what is explained.

    Attributes
    ----------
    tolerance : float
        Largest standard error that values are sampled to, as a share of the row's largest value; 0 where nothing is.
    background_error : float
        Share of the square sum of the values that is missed because a few products stand for the background.
    fidelity : FidelityReport, optional
        How well a fitted representation stands for the output, which is fitted now if it was not yet; None where
        nothing is fitted.
    is_rescaled : bool
        Whether values are those of the raw output, times slopes of what is explained, and not its SHAP values.
    dependence : DependenceReport, optional
        Which dependence conditional values follow; they are exact, or within their errors, under this model.
    """

    def __init__(
        self,
        background_error: float = 0.0,
        fidelity: Callable[[], FidelityReport] | None = None,
        is_rescaled: bool = False,
        tolerance: float = 0.0,
        dependence: DependenceReport | None = None,
    ) -> None:
        self.background_error, self._fidelity, self.dependence = background_error, fidelity, dependence
        self.is_rescaled, self.tolerance = is_rescaled, tolerance

    def __repr__(self) -> str:
        if self.is_exact:
            return f"Quality(exact{' rescaled values' if self.is_rescaled else ''})"
        facts = {
            "tolerance": self.tolerance,
            "background_error": self.background_error,
            "fidelity": self.fidelity,
            "dependence": self.dependence,
        }
        return f"Quality({', '.join(f'{name}={fact}' for name, fact in facts.items() if fact)})"

    @property
    def fidelity(self) -> FidelityReport | None:
        return None if self._fidelity is None else self._fidelity()

    @property
    def is_exact(self) -> bool:
        """Whether nothing is approximated."""
        is_learned = self.dependence is not None and self.dependence.is_learned
        return self.background_error == 0 == self.tolerance and self._fidelity is None and not is_learned


@dataclass(frozen=True, eq=False)
class EngineInfo:
    """Facts about an engine, for people.

    Attributes
    ----------
    kind : {"trees", "spectrum", "products", "sum", "black box"}
    n_background : int or None
        None where there is no background, or its size is unknown.
    is_path_dependent : bool
        Whether values are relative to the training rows in the trees.
    is_conditional : bool
        Whether unknown features follow known ones.
    is_causal : bool
        Whether they follow them as effects follow causes.
    model : str
        Library and class of the model, "" where unknown.
    n_trees, n_leaves, n_terms : int
    n_tables, table_bytes : int
        Look-up tables that are built.
    n_without_table : int
        Trees or terms that have none.
    degrees : (n_trees,) or (n_terms,) int64, optional
        Most features on a path of each tree, players of each term of a spectrum.
    term_energy : (n_terms,) float64, optional
        Squared coefficients of a spectrum, summed over outputs.
    strategy : str
        How products are explained, see `ProductPlan`.
    n_components : int
        Products that stand for the background.
    n_queries : int
        Rows that the model itself was asked about so far.
    background_error, expansion_error : float
        See `Quality`; and the largest error of the sines that stand for ridges.
    parts : tuple of EngineInfo
        Of a sum.
    values : str
        "Owen values" or "asymmetric values"; "" where every order of players counts.
    """

    kind: str
    n_background: int | None
    is_path_dependent: bool = False
    is_conditional: bool = False
    is_causal: bool = False
    model: str = ""
    n_trees: int = 0
    n_leaves: int = 0
    n_terms: int = 0
    n_tables: int = 0
    table_bytes: int = 0
    n_without_table: int = 0
    degrees: NDArray[np.int64] | None = None
    term_energy: Floats | None = None
    strategy: str = ""
    n_components: int = 0
    n_queries: int = 0
    background_error: float = 0.0
    expansion_error: float = 0.0
    parts: tuple[EngineInfo, ...] = ()
    values: str = ""

    @property
    def which_values(self) -> str:
        """Return "conditional asymmetric values" and the like; "" for interventional Shapley values."""
        if not self.is_conditional:
            return self.values
        return f"{'causal' if self.is_causal else 'conditional'} {self.values or 'values'}"

    @property
    def degree_energy(self) -> Floats:
        """Energy of the terms of a spectrum by degree."""
        if self.degrees is None or self.term_energy is None:
            return np.zeros(0)
        return np.bincount(self.degrees, self.term_energy, minlength=1).astype(np.float64)


@dataclass(frozen=True)
class Plan:
    """How rows would be explained, and why.

    Attributes
    ----------
    strategy : str
        "tables", "stream", "walk", "direct", "additive", "pairs", "subsets", "mixture", "definition" or "sampled";
        several with "+" between, where parts are explained differently.
    reason : str
    seconds : float
        Estimate for these rows, on one core; NaN for any number of rows, or where it is unknown.
    """

    strategy: str
    reason: str
    seconds: float = field(default=math.nan, kw_only=True, compare=False)  # NaN is unlike itself

    def _repr_html_(self) -> str:
        """Return what notebooks show: numbers that are not known are left out."""
        told = {name.replace("_", " "): text for name, value in vars(self).items() if (text := _told(value))}
        return facts_table("Plan", told)


def _told(value: Any) -> str:
    if isinstance(value, Plan):
        return f"{value.strategy}: {value.reason}"
    if isinstance(value, tuple):
        return "; ".join(map(_told, value))
    if isinstance(value, str):
        return value
    if not np.isfinite(value) or not value:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


class PageLookup(Protocol):
    """Arrays from which a report page explains a row that its reader changes."""

    @property
    def nbytes(self) -> int: ...

    def header(self) -> dict[str, Any]:
        """Return single numbers, by name."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays, by name."""

    def rounded(self, n_bits: int) -> PageLookup | None:
        """Return the same in less space, with entries of ``n_bits`` bits; None where that is impossible."""

    def shap_values(self, rows: NDArray[Any]) -> Floats:
        """Return what the page computes for rows, (n_rows, n_players, n_outputs), where it can be `rounded`."""


class Engine(Protocol):
    """SHAP values of rows, exact for the representation.

    Rows are what the representation takes: numbers cleaned for trees, bits for a spectrum, level codes for what was
    fitted to a black box, and a `Pool` of the caller's own rows for a model that is asked itself. What is built is
    frozen; a `BuildPolicy` decides when.

    Attributes
    ----------
    n_players, n_outputs : int
    index : Index
    output : Output
        What is explained.
    expected : (n_outputs,) float64
        Mean output over the background; (n_rows, n_outputs) where it depends on labels.
    device : {"cpu", "jax"}
    representation : object
        The model as plain arrays.
    background : BackgroundRows or None
        None for path-dependent values, and where a file did not keep it.
    quality : Quality
    info : EngineInfo
    adds_up : bool
        Whether values and expected value add up to `predict`.
    raw : Engine
        The engine of the raw output: itself, unless a function of that is explained.
    """

    @property
    def n_players(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def index(self) -> Index: ...

    @property
    def output(self) -> Output: ...

    @property
    def expected(self) -> Floats: ...

    @property
    def device(self) -> str: ...

    @property
    def representation(self) -> object: ...

    @property
    def background(self) -> BackgroundRows | None: ...

    @property
    def quality(self) -> Quality: ...

    @property
    def info(self) -> EngineInfo: ...

    @property
    def adds_up(self) -> bool: ...

    @property
    def raw(self) -> Engine: ...

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        """Return values (n_rows, n_players, n_outputs).

        ``outputs`` (n_rows, n_outputs), where given, is filled with the predictions of the rows: each row is encoded
        once for both.
        """

    def estimate(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Estimates:
        """Return values as `shap_values` does, with their standard errors."""

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        """Return the output of the representation for rows, (n_rows, n_outputs)."""

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        """Return what computes interactions of sets of ``min_order`` to ``order`` players.

        ``wanted``: keys of the sets (`set_keys`), None for all that occur.
        """

    def partial_means(self, rows: NDArray[Any], sets: Sequence[tuple[int, ...]], n_jobs: int = -1) -> Floats:
        """Return the mean output over the background where the players of a set come from a row.

        (n_rows, n_sets, n_outputs), for sets of one or two players.
        """

    def labelled(self, y: ArrayLike | None, n_rows: int) -> Engine:
        """Return the engine for rows with these labels: itself, where the output needs none and none are given."""

    def lookups(self, budget: int) -> list[PageLookup] | str:
        """Return the look-ups of a report page, whose values add up, or the reason why there are none.

        Tables that would exceed ``budget`` bytes by far are not built.
        """

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        """Return the same representation against other rows."""

    def to(self, device: str) -> Engine:
        """Return the same, explaining by the native kernels ("cpu") or under XLA ("jax")."""

    def build(self, n_jobs: int = -1) -> None:
        """Build now what pays for any number of rows, if it is not built yet."""

    def plan(self, n_rows: int | None) -> Plan:
        """Return how ``n_rows`` rows would be explained now, and why; None for any number."""

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        """Return named arrays and a header for a file.

        ``interactions``: with what interactions need. ``background``: with the background rows in any case.
        """


class BaseEngine:
    """Defaults of engines (see `Engine`)."""

    @property
    def adds_up(self: Engine) -> bool:
        return self.index.adds_up

    @property
    def quality(self) -> Quality:
        return Quality()

    @property
    def raw(self) -> Self:
        return self

    def estimate(
        self: Engine, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None
    ) -> Estimates:
        """Return values, which have no errors, or errors that are unknown."""
        values = self.shap_values(rows, n_jobs, outputs)
        return Estimates(values, np.zeros_like(values) if self.quality.is_exact else None)

    def build(self, n_jobs: int = -1) -> None:
        """Build nothing: everything is there from the beginning."""

    def labelled(self: Engine, y: ArrayLike | None, n_rows: int) -> Engine:
        del n_rows
        if y is not None:
            raise InputError(
                f"y was given, but output={truncated_repr(self.output.name)} needs no labels; leave y out, or use "
                f"output={' or '.join(map(truncated_repr, LOSSES))}."
            )
        return self

    def are_own_pairs(self: Engine, index: InteractionIndex, order: int, min_order: int) -> bool:
        """Return whether pairs alone are asked for, by the same average as the values."""
        return min_order == order == 2 and index is self.index.interaction


@dataclass(frozen=True, eq=False)
class WrappingEngine(BaseEngine):
    """An engine that asks another one (see `Engine`), of rows that may be encoded first."""

    inner: Engine

    def encode(self, rows: NDArray[Any], name: str = "X") -> NDArray[Any]:
        """Return rows in the form that the inner engine expects."""
        del name
        return rows

    @property
    def n_players(self) -> int:
        return self.inner.n_players

    @property
    def n_outputs(self) -> int:
        return self.inner.n_outputs

    @property
    def index(self) -> Index:
        return self.inner.index

    @property
    def output(self) -> Output:
        return self.inner.output

    @property
    def expected(self) -> Floats:
        return self.inner.expected

    @property
    def device(self) -> str:
        return self.inner.device

    @property
    def representation(self) -> object:
        return self.inner.representation

    @property
    def background(self) -> BackgroundRows | None:
        return self.inner.background

    @property
    def quality(self) -> Quality:
        return self.inner.quality

    @property
    def info(self) -> EngineInfo:
        return self.inner.info

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        return self.inner.shap_values(self.encode(rows), n_jobs, outputs)

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        return self.inner.predict(self.encode(rows), n_jobs)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        return RecodedInteractions(self.inner.interactions(index, order, wanted, min_order), self.encode)

    def partial_means(self, rows: NDArray[Any], sets: Sequence[tuple[int, ...]], n_jobs: int = -1) -> Floats:
        return self.inner.partial_means(self.encode(rows), sets, n_jobs)

    def lookups(self, budget: int) -> list[PageLookup] | str:
        return self.inner.lookups(budget)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        return replace(self, inner=self.inner.with_background(self.encode(rows, "background"), weights))

    def to(self, device: str) -> Engine:
        return replace(self, inner=self.inner.to(device))

    def build(self, n_jobs: int = -1) -> None:
        self.inner.build(n_jobs)

    def plan(self, n_rows: int | None) -> Plan:
        return self.inner.plan(n_rows)

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        return self.inner.to_contents(interactions, background)


def check_additivity(
    values: Floats, expected: Floats, prediction: Floats, tolerance: float, checked: bool = False
) -> None:
    """Raise `AdditivityError` unless values (n_rows, n_players, n_outputs) add up to predictions (n_rows, n_outputs).

    ``expected``: (n_outputs,), or (n_rows, n_outputs) where it differs between rows. ``checked``: whether our copy of
    the model was compared with the model itself.
    """
    if not len(values):
        return
    gap = np.abs(values.sum(axis=1) + expected - prediction)
    scale = max(float(np.abs(prediction - expected).max()), float(np.abs(prediction).max()), 1e-300)
    if np.isfinite(gap).all() and gap.max() <= tolerance * scale:
        return
    row, output = np.unravel_index(np.where(np.isfinite(gap), gap, np.inf).argmax(), gap.shape)
    total = values[row, :, output].sum() + np.broadcast_to(expected, gap.shape)[row, output]
    copy = "fouriershap's copy of the model" + (", which agreed with the model itself," if checked else "")
    raise AdditivityError(
        f"the SHAP values of row {row} (output {output}) add up to {float(total)}, but {copy} gives "
        f"{float(prediction[row, output])}: a difference of {gap[row, output]:.3g}, more than tolerance = "
        f"{tolerance:g} of the scale {scale:.3g}. Likely causes: leaf values of very different size (use "
        "precision='double'), values that are not finite, or a bug: please report it. "
        "check_additivity=False skips this check."
    )
