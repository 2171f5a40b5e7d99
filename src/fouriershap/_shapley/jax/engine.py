"""`VersionEngine`: a spectrum explained by one of the paper's JAX versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._shapley.engine import Floats, WrappingEngine
from fouriershap._shapley.jax.versions import Prepared


@dataclass(frozen=True, eq=False)
class VersionEngine(WrappingEngine):
    """Values by a version in JAX (see `Engine`); interactions, files and report pages are those of ``inner``."""

    version: Prepared

    @property
    def device(self) -> str:
        return "jax"

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return self.version.shap_values(rows)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> NoReturn:
        self.to("")

    def to(self, device: str) -> NoReturn:
        raise InputError(
            "the paper's JAX versions are laid out for one background and device. Make another explainer, or use "
            "strategy='tables'."
        )
