"""`VersionEngine`: one of the paper's versions in JAX as an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._shapley.engine import Engine, Floats, WrappingEngine
from fouriershap._shapley.jax.prepared import Prepared


@dataclass(frozen=True, eq=False)
class VersionEngine(WrappingEngine):
    """SHAP values by a version in JAX (see `Engine`); ``inner`` is the engine of tables, for everything else."""

    version: Prepared

    @property
    def device(self) -> str:
        return "jax"

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        del n_jobs  # XLA has threads of its own
        if outputs is not None:
            outputs[:] = self.predict(rows)
        return self.version.shap_values(rows).reshape(len(rows), self.n_players, -1)

    def to(self, device: str) -> Engine:
        raise _fixed()

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        raise _fixed()


def _fixed() -> InputError:
    return InputError(
        "this explainer uses one of the paper's JAX versions, which is laid out for one background and device. Make "
        "another explainer, or use strategy='tables'."
    )
