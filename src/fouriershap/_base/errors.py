"""The exceptions and warnings of fouriershap.

::

    FourierShapError
    ├── InputError (ValueError)            an argument is wrong: which, what came, what to do
    │   └── QueryError                     the function that is asked failed: in which batch, answers so far
    ├── UnsupportedModelError (TypeError)  the model cannot be represented, or is not read right: the way out
    ├── CapacityError (MemoryError)        the result would not fit: how large, and the way out
    ├── FileFormatError (ValueError)       a .fshap file is truncated, changed, foreign or too new
    ├── DiskFullError (OSError)            a file cannot be written for lack of room; the old one is unharmed
    ├── AdditivityError                    explanation and reading disagree: which row, by how much
    └── MissingDependencyError (ImportError)  an extra is not installed: the pip command

    FourierShapWarning (UserWarning)
    ├── FidelityWarning                    a representation misses too much of the model
    ├── ModelWarning                       what is explained is not quite the model that was given
    ├── NoiseWarning                       a model answers the same row differently
    ├── CostWarning                        a call will take long: how long, and the ways out
    ├── ReportWarning                      a page lacks a part: which, and why
    └── SlowKernelWarning                  the native kernels are missing: NumPy does the work
"""

from __future__ import annotations

from typing import Any


class FourierShapError(Exception):
    """Base of every exception that fouriershap raises on purpose."""


class InputError(FourierShapError, ValueError):
    """An argument is wrong. The message names it, shows what came and says what to do."""


class QueryError(InputError):
    """The function that was asked raised, or returned what cannot be used.

    Attributes
    ----------
    batch : int
        Number of the batch that failed, from 0.
    rows : list
        The rows that the function has answered, as it was given them: a part per batch.
    answers : mapping or str
        What ``answers=`` takes back, so that no row is asked again: the answers by row, or the file that they are
        in. Every other exception that ends the asking has it, too.
    """

    def __init__(self, message: str, *, batch: int, rows: list[Any], answers: Any) -> None:
        super().__init__(message)
        self.batch = batch
        self.rows = rows
        self.answers = answers


class UnsupportedModelError(FourierShapError, TypeError):
    """The model is of a kind, or uses a feature, that cannot be represented exactly, or says other than we read."""


class CapacityError(FourierShapError, MemoryError):
    """The result would not fit into memory or into the budget that was given."""


class FileFormatError(FourierShapError, ValueError):
    """A file is not a readable .fshap file: truncated, changed, foreign, or of a newer version."""


class DiskFullError(FourierShapError, OSError):
    """There is no room for a file. What was there before is unharmed, and no part of the new one is left.

    Its ``errno`` is that of the OSError that caused it.
    """


class AdditivityError(FourierShapError):
    """SHAP values and base value do not add up to the output of the model, as it was read."""


class MissingDependencyError(FourierShapError, ImportError):
    """An optional dependency is not installed. The message holds the pip command."""


class FourierShapWarning(UserWarning):
    """Base of every warning that fouriershap emits."""


class FidelityWarning(FourierShapWarning):
    """A representation explains too little of the model. The message says how much, and the ways out."""


class ModelWarning(FourierShapWarning):
    """What is explained is not quite the model that was given. The message says what it is, and why.

    A tree model that cannot be read is fitted as a black box; a transformed target is explained as it is.
    """


class NoiseWarning(FourierShapWarning):
    """A model gave different answers to the same row. The message says by how much, and the ways out."""


class CostWarning(FourierShapWarning):
    """A call will take long. The message says about how long, why, and the ways out."""


class ReportWarning(FourierShapWarning):
    """A page of `Explainer.report` lacks a part. The message says which, and why; the page says so, too."""


class SlowKernelWarning(FourierShapWarning):
    """The native kernels are not installed; the NumPy kernels do the work, correctly but slowly."""
