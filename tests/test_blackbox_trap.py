"""The trap of the uniform cube: faithful there, useless for SHAP values of one-hot rows; `auto` stays out of it."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import fouriershap as fs
import oracles
from fouriershap.trees import read_model


def r_squared(truth, values):
    return 1 - ((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()


def test_auto_does_not_fall_into_the_trap_of_the_cube():
    rng = np.random.default_rng(2)
    level = rng.integers(0, 15, size=400)
    X = np.eye(15)[level]
    y = np.sign(rng.normal(size=15))[level] * (1 + rng.random(15))[level]
    forest = read_model(RandomForestRegressor(4, max_features=1, random_state=0).fit(X, y))
    truth = fs.TreeExplainer(forest, X[:50], precision="double").shap_values(X[50:90])

    cube = oracles.all_rows(15)
    spectrum = fs.walsh_hadamard(forest.predict(cube)[:, 0], 15)
    pruned = spectrum.prune(max_terms=20)
    assert r_squared(spectrum(cube), pruned(cube)) > 0.85
    bits = X.astype(np.uint8)
    assert r_squared(truth, fs.shap_values(pruned, bits[50:90], bits[:50])) < 0.5

    asked = []

    def predict(x):
        asked.append(len(x))
        return forest.predict(x)[:, 0]

    explainer = fs.BlackBoxExplainer(predict, X[:50], data=X, budget=700, min_fidelity=0.5, random_state=0)
    assert sum(asked) <= 700
    assert {line.name for line in explainer.candidates} == {"trees", "kernel"}
    assert explainer.method == explainer.candidates[0].name and explainer.candidates[0].chosen
    assert r_squared(truth, explainer.shap_values(X[50:90])) > 0.9
