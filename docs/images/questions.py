"""Draw the pictures of docs/questions.md: `python docs/images/questions.py`."""

import re
from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("Agg")

HERE = Path(__file__).parent


def session(page: str) -> dict[str, object]:
    """The names that a page's own examples make."""
    text = (HERE.parent / page).read_text(encoding="utf-8")
    lines = [match[1] for match in re.finditer(r"^(?:>>>|\.\.\.) ?(.*)$", text, flags=re.MULTILINE)]
    names: dict[str, object] = {"pd": pd}
    exec("\n".join(lines), names)
    return names


def main() -> None:
    """Draw all of them."""
    names = session("questions.md")
    for picture, answer in (
        ("drift", "drift"),
        ("drift-series", "series"),
        ("importance", "matters"),
        ("cohorts", "cohorts"),
        ("reasons", "reasons"),
    ):
        axes = names[answer].plot()  # type: ignore[attr-defined]
        axes.figure.savefig(HERE / f"{picture}.png", dpi=110)


if __name__ == "__main__":
    main()
