"""Valid .fshap files of every kind, with rows that each explains: what `corrupt_files` starts from."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas as pd

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._base import files as _io
from models import CASES, numbers, target
from wave_models import random_columns, random_rows, random_waves


class Original(NamedTuple):
    """What a file holds, and rows that it explains."""

    contents: _io.Contents
    rows: Any


def boosted(**options: Any) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        case = CASES["xgboost"]["frame"]()
        return fs.TreeExplainer(case.model, case.X[:40], strategy="tables", **options), case.X[:3]

    return make


def forest(**options: Any) -> tuple[Any, Any]:
    """Several outputs, the last tree too deep for a table: background and weights are in the file."""
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)).round(1)
    y = np.searchsorted([-1, 1], X.sum(axis=1))
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    deep = RandomForestClassifier(1, random_state=0).fit(X, y)
    model.estimators_ = [*model.estimators_, *deep.estimators_]
    weights = rng.random(20) + 0.5
    return fs.TreeExplainer(model, X[:20], weights=weights, memory=100_000, **options).compile(), X[:3]


def wide_trees() -> tuple[Any, Any]:
    """A feature with more than 256 codes, so that there are pages."""
    from lightgbm import LGBMRegressor

    X = np.random.default_rng(0).normal(size=(3000, 2))
    y = np.sin(20 * X[:, 0]) + X[:, 1]
    model = LGBMRegressor(
        n_estimators=30, num_leaves=31, max_bin=2000, min_child_samples=2, n_jobs=1, verbose=-1
    )
    return fs.TreeExplainer(model.fit(X, y), X[:50]).compile(), X[:3]


def lightgbm_frame() -> tuple[Any, Any]:
    case = CASES["lightgbm"]["frame"]()
    groups = {"both": [case.X.columns[0], case.X.columns[1]]}
    return fs.TreeExplainer(case.model, case.X[:40], groups=groups), case.X[:3]


def linear_trees() -> tuple[Any, Any]:
    X = numbers(missing=True)
    model = lightgbm.LGBMRegressor(n_estimators=2, num_leaves=4, linear_tree=True, verbose=-1, n_jobs=1)
    weights = np.random.default_rng(0).random(20)
    return fs.TreeExplainer(model.fit(X, target(X)), X[:20], weights=weights), X[:3]


def catboost_frame() -> tuple[Any, Any]:
    case = CASES["catboost"]["frame"]()
    return fs.TreeExplainer(case.model, case.X[:40]), case.X[:3]


def probability(exact: bool) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        from sklearn.ensemble import GradientBoostingClassifier

        X = numbers()
        model = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(X, target(X) > 0)
        return fs.TreeExplainer(model, X[:20], output="probability", exact=exact), X[:3]

    return make


def path_dependent() -> tuple[Any, Any]:
    from sklearn.ensemble import RandomForestRegressor

    X = numbers()
    return fs.TreeExplainer(RandomForestRegressor(4, max_depth=4, random_state=0).fit(X, target(X))), X[:3]


def black_box(method: str) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"grade": rng.choice(list("abc"), 80), "n": rng.integers(0, 3, 80)})
        X[["kind_x", "kind_y"]] = np.eye(3)[rng.integers(0, 3, 80)][:, :2]
        X["age"] = rng.normal(size=80).round(2) if method != "enumerate" else 0
        X.loc[3, "grade"] = None

        def predict(rows: pd.DataFrame) -> np.ndarray:
            letter = rows["grade"].map({"a": 0.0, "b": 1.0, "c": 3.0}).fillna(2).to_numpy()
            answers = np.column_stack([letter * rows["n"] + rows["kind_x"], (rows["age"] > 0) - letter])
            return answers[:, 0] if method == "trees" else answers

        options: dict[str, Any] = {"groups": {"kind": ["kind_x", "kind_y"]}, "weights": np.arange(80) + 1.0}
        options |= {
            "budget": 250 if method == "trees" else 1500,
            "random_state": 0,
            "n_jobs": 1,
        }
        return explain_fitted(predict, X, method=method, **options), X[:3]

    return make


def wide_waves(n_background: int) -> Callable[[], tuple[Any, Any]]:
    """Waves on more columns than coalitions have tables for."""

    def make() -> tuple[Any, Any]:
        X = np.random.default_rng(0).normal(size=(200, 13)).round(2)
        options: dict[str, Any] = {
            "method": "waves",
            "budget": 300,
            "random_state": 0,
        }
        return explain_fitted(lambda rows: np.sin(rows[:, 0]), X[:n_background], data=X, **options), X[:3]

    return make


def waves() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    columns = random_columns(rng, 6, 4)
    return random_waves(rng, columns, 5, 2), random_rows(rng, columns, 3)


def products(name: str) -> Callable[[], tuple[Any, Any]]:
    """Sums of products: a linear model, a kernel machine with monomials, a sigmoid, several classes."""

    def make() -> tuple[Any, Any]:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, DotProduct
        from sklearn.linear_model import LogisticRegression, Ridge

        X = pd.DataFrame(numbers(), columns=list("abcd"))[:60]
        y = target(X.to_numpy())
        process = GaussianProcessRegressor(RBF() + DotProduct() ** 2, alpha=1.0, optimizer=None)
        model, output = {
            "linear": (Ridge().fit(X, np.column_stack([y, -y])), "raw"),
            "kernel": (process.fit(X, y), "raw"),
            "sigmoid": (LogisticRegression().fit(X, y > 0), "probability"),
            "classes": (
                LogisticRegression().fit(X, np.digitize(y, np.quantile(y, [0.3, 0.6]))),
                "probability",
            ),
        }[name]
        return fs.ProductExplainer(model, X[:9], output=output, groups={"both": ["b", "d"]}), X[:3]

    return make


def pipeline() -> tuple[Any, Any]:
    """Steps of every kind before the trees, in the columns that enter them."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"grade": rng.choice(list("abc"), 60), "size": rng.choice([1, 2, 5], 60)})
    X["age"] = np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60).round(2))
    prepare = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["grade"]),
        (OrdinalEncoder(), ["size"]),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), MinMaxScaler()), ["age"]),
    )
    model = make_pipeline(prepare, RandomForestRegressor(3, max_depth=3, random_state=0))
    return fs.TreeExplainer(model.fit(X, X["size"]), X[:20], groups="input"), X[:3]


def spectrum() -> fs.Spectrum:
    rng = np.random.default_rng(0)
    return fs.Spectrum(rng.random((25, 10)) < 0.3, rng.standard_normal((25, 2)))


def tables(memory: float | None, players: Any = None) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        rng = np.random.default_rng(0)
        background = rng.integers(0, 2, size=(20, 10))
        weights = rng.random(20)
        made = fs.SpectrumExplainer(spectrum(), background, groups=players, weights=weights, memory=memory)
        return made, rng.integers(0, 2, size=(3, 10))

    return make


def spectrum_explainer() -> tuple[Any, Any]:
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, size=(20, 10)), columns=list("abcdefghij"))
    return fs.SpectrumExplainer(spectrum(), X, groups={"first": ["a", "b"]}), X[:3]


PLAYERS = [0, 1, 2, 3, 4, 5, 6, 6, 7, 7]
MAKERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "spectrum": lambda: (spectrum().prune(max_terms=9), np.eye(10)[:3]),
    "one output": lambda: (fs.Spectrum([[0, 1], [1, 1]], [1.0, 2.0]), np.eye(2)),
    "tables": tables(None),
    "tables of groups": tables(30_000, PLAYERS),
    "no tables": tables(0),
    "spectrum explainer": spectrum_explainer,
    "boosted": boosted(),
    "boosted, banzhaf": boosted(index="banzhaf", precision="double"),
    "forest": forest,
    "wide": wide_trees,
    "lightgbm": lightgbm_frame,
    "linear trees": linear_trees,
    "catboost": catboost_frame,
    "probability": probability(False),
    "exact probability": probability(True),
    "path-dependent": path_dependent,
    "pipeline": pipeline,
    "black box, exact": black_box("enumerate"),
    "black box, trees": black_box("trees"),
    "black box, swht": black_box("swht"),
    "black box, waves": black_box("waves"),
    "black box, blend": black_box("blend"),
    "black box, mixture": wide_waves(60),
    "black box, pairs": wide_waves(5),
    "waves": waves,
    "products, linear": products("linear"),
    "products, kernel": products("kernel"),
    "products, sigmoid": products("sigmoid"),
    "products, classes": products("classes"),
}
ALIKE = (
    "products, linear",
    "products, kernel",
    "products, sigmoid",
    "products, classes",
    "waves",
    "black box, waves",
    "black box, mixture",
    "black box, pairs",
    "spectrum",
    "one output",
    "no tables",
    "tables of groups",
    "black box, exact",
    "black box, swht",
)
NAMES = (*MAKERS, *(f"{name}, interactions" for name in MAKERS if name not in ALIKE))


@cache
def made(name: str) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MAKERS[name]()


@cache
def original(name: str) -> Original:
    """An honest file."""
    with tempfile.TemporaryDirectory() as folder:
        maker = name.removesuffix(", interactions")
        thing, rows = made(maker)
        path = Path(folder) / "honest.fshap"
        thing.save(path, **({"interactions": True} if maker != name else {}))
        found = _io.read(path)
        arrays = {key: np.array(array) for key, array in found.arrays.items()}
        return Original(_io.Contents(found.kind, arrays, found.header), rows)
