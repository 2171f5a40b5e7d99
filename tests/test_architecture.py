"""The layers of the package: imports go downwards only, and no modules import each other in a circle.

Imports inside functions and under TYPE_CHECKING count.
"""

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
LAYERS = (
    ("_base",),
    ("_kernels",),
    ("_rows",),
    ("_trees",),
    ("_fourier",),
    ("_waves",),
    ("_dependence",),
    ("_libraries",),
    ("_shapley",),
    ("_blackbox",),
    ("spectra",),
    ("analysis",),
    ("report",),
    ("_explainers",),
)
LEVEL = {package: level for level, layer in enumerate(LAYERS) for package in layer}
OUTER = ("cli", "integrations", "plots")
# What a layer must not know, although it lies below.
FORBIDDEN = {("_shapley", "_libraries"), ("_waves", "_trees")}
FOREIGN = {"_exit", "_max_samples", "_meta"}  # of os, scikit-learn, Dask


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
COMPILED = {f"{NAME}._kernels.{name}" for name in ("_native", "_native_avx2")}


def room(module: str) -> str:
    """The folder (or file) under the package's root; "" for the root itself."""
    return module.removeprefix(NAME).lstrip(".").partition(".")[0]


@cache
def imports(module: str) -> tuple[tuple[str, str, str], ...]:
    """(target module, name taken from it or "", name that it gets here) of everything of ours that is imported."""
    found = []
    for node in ast.walk(MODULES[module]):
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
        private = any(part.startswith("_") and not part.startswith("__") for part in target.split("."))
        return not private or there == "_base"
    return there in LEVEL and LEVEL[there] < LEVEL[here] and (here, there) not in FORBIDDEN


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
    yield from (
        f"{target}.{name}" for target, name, _ in foreign if name.startswith("_") and name != "__version__"
    )
    modules = {bound for _, name, bound in foreign if not name}
    is_outer = room(module) in (*OUTER, "report")
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
            owner = ast.unparse(node.value)
            is_strange = owner not in ("self", "cls") and node.attr not in FOREIGN
            if owner in modules or (is_outer and is_strange):
                yield f"{owner}.{node.attr}"


def test_no_private_name_of_another_room() -> None:
    assert [f"{module} uses {name}" for module in MODULES for name in private_names(module)] == []


def test_nothing_goes_in_circles() -> None:
    inside = MODULES.keys() - {NAME}  # the root names everything, for type checkers
    graph = {module: {target for target, *_ in imports(module)} - {module, NAME} for module in inside}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


ENGINE_NAMES = {"TreeEngine", "ProductEngine", "RidgeEngine", "SpectrumEngine", "SumEngine", "Engine"}


@pytest.mark.parametrize("module", [name for name in MODULES if room(name) not in ("_shapley", "")])
def test_nobody_asks_for_the_class_of_an_engine(module: str) -> None:
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "cast"):
            named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            assert not named & ENGINE_NAMES, f"{module}: {ast.unparse(node)}"


LIBRARIES = (
    "xgboost",
    "lightgbm",
    "catboost",
    "sklearn",
    "statsmodels",
    "onnx",
    "ydf",
    "sksurv",
    "interpret",
)


def strings(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of code that are not docstrings."""
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


INSIDE = ("_explainers", "_rows", "_shapley", "_trees", "_waves", "_fourier", "_base", "analysis", "report")


@pytest.mark.parametrize("module", [name for name in MODULES if room(name) in INSIDE])
def test_libraries_are_named_in_their_adapters_only(module: str) -> None:
    found = [text for text in strings(MODULES[module]) if text.partition(".")[0].lower() in LIBRARIES]
    assert not found, module
