"""Pages for people, written from results: Markdown tables, and parts of a page between two comments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])


def fill(path: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->`` in a page."""
    page = path.read_text()
    opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
    if page.count(opening) != 1 or page.count(closing) != 1:
        raise SystemExit(f"{path.name} must have {opening} and {closing}, once each.")
    before, rest = page.split(opening)
    path.write_text(f"{before}{opening}\n{text.strip()}\n{closing}{rest.split(closing)[1]}")
