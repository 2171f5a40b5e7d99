"""Stage 1 on bits: functions in, spectra out."""

from fouriershap.fourier._exact import walsh_hadamard

__all__ = ["walsh_hadamard"]
