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


def run(folder: Path) -> Path:
    """Explain the model, compare with shap, and draw; returns the picture's path."""
    import shap

    model, X, names = train()
    print(
        f"XGBoost, 100 trees: {len(X)} tumours, {X.shape[1]} measurements, all {len(X)} rows as background\n"
    )
    explainer, building = timed(lambda: fs.TreeExplainer(model, X).compile())
    phi, ours = timed(lambda: explainer.shap_values(X))
    # shap would cut a background given as an array to 100 rows, so it gets a masker.
    masker = shap.maskers.Independent(X, max_samples=len(X))
    theirs, shap_seconds = timed(
        lambda: shap.TreeExplainer(model, masker).shap_values(X, check_additivity=False)
    )
    many = X[np.random.default_rng(0).integers(0, len(X), size=_MANY)]
    _, many_seconds = timed(lambda: explainer.shap_values(many))
    gap = np.abs(phi - theirs).max() / np.abs(theirs).max()
    print(f"{'':26}{'reading and compiling':>22}{'explaining':>14}")
    print(f"{'fouriershap':26}{building:20.3f} s{ours:12.4f} s")
    print(f"{'shap.TreeExplainer':26}{'':20}  {shap_seconds:12.4f} s")
    print(f"\nboth together {shap_seconds / (building + ours):,.0f} times faster; explaining alone ", end="")
    print(f"{shap_seconds / ours:,.0f} times; largest difference {gap:.0e} of the largest value")
    print(f"{_MANY:,} rows by the same tables: {many_seconds:.2f} s, {_MANY / many_seconds:,.0f} a second\n")
    row = int(np.argsort(phi.sum(axis=1))[-40])
    _print_row(names, X[row], phi[row], float(explainer.expected_value))
    path = folder / "trees.png"
    seconds = {"shap": shap_seconds, "fouriershap,\nall in all": building + ours, "explaining\nalone": ours}
    _draw(path, names, X, phi, row, float(explainer.expected_value), seconds)
    return path


def _print_row(names: list[str], row: NDArray[np.float32], phi: NDArray[np.float64], expected: float) -> None:
    print("one malignant tumour, contributions to the log-odds:")
    for j in np.argsort(-np.abs(phi))[:8]:
        bar = ("+" if phi[j] > 0 else "-") * max(1, round(20 * abs(phi[j]) / np.abs(phi).max()))
        print(f"  {names[j]:26} {row[j]:9.4g}  {phi[j]:+7.3f}  {bar}")
    print(f"  {'average':26} {'':9}  {expected:+7.3f}")
    print(f"  {'log-odds':26} {'':9}  {expected + phi.sum():+7.3f}\n")


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
