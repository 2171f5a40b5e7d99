"""A picture of a spectrum: how few terms hold how much of it, and of which degree they are (matplotlib)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fouriershap._base.checks import need
from fouriershap._base.errors import InputError

if TYPE_CHECKING:
    from fouriershap._fourier.spectrum import Spectrum

_COLOUR, _QUIET = "#2e86ab", "#9aa5b1"
_LEVELS = (0.9, 0.99, 0.999)  # shares of the variance that are marked
_MANY = 50  # terms from which their axis is logarithmic


def plot(spectrum: Spectrum, axes: Any = None) -> Any:
    """What `Spectrum.plot` draws."""
    if axes is None:
        axes = _axes()
    if np.shape(axes) != (2,):
        raise InputError("axes must be two matplotlib Axes: for the curve and for the degrees.")
    _draw_curve(axes[0], spectrum)
    _draw_degrees(axes[1], spectrum)
    return axes


def _draw_curve(axis: Any, spectrum: Spectrum) -> None:
    curve = spectrum.energy_curve()
    number = np.arange(1, len(curve) + 1)
    axis.plot(number, curve, color=_COLOUR, lw=2, marker="o" if len(curve) < _MANY else None, ms=4)
    # Rounding can leave the last sum a hair below a level, and all terms hold everything.
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
    axis.set_title(f"{len(curve):,} terms of {spectrum.n_bits} bits", fontsize=10)


def _draw_degrees(axis: Any, spectrum: Spectrum) -> None:
    profile = spectrum.degree_profile()[1:]
    share = profile / profile.sum() if profile.sum() > 0 else profile
    counts = np.bincount(spectrum.degrees, minlength=len(profile) + 1)[1:]
    degrees = np.arange(1, len(profile) + 1)
    axis.bar(degrees, share, color=_COLOUR, width=0.65)
    if len(degrees) <= 12:  # beyond, the numbers would overlap
        for degree, part, count in zip(degrees, share, counts, strict=True):
            axis.text(degree, part + 0.015, f"{count:,}", ha="center", fontsize=9)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set(xlabel="degree (bits in a term)", ylabel="share of the variance", ylim=(0, 1.1))
    axis.set_title("by degree, with numbers of terms", fontsize=10)


def _axes() -> Any:
    plt = need("matplotlib.pyplot", "a plot", "matplotlib")
    return plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", width_ratios=(1.4, 1))[1]
