"""The floor plan, asserted: rooms import downwards only, outer rooms use public names, and nothing goes in circles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import fouriershap

SOURCE = Path(fouriershap.__file__).parent
NAME = "fouriershap"
INNER = ("_base", "_kernels", "_rows", "_trees", "_fourier", "_waves", "_shapley", "_blackbox", "_explainers")
OUTER = ("cli", "integrations", "demo", "plots")
FOREIGN = {"_exit", "_max_samples", "_meta"}  # of os, scikit-learn, Dask


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
COMPILED = {f"{NAME}._kernels._native", f"{NAME}._kernels._native_avx2"}


def room(module: str) -> str:
    """The folder (or file) under the package's root; "" for the root itself."""
    return module.removeprefix(NAME).lstrip(".").partition(".")[0]


def walked(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, those in functions included, but for what only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from walked(child)


@cache
def imports(module: str) -> tuple[tuple[str, str, str], ...]:
    """(target module, name taken from it or "", name that it gets here) of everything of ours that is imported."""
    found = []
    for node in walked(MODULES[module]):
        if isinstance(node, ast.Import):
            found += [(a.name, "", a.asname or a.name) for a in node.names if a.name.split(".")[0] == NAME]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide the room"
            if (node.module or "").split(".")[0] != NAME:
                continue
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = whole in MODULES or whole in COMPILED
                target = (whole, "") if is_module else (str(node.module), alias.name)
                found.append((*target, alias.asname or alias.name))
    return tuple(found)


def may_import(module: str, target: str) -> bool:
    here, there = room(module), room(target)
    if here in ("", there):
        return True
    if here in OUTER:
        # The cellar serves every room: writing a file whole, texts that stay short, counting threads.
        private = any(part.startswith("_") and not part.startswith("__") for part in target.split("."))
        return not private or there == "_base"
    if here == "report":
        return there == "_base"
    if there == "report":
        return here == "_explainers"
    return there in INNER and INNER.index(there) < INNER.index(here)


def test_imports_go_downwards() -> None:
    assert [
        f"{module} -> {target}"
        for module in MODULES
        for target, *_ in imports(module)
        if not may_import(module, target)
    ] == []


def private_names(module: str) -> Iterator[str]:
    """Underscore names of other rooms that a module uses; in outer rooms, those of any object but its own."""
    foreign = [entry for entry in imports(module) if room(entry[0]) != room(module)]
    yield from (f"{target}.{name}" for target, name, _ in foreign if name.startswith("_"))
    modules = {bound for _, name, bound in foreign if not name}
    is_outer = room(module) in (*OUTER, "report")
    for node in walked(MODULES[module]):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
            owner = ast.unparse(node.value)
            is_strange = owner not in ("self", "cls") and node.attr not in FOREIGN
            if owner in modules or (is_outer and is_strange):
                yield f"{owner}.{node.attr}"


def test_no_private_name_of_another_room() -> None:
    assert [f"{module} uses {name}" for module in MODULES for name in private_names(module)] == []


def test_nothing_goes_in_circles() -> None:
    graph = {module: {target for target, *_ in imports(module) if target != module} for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_the_root_shows_the_plan() -> None:
    entries = [path.name for path in SOURCE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 16, sorted(entries)
    assert {entry for entry in entries if entry.startswith("_") and entry != "__init__.py"} <= set(INNER)
