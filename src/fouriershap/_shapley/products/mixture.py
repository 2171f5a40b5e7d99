"""Strategy "mixture": a few products of marginals stand for the background. Its error is measured and reported.

Rows are clustered; within a cluster, players count as independent. That is exact where all others come from the row
(t = 1). Where none does (t = 0), the truth is a table, so the error there is known; a share of it, found at a few rows
that are explained exactly, is subtracted everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.headers import get_typed, require
from fouriershap._shapley.engine import Contents, Floats
from fouriershap._shapley.indices import Index
from fouriershap._shapley.products.clusters import cluster
from fouriershap._shapley.products.components import (
    Points,
    Sets,
    component_sets,
    component_values,
    exact_values,
    verify_components,
)
from fouriershap._shapley.products.model import (
    ProductSum,
    WeightedRows,
    as_complex,
    as_factors,
    blocks,
    other_products,
)

MOST = 128  # components
WORTH_DOUBLING, FEW = 0.7, 8  # of the error: twice the components must leave no more, from this number on
N_PROBES = 8  # rows that are explained exactly
MOST_PROBED = 512  # rows of the background against which they are
_PROBE_POINTS = 8  # of the integral there: far more than the mixture has
_MOST_KAPPA = 0.5
_SINGLE = np.float32


def inner_points(index: Index, n_points: int) -> tuple[Points, float]:
    """Return points within, and the weight of either end: Lobatto's rules, exact up to degree 3 and 5."""
    inner, weights, end = index.lobatto(n_points)
    return Points(inner, weights), end


@dataclass(frozen=True, eq=False)
class Mixture:
    """Products of marginals (see `Strategy`).

    Attributes
    ----------
    components : (n_components, n_players, 2, n_terms) float32
        Mean factors of each cluster.
    weights : (n_components,) float64
    near : (2, n_players, 2, n_terms) float64
        The mean product of all other players over the background: by the mixture, and how far the truth is from it.
    whole : (2, 2, n_terms) float64
        The same for the product of all players.
    mean : (n_outputs,) float64
        Mean of the products and the constant over the background.
    kappa : float
        The share of the known difference that is subtracted.
    index : Index
    error : float
    n_points : {1, 2}
        Where the integral is taken, beside its ends.
    """

    name: ClassVar[str] = "mixture"
    components: NDArray[np.float32]
    weights: Floats
    near: Floats
    whole: Floats
    mean: Floats
    kappa: float
    index: Index
    error: float
    n_points: int = 2

    @property
    def n_components(self) -> int:
        return len(self.components)

    @cached_property
    def _marginals(self) -> NDArray[np.float32]:
        """The whole background as one component."""
        mean = np.einsum("c,cjkm->jkm", self.weights, self.components.astype(np.float64))
        return np.ascontiguousarray(mean[None], dtype=_SINGLE)

    def values(self, model: ProductSum, rows: NDArray[Any], kernel: Any) -> Floats:
        out, known = self.plain(model, rows, kernel)
        out += self.kappa * known
        if not self.index.adds_up:
            return out
        # What is missing from the model's output goes where the correction went.
        left = model.products(rows) - self.mean - out.sum(axis=1)
        size = np.abs(known) + np.finfo(_SINGLE).tiny
        out += left[:, None] * size / size.sum(axis=1, keepdims=True)
        return out

    def plain(self, model: ProductSum, rows: NDArray[Any], kernel: Any) -> tuple[Floats, Floats]:
        """Return values by the mixture alone, and the known error where all others come from the background."""
        factors = model.factors(rows, _SINGLE)
        if self.index.subgames:
            out = exact_values(model, factors, self.components, self.weights, self.index, kernel)
            return out, np.zeros_like(out)
        inner, end = inner_points(self.index, self.n_points)
        out = component_values(model, factors, self.components, self.weights, inner, kernel)
        at_end, known = self._near(model, factors)
        if end:
            out += end * at_end
            far = Points(np.ones(1), np.array([end]))
            out += component_values(model, factors, self._marginals, np.ones(1), far, kernel)
        return out, known

    def _near(self, model: ProductSum, factors: NDArray[Any]) -> Floats:
        """Return values where all others come from the background: by the mixture, and its error.

        (2, n_rows, n_players, n_outputs). Linear in the factor of the player.
        """
        coefficients = np.conj(as_complex(model.coefficients))
        table = coefficients[:, None] * as_complex(self.near)[:, None]  # (2, n_outputs, n_players, n_terms)
        constant = np.einsum("om,km->ko", coefficients, as_complex(self.whole)).real
        table = np.concatenate([table.real, -table.imag], axis=3).astype(_SINGLE)
        lines = factors.reshape(*factors.shape[:2], -1).transpose(1, 0, 2)
        found = np.matmul(lines, table.reshape(-1, *table.shape[2:]).transpose(1, 2, 0))
        found = found.reshape(*found.shape[:2], 2, -1).transpose(2, 1, 0, 3)
        return np.asarray(found - constant[:, None, None], dtype=np.float64)

    def interactions(
        self, model: ProductSum, rows: NDArray[Any], index: Index, sets: Sets, kernel: Any
    ) -> Floats:
        if sets.shape[1] == 1 and index is self.index:
            return self.values(model, rows, kernel)[:, sets[:, 0]]
        return component_sets(model, rows, self.components, self.weights, index, sets, kernel)

    def to_contents(self) -> Contents:
        arrays: dict[str, NDArray[Any]] = {"components": self.components, "component_weights": self.weights}
        arrays |= {"near": self.near, "whole": self.whole, "products_mean": self.mean}
        return arrays, {"kappa": self.kappa, "error": self.error, "n_points": self.n_points}

    @classmethod
    def from_contents(
        cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: ProductSum, index: Index
    ) -> Mixture:
        """Return what `to_contents` wrote."""
        components, weights = arrays["components"], arrays["component_weights"]
        verify_components(components, weights, model, _SINGLE)
        near, whole, mean = (arrays[name] for name in ("near", "whole", "products_mean"))
        n_terms = model.coefficients.shape[2]
        shapes = (2, model.n_players, 2, n_terms), (2, 2, n_terms), (model.n_outputs,)
        for array, shape in zip((near, whole, mean), shapes, strict=True):
            fits = array.shape == shape and array.dtype == np.float64 and np.isfinite(array).all()
            require(fits, "its moments are those of another model")
        numbers = (get_typed(header, "kappa", float), index, get_typed(header, "error", float))
        require(0 <= numbers[0] <= _MOST_KAPPA and numbers[2] >= 0, "its error is out of range")
        n_points = get_typed(header, "n_points", int)
        require(n_points in (1, 2), "its number of points is unknown")
        return cls(components, weights, near, whole, mean, *numbers, n_points)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Means over a background.

    Attributes
    ----------
    near : (n_players, n_terms) complex128
        Of the product of all players but one.
    whole : (n_terms,) complex128
        Of the product of all.
    rest : (n_outputs,) float64
        Of the products and the constant, in double precision.
    """

    near: NDArray[np.complex128]
    whole: NDArray[np.complex128]
    rest: Floats


@dataclass(frozen=True, eq=False)
class _Truth:
    """Exact values of a few rows: products alone, and the size of all."""

    rows: NDArray[Any]
    background: WeightedRows
    chosen: NDArray[np.int64]  # rows of the whole background
    moments: _Moments
    values: Floats
    size: float


def compile_mixture(model: ProductSum, background: WeightedRows, index: Index, tolerance: float) -> Mixture:
    """Use as few components as keep the error below ``tolerance``: at most `MOST`, and while doubling them helps."""
    truth = _explain_probes(model, background, index)
    points = model.embed(background.rows)
    found: list[tuple[float, float, NDArray[np.int64]]] = []
    n = 1
    while True:
        labels = cluster(points, background.weights, n)
        found.append((*_calibrate(model, truth, labels, index, 2), labels))
        little = n > FEW and found[-1][0] > WORTH_DOUBLING * found[-2][0]
        if found[-1][0] <= tolerance or little or 2 * n > min(MOST, len(background) // 2):
            break
        n *= 2
    error, kappa, labels = found[-2] if little else found[-1]
    n_points, cheaper = 2, _calibrate(model, truth, labels, index, 1)
    if cheaper[0] <= max(error, tolerance):
        (error, kappa), n_points = cheaper, 1
    mixture = _mix(model, background, labels, _moments_of(model, background), index)
    return replace(mixture, kappa=kappa, error=error, n_points=n_points)


def _explain_probes(model: ProductSum, background: WeightedRows, index: Index) -> _Truth:
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(len(background), min(MOST_PROBED, len(background)), replace=False))
    some = background.part(chosen)
    probes = some.rows[rng.choice(len(some), min(N_PROBES, len(some)), replace=False)]
    values = np.zeros((len(probes), model.n_players, model.n_outputs))
    factors = model.factors(probes, _SINGLE)
    for part in blocks(model, some.rows):
        components = model.factors(some.rows[part], _SINGLE)
        share = some.weights[part]
        values += exact_values(model, factors, components, share, index, kernels.products, 2 * _PROBE_POINTS)
    centre = np.average(model.additive(some.rows), axis=0, weights=some.weights)
    size = float(((values + model.additive(probes) - centre) ** 2).sum())
    return _Truth(probes, some, chosen, _moments_of(model, some), values, size)


def _calibrate(
    model: ProductSum, truth: _Truth, labels: NDArray[np.int64], index: Index, n_points: int
) -> tuple[float, float]:
    """Return the error of a mixture, and the share of the known difference that is subtracted.

    The mixture is that of the rows for which the truth is known, so that no error of sampling is counted.
    """
    _, some = np.unique(labels[truth.chosen], return_inverse=True)
    mixture = replace(_mix(model, truth.background, some, truth.moments, index), n_points=n_points)
    plain, known = mixture.plain(model, truth.rows, kernels.products)
    square = float((known**2).sum())
    kappa = float((known * (truth.values - plain)).sum()) / square if square > 0 else 0.0
    mixture = replace(mixture, kappa=float(np.clip(kappa, 0.0, _MOST_KAPPA)))
    missed = float(((mixture.values(model, truth.rows, kernels.products) - truth.values) ** 2).sum())
    return missed / truth.size if truth.size > 0 else 0.0, mixture.kappa


def _moments_of(model: ProductSum, background: WeightedRows) -> _Moments:
    shape = model.n_players, model.coefficients.shape[2]
    near, whole = np.zeros(shape, complex), np.zeros(shape[1], complex)
    for part in blocks(model, background.rows):
        numbers = as_complex(model.factors(background.rows[part], _SINGLE))
        others, weights = other_products(numbers), background.weights[part]
        near += np.einsum("r,rjm->jm", weights, others)
        whole += np.einsum("r,rm->m", weights, others[:, 0] * numbers[:, 0])
    rest = np.average(model.products(background.rows), axis=0, weights=background.weights)
    return _Moments(near, whole, rest)


def _mix(
    model: ProductSum, background: WeightedRows, labels: NDArray[np.int64], truth: _Moments, index: Index
) -> Mixture:
    """Return the products of the marginals of clusters, not yet corrected."""
    n = int(labels.max()) + 1
    weights = np.asarray(np.bincount(labels, background.weights, minlength=n), dtype=np.float64)
    sums = np.zeros((n, model.n_players * model.coefficients[0].size))
    for part in blocks(model, background.rows):
        factors = model.factors(background.rows[part], _SINGLE)
        share = np.zeros((n, len(factors)), dtype=_SINGLE)
        share[labels[part], np.arange(len(factors))] = background.weights[part]
        sums += share @ factors.reshape(len(factors), -1)
    components = (sums / weights[:, None]).reshape(n, *factors.shape[1:]).astype(_SINGLE)
    numbers = as_complex(components.astype(np.float64))
    near = np.einsum("c,cjm->jm", weights, other_products(numbers))
    whole = np.einsum("c,cm->m", weights, numbers.prod(axis=1))
    return Mixture(
        components,
        weights,
        near=as_factors(np.stack([near, truth.near - near]), np.float64),
        whole=as_factors(np.stack([whole, truth.whole - whole]), np.float64),
        mean=truth.rest,
        kappa=0.0,
        index=index,
        error=0.0,
    )
