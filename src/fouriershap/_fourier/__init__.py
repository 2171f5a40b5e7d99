"""Stage 1 on bits: functions in, spectra out."""

from fouriershap._fourier.sparse_walsh_hadamard import sparse_walsh_hadamard
from fouriershap._fourier.walsh_hadamard import walsh_hadamard

__all__ = ["sparse_walsh_hadamard", "walsh_hadamard"]
