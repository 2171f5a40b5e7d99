"""`Output`: which function of a model's raw output is explained. A new output is one class and one entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice
from fouriershap._base.errors import InputError
from fouriershap._base.links import UNKNOWN, Link
from fouriershap._base.messages import truncated_repr

Floats = NDArray[np.float64]


class Output:
    """An output of a model whose raw output has this link.

    Attributes
    ----------
    name : str
    link : Link
        What turns the raw output into the model's prediction.
    needs_labels : bool
        Whether the output depends on the labels of rows: a loss.
    """

    name: ClassVar[str]
    needs_labels: ClassVar[bool] = False

    def __init__(self, link: Link = UNKNOWN) -> None:
        self.link = link

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.link!r})"

    @property
    def is_raw(self) -> bool:
        """Whether the model's raw output is this output already."""
        return False

    @property
    def function(self) -> Callable[[Floats], Floats] | None:
        """The output of raw outputs (n_rows, n_outputs), where it needs no labels and is known."""
        return None

    @property
    def transform(self) -> Callable[[Floats, Floats], Floats] | None:
        """The output of raw outputs and labels, element by element; None where it depends on several raw outputs."""
        function = self.function
        if function is None or not self.link.is_elementwise:
            return None
        return lambda raw, _: function(raw)

    @property
    def is_probability(self) -> bool:
        """Whether the output is a class probability."""
        return self.link.raw_is_probability if self.is_raw else self.link.gives_probability

    @property
    def unit(self) -> str:
        """The unit of the output, "" where it is unknown."""
        if self.is_probability:
            return "probability"
        return self.link.raw_unit if self.is_raw else ""

    @property
    def display_link(self) -> Link | None:
        """The link from this output to the model's prediction; None where it is that already, or unknown."""
        shown = self.is_raw and not self.link.is_identity and self.link.response is not None
        return self.link if shown else None

    @property
    def probability_link(self) -> str | None:
        """Return "identity" for probabilities, "logit" for their log odds or logits, None for anything else."""
        if self.is_probability:
            return "identity"
        return "logit" if self.is_raw and self.link.raw_is_margin else None


class Raw(Output):
    """The raw output: margins, decision functions, or predictions of models without a link."""

    name = "raw"

    @property
    def is_raw(self) -> bool:
        return True


class Probability(Output):
    """Class probabilities."""

    name = "probability"

    @property
    def is_raw(self) -> bool:
        return self.link.raw_is_probability

    @property
    def function(self) -> Callable[[Floats], Floats] | None:
        return self.link.response if self.link.gives_probability else None


class Response(Output):
    """What ``predict`` or ``predict_proba`` returns."""

    name = "response"

    @property
    def is_raw(self) -> bool:
        return self.link.is_identity

    @property
    def function(self) -> Callable[[Floats], Floats] | None:
        return self.link.response


class LogLoss(Output):
    """The loss that the model was trained by."""

    name, needs_labels = "log_loss", True

    @property
    def transform(self) -> Callable[[Floats, Floats], Floats] | None:
        return self.link.loss

    @property
    def is_probability(self) -> bool:
        return False


OUTPUTS: dict[str, type[Output]] = {each.name: each for each in (Raw, Probability, Response, LogLoss)}
LOSSES = tuple(name for name, output in OUTPUTS.items() if output.needs_labels)


def find_output(name: str, link: Link) -> Output:
    """Return the output of this name for a model with this link, or raise `InputError`."""
    return OUTPUTS[check_choice("output", name, tuple(OUTPUTS))](link)


def needs_labels(output: Output) -> InputError:
    """Return the error for rows without labels, which this output needs."""
    return InputError(
        f"output={truncated_repr(output.name)} needs the labels of the rows: shap_values(X, y)."
    )
