"""Versions, kernels and machine: the facts that a bug report needs."""

from __future__ import annotations

import os
import platform
import sysconfig
from importlib.metadata import PackageNotFoundError, version

from fouriershap import _kernels

# Beside the model libraries, which `libraries` knows.
_PACKAGES = (
    *("numpy", "narwhals", "shap", "onnxruntime", "skops", "pandas", "polars", "pyarrow", "scipy"),
    *("matplotlib", "plotly", "jax", "torch", "dask", "ray"),
)


def about() -> dict[str, str]:
    """Return versions, kernels and machine, as `fouriershap info` prints them.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> import fouriershap as fs
    >>> list(fs.about())
    ['fouriershap', 'kernels', 'Python', 'system', 'libraries']
    """
    from fouriershap._libraries import libraries  # adapters take time to load

    # A distribution has the name of the library, as scikit-learn, or of its package, as pyspark.
    named = ((name,) for name in _PACKAGES)
    found = []
    for names in (*named, *((library.name, library.package) for library in libraries())):
        found += [f"{name} {number}" for name in names if (number := _version(name))][:1]
    threads = ", free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return {
        "fouriershap": _version("fouriershap") or "not installed",
        "kernels": f"{_kernels.backend()}, instruction set {_kernels.instruction_set()}",
        "Python": f"{platform.python_version()} ({platform.python_implementation()}{threads})",
        "system": f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cores",
        "libraries": ", ".join(found),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
