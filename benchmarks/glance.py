"""What the README tells at a glance, from the results beside this file: `python benchmarks/glance.py`.

Each line names what was measured, ours, and the best of the others; nothing is measured here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from typing import Any

from _common import RESULTS, seconds
from _pages import ROOT, fill, markdown_table

Line = tuple[str, str, str, str]
HEADER = ("what", "fouriershap", "others", "")
DAY = 86_400


def _results(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def _times(theirs: float, ours: float) -> str:
    ratio = theirs / ours
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x"


def _long(took: float) -> str:
    return f"~{took / DAY:.0f} days" if took > DAY else seconds(took)


def _scale() -> Iterator[Line]:
    """Many rows against a large background."""
    members = _results("trees")["results"]["members"]
    names = {"xgboost": "XGBoost, 100 trees of depth 6", "lightgbm": "LightGBM, 100 trees of 31 leaves"}
    for model, name in names.items():
        cell = next(c for c in members[f"scale.{model}"]["cells"] if c["cell"] == "100,000 x 100,000")
        ours, woodelf, shap = (cell["wall"].get(who) for who in ("fouriershap", "woodelf", "shap"))
        others = f"woodelf {seconds(woodelf)}" + (f", shap {_long(shap)}" if shap else "")
        yield f"{name}: 100,000 rows, 100,000 background rows", seconds(ours), others, _times(woodelf, ours)


def _deep() -> Iterator[Line]:
    """Deep trees, and one row."""
    forest = _results("gallery")["results"]["forest"]["lines"][-1]
    what = f"a default random forest, 100 trees, 10 classes: {forest['what']}"
    yield (
        what,
        seconds(forest["fouriershap"]),
        f"shap {_long(forest['shap'])}",
        _times(forest["shap"], forest["fouriershap"]),
    )
    members = _results("deep_trees")["members"]
    cell = next(c for c in members["sizes/lightgbm:1000:63"]["cells"] if c["rows"] == 10_000)
    walk = f"walking pair by pair ~{cell['walk'] / 60:,.0f} min"
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
    (cell,) = members["serving/lightgbm:100:31"]["cells"]
    ours, own = cell["milliseconds"] / 1e3, cell["predict"] / 1e3
    yield (
        "one row, served: LightGBM, 100 trees of 31 leaves",
        seconds(ours),
        f"its own predict {seconds(own)}",
        _times(own, ours),
    )


def _networks() -> Iterator[Line]:
    """Models that can only be asked."""
    cells = _results("blackbox")["results"]["cells"]
    mine = [cell for name, cell in cells.items() if name.startswith("california.auto.1000.")]
    kernel = cells["california.KernelSHAP.0.0"]
    r2, fit, row = (
        median(cell[key] for cell in mine) for key in ("shap_r2", "fit_cpu_seconds", "row_seconds")
    )
    what = f"a network on 8 columns, fitted once from 1,000 answers (SHAP R² {r2:.4f}, {seconds(fit)}): a row"
    others = f"KernelExplainer {seconds(kernel['row_seconds'])}, {kernel['queries_per_row']:,.0f} answers"
    yield what, seconds(row), others, _times(kernel["row_seconds"], row)


def _linear() -> Iterator[Line]:
    cell = _results("linear")["results"]["logistic regression, probability, 10"]["cpu"]
    ours, kernel = cell["fouriershap"], cell["KernelExplainer"]
    what = "probabilities of a logistic regression, 10 columns: 1,000 rows, 100 background rows"
    yield what, seconds(ours), f"KernelExplainer {seconds(kernel)}", _times(kernel, ours)


def table() -> str:
    """The table of the README."""
    return markdown_table(HEADER, [*_scale(), *_deep(), *_networks(), *_linear()])


if __name__ == "__main__":
    fill(ROOT / "README.md", "benchmarks", table())
    print(table())
