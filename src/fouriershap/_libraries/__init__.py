"""Model libraries: one adapter for each, with everything that is known about it."""

from fouriershap._libraries.arithmetic import first_trees, one_output
from fouriershap._libraries.check import ModelCheck, model_check
from fouriershap._libraries.opening import Opened, open_model
from fouriershap._libraries.reading import Library, Reading, UnknownModelError
from fouriershap._libraries.registry import (
    find_function,
    find_library,
    libraries,
    native_rows,
    read,
    read_member,
    read_model,
    response_is_linked,
    supported_text,
    warn_transformed_target,
)
from fouriershap._libraries.survival import survival_trees

__all__ = [
    "Library",
    "ModelCheck",
    "Opened",
    "Reading",
    "UnknownModelError",
    "find_function",
    "find_library",
    "first_trees",
    "libraries",
    "model_check",
    "native_rows",
    "one_output",
    "open_model",
    "read",
    "read_member",
    "read_model",
    "response_is_linked",
    "supported_text",
    "survival_trees",
    "warn_transformed_target",
]
