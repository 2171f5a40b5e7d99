"""Draw the pictures of pages: `python docs/images/draw.py docs/gallery/*.md`.

A picture is the last figure that the page's own code drew before it. One that is named `report-<section>`
shows that section of the last report that the code wrote, `page`, in Chromium; `report-<section>-dark` in its
dark colours.
"""

import doctest
import os
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from browser import OpenPage, launch  # noqa: E402

_SECTIONS = {
    "global": "global .pair",
    "row": "rows",
    "narrow": "what-if",
}  # picture -> section, where they differ
_PICTURE = re.compile(r"\]\((?:\.\./)?images/([\w-]+\.png)\)")


def draw(page: Path, folder: Path) -> list[str]:
    """Run the page's examples in order, write each picture, and return the names of the pictures."""
    text = page.read_text(encoding="utf-8")
    pictures = [(text[: found.start()].count("\n"), found[1]) for found in _PICTURE.finditer(text)]
    if page.resolve().parent.name != "gallery":  # elsewhere, pictures of the gallery are only shown
        pictures = [(line, picture) for line, picture in pictures if not picture.startswith("gallery-")]
    names: dict[str, Any] = {}
    drawn = []
    for example in [*doctest.DocTestParser().get_examples(text), None]:
        while pictures and (example is None or pictures[0][0] < example.lineno):
            picture = pictures.pop(0)[1]
            if picture.startswith("report-"):
                draw_report(names["page"], folder / picture)
                drawn.append(picture)
                continue
            if not plt.get_fignums():
                raise SystemExit(f"{page.name}: no code before {picture} draws a figure.")
            plt.gcf().savefig(folder / picture, dpi=120)
            plt.close("all")
            drawn.append(picture)
        if example is not None:
            exec(compile(example.source, page.name, "exec"), names)
    return drawn


def draw_report(report: Path, picture: Path) -> None:
    """Show a section of a report in the browser; in the what-if part, with the first feature changed."""
    name, dark, _ = picture.stem.removeprefix("report-").partition("-dark")
    options = {"color_scheme": "dark" if dark else "light", "viewport": {"width": 1100, "height": 900}}
    if name == "narrow":
        options["viewport"] = {"width": 400, "height": 900}
    with launch() as browser:
        page = OpenPage(browser, report, **options).page
        section = page.locator("#" + _SECTIONS.get(name, name)).first
        if name in ("what-if", "narrow"):
            slider = section.locator("input[type=range]").first
            slider.fill(slider.get_attribute("min"))
        page.add_style_tag(content="header { position: static !important }")
        section.screenshot(path=picture)


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    for argument in sys.argv[1:]:
        sys.stdout.write(" ".join([Path(argument).name, *draw(Path(argument), HERE)]) + "\n")
