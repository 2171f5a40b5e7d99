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
from fouriershap._base.checks import as_floats
from fouriershap._base.errors import InputError
from fouriershap._base.headers import require
from fouriershap._waves.columns import ARRAYS, Columns, number_columns
from fouriershap._waves.importance import importance, plot

Floats = NDArray[np.float64]
KIND = "waves"
PADDING = 16  # kernels take terms by so many
_PARTS = ("frequencies", "phases", "amplitudes", "linear", "constant")
_ROWS_PER_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Waves:
    r"""A function :math:`f(x) = c + L \cdot x + \sum_m a_m \cos(u_m \cdot x + b_m)`.

    A cosine of a sum is the real part of a product with one factor for each player, so its SHAP values have a closed
    form. Labels and missing values are columns of 0 and 1 (see `columns`), several outputs share the frequencies.

    Parameters
    ----------
    frequencies : array_like, shape (n_waves, n_columns)
    amplitudes : array_like, shape (n_waves,) or (n_waves, n_outputs)
    phases : array_like, shape (n_waves,), optional
        0 by default.
    linear : array_like, shape (n_columns,) or (n_columns, n_outputs), optional
    constant : array_like, shape () or (n_outputs,), optional
    columns : Columns, optional
        Which features the columns belong to; by default they are plain numbers, and players.

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
        """Outputs (n_rows,) or (n_rows, n_outputs) of rows (n_rows, n_features)."""
        out = self.predict(rows)
        return out[:, 0] if self.n_outputs == 1 else out

    def predict(self, rows: ArrayLike) -> Floats:
        """Outputs (n_rows, n_outputs) of rows."""
        codes = as_floats(rows, "rows")
        if len(codes) > _ROWS_PER_BLOCK:
            parts = [
                self.predict(codes[i : i + _ROWS_PER_BLOCK]) for i in range(0, len(codes), _ROWS_PER_BLOCK)
            ]
            return np.concatenate(parts)
        return np.asarray(self.additive(codes).sum(axis=1) + self.products(codes))

    def terms(self, rows: ArrayLike) -> Floats:
        """The cosines (n_rows, n_waves) of rows."""
        return np.asarray(np.cos(self.columns.design(rows, np.float64) @ self.frequencies.T + self.phases))

    def importance(self, rows: ArrayLike) -> Floats:
        """Share (n_waves,) of the variance of the outputs over rows that each wave has; the rest is linear.

        That of its covariance with them, summed over outputs: shares add up, and can be negative.
        """
        return importance(self, rows)

    def plot(self, rows: ArrayLike, *, names: Sequence[str] | None = None, axes: Any = None) -> Any:
        """Draw how much of the variance over rows the largest waves hold, and which players move them.

        Parameters
        ----------
        rows : array_like, shape (n_rows, n_features)
        names : sequence of str, optional
            Of the players.
        axes : two matplotlib Axes, optional

        Returns
        -------
        The two Axes.
        """
        return plot(self, rows, names, axes)

    def scaled(self, unit: float) -> Waves:
        """The same with all outputs times a number."""
        parts = {name: getattr(self, name) * unit for name in ("amplitudes", "linear", "constant")}
        return replace(self, **parts)

    def select(self, outputs: slice) -> Waves:
        """Some of the outputs."""
        parts = {name: getattr(self, name)[..., outputs] for name in ("amplitudes", "linear", "constant")}
        return replace(self, **parts)

    # As a sum of products over players, see `ProductSum`.

    @cached_property
    def coefficients(self) -> Floats:
        """(n_outputs, 2, n_terms), padded: amplitude times a point of the circle, the imaginary part negated."""
        out = np.zeros((self.n_outputs, 2, _padded(len(self))))
        out[:, 0, : len(self)] = (self.amplitudes * np.cos(self.phases)[:, None]).T
        out[:, 1, : len(self)] = -(self.amplitudes * np.sin(self.phases)[:, None]).T
        return out

    def factors(self, rows: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """(n_rows, n_players, 2, n_terms): the factor of each player in each wave, real parts, imaginary parts."""
        values, slot = self.columns.slots(rows)
        frequencies = np.zeros((self.columns.n_columns, _padded(len(self))), dtype)
        frequencies[:, : len(self)] = self.frequencies.T
        out = np.empty((len(values), self.n_players, 2, frequencies.shape[1]), dtype)
        kernels.waves.factors(values.astype(dtype), slot, frequencies, self.columns.player, out)
        return out

    def products(self, rows: Any) -> Floats:
        """(n_rows, n_outputs): the constant and all waves."""
        return np.asarray(self.terms(rows) @ self.amplitudes + self.constant)

    def additive(self, rows: Any) -> Floats:
        """(n_rows, n_players, n_outputs): what each player adds by itself."""
        values, slot = self.columns.slots(rows)
        out = np.zeros((len(values), self.n_players, self.n_outputs))
        for f, player in enumerate(self.columns.player):
            out[:, player] += self.linear[slot[:, f]] * values[:, f, None]
        return out

    def embed(self, rows: Any) -> NDArray[np.float32]:
        """Rows where distances say how differently waves see them: columns, by the size of their frequencies."""
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
        """Named arrays and a header for a file."""
        arrays = {name: getattr(self, name) for name in _PARTS}
        return arrays | {f"columns.{name}": getattr(self.columns, name) for name in ARRAYS}, {}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]]) -> Waves:
        """The inverse of `to_contents`."""
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
    """A read-only float64 array of this shape, None for any length."""
    array = np.ascontiguousarray(as_floats(value, name)).view()
    fits = array.ndim == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=False))
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise InputError(f"{name} has shape {array.shape}; give ({wanted}).")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds values that are not finite.")
    array.flags.writeable = False
    return array
