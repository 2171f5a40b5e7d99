"""The pictures of the demo: panels, waterfalls and swarms in one style."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.atomic import atomic_file

INK, POSITIVE, NEGATIVE, QUIET = "#1f2933", "#d1495b", "#2e86ab", "#9aa5b1"


@contextmanager
def panels(path: Path, widths: Sequence[float]) -> Iterator[Any]:
    """Axes side by side; the figure is saved when the block ends."""
    import matplotlib.pyplot as plt

    style = {"font.size": 10, "axes.edgecolor": QUIET, "text.color": INK, "axes.labelcolor": INK}
    style |= {"xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        size = (15, 5.2)
        figure, axes = plt.subplots(1, len(widths), figsize=size, layout="constrained", width_ratios=widths)
        yield axes
        with atomic_file(path) as temporary:
            figure.savefig(temporary, dpi=150, format=path.suffix[1:])
        plt.close(figure)


def title(axis: Any, text: str, subtitle: str) -> None:
    """A bold title with a quiet line under it."""
    axis.set_title(text, loc="left", fontsize=12, fontweight="bold", pad=26)
    axis.text(0, 1.025, subtitle, transform=axis.transAxes, fontsize=9.5, color="#616e7c")


def waterfall(
    axis: Any, names: Sequence[str], phi: NDArray[np.float64], expected: float, most: int = 10
) -> None:
    """From the expected value to the output, the largest contributions on top, the rest as one bar below."""
    order = np.argsort(np.abs(phi))
    small, large = order[: max(0, len(phi) - most)], order[max(0, len(phi) - most) :]
    values = np.concatenate([[phi[small].sum()] if len(small) else [], phi[large]])
    labels = ([f"{len(small)} others"] if len(small) else []) + [names[j] for j in large]
    ends = expected + np.cumsum(values)
    begins = np.concatenate([[expected], ends[:-1]])
    y = np.arange(len(values))
    colours = [POSITIVE if value > 0 else NEGATIVE for value in values]
    axis.barh(y, values, left=begins, color=colours, height=0.62)
    for position, end in enumerate(ends[:-1]):
        axis.plot([end, end], [position + 0.31, position + 0.69], color=QUIET, lw=0.8)
    lowest, highest = min(begins.min(), ends.min()), max(begins.max(), ends.max())
    reach = highest - lowest
    axis.set_xlim(lowest - 0.05 * reach, highest + 0.16 * reach)
    for i, value in enumerate(values):
        text = f"{value:+.2g}" if abs(value) < 1 else f"{value:+.1f}"
        right = max(begins[i], ends[i]) + 0.015 * reach
        axis.text(right, i, text.replace("-", "\N{MINUS SIGN}"), va="center", fontsize=9.5, color=colours[i])
    axis.set_yticks(y, labels)
    axis.axvline(expected, color=QUIET, lw=0.8, ls=":")


def swarm(
    axis: Any,
    names: Sequence[str],
    phi: NDArray[np.float64],
    levels: NDArray[np.float64] | None = None,
    most: int = 10,
) -> None:
    """A dot per row and player; coloured by sign, or by the player's own value from low to high."""
    order = np.argsort(np.abs(phi).mean(axis=0))[-most:]
    rng = np.random.default_rng(0)
    for i, j in enumerate(order):
        jitter = rng.uniform(-0.28, 0.28, size=len(phi))
        colours: dict[str, Any] = {"c": np.where(phi[:, j] > 0, POSITIVE, NEGATIVE)}
        if levels is not None:
            rank = np.argsort(np.argsort(levels[:, j], kind="stable"), kind="stable") / max(1, len(phi) - 1)
            colours = {"c": rank, "cmap": _blue_to_red()}
        axis.scatter(phi[:, j], i + jitter, s=6, alpha=0.6, linewidths=0, **colours)
    axis.axvline(0, color=QUIET, lw=0.8)
    axis.set_yticks(np.arange(len(order)), [names[j] for j in order])


def _blue_to_red() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("blue_to_red", [NEGATIVE, "#c5cbd3", POSITIVE])
