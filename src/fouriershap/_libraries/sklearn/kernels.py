"""Kernel machines of scikit-learn: a support vector is a product of one factor per feature.

A kernel is read as a sum of *atoms*: bells (RBF, Laplace), constants, powers of a scalar product. Sums, products and
powers of kernels are sums, products and powers of these. A bell becomes a term for each support vector; powers of
scalar products become the monomials of one polynomial, however many support vectors there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.links import IDENTITY, UNKNOWN
from fouriershap._libraries.reading import (
    Reading,
    class_names,
    dense,
    fitted_names,
    product_reading,
    refuse_product,
    require_fitted,
)
from fouriershap._libraries.sklearn.networks import MOST_UNITS, units
from fouriershap._waves.products import Products
from fouriershap._waves.terms import Bells, Monomials, Terms

Floats = NDArray[np.float64]
MOST_MONOMIALS = 4096
_MOST_ATOMS = 64


@dataclass(frozen=True, eq=False)
class Atom:
    """A product kernel: ``weight * exp(-squares . d^2 - sizes . |d|) * (scale x . s + offset)^degree``.

    Attributes
    ----------
    weight, scale, offset : float
    squares, sizes : (n_features,) float64
    degree : int
        0 where there is no scalar product.
    """

    weight: float
    squares: Floats
    sizes: Floats
    scale: float = 1.0
    offset: float = 0.0
    degree: int = 0

    @property
    def is_bell(self) -> bool:
        return bool(self.squares.any() or self.sizes.any())


def read_vectors(model: Any) -> Reading:
    """SVR, NuSVR, OneClassSVM; SVC and NuSVC by their decision function."""
    vectors, duals = dense(require_fitted(model, "support_vectors_")), dense(model.dual_coef_)
    kernel = model.kernel
    names = class_names(model, 1)
    if hasattr(model, "classes_") and len(model.classes_) > 2:
        if model.decision_function_shape != "ovo":
            refuse_product(
                model,
                "whose decision function for several classes counts votes; with decision_function_shape='ovo' (which "
                "can be set after fitting) it is a sum for each pair of classes, and exact",
                "model.decision_function",
            )
        duals, names = _pairs_of_classes(model, duals)
    gamma, constant = float(getattr(model, "_gamma", 0.0)), np.asarray(model.intercept_, dtype=np.float64)
    if isinstance(kernel, str) and kernel == "sigmoid" and len(vectors) <= MOST_UNITS:
        products = units(gamma * vectors, np.full(len(vectors), model.coef0), duals.T, constant, "tanh")
    else:
        atoms = _named(model, kernel, vectors.shape[1], gamma, model.degree, model.coef0)
        products = _machine(model, atoms, vectors, duals.T, constant)
    link = UNKNOWN if hasattr(model, "predict_proba") else IDENTITY
    return product_reading(f"scikit-learn {type(model).__name__}", products, fitted_names(model), names, link)


def _pairs_of_classes(model: Any, duals: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Weights (n_pairs, n_vectors) of the machines for each pair of classes, as libsvm lays them out; their names."""
    last = np.cumsum(model.n_support_)
    of = [slice(end - count, end) for end, count in zip(last, model.n_support_, strict=True)]
    rows, names = [], []
    n = len(model.classes_)
    for i in range(n):
        for j in range(i + 1, n):
            row = np.zeros(duals.shape[1])
            row[of[i]], row[of[j]] = duals[j - 1, of[i]], duals[i, of[j]]
            rows.append(row)
            names.append(f"{model.classes_[i]} or {model.classes_[j]}")
    return np.array(rows), tuple(names)


def read_ridge(model: Any) -> Reading:
    """KernelRidge."""
    vectors, duals = dense(require_fitted(model, "X_fit_")), dense(model.dual_coef_)
    n_features = vectors.shape[1]
    if model.kernel_params:
        refuse_product(model, "with kernel_params")
    gamma = 1.0 / n_features if model.gamma is None else float(model.gamma)
    kernel = model.kernel
    if isinstance(kernel, str):
        atoms = _named(model, kernel, n_features, gamma, model.degree, model.coef0)
    else:
        atoms = _atoms(model, kernel, n_features)
    duals = duals.reshape(len(vectors), -1)
    return product_reading(
        f"scikit-learn {type(model).__name__}",
        _machine(model, atoms, vectors, duals, np.zeros(duals.shape[1])),
        fitted_names(model),
    )


def read_process(model: Any) -> Reading:
    """GaussianProcessRegressor, by its mean."""
    vectors, duals = dense(require_fitted(model, "X_train_")), dense(model.alpha_)
    duals = duals.reshape(len(vectors), -1) * np.asarray(model._y_train_std)
    constant = np.zeros(duals.shape[1]) + np.asarray(model._y_train_mean)
    atoms = _atoms(model, model.kernel_, vectors.shape[1])
    return product_reading(
        f"scikit-learn {type(model).__name__}",
        _machine(model, atoms, vectors, duals, constant),
        fitted_names(model),
    )


def _named(model: Any, kernel: Any, n: int, gamma: float, degree: Any, offset: float) -> list[Atom]:
    """Return the atoms of a kernel given by its name."""
    none = np.zeros(n)
    if kernel == "rbf":
        return [Atom(1.0, np.full(n, gamma), none)]
    if kernel == "laplacian":
        return [Atom(1.0, none, np.full(n, gamma))]
    if kernel == "linear":
        return [Atom(1.0, none, none, degree=1)]
    if kernel in ("poly", "polynomial") and float(degree).is_integer() and degree >= 1:
        return [Atom(1.0, none, none, gamma, float(offset), int(degree))]
    return refuse_product(
        model,
        f"whose kernel {kernel if isinstance(kernel, str) else 'function'} is not a product over features",
    )


def _atoms(model: Any, kernel: Any, n: int) -> list[Atom]:
    """Return the atoms of a kernel of ``sklearn.gaussian_process.kernels``."""
    name, none = type(kernel).__name__, np.zeros(n)
    if name == "Sum":
        return _atoms(model, kernel.k1, n) + _atoms(model, kernel.k2, n)
    if name == "Product":
        return _multiplied(model, _atoms(model, kernel.k1, n), _atoms(model, kernel.k2, n))
    if name == "Exponentiation" and float(kernel.exponent).is_integer() and kernel.exponent >= 1:
        base = made = _atoms(model, kernel.kernel, n)
        for _ in range(int(kernel.exponent) - 1):
            made = _multiplied(model, made, base)
        return made
    if name == "ConstantKernel":
        return [Atom(float(kernel.constant_value), none, none)]
    if name == "WhiteKernel":
        return []  # noise, which no row shares with another
    smooth = name == "RBF" or (name == "Matern" and kernel.nu == np.inf)
    if smooth:
        return [Atom(1.0, np.zeros(n) + 0.5 / np.asarray(kernel.length_scale) ** 2, none)]
    if name == "Matern" and kernel.nu == 0.5 and n == 1:
        return [Atom(1.0, none, np.zeros(n) + 1 / np.asarray(kernel.length_scale))]
    if name == "DotProduct":
        return [Atom(1.0, none, none, 1.0, float(kernel.sigma_0) ** 2, 1)]
    return refuse_product(model, f"whose kernel {name} is not a product over features")


def _multiplied(model: Any, first: list[Atom], second: list[Atom]) -> list[Atom]:
    made = [_product(model, a, b) for a in first for b in second]
    return (
        made
        if len(made) <= _MOST_ATOMS
        else refuse_product(model, f"whose kernel has {len(made)} products of kernels")
    )


def _product(model: Any, a: Atom, b: Atom) -> Atom:
    if a.degree < b.degree:
        a, b = b, a
    if b.degree and (a.scale, a.offset) != (b.scale, b.offset):
        refuse_product(model, "whose kernel multiplies two different scalar products")
    both = replace(
        a,
        weight=a.weight * b.weight,
        squares=a.squares + b.squares,
        sizes=a.sizes + b.sizes,
        degree=a.degree + b.degree,
    )
    if both.degree and both.is_bell:
        refuse_product(model, "whose kernel multiplies bells by scalar products")
    return both


def _machine(model: Any, atoms: Sequence[Atom], vectors: Floats, duals: Floats, constant: Floats) -> Products:
    """Return the sum over support vectors of duals (n_vectors, n_outputs) times the kernel."""
    n = vectors.shape[1]
    total, linear, terms = constant.copy(), np.zeros((n, len(constant))), list[Terms]()
    polynomial: dict[tuple[int, ...], Floats] = {}
    for atom in atoms:
        weights = duals * atom.weight
        if atom.is_bell:
            squares, sizes = (np.tile(part, (len(vectors), 1)) for part in (atom.squares, atom.sizes))
            coefficients = np.stack([weights.T, np.zeros(weights.T.shape)], axis=1)
            terms.append(Bells(vectors, squares, sizes, coefficients))
        elif atom.degree == 0:
            total += weights.sum(axis=0)
        else:
            total += weights.sum(axis=0) * atom.offset**atom.degree
            linear += atom.degree * atom.offset ** (atom.degree - 1) * atom.scale * (vectors.T @ weights)
            if comb(n + atom.degree, n) > MOST_MONOMIALS:
                refuse_product(
                    model,
                    f"whose polynomial of degree {atom.degree} has {comb(n + atom.degree, n):,} monomials",
                )
            for degree in range(2, atom.degree + 1):
                _add_monomials(polynomial, atom, degree, vectors, weights)
    if polynomial:
        powers = np.array(list(polynomial), dtype=np.float64)
        heights = np.array(list(polynomial.values())).T
        terms.append(Monomials(powers, np.stack([heights, np.zeros(heights.shape)], axis=1)))
    return Products(np.arange(n, dtype=np.int32), linear, total, tuple(terms))


def _add_monomials(
    polynomial: dict[tuple[int, ...], Floats], atom: Atom, degree: int, vectors: Floats, weights: Floats
) -> None:
    """Add the monomials of one degree of ``(scale x . s + offset)^atom.degree``, summed over the vectors s."""
    n = vectors.shape[1]
    outer = comb(atom.degree, degree) * atom.offset ** (atom.degree - degree) * atom.scale**degree
    if outer == 0:
        return
    for chosen in combinations_with_replacement(range(n), degree):
        powers = np.bincount(chosen, minlength=n)
        ways = factorial(degree) // int(np.prod([factorial(int(p)) for p in powers]))
        height = outer * ways * (np.prod(vectors[:, list(chosen)], axis=1) @ weights)
        key = tuple(powers.tolist())
        polynomial[key] = polynomial.get(key, 0.0) + height
