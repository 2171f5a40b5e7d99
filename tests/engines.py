"""What the tests of Spark, Dask and Ray share: rows to explain, and what one process says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import psutil
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

import fouriershap as fs
from fitted_models import explain_fitted
from models import CASES, frame

IDS = ["name", "key"]
SOURCES = ("object", "path")


@cache
def make_explainer(which: str) -> tuple[Any, pd.DataFrame]:
    """A compiled explainer, and rows with nulls and categories where the model takes them."""
    if which == "several outputs":
        X = frame().drop(columns=["colour", "size"])
        model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, np.arange(len(X)) % 3)
        return fs.TreeExplainer(model, X).compile(), X
    if which == "black box":
        X = frame().drop(columns=["size"]).astype({"colour": str})
        explainer = explain_fitted(
            lambda Z: Z["a"] * (Z["colour"] == "red") + Z["b"], X, method="trees", budget=300
        )
        return explainer, X
    case = CASES[which.removesuffix(" groups")]["frame"]()
    groups = {"numbers": ["a", "b"], "labels": ["colour", "size"]} if which.endswith("groups") else None
    return fs.TreeExplainer(case.model, case.X, groups=groups).compile(), case.X


EXPLAINERS = ("xgboost", "lightgbm groups", "catboost", "several outputs", "black box")


class Example(NamedTuple):
    """Rows in parts, some of them empty, with ids in between the features; and how to explain them."""

    explainer: Any
    parts: list[pd.DataFrame]
    source: str
    options: dict[str, Any]

    @property
    def rows(self) -> pd.DataFrame:
        return pd.concat(self.parts)

    def single_process(self, plain: bool = False) -> pd.DataFrame:
        """The answer of this process; ``plain`` for what engines without categories show as the value."""
        rows = plain_categories(self.rows) if plain and self.options["layout"] == "top_k" else self.rows
        return next(self.explainer.explain_batches([rows], **self.options))

    def given(self, folder: Any) -> Any:
        """The explainer itself or the path of its file."""
        if self.source == "object":
            return self.explainer
        path = folder / "explainer.fshap"
        self.explainer.save(path)
        return path


@st.composite
def examples(draw: st.DrawFn, empty_parts: bool = True) -> Example:
    explainer, X = make_explainer(draw(st.sampled_from(EXPLAINERS)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.integers(1, 40))
    X = X.iloc[rng.integers(0, len(X), n_rows)].reset_index(drop=True)
    if explainer.fit is None and explainer.inputs.encoder.rules.accepts_missing:
        X = X.mask(rng.random(X.shape) < 0.2)
    # Whole numbers beyond what a double holds: they must not take a detour.
    keys = 2**60 + np.arange(n_rows)
    names = pd.Series([None if i % 3 == 1 else f"row {i}" for i in range(n_rows)], dtype="str")
    X = X.assign(key=keys, name=names)[list(rng.permutation([*X.columns, *IDS]))]
    bounds = sorted(rng.integers(0, n_rows + 1, size=3).tolist())
    parts = [X[first:last] for first, last in pairwise([0, *bounds, n_rows]) if empty_parts or last > first]
    options = {"ids": IDS, "layout": draw(st.sampled_from(["columns", "array", "top_k"])), "top_k": 2}
    return Example(explainer, parts, draw(st.sampled_from(SOURCES)), options)


def check_same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """The same rows with the same values, to rounding, in any order."""
    assert list(found.columns) == list(expected.columns)
    found, expected = (answer.sort_values("key").reset_index(drop=True) for answer in (found, expected))
    for name in expected.columns:
        left, right = found[name], expected[name]
        if name == "key":
            assert left.tolist() == right.tolist()
        elif name.startswith("shap_values"):
            np.testing.assert_allclose(np.stack(left.tolist()), np.stack(right.tolist()), rtol=1e-12)
        elif right.dtype.kind == "f":
            np.testing.assert_allclose(left.to_numpy(dtype=float), right, rtol=1e-12)
        else:
            assert left.isna().tolist() == right.isna().tolist()
            assert left.dropna().tolist() == right.dropna().tolist()


def plain_categories(X: pd.DataFrame) -> pd.DataFrame:
    """As engines without categories hold them: labels as text, categories that are numbers as codes."""
    for name in X.columns:
        if X[name].dtype == "category":
            categories = X[name].cat.categories
            if categories.dtype.kind in "iuf":
                codes = X[name].cat.codes
                X = X.assign(**{name: codes.astype("Int64").mask(codes < 0)})
            else:
                X = X.assign(**{name: X[name].astype("str")})
    return X


@contextmanager
def nothing_left_running() -> Iterator[None]:
    """Processes that begin inside must have ended after it."""
    before = set(psutil.Process().children(recursive=True))
    yield
    begun = set(psutil.Process().children(recursive=True)) - before
    # Python keeps its resource tracker until it ends itself.
    _, left = psutil.wait_procs([p for p in begun if "resource_tracker" not in command_line(p)], timeout=20)
    assert not left, [command_line(p) for p in left]


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""
