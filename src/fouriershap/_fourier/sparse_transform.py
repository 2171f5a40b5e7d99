"""`sparse_walsh_hadamard`: the front door of the sparse transforms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from fouriershap._base.answer_file import open_store
from fouriershap._base.answers import AnswersOption
from fouriershap._base.checks import ProgressOption, check_choice, check_whole
from fouriershap._base.errors import FidelityWarning, InputError
from fouriershap._base.queries import QueryModel
from fouriershap._base.short import short
from fouriershap._base.warn import warn
from fouriershap._fourier import coded, robust
from fouriershap._fourier.bch import Code, UnitCode, make_code
from fouriershap._fourier.gf2 import Bits
from fouriershap._fourier.outcome import finish, to_spectrum
from fouriershap._fourier.queries import BATCH_SIZE, Queries, asked_by
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._fourier.transform import walsh_hadamard

_MOST_BITS = 1 << 20
N_CERTIFICATE = 200
DEFAULT_BUDGET = 50_000
DEFAULT_DEGREE = 5
MIN_FIDELITY = 0.95


@dataclass(frozen=True)
class Search:
    """What to look for and how; the arguments of `sparse_walsh_hadamard`."""

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
                f"h is {type(self.h).__name__}; give a function of rows, or values to `walsh_hadamard`."
            )
        for name in ("n_bits", "n_terms", "max_degree", "budget", "batch_size"):
            value = getattr(self, name)
            if value is not None or name in ("n_bits", "batch_size"):
                check_whole(name, value, 0 if name == "n_bits" else 1)
        if self.n_bits > _MOST_BITS:
            raise InputError(f"n_bits is {short(self.n_bits)}; at most {_MOST_BITS:,} are feasible.")
        check_choice("algorithm", self.algorithm, ("coded", "robust"))


@dataclass(frozen=True)
class Recovery:
    """A spectrum with its evidence."""

    spectrum: Spectrum
    n_queries: int  # rows that h was asked for
    # R^2 on uniform points that took no part in fitting or choosing; 1 where all points were asked.
    fidelity: float
    exhaustive: bool  # whether every point of the cube was asked
    certificate: Bits  # (n_points, n_bits) those uniform points; none where all points were asked


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
        Any number: only algorithm and model see the rows, never all 2^n of them.
    n_terms : int, optional
        Most terms to return, the constant not counted (the paper's k). It also sets the number of queries.
        None: hashes are added until nothing is left to find, and the number is chosen by held-out loss.
    max_degree : int, optional
        Largest number of bits that a term depends on. "coded": 5 by default; a tree's depth if h is one.
        "robust": without it any degree is found, by n_bits shifts.
    budget : int, optional
        Most queries. Fewer are asked where the function is found exactly; otherwise "coded" puts all to use,
        since answers also average noise. None: at most twice the plan for ``n_terms``, or 50,000 without,
        ended early where what is left looks like noise. Never more than the cube has points.
    algorithm : {"coded", "robust"}
        "coded": hash and BCH code merged, terms peeled from crowded bins. "robust": RobustSWHT of
        Amrollahi et al. (2019), with a majority vote per bit and a median per amplitude.
    random_state : int or Generator, optional
        The same seed asks the same rows and gives the same spectrum.
    batch_size : int
        Most rows per call of h.
    progress : bool or callable, optional
        True for a tqdm bar, or a function of (queries done, most queries).
    answers : path or mapping, optional
        Where the answers of h are kept, as in `BlackBoxExplainer`: the same call goes on where it stopped. A
        row is a tuple of n_bits numbers; in a file its columns are "bit 0", "bit 1" and so on.

    Returns
    -------
    Spectrum

    Raises
    ------
    InputError
        An argument is wrong, or the budget too small to say anything (with the number that would do).
    QueryError
        h raised, or returned the wrong length, NaN or no numbers. This and every other exception carries the
        answers so far: ``answers=error.answers``.

    Warns
    -----
    FidelityWarning
        Where the spectrum explains less than 95 % of the variance at points that it has never seen.

    See Also
    --------
    walsh_hadamard : All 2^n values in, the whole spectrum out.

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

    Where the budget reaches :math:`2^n`, no point is asked twice, and if the function is not found exactly
    before, the remaining points are asked and the exact transform is returned.

    The result does not depend on the scale of h, nor on an offset, beyond rounding.

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
    """`sparse_walsh_hadamard` with its evidence beside the spectrum."""
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
    """Parities that tell the terms of admissible degree apart."""
    n_bits = int(search.n_bits)
    if search.algorithm == "robust" and search.max_degree is None:
        return UnitCode.make(n_bits, n_bits)
    return make_code(n_bits, search.max_degree or DEFAULT_DEGREE)


def first_queries(search: Search) -> int:
    """Queries of a coded search that ends with its first three hashes."""
    code = make_search_code(search)
    return N_CERTIFICATE + _first_hashes(code, search.n_terms)


def least_queries(code: Code, algorithm: str = "coded") -> int:
    """The smallest budget, certificate included."""
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
    outcome = finish(outcome, code, n_terms)
    if queries.covers_cube and not outcome.exact:
        return _exhaustive(queries, n_terms)
    spectrum = to_spectrum(outcome, queries.n_bits)
    points = rng.integers(0, 2, (n_certificate, queries.n_bits), np.uint8)
    fidelity = _certify(queries, spectrum, points)
    if queries.covers_cube and fidelity < 1 - 1e-9:
        return _exhaustive(queries, n_terms)
    return Recovery(spectrum, queries.count, fidelity, False, points)


def certificate_size(budget: int) -> int:
    """Fresh points that are held back: 200, or a tenth of the budget."""
    return min(N_CERTIFICATE, budget // 10)


def _first_hashes(code: Code, n_terms: int | None) -> int:
    return coded.N_HASHES * coded.hash_cost(code, coded.first_size(code, n_terms))


def _most_queries(search: Search, code: Code) -> int:
    """The budget, or what the plan may cost, but no more than the cube has points."""
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
    """R^2 at fresh uniform points (n_points, n_bits)."""
    answers = queries.ask(len(points), lambda index: points[index])
    errors = answers - spectrum(points, n_jobs=1)
    spread = float(np.var(answers)) if len(points) else 0.0
    if spread <= (4 * queries.precision * queries.magnitude) ** 2:
        return 1.0 if np.abs(errors).max(initial=0.0) <= 1e-9 * max(queries.magnitude, 1e-300) else 0.0
    return 1.0 - float(np.mean(errors**2)) / spread


def _exhaustive(queries: Queries, n_terms: int | None) -> Recovery:
    """The exact transform of all points; what is only rounding is left out."""
    values = queries.ask_cube()
    spectrum = walsh_hadamard(values, queries.n_bits)
    spectrum = spectrum.select(np.abs(spectrum.coefficients) > 4 * queries.precision * queries.magnitude)
    fidelity, no_points = 1.0, np.zeros((0, queries.n_bits), np.uint8)
    if n_terms is not None and spectrum.variance > 0:
        pruned = spectrum.prune(max_terms=n_terms)
        fidelity, spectrum = pruned.variance / spectrum.variance, pruned
    return Recovery(spectrum, queries.count, fidelity, True, no_points)
