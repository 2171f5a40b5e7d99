"""The session in docs/command-line.md is what happens."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_the_session_shown_is_real(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "200"}
    shown = 0
    for language, block in re.findall(r"^```(python|console)\n(.*?)^```", PAGE.read_text(), re.M | re.S):
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
    assert shown == 6
