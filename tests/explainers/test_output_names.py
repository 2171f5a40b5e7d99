"""`output_names=`: what classes and outputs are called wherever they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

import fouriershap as fs

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["debt", "income", "age"])
y = (X.debt - X.income + rng.normal(size=300) > 0).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model() -> Any:
    return LGBMClassifier(n_estimators=8, verbose=-1).fit(X, y)


@pytest.mark.parametrize("given", ["default", ["default"], ["repaid", "default"]])
def test_the_positive_class_has_the_name_everywhere(given: Any, model: Any, tmp_path: Path) -> None:
    explainer = fs.TreeExplainer(model, X[:50], output="probability", output_names=given)
    assert explainer.output_names == ("default",) and explainer.class_labels == ("1",)
    name = "probability of default"
    assert set(explainer.frame(X[:3]).output) == {name}
    assert name in explainer.drift(X[:40]).plot().get_title()
    assert name in explainer.importance(X[:40]).plot().get_title()
    assert name in explainer.reasons(X[:3]).plot().get_title()
    path = tmp_path / "page.html"
    explainer.report(X[:30], path, y=y[:30])  # whose labels are still 0 and 1
    page = path.read_text()
    assert name in page and "probability of 1" not in page
    explainer.save(tmp_path / "e.fshap")
    loaded = fs.load(tmp_path / "e.fshap")
    assert (loaded.output_names, loaded.class_labels) == (explainer.output_names, ("1",))
    assert loaded.with_background(X[50:80]).output_names == ("default",)


def test_log_odds_classes_and_numbers(model: Any) -> None:
    raw = fs.Explainer(model, X[:50], output_names="default")
    assert "log-odds of default" in raw.drift(X[:40]).plot().get_title()
    three = LogisticRegression().fit(X, y + (X.age > 1))
    explainer = fs.Explainer(three, X[:50], output_names=["low", "mid", "high"])
    assert list(explainer.frame(X[:1]).output.unique()) == ["low", "mid", "high"]
    assert explainer.class_labels == ("0", "1", "2")
    assert "prediction of mid" in explainer.importance(X[:40]).plot(output="mid").get_title()
    price = GradientBoostingRegressor(n_estimators=5).fit(X, X.debt)
    priced = fs.Explainer(price, X[:50], output_names="price")
    assert priced.class_labels is None and "mean price" in priced.drift(X[:40]).plot().get_title()


def test_black_boxes_and_what_is_fitted_to_them() -> None:
    explainer = fs.Explainer(lambda rows: rows[:, 0], X.to_numpy()[:50], output_names="score")
    assert explainer.output_names == ("score",) and explainer.fit().output_names == ("score",)
    conditional = fs.Explainer(
        LGBMClassifier(n_estimators=3, verbose=-1).fit(X, y),
        X[:90],
        feature_perturbation="conditional",
        dependence="gaussian",
        output_names="default",
    )
    assert conditional.output_names == ("default",)


@pytest.mark.parametrize("given", [["a", "b", "c"], [1], ["a", "a"], [], [""]])
def test_other_names_are_refused(given: Any, model: Any) -> None:
    with pytest.raises(fs.InputError, match="output_names"):
        fs.Explainer(model, X[:50], output_names=given)
