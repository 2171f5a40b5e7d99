"""`sparse_walsh_hadamard`: the large terms of a function on bits from few queries, by either algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.answer_file import open_store
from fouriershap._base.answers import AnswersOption
from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import ProgressOption, check_choice, check_int
from fouriershap._base.errors import FidelityWarning, InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.queries import QueryModel
from fouriershap._base.warn import warn
from fouriershap._fourier import coded, robust
from fouriershap._fourier.bch import Code, make_code, unit_code
from fouriershap._fourier.fit import Fit, Outcome, drop_noise, is_exact, refit
from fouriershap._fourier.gf2 import Bits
from fouriershap._fourier.hashing import Bins, characters, locate, total_queries
from fouriershap._fourier.queries import BATCH_SIZE, Queries, asked_by
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._fourier.transform import walsh_hadamard

_MOST_BITS = 1 << 20
N_CERTIFICATE = 200
DEFAULT_BUDGET = 50_000
DEFAULT_DEGREE = 5
MIN_FIDELITY = 0.95
_SOLVED = 1e-12  # relative error of the least-squares solution
_MOST_FOLDS = 4
_SHRINK = 0.75


@dataclass(frozen=True)
class Search:
    """The arguments of `sparse_walsh_hadamard`, checked."""

    h: Callable[[Bits], ArrayLike]
    n_bits: int
    n_terms: int | None = None
    _: KW_ONLY
    max_degree: int | None = None
    budget: int | None = None
    algorithm: str = "coded"
    random_state: int | np.random.Generator | None = None
    batch_size: int = BATCH_SIZE
    progress: ProgressOption = None

    def __post_init__(self) -> None:
        if not callable(self.h):
            raise InputError(
                f"h is {type(self.h).__name__}; give a function of rows, or pass all values to `walsh_hadamard`."
            )
        for name in ("n_bits", "n_terms", "max_degree", "budget", "batch_size"):
            value = getattr(self, name)
            if value is not None or name in ("n_bits", "batch_size"):
                check_int(name, value, 0 if name == "n_bits" else 1)
        if self.n_bits > _MOST_BITS:
            raise InputError(f"n_bits is {truncated_repr(self.n_bits)}; the limit is {_MOST_BITS:,}.")
        check_choice("algorithm", self.algorithm, ("coded", "robust"))


@dataclass(frozen=True)
class Recovery:
    """A spectrum and how well it is supported."""

    spectrum: Spectrum
    n_queries: int  # rows at which h was evaluated
    # R^2 on uniform points that took no part in fitting or choosing; 1 where all points were queried.
    fidelity: float
    exhaustive: bool  # whether every point of the cube was queried
    certificate: Bits  # (n_points, n_bits) those uniform points; empty where all points were queried


@check_arguments
def sparse_walsh_hadamard(
    h: Callable[[Bits], ArrayLike],
    n_bits: int,
    n_terms: int | None = None,
    *,
    max_degree: int | None = None,
    budget: int | None = None,
    algorithm: str = "coded",
    random_state: int | np.random.Generator | None = None,
    batch_size: int = BATCH_SIZE,
    progress: ProgressOption = None,
    answers: AnswersOption = None,
) -> Spectrum:
    r"""Find the large terms of a function on bits from few of its values.

    Parameters
    ----------
    h : callable
        Takes rows (n_rows, n_bits) uint8, returns one number per row.
    n_bits : int
        Any number: the 2^n rows are never all formed.
    n_terms : int, optional
        Largest number of terms to return, not counting the constant (the paper's k). It also sets the number of
        queries. None: hashes are added until nothing is left to find, and held-out loss chooses the number.
    max_degree : int, optional
        Largest number of bits that a term depends on. "coded": 5 by default; a tree's depth if h is one.
        "robust": without it any degree is found, by n_bits shifts.
    budget : int, optional
        Largest number of queries. Fewer are made if the function is found exactly; otherwise "coded" uses all,
        since more answers average out noise. None: at most twice the plan for ``n_terms``, or 50,000 without it,
        stopped early if the residual looks like noise. Never more than the cube has points.
    algorithm : {"coded", "robust"}
        "coded": hash and BCH code merged, terms peeled from crowded bins. "robust": RobustSWHT of
        Amrollahi et al. (2019), with a majority vote per bit and a median per amplitude.
    random_state : int or Generator, optional
        The same seed queries the same rows and gives the same spectrum.
    batch_size : int
        Largest number of rows per call of h.
    progress : bool or callable, optional
        True for a line on the standard error, or a function of (queries done, largest number of queries).
    answers : path or mapping, optional
        Where the answers of h are stored, as in `BlackBoxExplainer`: the same call continues where it stopped. A
        row is a tuple of n_bits numbers; in a file its columns are "bit 0", "bit 1" and so on.

    Returns
    -------
    Spectrum

    Raises
    ------
    InputError
        An argument is invalid, or the budget is too small (the message states the smallest).
    QueryError
        h raised, or returned the wrong length, NaN or something else than numbers. This and every other exception
        carries the answers so far: ``answers=error.answers``.

    Warns
    -----
    FidelityWarning
        The spectrum explains less than 95 % of the variance at fresh points.

    See Also
    --------
    walsh_hadamard : The whole spectrum from all 2^n values.

    Notes
    -----
    Number of queries, with r the rank of the code's parity matrix (at most
    :math:`t \lceil\log_2(n+1)\rceil` for degree t, and never above n), and 200 points, or a tenth of the
    budget if that is less, of a certificate that takes no part in the fit:

    - "coded": :math:`200 + \sum_c 2^{b_c} (5 + r - b_c)` over the hashes c. With ``n_terms`` the first
      three have :math:`b = \lceil\log_2(n_{terms} / 4)\rceil`, at least 2; without, b = 4. A function of no
      more than ``n_terms`` terms without noise needs, as a rule, no fourth.
    - "robust": :math:`200 + \sum_c 3 \cdot 2^{b_c} (1 + r)` over at most four rounds, the first with
      :math:`b = \lceil\log_2 n_{terms}\rceil`, the others one less, ended when the function is exact; r is n
      without ``max_degree``. Without ``n_terms``, rounds from b = 4 on, larger while most is unexplained.

    If the budget reaches :math:`2^n`, no point is queried twice, and unless the function is found exactly
    before, the remaining points are queried and the exact transform is returned.

    Up to rounding, the result does not depend on the scale of h, nor on an offset.

    Examples
    --------
    >>> import numpy as np
    >>> from fouriershap import sparse_walsh_hadamard
    >>> def h(x):  # 50 bits, three terms
    ...     signs = 1.0 - 2.0 * x
    ...     return 2.0 + signs[:, 3] - 0.5 * signs[:, 7] * signs[:, 41]
    >>> spectrum = sparse_walsh_hadamard(h, 50, random_state=0)
    >>> spectrum.coefficients.round(9)
    array([ 2. ,  1. , -0.5])
    >>> [np.flatnonzero(f).tolist() for f in spectrum.frequencies]
    [[], [3], [7, 41]]
    """
    search = Search(
        h,
        n_bits,
        n_terms,
        max_degree=max_degree,
        budget=budget,
        algorithm=algorithm,
        random_state=random_state,
        batch_size=batch_size,
        progress=progress,
    )
    store = None if answers is None else open_store(answers, [f"bit {i}" for i in range(n_bits)])
    model = QueryModel(h, "h", int(batch_size), 0, store=store, single=True)
    with model.attach_answers():
        state = model.resolve_seed(random_state)
        recovery = recover(replace(search, h=asked_by(model, int(n_bits)), random_state=state))
        if recovery.fidelity < MIN_FIDELITY:
            warn(
                f"the spectrum ({len(recovery.spectrum)} terms, {recovery.n_queries:,} queries) explains R^2 = "
                f"{recovery.fidelity:.3f} of h at fresh points: h has more terms, terms of higher degree, or "
                "noise. Give a larger budget, n_terms or max_degree.",
                FidelityWarning,
            )
    return recovery.spectrum


def recover(search: Search) -> Recovery:
    """Find a spectrum as `sparse_walsh_hadamard` does, and return how well it is supported."""
    code = make_search_code(search)
    queries = Queries(
        search.h, int(search.n_bits), _most_queries(search, code), search.batch_size, search.progress
    )
    try:
        found = _recover(queries, code, search)
        return replace(found, spectrum=found.spectrum * queries.unit)
    finally:
        queries.close()


def make_search_code(search: Search) -> Code:
    """Return parities that tell the terms of admissible degree apart."""
    n_bits = int(search.n_bits)
    if search.algorithm == "robust" and search.max_degree is None:
        return unit_code(n_bits, n_bits)
    return make_code(n_bits, search.max_degree or DEFAULT_DEGREE)


def first_queries(search: Search) -> int:
    """Return the queries of a coded search that ends with its first three hashes."""
    code = make_search_code(search)
    return N_CERTIFICATE + _first_hashes(code, search.n_terms)


def least_queries(code: Code, algorithm: str = "coded") -> int:
    """Return the smallest budget, certificate included."""
    least = (coded if algorithm == "coded" else robust).least_budget(code)
    return next(q for q in range(least, 2 * least + N_CERTIFICATE) if q - certificate_size(q) >= least)


def _recover(queries: Queries, code: Code, search: Search) -> Recovery:
    n_terms, rng = search.n_terms, np.random.default_rng(search.random_state)
    n_certificate = certificate_size(queries.budget)
    available = queries.budget - n_certificate
    needed = least_queries(code, search.algorithm)
    if queries.budget < needed:
        if queries.covers_cube:
            return _exhaustive(queries, n_terms)
        raise InputError(
            f"budget is {queries.budget}; {queries.n_bits} bits with terms of degree up to {code.max_degree} "
            f"need at least {needed} queries. Give more, or a smaller max_degree."
        )
    if search.algorithm == "coded":
        spend = search.budget is not None
        outcome = coded.recover_coded(queries, code, n_terms, available, spend, rng)
    else:
        outcome = robust.recover_robust(queries, code, n_terms, available, rng)
    outcome = _finish(outcome, code, n_terms)
    if queries.covers_cube and not outcome.exact:
        return _exhaustive(queries, n_terms)
    spectrum = _to_spectrum(outcome, queries.n_bits)
    points = rng.integers(0, 2, (n_certificate, queries.n_bits), np.uint8)
    fidelity = _certify(queries, spectrum, points)
    if queries.covers_cube and fidelity < 1 - 1e-9:
        return _exhaustive(queries, n_terms)
    return Recovery(spectrum, queries.count, fidelity, False, points)


def certificate_size(budget: int) -> int:
    """Return how many fresh points are held back: 200, or a tenth of the budget."""
    return min(N_CERTIFICATE, budget // 10)


def _first_hashes(code: Code, n_terms: int | None) -> int:
    return coded.N_HASHES * coded.hash_cost(code, coded.first_size(code, n_terms))


def _most_queries(search: Search, code: Code) -> int:
    """Return the budget, or what the plan may cost, but no more than the cube has points."""
    if search.budget is not None:
        most = int(search.budget)
    elif search.n_terms is None:
        most = DEFAULT_BUDGET
    elif search.algorithm == "robust":
        most = N_CERTIFICATE + max(9 * N_CERTIFICATE, robust.plan_cost(code, search.n_terms))
    else:
        most = N_CERTIFICATE + max(9 * N_CERTIFICATE, 2 * _first_hashes(code, search.n_terms))
    return min(most, 1 << search.n_bits) if search.n_bits < 60 else most


def _certify(queries: Queries, spectrum: Spectrum, points: Bits) -> float:
    """Return R^2 at fresh uniform points (n_points, n_bits)."""
    answers = queries.ask(len(points), lambda index: points[index])
    errors = answers - spectrum(points, n_jobs=1)
    spread = float(np.var(answers)) if len(points) else 0.0
    if spread <= (4 * queries.precision * queries.magnitude) ** 2:
        return 1.0 if np.abs(errors).max(initial=0.0) <= 1e-9 * max(queries.magnitude, 1e-300) else 0.0
    return 1.0 - float(np.mean(errors**2)) / spread


def _exhaustive(queries: Queries, n_terms: int | None) -> Recovery:
    """Return the exact transform of all points, without terms that are only rounding."""
    values = queries.ask_cube()
    spectrum = walsh_hadamard(values, queries.n_bits)
    spectrum = spectrum.select(np.abs(spectrum.coefficients) > 4 * queries.precision * queries.magnitude)
    fidelity, no_points = 1.0, np.zeros((0, queries.n_bits), np.uint8)
    if n_terms is not None and spectrum.variance > 0:
        pruned = spectrum.prune(max_terms=n_terms)
        fidelity, spectrum = pruned.variance / spectrum.variance, pruned
    return Recovery(spectrum, queries.count, fidelity, True, no_points)


def _finish(outcome: Outcome, code: Code, n_terms: int | None) -> Outcome:
    """Drop terms that could be noise, then all but the best number of terms."""
    measured, fit, scale = outcome.measured, outcome.fit, outcome.scale
    # What the largest of all admissible terms reaches, in standard errors, if there is only noise.
    n_bits = code.rows.shape[1]
    n_admissible = sum(math.comb(n_bits, d) for d in range(min(code.max_degree, n_bits) + 1))
    threshold = math.sqrt(2 * math.log(max(2, n_admissible)))
    for _ in range(10):
        n_before = len(fit.positions)
        fit = drop_noise(measured, fit, scale, threshold)
        if len(fit.positions) == n_before:
            break
    size = np.abs(fit.coefficients)
    size[0] = np.inf  # the constant comes first
    order = np.argsort(-size, kind="stable")
    if n_terms is not None:
        n_kept = min(len(order), n_terms + 1)
    elif is_exact(measured, fit, scale):
        n_kept = len(order)
    else:
        n_kept = _best_size(measured, fit, order)
    kept = order[:n_kept]
    fit = refit(measured, fit.positions[kept], fit.coefficients[kept])
    return Outcome(measured, fit, scale, outcome.centre)


def _to_spectrum(outcome: Outcome, n_bits: int) -> Spectrum:
    """Return terms as a `Spectrum`, without the constant if it is zero to the precision of the answers."""
    fit, measured = outcome.fit, outcome.measured
    coefficients = fit.coefficients.copy()
    coefficients[0] += outcome.centre
    n_queries = total_queries(measured)
    variance = fit.rss / max(1, n_queries - len(coefficients)) / n_queries + outcome.scale.rounding
    frequencies = np.zeros((len(coefficients), n_bits + 1), dtype=bool)
    np.put_along_axis(frequencies, fit.positions.astype(np.int64), True, axis=1)
    zero = 4 * math.sqrt(variance) + _SOLVED * math.sqrt(outcome.scale.energy)
    first = 1 if abs(coefficients[0]) <= zero else 0
    return Spectrum(frequencies[first:, :n_bits], coefficients[first:])


def _best_size(measured: list[Bins], fit: Fit, order: NDArray[np.int64]) -> int:
    """Return the number of terms with the smallest loss on hashes that the coefficients were not fitted to."""
    if len(measured) < 2 or len(order) < 2:
        return len(order)
    sizes = [len(order)]
    while sizes[-1] > 2:
        sizes.append(int(_SHRINK * sizes[-1]))
    losses = np.zeros(len(sizes))
    for fold in range(min(_MOST_FOLDS, len(measured))):
        rest = [bins for i, bins in enumerate(measured) if i != len(measured) - 1 - fold]
        for i, size in enumerate(sizes):
            kept = order[:size]
            partial = refit(rest, fit.positions[kept], fit.coefficients[kept])
            bins = measured[-1 - fold]
            index, signs = locate(bins, partial.positions)
            left = bins.values.copy()
            np.add.at(left, index, -partial.coefficients[:, None] * characters(signs, bins.n_shifts))
            losses[i] += bins.n_bins * float(np.vdot(left, left))
    return sizes[int(np.argmin(losses))]
