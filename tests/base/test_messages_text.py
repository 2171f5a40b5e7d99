"""Values in messages: at most 80 characters of each, whatever they are; and no message that forgets it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
from fouriershap._base.messages import MOST, error_text, truncated_list, truncated_repr, truncated_text
from fouriershap._rows.preprocessing import UnknownStepError

SOURCE = Path(fs.__file__).parent


class Angry:
    """Has no text of any kind, and no shape."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    @property
    def shape(self) -> Any:
        raise RuntimeError("no")


class Lines:
    def __repr__(self) -> str:
        return "a\nb\n" * 1000


def nested(depth: int) -> list[Any]:
    out: list[Any] = []
    for _ in range(depth):
        out = [out]
    return out


HUGE = [
    "x" * 10_000,
    b"x" * 10_000,
    10**4000,
    10**6000,  # more digits than Python turns into text
    ["x" * 10_000] * 10_000,
    {"x" * 10_000: "y" * 10_000},
    {f"{i}" * 100 for i in range(100)},
    tuple(range(10**6)),
    nested(100_000),
    np.zeros((1000, 1000)),
    np.array(["x" * 10_000], dtype=object),
    pd.DataFrame({"x" * 10_000: range(1000)}),
    [np.zeros((1000, 1000)), pd.DataFrame({"a": [1]})],
    Angry(),
    [Angry()],
    Lines(),
    type("X" * 10_000, (), {})(),
    Path("/x" * 5000),
]


@pytest.mark.parametrize("value", HUGE, ids=range(len(HUGE)))
def test_values_of_any_kind_fit(value: Any) -> None:
    assert len(truncated_repr(value)) <= MOST and "\n" not in truncated_repr(value)
    assert len(truncated_text(value)) <= MOST


@pytest.mark.parametrize("value", ["abc", "it's", 1, -2.5, None, True, ["a", 1], ("a",), {"a": [1, 2]}, b"x"])
def test_what_is_short_is_shown_as_it_is(value: Any) -> None:
    assert truncated_repr(value) == repr(value)
    assert truncated_text("a path/with  spaces") == "a path/with  spaces"


def test_both_ends_are_kept() -> None:
    name = "/home/somebody/" + "folder/" * 30 + "rows.parquet"
    assert len(truncated_text(name)) == MOST
    assert truncated_text(name).startswith("/home/somebody/") and truncated_text(name).endswith(
        "/rows.parquet"
    )
    assert truncated_repr(name).startswith("'/home") and truncated_repr(name).endswith(".parquet'")


def test_arrays_and_frames_by_their_shape() -> None:
    assert truncated_repr(np.zeros((3, 4))) == "<ndarray of shape (3, 4)>"
    assert truncated_repr(pd.DataFrame({"a": [1, 2]})) == "<DataFrame of shape (2, 1)>"
    assert truncated_repr(np.float64(2.5)) == repr(np.float64(2.5))


def test_lists() -> None:
    assert truncated_list(["a", "b"]) == "'a', 'b'"
    assert truncated_list([str(i) for i in range(10_000)], 2) == "'0', '1' and 9,998 more"
    assert truncated_list({"a": 1}) == "'a'"
    assert len(truncated_list(["x" * 10_000] * 10_000)) < 6 * MOST


def test_errors_of_ours_are_whole_and_those_of_others_are_cut() -> None:
    assert error_text(fs.InputError("long " * 100)) == "long " * 100
    assert len(error_text(ValueError("x" * 10_000))) == MOST
    assert error_text(ValueError("two\nlines")) == "two lines"

    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert error_text(SilentError()) == "<SilentError>"


# No message forgets it

# What may be shown by its own repr: objects of ours, whose texts are short.
OWN = {"self", "other", "e", "ensemble", "engine.ensemble", "explainer", "__name__"}
# What people print is no message; what they ask a module for is in their code; a method was chosen among ours.
ELSEWHERE = {"__repr__", "__str__", "__getattr__", "_digest", "warn_if_low"}
FOREIGN = {"path", "error", "place", "saved.path", "objective", "dtype"}
FOREIGN |= {"array.dtype", "raw.dtype", "series.dtype", "ensemble.kind", "e.kind"}


def forgotten(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Placeholders of f-strings that show a value by its own repr, or what comes from outside as it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in ELSEWHERE:
            node.body = []
        if isinstance(node, ast.ExceptHandler) and node.name and _is_ours(node.type):
            node.body = [_renamed(part, node.name) for part in node.body]
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue):
            shown = ast.unparse(node.value)
            by_repr = node.conversion == ord("r") and shown not in OWN
            if by_repr or (node.conversion == -1 and node.format_spec is None and shown in FOREIGN):
                yield node.lineno, shown
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "map":
            function, values = (ast.unparse(argument) for argument in node.args[:2])
            if function == "repr" and not values.strip("_").isupper() and values != "choices":
                yield node.lineno, values


def _is_ours(kind: ast.expr | None) -> bool:
    known = {"UnknownStepError": UnknownStepError} | vars(fs)
    ours = (fs.FourierShapError, UnknownStepError)
    return isinstance(kind, ast.Name) and issubclass(known.get(kind.id, object), ours)


def _renamed(part: ast.stmt, name: str) -> ast.stmt:
    for node in ast.walk(part):
        if isinstance(node, ast.Name) and node.id == name:
            node.id = "error_of_ours"
    return part


def test_no_message_forgets_it() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {shown}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, shown in forgotten(ast.parse(path.read_text()))
    ]
    assert not found, "use the functions of fouriershap._base.messages:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('raise InputError(f"x is {x!r}")', "x"),
        ('raise InputError(f"{path} is damaged")', "path"),
        ('message = f"{columns[0]!r} and {1:,}"', "columns[0]"),
        ('raise InputError(", ".join(map(repr, names)))', "names"),
        ('try:\n    f()\nexcept ValueError as error:\n    raise InputError(f"{error}")', "error"),
    ],
)
def test_what_the_test_finds(source: str, expected: str) -> None:
    assert [shown for _, shown in forgotten(ast.parse(source))] == [expected]
