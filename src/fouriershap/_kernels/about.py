"""Versions, kernels and machine: what a bug report needs."""

from __future__ import annotations

import os
import platform
import sysconfig
from importlib.metadata import PackageNotFoundError, version

from fouriershap import _kernels

_LIBRARIES = (
    *(
        "numpy",
        "narwhals",
        "shap",
        "scikit-learn",
        "xgboost",
        "lightgbm",
        "catboost",
        "onnx",
        "onnxruntime",
        "skops",
    ),
    *(
        "pandas",
        "polars",
        "pyarrow",
        "scipy",
        "matplotlib",
        "plotly",
        "jax",
        "torch",
        "pyspark",
        "dask",
        "ray",
    ),
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
    threads = ", free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    found = [f"{name} {number}" for name in _LIBRARIES if (number := _version(name))]
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
