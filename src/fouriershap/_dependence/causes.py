"""`Chain`: groups of features, causes first; and what follows where some features are set from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._dependence.mixture import Conditioned, Floats, Masks, Mixture, inverse_blocks


@dataclass(frozen=True, eq=False)
class Chain:
    """Groups of features, of which earlier ones cause later ones.

    Attributes
    ----------
    place : (n_features,) int64
        Group of each feature.
    confounded : (n_groups,) bool
        Whether the features of a group correlate because of causes that are not among the features. Setting one then
        tells nothing about the others; else they follow it.
    """

    place: NDArray[np.int64]
    confounded: NDArray[np.bool_]

    def to_contents(self) -> dict[str, NDArray[Any]]:
        """Return named arrays for a file."""
        return {"place": self.place, "confounded": self.confounded}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], n_features: int) -> Self:
        """Build from what `to_contents` returned."""
        place, confounded = arrays["place"], arrays["confounded"]
        fits = place.shape == (n_features,) and place.dtype == np.int64 and confounded.dtype == np.bool_
        fits = fits and np.array_equal(np.unique(place), np.arange(len(confounded)))
        require(fits, "its groups of causes have other features")
        return cls(place, confounded)


class Intervened(Conditioned):
    """A Gaussian whose features are set, of each coalition; the others follow group by group, causes first.

    A feature that is not set follows all earlier groups, whether set or not, and what is set in its own group unless
    that is confounded (Heskes et al. 2020).
    """

    def __init__(self, mixture: Mixture, masks: Masks, gone: Masks, chain: Chain) -> None:
        self.mixture, self.masks = mixture, masks
        known = self.known = masks[:, mixture.numbers] & ~gone
        place, covariance = chain.place[mixture.numbers], mixture.covariances[0]
        # Deviations from the mean are those of what is set times gains, and noise with this covariance.
        gains = known[:, :, None] * np.eye(known.shape[1])
        spread = np.zeros_like(gains)
        for group, is_confounded in enumerate(chain.confounded.tolist()):
            mine, earlier = place == group, np.broadcast_to(place < group, known.shape)
            told = earlier if is_confounded else earlier | (known & mine)
            follows = (mine & ~known)[:, None]
            slopes = inverse_blocks(covariance[None], told)[0] @ covariance * follows
            left = (covariance - covariance @ slopes) * (follows.swapaxes(1, 2) & follows)
            across = spread @ slopes
            spread = spread + across + across.swapaxes(1, 2) + slopes.swapaxes(1, 2) @ across + left
            gains = gains + gains @ slopes
        self.covariances, self._gains = ((spread + spread.swapaxes(1, 2)) / 2)[None], gains

    def _means(self, moved: Floats) -> Floats:
        return np.asarray(self.mixture.means[:, None, None] + moved @ self._gains)
