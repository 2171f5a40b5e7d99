"""A neural network as a black box: explained with its fidelity, beside shap's exact enumeration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fouriershap as fs
from demo_section import Section, in_seconds, timed

_BUDGET = 3_000
_CHECKED = 10  # rows for which shap queries the network about every coalition
_BACKGROUND = 50


def train() -> tuple[Any, Any]:
    """Train a perceptron with two layers on the diabetes data of scikit-learn: 442 patients, 10 measurements."""
    from sklearn.datasets import load_diabetes
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    layers = MLPRegressor(hidden_layer_sizes=(32, 16), alpha=1.0, max_iter=500, random_state=0)
    return make_pipeline(StandardScaler(), layers).fit(X, (y - y.mean()) / y.std()), X


def run(folder: Path) -> Section:
    """Explain the network, compare with an enumeration of all coalitions, and write a report page."""
    import shap

    model, X = train()
    background = X[:: len(X) // _BACKGROUND][:_BACKGROUND]
    asked = fs.BlackBoxExplainer(model, background, data=X, random_state=0)
    explainer, fitting = timed(lambda: asked.fit(X, budget=_BUDGET))
    phi, ours = timed(lambda: explainer.shap_values(X))
    masker = shap.maskers.Independent(background.to_numpy(), max_samples=_BACKGROUND)
    predict = lambda rows: model.predict(type(X)(rows, columns=X.columns))  # noqa: E731
    enumerate_all = shap.explainers.Exact(predict, masker)
    theirs, shap_seconds = timed(lambda: enumerate_all(X.to_numpy()[:_CHECKED], silent=True).values)
    agreement = 1 - ((phi[:_CHECKED] - theirs) ** 2).sum() / ((theirs - theirs.mean()) ** 2).sum()
    fidelity = explainer.fidelity
    queries = f"{_CHECKED * 2 ** X.shape[1] * _BACKGROUND:,}"
    table = [
        ("", "queries", "fitting", f"{_CHECKED} rows", f"{len(X)} rows"),
        ("fouriershap", f"{fidelity.n_queries:,}", in_seconds(fitting), "", in_seconds(ours)),
        ("shap, every coalition (first call)", f"up to {queries}", "", in_seconds(shap_seconds), ""),
    ]
    text = (
        f"A network with two layers: {len(X)} patients, {X.shape[1]} measurements, {_BACKGROUND} patients as "
        f"background. The representation has R² {fidelity.r2:.3f} [{fidelity.low:.3f}, {fidelity.high:.3f}] on "
        f"held-out answers; its SHAP values agree with the enumeration to R² {agreement:.3f}."
    )
    page = explainer.report(X, folder / "blackbox.html", title="Progression of diabetes")
    return Section("A neural network as a black box", text, table, page)
