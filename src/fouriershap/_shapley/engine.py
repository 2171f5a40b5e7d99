"""`Engine`: a representation against one background. Everything that explains implements this page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import AdditivityError
from fouriershap._shapley.pairs import PairEngine

Floats = NDArray[np.float64]
Contents = tuple[dict[str, NDArray[Any]], dict[str, Any]]
T = TypeVar("T")
P = TypeVar("P", bound=PairEngine)


class Engine(Protocol):
    """SHAP values of rows, exactly with respect to the representation.

    Rows are what the representation takes: numbers cleaned for trees, bits for a spectrum, level codes for what was
    fitted to a black box. Nobody here sees a frame. What is built is frozen; when to build is a `Policy`'s business.

    Attributes
    ----------
    n_players, n_outputs : int
    index : {"shapley", "banzhaf"}
    expected : (n_outputs,) float64
        Mean output over the background.
    device : {"cpu", "jax"}
    """

    @property
    def n_players(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def index(self) -> str: ...

    @property
    def expected(self) -> Floats: ...

    @property
    def device(self) -> str: ...

    def shap_values(
        self, rows: NDArray[Any], n_jobs: int | None = None, outputs: Floats | None = None
    ) -> Floats:
        """Values (n_rows, n_players, n_outputs).

        Where ``outputs`` (n_rows, n_outputs) is given, it is filled with what the representation says of the rows:
        each row is encoded once for both.
        """

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> Floats:
        """What the representation says of rows, (n_rows, n_outputs)."""

    def pairs(self, wanted: NDArray[np.int64] | None) -> PairEngine:
        """What gives the interactions of the pairs with these keys, None for all."""

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        """The same representation against other rows."""

    def to(self, device: str) -> Engine:
        """The same, explaining by the native kernels ("cpu") or under XLA ("jax")."""

    def build(self, n_jobs: int | None = None) -> None:
        """Build now what pays for any number of rows, if it is not built yet."""

    def plan(self, n_rows: int | None) -> Any:
        """How so many rows would be explained now, and why; None for any number."""

    def describe(self) -> dict[str, Any]:
        """Facts for people: what `info` and the report page tell."""

    def to_contents(self, interactions: bool) -> Contents:
        """Named arrays and a header for a file."""


class Policy(Generic[T]):
    """When to build, and what was built: the one thing of an engine that changes, behind its only lock.

    ``built`` may be read without the lock, since it is set last and whole.
    """

    def __init__(self, built: T | None = None) -> None:
        self.built = built
        self._rows, self._seconds = 0, 0.0
        self._lock = threading.RLock()

    def build(self, make: Callable[[], T]) -> T:
        """What ``make`` builds, once."""
        with self._lock:
            if self.built is None:
                self.built = make()
            return self.built

    def rent(self, n_rows: int, seconds: float = 0.0) -> tuple[int, float]:
        """Note rows that are explained without, or seconds that it would have spared; all of both so far.

        Rent until renting has cost the price: never more than twice the best in hindsight.
        """
        with self._lock:
            self._rows += n_rows
            self._seconds += seconds
            return self._rows, self._seconds

    def __getstate__(self) -> dict[str, Any]:
        return {"built": self.built, "rent": (self._rows, self._seconds)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["built"])  # type: ignore[misc]
        self._rows, self._seconds = state["rent"]


class KeptPairs(Generic[P]):
    """The pair engine that was made last, kept until other pairs are wanted."""

    def __init__(self, pairs: P | None = None) -> None:
        self._kept: tuple[NDArray[np.int64] | None, P] | None = None if pairs is None else (None, pairs)
        self._lock = threading.RLock()

    def get(self, wanted: NDArray[np.int64] | None, make: Callable[[], P]) -> P:
        """The engine of the pairs with these keys, None for all."""
        with self._lock:
            if self._kept is not None:
                keys, pairs = self._kept
                if keys is None or (wanted is not None and bool(np.isin(wanted, keys).all())):
                    return pairs
            made = make()
            self._kept = (wanted, made)
            return made

    def __getstate__(self) -> dict[str, Any]:
        return {"_kept": self._kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self._kept = state["_kept"]


def check_additivity(
    values: Floats, expected: Floats, prediction: Floats, tolerance: float, checked: bool = False
) -> None:
    """Compare sums of SHAP values (n_rows, n_players, n_outputs) with outputs (n_rows, n_outputs) of our reading.

    ``expected``: (n_outputs,), or (n_rows, n_outputs) where it is not the same for all rows. ``checked``: whether the
    reading was compared with the model itself.
    """
    if not len(values):
        return
    gap = np.abs(values.sum(axis=1) + expected - prediction)
    scale = max(float(np.abs(prediction - expected).max()), float(np.abs(prediction).max()), 1e-300)
    if np.isfinite(gap).all() and gap.max() <= tolerance * scale:
        return
    row, output = np.unravel_index(np.where(np.isfinite(gap), gap, np.inf).argmax(), gap.shape)
    total = values[row, :, output].sum() + np.broadcast_to(expected, gap.shape)[row, output]
    reading = "our reading of the model" + (", which agreed with the model itself," if checked else "")
    raise AdditivityError(
        f"the SHAP values of row {row} (output {output}) add up to {float(total)}, but {reading} gives "
        f"{float(prediction[row, output])}: a difference of {gap[row, output]:.3g}, more than tolerance = "
        f"{tolerance:g} of the scale {scale:.3g}. Likely causes: leaf values of very different size (use "
        "precision='double'), values that are not finite, or a bug, which we would like to hear of. "
        "check_additivity=False skips this check."
    )
