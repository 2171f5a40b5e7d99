"""Pages of the documentation: pictures that their own code draws, code that fits the page, names that are all there."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import fouriershap

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
ROOT = DOCS.parent
# Pages for those who change the code.
GUIDES = [ROOT / "CONTRIBUTING.md", DOCS / "architecture.md", *sorted((ROOT / "src").rglob("README.md"))]
SUFFIXES = (".py", ".md", ".cpp", ".h", ".js", ".html", ".css", ".yml", ".toml")
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
    for page in [*PAGES, ROOT / "README.md"]:
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


@pytest.mark.parametrize("page", ["trees.md", "linear.md"])
def test_tables_of_libraries_are_those_of_the_registry(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails: `python docs/libraries.py`."""
    monkeypatch.syspath_prepend(str(DOCS))
    assert import_module("libraries").updated(page) == (DOCS / page).read_text(encoding="utf-8")


def test_the_oldest_version_tested_is_the_lower_bound() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    bounds = dict(re.findall(r'"([\w-]+)>=([\d.]+)', text))
    names = {"sklearn": "scikit-learn", "sksurv": "scikit-survival", "interpret": "interpret-core"}
    for library in fouriershap.libraries():
        if library.package != "pyspark":  # whose folders are read without it
            bound = bounds[names.get(library.package, library.package.replace("_", "-"))]
            assert f"{bound}.".startswith(f"{library.tested.split()[0]}.") or library.tested.startswith(bound)


def anchors(page: Path) -> set[str]:
    """Return the anchors of headings, as GitHub and MyST make them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def test_links_lead_somewhere() -> None:
    broken = []
    for page in [*PAGES, *ROOT.glob("*.md"), *GUIDES]:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if ":" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken


@pytest.mark.parametrize("page", GUIDES, ids=[str(page.relative_to(ROOT)) for page in GUIDES])
def test_files_that_guides_name_are_there(page: Path) -> None:
    """Names are paths from the root, from the package or from the page, or the ends of such paths."""
    made_up = {"mylib.py", "mine.py", "x_numpy.py", "x.h", "x.cpp"}
    folders = [ROOT / name for name in ("src", "tests", "docs", "benchmarks", ".github")]
    found = [path for folder in folders for path in folder.rglob("*")] + [*ROOT.glob("*")]
    files = {f"/{path.relative_to(ROOT).as_posix()}" for path in found}
    named = re.findall(rf"`([\w./-]+(?:{'|'.join(map(re.escape, SUFFIXES))}))`", prose(page))
    assert not [
        name
        for name in named
        if Path(name).name not in made_up and not any(path.endswith(f"/{name}") for path in files)
    ]
