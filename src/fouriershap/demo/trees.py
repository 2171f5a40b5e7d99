"""A gradient-boosted model on real data, explained by fouriershap and by shap side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fouriershap as fs
from fouriershap.demo._draw import INK, NEGATIVE, POSITIVE, QUIET, panels, swarm, title, waterfall
from fouriershap.demo._page import Section, in_seconds

REPORT = "report.html"
_MANY = 200_000


def train() -> tuple[Any, NDArray[np.float32], list[str]]:
    """XGBoost on the Wisconsin breast cancer data, which scikit-learn ships: 569 tumours, 30 measurements."""
    import xgboost
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    X, malignant = data.data.astype(np.float32), 1 - data.target
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=5, learning_rate=0.1, random_state=0)
    return model.fit(X, malignant), X, [str(name) for name in data.feature_names]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the seconds that it took."""
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def run(folder: Path) -> Section:
    """Explain the model, compare with shap, draw, and write a report page."""
    import shap

    model, X, names = train()
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
        f"differ from shap's by at most {gap:.0e} of the largest one, and came {shap_seconds / (building + ours):,.0f} "
        f"times faster, compiling included ({shap_seconds / ours:,.0f} times without)."
    )
    row = int(np.argsort(phi.sum(axis=1))[-40])
    picture = folder / "trees.png"
    seconds = {"shap": shap_seconds, "fouriershap,\nall in all": building + ours, "explaining\nalone": ours}
    _draw(picture, names, X, phi, row, float(explainer.expected_value), seconds)
    explainer.report(X, folder / REPORT, title="Malignant or benign")
    return Section("A gradient-boosted model, beside shap", text, table, picture)


def _draw(
    path: Path,
    names: list[str],
    X: NDArray[np.float32],
    phi: NDArray[np.float64],
    row: int,
    expected: float,
    seconds: dict[str, float],
) -> None:
    with panels(path, widths=(1.35, 1.35, 0.9)) as axes:
        swarm(axes[0], names, phi, X.astype(np.float64))
        axes[0].set_xlabel("SHAP value, log-odds of malignant")
        title(axes[0], "Every tumour", f"{len(phi)} rows; blue is a low measurement, red a high one")
        labels = [f"{name} = {value:.4g}" for name, value in zip(names, X[row], strict=True)]
        waterfall(axes[1], labels, phi[row], expected)
        axes[1].set_xlabel("log-odds of malignant")
        title(axes[1], "One tumour", f"from the average {expected:.1f} to {expected + phi[row].sum():.1f}")
        _draw_seconds(axes[2], seconds)


def _draw_seconds(axis: Any, seconds: dict[str, float]) -> None:
    values = np.array(list(seconds.values()))
    axis.bar(np.arange(len(values)), values, color=[QUIET, NEGATIVE, POSITIVE], width=0.6)
    axis.set_yscale("log")
    axis.set_ylim(values.min() / 3, values.max() * 3)
    axis.set_xticks(np.arange(len(values)), list(seconds))
    for i, value in enumerate(values):
        text = f"{value:.1f} s" if value >= 1 else f"{1000 * value:.1f} ms"
        axis.text(i, value * 1.15, text, ha="center", fontsize=9.5, color=INK)
    axis.set_ylabel("seconds")
    title(axis, "The same values", "each bar for all rows against all rows")
