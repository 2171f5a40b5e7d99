"""A value of 10,000 characters, wherever it comes in, is no part of a message: at most 80 characters of it are."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
import paper_data
from fitted_models import explain_fitted
from fouriershap._base import files
from models import CASES

LONG = "x" * 10_000
VALUES = {
    "text": LONG,
    "list": [LONG],
    "dictionary": {LONG: LONG},
    "names": [f"name {i}" for i in range(10_000)],
    "number": 10**3000,
    "array": np.array([[LONG, LONG, LONG]]),
    "frame": pd.DataFrame({LONG: [1.0, 2.0], "b": [LONG, "c"], "c": [1, 2]}),
}


def first_column(rows: Any) -> Any:
    return np.asarray(rows)[:, 0]


X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (30, 3)).astype(float), columns=list("abc"))
BITS = np.eye(3)
MODEL = DecisionTreeRegressor(max_depth=3).fit(X, X["a"] * X["b"] + X["c"])
H = fs.Spectrum([[1, 0, 0], [0, 1, 1]], [1.0, 0.5])
TREE = fs.TreeExplainer(MODEL, X)
SPECTRUM = fs.SpectrumExplainer(H, BITS)
BOX = explain_fitted(first_column, X, budget=200)


def batches(
    batches: Any, ids: Any = None, layout: Any = "columns", top_k: Any = 3, n_jobs: Any = None
) -> None:
    list(TREE.explain_batches(batches, ids=ids, layout=layout, top_k=top_k, n_jobs=n_jobs))


CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (fs.Explainer, {"model": MODEL, "background": X}),
    (fs.TreeExplainer, {"model": MODEL, "background": X}),
    (fs.SpectrumExplainer, {"spectrum": H, "background": BITS}),
    (fs.BlackBoxExplainer, {"predict": first_column, "background": BITS}),
    (fs.Spectrum, {"frequencies": [[1, 0]], "coefficients": [1.0]}),
    (fs.spectra.plan, {"spectrum": H, "n_rows": 1, "n_background": 1}),
    (fs.spectra.shap_values, {"spectrum": H, "X": BITS, "background": BITS}),
    (fs.walsh_hadamard, {"h": first_column, "n_bits": 3}),
    (fs.sparse_walsh_hadamard, {"h": first_column, "n_bits": 4, "n_terms": 2}),
    (fs.tree_spectrum, {"model": MODEL}),
    (paper_data.load, {"name": "gb1"}),
    (batches, {"batches": [X]}),
    (H.__call__, {"X": BITS}),
    (H.prune, {}),
    (H.prune_bound, {}),
    (H.top_terms, {}),
    (SPECTRUM.to, {"device": "cpu"}),
    (TREE.plan, {}),
    (TREE.with_background, {"background": X}),
    (BOX.predict, {"X": X}),
    *(
        (getattr(explainer, method), {"X": rows})
        for explainer, rows in ((TREE, X), (SPECTRUM, BITS), (BOX, X))
        for method in ("shap_values", "shap_interaction_values", "frame")
    ),
]


def said(call: Callable[[], Any]) -> list[str]:
    """What we say: warnings and the error, whatever of them is of ours."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        messages = []
        try:
            call()
        except fs.FourierShapError as error:
            messages.append(str(error))
        except Exception:  # noqa: BLE001 - Python's and NumPy's own words are theirs
            pass
    return messages + [str(w.message) for w in told if isinstance(w.message, fs.FourierShapWarning)]


def check(message: str) -> None:
    assert not re.search(r"x{81}|\d{81}|(\d{3},){20}", message), message[:2000]
    assert len(message) < 1500, message[:2000]


@pytest.mark.parametrize(("call", "good"), CALLS, ids=[call.__qualname__ for call, _ in CALLS])
def test_every_argument(call: Callable[..., Any], good: dict[str, Any]) -> None:
    known = inspect.signature(call).parameters.values()
    names = {p.name for p in known if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)} | good.keys()
    messages = []
    for name in sorted(names - {"random_state"}):  # only compared; NumPy's
        for kind, value in VALUES.items():
            if (name, kind) == ("pairs", "number"):  # would be done, some day
                continue
            arguments = good | {name: value}
            first = [arguments.pop("model")] if call is fs.Explainer else []
            messages += said(lambda first=first, arguments=arguments: call(*first, **arguments))
    assert messages, "nothing was said about any of them"
    for message in messages:
        check(message)


# Columns, labels, values


def lightgbm_frame() -> tuple[Any, pd.DataFrame]:
    model, rows, _ = CASES["lightgbm"]["frame"]()
    return model, rows


def of_long_names() -> tuple[Any, pd.DataFrame]:
    import xgboost

    rows = X.rename(columns={"a": LONG, "b": "y" + LONG})
    return xgboost.XGBRegressor(n_estimators=2, max_depth=2).fit(rows, X["a"]), rows


def raising(rows: Any) -> Any:
    raise ValueError(LONG)


def black_box(rows: pd.DataFrame, **options: Any) -> fs.BlackBoxExplainer:
    return explain_fitted(lambda z: np.arange(len(z)) % 2, rows, budget=100, **options)


LABELLED = pd.DataFrame({"n": np.arange(40.0), LONG: ["p", "q"] * 20})
SITUATIONS: dict[str, Callable[[], Any]] = {
    "another column": lambda: TREE.shap_values(X.rename(columns={"a": LONG})),
    "one column too many": lambda: TREE.shap_values(X.assign(**{LONG: 1.0})),
    "two columns of one name": lambda: TREE.shap_values(pd.DataFrame(np.eye(3), columns=[LONG, LONG, "c"])),
    "a column of text": lambda: fs.TreeExplainer(*of_long_names()).shap_values(
        of_long_names()[1].astype({LONG: str})
    ),
    "a text among numbers": lambda: TREE.shap_values(np.array([[1, 2, LONG]], dtype=object)),
    "an array of texts": lambda: TREE.shap_values(np.array([["1", "2", LONG]])),
    "an enum of labels": lambda: TREE.shap_values(
        pl.DataFrame({"a": [1.0], "b": [1.0], "c": pl.Series([LONG], dtype=pl.Enum([LONG, "y" + LONG]))})
    ),
    "a structured type": lambda: H(np.zeros((2, 3), dtype=[(LONG, float)])),
    "a batch of other columns": lambda: list(
        TREE.explain_batches([X.assign(**{f"{LONG}{i}": 1.0 for i in range(50)})])
    ),
    "a batch without an id": lambda: list(TREE.explain_batches([X], ids=[LONG])),
    "an id that is a feature": lambda: fs.TreeExplainer(*of_long_names()).explain_batches([X], ids=[LONG]),
    "two columns of the answer": lambda: fs.TreeExplainer(
        MODEL, X, groups={LONG: ["a"], "b": ["b"]}
    ).explain_batches([X], ids=[LONG]),
    "a group of a column": lambda: fs.TreeExplainer(MODEL, X, groups={LONG: [LONG]}),
    "a group of a group": lambda: fs.TreeExplainer(MODEL, X, groups={LONG: {LONG: LONG}}),
    "a column in two groups": lambda: fs.TreeExplainer(*of_long_names(), groups={"p": [LONG], "q": [LONG]}),
    "a pair of strangers": lambda: TREE.shap_interaction_values(X, pairs=[(LONG, "a")]),
    "a pair among many": lambda: fs.TreeExplainer(*of_long_names()).shap_interaction_values(
        of_long_names()[1], pairs=[("a", "b")]
    ),
    "a keyword": lambda: fs.Explainer(**{LONG: 1}),
    "a path as a model": lambda: fs.Explainer(f"{LONG}.fshap", X),
    "a path of no format": lambda: fs.TreeExplainer(LONG, X),
    "labels for numbers": lambda: black_box(LABELLED).shap_values(LABELLED.assign(n=LONG)),
    "an unknown label": lambda: black_box(LABELLED).shap_values(LABELLED.assign(**{LONG: LONG})),
    "another column of a black box": lambda: black_box(LABELLED).shap_values(X[["a", "b"]]),
    "a missing value": lambda: black_box(LABELLED).shap_values(LABELLED.assign(**{LONG: None})),
    "a categorical stranger": lambda: black_box(LABELLED, categorical=[LONG + "y"]),
    "many levels": lambda: black_box(
        pd.DataFrame({LONG: [f"{i}" for i in range(3000)], "b": 1.0}), method="swht"
    ),
    "a model that raises": lambda: explain_fitted(raising, BITS, budget=50),
    "a function that raises": lambda: fs.sparse_walsh_hadamard(raising, 4),
    "a model that answers text": lambda: explain_fitted(lambda z: [LONG] * len(z), BITS, budget=50),
    "steps that lose columns": lambda: fs.Explainer(
        Pipeline([(LONG, FunctionTransformer(lambda z: z[:, :2])), ("m", MODEL)]).fit(X.to_numpy(), X["a"]),
        X.to_numpy(),
        groups="input",
    ),
    "steps that raise": lambda: fs.Explainer(
        Pipeline([("s", StandardScaler()), ("m", DecisionTreeRegressor())]).fit(X, X["a"]), X
    ).shap_values(X.assign(a=LONG)),
    "labels that nobody knows": lambda: fs.TreeExplainer(*lightgbm_frame()).shap_values(
        lightgbm_frame()[1].astype({"a": str}).assign(a=LONG)
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_columns_labels_and_values(situation: str) -> None:
    (message, *more) = said(SITUATIONS[situation])
    for text in (message, *more):
        check(text)


# Files


def write_model(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("m.json", {"learner": LONG}),
        ("m.json", {LONG: 1}),
        ("m.json", LONG),
        ("m.json", {"features_info": {LONG: LONG}}),
        ("m.txt", LONG),
        ("m.txt", f"tree\nfeature_names={LONG}\n{LONG}={LONG}\nmax_feature_idx={LONG}\n"),
        ("m.ubj", "S" + LONG),
        ("m.cbm", LONG),
        ("y" * 200 + ".json", "{}"),
        ("y" * 200 + ".txt", "nothing"),
    ],
)
def test_models(tmp_path: Path, name: str, content: Any) -> None:
    folder = tmp_path / ("y" * 200)
    folder.mkdir()
    (message,) = said(lambda: fs.TreeExplainer(write_model(folder, name, content)))
    check(message.replace("y", "x"))


def changed_somewhere(header: Any) -> Iterator[Any]:
    """The header with a long text in the place of one of its parts, for each of them."""
    yield LONG
    entries = (
        header.items()
        if isinstance(header, dict)
        else enumerate(header[:2])
        if isinstance(header, list)
        else ()
    )
    for key, part in entries:
        for changed in changed_somewhere(part):
            copy = dict(header) if isinstance(header, dict) else list(header)
            copy[key] = changed
            yield copy


def test_explainers(tmp_path: Path) -> None:
    """Headers with valid checksums that hold long texts, in files of long names."""
    folder = tmp_path / ("x" * 200)
    folder.mkdir()
    messages = []
    for explainer in (TREE, BOX, SPECTRUM, H):
        explainer.save(folder / "good.fshap")
        kind, arrays, header, _ = files.read(folder / "good.fshap")
        headers = [
            (LONG, header),
            *((kind, changed) for changed in changed_somewhere(header) if changed != LONG),
        ]
        for changed_kind, changed in headers:
            files.write(folder / "bad.fshap", changed_kind, arrays, changed)
            messages += said(lambda: fs.load(folder / "bad.fshap").shap_values(BITS))
            messages += said(lambda: type(explainer).load(folder / "bad.fshap"))  # noqa: B023 - called at once
    assert len(messages) > 20
    for message in messages:
        check(message)


def test_environment_and_data_sets(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import fouriershap as fs; fs.Spectrum([[1]], [1.0])([[1]])"],
        env=os.environ | {"FOURIERSHAP_KERNELS": LONG},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "FOURIERSHAP_KERNELS is 'xxx" in done.stderr
    check(done.stderr.splitlines()[-1])
