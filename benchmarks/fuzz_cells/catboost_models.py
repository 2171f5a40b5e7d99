"""Random models of CatBoost whose categories are one-hot encoded: others are no plain trees."""

from __future__ import annotations

from typing import Any

import catboost
import numpy as np

from fuzz_cells.rows import Admits, Column, Table, classes, draw_table, sample, target
from fuzz_cells.trial import DOUBLE, Trial, pick, settings

_FORMS = ("float64", "float64", "float32", "int64", "int32", "uint8", "object", "frame", "frame", "frame")
_ADMITS = Admits(_FORMS, infinite=False)


def draw(rng: np.random.Generator) -> Trial:
    n_classes = int(pick(rng, 0, 0, 2, 3))
    table = draw_table(rng, _ADMITS)
    categories: list[int] = []
    if table.form == "frame" and rng.random() < 0.6:
        table, categories = _with_categories(rng, table)
    positions, X = sample(rng, table, int(rng.integers(20, 120)))
    y = target(rng, table, positions)
    options = _options(rng)
    kind = options["grow_policy"] + (f" {n_classes} classes" if n_classes else "")
    if n_classes:
        y = classes(y, n_classes)
        options |= settings(rng, loss_function=(..., "MultiClassOneVsAll")) if n_classes > 2 else {}
    elif rng.random() < 0.2 and options["grow_policy"] == "SymmetricTree":
        y, kind = np.stack([y, y**2], axis=1), f"{kind} 2 targets"
        options |= {"loss_function": "MultiRMSE"}
    else:
        options |= settings(rng, loss_function=(..., "MAE", "Quantile", "Poisson"))
        y = np.abs(y) if options.get("loss_function") == "Poisson" else y
    model = (catboost.CatBoostClassifier if n_classes else catboost.CatBoostRegressor)(**options)
    model.fit(X, y, cat_features=categories)
    return Trial(
        kind + (" categories" if categories else ""),
        model,
        table,
        _ADMITS,
        X,
        lambda rows: model.predict(rows, prediction_type="RawFormulaVal", thread_count=1),
        DOUBLE,
        pick(rng, ".cbm", ".json"),
        lambda path: model.save_model(path, format=path.rpartition(".")[2]),
    )


def _with_categories(rng: np.random.Generator, table: Table) -> tuple[Table, list[int]]:
    """One or two columns of labels: texts, or whole numbers."""
    columns = list(table.columns)
    chosen = [int(i) for i in rng.permutation(len(columns))[: int(rng.integers(1, 3))]]
    for i in chosen:
        n = int(rng.integers(2, 8))
        texts = tuple(f"label {k}" * int(rng.integers(1, 5)) for k in range(n))
        columns[i] = pick(rng, Column(object, texts), Column("int64", tuple(range(-2, n))))
    return table._replace(columns=tuple(columns)), sorted(chosen)


def _options(rng: np.random.Generator) -> dict[str, Any]:
    options = settings(
        rng,
        iterations=(1, 3, 5),
        depth=(1, 2, 4),
        learning_rate=(..., 0.5),
        grow_policy=("SymmetricTree", "SymmetricTree", "Depthwise", "Lossguide"),
        nan_mode=("Min", "Min", "Max"),
        border_count=(..., 5),
        l2_leaf_reg=(..., 0.0),
        bootstrap_type=("No", "Bernoulli"),
        random_strength=(..., 0.0),
        boost_from_average=(...,),
        rsm=(..., 0.7),
    )
    options |= {"one_hot_max_size": 255, "max_ctr_complexity": 0, "thread_count": 1, "verbose": 0}
    return options | {"random_seed": int(rng.integers(1000)), "allow_writing_files": False}
