"""The sessions in docs/command-line.md and docs/onnx.md are what happens."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onnx_models import save_network

DOCS = Path(__file__).parents[2] / "docs"


def test_the_session_shown_is_real(tmp_path: Path) -> None:
    follow(DOCS / "command-line.md", tmp_path, 6)


def test_the_session_of_a_network_is_real(tmp_path: Path) -> None:
    """PyTorch is not here: a network of the same shape, written node by node."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from sklearn.datasets import load_diabetes

    save_network(tmp_path / "network.onnx", n_columns=4, n_units=16, steepness=10.0)
    X = load_diabetes(as_frame=True).data[["bmi", "bp", "s1", "s5"]]
    X.to_parquet(tmp_path / "background.parquet")
    follow(DOCS / "onnx.md", tmp_path, 3)


def follow(page: Path, tmp_path: Path, n_commands: int) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "200"}
    shown = 0
    for language, block in re.findall(r"^```(python|console)\n(.*?)^```", page.read_text(), re.M | re.S):
        if language == "python":
            subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True)
            continue
        for part in block.split("$ ")[1:]:
            command, _, expected = part.partition("\n")
            done = subprocess.run(
                ["bash", "-c", f"{command} 2>&1"],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(expected, done.stdout, flags), done.stdout
            shown += 1
    assert shown == n_commands
