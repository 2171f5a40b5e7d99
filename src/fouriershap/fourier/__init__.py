"""Stage 1 on bits: functions in, spectra out."""

from fouriershap.fourier._exact import walsh_hadamard
from fouriershap.fourier._sparse import sparse_walsh_hadamard

__all__ = ["sparse_walsh_hadamard", "walsh_hadamard"]
