"""Jobs that explain nothing: the key and as many numbers as an answer has, which are there already.

What they take is what an engine takes to read the rows, to hand them to Python and back, and to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from scale_cells.inputs import NAMES

COLUMNS = [*NAMES, "base_value"]


@cache
def _lines(n_rows: int) -> Any:
    """(columns, n_rows) of random numbers, which compress as badly as SHAP values do; the base value is one number."""
    numbers = np.random.default_rng(0).standard_normal((len(COLUMNS), n_rows))
    numbers[-1] = 0.5
    return numbers


def dask(ddf: Any) -> Any:
    """The null job of a Dask data frame."""
    return ddf.map_partitions(_frame, meta=_frame(ddf._meta), transform_divisions=False)


def _frame(part: Any) -> Any:
    import pandas as pd

    made = pd.DataFrame(_lines(len(part)).T, index=part.index, columns=COLUMNS, copy=False)
    return pd.concat([part[["key"]], made], axis=1)


def spark(df: Any) -> Any:
    """The null job of a Spark data frame."""
    from pyspark.sql import types

    added = [types.StructField(name, types.DoubleType()) for name in COLUMNS]
    return df.mapInArrow(_batches, types.StructType([df.schema["key"], *added]))


def _batches(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        lines = _lines(batch.num_rows)
        yield pa.RecordBatch.from_arrays(
            [batch.column("key"), *map(pa.array, lines)], names=["key", *COLUMNS]
        )
