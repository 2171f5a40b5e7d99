"""Warnings point at the line of the caller, from whatever depth of the package they come."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import fouriershap as fs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
BITS = RNG.integers(0, 2, size=(60, 4))


def noisy(rows):
    return rows.sum(axis=1) + np.random.default_rng().normal(size=len(rows))


def scatter(rows):
    return np.sin(1e6 * np.asarray(rows, dtype=float)).sum(axis=1)


def ask(predict, rows, **settings):
    return fs.BlackBoxExplainer(predict, rows, random_state=0).fit(**settings)


def sparse():
    return fs.sparse_walsh_hadamard(noisy, 30, budget=500, random_state=0)


def blind_splits():
    rows = np.column_stack([X, X])
    return fs.tree_spectrum(RandomForestRegressor(3, max_depth=3, random_state=0).fit(rows, rows[:, 0]))


@pytest.mark.parametrize(
    ("call", "category"),
    [
        (lambda: ask(noisy, BITS, method="enumerate", budget=100), fs.NoiseWarning),
        (lambda: ask(noisy, BITS, budget=100), fs.NoiseWarning),
        (lambda: ask(noisy, X, method="trees", budget=300), fs.NoiseWarning),
        (lambda: ask(noisy, np.tile(BITS, 3), method="swht", budget=700), fs.NoiseWarning),
        (lambda: fs.Explainer(noisy, BITS).shap_values(BITS[:2]), fs.NoiseWarning),
        (lambda: ask(scatter, X, method="trees", budget=300), fs.FidelityWarning),
        (lambda: fs.Explainer(scatter, X).fit(method="trees", budget=300), fs.FidelityWarning),
        (sparse, fs.FidelityWarning),
        (blind_splits, fs.FourierShapWarning),
    ],
)
def test_the_caller_is_named(call, category):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    ours = [warning for warning in caught if issubclass(warning.category, fs.FourierShapWarning)]
    assert any(issubclass(warning.category, category) for warning in ours)
    assert {warning.filename for warning in ours} == {__file__}


INSIDE = """
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from fouriershap import FourierShapWarning
from fouriershap._base.warn import warn

@contextmanager
def managed():
    warn("in a context manager", FourierShapWarning)
    yield

@dataclass
class Inside:
    def __post_init__(self):
        warn("in a dataclass", FourierShapWarning)

    @cached_property
    def fitted(self):
        warn("in a cached property", FourierShapWarning)

def call():
    with managed():
        Inside().fitted
"""


def made_up(name, monkeypatch):
    """A module of that name."""
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(INSIDE, f"{name}.py", "exec"), vars(module))
    return module


def test_frames_of_the_standard_library_between_ours_are_passed_over(monkeypatch):
    module = made_up("fouriershap.made_up", monkeypatch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module.call()
    assert [str(warning.message).partition(" a ")[2] for warning in caught] == [
        "context manager",
        "dataclass",
        "cached property",
    ]
    assert {warning.filename for warning in caught} == {__file__}


def test_modules_of_a_similar_name_are_not_ours(monkeypatch):
    module = made_up("fouriershap_user", monkeypatch)
    with pytest.warns(fs.FourierShapWarning) as caught:
        module.call()
    assert caught[-1].filename == "fouriershap_user.py"
