"""Values of a header by their types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import fouriershap as fs
from fouriershap._base.headers import Label, from_json, get_part, get_size, get_typed


class Ends(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Part:
    name: str
    size: int
    ends: Ends | None = None
    labels: tuple[Label, ...] = ()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (float, float("inf"), float("inf")),
        (bool, True, True),
        (str, "é", "é"),
        (Any, [{}], [{}]),
        (int | None, None, None),
        (tuple[str, ...] | None, ["a"], ("a",)),
        (tuple[tuple[Label, ...], ...], [["a", 1], [None, 0.5, True]], (("a", 1), (None, 0.5, True))),
        (Part, {"name": "a", "size": 1}, Part("a", 1)),
        (Part, {"name": "a", "size": 1, "ends": [0, 1]}, Part("a", 1, Ends(0.0, 1.0))),
    ],
)
def test_what_fits(kind: Any, value: Any, expected: Any) -> None:
    found = from_json(kind, value, "it")
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, True),
        (int, 1.0),
        (int, 2**63),
        (int, None),
        (float, "1"),
        (float, False),
        (bool, 1),
        (str, 1),
        (str | None, []),
        (tuple[str, ...], "ab"),
        (tuple[str, ...], ["a", None]),
        (tuple[Label, ...], [["a"]]),
        (Ends, [1.0]),
        (Ends, {"low": 1.0, "high": 2.0}),
        (Part, []),
        (Part, {"name": "a"}),
        (Part, {"name": "a", "size": 1, "more": 1}),
        (Part, {"name": "a", "size": 1, "ends": ["a", "b"]}),
    ],
)
def test_what_does_not(kind: Any, value: Any) -> None:
    with pytest.raises(fs.FileFormatError, match="the file is damaged: it"):
        from_json(kind, value, "it")


def test_keys() -> None:
    header = {"n": 3, "part": {"a": 1}, "less": -1, "none": None}
    assert get_typed(header, "n", int) == 3
    assert get_typed(header, "old", int, 7) == 7
    assert get_size(header, "none") is get_size(header, "old") is None
    assert get_part(header, "part") == {"a": 1}
    for wrong in (
        lambda: get_typed(header, "old", int),
        lambda: get_part(header, "n"),
        lambda: get_size(header, "less"),
    ):
        with pytest.raises(fs.FileFormatError):
            wrong()
