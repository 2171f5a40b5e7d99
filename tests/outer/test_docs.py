"""Pages of the documentation: pictures that their own code draws, code that fits the page, names that are all there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fouriershap

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WIDEST = 110  # docs/_static/pages.css gives it room


def blocks(text: str) -> list[str]:
    return [
        line for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S) for line in block.split("\n")
    ]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_code_is_no_wider_than_the_page(page: Path) -> None:
    wide = [line for line in blocks(page.read_text(encoding="utf-8")) if len(line) > WIDEST]
    assert not wide


def test_pictures_are_there_and_all_are_shown() -> None:
    shown = set()
    for page in [*PAGES, DOCS.parent / "README.md"]:
        for link in re.findall(r"\]\(([^)\s]+\.png)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).is_file(), f"{page.name} shows {link}"
            shown.add((page.parent / link).resolve())
    assert set((DOCS / "images").resolve().glob("*.png")) <= shown


def test_a_picture_is_what_the_code_before_it_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.syspath_prepend(str(DOCS / "images"))
    draw = pytest.importorskip("draw", reason="needs matplotlib")
    assert draw.draw(DOCS / "probability.md", tmp_path) == ["probability.png"]
    drawn, kept = (
        np.asarray(image.open(folder / "probability.png").convert("L"), dtype=float)
        for folder in (tmp_path, DOCS / "images")
    )
    assert drawn.shape == kept.shape
    assert np.abs(drawn - kept).mean() < 5  # fonts and dots move a little between versions
    (tmp_path / "page.md").write_text("![](images/x.png)\n")
    with pytest.raises(SystemExit, match=r"no code before x\.png"):
        draw.draw(tmp_path / "page.md", tmp_path)
    sys.modules.pop("draw")


def test_the_reference_has_every_public_name() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    named = set(re.findall(r"auto\w+:: (?:fouriershap\.)?(\w+)", text))
    assert set(fouriershap.__all__) <= named
