"""SHAP values on whatever device JAX has: the paper's four versions, and look-up tables.

========== =================================================================================
base       the closed form of one term, one background row and one row, mapped over all three
precompute what depends on term and background alone is computed once and kept
sparse     only the atoms that a term touches, padded to the highest degree
positional terms listed by the player that they touch, values per player
tables     the look-up tables of `SpectrumExplainer`, read under XLA
========== =================================================================================

JAX is imported when one of them is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from fouriershap._base.bits import check_bits
from fouriershap._base.checks import check_choice, check_device, check_weights, import_optional
from fouriershap._base.messages import truncated_repr
from fouriershap._shapley.spectrum.terms import make_terms

if TYPE_CHECKING:
    from fouriershap._fourier.spectrum import Spectrum
    from fouriershap._shapley.jax.tables import JaxTables
    from fouriershap._shapley.jax.versions import Prepared
    from fouriershap._shapley.tables import TableSet

VERSIONS = ("base", "precompute", "sparse", "positional")
PRECISIONS = ("single", "double")


def prepare(
    spectrum: Spectrum,
    background: ArrayLike,
    *,
    strategy: str = "precompute",
    players: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    memory: int | float | None = None,
    precision: str | None = None,
) -> Prepared:
    """Lay out a spectrum and a background for one of the paper's versions, once.

    Arguments are those of `fouriershap.spectra.shap_values`. ``memory`` is a budget of arrays on the device in bytes;
    None for a quarter of what it has. ``precision`` None is double on a CPU, single on an accelerator.
    """
    check_choice("strategy", strategy, VERSIONS)
    _check_precision(precision)
    import_optional(
        "jax", f"strategy={truncated_repr(strategy)}", "[jax]", "strategy='tables' needs nothing more."
    )
    from fouriershap._shapley.jax.versions import Prepared

    rows = check_bits(background, spectrum.n_bits, name="background")
    share = check_weights(weights, len(rows))
    return Prepared(make_terms(spectrum, players), rows, share, strategy, memory, precision)


def put_tables(
    tables: TableSet, precision: str | None = None, memory: int | float | None = None
) -> JaxTables:
    """Return look-up tables that are read under XLA, with the ``add`` of `TableSet`."""
    _check_precision(precision)
    check_device("jax")
    from fouriershap._shapley.jax.tables import JaxTables

    return JaxTables(tables, precision, memory)


def _check_precision(precision: str | None) -> None:
    if precision is not None:
        check_choice("precision", precision, PRECISIONS)
