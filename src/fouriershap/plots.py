"""Plots of interactions: a heat map of all pairs, and a network of the strongest ones (matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fouriershap import InputError, Interactions
from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import import_optional, numbered_names
from fouriershap._base.messages import wrapped

__all__ = ["interaction_heatmap", "interaction_network"]


@check_arguments
def interaction_heatmap(
    values: ArrayLike, names: Sequence[str] | None = None, *, top_k: int = 12, output: int = 0, ax: Any = None
) -> Any:
    """Plot mean absolute interactions of the strongest players, with main effects on the diagonal.

    Parameters
    ----------
    values : array_like, shape (n_rows, n_players, n_players) or (n_rows, n_players, n_players, n_outputs)
        What ``shap_interaction_values(X)`` returns.
    names : sequence of str, optional
        ``explainer.player_names``.
    top_k : int
        Number of players shown.
    output : int
        Output to show.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 4:
        array = array[..., output]
    if array.ndim != 3 or array.shape[1] != array.shape[2] or not len(array):
        raise InputError(
            f"values has shape {np.shape(values)}; give what shap_interaction_values(X) returns for some rows."
        )
    names = _names(names, array.shape[1])
    strength = np.abs(array).mean(axis=0)
    order = np.argsort(-strength.sum(axis=1), kind="stable")[: max(1, top_k)]
    shown = strength[np.ix_(order, order)]
    ax = _axes(ax, max(4.5, 1.8 + 0.5 * len(order)))
    image = ax.imshow(shown, cmap="Blues", vmin=0)
    labels = [wrapped(names[i], 22) for i in order]
    ax.set_xticks(range(len(order)), labels, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(order)), labels)
    largest = shown.max()
    for (i, j), value in np.ndenumerate(shown):
        if value > 0.01 * largest:  # no number in cells that are nearly white
            ink = "white" if value > 0.6 * largest else "black"
            ax.text(j, i, f"{value:.2g}", ha="center", va="center", color=ink, fontsize=7)
    ax.set_title("mean |interaction|, main effects on the diagonal", fontsize=9)
    ax.figure.colorbar(image, ax=ax, fraction=0.045)
    return ax


@check_arguments
def interaction_network(interactions: Interactions, *, ax: Any = None) -> Any:
    """Plot pairs as edges between their players: wider if stronger, red if they raise the output, else blue.

    Parameters
    ----------
    interactions : Interactions
        ``explainer.interactions(X, order=2, min_order=2, index="SII", top_k=10)``; sets other than pairs are left out.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    chosen: list[int] = []
    if isinstance(interactions, Interactions):
        chosen = [k for k, players in enumerate(interactions.positions) if len(players) == 2]
    if not chosen:
        raise InputError(
            "interactions must be a result of explainer.interactions(X, order=2) with some pairs."
        )
    pairs, sizes = [interactions.sets[k] for k in chosen], interactions.strength[chosen]
    players = sorted({name for pair in pairs for name in pair})
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(players)) / len(players)
    place = {name: (np.cos(a), np.sin(a)) for name, a in zip(players, angle, strict=True)}
    mean = interactions.values[:, chosen].mean(axis=0)
    mean = mean if mean.ndim == 1 else mean[np.arange(len(mean)), np.abs(mean).argmax(axis=1)]
    ax = _axes(ax, 5.5)
    largest = max(float(sizes.max()), 1e-300)
    for (a, b), strength, signed in zip(pairs, sizes, mean, strict=True):
        (x0, y0), (x1, y1) = place[a], place[b]
        colour = "#c8373a" if signed >= 0 else "#1f6fb4"
        ax.plot([x0, x1], [y0, y1], color=colour, linewidth=0.5 + 6 * strength / largest, alpha=0.7, zorder=1)
    for name, (x, y) in place.items():
        ax.scatter([x], [y], s=60, color="#333333", zorder=2)
        side = "left" if x > 0.1 else "right" if x < -0.1 else "center"
        level = "center" if side != "center" else "bottom" if y > 0 else "top"
        ax.text(1.1 * x, 1.1 * y, wrapped(name, 18), ha=side, va=level, fontsize=9)
    ax.set_xlim(-1.6, 1.6)
    ax.set_ylim(-1.6, 1.6)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(
        f"{len(pairs)} strongest pairs (red: raise the output on average, blue: lower it)", fontsize=9
    )
    return ax


def _names(names: Sequence[str] | None, n_players: int) -> Sequence[str]:
    if names is None:
        return numbered_names(n_players)
    if len(names) != n_players:
        raise InputError(f"names has {len(names)} names for {n_players} players.")
    return names


def _axes(ax: Any, inches: float) -> Any:
    if ax is not None:
        return ax
    plt = import_optional("matplotlib.pyplot", "a plot", "matplotlib")
    return plt.subplots(figsize=(inches * 1.25, inches), layout="constrained")[1]
