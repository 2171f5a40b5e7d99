"""Small trained models of every supported library, and what each library itself says is the raw output.

``CASES[library][name]()`` returns ``Case(model, X, name)``. Rows are rounded to one decimal, so that they tie
with thresholds; some values are missing where the library takes them.
"""

from __future__ import annotations

import os
from importlib import import_module

# Threads of OpenMP that wait by spinning make small fits slow where cores are shared.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from models.cases import CASES, XGBOOST_KEEPS_LABELS, Case, case, version_of
from models.data import (
    LABELS,
    N_ROWS,
    classes,
    coded,
    coded_target,
    counts,
    frame,
    frame_target,
    numbers,
    rows_of,
    target,
)
from models.raw import raw_output

__all__ = [
    "CASES",
    "LABELS",
    "N_ROWS",
    "XGBOOST_KEEPS_LABELS",
    "Case",
    "case",
    "classes",
    "coded",
    "coded_target",
    "counts",
    "frame",
    "frame_target",
    "numbers",
    "raw_output",
    "rows_of",
    "target",
    "version_of",
]

# These register their models; those of `format_models` are of libraries that may be missing.
for _module in (
    "models.of_sklearn",
    "models.of_xgboost",
    "models.of_lightgbm",
    "models.of_catboost",
    "format_models",
):
    import_module(_module)
