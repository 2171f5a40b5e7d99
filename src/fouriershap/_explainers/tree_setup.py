"""The steps from a tree model and a background to an engine, which `TreeExplainer` takes when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import check_memory, check_weights, check_whole, is_whole, numbered, unshared
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.short import short_text
from fouriershap._rows.frames import column_names, in_order, unmask
from fouriershap._rows.pipelines import Preprocessing
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model
from fouriershap._libraries import Reading, first_trees, native_rows, one_output, read, warn_transformed_target
from fouriershap._trees.ensemble import TreeEnsemble

PRECISIONS = {"single": np.float32, "double": np.float64}


def read_or_refuse(model: Any) -> Reading:
    """`read`, whose errors name the way out."""
    try:
        return read(model)
    except UnsupportedModelError as error:
        if not hasattr(model, "predict"):
            raise
        raise UnsupportedModelError(
            f"{error} fs.Explainer(model, background) fits it as a black box."
        ) from error


class Chosen(NamedTuple):
    """Which trees of a model are explained, and which output of theirs."""

    reading: Reading  # all trees, of which the model itself can be asked
    limited: Reading | None  # the first of them, where there is a limit
    only: int | None  # the one raw output that is left
    output: str


def choose_trees(ensemble: Reading, output: str | int, tree_limit: int | None) -> Chosen:
    """What ``output`` and ``tree_limit`` leave of a model that was read."""
    limited = None
    if tree_limit is not None and tree_limit != -1:  # in shap -1 is all of them
        limited = first_trees(ensemble, check_whole("tree_limit", tree_limit))
    warn_transformed_target(ensemble, output)
    if not is_whole(output):
        return Chosen(ensemble, limited, None, cast("str", output))
    only = int(output)
    return Chosen(one_output(ensemble, only), limited and one_output(limited, only), only, "raw")


def entered_background(
    background: Any, ensemble: Reading, before: Preprocessing | None
) -> tuple[Any, Any]:
    """The background as it was given, in the model's order of columns, and as it enters the trees."""
    given = native_rows(unmask(background), "background")
    given = in_order(given, ensemble.feature_names if before is None else before.known_names())
    return given, given if before is None or given is None else before.transform(given, "background")


def check_unknown(feature_perturbation: str, background: Any, ensemble: Reading) -> None:
    """Raise where nothing stands for "feature unknown"."""
    if feature_perturbation == "interventional" and background is None:
        raise InputError("feature_perturbation='interventional' needs a background; give one.")
    if background is None and not ensemble.trees.has_cover:
        raise InputError(
            f"the model ({short_text(ensemble.kind)}) does not say how many training rows reached its nodes, which "
            "path-dependent values need. Give a background."
        )


def name_features(
    given: ArrayLike | None, ensemble: Reading, background: Any, before: Preprocessing | None
) -> tuple[Reading, tuple[str, ...]]:
    """Names of the features, and the ensemble with the names that frames are checked against."""
    made = before.output_names() if before is not None else None
    if made is not None and len(made) == ensemble.n_features:
        ensemble = ensemble.replace(feature_names=made)
    if given is not None:
        names = tuple(str(name) for name in np.asarray(given).reshape(-1).tolist())
        if len(names) != ensemble.n_features:
            raise InputError(f"feature_names has {len(names)} names for {ensemble.n_features} features.")
        return ensemble, names
    found = ensemble.feature_names
    if found is None and background is not None and not isinstance(background, np.ndarray):
        found = column_names(background)
    return ensemble, found or numbered(ensemble.n_features)


def weighed_rows(
    background: Any, weights: ArrayLike | None, ensemble: Reading
) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
    """The background as the trees compare it, and a share for each of its rows; None where there is none."""
    if background is not None:
        rows = unshared(ensemble.rules.encode(background, "background"), background)
        return rows, check_weights(weights, len(rows))
    if weights is not None:
        raise InputError("weights were given, but no background whose rows they could weigh.")
    return None, None


@dataclass(frozen=True, eq=False)
class Settings:
    """What an engine has beside its trees: a background, players, how it explains.

    Attributes
    ----------
    rows, share : of `weighed_rows`
    by_path : bool
        Whether values are path-dependent: then the rows, if any, are counted in the trees.
    player : (n_features,) int32
    """

    rows: NDArray[Any] | None
    share: NDArray[np.float64] | None
    by_path: bool
    player: NDArray[np.int32]
    memory: int | float | None
    precision: str
    method: str
    index: str

    def engine(self, trees: TreeEnsemble) -> TreeEngine:
        against = self.rows
        if against is not None and self.by_path:
            from fouriershap._trees.covers import recounted

            trees, against = recounted(trees, against, self.share), None
        memory, dtype = check_memory(self.memory), np.dtype(PRECISIONS[self.precision])
        coded = make_model(trees, self.player, memory, dtype, self.method, self.index)
        return TreeEngine(coded, make_background(coded, against, None if against is None else self.share))
