"""A neural network, which can only be asked: explained with its fidelity, beside shap's exact enumeration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fouriershap as fs
from fouriershap.demo._draw import NEGATIVE, QUIET, panels, swarm, title
from fouriershap.demo._page import Section, in_seconds
from fouriershap.demo.trees import timed

_BUDGET = 3_000
_CHECKED = 10  # rows for which shap asks the network about every coalition
_BACKGROUND = 50


def train() -> tuple[Any, Any]:
    """A perceptron of two layers on the diabetes data, which scikit-learn ships: 442 patients, 10 measurements."""
    from sklearn.datasets import load_diabetes
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    layers = MLPRegressor(hidden_layer_sizes=(32, 16), alpha=1.0, max_iter=500, random_state=0)
    return make_pipeline(StandardScaler(), layers).fit(X, (y - y.mean()) / y.std()), X


def run(folder: Path) -> Section:
    """Explain the network, compare with an enumeration of all coalitions, and draw."""
    import shap

    model, X = train()
    background = X[:: len(X) // _BACKGROUND][:_BACKGROUND]
    explainer, fitting = timed(
        lambda: fs.BlackBoxExplainer(
            model, background, data=X, method="trees", budget=_BUDGET, random_state=0, min_fidelity=0.0
        )
    )
    phi, ours = timed(lambda: explainer.shap_values(X))
    masker = shap.maskers.Independent(background.to_numpy(), max_samples=_BACKGROUND)
    enumerate_all = shap.explainers.Exact(lambda rows: model.predict(_named(rows, X)), masker)
    theirs, shap_seconds = timed(lambda: enumerate_all(X.to_numpy()[:_CHECKED], silent=True).values)
    agreement = 1 - ((phi[:_CHECKED] - theirs) ** 2).sum() / ((theirs - theirs.mean()) ** 2).sum()
    fidelity = explainer.fidelity
    asked = f"{_CHECKED * 2 ** X.shape[1] * _BACKGROUND:,}"
    table = [
        ("", "questions", "fitting", f"{_CHECKED} rows", f"{len(X)} rows"),
        ("fouriershap", f"{fidelity.n_queries:,}", in_seconds(fitting), "", in_seconds(ours)),
        ("shap, every coalition (first call)", f"up to {asked}", "", in_seconds(shap_seconds), ""),
    ]
    text = (
        f"A network of two layers: {len(X)} patients, {X.shape[1]} measurements, {_BACKGROUND} patients as background. "
        f"The representation ({explainer.fit.method}) has R² {fidelity.r2:.3f} [{fidelity.low:.3f}, "
        f"{fidelity.high:.3f}] "
        f"on answers that it has not seen; its SHAP values agree with the enumeration to R² {agreement:.3f}."
    )
    picture = folder / "blackbox.png"
    _draw(picture, X, phi, theirs)
    return Section("A neural network, by questions alone", text, table, picture)


def _named(rows: NDArray[Any], like: Any) -> Any:
    return type(like)(rows, columns=like.columns)


def _draw(path: Path, X: Any, phi: NDArray[np.float64], theirs: NDArray[np.float64]) -> None:
    with panels(path, widths=(1.35, 1)) as axes:
        swarm(axes[0], list(X.columns), phi, X.to_numpy(dtype=np.float64))
        axes[0].set_xlabel("SHAP value, standard deviations of the progression")
        title(axes[0], "Every patient", f"{len(phi)} rows; blue is a low measurement, red a high one")
        axes[1].axline((0, 0), slope=1, color=QUIET, lw=0.8)
        axes[1].scatter(theirs.ravel(), phi[: len(theirs)].ravel(), s=9, color=NEGATIVE, linewidths=0)
        axes[1].set_xlabel("every coalition asked")
        axes[1].set_ylabel("fouriershap")
        title(axes[1], "Against the definition", f"{len(theirs)} rows, all measurements")
