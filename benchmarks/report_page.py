"""Pages of `Explainer.report`, how large they are and how soon they show: `python benchmarks/report_page.py`.

Needs playwright and a Chromium (`apt-get install chromium`, or `playwright install chromium`).
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import lightgbm
from playwright.sync_api import sync_playwright
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import fouriershap as fs

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


def pages(folder: Path, n_rows: int) -> dict[str, tuple[Path, float]]:
    """What is measured: the file of each page, and the seconds that it took to write."""
    X, y = make_classification(n_rows, 30, n_informative=12, random_state=0)
    boosted = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1).fit(X[:20_000], y[:20_000])
    forest = RandomForestClassifier(100, n_jobs=1, random_state=0).fit(X[:5000], y[:5000])
    explainer = fs.Explainer(boosted, X[:1000])
    explainer.save(folder / "lost.fshap")
    lost: Any = fs.load(folder / "lost.fshap")
    everything: dict[str, Any] = {"rows": n_rows, "max_bytes": 200_000_000}
    wanted: dict[str, tuple[Any, int, dict[str, Any]]] = {
        "LightGBM, 100 x 31 leaves": (explainer, n_rows, {}),
        "the same, all rows in the page": (explainer, n_rows, everything),
        "the same, from a file without a background": (lost, n_rows, {}),
        "random forest, 100 trees, 100 background rows": (fs.Explainer(forest, X[:100]), 2000, {}),
    }
    found = {}
    for k, (name, (one, n, options)) in enumerate(wanted.items()):
        begin = time.perf_counter()
        page = one.report(X[:n], folder / f"{k}.html", y[:n], drift=X[: n // 2], **options)
        found[name] = (page, time.perf_counter() - begin)
    return found


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
    lines = [
        f"{options.rows:,} rows of 30 features (2,000 for the forest), with labels and drift. The page's own clock in "
        f"Chromium, the quickest of {options.repeats} times: until the facts, the first row with its waterfall, and "
        "the last chart are there; and the script time of a move in the what-if part, median of 30.",
        "",
        "| page | written in s | MB | facts, ms | row, ms | charts, ms | move, ms |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    chromium = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (page, seconds) in pages(Path(folder), options.rows).items():
            best = opened(browser, page, options.repeats)
            size = page.stat().st_size / 1e6
            numbers = " | ".join(f"{best[mark]:.0f}" for mark in ("facts", "row", "charts"))
            lines.append(f"| {name} | {seconds:.1f} | {size:.1f} | {numbers} | {best['move']:.1f} |")
        browser.close()
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "report_page.md").write_text(
        "\n".join(["# Report pages", "", *lines, ""])
    )


if __name__ == "__main__":
    main()
