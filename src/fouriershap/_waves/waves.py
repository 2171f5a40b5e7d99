"""`Waves`: a function as a sum of cosines, each a product of one factor per player."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap import _kernels as kernels
from fouriershap._base import files
from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import as_floats, import_optional
from fouriershap._base.errors import InputError
from fouriershap._base.headers import require
from fouriershap._base.messages import truncated_repr
from fouriershap._waves.columns import ARRAYS, Columns, number_columns

Floats = NDArray[np.float64]
KIND = "waves"
PADDING = 16  # kernels take this many terms at a time
_PARTS = ("frequencies", "phases", "amplitudes", "linear", "constant")
_ROWS_PER_BLOCK = 4096
_COLOUR = "#2e86ab"
_MOST_SHOWN = 24  # waves and players of the picture


@check_arguments
@dataclass(frozen=True, eq=False)
class Waves:
    r"""A function :math:`f(x) = c + L \cdot x + \sum_m a_m \cos(u_m \cdot x + b_m)`.

    A cosine of a sum is the real part of a product with one factor per player, so its SHAP values have a closed
    form. Labels and missing values are columns of their own (see `Columns`); all outputs share the frequencies.

    Parameters
    ----------
    frequencies : array_like, shape (n_waves, n_columns)
    amplitudes : array_like, shape (n_waves,) or (n_waves, n_outputs)
    phases : array_like, shape (n_waves,), optional
        0 by default.
    linear : array_like, shape (n_columns,) or (n_columns, n_outputs), optional
    constant : array_like, shape () or (n_outputs,), optional
    columns : Columns, optional
        The features that the columns belong to; by default each is a plain number and a player.

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> waves = fs.Waves([[np.pi, 0.0], [np.pi, np.pi]], [1.0, 0.5], linear=[0.0, 2.0])
    >>> waves([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    array([ 1.5, -1.5,  1.5])
    """

    frequencies: Floats
    amplitudes: Floats
    phases: Floats = None  # type: ignore[assignment]
    linear: Floats = None  # type: ignore[assignment]
    constant: Floats = None  # type: ignore[assignment]
    columns: Columns = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        frequencies = _array(self.frequencies, "frequencies", (None, None))
        n_waves, n_columns = frequencies.shape
        columns = number_columns(n_columns) if self.columns is None else self.columns
        if not isinstance(columns, Columns):
            raise InputError(f"columns is {truncated_repr(columns)}; give Columns, or None.")
        if columns.n_columns != n_columns:
            raise InputError(f"frequencies has {n_columns} columns; the features have {columns.n_columns}.")
        amplitudes = as_floats(self.amplitudes, "amplitudes")
        amplitudes = amplitudes[:, None] if amplitudes.ndim == 1 else amplitudes
        amplitudes = _array(amplitudes, "amplitudes", (n_waves, None))
        n_outputs = amplitudes.shape[1]
        parts = {
            "frequencies": frequencies,
            "amplitudes": amplitudes,
            "phases": _array(_or_zeros(self.phases, n_waves), "phases", (n_waves,)),
            "linear": _array(_or_zeros(self.linear, n_columns, n_outputs), "linear", (n_columns, n_outputs)),
            "constant": _array(_or_zeros(self.constant, n_outputs), "constant", (n_outputs,)),
            "columns": columns,
        }
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        outputs = f", {self.n_outputs} outputs" * (self.n_outputs > 1)
        return f"Waves({len(self)} waves, {self.columns.n_features} features{outputs})"

    def __len__(self) -> int:
        return len(self.frequencies)

    @property
    def n_outputs(self) -> int:
        return int(self.amplitudes.shape[1])

    @property
    def n_players(self) -> int:
        return self.columns.n_players

    def __call__(self, rows: ArrayLike) -> Floats:
        """Return outputs (n_rows,) or (n_rows, n_outputs) of rows (n_rows, n_features)."""
        out = self.predict(rows)
        return out[:, 0] if self.n_outputs == 1 else out

    def predict(self, rows: ArrayLike) -> Floats:
        """Return outputs (n_rows, n_outputs) of rows."""
        codes = as_floats(rows, "rows")
        if len(codes) > _ROWS_PER_BLOCK:
            parts = [
                self.predict(codes[i : i + _ROWS_PER_BLOCK]) for i in range(0, len(codes), _ROWS_PER_BLOCK)
            ]
            return np.concatenate(parts)
        return np.asarray(self.additive(codes).sum(axis=1) + self.products(codes))

    def terms(self, rows: ArrayLike) -> Floats:
        """Return the cosines (n_rows, n_waves) of rows."""
        return np.asarray(np.cos(self.columns.design(rows, np.float64) @ self.frequencies.T + self.phases))

    def importance(self, rows: ArrayLike) -> Floats:
        """Return the share (n_waves,) of the variance of the outputs over rows that each wave has; the rest is linear.

        It is the share of the covariance of the wave with the outputs, summed over outputs: shares add up, and can be
        negative.
        """
        terms = self.terms(rows)  # (n_rows, n_waves)
        outputs = self.predict(rows)
        centred = outputs - outputs.mean(axis=0)
        if len(terms) < 2 or not (centred**2).sum() > 0:
            raise InputError(
                f"rows has {len(terms)} rows, on which the waves do not vary; give several different rows."
            )
        moved = (terms - terms.mean(axis=0)).T @ centred  # (n_waves, n_outputs)
        return np.asarray((moved * self.amplitudes).sum(axis=1) / (centred**2).sum())

    def plot(self, rows: ArrayLike, *, names: Sequence[str] | None = None, axes: Any = None) -> Any:
        """Draw how much of the variance over rows the largest waves hold, and which players move them.

        Parameters
        ----------
        rows : array_like, shape (n_rows, n_features)
        names : sequence of str, optional
            Names of the players.
        axes : two matplotlib Axes, optional

        Returns
        -------
        ndarray of two matplotlib Axes
        """
        plt = import_optional("matplotlib.pyplot", "plots", "matplotlib")
        if axes is None:
            axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=(1, 1.5))[1]
        if np.shape(axes) != (2,):
            raise InputError("axes must be two matplotlib Axes: for the curve and for the waves.")
        if names is not None and (isinstance(names, str) or len(names) != self.n_players):
            raise InputError(
                f"names is {truncated_repr(names)}; give a name for each of the {self.n_players} players."
            )
        share, spread = self.importance(rows), self._spread_by_player(rows)
        order = np.argsort(-share, kind="stable")
        linear = 1 - share.sum()
        curve = linear + np.concatenate([[0], np.cumsum(share[order])])
        axes[0].plot(np.arange(len(curve)), curve, color=_COLOUR)
        axes[0].set(xlabel="number of waves, largest first", ylabel="share of the variance")
        axes[0].set(ylim=(min(0, linear), 1.03))
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

    def _spread_by_player(self, rows: ArrayLike) -> Floats:
        """Return the standard deviation of a player's part of each phase, (n_waves, n_players), in radians."""
        values, slot = self.columns.slots(rows)
        out = np.zeros((len(self), self.n_players))
        for player in range(self.n_players):
            angle = np.zeros((len(values), len(self)))
            for f in np.flatnonzero(self.columns.player == player):
                angle += self.frequencies.T[slot[:, f]] * values[:, f, None]
            out[:, player] = angle.std(axis=0)
        return out

    def scaled(self, unit: float) -> Waves:
        """Return the same with all outputs multiplied by a number."""
        parts = {name: getattr(self, name) * unit for name in ("amplitudes", "linear", "constant")}
        return replace(self, **parts)

    def select(self, outputs: slice) -> Waves:
        """Return some of the outputs."""
        parts = {name: getattr(self, name)[..., outputs] for name in ("amplitudes", "linear", "constant")}
        return replace(self, **parts)

    # A sum of products over players, see `ProductSum`.

    @cached_property
    def coefficients(self) -> Floats:
        """Coefficients (n_outputs, 2, n_terms), padded: amplitude times cosine and minus sine of the phase."""
        out = np.zeros((self.n_outputs, 2, _padded(len(self))))
        out[:, 0, : len(self)] = (self.amplitudes * np.cos(self.phases)[:, None]).T
        out[:, 1, : len(self)] = -(self.amplitudes * np.sin(self.phases)[:, None]).T
        return out

    def factors(self, rows: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """Return real and imaginary parts of each player's factor in each wave, (n_rows, n_players, 2, n_terms)."""
        values, slot = self.columns.slots(rows)
        frequencies = np.zeros((self.columns.n_columns, _padded(len(self))), dtype)
        frequencies[:, : len(self)] = self.frequencies.T
        out = np.empty((len(values), self.n_players, 2, frequencies.shape[1]), dtype)
        kernels.waves.factors(values.astype(dtype), slot, frequencies, self.columns.player, out)
        return out

    def products(self, rows: Any) -> Floats:
        """Return the constant and all waves, (n_rows, n_outputs)."""
        return np.asarray(self.terms(rows) @ self.amplitudes + self.constant)

    def additive(self, rows: Any) -> Floats:
        """Return what each player adds by itself, (n_rows, n_players, n_outputs)."""
        values, slot = self.columns.slots(rows)
        out = np.zeros((len(values), self.n_players, self.n_outputs))
        for f, player in enumerate(self.columns.player):
            out[:, player] += self.linear[slot[:, f]] * values[:, f, None]
        return out

    def embed(self, rows: Any) -> NDArray[np.float32]:
        """Return columns scaled by the size of their frequencies: distances then measure what waves tell apart."""
        strength = np.sqrt((self.frequencies**2 * (self.amplitudes**2).sum(axis=1)[:, None]).sum(axis=0))
        return np.asarray(self.columns.design(rows) * strength, dtype=np.float32)

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a .fshap file (see `fouriershap.load`)."""
        files.write(path, KIND, *self.to_contents())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Waves:
        """Read a .fshap file that `save` wrote."""
        return files.load(path, KIND, lambda contents: cls.from_contents(contents.arrays))

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return named arrays and a header for a file."""
        arrays = {name: getattr(self, name) for name in _PARTS}
        return arrays | {f"columns.{name}": getattr(self.columns, name) for name in ARRAYS}, {}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]]) -> Waves:
        """Build from what `to_contents` returned."""
        columns = Columns(**{name: arrays[f"columns.{name}"] for name in ARRAYS})
        columns.verify()
        for name in _PARTS:
            require(arrays[name].dtype == np.float64, f"{name} has the wrong type")
        require(arrays["amplitudes"].ndim == 2, "amplitudes has the wrong shape")
        return cls(**{name: arrays[name] for name in _PARTS}, columns=columns)


def _padded(n_waves: int) -> int:
    return max(-(-n_waves // PADDING), 1) * PADDING


def _or_zeros(value: Any, *shape: int) -> Any:
    if value is None:
        return np.zeros(shape)
    array = as_floats(value, "linear or constant")
    return array.reshape(shape) if array.size == np.prod(shape) else array


def _array(value: Any, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return a read-only float64 array of this shape, None for any length."""
    array = np.ascontiguousarray(as_floats(value, name)).view()
    fits = array.ndim == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=False))
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise InputError(f"{name} has shape {array.shape}; give ({wanted}).")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds values that are not finite.")
    array.flags.writeable = False
    return array
