"""Parts of the report that answer questions beyond the row, in a real browser: each says what Python says."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas as pd
import pytest

import fouriershap as fs

pytest.importorskip("playwright")

from browser import OpenPage, launch
from fouriershap.report._subject import RECORD


class Loans(NamedTuple):
    """A page with everything on it."""

    explainer: fs.Explainer
    X: pd.DataFrame  # features
    y: np.ndarray
    new: pd.DataFrame
    page: Path
    model: Any


def make_loans(folder: Path, n_rows: int = 300) -> Loans:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.gamma(4, 10, n_rows).round(1), "debt": rng.gamma(2, 5, n_rows).round(1)})
    X["age"] = rng.integers(20, 75, n_rows)
    X["work"] = pd.Categorical(rng.choice(["=salaried", "none"], n_rows))
    X["savings"] = X["income"].mask(rng.random(n_rows) < 0.1).astype("float32") * np.float32(0.1)
    y = np.where(X["debt"] / X["income"] + rng.normal(size=n_rows) / 9 > 0.25, "default", "paid")
    model = lightgbm.LGBMClassifier(n_estimators=15, num_leaves=8, verbose=-1, n_jobs=1).fit(X, y)
    explainer = fs.Explainer(model, X[:40], output="probability")
    new = X[100:].assign(debt=X["debt"][100:] * 2)
    shown = X.assign(number=[f"L-{k}" for k in range(n_rows)], outcome=y)
    page = explainer.report(
        shown,
        folder / "loans.html",
        "outcome",
        ids="number",
        drift=new,
        cohorts="work",
        text={
            "debt": "A debt of {value} counts {contribution:+.3f}.",
            "income": {"raises": "An income of {value} is high.", "lowers": "An income of {value} is low."},
            "age": {"raises": "An age of {value} helps."},
        },
        facts={"Approved by": "nobody", "owner": "risk team", "Limits": "new customers"},
        title="Loans",
        interactions=3,
    )
    return Loans(explainer, X, y, new, page, model)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch() as opened:
        yield opened


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Loans:
    return make_loans(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def opened(browser: Any, loans: Loans) -> OpenPage:
    return OpenPage(browser, loans.page)


def facts_of(page: Any, where: str) -> dict[str, str]:
    terms = page.locator(f"{where} dt").all_text_contents()
    texts = page.locator(f"{where} dd:not(.meaning)").all_text_contents()
    return dict(zip(terms, texts, strict=True))


def table_of(page: Any, where: str) -> dict[str, list[str]]:
    lines = page.locator(f"{where} tbody tr").all()
    return {line.locator("th").text_content(): line.locator("td").all_text_contents() for line in lines}


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_the_glance_names_class_date_and_versions(opened: OpenPage) -> None:
    facts = facts_of(opened.page, "#facts")
    assert facts["Explained"] == "probability of paid, log-odds of paid"
    assert facts["Model class"] == "lightgbm.LGBMClassifier"
    assert facts["Approved by"] == "nobody"
    record = facts_of(opened.page, "#record")
    stated = {"Owner": "risk team", "Limits": "new customers"}
    assert record == {name: stated.get(name, "not stated") for name in RECORD}
    assert "not a cause" in opened.page.locator("#meaning").text_content()
    assert "UTC" in facts["Written"]
    assert f"lightgbm {lightgbm.__version__}" in facts["Versions"]
    assert opened.messages == []
    assert opened.requests == [opened.page.url]


def test_performance(opened: OpenPage, loans: Loans) -> None:
    metrics = {name: number(text) for name, text in facts_of(opened.page, "#metrics").items()}
    p = loans.explainer.predict(loans.X)
    right = ((p >= 0.5) == (loans.y == "paid")).mean()
    assert metrics["Accuracy"] == pytest.approx(right, abs=1e-4)
    assert 0.5 < metrics["AUC"] <= 1
    assert metrics["Share of paid"] == pytest.approx((loans.y == "paid").mean(), abs=1e-4)
    assert opened.page.locator("#performance-chart .scatterlayer .point").count() >= 2


def test_drift_and_groups(opened: OpenPage, loans: Loans) -> None:
    drift = loans.explainer.drift(loans.new)
    told = table_of(opened.page, "#drift-table")
    for k, name in enumerate(drift.names):
        expected = (drift.values[0, k, 0], drift.low[0, k, 0], drift.high[0, k, 0])
        np.testing.assert_allclose([number(text) for text in told[name]], expected, rtol=1e-3, atol=1e-6)
    cohorts = loans.explainer.cohorts(loans.X, "work")
    told = table_of(opened.page, "#cohorts-table")
    for k, name in enumerate(cohorts.names):
        means = [number(text) for text in told[name]][::3]
        np.testing.assert_allclose(means, cohorts.values[:, k, 0], rtol=1e-3, atol=1e-6)
    assert "=salaried" in opened.page.locator("#cohorts-means").text_content()


def test_importance_has_intervals(opened: OpenPage, loans: Loans) -> None:
    importance = loans.explainer.importance(loans.X)
    told = table_of(opened.page, "#importance-table")
    for k, name in enumerate(importance.names):
        expected = (importance.values[k, 0], importance.low[k, 0], importance.high[k, 0])
        np.testing.assert_allclose([number(text) for text in told[name]], expected, rtol=1e-3, atol=1e-6)


def test_reasons_by_direction_in_the_callers_words(opened: OpenPage, loans: Loans) -> None:
    page = opened.page
    values = loans.explainer.shap_values(loans.X)
    page.fill("#find-id", "L-123")
    page.keyboard.press("Enter")
    raised = loans.explainer.reasons(loans.X[123:124], 5, direction="raised").reason
    lowered = loans.explainer.reasons(loans.X[123:124], 5, direction="lowered").reason
    for where, names, sign in (("#raised", raised, 1), ("#lowered", lowered, -1)):
        items = page.locator(f"{where} li:not(.none)").all_text_contents()
        assert len(items) == len(names)
        for item, name in zip(items, names, strict=True):
            phi = values[123, list(loans.X).index(name)]
            assert sign * phi > 0
            if name == "debt":
                begin = f"A debt of {loans.X['debt'][123]:g} counts {phi:+.3f}.".replace("-", "−")
            elif name == "income":
                begin = f"An income of {loans.X['income'][123]:g} is {'high' if sign > 0 else 'low'}."
            else:
                begin = (
                    f"An age of {loans.X['age'][123]} helps." if name == "age" and sign > 0 else f"{name} = "
                )
            assert item.startswith(begin)
    page.fill("#find-id", "nobody")
    page.keyboard.press("Enter")
    assert "no row “nobody”" in page.locator("#find-answer").text_content()
    assert page.locator("#row-answer").text_content().startswith("Row L-123: probability of paid ")


def test_probability_and_margin_stand_beside_each_other(opened: OpenPage, loans: Loans) -> None:
    page = opened.page
    page.fill("#find-id", "L-7")
    page.keyboard.press("Enter")
    row = loans.X[7:8]
    margin = fs.Explainer(loans.explainer.representation, loans.X[:40])
    for where, explainer in (("#row-waterfall", loans.explainer), ("#second-waterfall", margin)):
        listed = page.locator(f"{where} li[data-player]").evaluate_all(
            "items => items.map((i) => [Number(i.dataset.player), Number(i.querySelector('data').value)])"
        )
        np.testing.assert_allclose(
            [value for _, value in sorted(listed)], explainer.shap_values(row)[0], atol=1e-6
        )
    shown = page.locator("#answer").text_content()
    assert shown.startswith("Log-odds of paid")
    assert f"probability {100 * loans.explainer.predict(row)[0]:.1f} %" in shown


def test_two_rows_are_compared(opened: OpenPage, loans: Loans) -> None:
    page = opened.page
    page.fill("#find-id", "L-0")
    page.keyboard.press("Enter")
    other = page.locator("#row-table tbody tr").nth(3).locator("button").nth(1)
    other.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Compare with row L-3"
    values = loans.explainer.shap_values(loans.X)
    told = table_of(page, "#comparison-table")
    for k, name in enumerate(loans.X):
        expected = values[0, k] - values[3, k]
        assert number(told[name][-1]) == pytest.approx(expected, abs=2e-3)
    assert page.locator("#second-waterfall h3").text_content().startswith("Row L-3")
    page.click("#compare-end")
    assert page.locator("#comparison").is_hidden()


def test_number_boxes_show_the_digits_that_came(opened: OpenPage, loans: Loans) -> None:
    page = opened.page
    row = int(np.flatnonzero(loans.X["savings"].notna())[20])
    page.fill("#find-id", f"L-{row}")
    page.keyboard.press("Enter")
    assert page.input_value("#input-4") == str(loans.X["savings"][row])
    assert page.locator(".control.changed").count() == 0


def test_rows_as_csv_and_everything_as_json(opened: OpenPage, loans: Loans, tmp_path: Path) -> None:
    page = opened.page
    page.fill("#search", "=salaried")
    with page.expect_download() as waiting:
        page.click("#save-csv")
    waiting.value.save_as(tmp_path / "rows.csv")
    assert waiting.value.suggested_filename == "Loans-rows.csv"
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    mine = loans.X["work"] == "=salaried"
    assert len(rows) == mine.sum()
    assert {row["work"] for row in rows} == {"'=salaried"}  # what a spreadsheet would run is text
    np.testing.assert_allclose([float(row["debt"]) for row in rows], loans.X["debt"][mine])
    shap = [float(row["SHAP of debt (probability of paid)"]) for row in rows]
    np.testing.assert_allclose(shap, loans.explainer.shap_values(loans.X[mine])[:, 1], atol=1e-6)
    page.fill("#search", "")
    with page.expect_download() as waiting:
        page.click("#save-json")
    waiting.value.save_as(tmp_path / "page.json")
    whole = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert whole["title"] == "Loans"
    assert len(whole["rows"]) == len(loans.X)
    assert whole["rows"][5]["id"] == "L-5"
    assert whole["rows"][5]["observed"] == loans.y[5]
    assert {"importance", "metrics", "drift", "cohorts", "facts", "written"} <= set(whole)
    assert opened.messages == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_at_400_pixels(scheme: str, browser: Any, loans: Loans) -> None:
    viewport = {"width": 400, "height": 800}
    page = OpenPage(browser, loans.page, viewport=viewport, color_scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    boxes = """(where) => [...document.querySelectorAll(where)].map((e) => e.getBoundingClientRect())
      .map(({ left, right, top, bottom }) => [left, right, top, bottom])"""
    across = sorted(page.evaluate(boxes, "#interactions .xtick text"))
    assert all(first[1] <= second[0] + 4 for first, second in pairwise(across))
    down = sorted(page.evaluate(boxes, "#interactions .ytick text"), key=lambda box: box[2])
    assert all(first[3] <= second[2] + 4 for first, second in pairwise(down))
    assert min(box[0] for box in down) >= 0


def test_charts_fit_the_paper_and_the_window_again(browser: Any, loans: Loans) -> None:
    page = OpenPage(browser, loans.page, viewport={"width": 1240, "height": 800}).page
    width = "() => document.querySelector('#dependence .main-svg').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(width) == 680
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.wait_for_timeout(100)
    assert page.evaluate(width) == pytest.approx(before, abs=2)


def test_what_needs_no_chart_is_shown_before_the_charts(browser: Any, loans: Loans) -> None:
    page = browser.new_page()
    page.add_init_script("""new MutationObserver(() => {
      if (window.seen === undefined && document.querySelector("#row-waterfall li")) window.seen = typeof Plotly;
    }).observe(document, { childList: true, subtree: true });""")
    page.goto(loans.page.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    assert page.evaluate("window.seen") == "undefined"
    assert page.evaluate("typeof Plotly") == "object"


def test_sets_of_features(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 5)), columns=["a", "b", "c", "d", "<i>e</i>"])
    y = 3 * X["a"] * (X["b"] > 0) * (X["c"] > 0) + X["d"] * X["<i>e</i>"]
    model = lightgbm.LGBMRegressor(n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1).fit(X, y)
    explainer = fs.TreeExplainer(model, X[:50])
    opened = OpenPage(browser, explainer.report(X, tmp_path / "sets.html", interactions=3))
    found = table_of(opened.page, "#sets-table")
    expected = explainer.interactions(X[:200], 3, min_order=2)
    strength = dict(zip(expected.names, expected.strength, strict=True))
    mean = dict(zip(expected.names, expected.values.mean(axis=0), strict=True))
    listed = {name.replace(" × ", " x "): cells for name, cells in found.items()}
    assert "a x b x c" in listed
    triples = [name for name in expected.names if name.count(" x ") == 2][:10]
    assert set(listed) == {*expected.names[:10], *triples}
    for name, (size, mine, signed) in listed.items():
        assert int(size) == name.count(" x ") + 1
        assert number(mine) == pytest.approx(strength[name], rel=1e-3)
        assert number(signed) == pytest.approx(mean[name], rel=1e-3, abs=1e-4)
    assert opened.page.locator("#sets .barlayer .point").count() == min(len(listed), 20)
    assert opened.messages == []
    own = explainer.interactions(X[:20], 2, index="STII", top_k=3, min_order=2)
    opened = OpenPage(browser, explainer.report(X, tmp_path / "own.html", interactions=own))
    assert "STII" in opened.page.locator("#sets-words").text_content()
    assert len(table_of(opened.page, "#sets-table")) == 3
    with pytest.raises(fs.InputError, match="interactions is 1; give an integer >= 2"):
        explainer.report(X, tmp_path / "no.html", interactions=1)


def test_all_of_many_rows(browser: Any, tmp_path: Path) -> None:
    """The first rows are there at once, the others are read behind them and replace nothing."""
    n = 12_000
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 3)), columns=list("abc"))
    model = lightgbm.LGBMRegressor(n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1).fit(X, X["a"] * X["b"])
    explainer = fs.TreeExplainer(model, X[:50])
    names = [f"id-{k}" for k in range(n)]
    path = explainer.report(X, tmp_path / "many.html", ids=names, max_rows=n, max_bytes=50_000_000)
    opened = OpenPage(browser, path)
    page = opened.page
    assert "12,000 explained" in facts_of(page, "#facts")["Rows"]
    assert page.locator("#found").text_content() == "12,000 rows"
    for button in ("#save-csv", "#save-json"):
        assert page.locator(button).is_enabled()
    page.fill("#find-id", "id-11999")
    page.click("#find button")
    said = number(page.locator("#row-table tr.chosen td").nth(2).text_content())
    assert said == pytest.approx(explainer.predict(X[-1:])[0], rel=1e-3, abs=1e-4)
    with page.expect_download() as saved:
        page.click("#save-csv")
    with Path(saved.value.path()).open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["id"] for line in lines] == names
    shap = np.array([[float(line[f"SHAP of {name}"]) for name in "abc"] for line in lines])
    np.testing.assert_allclose(shap, explainer.shap_values(X), atol=1e-6)
    assert opened.messages == []


def test_what_if_says_which_scale_it_is_on(opened: OpenPage) -> None:
    said = opened.page.locator("#what-if-scale").text_content()
    assert "those of the log-odds of paid, not of the probability of paid" in said


def test_sets_of_a_probability_are_those_of_its_margin(opened: OpenPage, loans: Loans) -> None:
    heads = opened.page.locator("#sets-table thead th").all_text_contents()
    assert heads[2] == "mean |value| (log-odds of paid)"
    margin = fs.Explainer(loans.model, loans.X[:40]).interactions(loans.X[:200], 3, min_order=2)
    strength = dict(zip(margin.names, margin.strength, strict=True))
    found = table_of(opened.page, "#sets-table")
    assert len(found) >= 10
    for name, (_, mine, _) in found.items():
        assert number(mine) == pytest.approx(strength[name.replace(" × ", " x ")], rel=1e-3, abs=1e-9)


def test_the_unit_stands_wherever_a_number_has_it(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"rooms": rng.integers(1, 4, 200), "area": rng.normal(60, 9, 200).round(1)})
    y = 3 * X["rooms"] + X["area"]
    model = lightgbm.LGBMRegressor(n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1).fit(X, y)
    explainer = fs.TreeExplainer(model, X[:50])
    path = explainer.report(X, tmp_path / "rent.html", y, drift=X[50:], cohorts="rooms", unit="euros")
    page = OpenPage(browser, path).page
    found = facts_of(page, "#metrics")
    assert not found.pop("R²").endswith("euros")
    assert found and all(text.endswith(" euros") for text in found.values())
    assert page.locator("#row-table th").nth(1).text_content() == "prediction (euros)"
    assert page.locator("#row-waterfalls li").last.text_content().startswith("prediction (euros)")
    answer = page.locator("#row-answer").text_content()
    assert answer.count(" euros") == 2, answer  # predicted and observed
    assert facts_of(page, "#facts")["Expected value"].endswith(" euros")
    assert "euros in the background" in page.locator("#drift-means").text_content()
    assert "rooms = 1: " in page.locator("#cohorts-means").text_content()
    slider = page.locator("#what-if input[type=range]").first
    slider.fill(slider.get_attribute("max"))
    assert page.locator("#answer").text_content().count(" euros") == 3  # now, before, difference


def test_a_unit_names_what_is_explained_or_what_the_link_predicts(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    classes = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1).fit(X, X["a"] > 0)
    path = fs.TreeExplainer(classes, X[:50]).report(X, tmp_path / "c.html", unit="log-odds of default")
    page = OpenPage(browser, path).page
    assert facts_of(page, "#facts")["Explained"] == "log-odds of default"
    assert "log-odds of 1" not in page.locator("body").text_content()
    counts = lightgbm.LGBMRegressor(objective="poisson", n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1)
    y = np.exp(X["a"]).round()
    path = fs.TreeExplainer(counts.fit(X, y), X[:50]).report(X, tmp_path / "p.html", y, unit="visits")
    page = OpenPage(browser, path).page
    found = facts_of(page, "#metrics")
    assert found["MAE"].endswith(" visits")
    answer = page.locator("#row-answer").text_content()
    assert answer.count(" visits") == 2, answer  # predicted and observed, not the log
    assert "log of the prediction" in page.locator("#importance").text_content()


def test_charts_are_as_high_after_printing_as_before(browser: Any, loans: Loans) -> None:
    page = OpenPage(browser, loans.page).page
    heights = "() => [...document.querySelectorAll('.chart')].map((chart) => chart.clientHeight)"
    before = page.evaluate(heights)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.wait_for_timeout(100)
    assert page.evaluate(heights) == before
