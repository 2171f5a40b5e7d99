"""The tables of the README and of the documentation are what the results say."""

from __future__ import annotations

from pathlib import Path

import pytest

import glance

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "part"), list(glance.PAGES))
def test_a_page_shows_the_results(page: str, part: str) -> None:
    written = glance.PAGES[page, part]()
    assert written in (ROOT / page).read_text(encoding="utf-8"), "python benchmarks/glance.py writes it"
