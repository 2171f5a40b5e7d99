"""Random Pipelines: encoders, scalers and imputers before trees of each library."""

from __future__ import annotations

import numpy as np
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn import ensemble, preprocessing
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from xgboost import XGBRegressor

from fuzz_cells.rows import Admits, Column, Table, categorical_column, classes, draw_table, sample, target
from fuzz_cells.trial import DOUBLE, SINGLE, Trial, pick, settings

_ADMITS = Admits(("frame",))


def draw(rng: np.random.Generator) -> Trial:
    table = draw_table(rng, _ADMITS._replace(missing=rng.random() < 0.5))
    labelled = [i for i in range(len(table.columns)) if rng.random() < 0.4] or [0]
    columns = list(table.columns)
    for i in labelled:
        column = categorical_column(rng, missing=rng.random() < 0.2)
        texts = all(isinstance(label, str | None) for label in column.pool)
        columns[i] = Column(object, column.pool) if texts and rng.random() < 0.5 else column
    table = Table("frame", tuple(columns))
    positions, X = sample(rng, table, int(rng.integers(40, 120)))
    X.columns = [f"c{i}" for i in range(X.shape[1])]
    y = target(rng, table, positions)
    encoder = _encoder(rng)
    others = [preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.RobustScaler]
    others += [lambda: SimpleImputer(strategy=pick(rng, "mean", "median", "most_frequent"))]
    rest = "passthrough" if rng.random() < 0.5 else pick(rng, *others)()
    steps = make_column_transformer((encoder, [f"c{i}" for i in labelled]), remainder=rest)
    name, tree = _trees(rng)
    is_classifier = name.endswith("Classifier")
    model = make_pipeline(steps, tree).fit(X, classes(y, 2) if is_classifier else y)
    model.predict(sample(rng, table, 200)[1])  # an error, if some labels were not drawn above
    tolerance = SINGLE if name.startswith("XGB") else DOUBLE
    return Trial(
        f"{type(encoder).__name__} {name}",
        model,
        table,
        _ADMITS,
        X,
        model.predict_proba if is_classifier else model.predict,
        tolerance,
        has_steps=True,
    )


def _encoder(rng: np.random.Generator) -> preprocessing.OneHotEncoder:
    kind = pick(rng, "OneHotEncoder", "OneHotEncoder", "OrdinalEncoder", "OrdinalEncoder", "TargetEncoder")
    if kind == "OneHotEncoder":
        options = settings(rng, drop=(..., ..., "first"), min_frequency=(..., ..., 5))
        options |= settings(rng, handle_unknown=(..., "ignore", "infrequent_if_exist"))
        return preprocessing.OneHotEncoder(sparse_output=False, **options)
    if kind == "TargetEncoder":
        return preprocessing.TargetEncoder(random_state=0)
    options = settings(rng, encoded_missing_value=(..., ..., -2))
    unseen = {"handle_unknown": "use_encoded_value", "unknown_value": pick(rng, -1, np.nan)}
    return preprocessing.OrdinalEncoder(**options, **(unseen if rng.random() < 0.5 else {}))


def _trees(rng: np.random.Generator) -> tuple[str, object]:
    few, depth = {"n_estimators": 3}, {"max_depth": int(rng.integers(2, 5)), "random_state": 0}
    model = pick(
        rng,
        ensemble.RandomForestRegressor(**few, **depth),
        ensemble.RandomForestClassifier(**few, **depth),
        ensemble.ExtraTreesRegressor(**few, **depth),
        ensemble.HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3, **depth),
        XGBRegressor(**few, **depth, n_jobs=1),
        LGBMRegressor(**few, **depth, min_child_samples=3, n_jobs=1, verbose=-1),
        CatBoostRegressor(iterations=3, depth=3, verbose=0, allow_writing_files=False, thread_count=1),
    )
    return type(model).__name__, model
