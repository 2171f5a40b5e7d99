"""Candidate "swht": the sparse Walsh-Hadamard transform of the model, its coefficients refitted on hybrids.

The transform asks uniform points of the cube, where it finds *which* terms there are. Their coefficients are then
fitted where the data are: by least squares on the answers to hybrids, shrunk towards the transform.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._blackbox.bit_code import BitCode
from fouriershap._blackbox.candidates.enumeration import all_rows
from fouriershap._blackbox.surrogates import SpectrumSurrogate
from fouriershap._blackbox.task import N_FOLDS, CandidateFit, Task
from fouriershap._blackbox.transform import Bits, Limits, Transform, make_spectrum
from fouriershap._fourier.sparse_transform import (
    Recovery,
    Search,
    first_queries,
    least_queries,
    make_search_code,
    recover,
)
from fouriershap._shapley.engine import Floats

Ask = Callable[[Bits], Floats]  # bits (n, n_bits) -> answers (n, n_outputs)

SHARE = 0.75  # of the budget, where the method is asked for by name
PROBE_SHARE = 0.125  # of the budget in "auto": to see whether it is worth it
AUTO_SHARE = 0.4  # and then at most
PROMISING = 0.9  # R^2 of the probe on the cube
AUTO_MOST_LEVELS = 8
STRENGTHS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, np.inf)  # of the pull to the transform, in units of the data's own
MOST_REFITTED = 1500  # terms: the cost grows with their cube


def transform(ask: Ask, code: BitCode, budget: int, limits: Limits, seed: int) -> Transform:
    """Return the transform that was asked for by name: most of the budget is its own."""
    on_bits = _OnBits(ask, seed)
    search = _search(on_bits, code, int(SHARE * budget), limits, seed)
    needed = math.ceil(min(least_queries(make_search_code(search)), 2.0**code.n_bits) / SHARE)
    if budget < needed:
        raise InputError(
            f"budget is {budget}; method='swht' needs at least {needed} queries for {code.n_bits} bits. Give more, "
            "or a smaller max_degree."
        )
    return _run(search, on_bits, code, limits)


def probe(ask: Ask, code: BitCode, budget: int, limits: Limits, seed: int) -> Transform | None:
    """Return the transform if a first look, at an eighth of the budget, shows that the model is sparse; else None.

    The same seed asks the same rows first, and known answers are free: going on costs only what is new.
    """
    if max(player.n_levels for player in code.players) > AUTO_MOST_LEVELS:
        return None
    on_bits = _OnBits(ask, seed)
    search = _search(on_bits, code, int(PROBE_SHARE * budget), limits, seed)
    if PROBE_SHARE * budget < first_queries(search):
        return None
    first = _run(search, on_bits, code, limits)
    if first.r2 < PROMISING:
        return None
    if first.is_exact:
        return first
    return _run(replace(search, budget=int(AUTO_SHARE * budget)), on_bits, code, limits)


class _OnBits:
    """The model on bits: one number a row for the search, all outputs for the coefficients."""

    def __init__(self, ask: Ask, seed: int) -> None:
        self.ask = ask
        self._rng = np.random.default_rng(seed)
        self._weights: Floats = np.zeros(0)
        self._asked: list[tuple[Bits, Floats]] = []

    def __call__(self, bits: Bits) -> Floats:
        """Return a random mix of the outputs, which has the terms of all of them."""
        answers = self.ask(bits)
        self._asked.append((bits, answers))
        if not len(self._weights):
            self._weights = self._rng.normal(size=(answers.shape[1],))
        return answers[:, 0] if answers.shape[1] == 1 else answers @ self._weights

    def forget(self) -> None:
        self._asked.clear()

    def coefficients(self, found: Recovery) -> Floats:
        """Return coefficients (n_terms, n_outputs): of several outputs, by least squares on what the search asked."""
        if len(self._weights) == 1:
            return found.spectrum.coefficients[:, None]
        bits = np.concatenate([rows for rows, _ in self._asked])
        answers = np.concatenate([values for _, values in self._asked])
        fitted = slice(len(bits) - len(found.certificate))  # the certificate, asked last, stays unseen
        signs = sign_matrix(bits[fitted], found.spectrum.frequencies)
        return np.asarray(
            np.linalg.solve((signs.T @ signs).astype(np.float64), signs.T @ answers[fitted]), dtype=np.float64
        )


def _search(on_bits: _OnBits, code: BitCode, budget: int, limits: Limits, seed: int) -> Search:
    return Search(
        on_bits,
        code.n_bits,
        limits.n_terms,
        max_degree=limits.max_degree,
        budget=max(budget, 1),
        random_state=seed,
    )


def _run(search: Search, on_bits: _OnBits, code: BitCode, limits: Limits) -> Transform:
    on_bits.forget()
    found = recover(search)
    points = all_rows(code) if found.exhaustive else found.certificate
    return Transform(
        code,
        found.spectrum.frequencies,
        on_bits.coefficients(found),
        found.fidelity,
        points,
        on_bits.ask(points),
        found.exhaustive,
        found.n_queries,
        limits,
    )


def fit_swht(task: Task) -> CandidateFit:
    """Fit coefficients a* + d of the transform's terms: d is the ridge regression of what a* misses on hybrids."""
    begin = time.perf_counter()
    found = task.transform
    assert found is not None
    frequencies, prior = _support(found, task.n_outputs)
    bits, answers = found.code.bits(task.codes), task.answers
    missed = answers - make_spectrum(frequencies, prior)(bits).reshape(answers.shape)
    refitted = np.argsort(-np.abs(prior).max(axis=1), kind="stable")[:MOST_REFITTED]
    folds = [task.fold == k for k in range(N_FOLDS)]
    parts = [_Normal.make(bits[inside], frequencies[refitted], missed[inside]) for inside in folds]
    total = sum(parts[1:], parts[0])
    strengths = (np.inf,) if found.is_exact else STRENGTHS
    held_out = np.empty((len(strengths), *missed.shape))
    for inside, part in zip(folds, parts, strict=True):
        signs = sign_matrix(bits[inside], frequencies[refitted])
        for predictions, strength in zip(held_out, strengths, strict=True):
            predictions[inside] = signs @ (total - part).solve(strength)
    best = int(np.argmin(((missed - held_out) ** 2).sum(axis=(1, 2))))
    predictions = answers - missed + held_out[best]

    def make() -> SpectrumSurrogate:
        coefficients = prior.copy()
        coefficients[refitted] += total.solve(strengths[best])
        used = np.abs(coefficients).max(axis=1) > 0
        return SpectrumSurrogate(make_spectrum(frequencies[used], coefficients[used]), found.code)

    note = (
        f"{len(found.frequencies)} terms from {found.n_queries:,} uniform queries, R^2 {found.r2:.4f} on the cube, "
        f"pull {strengths[best]:g}"
    )
    return CandidateFit("swht", task.judge(predictions), predictions, make, time.perf_counter() - begin, note)


@dataclass(frozen=True, eq=False)
class _Normal:
    """Normal equations of some rows: they add up and subtract."""

    matrix: Floats
    target: Floats
    n_rows: int

    @classmethod
    def make(cls, bits: Bits, frequencies: NDArray[np.bool_], y: Floats) -> _Normal:
        signs = sign_matrix(bits, frequencies)
        return cls((signs.T @ signs).astype(np.float64), signs.T @ y, len(y))

    def __add__(self, other: _Normal) -> _Normal:
        return _Normal(self.matrix + other.matrix, self.target + other.target, self.n_rows + other.n_rows)

    def __sub__(self, other: _Normal) -> _Normal:
        return _Normal(self.matrix - other.matrix, self.target - other.target, self.n_rows - other.n_rows)

    def solve(self, strength: float) -> Floats:
        """Return coefficients (n_terms, n_outputs) of the ridge regression; zero for infinite strength."""
        if np.isinf(strength):
            return np.zeros_like(self.target)
        pull = strength * self.n_rows * np.eye(len(self.matrix))
        return np.asarray(np.linalg.solve(self.matrix + pull, self.target), dtype=np.float64)


def sign_matrix(bits: Bits, frequencies: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return (-1)^<f, x> for every row and term, (n, n_terms); counts of them are exact in single precision."""
    odd = bits.astype(np.float32) @ frequencies.T.astype(np.float32) % 2
    return np.asarray(1 - 2 * odd, dtype=np.float32)


def _support(found: Transform, n_outputs: int) -> tuple[NDArray[np.bool_], Floats]:
    """Return the terms, and, unless their number is limited, the constant and every single bit."""
    frequencies, prior = found.frequencies, found.coefficients.reshape(-1, n_outputs)
    if found.limits.n_terms is None and not found.is_exact:
        n_bits = found.code.n_bits
        frequencies = np.concatenate([frequencies, np.zeros((1, n_bits), bool), np.eye(n_bits, dtype=bool)])
        _, first = np.unique(frequencies, axis=0, return_index=True)
        frequencies = frequencies[np.sort(first)]
        prior = np.concatenate([prior, np.zeros((len(frequencies) - len(prior), n_outputs))])
    return frequencies, prior
