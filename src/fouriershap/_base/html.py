"""Tables for notebooks: escaped HTML without scripts, which follows the notebook's colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

_FEW = 10  # lines that are shown; more of them are folded
_MOST = 200
_RAISES, _LOWERS = "rgba(204, 43, 99, .8)", "rgba(23, 105, 181, .8)"
_CELL = "text-align: left; padding: .15em .8em; max-width: 32em; overflow-wrap: break-word"


def facts_table(title: str, facts: Mapping[str, str]) -> str:
    """Return a table of names and texts."""
    lines = "".join(f"<tr>{_cell(name, 'th')}{_cell(text)}</tr>" for name, text in facts.items())
    return f"<div><strong>{escape(title)}</strong><table>{lines}</table></div>"


def columns_table(title: str, columns: Mapping[str, Sequence[Any]], bar: str) -> str:
    """Return a table of columns; that named ``bar`` is drawn as bars, too. Long ones are folded."""
    sizes = np.asarray(columns[bar], dtype=np.float64)
    largest = float(np.nanmax(np.abs(sizes), initial=0.0)) or 1.0
    head = "".join(_cell(text, "th") for name in columns for text in ((name, "") if name == bar else (name,)))
    lines = []
    for k in range(min(len(sizes), _MOST)):
        cells = [
            _cell(_text(columns[name][k])) + (_bar(sizes[k] / largest) * (name == bar)) for name in columns
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")

    def table(some: list[str]) -> str:
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(some)}</tbody></table>"

    text = f"<div><strong>{escape(title)}</strong>{table(lines[:_FEW])}"
    if len(lines) > _FEW:
        text += f"<details><summary>{len(lines) - _FEW:,} more</summary>{table(lines[_FEW:])}</details>"
    if len(sizes) > _MOST:
        text += f"<p>{len(sizes) - _MOST:,} lines are not shown; <code>frame()</code> has all of them.</p>"
    return f"{text}</div>"


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def _cell(text: str, tag: str = "td") -> str:
    return f'<{tag} style="{_CELL}">{escape(text)}</{tag}>'


def _bar(share: float) -> str:
    """Return a cell with a bar from its middle: to the right for positive numbers, to the left for others."""
    width = 0.0 if np.isnan(share) else 50 * abs(share)
    left, colour = (50.0, _RAISES) if share > 0 else (50 - width, _LOWERS)
    bar = f"position: absolute; height: .8em; top: .2em; left: {left:.1f}%; width: {width:.1f}%; background: {colour}"
    box = "position: relative; width: 10em; height: 1.2em; border-left: 0"
    return f'<td style="padding: .15em .4em"><div style="{box}"><div style="{bar}"></div></div></td>'
