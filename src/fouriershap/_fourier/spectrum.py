"""`Spectrum`: a function on bits as a sum of characters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap import _kernels as kernels
from fouriershap._base import files
from fouriershap._base.bits import check_bits, check_packed, pack, unpack
from fouriershap._base.checks import as_array, as_floats
from fouriershap._base.errors import InputError
from fouriershap._base.headers import require, take
from fouriershap._base.parallel import for_each_block
from fouriershap._base.short import short
from fouriershap._fourier.spectrum_arrays import (
    Words,
    canonical,
    check_coefficients,
    check_scalar,
    kept_terms,
    largest_move,
    product,
)
from fouriershap._fourier.spectrum_plots import plot
from fouriershap._fourier.top_terms import TopTerms, top_terms
from fouriershap._rows.players import check_players

KIND = "spectrum"
_ROWS_PER_BLOCK = 64 * 128
_MOST_EMPTY = 1 << 24  # bits of a spectrum without terms in a file


class Spectrum:
    r"""A function :math:`h(x) = \sum_f a_f (-1)^{\langle f, x\rangle}` on bits.

    A spectrum is immutable. Frequencies that are given twice are summed. Terms are kept in a canonical
    order: by degree, then by their bits.

    Parameters
    ----------
    frequencies : array_like of bool, shape (n_terms, n_bits)
        ``frequencies[k, i]`` is True where term k depends on bit i.
    coefficients : array_like of float, shape (n_terms,) or (n_terms, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from fouriershap import Spectrum
    >>> h = Spectrum([[0, 0], [1, 0], [1, 1]], [0.5, 1.0, -2.0])
    >>> h(np.array([[0, 0], [1, 0]]))
    array([-0.5,  1.5])
    >>> h.degree, len(h), h.energy
    (2, 3, 5.25)
    """

    __slots__ = ("_coefficients", "_degrees", "_dropped", "_n_bits", "_single", "_words")

    _words: Words
    _coefficients: NDArray[np.float64]
    _degrees: NDArray[np.int64]
    _n_bits: int
    _single: bool
    _dropped: Spectrum | None

    __array_ufunc__ = None  # `array * spectrum` asks `__rmul__`, instead of making an array of objects

    def __init__(self, frequencies: ArrayLike, coefficients: ArrayLike) -> None:
        array = as_array(frequencies, "frequencies")
        if array.ndim != 2:
            raise InputError(f"frequencies has shape {array.shape}; give (n_terms, n_bits).")
        words = pack(check_bits(array, array.shape[1], name="frequencies"))
        self._init(words, as_floats(coefficients, "coefficients", copy=True), array.shape[1])

    def _init(
        self, words: Words, coefficients: ArrayLike, n_bits: int, dropped: Spectrum | None = None
    ) -> None:
        values = check_coefficients(coefficients, len(words))
        flat = values[:, None] if values.ndim == 1 else values
        self._set(*canonical(words, flat), n_bits, values.ndim == 1, dropped)

    def _set(
        self,
        words: Words,
        coefficients: NDArray[np.float64],
        degrees: NDArray[np.int64],
        n_bits: int,
        single: bool,
        dropped: Spectrum | None = None,
    ) -> None:
        arrays = words.view(), np.ascontiguousarray(coefficients).view(), degrees.view()
        for array in arrays:
            array.flags.writeable = False
        names = ("_words", "_coefficients", "_degrees", "_n_bits", "_single", "_dropped")
        for name, value in zip(names, (*arrays, n_bits, single, dropped), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def from_words(
        cls, words: Words, coefficients: ArrayLike, n_bits: int, dropped: Spectrum | None = None
    ) -> Spectrum:
        """Make one from packed frequencies (n_terms, ceil(n_bits / 64)), as `bits.pack` makes them."""
        words = np.asarray(words)
        fits = words.ndim == 2 and words.dtype == np.uint64 and words.shape[1] == max(1, -(-n_bits // 64))
        if not fits or (n_bits % 64 and (words[:, -1] >> np.uint64(n_bits % 64)).any()):
            raise InputError(
                f"words is {short(words)}; give lines of {n_bits} bits, as `bits.pack` makes them."
            )
        spectrum = cls.__new__(cls)
        spectrum._init(words, coefficients, n_bits, dropped)
        return spectrum

    @property
    def is_single(self) -> bool:
        """Whether the coefficients were given without an axis of outputs."""
        return self._single

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Coefficients (n_terms, n_outputs), also of one output."""
        return self._coefficients

    @property
    def words(self) -> Words:
        """Frequencies packed, (n_terms, ceil(n_bits / 64))."""
        return self._words

    def select(self, kept: NDArray[np.bool_]) -> Spectrum:
        """Some of the terms."""
        part = Spectrum.__new__(Spectrum)
        arrays = (self._words[kept], self._coefficients[kept], self._degrees[kept])
        part._set(*arrays, self._n_bits, self._single)
        return part

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Spectrum is immutable; build a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Spectrum.from_words, (self._words, self.coefficients, self._n_bits, self._dropped)

    # What it is

    @property
    def n_bits(self) -> int:
        """Number of bits that a row has."""
        return self._n_bits

    @property
    def n_outputs(self) -> int:
        """Number of outputs; 1 where the coefficients were given as a vector."""
        return int(self._coefficients.shape[1])

    @property
    def frequencies(self) -> NDArray[np.bool_]:
        """(n_terms, n_bits) bool, in canonical order."""
        return unpack(self._words, self._n_bits).view(np.bool_)

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """(n_terms,) or (n_terms, n_outputs) float64, read-only."""
        return self._coefficients[:, 0] if self._single else self._coefficients

    def __len__(self) -> int:
        return len(self._words)

    def __repr__(self) -> str:
        outputs = "" if self._single else f", {self.n_outputs} outputs"
        return f"Spectrum({len(self)} terms, {self.n_bits} bits, degree {self.degree}{outputs})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spectrum):
            return NotImplemented
        return (
            self._n_bits == other._n_bits
            and self._single == other._single
            and np.array_equal(self._words, other._words)
            and np.array_equal(self._coefficients, other._coefficients)
        )

    __hash__ = None  # type: ignore[assignment]

    # What it looks like

    @property
    def degrees(self) -> NDArray[np.int64]:
        """(n_terms,) number of bits that each term depends on."""
        return self._degrees

    @property
    def degree(self) -> int:
        """The largest degree of a term."""
        return int(self._degrees.max(initial=0))

    @property
    def energy(self) -> float:
        """Sum of squared coefficients: the mean square of h over the cube (Parseval)."""
        return float((self._coefficients**2).sum())

    @property
    def variance(self) -> float:
        """Energy without the constant term: the variance of h over the cube, summed over outputs."""
        return float((self._coefficients[self._degrees > 0] ** 2).sum())

    def degree_profile(self) -> NDArray[np.float64]:
        """(degree + 1,) energy of the terms of each degree."""
        energies: NDArray[np.float64] = (self._coefficients**2).sum(axis=1)
        return np.bincount(self._degrees, energies, minlength=1).astype(np.float64)

    def energy_curve(self) -> NDArray[np.float64]:
        """(number of non-constant terms,) share of the variance in the largest 1, 2, ... terms."""
        energies = np.sort((self._coefficients[self._degrees > 0] ** 2).sum(axis=1))[::-1]
        total = energies.sum()
        return np.cumsum(energies) / total if total > 0 else np.ones(len(energies))

    def top_terms(self, k: int = 10, names: Sequence[str] | None = None) -> TopTerms:
        """The largest terms with their names, coefficients and shares of the variance.

        Parameters
        ----------
        k : int
            Most terms shown; the constant is not counted.
        names : sequence of str, length n_bits, optional
            What a bit is called where it is 1; ``x0``, ``x1``, ... by default.

        Examples
        --------
        >>> from fouriershap import Spectrum
        >>> h = Spectrum([[0, 0], [1, 0], [1, 1]], [0.5, 1.0, -2.0])
        >>> h.top_terms(names=["temp=high", "pressure"])
        TopTerms(2 terms, 100.0 % of the variance)
          temp=high × pressure          -2   80.0 %
          temp=high                     +1   20.0 %
        """
        return top_terms(self, k, names)

    def plot(self, axes: Any = None) -> Any:
        """Draw R^2 on the cube against the number of terms, and beside it the share of each degree.

        Parameters
        ----------
        axes : two matplotlib Axes, optional

        Returns
        -------
        ndarray of the two Axes
        """
        return plot(self, axes)

    # What it computes

    def __call__(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Evaluate h at rows of bits.

        Parameters
        ----------
        X : array_like, shape (n_rows, n_bits)
            Only 0 and 1 (any numeric or boolean type).
        n_jobs : int, optional
            Threads; None for every core.

        Returns
        -------
        ndarray, shape (n_rows,) or (n_rows, n_outputs)
        """
        bits = check_bits(X, self._n_bits)
        terms = kernels.bits.Terms(*self.positions(), self._coefficients)
        out = np.empty((len(bits), self.n_outputs))

        def work(first: int, last: int) -> None:
            columns = pack(np.ascontiguousarray(bits[first:last].T))
            kernels.bits.evaluate(terms, columns, 0, columns.shape[1], out[first:last])

        for_each_block(work, len(bits), _ROWS_PER_BLOCK, n_jobs)
        return out[:, 0] if self._single else out

    def positions(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The bits of each term, one after the other: start (n_terms + 1,), positions (sum of degrees,)."""
        start = np.concatenate([[0], np.cumsum(self._degrees)]).astype(np.int64)
        return start, np.nonzero(self.frequencies)[1].astype(np.int32)

    # Arithmetic

    def __add__(self, other: Spectrum | float) -> Spectrum:
        other = self._as_spectrum(other)
        words = np.concatenate([self._words, other._words])
        values = np.concatenate([self._coefficients, other._coefficients])
        return self._combine(words, values, _sum(self._dropped, other._dropped))

    __radd__ = __add__

    def __neg__(self) -> Spectrum:
        return self * -1.0

    def __sub__(self, other: Spectrum | float) -> Spectrum:
        return self + self._as_spectrum(other) * -1.0

    def __rsub__(self, other: float) -> Spectrum:
        return self * -1.0 + other

    def __mul__(self, other: Spectrum | float) -> Spectrum:
        """Scale by a number, or multiply two functions (their frequencies add up bit by bit)."""
        if not isinstance(other, Spectrum):
            dropped = None if self._dropped is None else self._dropped * other
            return self._combine(self._words, self._coefficients * check_scalar(other), dropped)
        other = self._as_spectrum(other)
        words, values = product(self._words, self._coefficients, other._words, other._coefficients)
        # With d and e dropped: (h + d)(g + e) - hg = dg + he + de.
        mine, its = self._dropped, other._dropped
        cross = None if mine is None or its is None else mine * its
        left = None if mine is None else mine * other.select(np.ones(len(other), dtype=bool))
        right = None if its is None else self.select(np.ones(len(self), dtype=bool)) * its
        dropped = _sum(_sum(left, right), cross)
        return self._combine(words, values, dropped)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Spectrum:
        return self * (1.0 / check_scalar(other))

    def _as_spectrum(self, other: Spectrum | float) -> Spectrum:
        if not isinstance(other, Spectrum):
            value = np.full((1, self.n_outputs), check_scalar(other))
            return Spectrum.from_words(np.zeros((1, self._words.shape[1]), np.uint64), value, self._n_bits)
        if other._n_bits != self._n_bits or other.n_outputs != self.n_outputs:
            raise InputError(f"{self!r} and {short(other)} do not fit: bits and outputs must be the same.")
        return other

    def _combine(self, words: Words, values: NDArray[np.float64], dropped: Spectrum | None) -> Spectrum:
        return Spectrum.from_words(words, values[:, 0] if self._single else values, self._n_bits, dropped)

    # Pruning

    def prune(
        self,
        *,
        min_amplitude: float | None = None,
        energy: float | None = None,
        max_terms: int | None = None,
    ) -> Spectrum:
        """Drop small terms, with a certificate (`prune_bound`). The constant term is always kept.

        Parameters
        ----------
        min_amplitude : float, optional
            Drop only terms whose amplitude (largest absolute coefficient over outputs) is smaller.
        energy : float in (0, 1], optional
            Drop only terms beyond the largest ones that hold this share of the variance.
        max_terms : int, optional
            Keep at most this many terms that are not constant, the largest.

        Notes
        -----
        With both ``min_amplitude`` and ``energy`` a term is dropped only where both rules allow it. So the
        paper's rule is ``prune(energy=0.9995, min_amplitude=0.005)``. ``max_terms`` is then applied to what
        is left.

        Examples
        --------
        >>> from fouriershap import Spectrum
        >>> h = Spectrum([[1, 0], [1, 1]], [1.0, 0.001]).prune(energy=0.9995, min_amplitude=0.005)
        >>> len(h), h.prune_bound()
        (1, array([0.002, 0.002]))
        """
        kept = kept_terms(self._coefficients, self._degrees, min_amplitude, energy, max_terms)
        part, dropped = self.select(kept), self.select(~kept)
        object.__setattr__(part, "_dropped", _sum(dropped, self._dropped))
        return part

    def prune_bound(self, players: ArrayLike | None = None) -> NDArray[np.float64]:
        """How far pruning can have moved a SHAP value, for every row and every background.

        Parameters
        ----------
        players : array_like of int, shape (n_bits,), optional
            Player of each bit; None for one player per bit.

        Returns
        -------
        ndarray, shape (n_players,) or (n_players, n_outputs)
            ``2 * sum |a_f|`` over the dropped terms that touch the player; zeros where nothing was pruned.
            Sums, products and files of pruned spectra keep track of what was dropped.
        """
        owner = check_players(players, self._n_bits)
        n_players = int(owner.max(initial=-1)) + 1
        bound = np.zeros((n_players, self.n_outputs))
        if (dropped := self._dropped) is not None:
            bound = largest_move(dropped.frequencies, dropped._coefficients, owner, n_players)
        return bound[:, 0] if self._single else bound

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a .fshap file (see `fouriershap.load`)."""
        files.write(path, KIND, *self.to_contents())

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays: dict[str, NDArray[Any]] = {"words": self._words, "coefficients": self.coefficients}
        if self._dropped is not None:
            arrays |= {"dropped_words": self._dropped._words}
            arrays |= {"dropped_coefficients": self._dropped.coefficients}
        return arrays, {"n_bits": self._n_bits}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Spectrum:
        """Read a .fshap file that `save` wrote."""
        return files.load(path, KIND, cls.from_contents)

    @classmethod
    def from_contents(cls, contents: files.Contents) -> Spectrum:
        arrays, n_bits = contents.arrays, take(contents.header, "n_bits", int)
        words, values = arrays["words"], arrays["coefficients"]
        # Without a term there is no word that would show how many bits there are.
        require(len(words) or n_bits <= _MOST_EMPTY, f"there are no terms of so many bits ({n_bits})")
        check_packed(words, n_bits)
        require(values.dtype == np.float64, "coefficients have the wrong type")
        dropped = None
        if "dropped_words" in arrays:
            others = arrays["dropped_coefficients"]
            alike = others.shape[1:] == values.shape[1:] and others.dtype == values.dtype
            require(alike, "dropped terms have other outputs")
            check_packed(arrays["dropped_words"], n_bits)
            dropped = cls.from_words(arrays["dropped_words"], others, n_bits)
        return cls.from_words(words, values, n_bits, dropped)


def _sum(one: Spectrum | None, other: Spectrum | None) -> Spectrum | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
