"""Limits on the threads of other libraries.

Threads that wait for each other after every small product take many times as long on a busy machine.
"""

from __future__ import annotations

import contextlib
from typing import Any


def one_blas_thread() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which linear algebra uses one thread; a setting of the whole process."""
    # Only loaded libraries are limited. scipy has its own: loaded within, it would take every core, and round
    # differently the next time.
    with contextlib.suppress(ImportError):
        import scipy.linalg  # noqa: F401
    try:
        from threadpoolctl import threadpool_limits  # scikit-learn brings it along
    except ImportError:
        return contextlib.nullcontext()
    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limits
