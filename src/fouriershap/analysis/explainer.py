"""`ExplainerLike`: what analyses and the report ask of an explainer, and the checks that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import ProgressOption, as_floats
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.progress import Progress
from fouriershap._rows.frames import Rows
from fouriershap._rows.inputs import Encoder, InputField
from fouriershap._shapley.engine import Engine, Estimates

if TYPE_CHECKING:
    from fouriershap._blackbox.black_box_fit import BlackBoxFit

Floats = NDArray[np.float64]
Background = tuple[NDArray[Any], Floats | None]


class InputsLike(Protocol):
    """How an explainer reads rows."""

    @property
    def encoder(self) -> Encoder:
        """How columns become codes."""

    @property
    def code_players(self) -> NDArray[np.int32]:
        """The player of each column of codes."""

    def encode(self, X: Any, name: str = "X") -> Rows:
        """Return the rows as the engine takes them, with what is shown of them; errors call them ``name``."""

    def fields(self, rows: Rows) -> list[InputField]:
        """Return the inputs of rows as a person reads and changes them."""


class ExplainerLike(Protocol):
    """An explainer: names, inputs and an engine."""

    kind: str
    n_jobs: int
    progress: ProgressOption
    checksum: str | None
    output_names: tuple[str, ...] | None
    class_labels: tuple[str, ...] | None  # those of the model, where the outputs have other names
    model_name: str | None  # the class of the model with its module, where it is known
    fitted: BlackBoxFit | None  # the representation of a black box

    @property
    def feature_names(self) -> tuple[str, ...]: ...

    @property
    def player_names(self) -> tuple[str, ...]: ...

    @property
    def inputs(self) -> InputsLike: ...

    @property
    def engine(self) -> Engine: ...

    @property
    def input_names(self) -> tuple[str, ...] | None: ...

    def offline(self, rows: Any) -> ExplainerLike:
        """Return an explainer of a representation: itself, or one that is fitted to a black box at these rows."""

    def with_background(self, background: Any, *, weights: ArrayLike | None = None) -> Self: ...


def check_engine(explainer: ExplainerLike, method: str) -> Engine:
    """Return the engine; raise unless its values add up to a prediction."""
    engine = explainer.engine
    if not engine.index.adds_up:
        raise InputError(
            f"{method} needs values that add up to a prediction, unlike those of "
            f"index={truncated_repr(engine.index.name)}. "
            "Use index='shapley'."
        )
    return check_predictions(explainer, method)


def check_predictions(explainer: ExplainerLike, method: str) -> Engine:
    """Return the engine; raise if it explains losses."""
    output = explainer.engine.output
    if output.needs_labels:
        raise InputError(
            f"{method} explains predictions, but this explainer has output={truncated_repr(output.name)}. Use another."
        )
    return explainer.engine


def background_of(explainer: ExplainerLike) -> Background | None:
    """Return the encoded background rows and their weights; None if the explainer does not have them."""
    found = explainer.engine.background
    return None if found is None or not len(found) else (found.rows, found.weights)


def with_other_background(
    explainer: ExplainerLike, background: Any, weights: ArrayLike | None, name: str = "background"
) -> ExplainerLike:
    """Return the explainer, against ``background`` if it is given; errors call it ``name``."""
    if background is not None:
        return explainer.with_background(background, weights=weights)
    if weights is not None:
        raise InputError(f"{name}_weights was given without {name}.")
    return explainer


def output_names(explainer: ExplainerLike) -> tuple[str, ...]:
    """Return the names of the outputs, numbered where they have none: "probability of default" of a single class."""
    names = explainer.output_names
    if names is None:
        return tuple(f"output {k}" for k in range(explainer.engine.n_outputs))
    unit = explainer.engine.output.unit or "output" * (names == explainer.class_labels)
    return (f"{unit} of {names[0]}",) if len(names) == 1 and unit else names


def encode_rows(explainer: ExplainerLike, X: Any, name: str = "X") -> Rows:
    """Return the encoded rows; raise if there are none."""
    rows = explainer.inputs.encode(X, name)
    if not len(rows):
        raise InputError(f"{name} has 0 rows; give at least one.")
    return rows


def check_row_weights(weights: ArrayLike | None, n_rows: int) -> Floats | None:
    """Return one weight per row of X, or None."""
    if weights is None:
        return None
    array = as_floats(weights, "weights")
    if array.shape != (n_rows,):
        raise InputError(f"weights has shape {array.shape}; give one weight per row of X, ({n_rows},).")
    if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
        raise InputError("weights must be finite and >= 0, and not all zero.")
    return array


def shap_values(explainer: ExplainerLike, codes: NDArray[Any]) -> Floats:
    """Return the SHAP values (n_rows, n_players, n_outputs) of encoded rows; raise if some are not finite."""
    return estimates(explainer, codes).values


def estimates(explainer: ExplainerLike, codes: NDArray[Any]) -> Estimates:
    """Return the SHAP values of encoded rows with their errors; raise if some are not finite."""
    with Progress(explainer.progress), np.errstate(over="ignore", invalid="ignore"):
        found = explainer.engine.estimate(codes, explainer.n_jobs)
    values = found.values
    wrong = ~np.isfinite(values).all(axis=(1, 2))
    if wrong.any():
        raise InputError(
            f"the output of row {int(wrong.argmax())} overflows. Explain output='raw', or check the row."
        )
    return found
