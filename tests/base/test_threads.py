"""Threads of other libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("threadpoolctl")
pytest.importorskip("scipy")

SCRIPT = """
from fouriershap._base.threads import one_blas_thread
with one_blas_thread():
    import scipy.linalg
    from threadpoolctl import threadpool_info
    assert [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"].count(1) == sum(
        i["user_api"] == "blas" for i in threadpool_info()
    ), threadpool_info()
"""


def test_linear_algebra_that_is_loaded_later_stays_on_one_thread_too():
    """Else the first fit of a process gives other bits than the second."""
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
