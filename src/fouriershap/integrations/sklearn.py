"""Partial dependence for scikit-learn's plots."""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriershap import PartialDependence
from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import find_position, import_optional

__all__ = ["partial_dependence_display"]


@check_arguments
def partial_dependence_display(found: PartialDependence, *, output: int | str = 0, **options: Any) -> Any:
    """Return scikit-learn's ``PartialDependenceDisplay`` of all curves; its ``plot()`` draws them.

    Parameters
    ----------
    found : PartialDependence
        What `Explainer.partial_dependence` returned.
    output : int or str
        Output to show, by position or name.
    **options
        Further arguments of ``PartialDependenceDisplay``, such as ``subsample`` and ``random_state``.
    """
    inspection = import_optional("sklearn.inspection", "a PartialDependenceDisplay", "scikit-learn")
    utils = import_optional("sklearn.utils", "a PartialDependenceDisplay", "scikit-learn")
    results: list[Any] = []
    deciles: dict[int, Any] = {}
    for curve in found.curves:
        parts = {"average": np.moveaxis(curve.values, -1, 0), "grid_values": list(curve.grid)}
        if curve.individual is not None:
            parts["individual"] = np.moveaxis(curve.individual, -1, 0)
        results.append(utils.Bunch(**parts))
        deciles |= {
            column: of for column, of in zip(curve.columns, curve.deciles, strict=True) if of is not None
        }
    given: dict[str, Any] = {
        "features": [curve.columns for curve in found.curves],
        "feature_names": list(found.column_names),
        "target_idx": find_position(output, found.outputs, "output"),
        "deciles": deciles,
        "kind": ["average" if curve.individual is None else "both" for curve in found.curves],
        "is_categorical": [tuple(each.dtype.kind != "f" for each in curve.grid) for curve in found.curves],
    }
    return inspection.PartialDependenceDisplay(results, **given | options)
