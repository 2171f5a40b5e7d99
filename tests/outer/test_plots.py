"""Pictures: what is drawn is what was given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import fouriershap as fs
from fouriershap.plots import interaction_heatmap, interaction_network

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def example() -> tuple[np.ndarray, fs.Interactions]:
    rng = np.random.default_rng(0)
    spectrum = fs.Spectrum(rng.integers(0, 2, size=(20, 6)), rng.normal(size=20))
    explainer = fs.Explainer(spectrum, rng.integers(0, 2, size=(30, 6)))
    rows = rng.integers(0, 2, size=(40, 6))
    top = explainer.interactions(rows, order=2, min_order=2, index="SII", top_k=5)
    return explainer.shap_interaction_values(rows), top


def test_the_heat_map_shows_the_strongest_players_first() -> None:
    values, _ = example()
    strength = np.abs(values).mean(axis=0)
    axes = interaction_heatmap(values, list("abcdef"), top_k=4)
    order = np.argsort(-strength.sum(axis=1))[:4]
    np.testing.assert_allclose(axes.images[0].get_array(), strength[np.ix_(order, order)])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["abcdef"[i] for i in order]
    several = np.stack([values, 2 * values], axis=-1)
    np.testing.assert_allclose(
        interaction_heatmap(several, top_k=4, output=1).images[0].get_array(), 2 * axes.images[0].get_array()
    )


def test_the_network_has_an_edge_per_pair() -> None:
    _, top = example()
    axes = interaction_network(top)
    widths = [line.get_linewidth() for line in axes.lines]
    assert len(widths) == 5
    assert widths == sorted(widths, reverse=True)
    assert {text.get_text() for text in axes.texts} == {name for pair in top.sets for name in pair}


def test_wrong_arguments() -> None:
    values, _ = example()
    with pytest.raises(fs.InputError, match="2 names for 6"):
        interaction_heatmap(values, ["a", "b"])
    with pytest.raises(fs.InputError, match="shape"):
        interaction_heatmap(values[0])
    with pytest.raises(fs.InputError, match="some pairs"):
        interaction_network(values)


def test_every_plot_says_what_it_shows() -> None:
    """A label below, and names that are whole."""
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    name = "share_of_the_months_with_arrears_among_all_of_the_months"
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=120), "b": rng.normal(size=120), "c": rng.normal(size=120)})
    explainer = fs.Explainer(
        RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, X[name] * X["b"]), X
    )
    months = pd.to_datetime("2025-01-01") + pd.to_timedelta(np.arange(120) * 3, unit="D")
    for result in (
        explainer.importance(X),
        explainer.drift(X[:50]),
        explainer.drift(X, by=months, every="month"),
        explainer.cohorts(X, by=X["b"] > 0),
        explainer.interactions(X[:10]),
        explainer.effects(X),
        explainer.reasons(X[:1], direction="both"),
    ):
        ax = result.plot()
        assert ax.get_xlabel()
        labels = [tick.get_text().replace("\n", "") for tick in ax.get_yticklabels()]
        assert any(name in label for label in labels), type(result).__name__
        plt.close("all")
