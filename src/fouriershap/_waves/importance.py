"""Which waves matter, and what they look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import need
from fouriershap._base.errors import InputError
from fouriershap._base.short import short

if TYPE_CHECKING:
    from fouriershap._waves.waves import Waves

Floats = NDArray[np.float64]
_COLOUR = "#2e86ab"
_MOST_SHOWN = 24  # waves and players of the picture


def importance(waves: Waves, rows: Any) -> Floats:
    """What `Waves.importance` says."""
    terms = waves.terms(rows)  # (n_rows, n_waves)
    outputs = waves.predict(rows)
    centred = outputs - outputs.mean(axis=0)
    if len(terms) < 2 or not (centred**2).sum() > 0:
        raise InputError(
            f"rows has {len(terms)} rows on which the waves do not vary; give several different ones."
        )
    moved = (terms - terms.mean(axis=0)).T @ centred  # (n_waves, n_outputs)
    return np.asarray((moved * waves.amplitudes).sum(axis=1) / (centred**2).sum())


def spread_by_player(waves: Waves, rows: Any) -> Floats:
    """(n_waves, n_players): standard deviation of what a player adds to the phase of a wave, in radians."""
    values, slot = waves.columns.slots(rows)
    out = np.zeros((len(waves), waves.n_players))
    for player in range(waves.n_players):
        angle = np.zeros((len(values), len(waves)))
        for f in np.flatnonzero(waves.columns.player == player):
            angle += waves.frequencies.T[slot[:, f]] * values[:, f, None]
        out[:, player] = angle.std(axis=0)
    return out


def plot(waves: Waves, rows: Any, names: Sequence[str] | None, axes: Any) -> Any:
    """What `Waves.plot` draws."""
    plt = need("matplotlib.pyplot", "plots", "matplotlib")
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=(1, 1.5))[1]
    if np.shape(axes) != (2,):
        raise InputError("axes must be two matplotlib Axes: for the curve and for the waves.")
    if names is not None and (isinstance(names, str) or len(names) != waves.n_players):
        raise InputError(f"names is {short(names)}; give a name for each of the {waves.n_players} players.")
    share, spread = importance(waves, rows), spread_by_player(waves, rows)
    order = np.argsort(-share, kind="stable")
    linear = 1 - share.sum()
    axes[0].plot(
        np.arange(len(share) + 1), linear + np.concatenate([[0], np.cumsum(share[order])]), color=_COLOUR
    )
    axes[0].set(
        xlabel="number of waves, largest first", ylabel="share of the variance", ylim=(min(0, linear), 1.03)
    )
    axes[0].set_title(f"{linear:.0%} is linear, the rest {len(share)} waves", fontsize=10)
    top = order[:_MOST_SHOWN]
    players = np.argsort(-(share[top] @ spread[top]), kind="stable")[:_MOST_SHOWN]
    picture = axes[1].imshow(spread[top][:, players].T, cmap="Blues", aspect="auto", vmin=0)
    labels = [f"player {j}" if names is None else str(names[j]) for j in players]
    axes[1].set_yticks(range(len(players)), labels, fontsize=8)
    axes[1].set(xlabel="waves, largest first")
    axes[1].set_title("how far players move each phase (radians)", fontsize=10)
    axes[1].figure.colorbar(picture, ax=axes[1])
    return axes
