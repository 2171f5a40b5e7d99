"""The columns that an explainer takes, with types by which MLflow calls them."""

from __future__ import annotations

from typing import Any

from fouriershap import Explainer

ANY = "any"  # labels come as text, as categories or as numbers, and MLflow would take but one of them


def column_types(explainer: Explainer, X: Any) -> list[tuple[str | None, str]] | None:
    """Name, None where columns have positions only, and type of each column; of a Pipeline those that enter it.

    Of labels `ANY`, of other columns the type in ``X``, a frame. Where none is given, a model takes numbers, "double";
    but a Pipeline may drop columns of text. None where nobody knows how many columns there are: the Pipeline was
    fitted on arrays, and ``X`` is not given.
    """
    names, without_frame = explainer.input_names, ANY if explainer.has_pipeline else "double"
    if names is None:
        n_columns = _width(X) if explainer.has_pipeline else len(explainer.feature_names)
        return None if n_columns is None else [(None, without_frame)] * n_columns
    in_frame = dict.fromkeys(explainer.known_labels, ANY)
    in_frame = _frame_types(X) | in_frame
    return [(name, in_frame.get(name, without_frame)) for name in names]


def _width(X: Any) -> int | None:
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def _frame_types(X: Any) -> dict[str, str]:
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return {}
    return {name: _type(dtype, nw) for name, dtype in frame.schema.items()}


def _type(dtype: Any, nw: Any) -> str:
    if dtype.is_integer():
        # Of an unsigned one MLflow knows no type that holds all of its values but this.
        return "integer" if dtype in (nw.Int8, nw.Int16, nw.Int32, nw.UInt8, nw.UInt16) else "long"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_numeric():
        return "float" if dtype == nw.Float32 else "double"
    return ANY
