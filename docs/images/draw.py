"""Draw the pictures of pages: `python docs/images/draw.py docs/gallery/*.md`.

A picture is the last figure that the page's own code drew before it.
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
_PICTURE = re.compile(r"^!\[[^\]]*\]\((?:\.\./)?images/([\w-]+\.png)\)", flags=re.MULTILINE)


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
            if not plt.get_fignums():
                raise SystemExit(f"{page.name}: no code before {picture} draws a figure.")
            plt.gcf().savefig(folder / picture, dpi=120)
            plt.close("all")
            drawn.append(picture)
        if example is not None:
            exec(compile(example.source, page.name, "exec"), names)
    return drawn


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    for argument in sys.argv[1:]:
        sys.stdout.write(" ".join([Path(argument).name, *draw(Path(argument), HERE)]) + "\n")
