"""The exceptions and warnings of fouriershap.

::

    FourierShapError
    ├── InputError (ValueError)            an argument is wrong: which, what was given, what to do
    │   └── QueryError                     the function that is asked failed: in which batch, answers so far
    ├── UnsupportedModelError (TypeError)  the model cannot be represented, or our copy disagrees with it
    ├── CapacityError (MemoryError)        the result would not fit: how large, and the way out
    ├── FileFormatError (ValueError)       a .fshap file is truncated, changed, foreign, too old or too new
    ├── FileAccessError (OSError)          a file cannot be opened or written: which, and why
    │   ├── DiskFullError                  the disk is full; the old file is unchanged
    │   └── MissingFileError (FileNotFoundError)  there is no such file or folder
    ├── AdditivityError                    values do not add up to the output: which row, by how much
    └── MissingDependencyError (ImportError)  an optional library is missing: the pip command

    FourierShapWarning (UserWarning)
    ├── FidelityWarning                    a fitted representation may miss too much of the model
    ├── LabelWarning                       rows have labels that the model does not know
    ├── ModelWarning                       what is explained differs from the model that was given
    ├── NoiseWarning                       the model answers the same row differently
    ├── CostWarning                        a call will take long: how long, and what to do
    ├── ReportWarning                      a page or a list of reasons lacks something: what, and why
    └── SlowKernelWarning                  the native kernels are missing: NumPy is used
"""

from __future__ import annotations

from typing import Any


class FourierShapError(Exception):
    """Base of every exception that fouriershap raises on purpose."""


class InputError(FourierShapError, ValueError):
    """An argument is wrong. The message names it, shows what was given and says what to do."""


class QueryError(InputError):
    """The function that was asked raised, or returned something unusable.

    Attributes
    ----------
    batch : int
        Number of the batch that failed, from 0.
    rows : list
        The rows that the function has answered, as it got them: a part per batch.
    answers : mapping or str
        Value for ``answers=``, so that no row is asked again: the answers by row, or the path of their file. Every
        other exception during the queries has it, too.
    """

    def __init__(self, message: str, *, batch: int, rows: list[Any], answers: Any) -> None:
        super().__init__(message)
        self.batch = batch
        self.rows = rows
        self.answers = answers


class UnsupportedModelError(FourierShapError, TypeError):
    """The model, or a feature it uses, cannot be represented exactly, or our copy of it disagrees with it."""


class CapacityError(FourierShapError, MemoryError):
    """The result would not fit into memory, or into the budget that was given."""


class FileFormatError(FourierShapError, ValueError):
    """A file is not a readable .fshap file: truncated, changed, foreign, or of another version."""


class FileAccessError(FourierShapError, OSError):
    """A file cannot be opened or written. ``errno`` is that of the OSError that caused it."""


class DiskFullError(FileAccessError):
    """The disk is full. The file that was there is unchanged, and no part of the new one is left."""


class MissingFileError(FileAccessError, FileNotFoundError):
    """There is no such file, or no folder to write it to."""


class AdditivityError(FourierShapError):
    """SHAP values and base value do not add up to the output of the model."""


class MissingDependencyError(FourierShapError, ImportError):
    """An optional dependency is not installed. The message holds the pip command."""


class FourierShapWarning(UserWarning):
    """Base of every warning that fouriershap emits."""


class FidelityWarning(FourierShapWarning):
    """A fitted representation may explain too little of the model. The message says how much, and what to do."""


class ModelWarning(FourierShapWarning):
    """What is explained differs from the model that was given. The message says how, and why.

    A tree model that cannot be read is explained as a black box; a transformed target is explained as it is.
    """


class LabelWarning(FourierShapWarning):
    """Rows have labels that the model does not know. The message says how many, and in which column."""


class NoiseWarning(FourierShapWarning):
    """A model gave different answers to the same row. The message says by how much, and what to do."""


class CostWarning(FourierShapWarning):
    """A call will take long. The message says about how long, why, and what to do."""


class ReportWarning(FourierShapWarning):
    """A page of `Explainer.report`, or a list of reasons, lacks something. The message says what, and why."""


class SlowKernelWarning(FourierShapWarning):
    """The native kernels are not installed; the NumPy kernels are used, which are correct but slow."""
