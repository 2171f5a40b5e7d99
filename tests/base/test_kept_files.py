"""Files that version 0.1.0 wrote open, and say what they said then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs

FOLDER = Path(__file__).parents[1] / "data"
KINDS = {"trees": fs.TreeExplainer, "black_box": fs.BlackBoxExplainer, "tables": fs.spectra.Tables}


def rows_of(name: str, rows: Any) -> Any:
    if name == "tables":
        return np.array(rows)
    frame = pd.DataFrame(rows["data"], columns=rows["columns"])
    if name == "trees":
        frame[["colour", "size"]] = frame[["colour", "size"]].astype("category")
    return frame


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("saved_again", [False, True])
def test_they_say_what_they_said(tmp_path: Path, name: str, saved_again: bool) -> None:
    said = json.loads((FOLDER / "said.json").read_text())[name]
    loaded: Any = fs.load(FOLDER / f"{name}.fshap")
    if saved_again:
        loaded.save(tmp_path / "again.fshap", interactions=True)
        loaded = fs.load(tmp_path / "again.fshap")
    assert type(loaded) is KINDS[name]
    rows = rows_of(name, said["rows"])
    found = {
        "expected_value": loaded.expected_value,
        "values": loaded.shap_values(rows),
        "interactions": loaded.shap_interaction_values(rows),
    }
    for what, value in found.items():  # tables of single precision are added up in any order
        np.testing.assert_allclose(value, said[what], rtol=1e-6, atol=1e-6, err_msg=what)
        assert np.abs(value).max() > 0.01
