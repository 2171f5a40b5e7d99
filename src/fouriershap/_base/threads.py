"""Threads of other libraries, kept to one where their work comes in crumbs.

Threads that wait for each other after every small product take many times as long on a busy machine.
"""

from __future__ import annotations

import contextlib
from typing import Any


def one_blas_thread() -> contextlib.AbstractContextManager[Any]:
    """Within it, linear algebra stays on the thread that asks for it; a setting of the whole process."""
    # Only what is loaded is limited, and scipy has a library of its own: loaded within, it would take every core, and
    # round in another way than the next time.
    with contextlib.suppress(ImportError):
        import scipy.linalg  # noqa: F401
    try:
        from threadpoolctl import threadpool_limits  # scikit-learn brings it along
    except ImportError:
        return contextlib.nullcontext()
    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limits
