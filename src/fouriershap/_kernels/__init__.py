"""The kernels: free functions on flat arrays, a family per module.

Each family exists twice under one signature: a NumPy module (``bits_numpy``), which is the
specification, and a C++ one (``_native.bits``). ``kernels.bits`` is the native one where the package was
built with a compiler, the NumPy one elsewhere or when the environment variable
``FOURIERSHAP_KERNELS=numpy`` asks for it. Kernels release the GIL, start no threads, and never see a
Python object: `_parallel` cuts the rows into blocks and runs them on a pool.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from fouriershap._base.errors import InputError, SlowKernelWarning
from fouriershap._base.short import reason, short
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
    "bits",
    "build",
    "encode",
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


def _load_native() -> Any:
    choice = os.environ.get("FOURIERSHAP_KERNELS", "auto")
    if choice not in ("auto", "native", "numpy"):
        raise InputError(f"FOURIERSHAP_KERNELS is {short(choice)}; set it to 'auto', 'native' or 'numpy'.")
    if choice == "numpy":
        return None
    try:
        return importlib.import_module("fouriershap._kernels._native")
    except ImportError as error:
        if choice == "native":
            raise
        warn(
            "fouriershap runs on its NumPy kernels, which are exact but 10 to 100 times slower: the native "
            f"kernels are not installed ({reason(error)}). Install a C++ compiler (GCC or Clang) and reinstall with "
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
        native = globals().get("_native_module", ...)
        if native is ...:
            native = __getattr__("_native_module")
        value = getattr(native, name) if native else importlib.import_module(f"{__name__}.{name}_numpy")
    else:
        raise AttributeError(f"module {short(__name__)} has no attribute {short(name)}")
    globals()[name] = value
    return value


def backend() -> str:
    """``"native"`` or ``"numpy"``: which kernels are in use."""
    native = globals().get("_native_module", ...)
    return "native" if (__getattr__("_native_module") if native is ... else native) else "numpy"


def instruction_set() -> str:
    """The instruction set that the native kernels were compiled for, ``"none"`` without them."""
    return str(globals()["_native_module"].instruction_set()) if backend() == "native" else "none"
