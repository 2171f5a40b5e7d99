"""Pages of `Explainer.report`, how large they are and how soon they show: `python benchmarks/report_page.py`.

Needs playwright and a Chromium (`apt-get install chromium`, or `playwright install chromium`).
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

import lightgbm
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, cores
from _pages import markdown_table

PACKAGES = ("lightgbm", "scikit-learn", "playwright")
PAGES = (
    "LightGBM, 100 x 31 leaves",
    "the same, all rows in the page",
    "the same, from a file without a background",
    "random forest, 100 trees, 100 background rows",
)
HEADER = ("page", "written in s", "MB", "facts, ms", "row, ms", "charts, ms", "move, ms")
# When the first facts, the first row and the last chart were there, by the page's own clock.
WATCH = """
window.marks = {};
new MutationObserver(() => {
  const mark = (name, there) => { if (there && !(name in marks)) marks[name] = performance.now(); };
  mark("facts", document.querySelector("#facts dd"));
  mark("row", document.querySelector("#row-waterfall li"));
  mark("charts", document.documentElement.dataset.ready);
}).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-ready"] });
"""
MOVE = """() => {
  const range = document.querySelector(".control input[type=range]");
  if (!range) return NaN;
  return Array.from({ length: 30 }, (_, k) => {
    range.value = Number(range.min) + ((range.max - range.min) * k) / 30;
    const begin = performance.now();
    range.dispatchEvent(new Event("input"));
    return performance.now() - begin;
  }).sort((a, b) => a - b)[15];
}"""


@cache
def models(n_rows: int) -> tuple[Any, Any, Any, Any]:
    """Rows, labels, and two models of them."""
    X, y = make_classification(n_rows, 30, n_informative=12, random_state=0)
    boosted = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1).fit(X[:20_000], y[:20_000])
    forest = RandomForestClassifier(100, n_jobs=1, random_state=0).fit(X[:5000], y[:5000])
    return X, y, boosted, forest


def written(name: str, folder: Path, n_rows: int) -> tuple[Path, float]:
    """The file of a page, and the seconds that it took to write."""
    X, y, boosted, forest = models(n_rows)
    explainer: Any = fs.Explainer(boosted, X[:1000])
    options: dict[str, Any] = {}
    if name == PAGES[1]:
        options = {"max_rows": n_rows, "max_bytes": 200_000_000}
    elif name == PAGES[2]:
        explainer.save(folder / "lost.fshap")
        explainer = fs.load(folder / "lost.fshap")
    elif name == PAGES[3]:
        explainer, n_rows = fs.Explainer(forest, X[:100]), 2000
    begin = time.perf_counter()
    page = explainer.report(X[:n_rows], folder / "page.html", y[:n_rows], drift=X[: n_rows // 2], **options)
    return page, time.perf_counter() - begin


def measure(name: str, browser: Any, n_rows: int, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        page, seconds = written(name, Path(folder), n_rows)
        size = page.stat().st_size / 1e6
        return {"seconds": seconds, "megabytes": size} | opened(browser, page, repeats)


def opened(browser: Any, page: Path, repeats: int) -> dict[str, float]:
    """The quickest of several times that a page was opened, in milliseconds."""
    best: dict[str, float] = {}
    for _ in range(repeats):
        tab = browser.new_page(viewport={"width": 1240, "height": 900})
        tab.add_init_script(WATCH)
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=120_000)
        marks = tab.evaluate("marks") | {"move": tab.evaluate(MOVE)}
        best = {name: min(value, best.get(name, value)) for name, value in marks.items()}
        tab.close()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    kept = Cells(RESULTS / "report_page.json", PACKAGES, wanted=PAGES)
    kept.beside = {"rows": options.rows, "repeats": options.repeats}
    kept.page = lambda: markdown(kept, options.rows, options.repeats)
    chromium = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in PAGES:
            work = partial(measure, name, browser, options.rows, options.repeats)
            print(name, kept.measure(name, work, threads=cores()), flush=True)
        browser.close()


def markdown(kept: Cells, n_rows: int, repeats: int) -> str:
    text = (
        f"{n_rows:,} rows of 30 features (2,000 for the forest), with labels and drift. The page's own clock in "
        f"Chromium, the quickest of {repeats} times: until the facts, the first row with its waterfall, and "
        "the last chart are there; and the script time of a move in the what-if part, median of 30."
    )
    lines = [
        (
            *(name, f"{cell['seconds']:.1f}", f"{cell['megabytes']:.1f}"),
            *(f"{cell[mark]:.0f}" for mark in ("facts", "row", "charts")),
            "" if cell["move"] is None else f"{cell['move']:.1f}",
        )
        for name, cell in kept.found.items()
    ]
    return "\n".join(["# Report pages", "", kept.told(), "", text, "", markdown_table(HEADER, lines), ""])


if __name__ == "__main__":
    main()
