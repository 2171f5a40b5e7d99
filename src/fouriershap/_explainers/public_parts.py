"""The public parts of an explainer, and the analyses and the report that use them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._rows.frames import Rows


class Inputs:
    """How an explainer reads rows."""

    def __init__(self, explainer: Any) -> None:
        self._explainer = explainer

    @property
    def code_players(self) -> NDArray[np.int32]:
        """The player of each column of codes."""
        found: NDArray[np.int32] = self._explainer._code_players()
        return found

    def encode(self, X: Any, name: str = "X") -> Rows:
        """Return the rows as the engine takes them."""
        found: Rows = self._explainer._read(X, name)
        return found


class PublicParts:
    """The parts `inputs` and `engine`, analyses and the report."""

    @property
    def inputs(self) -> Inputs:
        """How rows are read."""
        return Inputs(self)

    @property
    def engine(self) -> Any:
        """The engine."""
        return self._engine  # type: ignore[attr-defined]

    @property
    def model_name(self) -> str | None:
        """The class of the model with its module, where it is known."""
        return self._given  # type: ignore[attr-defined, no-any-return]

    def drift(self, X_new: Any, **options: Any) -> Any:
        """Split the change of the mean prediction over players; see `fouriershap.analysis.drift.drift`."""
        from fouriershap.analysis.drift import drift

        return drift(self, X_new, **options)  # type: ignore[arg-type]

    def importance(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Measure which players matter; see `fouriershap.analysis.importance.importance`."""
        from fouriershap.analysis.importance import importance

        return importance(self, X, y, **options)  # type: ignore[arg-type]

    def cohorts(self, X: Any, by: Any = None, **options: Any) -> Any:
        """Compare groups of rows; see `fouriershap.analysis.cohorts.cohorts`."""
        from fouriershap.analysis.cohorts import cohorts

        return cohorts(self, X, by, **options)  # type: ignore[arg-type]

    def interactions(self, X: Any, order: int = 3, **options: Any) -> Any:
        """Compute interactions of sets of players; see `fouriershap.analysis.interactions.interactions`."""
        from fouriershap.analysis.interactions import interactions

        return interactions(self, X, order, **options)  # type: ignore[arg-type]

    def reasons(self, X: Any, top_k: int = 4, **options: Any) -> Any:
        """List the main reasons of each row; see `fouriershap.analysis.reasons.reasons`."""
        from fouriershap.analysis.reasons import reasons

        return reasons(self, X, top_k, **options)  # type: ignore[arg-type]

    def report(self, X: Any, path: Any, y: Any = None, **options: Any) -> Any:
        """Write a report page; see `fouriershap.report.write_report`."""
        from fouriershap.report import write_report

        return write_report(self, X, path, y, **options)  # type: ignore[arg-type]
