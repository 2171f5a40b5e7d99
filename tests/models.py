"""Small trained models of every supported library, and what each library itself says is the raw output.

``CASES[library][name]()`` returns ``Case(model, X, name)``. Rows are rounded to one decimal, so that they tie
with thresholds; some values are missing where the library takes them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.labels import category_codes

# Threads of OpenMP that wait by spinning make small fits slow where cores are shared.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

N_ROWS = 300


def version_of(library: str) -> tuple[int, ...]:
    """The first two numbers of a library's version."""
    return tuple(int(part) for part in version(library).split(".")[:2])


# Before 3.1 XGBoost took the codes of a frame's categories as they came, and kept no labels.
XGBOOST_KEEPS_LABELS = version_of("xgboost") >= (3, 1)
LABELS = ["red", "green", "blue", "yellow", "black", "white", "a label of more than sixteen bytes"]


class Case(NamedTuple):
    model: Any
    X: Any
    name: str


CASES: dict[str, dict[str, Callable[[], Case]]] = {
    "sklearn": {},
    "xgboost": {},
    "lightgbm": {},
    "catboost": {},
}


def case(library: str, name: str) -> Callable[[Callable[[], tuple[Any, Any]]], Callable[[], Case]]:
    """Register a function that returns (model, X); models are trained once."""

    def register(function: Callable[[], tuple[Any, Any]]) -> Callable[[], Case]:
        trained = cache(lambda: Case(*function(), name))
        CASES[library][name] = trained
        return trained

    return register


def numbers(missing: bool = False, n_features: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, n_features)).round(1)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def target(X: np.ndarray) -> np.ndarray:
    Z = np.nan_to_num(X, nan=0.7)
    noise = np.random.default_rng(1).normal(size=len(Z)) * 0.1
    return Z[:, 0] * Z[:, 1] + np.sin(3 * Z[:, 2]) + (Z[:, -1] > 0.3) + noise


def classes(X: np.ndarray, n: int) -> np.ndarray:
    y = target(X)
    return np.searchsorted(np.quantile(y, np.arange(1, n) / n), y)


def coded(missing: bool = False) -> np.ndarray:
    """Rows whose last column holds the categories 0 to 8."""
    rng = np.random.default_rng(3)
    X = numbers(missing)
    X[:, -1] = rng.integers(0, 9, N_ROWS)
    if missing:
        X[rng.random(N_ROWS) < 0.1, -1] = np.nan
    return X


def coded_target(X: np.ndarray) -> np.ndarray:
    effect = np.array([3, -1, 0.5, 2, -2, 1, 0, 4, -3.0, 0.7])
    code = np.where(np.isnan(X[:, -1]), 9, X[:, -1]).astype(int)
    return target(X) + effect[code]


def frame(missing: bool = False) -> pd.DataFrame:
    """A frame with numbers, a categorical column of strings and one of integers."""
    rng = np.random.default_rng(4)
    X = numbers(missing)
    colour = rng.choice(LABELS, N_ROWS).astype(object)
    if missing:
        colour[rng.random(N_ROWS) < 0.1] = None
    return pd.DataFrame(
        {
            "a": X[:, 0],
            "colour": pd.Categorical(colour, categories=LABELS),
            "b": X[:, 1],
            "size": pd.Categorical(rng.choice([10, 20, 30, 40], N_ROWS)),
        }
    )


def frame_target(X: pd.DataFrame) -> np.ndarray:
    colour = X["colour"].cat.codes.to_numpy() % 3
    return np.nan_to_num(X["a"].to_numpy(), nan=1.0) * colour + (X["size"].cat.codes.to_numpy() % 2) * 2


def rows_of(ensemble: TreeEnsemble, X: Any) -> np.ndarray:
    """Rows of numbers and codes (n_rows, n_features) float64 from an array or a frame."""
    columns = []
    for f in range(ensemble.n_features):
        column = X.iloc[:, f].to_numpy() if isinstance(X, pd.DataFrame) else np.asarray(X)[:, f]
        if f not in ensemble.vocabularies and isinstance(X, pd.DataFrame) and X.dtypes.iloc[f] == "category":
            codes = X.iloc[:, f].cat.codes.to_numpy()
            columns.append(np.where(codes < 0, np.nan, codes))
        elif f in ensemble.vocabularies:
            if isinstance(X, pd.DataFrame):
                column = column.astype(object)
            columns.append(category_codes(ensemble, f, column))
        else:
            columns.append(column.astype(np.float64))
    return np.stack(columns, axis=1)


def raw_output(model: Any, X: Any) -> np.ndarray:
    """Raw output (n_rows, n_outputs) float64 by the library itself."""
    library = type(model).__module__.partition(".")[0]
    raw = {
        "sklearn": _sklearn_raw,
        "xgboost": _xgboost_raw,
        "lightgbm": _lightgbm_raw,
        "catboost": _catboost_raw,
    }
    from format_models import RAW

    output = np.asarray((raw | RAW)[library](model, X), dtype=np.float64)
    return output.reshape(len(X), -1)


def _sklearn_raw(model: Any, X: Any) -> Any:
    name = type(model).__name__
    if name == "IsolationForest":
        # score = -2 ** (-mean path length / c): solved for the mean path length.
        from sklearn.ensemble._iforest import _average_path_length

        return -np.log2(-model.score_samples(X)) * _average_path_length([model._max_samples])
    if name.endswith("Regressor"):
        return model.predict(X)
    return model.decision_function(X) if "GradientBoosting" in name else model.predict_proba(X)


def _xgboost_raw(model: Any, X: Any) -> Any:
    if type(model).__name__ == "Booster":
        import xgboost

        return model.predict(xgboost.DMatrix(X, feature_types=model.feature_types), output_margin=True)
    return model.predict(X, output_margin=True)


def _lightgbm_raw(model: Any, X: Any) -> Any:
    raw = model.predict(X, raw_score=True)
    # A forest predicts a mean, but its raw scores are sums.
    return raw / model.n_estimators if getattr(model, "boosting_type", "") == "rf" else raw


def _catboost_raw(model: Any, X: Any) -> Any:
    return model.predict(X, prediction_type="RawFormulaVal")


# scikit-learn


def _sklearn_case(
    module: str, name: str, label: str = "", n_classes: int = 0, missing: bool = False, **options: Any
) -> None:
    @case("sklearn", name + label)
    def build() -> tuple[Any, Any]:
        from importlib import import_module

        X = numbers(missing)
        y = classes(X, n_classes) if n_classes else target(X)
        return getattr(import_module(f"sklearn.{module}"), name)(random_state=0, **options).fit(X, y), X


for _missing in (False, True):
    _label = " missing" if _missing else ""
    _sklearn_case("tree", "DecisionTreeRegressor", _label, missing=_missing)
    _sklearn_case("tree", "DecisionTreeClassifier", _label, n_classes=3, missing=_missing, max_depth=5)
    _sklearn_case("ensemble", "RandomForestRegressor", _label, missing=_missing, n_estimators=9)
    _sklearn_case("ensemble", "RandomForestClassifier", _label, n_classes=2, missing=_missing, n_estimators=9)
    _sklearn_case(
        "ensemble", "HistGradientBoostingRegressor", _label, missing=_missing, max_iter=9, min_samples_leaf=5
    )
_sklearn_case("tree", "ExtraTreeRegressor", max_depth=6)
_sklearn_case("tree", "ExtraTreeClassifier", n_classes=2, max_depth=6)
_sklearn_case("ensemble", "ExtraTreesRegressor", n_estimators=9, max_depth=6)
_sklearn_case("ensemble", "ExtraTreesClassifier", n_classes=3, n_estimators=9, max_depth=6)
_sklearn_case(
    "ensemble", "RandomForestClassifier", " weighted", n_classes=3, n_estimators=9, class_weight="balanced"
)
_sklearn_case("ensemble", "GradientBoostingRegressor", n_estimators=9)
_sklearn_case("ensemble", "GradientBoostingRegressor", " zero init", n_estimators=9, init="zero")
_sklearn_case("ensemble", "GradientBoostingRegressor", " huber", n_estimators=9, loss="huber")
_sklearn_case("ensemble", "GradientBoostingClassifier", n_classes=2, n_estimators=9)
_sklearn_case("ensemble", "GradientBoostingClassifier", " 3 classes", n_classes=3, n_estimators=9)
_sklearn_case("ensemble", "HistGradientBoostingClassifier", n_classes=2, max_iter=9)
_sklearn_case(
    "ensemble", "HistGradientBoostingClassifier", " 3 classes", n_classes=3, max_iter=9, missing=True
)
_sklearn_case("ensemble", "IsolationForest", n_estimators=20)
_sklearn_case(
    "ensemble", "IsolationForest", " half the columns", n_estimators=20, max_features=0.5, max_samples=50
)


@case("sklearn", "RandomForestRegressor 2 targets")
def _forest_of_two_targets() -> tuple[Any, Any]:
    from sklearn.ensemble import RandomForestRegressor

    X = numbers()
    y = np.stack([target(X), X[:, 0]], axis=1)
    return RandomForestRegressor(n_estimators=5, max_depth=5, random_state=0).fit(X, y), X


def _hist_categories(label: str, shift: float, missing: bool) -> None:
    @case("sklearn", f"HistGradientBoostingRegressor {label}")
    def build() -> tuple[Any, Any]:
        from sklearn.ensemble import HistGradientBoostingRegressor

        X = coded(missing)
        y = coded_target(X)
        X[:, -1] = 2 * X[:, -1] + shift
        X = X[:, [0, 3, 1, 2]]
        model = HistGradientBoostingRegressor(max_iter=9, categorical_features=[1], min_samples_leaf=5)
        return model.fit(X, y), X


_hist_categories("categories", 1.0, False)
_hist_categories("categories missing", -3.5, True)


@case("sklearn", "HistGradientBoostingRegressor frame")
def _hist_frame() -> tuple[Any, Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = frame(missing=True)
    model = HistGradientBoostingRegressor(max_iter=9, categorical_features="from_dtype", min_samples_leaf=5)
    return model.fit(X, frame_target(X)), X


# XGBoost


def _xgboost_case(
    label: str, name: str = "XGBRegressor", y: Callable[[np.ndarray], Any] = target, **options: Any
) -> None:
    @case("xgboost", label)
    def build() -> tuple[Any, Any]:
        import xgboost

        X = numbers(missing=True)
        settings = {"n_estimators": 8, "max_depth": 4, "n_jobs": 1, "random_state": 0} | options
        return getattr(xgboost, name)(**settings).fit(X, y(X)), X


def _counts(X: np.ndarray) -> np.ndarray:
    return np.floor(np.exp(target(X) / 2))


_xgboost_case("regressor")
_xgboost_case("base_score", base_score=3.25)
_xgboost_case("lossguide", grow_policy="lossguide", max_leaves=9, max_depth=0, gamma=0.5)
_xgboost_case("exact", tree_method="exact", gamma=1.0)
_xgboost_case("poisson", objective="count:poisson", y=_counts)
_xgboost_case("tweedie", objective="reg:tweedie", y=lambda X: _counts(X) + 0.5, base_score=2.0)
_xgboost_case("gamma", objective="reg:gamma", y=lambda X: _counts(X) + 0.5)
_xgboost_case("squaredlogerror", objective="reg:squaredlogerror", y=_counts)
_xgboost_case("absoluteerror", objective="reg:absoluteerror")
_xgboost_case("quantile", objective="reg:quantileerror", quantile_alpha=[0.2, 0.8])
_xgboost_case("logistic regression", objective="reg:logistic", y=lambda X: 1 / (1 + np.exp(-target(X))))
_xgboost_case("cox", objective="survival:cox", y=lambda X: np.where(X[:, 0] > 0, 1, -1) * (_counts(X) + 1))
_xgboost_case("classifier", "XGBClassifier", lambda X: classes(X, 2))
_xgboost_case("hinge", "XGBClassifier", lambda X: classes(X, 2), objective="binary:hinge")
_xgboost_case("classifier base_score", "XGBClassifier", lambda X: classes(X, 2), base_score=0.2)
_xgboost_case("logitraw", "XGBClassifier", lambda X: classes(X, 2), objective="binary:logitraw")
_xgboost_case("3 classes", "XGBClassifier", lambda X: classes(X, 3))
_xgboost_case("dart", booster="dart", rate_drop=0.5)
_xgboost_case("dart 3 classes", "XGBClassifier", lambda X: classes(X, 3), booster="dart", rate_drop=0.5)
_xgboost_case("random forest", "XGBRFRegressor")
_xgboost_case("random forest 3 classes", "XGBRFClassifier", lambda X: classes(X, 3))
_xgboost_case("parallel trees", num_parallel_tree=3, subsample=0.5)
_xgboost_case("2 targets", y=lambda X: np.stack([target(X), -np.nan_to_num(X[:, 0])], axis=1))
_xgboost_case(
    "2 targets in one tree",
    y=lambda X: np.stack([target(X), -np.nan_to_num(X[:, 0])], axis=1),
    multi_strategy="multi_output_tree",
)
_xgboost_case(
    "3 classes in one tree", "XGBClassifier", lambda X: classes(X, 3), multi_strategy="multi_output_tree"
)
_xgboost_case("no trees", n_estimators=0)


@case("xgboost", "missing=0.5")
def _xgboost_missing() -> tuple[Any, Any]:
    import xgboost

    X = np.round(numbers(missing=True) * 2) / 2
    return xgboost.XGBRegressor(n_estimators=8, max_depth=4, n_jobs=1, missing=0.5).fit(X, target(X)), X


@case("xgboost", "ranker")
def _xgboost_ranker() -> tuple[Any, Any]:
    import xgboost

    X = numbers()
    model = xgboost.XGBRanker(n_estimators=8, max_depth=4, n_jobs=1)
    return model.fit(X, classes(X, 3), qid=np.arange(N_ROWS) // 30), X


def _stopped(n_classes: int) -> tuple[Any, Any]:
    import xgboost

    X = numbers(missing=True)
    options = {
        "n_estimators": 60,
        "max_depth": 4,
        "n_jobs": 1,
        "early_stopping_rounds": 5,
        "learning_rate": 0.8,
    }
    if n_classes:
        model, y = xgboost.XGBClassifier(**options, num_parallel_tree=2), classes(X, n_classes)
    else:
        model, y = xgboost.XGBRegressor(**options), target(X)
    model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    return model, X


case("xgboost", "early stopping")(lambda: _stopped(0))
case("xgboost", "early stopping 3 classes")(lambda: _stopped(3))
case("xgboost", "booster after early stopping")(lambda: (_stopped(0)[0].get_booster(), numbers(missing=True)))


def _xgboost_coded(label: str, **options: Any) -> None:
    @case("xgboost", label)
    def build() -> tuple[Any, Any]:
        import xgboost

        X = coded(missing=True)
        model = xgboost.XGBRegressor(
            n_estimators=8,
            max_depth=4,
            n_jobs=1,
            enable_categorical=True,
            feature_types=["q", "q", "q", "c"],
            **options,
        )
        return model.fit(X, coded_target(X)), X


_xgboost_coded("categories", max_cat_to_onehot=1)
_xgboost_coded("categories one-hot", max_cat_to_onehot=20)


@case("xgboost", "frame")
def _xgboost_frame() -> tuple[Any, Any]:
    import xgboost

    X = frame(missing=True)
    model = xgboost.XGBRegressor(
        n_estimators=8, max_depth=4, n_jobs=1, enable_categorical=True, max_cat_to_onehot=2
    )
    return model.fit(X, frame_target(X)), X


# LightGBM


def _lightgbm_case(
    label: str,
    name: str = "LGBMRegressor",
    y: Callable[[np.ndarray], Any] = target,
    rows: Callable[[], np.ndarray] = lambda: numbers(missing=True),
    fit: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    @case("lightgbm", label)
    def build() -> tuple[Any, Any]:
        import lightgbm

        X = rows()
        settings = {
            "n_estimators": 8,
            "num_leaves": 12,
            "n_jobs": 1,
            "verbose": -1,
            "min_child_samples": 5,
        } | options
        return getattr(lightgbm, name)(**settings).fit(X, y(X), **(fit or {})), X


_BAGGED = {"bagging_fraction": 0.6, "bagging_freq": 1}
_lightgbm_case("regressor")
_lightgbm_case("nothing missing", rows=numbers)
_lightgbm_case("use_missing=False", use_missing=False)
_lightgbm_case("zero_as_missing", zero_as_missing=True)
_lightgbm_case("zero_as_missing, nothing missing", zero_as_missing=True, rows=numbers)
_lightgbm_case("constant target", y=lambda X: np.full(len(X), 3.0))
_lightgbm_case("dart", boosting_type="dart", drop_rate=0.5)
_lightgbm_case("goss", data_sample_strategy="goss")
_lightgbm_case("rf", boosting_type="rf", **_BAGGED)
_lightgbm_case("rf 3 classes", "LGBMClassifier", lambda X: classes(X, 3), boosting_type="rf", **_BAGGED)
_lightgbm_case("poisson", y=_counts, objective="poisson")
_lightgbm_case("classifier", "LGBMClassifier", lambda X: classes(X, 2))
_lightgbm_case("3 classes", "LGBMClassifier", lambda X: classes(X, 3))
_lightgbm_case("one against all", "LGBMClassifier", lambda X: classes(X, 3), objective="multiclassova")
_lightgbm_case(
    "categories",
    rows=lambda: coded(True),
    y=coded_target,
    fit={"categorical_feature": [3]},
    **{"min_data_per_group": 5, "cat_smooth": 1},
)
_lightgbm_case(
    "categories, zero_as_missing",
    rows=coded,
    y=coded_target,
    fit={"categorical_feature": [3]},
    zero_as_missing=True,
)
_lightgbm_case("ranker", "LGBMRanker", lambda X: classes(X, 3), fit={"group": [30] * 10})


@case("lightgbm", "early stopping")
def _lightgbm_stopped() -> tuple[Any, Any]:
    import lightgbm

    X = numbers(missing=True)
    y = target(X)
    model = lightgbm.LGBMRegressor(n_estimators=9, n_jobs=1, verbose=-1, min_child_samples=5).fit(X, y)
    # Since 4.7 the booster drops the trees after its best iteration; before, it kept them.
    model.booster_.best_iteration = 4
    return model, X


case("lightgbm", "booster after early stopping")(
    lambda: (_lightgbm_stopped().model.booster_, numbers(missing=True))
)


@case("lightgbm", "frame")
def _lightgbm_frame() -> tuple[Any, Any]:
    import lightgbm

    X = frame(missing=True)
    model = lightgbm.LGBMRegressor(
        n_estimators=8, n_jobs=1, verbose=-1, min_child_samples=5, min_data_per_group=5
    )
    return model.fit(X, frame_target(X)), X


# CatBoost


def _catboost_case(
    label: str,
    name: str = "CatBoostRegressor",
    y: Callable[[np.ndarray], Any] = target,
    missing: bool = True,
    **options: Any,
) -> None:
    @case("catboost", label)
    def build() -> tuple[Any, Any]:
        import catboost

        X = numbers(missing)
        settings = {
            "iterations": 8,
            "depth": 4,
            "verbose": 0,
            "thread_count": 1,
            "allow_writing_files": False,
        } | options
        return getattr(catboost, name)(**settings).fit(X, y(X)), X


for _policy in ("SymmetricTree", "Depthwise", "Lossguide"):
    _catboost_case(_policy, grow_policy=_policy)
    _catboost_case(f"{_policy} nan_mode=Max", grow_policy=_policy, nan_mode="Max")
    _catboost_case(f"{_policy} 3 classes", "CatBoostClassifier", lambda X: classes(X, 3), grow_policy=_policy)
_catboost_case("nothing missing", missing=False)
_catboost_case("classifier", "CatBoostClassifier", lambda X: classes(X, 2))
_catboost_case(
    "2 targets", y=lambda X: np.stack([target(X), X.sum(1)], 1), missing=False, loss_function="MultiRMSE"
)


def catboost_frame() -> pd.DataFrame:
    return frame(missing=False).astype({"colour": str, "size": int})


def _catboost_frame(label: str, **options: Any) -> None:
    @case("catboost", label)
    def build() -> tuple[Any, Any]:
        import catboost

        X = catboost_frame()
        model = catboost.CatBoostRegressor(
            iterations=12,
            depth=4,
            verbose=0,
            thread_count=1,
            allow_writing_files=False,
            one_hot_max_size=20,
            **options,
        )
        return model.fit(X, frame_target(frame()), cat_features=["colour", "size"]), X


_catboost_frame("frame")
_catboost_frame("frame Lossguide", grow_policy="Lossguide")

import format_models  # noqa: E402, F401 - registers the cases of libraries that may be missing
