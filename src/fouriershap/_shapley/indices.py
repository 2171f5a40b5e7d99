"""Indices as objects: how a value is averaged over coalitions. A new index is an entry here.

An `Index` gives values to players. It averages a player's marginal contribution over coalitions that everyone else
joins with probability t, so it is a distribution of t: uniform on [0, 1] for Shapley, t = 1/2 for Banzhaf. Engines
(tables, walks, closed forms) need only its points, moments and shares, which the functions below derive and cache.

An `InteractionIndex` gives values to sets of players. It is linear, so it is determined by its shares of the unanimity
games "all of T are in": the set S within T gets ``share(order, |S|, |T|)``, every other set nothing.

A structured index averages over fewer coalitions, those that respect groups or a chain: it is a list of `Subgame`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import pairwise
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.headers import require
from fouriershap._base.messages import truncated_repr
from fouriershap._shapley.structure import (
    ALWAYS,
    NEVER,
    UNIFORM,
    Subgame,
    any_places,
    chain_subgames,
    group_subgames,
    parse_structure,
    places_within,
)

Floats = NDArray[np.float64]

_SAME = 32  # shares by which two averages are recognised as the same


@dataclass(frozen=True, eq=False, repr=False)
class InteractionIndex:
    """How interactions of sets of players are averaged over coalitions.

    Attributes
    ----------
    name : str
    share : callable
        The share of a set of ``size`` players in the game "all of these ``whole`` players are in", by order, size and
        whole; ``1 <= size <= order`` and ``size <= whole``.
    adds_up : bool
        Whether the values of all sets up to the order add up to the prediction.
    """

    name: str
    share: Callable[[int, int, int], Fraction]
    adds_up: bool = True

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], InteractionIndex], tuple[str]]:
        return find_interaction_index, (self.name,)


def _n_shapley(order: int, size: int, whole: int) -> Fraction:
    others = whole - size
    most = min(order - size, others)
    parts = (bernoulli(r) * comb(others, r) / (others - r + 1) for r in range(most + 1))
    return sum(parts, Fraction(0))


def _taylor(order: int, size: int, whole: int) -> Fraction:
    return Fraction(1, comb(whole, order)) if size == order else Fraction(int(whole == size))


def _faithful(order: int, size: int, whole: int) -> Fraction:
    if whole <= order:
        return Fraction(int(whole == size))
    sign = -1 if (order - size) % 2 else 1
    share = Fraction(size, order + size) * comb(order, size)
    return sign * share * Fraction(comb(whole - 1, order), comb(whole + order - 1, order + size))


def _faithful_banzhaf(order: int, size: int, whole: int) -> Fraction:
    if whole <= order:
        return Fraction(int(whole == size))
    sign = -1 if (order - size) % 2 else 1
    return Fraction(sign * comb(whole - size - 1, order - size), 2 ** (whole - size))


# The Shapley and the Banzhaf interaction index (Grabisch and Roubens 1999), the same whatever the order.
SII = InteractionIndex("SII", lambda _, size, whole: Fraction(1, whole - size + 1), adds_up=False)
BII = InteractionIndex("BII", lambda _, size, whole: Fraction(1, 2 ** (whole - size)), adds_up=False)
# n-Shapley values (Bordt and von Luxburg 2023): SII of the highest order, lower ones corrected to add up.
KSII = InteractionIndex("k-SII", _n_shapley)
# Shapley-Taylor (Sundararajan et al. 2020): pure effects below the order, the rest shared among the highest.
STII = InteractionIndex("STII", _taylor)
# Faithful Shapley (Tsai et al. 2023): the sum of effects up to the order that is nearest to the game.
FSII = InteractionIndex("FSII", _faithful)
# Faithful Banzhaf (Tsai et al. 2023): the nearest such sum where every coalition has the same weight.
FBII = InteractionIndex("FBII", _faithful_banzhaf, adds_up=False)
# Moebius coefficients (Harsanyi dividends): what a set adds to all of its subsets, with nobody else in.
MOEBIUS = InteractionIndex("Moebius", lambda _, size, whole: Fraction(int(size == whole)), adds_up=False)
INTERACTION_INDICES = {index.name: index for index in (KSII, STII, FSII, SII, BII, FBII, MOEBIUS)}


def find_interaction_index(name: str) -> InteractionIndex:
    """Return the interaction index of this name, or raise `InputError`."""
    found = semivalue(name)
    if found is not None:
        return found.interaction
    return INTERACTION_INDICES[check_choice("index", name, tuple(INTERACTION_INDICES))]


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """How a player's marginal contribution is averaged over coalitions: a distribution of t in [0, 1].

    Attributes
    ----------
    name : str
    adds_up : bool
        Whether the values of all players add up to the prediction minus the expected value.
    interaction : InteractionIndex
        The same average for sets of players.
    n_points : callable
        Number of points that integrate a product over this many players exactly.
    rule : callable
        So many points in (0, 1) and their weights, exact for polynomials of degree up to 2 n_points - 1.
    lobatto : callable
        One or two inner points, their weights, and the weight of either end of [0, 1].
    monomials : callable
        Means of t^p (1 - t)^q, (most + 1, most + 1) by p and q.
    mean_power : callable
        Mean of (1 - 2 t)^exponent.
    places : callable
        Draw places of players in so many orders of so many players, with a generator; see `structure.any_places`.
    subgames : tuple of Subgame
        Of a structured index, whose other functions refuse; empty for others.
    """

    name: str
    adds_up: bool
    interaction: InteractionIndex
    n_points: Callable[[int], int]
    rule: Callable[[int], tuple[Floats, Floats]]
    lobatto: Callable[[int], tuple[Floats, Floats, float]]
    monomials: Callable[[int], Floats]
    mean_power: Callable[[int], float]
    places: Callable[[int, int, np.random.Generator], NDArray[np.int64]] = any_places
    subgames: tuple[Subgame, ...] = ()

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Index], tuple[str]]:
        return _index_of, (self.name,)


def _gauss(n_points: int) -> tuple[Floats, Floats]:
    t, weights = np.polynomial.legendre.leggauss(n_points)
    return (t + 1) / 2, weights / 2


def _lobatto(n_points: int) -> tuple[Floats, Floats, float]:
    if n_points == 1:
        return np.array([0.5]), np.array([2 / 3]), 1 / 6
    inner = 0.5 - 0.5 / np.sqrt(5)
    return np.array([inner, 1 - inner]), np.full(2, 5 / 12), 1 / 12


def _extrapolate(n_points: int) -> tuple[Floats, Floats]:
    """Return Chebyshev's points, and the weights that give a polynomial's value at 0: they grow like log(n_points)."""
    angle = (np.arange(n_points) + 0.5) * np.pi / n_points
    signs = np.where(np.arange(n_points) % 2, -1.0, 1.0)
    return np.sin(angle / 2) ** 2, signs / (n_points * np.tan(angle / 2))


def _beta(most: int) -> Floats:
    """Return p! q! / (p + q + 1)! by recurrence: no factorial overflows, and what is too small becomes 0."""
    q = np.arange(most + 1.0)
    out = np.empty((most + 1, most + 1))
    out[0] = 1.0 / (q + 1)
    for p in range(most):
        out[p + 1] = out[p] * (p + 1) / (p + 2 + q)
    return out


# Every size of coalition has the same weight: t is uniform.
SHAPLEY = Index(
    name="shapley",
    adds_up=True,
    interaction=SII,
    n_points=lambda n_players: max(1, (n_players + 1) // 2),
    rule=_gauss,
    lobatto=_lobatto,
    monomials=_beta,
    mean_power=lambda exponent: 0.0 if exponent % 2 else 1 / (exponent + 1),
)
# Every coalition has the same weight: t = 1/2.
BANZHAF = Index(
    name="banzhaf",
    adds_up=False,
    interaction=BII,
    n_points=lambda _: 1,
    rule=lambda n_points: (np.full(n_points, 0.5), np.eye(1, n_points)[0]),
    lobatto=lambda _: (np.array([0.5]), np.array([1.0]), 0.0),
    monomials=lambda most: np.asarray(0.5 ** np.add.outer(np.arange(most + 1.0), np.arange(most + 1.0))),
    mean_power=lambda exponent: float(exponent == 0),
)
INDICES = {index.name: index for index in (SHAPLEY, BANZHAF)}
# Nobody else joins: t = 0, to which polynomials are extrapolated from points inside (0, 1). What a player adds to
# the empty coalition is its partial dependence, so this index serves engines and is not one that users choose.
MAIN_EFFECT = Index(
    name="main effect",
    adds_up=False,
    interaction=MOEBIUS,
    n_points=lambda n_players: max(1, n_players),
    rule=_extrapolate,
    lobatto=lambda _: (np.array([0.5]), np.array([0.0]), 0.0),
    monomials=lambda most: np.repeat(np.eye(most + 1, 1), most + 1, axis=1),
    mean_power=lambda _: 1.0,
)


_FAMILY = re.compile(r" *(weighted-banzhaf|beta-shapley) *\(([^(),]*)(?:,([^(),]*))?\) *")
FAMILIES = ("weighted-banzhaf(p)", "beta-shapley(a, b)")
_MOST_PARAMETER = 1000


def semivalue(name: Any) -> Index | None:
    """Return the index that a name such as "beta-shapley(16, 1)" describes; None where it is not of such a family."""
    found = _FAMILY.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        return None
    kind, *texts = found.groups()
    try:
        numbers = tuple(Fraction(text.strip()) for text in texts if text is not None)
    except (ValueError, ZeroDivisionError):
        numbers = ()
    if kind == "weighted-banzhaf" and len(numbers) == 1 and 0 < numbers[0] < 1:
        return BANZHAF if numbers[0] == Fraction(1, 2) else _weighted_banzhaf(numbers[0])
    if kind == "beta-shapley" and len(numbers) == 2 and 0 < min(numbers) <= max(numbers) <= _MOST_PARAMETER:
        return SHAPLEY if set(numbers) == {1} else _beta_shapley(*numbers)
    raise InputError(
        f"index is {truncated_repr(name)}; give 'weighted-banzhaf(p)' with p between 0 and 1, or 'beta-shapley(a, b)' "
        f"with numbers above 0, up to {_MOST_PARAMETER}."
    )


def _text(number: Fraction) -> str:
    decimal = f"{float(number):.12g}"
    return decimal if Fraction(decimal) == number else str(number)


@lru_cache(maxsize=64)
def _weighted_banzhaf(p: Fraction) -> Index:
    """Return the index of coalitions that everyone else joins with probability p (Li and Yu 2023)."""
    name, t = f"weighted-banzhaf({_text(p)})", float(p)
    return Index(
        name=name,
        adds_up=False,
        interaction=InteractionIndex(name, lambda _, size, whole: p ** (whole - size), adds_up=False),
        n_points=lambda _: 1,
        rule=lambda n_points: (np.full(n_points, t), np.eye(1, n_points)[0]),
        lobatto=lambda _: (np.array([t]), np.array([1.0]), 0.0),
        monomials=lambda most: np.outer(t ** np.arange(most + 1.0), (1 - t) ** np.arange(most + 1.0)),
        mean_power=lambda exponent: (1 - 2 * t) ** exponent,
    )


@lru_cache(maxsize=64)
def _beta_shapley(a: Fraction, b: Fraction) -> Index:
    """Return Beta(a, b)-Shapley values (Kwon and Zou 2022): t has the density t^(b - 1) (1 - t)^(a - 1), normed.

    A large ``a`` stresses small coalitions.
    """
    name, joins, stays = f"beta-shapley({_text(a)}, {_text(b)})", float(b), float(a)

    def share(_: int, size: int, whole: int) -> Fraction:
        factors = ((b + k) / (a + b + k) for k in range(whole - size))
        return prod(factors, start=Fraction(1))

    def rule(n_points: int) -> tuple[Floats, Floats]:
        """Gauss and Jacobi's points: eigenvalues of the recurrence of the orthogonal polynomials."""
        total = joins + stays
        k = np.arange(1.0, n_points)
        twice = 2 * k + total
        diagonal = np.full(n_points, (joins - stays) / total)
        diagonal[1:] = (joins - stays) * (total - 2) / ((twice - 2) * twice)
        below = (twice - 2) ** 2 * (twice - 1)
        ratio = k * (k + stays - 1) * (k + joins - 1) / below
        ratio[1:] *= (k[1:] + total - 2) / (twice[1:] - 3)  # 1 at the first, where it may be 0 / 0
        beside = 2 * np.sqrt(ratio)
        matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        x, vectors = np.linalg.eigh(matrix)
        return (x + 1) / 2, vectors[0] ** 2

    def monomials(most: int) -> Floats:
        k = np.arange(most)
        out = np.ones((most + 1, most + 1))
        out[0, 1:] = np.cumprod((stays + k) / (joins + stays + k))
        for p in range(most):
            out[p + 1] = out[p] * (joins + p) / (joins + stays + p + np.arange(most + 1))
        return out

    @lru_cache(maxsize=256)
    def mean_power(exponent: int) -> float:
        t, weights = rule(exponent // 2 + 1)
        return float(weights @ (1 - 2 * t) ** exponent)

    return Index(
        name=name,
        adds_up=False,
        interaction=InteractionIndex(name, share, adds_up=False),
        n_points=SHAPLEY.n_points,
        rule=rule,
        lobatto=lambda n_points: (*rule(n_points), 0.0),
        monomials=monomials,
        mean_power=mean_power,
    )


def _index_of(name: str) -> Index:
    return MAIN_EFFECT if name == MAIN_EFFECT.name else stored_index(name)


OWEN, ASYMMETRIC = "owen", "asymmetric"
_MOST_COUNTS = 1 << 13  # of players of several classes: their shares take a gigabyte
_TITLES = {OWEN: "Owen values", ASYMMETRIC: "asymmetric values"}
_SUBGAMES = {OWEN: group_subgames, ASYMMETRIC: chain_subgames}
# Laws of t as indices: all others have joined, or none has.
_FIXED = {
    ALWAYS: lambda most: np.repeat(np.eye(1, most + 1), most + 1, axis=0),
    NEVER: MAIN_EFFECT.monomials,
}


def find_index(name: str) -> Index:
    """Return the index of this name, or raise `InputError`."""
    return semivalue(name) or INDICES[check_choice("index", name, (*INDICES, *FAMILIES))]


@lru_cache(maxsize=256)
def index_of_sets(index: InteractionIndex, order: int, size: int) -> Index:
    """Return the average over t that gives sets of ``size`` players their values, where a game is a sum of products.

    A set takes its players' factors out of a product and averages the rest, a polynomial in t: t^r stands for a game
    of r players more, of which the index knows the set's share. A rule of n points holds up to the degree n - 1.
    """
    named = semivalue(index.name)
    for known in (
        *INDICES.values(),
        MAIN_EFFECT,
        *([] if named is None else [named]),
    ):  # whose rules need fewer points
        same = known.interaction.share
        if all(
            unanimity_share(index, order, size, size + r) == same(order, size, size + r) for r in range(_SAME)
        ):
            return known

    @lru_cache(maxsize=64)
    def rule(n_points: int) -> tuple[Floats, Floats]:
        t, weights = _gauss(n_points)
        shares = [unanimity_share(index, order, size, size + r) for r in range(n_points)]
        series = np.zeros(n_points)  # in Legendre's polynomials on [0, 1], whose coefficients are integers
        for degree in range(n_points):
            terms = (
                (-1) ** (degree + k) * comb(degree, k) * comb(degree + k, k) * shares[k]
                for k in range(degree + 1)
            )
            series[degree] = (2 * degree + 1) * sum(terms, Fraction(0))
        return t, weights * np.polynomial.legendre.legval(2 * t - 1, series)

    def monomials(most: int) -> Floats:
        t, weights = rule(2 * most + 1)
        powers = np.arange(most + 1)[:, None]
        return np.asarray((t**powers * weights) @ ((1 - t) ** powers).T)

    return Index(
        name=f"{index.name} of {size} in {order}",
        adds_up=False,
        interaction=index,
        n_points=lambda n_players: max(1, n_players),
        rule=rule,
        lobatto=SHAPLEY.lobatto,
        monomials=monomials,
        mean_power=lambda exponent: float(
            rule(exponent + 1)[1] @ (1 - 2 * rule(exponent + 1)[0]) ** exponent
        ),
    )


def stored_index(name: str, n_players: int | None = None) -> Index:
    """Return the index whose name a file or a pickle keeps, or raise `FileFormatError`."""
    if _FAMILY.fullmatch(name):
        found = semivalue(name)
        assert found is not None
        return found
    if not name.startswith(tuple(_SUBGAMES)):
        require(name in INDICES, "its index is not known")
        return INDICES[name]
    index = _structured(name)
    fits = n_players is None or len(index.subgames[0].merged) == n_players
    require(fits, "its index is of other players")
    return index


@lru_cache(maxsize=64)
def _structured(name: str) -> Index:
    """Return the index whose name is "owen" or "asymmetric" and lists of lists of players."""
    kind = next(kind for kind in _SUBGAMES if name.startswith(kind))
    tree = parse_structure(name, kind)
    require(tree is not None, "its index is not known")
    assert tree is not None
    is_chain = all(isinstance(group, list) and not any(isinstance(p, list) for p in group) for group in tree)
    require(kind == OWEN or is_chain, "its index is not known")

    def refuse(*_: object) -> Any:
        raise InputError(
            f"interactions are not defined for {_TITLES[kind]}. For those of SHAP values, leave out "
            + ("coalitions='owen'." if kind == OWEN else "causal_order=.")
        )

    share = InteractionIndex(kind, refuse)
    functions = (refuse,) * 5
    subgames = tuple(_SUBGAMES[kind](tree))

    def places(n_orders: int, _: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return places_within(tree, kind == ASYMMETRIC, n_orders, rng)

    return Index(name, True, share, *functions, places, subgames)


def structured_index(kind: str, tree: list[Any]) -> Index:
    """Return the index of kind `OWEN` or `ASYMMETRIC` of players, lists of them, and so on."""
    return _structured(kind + json.dumps(tree, separators=(",", ":")))


def title(index: Index) -> str:
    """Return what the values of an index are called."""
    return next((text for kind, text in _TITLES.items() if index.name.startswith(kind)), "")


def class_moments(law: int, most: int) -> Floats:
    """Return the means of t^p (1 - t)^q by p and q, of a class of players whose t has this law."""
    return moments(SHAPLEY, most) if law == UNIFORM else np.asarray(_FIXED[law](most))


def count_shares(subgame: Subgame, most: int) -> tuple[NDArray[np.int32], Floats]:
    """Return shares of products in which at most ``most`` players of the merged game take part.

    The players that a row fails, and those that a background row fails, are each counted by a number: the sum of what
    each player adds to it, (n_merged,). Shares are (z, c, 2) by the numbers of the row and of the background row: that
    of a player whose value is wanted where the background row fails it, and minus that where the row does.
    """
    sizes = np.minimum(np.bincount(subgame.kind), most)
    steps = np.append(np.cumprod(sizes[:0:-1] + 1)[::-1], 1)
    if np.prod(sizes + 1.0) > _MOST_COUNTS:
        raise CapacityError(
            f"a path of these trees has {most} players in {len(sizes)} levels of groups, which is too many to count. "
            "Give groups= with fewer levels."
        )
    first = np.zeros((2, sizes[0] + 1, sizes[0] + 1))
    own = class_moments(UNIFORM, int(sizes[0]))
    first[0, :, 1:] = own[:-1].T
    first[1, 1:] = own[:, :-1].T
    others = [class_moments(law, int(n)).T for law, n in zip(subgame.laws[1:], sizes[1:], strict=True)]
    shares = np.stack([reduce(np.kron, others, each) for each in first], axis=2)
    return steps[subgame.kind].astype(np.int32), np.ascontiguousarray(shares)


def difference_shares(index: Index, players: NDArray[np.int32], differs: NDArray[np.bool_]) -> Floats:
    """Return shares of a structured index in a character of +1 of these players, by who differs, (..., n_players)."""
    out = np.zeros(differs.shape)
    for game in index.subgames:
        mine = np.isin(players, game.own)
        if not mine.any():
            continue
        units, unit = np.unique(game.merged[players], return_inverse=True)
        odd = differs.astype(np.int64) @ np.eye(len(units), dtype=np.int64)[unit] % 2
        share = np.full(differs.shape[:-1], -2.0)
        for number in np.unique(game.kind[units]):
            m = odd[..., game.kind[units] == number].sum(axis=-1)
            law, exponent = game.laws[number], np.arange(len(units) + 1) - (number == 0)
            powers = {ALWAYS: (-1.0) ** exponent, NEVER: np.ones(len(exponent))}.get(
                law, np.array([SHAPLEY.mean_power(abs(int(e))) for e in exponent])
            )
            share *= powers[m]
        out[..., mine] = differs[..., mine] * share[..., None]
    return out


@lru_cache(maxsize=64)
def grid(subgame: Subgame) -> tuple[Floats, Floats]:
    """Return points (n_points, n_merged) and weights that integrate products over the players of a game exactly."""
    t, weights = np.zeros((1, 0)), np.ones(1)
    for number, (law, n) in enumerate(zip(subgame.laws, np.bincount(subgame.kind).tolist(), strict=True)):
        fixed = np.array([float(law == ALWAYS)]), np.ones(1)
        more, share = _gauss(n // 2 + 1 if number else (n + 1) // 2) if law == UNIFORM else fixed
        t = np.concatenate([np.repeat(t, len(more), axis=0), np.tile(more, len(t))[:, None]], axis=1)
        weights = np.outer(weights, share).reshape(-1)
    return np.ascontiguousarray(t[:, subgame.kind]), weights


@lru_cache(maxsize=64)
def points(index: Index, n_points: int) -> tuple[Floats, Floats]:
    """Return points and weights, see `Index.rule`."""
    return index.rule(n_points)


@lru_cache
def quadrature(index: Index, most_players: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return points and weights for products of u players, u = 0 ... most_players, end to end, and where each begins.

    Entry u holds its points, then its weights, both padded with zero weights to a multiple of 4 (a vector).
    """
    parts: list[Floats] = []
    for u in range(most_players + 1):
        n = index.n_points(u)
        padded = -(-n // 4) * 4
        t, weights = np.full(padded, 0.5), np.zeros(padded)
        t[:n], weights[:n] = points(index, n)
        parts.append(np.concatenate([t, weights]))
    start = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
    return np.concatenate(parts), start


@lru_cache(maxsize=64)
def moments(index: Index, most: int) -> Floats:
    """Return the means of t^p (1 - t)^q, see `Index.monomials`."""
    return index.monomials(most)


def difference_weight(index: Index, order: int, m: int) -> float:
    """Return the share of each player (order 1) or pair (order 2) of the m that differ in a character of +1.

    The character is then a product of m factors 1 - 2 t, of which ``order`` are taken out, for -2 each.
    """
    return (-2.0) ** order * index.mean_power(m - order) if m >= order else 0.0


@lru_cache(maxsize=64)
def term_shares(index: Index, order: int, max_degree: int) -> Floats:
    """``shares[d, s, k]``: transform of "these players of d differ, with m - order others", weighted with m.

    The character belongs to a set of s of the d players, ``k <= order`` of the players (one, or a pair) inside
    it. Summed over how many of the others differ inside the set (u, each with a factor -1) and outside it (v).
    """
    shares = np.zeros((max_degree + 1, max_degree + 1, order + 1))
    for degree in range(order, max_degree + 1):
        for size in range(degree + 1):
            for inside in range(order + 1):
                others = size - inside
                if not 0 <= others <= degree - order:
                    continue
                total = 0.0
                for u in range(others + 1):
                    for v in range(degree - order - others + 1):
                        ways = comb(others, u) * comb(degree - order - others, v)
                        total += (-1) ** u * ways * difference_weight(index, order, order + u + v)
                shares[degree, size, inside] = (-1) ** inside * total / 2**degree
    return shares


@lru_cache
def bernoulli(n: int) -> Fraction:
    """Return the Bernoulli number B_n, with B_1 = -1/2."""
    if n == 0:
        return Fraction(1)
    return -sum((comb(n + 1, j) * bernoulli(j) for j in range(n)), Fraction(0)) / (n + 1)


@lru_cache(maxsize=1 << 16)
def unanimity_share(index: InteractionIndex, order: int, size: int, whole: int) -> Fraction:
    """Return the share of a set in a unanimity game, see `InteractionIndex`; 0 where the set is larger."""
    return Fraction(0) if size > whole else index.share(order, size, whole)


@lru_cache(maxsize=32)
def leaf_shares(index: InteractionIndex, order: int, most: int) -> Floats:
    """Return the shares of a leaf, (most + 1, most + 1, order + 1) by a, b, s.

    The game is 1 where a coalition holds all of a players and none of b others; of the a players a set of s gets this.
    A set that takes j of its players from the b gets (-1)^j times the entry (a + j, b - j, s): a player who must stay
    out is 1 minus one who must come in. Entries with a + b > most are 0.
    """
    shares = [
        [Fraction(0), *(unanimity_share(index, order, s, a) for s in range(1, order + 1))]
        for a in range(most + 1)
    ]
    out = np.zeros((most + 1, most + 1, order + 1))
    for b in range(most + 1):
        out[: most + 1 - b, b] = [[float(share) for share in row] for row in shares]
        shares = [
            [one - more for one, more in zip(row, following, strict=True)]
            for row, following in pairwise(shares)
        ]
    return out


@lru_cache(maxsize=32)
def character_shares(index: InteractionIndex, order: int, most: int) -> Floats:
    """Return the share of s of the m players that differ in a character of +1, (most + 1, order + 1) by m and s."""
    out = np.zeros((most + 1, order + 1))
    for m in range(most + 1):
        for s in range(1, min(order, m) + 1):
            out[m, s] = sum(
                comb(m - s, r) * (-2) ** (s + r) * unanimity_share(index, order, s, s + r)
                for r in range(m - s + 1)
            )
    return out
