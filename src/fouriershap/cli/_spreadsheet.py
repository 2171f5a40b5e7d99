"""CSV that a spreadsheet shows and does not run."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute

# What a spreadsheet takes for the start of a formula, also after a character that it strips, also in full width:
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = r"^(?:[=+\-@\t\r\n]|＝|＋|－|＠)"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf)$"


def as_text(table: Any) -> Any:
    """Put an apostrophe before the texts and the names of columns that a spreadsheet would run.

    A text that reads as a plain number stays: to a spreadsheet it is one.
    """
    for position, field in enumerate(table.schema):
        text = _as_plain_text(table.column(position))
        if text is not None:
            table = table.set_column(position, field.name, _escaped(text))
    return table.rename_columns(_escaped(pa.array(table.column_names, pa.string())).to_pylist())


def _as_plain_text(column: Any) -> Any:
    """The column as texts or bytes, whatever way Arrow stores them; None for what is no text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    if pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    return column.cast(pa.string()) if str(kind) == "string_view" else None


def _escaped(texts: Any) -> Any:
    compute = pa.compute
    runs = compute.match_substring_regex(texts, _FORMULA)
    if not compute.any(runs).as_py():
        return texts
    runs = compute.and_not(runs, compute.match_substring_regex(texts, _NUMBER))
    mark, nothing = (pa.scalar(part, texts.type) for part in ("'", ""))
    return compute.if_else(runs, compute.binary_join_element_wise(mark, texts, nothing), texts)
