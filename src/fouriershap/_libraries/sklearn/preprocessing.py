"""scikit-learn Pipelines: what happens to rows before the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import are_numbered_names, numbered_names
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.messages import error_text, truncated_list, truncated_repr
from fouriershap._libraries.sklearn.column_origins import through
from fouriershap._libraries.sklearn.step_readers import Steps, read_steps
from fouriershap._rows.frames import as_frame, check_columns, column_names, densified, is_sparse
from fouriershap._rows.pool import Pool
from fouriershap._rows.preprocessing import InputColumn, UnknownStepError
from fouriershap._rows.recipes import DTYPES, Recipe
from fouriershap._rows.steps import check_steps

_ROWS_TO_TRY = 32
_ROWS_TO_KEEP = 256
_CELLS_TO_TRY = 1 << 22  # at a time


@dataclass(frozen=True, eq=False)
class PipelineSteps:
    """Fitted steps before a model, of each Pipeline around it (see `LivePreprocessing`)."""

    pipelines: tuple[Any, ...]  # without their last steps, the outermost first

    def transform(self, X: Any, name: str) -> Any:
        """Return rows as the final model takes them, in the type that the last transformer returns."""
        known, given = self.known_names(), X
        if known is not None:
            check_columns(X, known, name)
        try:
            for pipeline in self.pipelines:
                X = pipeline.transform(X)
            return X
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            text = error_text(error)
            hint = _columns_with_gaps(given) if "NaN" in text or "infinity" in text else ""
            raise InputError(f"{name} does not go through the pipeline: {text}{hint}") from error

    def first_rows(self, background: Any) -> Any:
        """Return some rows to try steps on before a file keeps them: a copy, so that the table can be freed."""
        if background is None or is_sparse(background):
            return background
        frame = as_frame(background)
        few = background[:_ROWS_TO_KEEP] if frame is None else frame.head(_ROWS_TO_KEEP).to_native()
        return few.copy() if hasattr(few, "copy") else few

    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        """Return no labels: a live Pipeline decides itself what it accepts."""
        return {}

    def known_names(self) -> tuple[str, ...] | None:
        """Return the names of the columns that enter the pipeline; None if it was fitted on arrays."""
        names = getattr(self.pipelines[0], "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    def output_names(self) -> tuple[str, ...] | None:
        """Return the names of the features that enter the final model; None if a transformer does not tell."""
        try:
            names = self.pipelines[0].get_feature_names_out()
            for pipeline in self.pipelines[1:]:
                names = pipeline.get_feature_names_out(names)
            return tuple(str(name) for name in names)
        except (ValueError, TypeError, AttributeError):  # a transformer of the user's own, without names
            return None

    def input_names(self, background: Any) -> tuple[str, ...]:
        """Return the names of the columns that enter: from training, from the background, or made up."""
        names = self.known_names()
        if names is not None:
            return names
        found = column_names(background) if background is not None else None
        n_columns = getattr(self.pipelines[0], "n_features_in_", None)
        if found is None and n_columns is None:
            raise UnsupportedModelError(
                "the pipeline does not know its input columns. Fit it on a data frame, or give groups='encoded'."
            )
        return found or numbered_names(n_columns or 0)

    def input_players(
        self, background: Any, n_features: int
    ) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[InputColumn, ...]]:
        """Return input columns as players: that of each feature, their names, and all input columns.

        Columns that the pipeline drops are not players. If there is a background, the map is tried out on its rows:
        changing one input column must leave the features of all others alone.
        """
        names = self.input_names(background)
        origins = list(range(len(names)))
        for pipeline in self.pipelines:
            origins = through(pipeline, origins, "")
        origin = np.array(origins, dtype=np.int64)
        if len(origin) != n_features:
            raise UnsupportedModelError(
                f"the pipeline's transformers account for {len(origin)} columns, but the final model "
                f"has {n_features} features. Give groups='encoded', or group those features by groups={{...}}."
            )
        if background is not None and not is_sparse(background):
            self._try_out(background, origin, names)
        used, player = np.unique(origin, return_inverse=True)
        position = {int(i): player for player, i in enumerate(used)}
        columns = tuple(InputColumn(name, position.get(i, -1)) for i, name in enumerate(names))
        return player.astype(np.int32), tuple(names[i] for i in used), columns

    def _try_out(self, background: Any, origin: NDArray[np.int64], names: tuple[str, ...]) -> None:
        pool = Pool(background, "background")
        n, n_columns = min(pool.n_rows, _ROWS_TO_TRY), len(names)
        at_once = max(1, _CELLS_TO_TRY // (n * n_columns))
        for first in range(0, n_columns, at_once):
            tried = np.arange(first, min(first + at_once, n_columns))
            # Block 0: the rows. The blocks after it: the same, with one column from the row before.
            index = np.tile(np.arange(n)[:, None], (len(tried) + 1, n_columns)).reshape(len(tried) + 1, n, -1)
            index[np.arange(1, len(tried) + 1), :, tried] = np.roll(np.arange(n), 1)
            rows = self.transform(pool.take(index.reshape(-1, n_columns)), "background")
            plain, *changed = np.asarray(densified(rows)).reshape(len(tried) + 1, n, -1)
            for j, columns in zip(tried, changed, strict=True):
                same = (columns == plain) | ((columns != columns) & (plain != plain))
                wrong = np.flatnonzero(~same.all(axis=0) & (origin != j))
                if len(wrong):
                    raise UnsupportedModelError(
                        f"feature {wrong[0]} of the final model changes with the input columns "
                        f"{truncated_repr(names[j])} and {truncated_repr(names[origin[wrong[0]]])}; a "
                        "transformer does not keep columns apart. Give groups='encoded', or explain "
                        "`pipeline.predict` by BlackBoxExplainer."
                    )

    def read_steps(self) -> tuple[Steps, int]:
        """Return the steps as plain data, and the number of input columns; `UnknownStepError` if they are unknown."""
        n_columns = int(self.pipelines[0].n_features_in_)
        steps: Steps = ()
        for pipeline in self.pipelines:
            steps += read_steps(pipeline, check_steps(steps, n_columns))
        return steps, n_columns

    def to_recipe(self, sample: Any, absent_is_missing: bool) -> Recipe:
        """Return the steps as plain data, tried out on rows; `UnknownStepError` if files cannot keep them."""
        if sample is None:
            raise UnknownStepError("there are no background rows to try its steps on")
        if is_sparse(sample):
            raise UnknownStepError("it takes sparse matrices")
        names, n_columns = self.known_names(), len(self.input_names(sample))
        steps: Steps = ()
        width = n_columns
        for pipeline in self.pipelines:
            steps += read_steps(pipeline, width)
            width = check_steps(steps, n_columns)
        want = self.transform(sample, "background")
        zeros = is_sparse(want) and absent_is_missing
        want = np.asarray(densified(want, zeros))
        if want.dtype.kind == "O":
            want = want.astype(np.float64)
        if want.dtype.name not in DTYPES or (zeros and want.dtype.kind != "f"):
            raise UnknownStepError(f"its output has dtype {want.dtype}")
        if names is not None and are_numbered_names(names):
            names = None
        recipe = Recipe(names, n_columns, steps, want.dtype.name, zeros)
        made = recipe.transform(sample, "background")
        if made.shape != want.shape or not np.array_equal(made, want, equal_nan=want.dtype.kind == "f"):
            raise UnknownStepError("fouriershap's copy of its steps disagrees with the Pipeline")
        return recipe


def _columns_with_gaps(X: Any) -> str:
    """Return a sentence that names the columns of a frame with missing or infinite numbers."""
    frame = as_frame(X)
    if frame is None:
        return ""
    found = []
    for series in frame.iter_columns():
        if series.dtype.is_numeric():
            if not np.isfinite(series.to_numpy().astype(np.float64)).all():
                found.append(series.name)
        elif series.is_null().any():
            found.append(series.name)
    return f" Columns with missing or infinite values: {truncated_list(found)}." if found else ""
