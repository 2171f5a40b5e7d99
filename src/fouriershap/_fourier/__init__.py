"""Stage 1 on bits: functions in, spectra out."""

from fouriershap._fourier.sparse_transform import sparse_walsh_hadamard
from fouriershap._fourier.transform import walsh_hadamard

__all__ = ["sparse_walsh_hadamard", "walsh_hadamard"]
