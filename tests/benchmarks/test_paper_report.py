"""The page and the README table come from the results alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paper import claims, fig2, fig3, figures, numbers, readme, report, store, tables
from paper.settings import DATASETS, QUICK

MACHINE = {
    "cpu": "a processor",
    "cores": 2,
    "instruction_set": "avx2",
    "python": "3.11",
    "versions": {"shap": "0"},
}


def point(setting: str, seconds: float, r2: float, **more: Any) -> dict[str, Any]:
    return {
        "setting": setting,
        "background": 10,
        "rows": 10,
        "seconds": seconds,
        "r2": r2,
        "queries": 100,
        **more,
    }


def document(cells: dict[str, Any]) -> dict[str, Any]:
    settings = {
        "name": "quick",
        "seed": 0,
        "sampler_rows": 2,
        "sampler_seconds": 1.0,
        "fastshap_background": 10,
    }
    settings |= {"fastshap_rows": 64, "fastshap_subsets": 16, "fastshap_epochs": 5, "tree_terms": 9}
    ending = {"date": "2026-01-01 00:00", "seconds": 60.0}
    outcome = {
        name: (cell if isinstance(cell.get("skipped"), str) else {"result": cell}) | ending
        for name, cell in cells.items()
    }
    return {"machine": MACHINE, "settings": settings, "cells": outcome}


@pytest.fixture
def results() -> dict[str, Any]:
    ours = {"explain_seconds": 0.001, "once_seconds": 3.0, "once_queries": 2000, "terms": 77}
    return {
        "fig2": document(
            {
                f"sgemm/{fig2.BASE}": {"points": [point("", 10.0, 0.8)]},
                f"sgemm/{fig2.BLACK_BOX}": {"points": [point("2,000 queries", 0.002, 0.98, **ours)]},
                f"sgemm/{fig2.LINREG}": {"points": [point("128", 1.0, 0.9), point("512", 4.0, 0.99)]},
                f"sgemm/{fig2.DEEP_LIFT}": {"skipped": "torch cannot be imported"},
            }
        ),
        "fig3": document(
            {
                f"gb1/{depth}": {
                    "seconds": {fig3.BASE: [0.06, 0.08], fig3.OURS: [0.01, slow]},
                    "after_others": {fig3.BASE: [0.06, 0.08], fig3.OURS: [0.04, 0.04]},
                    "r2": {fig3.BASE: 1.0, fig3.OURS: 1.0},
                    "skipped": {"pltreeshap": "pltreeshap cannot be imported"},
                }
                for depth, slow in (*((d, 0.01) for d in claims.DEPTHS), (10, 0.08))
            }
        ),
    }


def test_the_page_holds_the_numbers(results: dict[str, Any]) -> None:
    page = report.page(results, "paper")
    assert "| BlackBoxExplainer, 2,000 queries, 77 terms | 0.9800 | 5,000 |" in page
    assert "torch cannot be imported" in page
    assert "pltreeshap cannot be imported" in page
    assert "paper/figure3.png" in page
    assert "never below 7.0 times" in page and "never below 1.8. One thread" in page
    assert "## Figure 5" not in page  # no results, no section
    assert "a processor, 2 cores" in page
    changed = results["fig2"]["cells"][f"sgemm/{fig2.BLACK_BOX}"]["result"]["points"][0]
    changed["r2"] = 0.1234
    assert "0.1234" in report.page(results, "paper")


def test_claims_follow_the_numbers(results: dict[str, Any]) -> None:
    linreg, trees, exact = claims.claims(results)
    assert linreg.held is None and trees.held is None  # one model of four
    assert "not judged" in report.page(results, "paper")
    for part in results.values():
        for label, cell in list(part["cells"].items()):
            what = label.split("/")[1]
            part["cells"] |= {f"{name}/{what}": cell for name in DATASETS}
    linreg, trees, exact = claims.claims(results)
    assert linreg.held  # about 0.2 s a row against 0.2 ms
    assert trees.held  # 7 times at depths 3 to 8; depth 10 is no part of the claim
    assert "7.0x" in trees.found
    assert exact.held
    results["fig3"]["cells"]["gb1/3"]["result"]["seconds"][fig3.OURS] = [0.06, 0.08]
    assert claims.claims(results)[1].held is False
    results["fig3"]["cells"]["gb1/3"]["result"]["seconds"][fig3.OURS] = [0.01, 0.01]
    assert claims.claims(results)[1].held
    del results["fig3"]["cells"]["gb1/5"]
    assert claims.claims(results)[1].held is None  # not every depth was run
    results["fig3"]["cells"]["gb1/4"]["result"]["r2"][fig3.OURS] = float("nan")
    assert not claims.claims(results)[2].held


def test_deep_lift_is_judged_by_our_most_accurate_setting(results: dict[str, Any]) -> None:
    cells = results["fig2"]["cells"]
    ours = [point("few", 0.002, 0.9995), point("many", 0.02, 1.0)]
    for name in ("entacmaea", "sgemm"):
        cells[f"{name}/{fig2.BASE}"] = {"result": {"points": [point("", 10.0, 0.8)]}}
        cells[f"{name}/{fig2.DEEP_LIFT}"] = {"result": {"points": [point("", 0.04, 0.9)]}}
        cells[f"{name}/{fig2.BLACK_BOX}"] = {"result": {"points": ours}}

    def claim() -> claims.Claim:
        return next(found for found in claims.claims(results) if "DeepLIFT" in found.text)

    assert claim().held
    assert "entacmaea 2.0x, R² 1.0000 against 0.9000 (few: 20.0x, R² 0.9995)" in claim().found
    ours[1]["seconds"] = 0.08
    assert not claim().held  # that a less accurate one is quicker does not count


def test_one_commit_runs_again_what_is_of_another_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    monkeypatch.delenv(store.ONE_COMMIT, raising=False)
    runs: list[int] = []
    cells = [store.Cell("fig1", "a", lambda: {"runs": runs.append(1)})]
    for state, one_commit, load, expected in (
        ("first", "0", 0.5, 1),
        ("second", "0", 0.5, 1),
        ("second", "1", 9.0, 2),
        ("second", "1", 1.0, 3),  # beside other work
        ("second", "1", 1.0, 3),
    ):
        monkeypatch.setattr(store, "source", lambda state=state: state)
        monkeypatch.setattr(store.os, "getloadavg", lambda load=load: (load, load, load))
        monkeypatch.setenv(store.ONE_COMMIT, one_commit)
        store.run(cells, QUICK)
        assert len(runs) == expected
    cell = store.read(store.folder(QUICK))["fig1"]["cells"]["a"]
    assert {"commit", "source", "load", "seconds", "date"} < set(cell) and cell["source"] == "second"


def test_the_claim_of_table_2_counts_compiling(results: dict[str, Any]) -> None:
    def cell(first: float, explain: float, r2: float) -> dict[str, Any]:
        point = {"background": 400, "rows": 400, "explain_seconds": explain, "first_seconds": first}
        more = {
            "terms": 9,
            "representation": "Spectrum",
            "fitted": "x",
            "once_seconds": 1.0,
            "once_queries": 10,
        }
        return {"points": [point], "r2": r2, **more}

    def held(**others: dict[str, Any]) -> bool:
        results["table2"] = document({tables.PAPER: cell(0.03, 0.001, 0.8), **others})
        return claims.claims(results)[-1].held

    assert not held()
    assert not held(trees=cell(0.03, 0.001, 0.9))
    assert not held(swht=cell(0.01, 0.001, 0.7))
    assert held(trees=cell(0.01, 0.001, 0.9))


def test_seconds_at_an_accuracy() -> None:
    curve = [(1.0, 0.9), (4.0, 0.99)]
    assert numbers.seconds_at(curve, 0.9) == pytest.approx(1.0)
    assert numbers.seconds_at(curve, 1 - 10**-1.5) == pytest.approx(2.0)
    assert numbers.seconds_at(curve, 0.5) == pytest.approx(1.0)
    assert numbers.seconds_at(curve, 0.9999) == pytest.approx(4.0)


def test_the_readme_table_is_written_between_its_markers(results: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- benchmarks -->\nold\n<!-- /benchmarks -->\nafter\n")
    for _ in range(2):
        readme.update(page, results)
        text = page.read_text()
        assert text.startswith("before\n<!-- benchmarks -->\n| black box")
        assert text.endswith("<!-- /benchmarks -->\nafter\n")
        assert "R² 0.9800, 5,000x" in text
        assert "old" not in text
    page.write_text("no markers")
    with pytest.raises(SystemExit, match="must have"):
        readme.update(page, results)


def test_figures_are_drawn(results: dict[str, Any], tmp_path: Path) -> None:
    figures.draw(results, tmp_path)
    names = {"figure2", "figure2-queries", "figure3"}
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.png" for name in names}


def test_finished_cells_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    monkeypatch.setattr(store.os, "getloadavg", lambda: (0.5, 0.5, 0.5))
    runs: list[str] = []

    def work() -> dict[str, Any]:
        runs.append("work")
        return {"value": 1}

    def skipped() -> dict[str, Any]:
        runs.append("skipped")
        raise store.Skipped("not installed")

    def fails() -> dict[str, Any]:
        runs.append("fails")
        raise ValueError("a peer broke")

    cells = [store.Cell("fig1", run.__name__, run) for run in (work, skipped, fails)]
    store.run(cells, QUICK)
    store.run(cells, QUICK)
    assert runs == ["work", "skipped", "fails", "skipped", "fails"]
    found = store.read(store.folder(QUICK))
    assert numbers.results_of(found, "fig1") == {"work": {"value": 1}}
    assert numbers.left_out(found) == [
        ("fig1, skipped", "not installed"),
        ("fig1, fails", "failed: ValueError: a peer broke"),
    ]
