"""What a part of the demo shows, in the terminal and on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from fouriershap._base.atomic import atomic_file

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 1100px; margin: 3rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 3rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .9rem; border-bottom: 1px solid #e4e7eb; text-align: right; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { color: #616e7c; font-weight: 600; } img { width: 100%; margin-top: .5rem; }
"""


@dataclass(frozen=True)
class Section:
    """A part of the demo."""

    title: str
    text: str
    table: Sequence[Sequence[str]]
    picture: Path


def show(section: Section) -> None:
    """Print a section: by rich where it is installed, else as plain columns."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _show_plainly(section)
        return
    console = Console()
    console.rule(f"[bold]{section.title}", align="left")
    console.print(f"\n{section.text}\n", highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(section.table[0]):
        table.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
    for row in section.table[1:]:
        table.add_row(*row)
    console.print(table)
    console.print()


def _show_plainly(section: Section) -> None:
    print(f"── {section.title}\n\n{section.text}\n")
    widths = [max(len(row[i]) for row in section.table) for i in range(len(section.table[0]))]
    for row in section.table:
        cells = zip(row, widths, strict=True)
        print("  ".join(f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}" for i, (cell, w) in enumerate(cells)))
    print()


def write_page(path: Path, title: str, sections: Sequence[Section]) -> None:
    """A page of sections; the pictures lie beside it."""
    parts = [f"<h1>{escape(title)}</h1>"]
    for section in sections:
        parts += [
            f"<h2>{escape(section.title)}</h2>",
            f"<p>{escape(section.text)}</p>",
            _html_table(section.table),
        ]
        parts.append(f'<img src="{section.picture.name}" alt="{escape(section.title)}">')
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join(parts)
    page = f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>"
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _html_table(table: Sequence[Sequence[str]]) -> str:
    lines = []
    for i, row in enumerate(table):
        tag = "th" if i == 0 else "td"
        lines.append("<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>")
    return "<table>" + "".join(lines) + "</table>"


def in_seconds(seconds: float) -> str:
    """A time with two or three digits that matter."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
