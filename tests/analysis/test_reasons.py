"""Reasons for letters: order, direction, ties, words and flags."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from fouriershap.analysis.reasons import rank_reasons


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(
        np.random.default_rng(seed).normal(size=(n, 4)), columns=["debt", "income", "age", "past"]
    )


def explainer_of(X: pd.DataFrame) -> Any:
    y = X["debt"] * 2 - X["income"] + X["age"] * X["past"]
    return fs.Explainer(GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y), X)


@pytest.mark.parametrize("direction", ["raised", "lowered", "both"])
def test_reasons_are_the_largest_values_in_their_direction(direction: str) -> None:
    X = frame(100)
    explainer = explainer_of(X)
    values = explainer.shap_values(X)
    found = explainer.reasons(X, 2, direction=direction)
    table = found.frame()
    sign = {"raised": values, "lowered": -values, "both": np.abs(values)}[direction]
    for row in range(100):
        mine = table[table["row"] == row]
        expected = np.sort(sign[row][sign[row] > 1e-6 * np.abs(values[row]).max()])[::-1][:2]
        got = mine["contribution"].to_numpy() * (-1 if direction == "lowered" else 1)
        np.testing.assert_allclose(np.abs(got) if direction == "both" else got, expected, atol=1e-6)
        assert mine["rank"].tolist() == list(range(1, len(mine) + 1))
        np.testing.assert_allclose(mine["share"], expected / np.maximum(sign[row], 0).sum(), atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0]), min_size=1, max_size=6), st.integers(0, 10**6))
def test_ties_keep_the_order_of_the_players_whatever_rounding_does(values: list[float], seed: int) -> None:
    exact = np.array([values])
    noisy = exact + np.random.default_rng(seed).normal(size=exact.shape) * 1e-9 * np.abs(exact).max()
    for direction in ("raised", "lowered", "both"):
        order, counted = rank_reasons(exact, direction, 0.0)
        other, also = rank_reasons(noisy, direction, 0.0)
        assert counted.tolist() == also.tolist()
        assert order[counted].tolist() == other[also].tolist()
        sizes = {"raised": exact, "lowered": -exact, "both": np.abs(exact)}[direction][0]
        expected = sorted((j for j in range(len(values)) if sizes[j] > 0), key=lambda j: (-sizes[j], j))
        assert order[counted].tolist() == expected


def test_a_row_has_the_same_reasons_alone_and_among_others() -> None:
    X = frame(50)
    explainer = explainer_of(X)
    whole = explainer.reasons(X)
    for row in (0, 17, 49):
        assert explainer.reasons(X[row : row + 1]).sentences(0) == whole.sentences(row)


def test_words_groups_flags_and_ids() -> None:
    X = frame(30)
    explainer = explainer_of(X)
    found = explainer.reasons(
        X.assign(id=[f"A{k}" for k in range(30)]),
        groups={"history": ["age", "past"]},
        text={
            "debt": "Your debt of {value} is high.",
            "history": lambda name, value, size: f"{name}: {value}",
        },
        actionable=["debt"],
        ids="id",
    )
    table = found.frame()
    assert set(table["reason"]) <= {"debt", "income", "history"}
    assert (table["actionable"] == (table["reason"] == "debt")).all()
    assert table["id"].tolist() == [f"A{k}" for k in table["row"]]
    values = pd.DataFrame(explainer.shap_values(X), columns=X.columns)
    history = table[table["reason"] == "history"]
    np.testing.assert_allclose(
        history["contribution"], (values["age"] + values["past"])[history["row"]], atol=1e-6
    )
    debt = table[table["reason"] == "debt"].iloc[0]
    assert debt["text"] == f"Your debt of {X['debt'][debt['row']]:.6g} is high."
    assert history["text"].iloc[0].startswith("history: age=")
    assert json.loads(found.to_json())["rows"][0]["actionable"] in (True, False)
    assert "A0" in repr(found)
    pytest.importorskip("matplotlib").use("Agg")
    assert found.plot(row=1) is not None


def test_a_sentence_is_used_in_the_direction_that_it_names() -> None:
    X = frame(60)
    explainer = explainer_of(X)
    high, low = "A debt of {value} is high.", "A debt of {value} is low."

    def texts(direction: str, text: Any) -> dict[bool, set[str]]:
        """First words of the sentences about debts, by whether these raise the output."""
        table = explainer.reasons(X, direction=direction, text=text).frame()
        table = table[table["reason"] == "debt"]
        assert len(table) > 5
        patterns = zip(table["contribution"] > 0, table["text"], table["value"], strict=True)
        return (
            pd.DataFrame([(up, text.replace(value, "V")) for up, text, value in patterns])
            .groupby(0)[1]
            .agg(set)
            .to_dict()
        )

    for direction in ("raised", "lowered", "both"):
        both = {True: {"A debt of V is high."}, False: {"A debt of V is low."}}
        found = texts(direction, {"debt": {"raises": high, "lowers": low}})
        assert found == {up: both[up] for up in found}
        found = texts(direction, {"debt": {"raises": high}})
        assert found == {up: both[True] if up else {"debt = V"} for up in found}
    assert texts("lowered", {"debt": low}) == {False: {"A debt of V is low."}}
    with pytest.warns(fs.ReportWarning, match="one sentence for 'debt'"):
        assert texts("both", {"debt": low}) == {True: {"debt = V"}, False: {"debt = V"}}
    told = {"debt": "{value} counts {contribution:+.0e}"}
    assert all(text[9] == "+" for text in texts("both", told)[True])


def test_cohorts_to_compare_with() -> None:
    X = frame(200)
    explainer = explainer_of(X)
    good = X[X["debt"] < 0]
    found = explainer.reasons(X[:5], cohort=good)
    other = explainer.with_background(good).reasons(X[:5])
    assert found.frame().equals(other.frame())
    assert not found.frame().equals(explainer.reasons(X[:5]).frame())


def test_rows_without_reasons_and_no_rows() -> None:
    X = frame(50)
    model = LinearRegression().fit(X, X["debt"])
    explainer = fs.Explainer(model, X)
    lowest = X[X["debt"] == X["debt"].min()]
    assert explainer.reasons(lowest, min_contribution=0.01).sentences(0) == []
    assert len(explainer.reasons(X[:0])) == 0
    assert len(explainer.reasons(X[:0]).frame()) == 0


def test_outputs_and_errors() -> None:
    X = frame(100)
    y = np.digitize(X["debt"], [-0.5, 0.5])
    explainer = fs.Explainer(RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y), X)
    second = explainer.reasons(X[:3], output=1).frame()
    values = explainer.shap_values(X[:3])[:, :, 1]
    assert second["contribution"].iloc[0] == pytest.approx(values[0].max())
    one = explainer_of(X)
    for call, words in (
        (lambda: explainer.reasons(X), "give output="),
        (lambda: one.reasons(X, direction="up"), "direction is 'up'"),
        (lambda: one.reasons(X, text={"dept": "x"}), "text names 'dept'"),
        (lambda: one.reasons(X, text="{worth}"), "'worth'"),
        (lambda: one.reasons(X, text="{value"), "text has"),
        (lambda: one.reasons(X, text="{value:.1f}"), "are texts"),
        (lambda: one.reasons(X, text={"debt": {"raised": "x"}}), "keys are 'raises' and 'lowers'"),
        (lambda: one.reasons(X, text={"debt": {}}), "keys are 'raises' and 'lowers'"),
        (lambda: one.reasons(X, text="{value:{other}}"), "with the field '{other}'"),
        (lambda: one.reasons(X, text="{value:{}}"), "with the field '{}'"),
        (lambda: one.reasons(X, groups={"a": ["debt"], "b": ["debt"]}), "'debt' twice"),
        (lambda: one.reasons(X, groups=["debt"]), "groups has 1 entries"),
        (lambda: one.reasons(X, actionable=["dept"]), "actionable names 'dept'"),
        (lambda: one.reasons(X, ids=[1, 2]), "2 entries"),
        (lambda: one.reasons(X, cohort_weights=[1]), "without cohort"),
        (lambda: one.reasons(X).sentences(100), "row is 100"),
    ):
        with pytest.raises(fs.InputError, match=words):
            call()


def test_truth_values_read_as_such() -> None:
    X = pd.DataFrame({"garage": [True, False] * 20, "age": np.arange(40)})
    model = DecisionTreeRegressor(random_state=0).fit(X, 3.0 * X["garage"] + X["age"] / 40)
    found = fs.TreeExplainer(model, X).reasons(X[:2], direction="both").frame()
    assert set(found["text"][found["reason"] == "garage"]) == {"garage = True", "garage = False"}
