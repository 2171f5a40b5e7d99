"""NGBoost: the parameters of the predicted distribution, each a sum of trees.

A boosting round fits a tree to each parameter, and all trees of the round have one scale. Parameters are what NGBoost
adds up: of a normal distribution the mean and the logarithm of the standard deviation, of a classifier log odds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.links import LOGISTIC, UNKNOWN
from fouriershap._libraries.reading import Answer, Library, Question, Reading, require_fitted, tree_reading
from fouriershap._libraries.sklearn.trees import CASTING, tree_of
from fouriershap._trees.assemble import Tree, join, right_above

# Names of parameters, by the class of the distribution.
_PARAMETERS = {
    "Normal": ("mean", "log of the standard deviation"),
    "LogNormal": ("mean of the log", "log of the standard deviation of the log"),
    "Laplace": ("location", "log of the scale"),
    "Exponential": ("log of the scale",),
    "Poisson": ("log of the mean",),
}


def read(model: Any) -> Reading:
    """NGBRegressor, NGBClassifier, NGBSurvival: an output for each parameter of the distribution."""
    name, start = type(model).__name__, require_fitted(model, "init_params")
    base = np.asarray(start, dtype=np.float64).reshape(-1)
    trees: list[Tree] = []
    outputs: list[int] = []
    rounds = zip(model.base_models, model.scalings, model.col_idxs, strict=True)
    for members, scale, columns in rounds:
        for parameter, member in enumerate(members):
            if not hasattr(member, "tree_"):
                raise UnsupportedModelError(
                    f"model is an {name} of {type(member).__name__} learners; only decision trees are read exactly. "
                    "fs.BlackBoxExplainer(lambda X: model.pred_dist(X).params['loc'], background) explains any of its "
                    "predictions."
                )
            tree = tree_of(member.tree_)
            features = np.append(np.asarray(columns), -1)  # a leaf has the feature -2
            feature = np.where(tree.feature < 0, -1, features[np.maximum(tree.feature, 0)])
            trees.append(replace(tree, feature=feature, values=-model.learning_rate * scale * tree.values))
            outputs.append(parameter)
    arrays = join(trees, 1)
    arrays["threshold"] = np.where(arrays["feature"] < 0, 0.0, right_above(arrays["threshold"], np.float32))
    distribution = model.Dist.__name__
    is_binary = hasattr(model.Dist, "K_") and len(base) == 1
    names = ("1",) if is_binary else _PARAMETERS.get(distribution)
    return tree_reading(
        f"NGBoost {name}",
        arrays,
        int(model.n_features),
        np.float32,
        np.array(outputs or [0], dtype=np.int32),
        base,
        link=LOGISTIC if is_binary else UNKNOWN,
        output_names=names if names is not None and len(names) == len(base) else None,
        is_boosted=True,
        casting=CASTING,
        accepts_infinite=False,
    )


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    yield Answer(np.asarray(reading.model.pred_dist(np.asarray(question.asked))._params, dtype=np.float64).T)


LIBRARY = Library(
    name="NGBoost",
    package="ngboost",
    supported_trees=(
        "NGBoost's regressors, classifiers and survival models: every parameter of the distribution",
    ),
    tested="0.5.11",
    trees={"NGBoost": read},
    ask=_ask,
)
