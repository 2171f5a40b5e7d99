"""The largest terms of a spectrum, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_whole
from fouriershap._base.errors import InputError
from fouriershap._base.short import short

if TYPE_CHECKING:
    from fouriershap._fourier.spectrum import Spectrum

Floats = NDArray[np.float64]
_MOST_LINES = 20
_MOST_OUTPUTS = 4


@dataclass(frozen=True, eq=False)
class TopTerms:
    """The largest terms of a spectrum, largest first; the constant is not one of them.

    A term is its coefficient where an even number of its bits are 1, and minus that where an odd number are. So
    a single bit whose coefficient is -0.5 raises the function by 1.

    Attributes
    ----------
    labels : tuple of str
        The bits of each term: ``"x0 × x3"``, or by the names that were given.
    frequencies : (k, n_bits) bool
    coefficients : (k,) or (k, n_outputs) float64
    share : (k,) float64
        Of the variance on the cube, summed over outputs.
    """

    labels: tuple[str, ...]
    frequencies: NDArray[np.bool_]
    coefficients: Floats
    share: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        head = f"TopTerms({len(self)} terms, {100 * self.share.sum():.1f} % of the variance)"
        shown = self.labels[:_MOST_LINES]
        width = max(map(len, shown), default=0)
        values = self.coefficients[:, None] if self.coefficients.ndim == 1 else self.coefficients
        more = " ..." if values.shape[1] > _MOST_OUTPUTS else ""
        lines = [
            f"  {label:<{width}}  {' '.join(f'{v:+10.4g}' for v in line[:_MOST_OUTPUTS])}{more}  {100 * s:5.1f} %"
            for label, line, s in zip(shown, values, self.share, strict=False)
        ]
        rest = [f"  ... {len(self) - len(shown)} more"] if len(self) > len(shown) else []
        return "\n".join([head, *lines, *rest])


def top_terms(spectrum: Spectrum, k: int, names: Sequence[str] | None) -> TopTerms:
    """What `Spectrum.top_terms` says."""
    check_whole("k", k, 0, " of terms to show")
    name = _check_names(names, spectrum.n_bits)
    energies = (spectrum.coefficients.reshape(len(spectrum), spectrum.n_outputs) ** 2).sum(axis=1)
    varying = np.flatnonzero(spectrum.degrees > 0)
    order = varying[np.argsort(-energies[varying], kind="stable")][:k]
    frequencies = spectrum.frequencies[order]
    labels = tuple(" × ".join(name[bit] for bit in np.flatnonzero(line)) for line in frequencies)
    total = spectrum.variance
    share = energies[order] / total if total > 0 else np.zeros(len(order))
    return TopTerms(labels, frequencies, spectrum.coefficients[order], share)


def _check_names(names: Sequence[str] | None, n_bits: int) -> list[str]:
    if names is None:
        return [f"x{bit}" for bit in range(n_bits)]
    if isinstance(names, str) or len(names) != n_bits:
        raise InputError(f"names is {short(names)}; give a name for each of the {n_bits} bits.")
    return [str(name) for name in names]
