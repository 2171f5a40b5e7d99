"""What the README and the documentation tell at a glance, from the results: `python benchmarks/glance.py`.

Each line of the README names what was measured, ours, and others, compared with the quickest of them; nothing is
measured here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from _common import RESULTS, digits, seconds
from _pages import ROOT, fill, markdown_table
from blackbox import whole_seconds

Line = tuple[str, str, str, str]
HEADER = ("what", "fouriershap", "others", "")
DAY = 86_400
NAMES = {"xgboost": "XGBoost, 100 trees of depth 6", "lightgbm": "LightGBM, 100 trees of 31 leaves"}


def _results(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def _times(theirs: float, ours: float) -> str:
    ratio = theirs / ours
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x"


def _scale() -> Iterator[Line]:
    """Many rows against a large background."""
    members = _results("trees")["results"]["members"]
    for model, name in NAMES.items():
        cell = next(c for c in members[f"scale.{model}"]["cells"] if c["cell"] == "100,000 x 100,000")
        ours, woodelf = (cell["cpu"][who] for who in ("fouriershap", "woodelf"))
        what = f"{name}: 100,000 rows, 100,000 background rows"
        yield what, seconds(ours), f"woodelf {seconds(woodelf)}", _times(woodelf, ours)


def _deep() -> Iterator[Line]:
    """Deep trees."""
    forest = _results("gallery")["results"]["forest"]["lines"][-1]
    what = f"a default random forest, 100 trees, 10 classes: {forest['what']}"
    others = {name: forest[name] for name in ("shap", "shapiq")}
    told = ", ".join(f"{name} ~{took / DAY:.1f} days" for name, took in others.items())
    yield what, seconds(forest["fouriershap"]), told, _times(min(others.values()), forest["fouriershap"])
    members = _results("deep_trees")["members"]
    cell = next(c for c in members["sizes/lightgbm:1000:63"]["cells"] if c["rows"] == 10_000)
    walk = f"our own pairwise walk ~{cell['walk'] / 60:,.0f} min"
    what = "LightGBM, 1,000 trees of 63 leaves: 10,000 rows, 10,000 background rows"
    yield what, seconds(cell["seconds"]), walk, _times(cell["walk"], cell["seconds"])
    large = [
        c
        for name, m in members.items()
        if name.startswith("depth/")
        for c in m["cells"]
        if c["rows"] == 20_000 and isinstance(c.get("woodelf"), float)
    ]
    if large:
        cell = max(large, key=lambda c: int(c["model"].split(":")[-1]))
        depth = cell["model"].split(":")[-1]
        what = f"LightGBM, 100 trees of depth {depth}: 20,000 rows, 20,000 background rows"
        yield (
            what,
            seconds(cell["seconds"]),
            f"WoodelfHD {seconds(cell['woodelf'])}",
            _times(cell["woodelf"], cell["seconds"]),
        )


def _served() -> Iterator[Line]:
    """Single-row latency (wall-clock), compared with the library's own prediction."""
    members = _results("trees")["results"]["members"]
    for model, name in NAMES.items():
        (cell,) = members[f"latency.{model}"]["cells"]
        ours, own = cell["wall"]["fouriershap"], cell["wall"]["own predict"]
        what = f"one row (latency): {name}, 10,000 background rows"
        yield what, seconds(ours), f"its own predict {seconds(own)}", _times(own, ours)


def _networks() -> Iterator[Line]:
    """A slow black box by the default call, compared with samplers of other packages."""
    costs = whole_seconds(_results("blackbox")["results"]["cells"], "network", "1 ms", 100)
    ours = costs.pop("fouriershap")
    what = (
        "a network on 10 columns that takes 1 ms for a query: 100 rows, every value with its error, to R² .99"
    )
    told = ", ".join(
        f"{name} {seconds(costs[name])}" for name in sorted(costs, key=lambda name: costs[name])[:2]
    )
    told += f", KernelSHAP {seconds(costs['KernelSHAP'])}"
    yield what, seconds(ours), told, _times(min(costs.values()), ours)


def _linear() -> Iterator[Line]:
    cell = _results("linear")["results"]["logistic regression, probability, 10"]["cpu"]
    ours = cell.pop("fouriershap")
    what = "probabilities of a logistic regression, 10 columns: 1,000 rows, 100 background rows"
    told = ", ".join(
        f"{name} {seconds(took)}" for name, took in sorted(cell.items(), key=lambda each: each[1])
    )
    yield what, seconds(ours), told, _times(min(cell.values()), ours)


def table() -> str:
    """The table of the README."""
    return markdown_table(HEADER, [*_scale(), *_deep(), *_served(), *_networks(), *_linear()])


def first_rows() -> str:
    """The first screen of the README: boosted trees, a default forest, a linear model."""
    lines = [next(_scale()), next(_deep()), next(_linear())]
    return markdown_table(HEADER, lines)


DEEP = {
    "xgboost:1000:8": "XGBoost, 1,000 trees of depth 8",
    "lightgbm:1000:63": "LightGBM, 1,000 trees of 63 leaves",
    "lightgbm:500:255": "LightGBM, 500 trees of 255 leaves",
    "forest regressor, leaves of 5:100": "random forest regressor, leaves of 5 rows",
    "forest classifier:100": "random forest classifier, default settings",
}


def deep_trees() -> str:
    """What deep trees cost, by the size of the work."""
    members, lines = _results("deep_trees")["members"], []
    for name, told in DEEP.items():
        small, large = members[f"sizes/{name}"]["cells"]
        times = digits(large["seconds"] / large["predict"], 2)
        lines.append((told, _short(small["seconds"]), _short(large["seconds"]), times))
    return markdown_table(
        ("", "1,000 x 1,000", "10,000 x 10,000", "the latter, relative to `predict`"), lines
    )


def _short(took: float) -> str:
    return f"{digits(took, 2)} s"


PAGES = {  # by page and the name of the part that is written
    ("README.md", "at a glance"): first_rows,
    ("README.md", "benchmarks"): table,
    ("docs/tree-costs.md", "deep trees"): deep_trees,
}


if __name__ == "__main__":
    for (page, part), written in PAGES.items():
        fill(ROOT / page, part, written())
        print(page, written(), sep="\n")
