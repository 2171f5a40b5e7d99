"""Models of LightGBM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from models.cases import case
from models.data import classes, coded, coded_target, counts, frame, frame_target, numbers, target


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
_lightgbm_case("poisson", y=counts, objective="poisson")
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
