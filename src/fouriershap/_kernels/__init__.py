"""Kernels: the inner loops, as functions on flat arrays, one family per module.

Each family exists twice with one interface: a NumPy module (``bits_numpy``), which is the specification, and a C++
one (``_native.bits``). ``kernels.bits`` is the C++ one where the package was built with a compiler, the NumPy one
elsewhere or with the environment variable ``FOURIERSHAP_KERNELS=numpy``. The C++ code comes in two builds,
``_native`` for any processor and ``_native_avx2``; ``FOURIERSHAP_KERNELS=baseline`` asks for the first. Kernels
release the GIL and start no threads: `_base.parallel` cuts the rows into blocks and runs them on a pool.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from fouriershap._base.errors import InputError, SlowKernelWarning
from fouriershap._base.messages import error_text, truncated_repr
from fouriershap._base.warn import warn

if TYPE_CHECKING:
    import fouriershap._kernels.bits_numpy as bits
    import fouriershap._kernels.build_numpy as build
    import fouriershap._kernels.encode_numpy as encode
    import fouriershap._kernels.leaves_numpy as leaves
    import fouriershap._kernels.nodes_numpy as nodes
    import fouriershap._kernels.numbers_numpy as numbers
    import fouriershap._kernels.orders_numpy as orders
    import fouriershap._kernels.products_numpy as products
    import fouriershap._kernels.stream_numpy as stream
    import fouriershap._kernels.tables_numpy as tables
    import fouriershap._kernels.tree_blocks_numpy as tree_blocks
    import fouriershap._kernels.tree_tables_numpy as tree_tables
    import fouriershap._kernels.walk_numpy as walk
    import fouriershap._kernels.waves_numpy as waves

FAMILIES = (
    *("bits", "build", "encode", "leaves", "nodes", "numbers", "orders"),
    *("products", "stream", "tables", "tree_blocks", "tree_tables", "walk", "waves"),
)
__all__ = [
    "FAMILIES",
    "backend",
    "bits",
    "build",
    "encode",
    "instruction_set",
    "leaves",
    "nodes",
    "numbers",
    "orders",
    "products",
    "stream",
    "tables",
    "tree_blocks",
    "tree_tables",
    "walk",
    "waves",
]
_CHOICES = {
    "auto": ("_native_avx2", "_native"),
    "native": ("_native_avx2", "_native"),
    "baseline": ("_native",),
}


def _load_native() -> Any:
    choice = os.environ.get("FOURIERSHAP_KERNELS", "auto")
    if choice == "numpy":
        return None
    if choice not in _CHOICES:
        raise InputError(
            f"FOURIERSHAP_KERNELS is {truncated_repr(choice)}; set it to 'auto', 'native', 'baseline' or 'numpy'."
        )
    for name in _CHOICES[choice]:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ImportError as error:  # built for another processor, or not at all
            missing = error
    if choice != "auto":
        raise missing
    warn(
        "fouriershap runs on its NumPy kernels, which are exact but 10 to 100 times slower: the native "
        f"kernels are not installed ({error_text(missing)}). Install a C++ compiler (GCC or Clang) and reinstall with "
        "`pip install --force-reinstall --no-binary fouriershap fouriershap`, or set "
        "FOURIERSHAP_KERNELS=numpy to say that this is intended.",
        SlowKernelWarning,
    )
    return None


def __getattr__(name: str) -> Any:
    # Families are resolved at first use, so that importing the package neither warns nor loads anything.
    if name == "_native_module":
        value: Any = _load_native()
    elif name in FAMILIES:
        native = _loaded()
        value = getattr(native, name) if native else importlib.import_module(f"{__name__}.{name}_numpy")
    else:
        raise AttributeError(f"module {truncated_repr(__name__)} has no attribute {truncated_repr(name)}")
    globals()[name] = value
    return value


def _loaded() -> Any:
    return globals()["_native_module"] if "_native_module" in globals() else __getattr__("_native_module")


def backend() -> str:
    """Return which kernels are in use: ``"native"`` or ``"numpy"``."""
    return "native" if _loaded() else "numpy"


def instruction_set() -> str:
    """Return the instruction set that the native kernels were compiled for, ``"none"`` without them."""
    return str(_loaded().instruction_set) if _loaded() else "none"
