"""LightGBM: its text model, whose numbers read back to the same float64.

Read directly and not through treelite, which knows neither the mean over a random forest nor zeros that count
as missing, and drops the labels of categories.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.readers.assemble import class_names, join, join_in_line
from fouriershap._trees.readers.lightgbm_text import END, TextTrees, missing_kind, read_fields

# A sigmoid with another slope is not the log odds.
_OBJECTIVES = {"binary sigmoid:1": "binary", "cross_entropy": "binary", "multiclass": "multiclass"}
_OBJECTIVES |= {"regression": "squared_error"}
_OBJECTIVES |= dict.fromkeys(("regression_l1", "huber", "fair", "quantile", "mape"), "regression")
_OBJECTIVES |= dict.fromkeys(("poisson", "gamma", "tweedie"), "log")
_MANY_TREES = 50  # whose text takes longer than making a file
_ZERO, _NAN = 1, 2  # kinds of missing values, beside none


def read_estimator(model: Any) -> TreeEnsemble:
    """LGBMRegressor and its kin: the trees that ``predict`` uses, up to the best iteration."""
    if not hasattr(model, "_Booster") or model._Booster is None:
        raise InputError(f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first.")
    ensemble = read_booster(model.booster_)
    names = class_names(model, ensemble.n_outputs)
    return ensemble.replace(output_names=names, casting="lightgbm")


def read_booster(model: Any) -> TreeEnsemble:
    """Booster: as ``Booster.predict`` does, the trees up to the best iteration where there is one."""
    return read_bytes(_text_of(model))


def _text_of(model: Any) -> bytes:
    """What ``model_to_string`` returns, which prints a model of more than a megabyte twice: through a file."""
    if model.num_trees() < _MANY_TREES:
        return str(model.model_to_string()).encode()
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.txt"
            model.save_model(path)
            text = path.read_bytes()
    except OSError:  # nowhere to write
        return str(model.model_to_string()).encode()
    return text if text.rfind(END) >= 0 else str(model.model_to_string()).encode()


def read_text(text: str) -> TreeEnsemble:
    """The text model of LightGBM."""
    return read_bytes(text.encode())


def read_bytes(text: bytes) -> TreeEnsemble:
    """The same, as it lies in a file."""
    head, fields, end = read_fields(text)
    header = {key.decode(): text[slice(*at)].decode() for key, at in head.items()}
    n_features = int(header["max_feature_idx"]) + 1
    n_outputs = int(header["num_tree_per_iteration"])
    trees = TextTrees(text, fields)
    # A forest predicts the mean over its trees, and then applies the link function. LightGBM's own raw scores
    # and contributions are the sums.
    scale = n_outputs / len(trees.sizes) if "average_output" in header else 1.0
    labels = _frame_labels(text[end:])
    vocabularies, lost = _vocabularies(labels, header["feature_infos"].split())
    return TreeEnsemble(
        n_features=n_features,
        n_outputs=n_outputs,
        dtype=np.dtype(np.float64),
        tree_output=(np.arange(max(len(trees.sizes), 1)) % n_outputs).astype(np.int32),
        base=np.zeros(n_outputs),
        zero_as_missing=_zero_as_missing(trees.decision, trees.feature, n_features),
        feature_names=given_names(header["feature_names"].split()),
        vocabularies=vocabularies,
        lost_labels=lost,
        frame_labels=labels,
        objective=_OBJECTIVES.get(header.get("objective", "").partition(" num_class")[0], ""),
        casting="lightgbm booster",
        kind="lightgbm rf" if "average_output" in header else "lightgbm gbdt",
        **(join_in_line(trees.in_line(scale), trees.sizes) if len(trees.sizes) else join([])),
    )


def given_names(names: list[str]) -> tuple[str, ...] | None:
    """Names of features, unless LightGBM made them up."""
    made_up = [f"Column_{f}" for f in range(len(names))]
    return None if names == made_up else tuple(names)


def _zero_as_missing(
    decision: NDArray[np.int64], feature: NDArray[np.int64], n_features: int
) -> NDArray[np.bool_]:
    kinds = np.zeros((3, n_features), dtype=bool)
    numerical = decision & 1 == 0
    kinds[missing_kind(decision[numerical]), feature[numerical]] = True
    mixed = np.flatnonzero(kinds[_ZERO] & kinds[_NAN])
    if len(mixed):
        raise UnsupportedModelError(
            f"feature {mixed[0]}: zero counts as missing in some trees of this LightGBM model and as a "
            "number in others (training was continued with another zero_as_missing). Use one setting."
        )
    zeros: NDArray[np.bool_] = kinds[_ZERO]
    return zeros


def _frame_labels(text: bytes) -> tuple[tuple[Any, ...], ...]:
    """The labels of the columns that were categorical in the frame of the training data, in their order."""
    mark = b"\npandas_categorical:"
    found = json.loads(text.rsplit(mark, 1)[1].splitlines()[0]) if mark in text else None
    return tuple(tuple(labels) for labels in found or ())


def _vocabularies(
    labels: tuple[tuple[Any, ...], ...], infos: list[str]
) -> tuple[dict[int, tuple[Any, ...]], tuple[int, ...]]:
    """Labels by feature, for rows that are no frames, and the features whose labels are not known.

    LightGBM does not say which columns the labels belong to. Categorical features are the ones described as
    ``0:3:1`` and not as ``[0:3]``; where their number differs (ordered categories, constant columns), nothing is
    guessed: such columns have to be given as codes, or in a frame.
    """
    columns = [f for f, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    if len(columns) != len(labels):
        return {}, tuple(columns) if labels else ()
    return {f: tuple(names) for f, names in zip(columns, labels, strict=True)}, ()
