"""What shap takes for the pages of docs/gallery: `python benchmarks/gallery.py [credit drift ...]`.

Each page's own code makes the model and the rows; then both libraries explain the same. CPU seconds on one thread.
What would take shap hours is measured on fewer rows and background rows, and multiplied: its cost is rows times
background rows. Writes results/gallery.json, results/gallery.md, and the last part of each page.
"""

from __future__ import annotations

import argparse
import doctest
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import shap
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, describe_machine
from _pages import ROOT, fill, markdown_table

PAGES = ROOT / "docs" / "gallery"
PACKAGES = ("shap", "scikit-learn", "xgboost")


def session(page: str) -> dict[str, Any]:
    """The names that the page's own examples make."""
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples((PAGES / f"{page}.md").read_text(encoding="utf-8")):
        exec(compile(example.source, page, "exec"), names)
    return names


def cpu(work: Callable[[], Any], rounds: int = 3) -> tuple[float, Any]:
    """The least CPU seconds of some runs, and what the last returned; one run where it takes long."""
    least = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        answer = work()
        least = min(least, time.process_time() - begin)
        if least > 20:
            break
    return least, answer


def line(what: str, ours: float, theirs: float, share: float = 1.0, note: str = "") -> dict[str, Any]:
    """One comparison; ``share`` of what is named was measured of shap, the rest is multiplied."""
    return {"what": what, "fouriershap": ours, "shap": theirs / share, "share": share, "note": note}


def trees(model: Any, X: Any, background: Any, few: tuple[int, int], note: str = "") -> dict[str, Any]:
    """A tree model: all of it by us, ``few`` rows and background rows by shap."""
    ours, _ = cpu(lambda: fs.TreeExplainer(model, background, n_jobs=1, check="off").shap_values(X))
    theirs, apart = by_shap(model, X[: few[0]], background[: few[1]])
    share = few[0] * few[1] / (len(X) * len(background))
    return line(f"{len(X):,} rows against {len(background):,}", ours, theirs, share, note) | {
        "difference": apart
    }


def by_shap(model: Any, X: Any, background: Any) -> tuple[float, float]:
    """Its seconds, and by which part of the largest value it differs from ours; all background rows count."""
    seen, known = _codes(X), _codes(background)
    masker = shap.maskers.Independent(known, max_samples=len(known))
    explain = shap.TreeExplainer(model, masker, feature_perturbation="interventional")
    seconds, values = cpu(lambda: explain.shap_values(seen, check_additivity=False))
    mine = fs.TreeExplainer(model, background, check="off", precision="double").shap_values(X)
    return seconds, float(np.abs(np.asarray(values).reshape(mine.shape) - mine).max() / np.abs(mine).max())


def with_labels(model: Any, X: Any, background: Any, y: Any) -> dict[str, Any]:
    """A model of strings, which shap cannot read: it is timed on the same model of codes, trained as numbers."""
    few = (20, 500)
    made = trees(model, X, background, few)
    coded = clone(model).set_params(categorical_features=None).fit(_codes(background), y)
    theirs, apart = by_shap(coded, _codes(X[: few[0]]), _codes(background[: few[1]]))
    _, wrong = by_shap(model, X[: few[0]], background[: few[1]])
    truth = by_definition(coded, _codes(X[:5]), _codes(background[:30]))
    mine = fs.TreeExplainer(coded, _codes(background[:30]), precision="double").shap_values(_codes(X[:5]))
    ours = float(np.abs(mine - truth).max() / np.abs(truth).max())
    return made | {"shap": theirs / made["share"], "difference": apart, "strings": wrong, "definition": ours}


def by_definition(model: Any, X: Any, background: Any) -> Any:
    """The Shapley values of few players, over all coalitions, by the model's own raw output."""
    ask = getattr(model, "decision_function", model.predict)
    n = X.shape[1]
    inside = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)
    worth = [[ask(np.where(players, x, background)).mean() for players in inside] for x in X]
    size = inside.sum(axis=1)
    values = np.zeros(X.shape)
    for j in range(n):
        without = np.flatnonzero(~inside[:, j])
        share = np.array([1 / (n * math.comb(n - 1, k)) for k in size[without]])
        values[:, j] = (np.array(worth)[:, without | 1 << j] - np.array(worth)[:, without]) @ share
    return values


def credit() -> list[dict[str, Any]]:
    names = session("credit")
    X, new, train = names["X"], names["new"], names["train"]
    return [with_labels(names["model"], X[new], X[train], names["default"][train])]


def drift() -> list[dict[str, Any]]:
    names = session("drift")
    live, past = names["live"][names["features"]], names["past"][names["features"]]
    rows = with_labels(names["model"], live, past, names["minutes"](names["past"]))
    explainer = fs.TreeExplainer(names["model"], past, n_jobs=1)
    whole, _ = cpu(lambda: explainer.drift(names["live"], by="date", every="month"))
    # An interval counts both samples, so the background's rows are explained, too: as many pairs again.
    return [rows, line("drift by month, with intervals", whole, 2 * rows["shap"]) | {"share": rows["share"]}]


def _codes(X: Any) -> Any:
    """Codes in place of strings, as shap wants them."""
    if isinstance(X, np.ndarray):
        return X
    labelled = [name for name in X.columns if str(X[name].dtype) == "category"]
    return X.assign(**{name: X[name].cat.codes for name in labelled}).to_numpy(np.float64)


def forest() -> list[dict[str, Any]]:
    names = session("forest")
    rows, unseen = names["rows"], names["X"][names["unseen"]]
    return [
        trees(names["forest"], unseen, names["background"], (5, 100)),
        trees(names["forest"], rows, rows, (5, 100)),
    ]


def network() -> list[dict[str, Any]]:
    names = session("network")
    X, network, new = names["X"], names["network"], names["new"]
    options = {"data": X[:5000], "budget": 3000, "random_state": 0, "n_jobs": 1}
    fitting, explainer = cpu(lambda: fs.BlackBoxExplainer(network, X[:1000], **options), rounds=1)
    explaining, values = cpu(lambda: explainer.shap_values(new))

    def ask(rows: Any) -> Any:
        return network.predict(
            X[:1].reindex(range(len(rows))).assign(**dict(zip(X.columns, rows.T, strict=True)))
        )

    asked = shap.KernelExplainer(ask, X[:1000].to_numpy(dtype=object))
    few = new[:3].to_numpy(dtype=object)
    theirs, truth = cpu(lambda: asked.shap_values(few, silent=True), rounds=1)
    made = line("1,000 rows against 1,000", fitting + explaining, theirs, 3 / 1000, "KernelExplainer")
    r2 = 1 - np.square(truth - values[:3]).sum() / np.square(truth).sum()
    million = line(
        "1,000,000 rows against 1,000", fitting + 1000 * explaining, theirs, 3 / 1e6, "KernelExplainer"
    )
    return [made | {"r2": float(r2), "fitting": fitting, "explaining": explaining}, million]


def proteins() -> list[dict[str, Any]]:
    names = session("proteins")
    measured, sites = names["measured"], len(names["sites"])
    X = (np.arange(1 << sites)[:, None] >> np.arange(sites)[::-1]) & 1

    def ours() -> Any:
        return fs.shap_values(fs.walsh_hadamard(measured, n_bits=sites), X, X, n_jobs=1)

    seconds, _ = cpu(ours)
    asked = shap.KernelExplainer(lambda rows: measured(rows.astype(int)), X[::64])
    theirs, truth = cpu(lambda: asked.shap_values(X[:2], silent=True), rounds=1)
    part = fs.shap_values(fs.walsh_hadamard(measured, n_bits=sites), X[:2], X[::64])
    r2 = 1 - np.square(truth - part).sum() / np.square(part).sum()
    whole = line("all 8,192 variants against all", seconds, theirs, 2 / len(X) / 64, "KernelExplainer")
    bits, kept, model = names["X"], names["kept"], names["model"]
    wild = trees(model, bits[kept].astype(np.float64), np.zeros((1, bits.shape[1])), (int(kept.sum()), 1))
    every = trees(model, bits.astype(np.float64), bits.astype(np.float64), (20, 1000))
    return [whole | {"r2": float(r2)}, wild, every]


CELLS = {"credit": credit, "forest": forest, "network": network, "drift": drift, "proteins": proteins}


def duration(seconds: float) -> str:
    """A duration for people."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= 2 * size:
            value = seconds / size
            return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.0f} ms"


def table(lines: list[dict[str, Any]]) -> str:
    rows = []
    for one in lines:
        about = "" if one["share"] == 1 else "~"
        by = f" ({one['note']})" if one["note"] else ""
        rows.append(
            (one["what"], duration(one["fouriershap"]), f"{about}{duration(one['shap'])}{by}",
             f"{one['shap'] / one['fouriershap']:,.0f}")
        )  # fmt: skip
    return markdown_table(("CPU time, one thread", "fouriershap", "shap", "times"), rows)


def remarks(lines: list[dict[str, Any]]) -> str:
    """What a reader of the table should know."""
    said = []
    if any(one["share"] < 1 for one in lines):
        said.append("~: measured on fewer rows and multiplied.")
    apart = [one["difference"] for one in lines if "difference" in one]
    if apart and max(apart) < 1e-4:
        said.append(f"Values were compared: they differ by {max(apart):.0e} of the largest at most.")
    elif apart:
        exact = max(one["definition"] for one in lines if "definition" in one)
        said.append(
            f"Values were compared: shap's are off by up to {max(apart):.1%} of the largest, and ours are those of the "
            f"definition to {exact:.0e}."
        )
    wrong = [one["strings"] for one in lines if "strings" in one]
    if wrong:
        said.append(
            "shap was given a model of codes, trained as numbers. Of the model with strings it takes no rows; given "
            f"codes for them, it answers values that are off by up to {max(wrong):.0%} of the largest, without a word."
        )
    sampled = [one["r2"] for one in lines if "r2" in one]
    if sampled:
        said.append(f"R² of one against the other: {min(sampled):.4f}.")
    return " ".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help=f"of {', '.join(CELLS)}; all by default")
    given = parser.parse_args().pages
    chosen = given or list(CELLS)
    if "proteins" in chosen and not os.environ.get("FOURIERSHAP_DATA"):
        print("proteins: left out, FOURIERSHAP_DATA does not name the folder of its data")
        chosen.remove("proteins")
    cells = Cells(RESULTS / "gallery.json", PACKAGES, where=("results",), wanted=CELLS)
    cells.page = lambda: markdown(cells)
    with threadpool_limits(1):
        for page in chosen:
            cell = cells.measure(page, lambda page=page: {"lines": CELLS[page]()}, again=bool(given))
            print(page, table(cell["lines"]), remarks(cell["lines"]), sep="\n", flush=True)
    for page, cell in cells.found.items():
        text = f"{table(cell['lines'])}\n\n{remarks(cell['lines'])}"
        where = f"{describe_machine()['cpu']}, {cell.get('versions', 'versions not recorded')}"
        fill(PAGES / f"{page}.md", f"gallery {page}", f"{text} {where}: `benchmarks/gallery.py`.")


def markdown(cells: Cells) -> str:
    parts = ["# The gallery beside shap", "", f"Written by `benchmarks/gallery.py`; {cells.told()}", ""]
    for page, cell in cells.found.items():
        parts += [f"## {page}", "", f"{table(cell['lines'])}\n\n{remarks(cell['lines'])}", ""]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
