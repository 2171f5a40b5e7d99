"""Files for the tests of the command line: real models of every library, and their rows in every format."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.ipc

from models import CASES, XGBOOST_KEEPS_LABELS, frame, frame_target

MODELS = ("xgboost.json", "xgboost.ubj", "lightgbm.txt", "catboost.cbm", "catboost.json", "sklearn.skops")
PICKLES = ("sklearn.joblib", "sklearn.pkl")


def model_and_rows(name: str) -> tuple[Any, pd.DataFrame]:
    library = name.partition(".")[0]
    if library == "xgboost" and not XGBOOST_KEEPS_LABELS:
        return _without_labels()
    case = CASES[library]["HistGradientBoostingRegressor frame" if library == "sklearn" else "frame"]()
    return case.model, case.X


@cache
def _without_labels() -> tuple[Any, pd.DataFrame]:
    """Files hold labels, which a model of XGBoost must know to take them."""
    import xgboost

    X = frame(missing=True)
    numbers = X[["a", "b"]]
    return xgboost.XGBRegressor(n_estimators=8, max_depth=4, n_jobs=1).fit(numbers, frame_target(X)), numbers


def save_model(model: Any, path: Path) -> None:
    if path.name.startswith("lightgbm"):
        model.booster_.save_model(path)
    elif path.suffix == ".skops":
        import skops.io

        skops.io.dump(model, path)
    elif path.suffix == ".pkl":
        path.write_bytes(pickle.dumps(model))
    elif path.suffix == ".joblib":
        import joblib

        joblib.dump(model, path)
    else:
        model.save_model(str(path), **({"format": "json"} if path.name == "catboost.json" else {}))


def save_rows(X: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        X.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        X.to_parquet(path, index=False)
    elif path.suffix == ".feather":
        X.to_feather(path)
    else:
        table = pa.Table.from_pandas(X, preserve_index=False)
        make = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
        with make(path, table.schema) as writer:
            writer.write_table(table)
    return path


def read_answer(path: Path) -> pd.DataFrame:
    if path.suffix == ".csv":
        return pd.read_csv(path, dtype={"key": str})
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".arrows":
        return pa.ipc.open_stream(path.read_bytes()).read_all().to_pandas()
    return pa.ipc.open_file(path.read_bytes()).read_all().to_pandas()
