"""The file of rows, and the compiled explainer that all engines open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fouriershap as fs
from _data import N_FEATURES, REGRESSION

BACKGROUND_ROWS = 100_000
GROUP_ROWS = 100_000  # rows of a row group: what engines share out
NAMES = [f"x{i}" for i in range(N_FEATURES)]
MODEL = "XGBoost, 100 trees, depth 6"
DATA = f"Rows: {REGRESSION}; float32, and a 64-bit key"


def write_explainer(path: Path) -> None:
    """Compile the model against 10^5 background rows, under names."""
    from tree_cells import models

    model = models.model("xgboost")
    fs.TreeExplainer(model, models.background(BACKGROUND_ROWS), feature_names=NAMES).save(path)


def write_rows(path: Path, n_rows: int) -> None:
    """A parquet file, uncompressed (random numbers do not compress), a row group at a time."""
    fields = [pa.field("key", pa.int64()), *(pa.field(name, pa.float32()) for name in NAMES)]
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, pa.schema(fields), compression="none", use_dictionary=False) as writer:
        for first in range(0, n_rows, GROUP_ROWS):
            n = min(GROUP_ROWS, n_rows - first)
            rows = rng.random((n, N_FEATURES), dtype=np.float32)
            columns = [pa.array(np.arange(first, first + n)), *(pa.array(column) for column in rows.T)]
            writer.write_table(
                pa.Table.from_arrays(columns, schema=pa.schema(fields)), row_group_size=GROUP_ROWS
            )
