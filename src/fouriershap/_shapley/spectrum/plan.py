"""Costs of tables and of the closed form, and the choice between them for each term."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.engine import Plan as EnginePlan
from fouriershap._shapley.spectrum.blocks import BLOCK_ATOMS, MOST_ATOMS, table_bytes
from fouriershap._shapley.spectrum.terms import Terms

# Nanoseconds on one core of a 2021 server processor. Only their ratios matter, and only roughly.
_DIRECT_WORD = 8.0  # per row, atom of a term, and 64 background rows
_DIRECT_WEIGHTED = 8.0  # times as much where background rows have weights
_LOOK_UP = 2.0  # per row and table
_BUILD_ENTRY = 1.5  # per table entry
_HISTOGRAM = 1.0  # per background row and block
_CALL = 200_000.0  # fixed cost of compiling
_TERMS_PER_BLOCK = 6.0  # least number of low-degree terms that share a block


@dataclass(frozen=True)
class Plan(EnginePlan):
    """Which terms are explained how, and what that is expected to cost.

    Attributes
    ----------
    strategy : str
        "tables", "direct", or "tables+direct" where some terms are explained by each.
    n_table_terms, n_direct_terms : int
    table_bytes : int
        Memory of the tables: estimated by `plan`, exact in `Tables.plan`.
    table_seconds, direct_seconds : float
        Estimates, on one core, of explaining *all* feasible terms by one strategy alone (tables with
        compiling included; infinite where no term can go into a table).
    reason : str
    """

    n_table_terms: int
    n_direct_terms: int
    table_bytes: int
    table_seconds: float
    direct_seconds: float

    def after(self, n_table_terms: int, table_bytes: int, memory: int) -> Plan:
        """Return the plan as it was carried out: blocks may have exceeded the budget."""
        plan = replace(self, table_bytes=table_bytes)
        if n_table_terms == self.n_table_terms:
            return plan
        n_direct = self.n_direct_terms + self.n_table_terms - n_table_terms
        return replace(
            plan,
            strategy="tables+direct" if n_table_terms else "direct",
            n_table_terms=n_table_terms,
            n_direct_terms=n_direct,
            reason=f"{n_direct} terms are too wide for a table, or do not fit into {memory:,} bytes",
        )


def compiled_seconds(
    n_rows: int, n_tables: int, rest: Terms, n_background: int | None, weighted: bool
) -> float:
    """Estimate the seconds, on one core, of explaining rows by tables that are built, and the other terms directly."""
    look_ups = n_rows * n_tables * rest.n_outputs * _LOOK_UP
    return float(look_ups + _direct(rest, n_rows, n_background or 0, weighted).sum()) / 1e9


def _direct(terms: Terms, n_rows: int, n_background: int, weighted: bool) -> NDArray[np.float64]:
    words = -(-n_background // 64) * (_DIRECT_WEIGHTED if weighted else 1.0)
    return np.multiply(terms.degrees, float(n_rows) * words * _DIRECT_WORD, dtype=np.float64)


def plan_terms(
    terms: Terms, n_rows: int | None, n_background: int, weighted: bool, memory: int, strategy: str = "auto"
) -> tuple[Plan, NDArray[np.bool_]]:
    """Choose how each term is explained; also return (n_terms,) bool, True for tables.

    ``n_rows`` None means "any number": whatever fits goes into tables. So does ``strategy="tables"``.
    """
    degrees = terms.degrees
    feasible = degrees <= MOST_ATOMS
    # Low-degree terms share blocks, so separate tables would be far too high an upper bound.
    own_bytes = table_bytes(terms)
    need = np.where(degrees <= BLOCK_ATOMS, own_bytes / _TERMS_PER_BLOCK, own_bytes)
    by_size = np.argsort(degrees, kind="stable")
    fits = np.zeros(terms.n_terms, dtype=bool)
    fits[by_size] = np.cumsum(np.where(feasible, need, np.inf)[by_size]) <= memory
    rows = 10**6 if n_rows is None else n_rows
    direct = _direct(terms, rows, n_background, weighted)
    # Building and reading each term's share of its table.
    n_tables = -(-degrees // 8) * terms.n_outputs
    per_block = own_bytes / 8.0 * _BUILD_ENTRY + n_background * _HISTOGRAM + rows * n_tables * _LOOK_UP
    tables = per_block / np.where(degrees <= BLOCK_ATOMS, _TERMS_PER_BLOCK, 1.0)
    worth = fits.copy()
    if strategy == "direct":
        worth[:] = False
    elif n_rows is not None and strategy == "auto":
        worth &= (tables < direct) & (tables[fits].sum() + _CALL < direct[fits].sum())
    in_tables = int(worth.sum())
    if in_tables == terms.n_terms:
        chosen, reason = "tables", "every term fits into a table, and looking up is cheaper than computing"
    elif in_tables == 0:
        chosen = "direct"
        reason = (
            "it was requested"
            if strategy == "direct"
            else (
                "building tables would cost more than it saves for so few rows and background rows"
                if fits.any()
                else f"no term fits into a table (degree <= {MOST_ATOMS} and {memory:,} bytes)"
            )
        )
    else:
        chosen = "tables+direct"
        reason = f"{terms.n_terms - in_tables} terms are too wide for a table, or cheaper without one"
    seconds = float(tables[feasible].sum() + _CALL) / 1e9 if feasible.any() else float("inf")
    plan = Plan(
        chosen,
        reason,
        in_tables,
        terms.n_terms - in_tables,
        int(need[worth].sum()),
        seconds,
        float(direct.sum()) / 1e9,
    )
    return plan, worth
