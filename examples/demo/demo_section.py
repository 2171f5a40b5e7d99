"""What a part of the demo shows in the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Section:
    """A part of the demo."""

    title: str
    text: str
    table: Sequence[Sequence[str]]
    page: Path


def show(section: Section) -> None:
    """Print a section: with rich if it is installed, else as plain columns."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(f"\n{section.title}\n{section.text}")
        widths = [max(map(len, column)) for column in zip(*section.table, strict=True)]
        for row in section.table:
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            print("  ".join([row[0].ljust(widths[0]), *cells]))
    else:
        console = Console()
        console.print(f"\n[bold]{section.title}[/bold]\n{section.text}", highlight=False)
        table = Table()
        for k, name in enumerate(section.table[0]):
            table.add_column(name, justify="left" if k == 0 else "right")
        for row in section.table[1:]:
            table.add_row(*row)
        console.print(table)
    print(f"All rows, and what-if: {section.page}")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the seconds that it took."""
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def in_seconds(seconds: float) -> str:
    """Return a time with two or three significant digits."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
