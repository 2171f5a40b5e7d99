"""`Spectrum`: a function on bits as a sum of characters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap import _kernels as kernels
from fouriershap._base import files
from fouriershap._base.arguments import check_arguments
from fouriershap._base.bits import check_bits, check_packed, pack, unpack
from fouriershap._base.checks import as_array, as_floats, check_int, check_number
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr
from fouriershap._base.parallel import for_each_block
from fouriershap._fourier.display import TopTerms, plot_terms
from fouriershap._rows.players import check_players

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
KIND = "spectrum"
_ROWS_PER_BLOCK = 64 * 128
_MOST_EMPTY = 1 << 24  # bits of a spectrum without terms in a file
_MOST_PRODUCT_TERMS = 50_000_000


class _Packed(NamedTuple):
    """Frequencies as words (n_terms, ceil(n_bits / 64))."""

    words: Words
    n_bits: int


@check_arguments
class Spectrum:
    r"""A function :math:`h(x) = \sum_f a_f (-1)^{\langle f, x\rangle}` on bits.

    A spectrum is immutable. Terms with equal frequencies are summed, and terms are sorted by degree, then by
    their bits.

    Parameters
    ----------
    frequencies : array_like of bool, shape (n_terms, n_bits)
        ``frequencies[k, i]`` is True where term k depends on bit i.
    coefficients : array_like of float, shape (n_terms,) or (n_terms, n_outputs)

    Attributes
    ----------
    n_bits : int
        Number of bits of a row.
    words : (n_terms, ceil(n_bits / 64)) uint64
        Packed frequencies, in canonical order.
    matrix : (n_terms, n_outputs) float64
        Coefficients, with the axis of outputs in any case.
    degrees : (n_terms,) int64
        Number of bits that each term depends on.
    is_single : bool
        Whether the coefficients were given without an axis of outputs.

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

    __slots__ = ("_dropped", "degrees", "is_single", "matrix", "n_bits", "words")

    n_bits: int
    words: Words
    matrix: Floats
    degrees: NDArray[np.int64]
    is_single: bool
    _dropped: Spectrum | None

    # Makes `array * spectrum` call `__rmul__` instead of building an array of objects.
    __array_ufunc__ = None

    def __init__(self, frequencies: ArrayLike | _Packed, coefficients: ArrayLike) -> None:
        if isinstance(frequencies, _Packed):
            words, n_bits = frequencies
            values = as_floats(coefficients, "coefficients")
        else:
            array = as_array(frequencies, "frequencies")
            if array.ndim != 2:
                raise InputError(f"frequencies has shape {array.shape}; give (n_terms, n_bits).")
            n_bits = array.shape[1]
            words = pack(check_bits(array, n_bits, name="frequencies"))
            values = as_floats(coefficients, "coefficients", copy=True)
        n_terms, single = len(words), values.ndim == 1
        if values.ndim not in (1, 2) or len(values) != n_terms or (not single and values.shape[1] == 0):
            raise InputError(
                f"coefficients has shape {values.shape}; give ({n_terms},) or ({n_terms}, n_outputs), one "
                "line per frequency."
            )
        if not np.isfinite(values).all():
            raise InputError(
                f"coefficients holds {int((~np.isfinite(values)).sum())} values that are not finite."
            )
        words, values, degrees = _canonical(words, values[:, None] if single else values)
        arrays = words.view(), np.ascontiguousarray(values).view(), degrees.view()
        for part in arrays:
            part.flags.writeable = False
        names = ("words", "matrix", "degrees", "n_bits", "is_single", "_dropped")
        for name, value in zip(names, (*arrays, n_bits, single, None), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def from_words(
        cls, words: Words, coefficients: ArrayLike, n_bits: int, dropped: Spectrum | None = None
    ) -> Spectrum:
        """Build from packed frequencies (n_terms, ceil(n_bits / 64)), as `bits.pack` makes them."""
        words = np.asarray(words)
        fits = words.ndim == 2 and words.dtype == np.uint64 and words.shape[1] == max(1, -(-n_bits // 64))
        if not fits or (n_bits % 64 and (words[:, -1] >> np.uint64(n_bits % 64)).any()):
            raise InputError(
                f"words is {truncated_repr(words)}; give lines of {n_bits} bits, as `bits.pack` makes them."
            )
        spectrum = cls(_Packed(words, n_bits), coefficients)
        object.__setattr__(spectrum, "_dropped", dropped)
        return spectrum

    def select(self, kept: NDArray[np.bool_]) -> Spectrum:
        """Return some of the terms."""
        return Spectrum.from_words(self.words[kept], self.coefficients[kept], self.n_bits)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Spectrum is immutable; build a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Spectrum.from_words, (self.words, self.coefficients, self.n_bits, self._dropped)

    @property
    def n_outputs(self) -> int:
        """Number of outputs; 1 where the coefficients were given as a vector."""
        return int(self.matrix.shape[1])

    @property
    def frequencies(self) -> NDArray[np.bool_]:
        """Bits that each term depends on, (n_terms, n_bits) bool, in canonical order."""
        return unpack(self.words, self.n_bits).view(np.bool_)

    @property
    def coefficients(self) -> Floats:
        """Coefficients (n_terms,) or (n_terms, n_outputs) float64, read-only."""
        return self.matrix[:, 0] if self.is_single else self.matrix

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        outputs = "" if self.is_single else f", {self.n_outputs} outputs"
        return f"Spectrum({len(self)} terms, {self.n_bits} bits, degree {self.degree}{outputs})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spectrum):
            return NotImplemented
        return (
            self.n_bits == other.n_bits
            and self.is_single == other.is_single
            and np.array_equal(self.words, other.words)
            and np.array_equal(self.matrix, other.matrix)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def degree(self) -> int:
        """The largest degree of a term."""
        return int(self.degrees.max(initial=0))

    @property
    def energy(self) -> float:
        """Sum of squared coefficients: the mean square of h over the cube (Parseval)."""
        return float((self.matrix**2).sum())

    @property
    def variance(self) -> float:
        """Energy without the constant term: the variance of h over the cube, summed over outputs."""
        return float((self.matrix[self.degrees > 0] ** 2).sum())

    def degree_profile(self) -> Floats:
        """Return the energy of the terms of each degree, (degree + 1,)."""
        return np.bincount(self.degrees, self._energies(), minlength=1).astype(np.float64)

    def energy_curve(self) -> Floats:
        """Return the share of the variance in the largest 1, 2, ... terms that are not constant."""
        energies = np.sort(self._energies()[self.degrees > 0])[::-1]
        total = energies.sum()
        return np.cumsum(energies) / total if total > 0 else np.ones(len(energies))

    def _energies(self) -> Floats:
        """Return squared coefficients, summed over outputs, (n_terms,)."""
        return np.asarray((self.matrix**2).sum(axis=1))

    def top_terms(self, top_k: int = 10, names: Sequence[str] | None = None) -> TopTerms:
        """Return the largest terms with their names, coefficients and shares of the variance.

        Parameters
        ----------
        top_k : int
            Number of terms, not counting the constant.
        names : sequence of str, length n_bits, optional
            Name of each bit, for where it is 1; ``x0``, ``x1``, ... by default.

        Examples
        --------
        >>> from fouriershap import Spectrum
        >>> h = Spectrum([[0, 0], [1, 0], [1, 1]], [0.5, 1.0, -2.0])
        >>> h.top_terms(names=["temp=high", "pressure"])
        TopTerms(2 terms, 100.0 % of the variance)
          temp=high × pressure          -2   80.0 %
          temp=high                     +1   20.0 %
        """
        check_int("top_k", top_k, 0, " of terms to show")
        if names is not None and (isinstance(names, str) or len(names) != self.n_bits):
            raise InputError(
                f"names is {truncated_repr(names)}; give a name for each of the {self.n_bits} bits."
            )
        name = [f"x{bit}" for bit in range(self.n_bits)] if names is None else list(map(str, names))
        energies, varying = self._energies(), np.flatnonzero(self.degrees > 0)
        order = varying[np.argsort(-energies[varying], kind="stable")][:top_k]
        frequencies = self.frequencies[order]
        labels = tuple(" × ".join(name[bit] for bit in np.flatnonzero(f)) for f in frequencies)
        share = energies[order] / self.variance if self.variance > 0 else np.zeros(len(order))
        return TopTerms(labels, frequencies, self.coefficients[order], share)

    def plot(self, axes: Any = None) -> Any:
        """Draw R^2 on the cube against the number of terms, and beside it the share of each degree.

        Parameters
        ----------
        axes : two matplotlib Axes, optional

        Returns
        -------
        ndarray of two matplotlib Axes
        """
        profile = self.degree_profile()
        counts = np.bincount(self.degrees, minlength=len(profile))
        return plot_terms(self.energy_curve(), profile[1:], counts[1:], self.n_bits, axes)

    def __call__(self, X: ArrayLike, *, n_jobs: int = -1) -> Floats:
        """Evaluate h at rows of bits.

        Parameters
        ----------
        X : array_like, shape (n_rows, n_bits)
            Only 0 and 1 (any numeric or boolean type).
        n_jobs : int
            Threads; -1 for every core.

        Returns
        -------
        ndarray, shape (n_rows,) or (n_rows, n_outputs)
        """
        bits = check_bits(X, self.n_bits)
        terms = kernels.bits.Terms(*self.positions(), self.matrix)
        out = np.empty((len(bits), self.n_outputs))

        def work(first: int, last: int) -> None:
            columns = pack(np.ascontiguousarray(bits[first:last].T))
            kernels.bits.evaluate(terms, columns, 0, columns.shape[1], out[first:last])

        for_each_block(work, len(bits), _ROWS_PER_BLOCK, n_jobs)
        return out[:, 0] if self.is_single else out

    def positions(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the bits of each term, end to end: start (n_terms + 1,), positions (sum of degrees,)."""
        start = np.concatenate([[0], np.cumsum(self.degrees)]).astype(np.int64)
        return start, np.nonzero(self.frequencies)[1].astype(np.int32)

    # Arithmetic

    def __add__(self, other: Spectrum | float) -> Spectrum:
        other = self._as_spectrum(other)
        words = np.concatenate([self.words, other.words])
        values = np.concatenate([self.matrix, other.matrix])
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
            return self._combine(self.words, self.matrix * _check_scalar(other), dropped)
        other = self._as_spectrum(other)
        n_terms = len(self) * len(other)
        if n_terms > _MOST_PRODUCT_TERMS:
            raise CapacityError(
                f"the product would form {n_terms:,} terms before equal ones are summed "
                f"(limit {_MOST_PRODUCT_TERMS:,}); prune the factors first."
            )
        words = (self.words[:, None] ^ other.words[None]).reshape(n_terms, self.words.shape[1])
        values = (self.matrix[:, None] * other.matrix[None]).reshape(n_terms, self.n_outputs)
        # With d and e dropped: (h + d)(g + e) - hg = dg + he + de.
        mine, its = self._dropped, other._dropped
        cross = None if mine is None or its is None else mine * its
        left = None if mine is None else mine * other.select(np.ones(len(other), dtype=bool))
        right = None if its is None else self.select(np.ones(len(self), dtype=bool)) * its
        dropped = _sum(_sum(left, right), cross)
        return self._combine(words, values, dropped)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Spectrum:
        return self * (1.0 / _check_scalar(other))

    def _as_spectrum(self, other: Spectrum | float) -> Spectrum:
        if not isinstance(other, Spectrum):
            value = np.full((1, self.n_outputs), _check_scalar(other))
            return Spectrum.from_words(np.zeros((1, self.words.shape[1]), np.uint64), value, self.n_bits)
        if other.n_bits != self.n_bits or other.n_outputs != self.n_outputs:
            raise InputError(
                f"{self!r} and {truncated_repr(other)} have different numbers of bits or outputs."
            )
        return other

    def _combine(self, words: Words, values: Floats, dropped: Spectrum | None) -> Spectrum:
        return Spectrum.from_words(words, values[:, 0] if self.is_single else values, self.n_bits, dropped)

    # Pruning

    def prune(
        self,
        *,
        min_amplitude: float | None = None,
        energy: float | None = None,
        max_terms: int | None = None,
    ) -> Spectrum:
        """Drop small terms and keep track of them (`prune_bound`). The constant term is always kept.

        Parameters
        ----------
        min_amplitude : float, optional
            Drop only terms whose amplitude (largest absolute coefficient over outputs) is smaller.
        energy : float in (0, 1], optional
            Drop only terms that are smaller than the largest ones that hold this share of the variance.
        max_terms : int, optional
            Keep at most this many terms, the largest, not counting the constant.

        Notes
        -----
        With both ``min_amplitude`` and ``energy``, a term is dropped only if both rules allow it, so the
        paper's rule is ``prune(energy=0.9995, min_amplitude=0.005)``. ``max_terms`` then applies to the
        remaining terms.

        Examples
        --------
        >>> from fouriershap import Spectrum
        >>> h = Spectrum([[1, 0], [1, 1]], [1.0, 0.001]).prune(energy=0.9995, min_amplitude=0.005)
        >>> len(h), h.prune_bound()
        (1, array([0.002, 0.002]))
        """
        amplitude, energies = np.abs(self.matrix).max(axis=1, initial=0.0), self._energies()
        varying = self.degrees > 0
        kept = np.full(len(self), min_amplitude is None and energy is None)
        if min_amplitude is not None:
            check_number("min_amplitude", min_amplitude, 0)
            kept |= amplitude >= min_amplitude
        if energy is not None:
            if not 0 < energy <= 1:
                raise InputError(
                    f"energy is {truncated_repr(energy)}; give the share of the variance to keep, in (0, 1]."
                )
            energies[~varying] = 0.0
            order = np.argsort(-energies, kind="stable")
            before = np.cumsum(energies[order]) - energies[order]
            # A term is needed while the larger ones hold less than the share.
            kept[order] |= before < energy * energies.sum() if energy < 1 else energies[order] > 0
        kept |= ~varying
        if max_terms is not None:
            check_int("max_terms", max_terms, 0)
            ranked = np.argsort(-np.where(varying & kept, amplitude, -1.0), kind="stable")
            kept[ranked[max_terms:]] = False
            kept |= ~varying
        part, dropped = self.select(kept), self.select(~kept)
        object.__setattr__(part, "_dropped", _sum(dropped, self._dropped))
        return part

    def prune_bound(self, players: ArrayLike | None = None) -> Floats:
        """Return how far pruning can have moved a SHAP value, for every row and every background.

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
        owner = check_players(players, self.n_bits)
        n_players = int(owner.max(initial=-1)) + 1
        bound = np.zeros((n_players, self.n_outputs))
        if (dropped := self._dropped) is not None:
            terms, bits = np.nonzero(dropped.frequencies)
            # A term counts once for a player, however many of the player's bits it reads.
            term, player = np.divmod(np.unique(terms * n_players + owner[bits]), max(n_players, 1))
            np.add.at(bound, player, 2.0 * np.abs(dropped.matrix)[term])
        return bound[:, 0] if self.is_single else bound

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a .fshap file (see `fouriershap.load`)."""
        files.write(path, KIND, *self.to_contents())

    def to_contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays: dict[str, NDArray[Any]] = {"words": self.words, "coefficients": self.coefficients}
        if self._dropped is not None:
            arrays |= {"dropped_words": self._dropped.words}
            arrays |= {"dropped_coefficients": self._dropped.coefficients}
        return arrays, {"n_bits": self.n_bits}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Spectrum:
        """Read a .fshap file that `save` wrote."""
        return files.load(path, KIND, cls.from_contents)

    @classmethod
    def from_contents(cls, contents: files.Contents) -> Spectrum:
        arrays, n_bits = contents.arrays, get_typed(contents.header, "n_bits", int)
        words, values = arrays["words"], arrays["coefficients"]
        # Without terms there are no words that would confirm the number of bits.
        require(len(words) or n_bits <= _MOST_EMPTY, f"it claims {n_bits} bits, but has no terms")
        check_packed(words, n_bits)
        require(values.dtype == np.float64, "coefficients have the wrong type")
        dropped = None
        if "dropped_words" in arrays:
            others = arrays["dropped_coefficients"]
            alike = others.shape[1:] == values.shape[1:] and others.dtype == values.dtype
            require(alike, "dropped terms have a different number of outputs")
            check_packed(arrays["dropped_words"], n_bits)
            dropped = cls.from_words(arrays["dropped_words"], others, n_bits)
        return cls.from_words(words, values, n_bits, dropped)


def _sum(one: Spectrum | None, other: Spectrum | None) -> Spectrum | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _check_scalar(value: Any) -> float:
    if not isinstance(value, Real):
        raise InputError(f"a Spectrum combines with a Spectrum or a number, not with {type(value).__name__}.")
    return float(value)


def _canonical(words: Words, values: Floats) -> tuple[Words, Floats, NDArray[np.int64]]:
    """Sort terms by degree, then by their bits, and sum equal ones; also return their degrees.

    Arrays that are sorted already are kept as they are, so that those of a file stay memory-mapped.
    """
    degrees = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    # lexsort sorts by its last key first: the degree, then the words from the first bits on.
    order = np.lexsort((*words.T[::-1], degrees))
    if not (order[1:] > order[:-1]).all():
        words, degrees, values = words[order], degrees[order], values[order]
    new = np.ones(len(words), dtype=bool)
    new[1:] = (words[1:] != words[:-1]).any(axis=1)
    firsts = np.flatnonzero(new)
    if len(firsts) < len(words):
        values = np.add.reduceat(values, firsts, axis=0)
        words, degrees = words[firsts], degrees[firsts]
    return words, values, degrees
