"""Truncated and flipped model files of every library: an error of ours, or a model that can be used; never a crash."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fouriershap as fs
from cli_files import model_and_rows, save_model
from onnx_models import random_ensemble

NAMES = ("lightgbm.txt", "xgboost.json", "xgboost.ubj", "catboost.cbm", "catboost.json", "trees.onnx")
N_FLIPS, N_CUTS = 60, 25


def whole_file(folder: Path, name: str) -> bytes:
    if name == "trees.onnx":
        return bytes(random_ensemble(n_trees=3, n_classes=3).SerializeToString())
    model, _ = model_and_rows(name)
    save_model(model, folder / name)
    return (folder / name).read_bytes()


def damaged(whole: bytes, n_flips: int, n_cuts: int, seed: int = 0) -> Iterator[bytes]:
    rng = np.random.default_rng(seed)
    for cut in rng.integers(0, len(whole), n_cuts).tolist():
        yield whole[:cut]
    for place in rng.integers(0, len(whole), n_flips).tolist():
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        yield bytes(changed)


def try_file(path: Path) -> bool:
    """Whether the file is read; what is read must answer rows, with finite numbers or an error of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reading = fs.read_model(path)
            rows = np.zeros((3, reading.n_features))
            rows[1], rows[2] = 1.0, np.nan
            explainer = fs.TreeExplainer(path, rows, check=False)
            explainer.shap_values(rows)
        except fs.FourierShapError as error:
            assert len(str(error)) < 2000
            return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files(tmp_path: Path, name: str) -> None:
    whole, path = whole_file(tmp_path, name), tmp_path / f"damaged{Path(name).suffix}"
    # CatBoost itself opens a .cbm file, and crashes on some that are flipped.
    for data in damaged(whole, 0 if name.endswith(".cbm") else N_FLIPS, N_CUTS):
        path.write_bytes(data)
        is_read = try_file(path)
        assert not is_read or len(data) == len(whole), (
            f"{name} cut to {len(data)} of {len(whole)} bytes is read"
        )
