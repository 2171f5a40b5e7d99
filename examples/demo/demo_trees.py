"""A gradient-boosted model on real data, explained by fouriershap and by shap side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fouriershap as fs
from demo_section import Section, in_seconds, timed

_MANY = 200_000


def train() -> tuple[Any, NDArray[np.float32], NDArray[np.int64], list[str]]:
    """Train XGBoost on the Wisconsin breast cancer data of scikit-learn: 569 tumours, 30 measurements."""
    import xgboost
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    X, malignant = data.data.astype(np.float32), 1 - data.target
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=5, learning_rate=0.1, random_state=0)
    return model.fit(X, malignant), X, malignant, [str(name) for name in data.feature_names]


def run(folder: Path) -> Section:
    """Explain the model, compare with shap, and write a report page."""
    import shap

    model, X, malignant, names = train()
    explainer, building = timed(lambda: fs.TreeExplainer(model, X, feature_names=names).compile())
    phi, ours = timed(lambda: explainer.shap_values(X))
    # shap would cut a background given as an array to 100 rows, so it gets a masker.
    masker = shap.maskers.Independent(X, max_samples=len(X))
    theirs, shap_seconds = timed(
        lambda: shap.TreeExplainer(model, masker).shap_values(X, check_additivity=False)
    )
    many = X[np.random.default_rng(0).integers(0, len(X), size=_MANY)]
    _, many_seconds = timed(lambda: explainer.shap_values(many))
    gap = np.abs(phi - theirs).max() / np.abs(theirs).max()
    table = [
        ("", "reading and compiling", f"{len(X)} rows", f"{_MANY:,} rows"),
        ("fouriershap", in_seconds(building), in_seconds(ours), in_seconds(many_seconds)),
        ("shap.TreeExplainer", "", in_seconds(shap_seconds), ""),
    ]
    text = (
        f"XGBoost, 100 trees: {len(X)} tumours, {X.shape[1]} measurements, all {len(X)} rows as background. The values "
        f"differ from shap's by at most {gap:.0e} of the largest one, and took {shap_seconds / (building + ours):,.0f} "
        f"times less time, compiling included ({shap_seconds / ours:,.0f} times without)."
    )
    page = explainer.report(X, folder / "trees.html", malignant, cohorts=True, title="Malignant or benign")
    return Section("A gradient-boosted model, beside shap", text, table, page)
