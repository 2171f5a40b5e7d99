"""The origin of each column that leaves a scikit-learn transformer.

Transformers are recognised by the names of their class and its bases. A column that is made of several input
columns (PCA, products of features) has no single origin, so no player can own it: an error names the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.messages import error_text, truncated_repr

Origins = list[int]  # per column, the position of the input column that it is made from

# Transformers that map each column to one, by itself. OneToOneFeatureMixin does not tell: a Normalizer has it, too,
# and mixes all columns.
_ONE_TO_ONE = {
    "Binarizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "OrdinalEncoder",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
    "StandardScaler",
}


def through(transformer: Any, origins: Origins, step: str) -> Origins:
    """Return the origins of the columns that leave a fitted transformer; ``step`` is its name."""
    if transformer is None or isinstance(transformer, str):  # "passthrough"; dropped columns never get here
        return origins
    if hasattr(transformer, "fit_resample") and not hasattr(transformer, "transform"):
        return origins  # samplers of imbalanced-learn act in training only
    names = [base.__name__ for base in type(transformer).__mro__]
    rule = next((_RULES[name] for name in names if name in _RULES), None)
    if rule is not None:
        return rule(transformer, origins, step)
    if not _ONE_TO_ONE.isdisjoint(names):
        return origins
    if len(set(origins)) == 1:  # everything is made of one input column
        return origins[:1] * _n_outputs(transformer, step)
    raise UnsupportedModelError(
        f"the step {truncated_repr(step)} ({type(transformer).__name__}) makes columns out of "
        "several input columns of the Pipeline, or is not known to keep them apart, so no input column owns its "
        "outputs. Give groups='encoded' for the features that enter the final model, group those by "
        "groups={'name': [columns]}, or explain `pipeline.predict` by BlackBoxExplainer."
    )


def _n_outputs(transformer: Any, step: str) -> int:
    try:
        return len(transformer.get_feature_names_out())
    except (AttributeError, ValueError, TypeError) as error:
        raise UnsupportedModelError(
            f"the step {truncated_repr(step)} ({type(transformer).__name__}) does not say what its "
            f"output columns are ({error_text(error)}). Give it get_feature_names_out, or groups='encoded'."
        ) from error


def _repeated(origins: Origins, counts: Sequence[Any]) -> Origins:
    return [origin for origin, count in zip(origins, counts, strict=True) for _ in range(int(count))]


def _pipeline(pipeline: Any, origins: Origins, step: str) -> Origins:
    for name, part in pipeline.steps:
        origins = through(part, origins, f"{step}.{name}" if step else name)
    return origins


def _column_transformer(transformer: Any, origins: Origins, step: str) -> Origins:
    found: Origins = []
    for name, part, columns in parts_of(transformer, len(origins)):
        found += through(part, [origins[c] for c in columns], f"{step}.{name}" if step else name)
    return found


def parts_of(transformer: Any, n_columns: int) -> list[tuple[str, Any, list[int]]]:
    """Return names, transformers and columns of a fitted ColumnTransformer, in the order of its outputs."""
    names = [str(name) for name in getattr(transformer, "feature_names_in_", ())]
    parts = {}
    for name, part, columns in transformer.transformers_:
        chosen = _positions(columns, names, n_columns)
        if chosen and not (isinstance(part, str) and part == "drop"):
            parts[name] = (name, part, chosen)
    return [parts[name] for name in sorted(parts, key=lambda name: transformer.output_indices_[name].start)]


def _positions(columns: Any, names: list[str], n_columns: int) -> list[int]:
    """Return the positions that a ColumnTransformer selects: by names, numbers, a slice of either, or a mask."""
    if isinstance(columns, slice):
        first, last = columns.start, columns.stop
        if isinstance(first, str) or isinstance(last, str):  # both ends are included
            begin = 0 if first is None else names.index(first)
            end = n_columns if last is None else names.index(last) + 1
            return list(range(begin, end))[:: columns.step]
        return list(range(n_columns))[columns]
    chosen = np.atleast_1d(np.asarray(columns, dtype=object)).tolist()
    if chosen and all(isinstance(c, bool | np.bool_) for c in chosen):
        return [int(c) for c in np.flatnonzero(chosen)]
    return [names.index(c) if isinstance(c, str) else int(c) % n_columns for c in chosen]


def _feature_union(union: Any, origins: Origins, step: str) -> Origins:
    result: Origins = []
    for name, part in union.transformer_list:
        if not (isinstance(part, str) and part == "drop"):
            result += through(part, origins, f"{step}.{name}" if step else name)
    return result


def _one_hot(encoder: Any, origins: Origins, step: str) -> Origins:
    dropped = encoder.drop_idx_ if encoder.drop_idx_ is not None else [None] * len(origins)
    rare = getattr(encoder, "infrequent_categories_", [None] * len(origins))
    counts = [
        len(labels) - (0 if few is None else len(few) - 1) - (drop is not None)
        for labels, few, drop in zip(encoder.categories_, rare, dropped, strict=True)
    ]
    return _repeated(origins, counts)


def _bins(discretizer: Any, origins: Origins, step: str) -> Origins:
    return origins if discretizer.encode == "ordinal" else _repeated(origins, discretizer.n_bins_)


def _evenly(transformer: Any, origins: Origins, step: str) -> Origins:
    """Return the same number of outputs for each input, grouped by input (splines; target means per class)."""
    return _repeated(origins, [_n_outputs(transformer, step) // len(origins)] * len(origins))


def _simple_imputer(imputer: Any, origins: Origins, step: str) -> Origins:
    indicated = [] if imputer.indicator_ is None else _indicator(imputer.indicator_, origins, step)
    n_filled = _n_outputs(imputer, step) - len(indicated)
    if n_filled < len(origins):  # columns without any value in training are dropped
        empty = [value is None or value != value for value in imputer.statistics_.tolist()]
        origins = [origin for origin, left_out in zip(origins, empty, strict=True) if not left_out]
    return origins + indicated


def _indicator(indicator: Any, origins: Origins, step: str) -> Origins:
    return [origins[f] for f in indicator.features_]


def _selector(selector: Any, origins: Origins, step: str) -> Origins:
    return [origins[f] for f in selector.get_support(indices=True)]


def _function(transformer: Any, origins: Origins, step: str) -> Origins:
    # A ufunc keeps columns apart; for other functions, the user must say so.
    elementwise = transformer.func is None or isinstance(transformer.func, np.ufunc)
    if elementwise or transformer.feature_names_out == "one-to-one" or len(set(origins)) == 1:
        n_outputs = len(origins) if elementwise else _n_outputs(transformer, step)
        return origins if n_outputs == len(origins) else origins[:1] * n_outputs
    raise UnsupportedModelError(
        f"it is unknown whether the function of the step {truncated_repr(step)} (FunctionTransformer) keeps columns "
        "apart. If it does, give FunctionTransformer(..., feature_names_out='one-to-one'); if not, groups='encoded'."
    )


_RULES: dict[str, Callable[[Any, Origins, str], Origins]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "FunctionTransformer": _function,
    "KBinsDiscretizer": _bins,
    "MissingIndicator": _indicator,
    "OneHotEncoder": _one_hot,
    "SelectorMixin": _selector,
    "SimpleImputer": _simple_imputer,
    "SplineTransformer": _evenly,
    "TargetEncoder": _evenly,
}
