"""Views of a spectrum: `TopTerms`, its largest terms by name, and a plot of all terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import import_optional
from fouriershap._base.errors import InputError

Floats = NDArray[np.float64]
_MOST_LINES = 20
_MOST_OUTPUTS = 4
_COLOUR, _QUIET = "#2e86ab", "#9aa5b1"
_LEVELS = (0.9, 0.99, 0.999)  # marked shares of the variance
_MANY = 50  # terms from which their axis is logarithmic


@dataclass(frozen=True, eq=False)
class TopTerms:
    """The largest terms of a spectrum, largest first; the constant is not one of them.

    A term equals its coefficient where an even number of its bits are 1, and minus its coefficient where an odd
    number are. So a single bit whose coefficient is -0.5 raises the function by 1.

    Attributes
    ----------
    labels : tuple of str
        The bits of each term: ``"x0 × x3"``, or the given names.
    frequencies : (k, n_bits) bool
    coefficients : (k,) or (k, n_outputs) float64
    share : (k,) float64
        Share of the variance on the cube, summed over outputs.
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


def plot_terms(curve: Floats, profile: Floats, counts: NDArray[np.int64], n_bits: int, axes: Any) -> Any:
    """Draw what `Spectrum.plot` documents.

    ``curve`` is the `Spectrum.energy_curve`; ``profile`` and ``counts`` are energy and number of terms of each degree
    from 1 on.
    """
    if axes is None:
        plt = import_optional("matplotlib.pyplot", "a plot", "matplotlib")
        axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", width_ratios=(1.4, 1))[1]
    if np.shape(axes) != (2,):
        raise InputError("axes must be two matplotlib Axes: for the curve and for the degrees.")
    _draw_curve(axes[0], curve)
    axes[0].set_title(f"{len(curve):,} terms of {n_bits} bits", fontsize=10)
    _draw_degrees(axes[1], profile, counts)
    return axes


def _draw_curve(axis: Any, curve: Floats) -> None:
    number = np.arange(1, len(curve) + 1)
    axis.plot(number, curve, color=_COLOUR, lw=2, marker="o" if len(curve) < _MANY else None, ms=4)
    # Rounding can leave the last sum slightly below a level, although all terms hold everything.
    needed = [min(int(np.searchsorted(curve, level)) + 1, len(curve)) for level in _LEVELS if len(curve)]
    for terms in needed:
        axis.plot([terms, terms], [0, curve[terms - 1]], color=_QUIET, lw=0.8, ls=":", zorder=0)
    lines = [f"R² {level:g}: {terms:,} terms" for level, terms in zip(_LEVELS, needed, strict=False)]
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
    place = {"transform": axis.transAxes, "ha": "right", "va": "bottom"}
    axis.text(0.97, 0.05, "\n".join(lines), fontsize=9, bbox=box, **place)
    if len(curve) >= _MANY:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
    else:
        axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set(xlabel="number of terms, largest first", ylabel="R² on the cube", ylim=(0, 1.03))


def _draw_degrees(axis: Any, profile: Floats, counts: NDArray[np.int64]) -> None:
    share = profile / profile.sum() if profile.sum() > 0 else profile
    degrees = np.arange(1, len(profile) + 1)
    axis.bar(degrees, share, color=_COLOUR, width=0.65)
    if len(degrees) <= 12:  # beyond, the numbers would overlap
        for degree, part, count in zip(degrees, share, counts, strict=True):
            axis.text(degree, part + 0.015, f"{count:,}", ha="center", fontsize=9)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set(xlabel="degree (bits in a term)", ylabel="share of the variance", ylim=(0, 1.1))
    axis.set_title("by degree, with numbers of terms", fontsize=10)
