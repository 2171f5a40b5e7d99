"""Options that are more than a word: groups of columns, and outputs."""

from __future__ import annotations

from fouriershap import InputError
from fouriershap._base.short import short, short_text


def parse_groups(given: list[str]) -> dict[str, dict[str, list[str]]]:
    """``NAME=COLUMN,COLUMN`` of each --group, as the argument ``groups`` of explainers; nothing where there is none."""
    groups: dict[str, list[str]] = {}
    for text in given:
        name, sign, columns = text.partition("=")
        members = [column.strip() for column in columns.split(",") if column.strip()]
        if not (sign and name.strip() and members):
            raise InputError(f"--group {short_text(text)}: give NAME=COLUMN,COLUMN.")
        if name.strip() in groups:
            raise InputError(f"--group: {short(name.strip())} is there twice; name all its columns at once.")
        groups[name.strip()] = members
    return {"groups": groups} if groups else {}


def parse_output(text: str) -> str | int:
    """A word, or the number of an output."""
    return int(text) if text.isdecimal() else text
