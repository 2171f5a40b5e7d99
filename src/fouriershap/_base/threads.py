"""Limits on the threads of other libraries.

Threads that wait for each other after every small product take many times as long on a busy machine.
"""

from __future__ import annotations

import contextlib
import sys
from functools import lru_cache
from typing import Any


def one_blas_thread() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which linear algebra uses one thread; a setting of the whole process."""
    # Only loaded libraries are limited. scipy has its own: loaded within, it would take every core, and round
    # differently the next time.
    with contextlib.suppress(ImportError):
        import scipy.linalg  # noqa: F401
    try:
        controller = _controller(len(sys.modules))
    except ImportError:
        return contextlib.nullcontext()
    limits: contextlib.AbstractContextManager[Any] = controller.limit(limits=1, user_api="blas")
    return limits


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> Any:
    """Find the libraries that are loaded: milliseconds, so only where more was imported since."""
    from threadpoolctl import ThreadpoolController  # scikit-learn brings it along

    return ThreadpoolController()
