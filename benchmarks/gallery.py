"""What shap and shapiq take for the pages of docs/gallery: `python benchmarks/gallery.py [credit drift ...]`.

Each page's own code makes the model and the rows; then the libraries explain the same, shapiq where it is a model of
trees (its own C++; its samplers stand in `blackbox.py`). CPU seconds on one thread. What would take them hours is
measured on fewer rows, of shap on fewer background rows, too, and multiplied. Writes results/gallery.json,
results/gallery.md, and the last part of each page.
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
import shapiq
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, describe_machine
from _pages import ROOT, fill, markdown_table

PAGES = ROOT / "docs" / "gallery"
SAME = 1e-4  # of the largest value: sums in float32
PACKAGES = ("shap", "shapiq", "scikit-learn", "xgboost")


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
    """One comparison; ``share`` of what is named was measured of the others, the rest is multiplied."""
    return {"what": what, "fouriershap": ours, "shap": theirs / share, "share": share, "note": note}


def trees(
    model: Any, X: Any, background: Any, few: tuple[int, int], coded: Any | None = None
) -> dict[str, Any]:
    """A tree model: all of it by us, ``few`` rows and background rows by the others, of a model of codes if given."""
    ours, _ = cpu(lambda: fs.TreeExplainer(model, background, n_jobs=1).shap_values(X))
    share = few[0] * few[1] / (len(X) * len(background))
    made = line(f"{len(X):,} rows against {len(background):,}", ours, math.nan, share)
    if coded is None:
        return made | by_others(model, X, background, few)
    return made | by_others(coded, _codes(X), _codes(background), few)


def by_others(model: Any, X: Any, background: Any, few: tuple[int, int]) -> dict[str, float]:
    """Seconds of shap and shapiq for all of it, and by how much they differ from ours.

    What shap takes is multiplied by rows and background rows. shapiq takes a whole background row by row for less than
    that: it gets all of it, and fewer rows.
    """
    n_rows = max(few[0] // 5, 1)
    parts = {"shap": (X[: few[0]], background[: few[1]]), "shapiq": (X[:n_rows], background)}
    found = {}
    for name, (rows, others) in parts.items():
        seconds, found[f"{name} differs"] = OTHERS[name](model, rows, others)
        found[name] = seconds * len(X) * len(background) / (len(rows) * len(others))
    return found


def by_shap(model: Any, X: Any, background: Any) -> tuple[float, float]:
    """Its seconds, and by which part of the largest value it differs from ours; all background rows count."""
    seen, known = _codes(X), _codes(background)
    masker = shap.maskers.Independent(known, max_samples=len(known))
    explain = shap.TreeExplainer(model, masker, feature_perturbation="interventional")
    seconds, values = cpu(lambda: explain.shap_values(seen, check_additivity=False))
    return seconds, _apart(model, X, background, np.asarray(values))


def by_shapiq(model: Any, X: Any, background: Any) -> tuple[float, float]:
    """The same of shapiq, which explains a class at a time."""
    seen, known = _codes(X), _codes(background)
    several = len(getattr(model, "classes_", ())) > 2
    options = {"mode": "interventional", "reference_dataset": known, "index": "SV", "max_order": 1}
    explainers = [
        shapiq.TreeExplainer(model, class_index=k, backend="shapiq", **options)
        for k in (range(len(model.classes_)) if several else (None,))
    ]

    def explain() -> np.ndarray:
        by_class = [[each.explain(row).get_n_order_values(1) for row in seen] for each in explainers]
        return np.moveaxis(np.array(by_class), 0, -1)

    seconds, values = cpu(explain)
    return seconds, _apart(model, X, background, values)


def _apart(model: Any, X: Any, background: Any, values: np.ndarray) -> float:
    mine = fs.TreeExplainer(model, background, check=False, precision="double").shap_values(X)
    return float(np.abs(values.reshape(mine.shape) - mine).max() / np.abs(mine).max())


OTHERS = {"shap": by_shap, "shapiq": by_shapiq}


def with_labels(model: Any, X: Any, background: Any, y: Any) -> dict[str, Any]:
    """A model of strings, which shap cannot read: others are timed on a model of codes, trained as numbers."""
    few = (20, 500)
    coded = clone(model).set_params(categorical_features=None).fit(_codes(background), y)
    made = trees(model, X, background, few, coded)
    _, wrong = by_shap(model, X[: few[0]], background[: few[1]])
    truth = by_definition(coded, _codes(X[:5]), _codes(background[:30]))
    mine = fs.TreeExplainer(coded, _codes(background[:30]), precision="double").shap_values(_codes(X[:5]))
    exact = float(np.abs(mine - truth).max() / np.abs(truth).max())
    return made | {"strings": wrong, "definition": exact}


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
    months = line("drift by month, with intervals", whole, 2 * rows["shap"])
    return [rows, months | {"share": rows["share"], "shapiq": 2 * rows["shapiq"]}]


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
    asked = fs.BlackBoxExplainer(network, X[:1000], data=X[:5000], random_state=0, n_jobs=1)
    fitting, explainer = cpu(lambda: asked.fit(new, budget=5000), rounds=1)
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
    many = new.loc[new.index.repeat(1000)]
    long, _ = cpu(lambda: explainer.shap_values(many), rounds=1)
    million = line("1,000,000 rows against 1,000", fitting + long, theirs, 3 / 1e6, "KernelExplainer")
    return [made | {"r2": float(r2), "fitting": fitting, "explaining": explaining}, million]


def proteins() -> list[dict[str, Any]]:
    names = session("proteins")
    measured, sites = names["measured"], len(names["sites"])
    X = (np.arange(1 << sites)[:, None] >> np.arange(sites)[::-1]) & 1

    def ours() -> Any:
        return fs.spectra.shap_values(fs.walsh_hadamard(measured, n_bits=sites), X, X, n_jobs=1)

    seconds, _ = cpu(ours)
    asked = shap.KernelExplainer(lambda rows: measured(rows.astype(int)), X[::64])
    theirs, truth = cpu(lambda: asked.shap_values(X[:2], silent=True), rounds=1)
    part = fs.spectra.shap_values(fs.walsh_hadamard(measured, n_bits=sites), X[:2], X[::64])
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
             f"{about}{duration(one['shapiq'])}" if "shapiq" in one else "",
             *(_times(one, name) for name in OTHERS))
        )  # fmt: skip
    header = ("CPU time, one thread", "fouriershap", *OTHERS, *(f"x {name}" for name in OTHERS))
    return markdown_table(header, rows)


def _times(one: dict[str, Any], name: str) -> str:
    return f"{one[name] / one['fouriershap']:,.0f}" if name in one else ""


def remarks(lines: list[dict[str, Any]]) -> str:
    """What a reader of the table should know."""
    said = []
    if any(one["share"] < 1 for one in lines):
        said.append("~: measured on fewer rows and multiplied.")
    if any("shapiq" in one for one in lines):
        said.append(
            "shapiq: its own C++; where woodelf is installed, it leaves calls of this size to that "
            "(`benchmarks/results/trees.md` has woodelf)."
        )
    apart = {
        name: max(one[f"{name} differs"] for one in lines if f"{name} differs" in one)
        for name in OTHERS
        if any(f"{name} differs" in one for one in lines)
    }
    if apart and max(apart.values()) < SAME:
        said.append(f"Values were compared: they differ by {max(apart.values()):.0e} of the largest at most.")
    elif apart:
        exact = max(one["definition"] for one in lines if "definition" in one)
        off = (
            f"{name}'s are off by up to {gap:.1%} of the largest"
            for name, gap in apart.items()
            if gap >= SAME
        )
        said.append(
            f"Values were compared: {', '.join(off)}, and ours are those of the definition to {exact:.0e}."
        )
    wrong = [one["strings"] for one in lines if "strings" in one]
    if wrong:
        said.append(
            "The others were given a model of codes, trained as numbers. Of the model with strings shap takes no "
            f"rows; given codes for them, it answers values that are off by up to {max(wrong):.0%} of the largest, "
            "without a word."
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
