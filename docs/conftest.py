"""Doctests of pages: skip those whose data are missing, and close figures after each page."""

import os
import sys
from pathlib import Path

import pytest

NEEDED = {"proteins.md": ("entacmaea.csv.gz", "avgfp.csv.gz")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip pages whose data files are missing, with the reason."""
    folder = Path(os.environ.get("FOURIERSHAP_DATA", ""))
    for item in items:
        missing = [name for name in NEEDED.get(item.path.name, ()) if not (folder / name).is_file()]
        if missing:
            reason = f"needs {', '.join(missing)} in the folder named by FOURIERSHAP_DATA"
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_teardown() -> None:
    """Close the figures that a page has drawn."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
