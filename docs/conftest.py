"""Pages whose data are not part of the project skip where these are missing; figures end with their page."""

import os
import sys
from pathlib import Path

import pytest

NEEDED = {"proteins.md": ("entacmaea.csv.gz", "avgfp.csv.gz")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip with the reason beside the page."""
    folder = Path(os.environ.get("FOURIERSHAP_DATA", ""))
    for item in items:
        missing = [name for name in NEEDED.get(item.path.name, ()) if not (folder / name).is_file()]
        if missing:
            reason = f"needs {', '.join(missing)} in the folder that FOURIERSHAP_DATA names"
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_teardown() -> None:
    """Close what pages have drawn."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
