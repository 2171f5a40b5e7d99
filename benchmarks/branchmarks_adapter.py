"""fouriershap as an approach of TreeBranchMarks, the framework of WoodelfHD's authors.

Put a checkout of github.com/ron-wettenstein/TreeBranchMarks on PYTHONPATH. `branchmarks.py` runs it.
"""

from __future__ import annotations

import time
from typing import Any

from treebranchmarks.core.approach import Approach, ApproachOutput
from treebranchmarks.core.method import Method

import fouriershap as fs

OURS = Method(name="fouriershap", label="fouriershap", description="exact, tables, streaming or walking")


class FourierShapApproach(Approach):
    """All four tasks, from the model to the values, on one thread as the others."""

    name, method, description = "fouriershap", OURS, "fouriershap.TreeExplainer"

    def path_dependent_shap(self, trained_model: Any, X_explain: Any, X_background: Any) -> ApproachOutput:
        return _timed(trained_model, X_explain, None, pairs=False)

    def path_dependent_interactions(
        self, trained_model: Any, X_explain: Any, X_background: Any
    ) -> ApproachOutput:
        return _timed(trained_model, X_explain, None, pairs=True)

    def background_shap(self, trained_model: Any, X_explain: Any, X_background: Any) -> ApproachOutput:
        return _timed(trained_model, X_explain, X_background, pairs=False)

    def background_shap_interactions(
        self, trained_model: Any, X_explain: Any, X_background: Any
    ) -> ApproachOutput:
        return _timed(trained_model, X_explain, X_background, pairs=True)


def _timed(trained: Any, rows: Any, background: Any, pairs: bool) -> ApproachOutput:
    begin = time.perf_counter()
    explainer = fs.TreeExplainer(trained.raw_model, background, n_jobs=1)
    explainer.shap_interaction_values(rows) if pairs else explainer.shap_values(rows)
    return ApproachOutput(elapsed_s=time.perf_counter() - begin)
