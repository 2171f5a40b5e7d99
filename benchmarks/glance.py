"""What the README and the documentation tell at a glance, from the results: `python benchmarks/glance.py`.

Each line of the README names what was measured, ours, and others, compared with the quickest of them; nothing is
measured here.
"""

from __future__ import annotations

import json
from typing import Any

from _common import RESULTS, digits, seconds
from _pages import ROOT, fill, markdown_table
from blackbox import whole_seconds
from dependence import PARTS

Line = tuple[str, str, str, str]
HEADER = ("your question", "fouriershap", "the quickest alternative", "")
DAY = 86_400


def _results(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def _line(question: str, ours: float, others: dict[str, float]) -> Line:
    """Compare with the quickest; a name with a tilde is extrapolated."""
    best = min(others, key=lambda name: others[name])
    took = others[best]
    name, sign = (best[1:], "~") if best.startswith("~") else (best, "")
    told = f"{took / DAY:.1f} days" if took > DAY else seconds(took)
    ratio = took / ours
    return (
        question,
        seconds(ours),
        f"{name} {sign}{told}",
        f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x",
    )


def _of_trees(member: str, cell: str, clock: str, question: str) -> Line:
    cells = _results("trees")["results"]["members"][member]["cells"]
    took = dict(next(each for each in cells if each["cell"] == cell)[clock])
    took.pop("raw output", None)
    if "own predict" in took:
        took["its own predict"] = took.pop("own predict")
    return _line(question, took.pop("fouriershap"), took)


def _many_rows() -> Line:
    question = (
        "What drives 100,000 predictions, against 100,000 background rows? (XGBoost, 100 trees of depth 6)"
    )
    return _of_trees("scale.xgboost", "100,000 x 100,000", "cpu", question)


def _forest() -> Line:
    forest = _results("gallery")["results"]["forest"]["lines"][-1]
    question = "The same of a default random forest of 10 classes, 10,000 rows against 10,000?"
    return _line(question, forest["fouriershap"], {f"~{name}": forest[name] for name in ("shap", "shapiq")})


def _deep() -> Line:
    members = _results("deep_trees")["members"]
    cells = [c for name, member in members.items() if name.startswith("depth/") for c in member["cells"]]
    large = [c for c in cells if c["rows"] == 20_000 and isinstance(c.get("woodelf"), float)]
    cell = max(large, key=lambda c: int(c["model"].split(":")[-1]))
    depth = cell["model"].split(":")[-1]
    question = f"Of deep trees, 20,000 rows against 20,000? (LightGBM, 100 trees of depth {depth})"
    return _line(question, cell["seconds"], {"WoodelfHD": cell["woodelf"]})


def _one_row() -> Line:
    question = "Why this row, while somebody waits? (LightGBM, 10,000 background rows, wall-clock)"
    return _of_trees("latency.lightgbm", "one row, median of 2,000", "wall", question)


def _probability() -> Line:
    question = (
        "In probabilities, not in log odds? (default HistGradientBoostingClassifier, 100 rows against 1,000)"
    )
    return _of_trees("probability.hist", "100 x 1,000, probability", "cpu", question)


def _pairs() -> Line:
    (cell,) = _results("interactions")["results"].values()
    took = {name: each["again"]["cpu"] for name, each in cell["contenders"].items() if "by path" not in name}
    question = "Which features act together? (all pairs, XGBoost, 1,000 rows against 1,000)"
    return _line(question, took.pop("fouriershap"), took)


def _dependence() -> Line:
    cell = _results("dependence")["cells"]["XGBoost, 100 x depth 6"]
    took = {name: each["cpu_seconds"] for name, each in cell["times"].items()}
    took["scikit-learn"] = PARTS * took.pop("scikit-learn, in part")
    question = "How does the prediction follow 10 features? (partial dependence over 100,000 rows)"
    return _line(question, took.pop("fouriershap"), took)


def _conditional() -> Line:
    """The draws that come as close to the truth as ours, or closest."""
    cell = _results("conditional")["cells"]["time, 8 features; 0"]
    ours = cell["gaussian"]
    others = [each for name, each in cell.items() if name.startswith("shapiq")]
    near = [each for each in others if each["r2"] >= ours["r2"]] or [max(others, key=lambda each: each["r2"])]
    question = (
        f"And if features are correlated? (conditional values, 8 features, a row to R² {ours['r2']:.4f})"
    )
    theirs = min(near, key=lambda each: each["row"])
    return _line(question, ours["row"], {f"shapiq (R² {theirs['r2']:.4f})": theirs["row"]})


def _black_box() -> Line:
    costs = whole_seconds(_results("blackbox")["results"]["cells"], "network", "1 ms", 100)
    question = (
        "Of a model that takes 1 ms a query? (a network, 100 rows to R² .99, every value with its error)"
    )
    return _line(question, costs.pop("fouriershap"), costs)


def _logistic() -> Line:
    took = dict(_results("linear")["results"]["logistic regression, probability, 10"]["cpu"])
    question = "Of a logistic regression, in probabilities? (1,000 rows against 100)"
    return _line(question, took.pop("fouriershap"), took)


def table() -> str:
    """The table of the README."""
    lines = [
        _many_rows(),
        _forest(),
        _deep(),
        _one_row(),
        _probability(),
        _pairs(),
        _dependence(),
        _conditional(),
    ]
    return markdown_table(HEADER, [*lines, _black_box(), _logistic()])


def first_rows() -> str:
    """The first screen of the README: boosted trees, a default forest, a black box."""
    return markdown_table(HEADER, [_many_rows(), _forest(), _black_box()])


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
