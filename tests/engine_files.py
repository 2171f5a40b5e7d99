"""Parquet files of rows for the tests of `explain_files`, and what is to come of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from engines import make_explainer


def write_rows(folder: Path, sizes: tuple[int, ...], group_rows: int) -> tuple[Any, pd.DataFrame]:
    """Files of some rows each, with a key beside the features; the explainer, and all rows in order."""
    explainer, X = make_explainer("several outputs")
    rng = np.random.default_rng(0)
    rows = X.iloc[rng.integers(0, len(X), sum(sizes))].reset_index(drop=True)
    rows = rows.assign(key=2**60 + np.arange(len(rows)))
    folder.mkdir()
    first = 0
    for number, size in enumerate(sizes):
        table = pa.Table.from_pandas(rows[first : first + size], preserve_index=False)
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=group_rows)
        first += size
    return explainer, rows


def answer_of(folder: Path) -> pd.DataFrame:
    return pd.concat([pq.read_table(path).to_pandas() for path in sorted(folder.glob("*.parquet"))])


def check_answer(found: pd.DataFrame, explainer: Any, rows: pd.DataFrame, **options: Any) -> None:
    expected = next(explainer.explain_batches([rows], ids=["key"], **options))
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected, rtol=1e-12)
