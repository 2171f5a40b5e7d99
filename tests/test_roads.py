"""The architecture page shows how long the roads are."""

from __future__ import annotations

import re
from pathlib import Path

from roads import roads

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


def test_the_page_shows_how_long_the_roads_are() -> None:
    shown = re.findall(r"^\| `(fs\.Explainer\(.*\))`.* \| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert {road: int(number) for road, number in shown} == {
        road: len(files) for road, files in roads().items()
    }
