"""Models that count what they are asked, and stop in the middle."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np

from fouriershap._base import files


class Counting:
    """Answers by ``function`` and counts; before call number ``stop`` (from 0) it raises ``error``."""

    def __init__(self, function, stop=None, error=KeyboardInterrupt):
        self.function, self.stop, self.error = function, stop, error
        self.calls: list[int] = []

    def __call__(self, rows):
        if self.stop is not None and len(self.calls) >= self.stop:
            raise self.error("stopped")
        self.calls.append(len(rows))
        return self.function(rows)

    @property
    def n_rows(self):
        return sum(self.calls)


def not_asked(rows):
    """A model that must not be asked."""
    raise AssertionError(f"asked about {len(rows)} rows")


def fingerprint(explainer) -> str:
    """Of every array that explaining needs, bit for bit."""
    with tempfile.TemporaryDirectory() as folder:
        explainer.save(Path(folder) / "explainer.fshap")
        arrays = files.read(Path(folder) / "explainer.fshap").arrays
        digest = hashlib.sha256()
        for name in sorted(arrays):
            digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
