"""The README's table is what the results say."""

from __future__ import annotations

from pathlib import Path

import glance

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_shows_the_results() -> None:
    assert glance.table() in README.read_text(encoding="utf-8"), "python benchmarks/glance.py writes it"
