"""The sparse Walsh-Hadamard transforms: how often is the function found, from how many queries, how fast?

Random functions of degree 1 to 5 with coefficients of size 0.1 to 1 (or 1, "ties"), one per seed. Without noise
and with noise of 1 % of the spread a run succeeds if exactly the true terms are found (a constant is no term); with
10 % if R^2 >= 0.9995. Queries include the certificate. Writes results/sparse_wht.json and .md, case by case.

    python benchmarks/sparse_wht.py [--first-seed 10000] [--share 1.0]
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine, print_table, seconds
from _pages import markdown_table
from fouriershap._fourier.sparse_transform import Search, recover

NEEDED_R2 = 0.9995
HEADER = ("function", "found", "queries: median", "most", "CPU: median", "least R^2")


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    n_bits: int
    n_terms: int
    n_seeds: int
    known: bool = True
    noise: float = 0.0
    ties: bool = False
    algorithm: str = "coded"
    max_degree: int | None = None
    budget: int | None = None

    @property
    def label(self) -> str:
        parts = [f"{self.algorithm}, n {self.n_bits}, k {self.n_terms}{'' if self.known else ' unknown'}"]
        parts += [f"noise {self.noise:.0%}"] if self.noise else []
        parts += ["ties"] if self.ties else []
        parts += [f"degree <= {self.max_degree}"] if self.max_degree else []
        parts += [f"budget {self.budget:,}"] if self.budget else []
        return ", ".join(parts)


CASES = (
    Case(40, 100, 100),
    Case(40, 100, 50, known=False),
    Case(236, 100, 20),
    Case(236, 100, 20, known=False),
    Case(40, 1000, 10),
    Case(40, 1000, 10, known=False),
    Case(40, 100, 30, ties=True),
    Case(40, 100, 30, ties=True, known=False),
    Case(40, 100, 30, noise=0.01),
    Case(40, 100, 30, noise=0.01, known=False),
    Case(40, 100, 30, noise=0.1, budget=6000),
    Case(40, 100, 30, noise=0.1, budget=6000, known=False),
    Case(40, 100, 20, algorithm="robust"),
    Case(40, 100, 20, algorithm="robust", max_degree=5),
    Case(236, 100, 5, algorithm="robust", max_degree=5),
    Case(40, 1000, 3, algorithm="robust", max_degree=5),
    Case(40, 100, 20, algorithm="robust", noise=0.1, max_degree=5),
)


def random_spectrum(seed: int, case: Case) -> fs.Spectrum:
    """Distinct terms of random degree 1 to 5."""
    rng = np.random.default_rng(seed)
    terms: set[tuple[int, ...]] = set()
    while len(terms) < case.n_terms:
        bits = rng.choice(case.n_bits, int(rng.integers(1, 6)), replace=False)
        terms.add(tuple(sorted(bits.tolist())))
    frequencies = np.zeros((case.n_terms, case.n_bits), dtype=bool)
    for line, chosen in zip(frequencies, sorted(terms), strict=True):
        line[list(chosen)] = True
    size = np.ones(case.n_terms) if case.ties else rng.uniform(0.1, 1, case.n_terms)
    return fs.Spectrum(frequencies, size * rng.choice([-1.0, 1.0], case.n_terms))


def run(case: Case, seed: int) -> dict[str, Any]:
    """One function: found or not, at what cost."""
    truth = random_spectrum(seed, case)
    noise_rng = np.random.default_rng(seed + 1)
    deviation = case.noise * np.sqrt(truth.variance)
    spent = 0.0

    def h(rows: np.ndarray) -> np.ndarray:
        nonlocal spent
        begin = time.process_time()
        answers = truth(rows, n_jobs=1) + deviation * noise_rng.normal(size=len(rows))
        spent += time.process_time() - begin
        return answers

    begin = time.process_time()
    search = Search(
        h,
        case.n_bits,
        case.n_terms if case.known else None,
        max_degree=case.max_degree,
        budget=case.budget,
        algorithm=case.algorithm,
        random_state=seed + 2,
    )
    recovery = recover(search)
    elapsed = time.process_time() - begin - spent
    found = recovery.spectrum
    r2 = 1 - (truth - found).energy / truth.variance
    same = np.array_equal(truth.frequencies, found.frequencies[found.degrees > 0])
    exact = same and (case.noise > 0 or r2 > 1 - 1e-12)
    success = r2 >= NEEDED_R2 if case.noise > 0.05 else exact
    return {"success": bool(success), "r2": r2, "queries": recovery.n_queries, "cpu_seconds": elapsed}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    queries = [one["queries"] for one in runs]
    return {
        "runs": len(runs),
        "successes": sum(one["success"] for one in runs),
        "queries_median": int(np.median(queries)),
        "queries_most": max(queries),
        "cpu_seconds_median": float(np.median([one["cpu_seconds"] for one in runs])),
        "cpu_seconds_least": min(one["cpu_seconds"] for one in runs),
        "r2_least": min(one["r2"] for one in runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first-seed", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=1.0, help="of the seeds; below 1 nothing is written")
    options = parser.parse_args()
    warnings.simplefilter("ignore", fs.FidelityWarning)
    print_machine()
    if options.share < 1:
        for case in CASES:
            print_table(HEADER, [line(case, tried(case, options.first_seed, options.share))])
        return
    cells = Cells(RESULTS / "sparse_wht.json", (), wanted=[case.label for case in CASES])
    cells.page = lambda: page(cells)
    for case in CASES:
        found = cells.measure(case.label, lambda case=case: tried(case, options.first_seed, 1.0))
        print_table(HEADER, [line(case, found)])


def page(cells: Cells) -> str:
    """A line for each case that was tried."""
    lines = [line(case, cells.found[case.label]) for case in CASES if case.label in cells.found]
    return "\n".join(["# Sparse transforms", "", cells.told(), "", markdown_table(HEADER, lines), ""])


def tried(case: Case, first_seed: int, share: float) -> dict[str, Any]:
    """The functions of a case, one per seed, summed up."""
    n_seeds = max(1, round(share * case.n_seeds))
    found = summary([run(case, first_seed + 10 * seed) for seed in range(n_seeds)])
    return {"case": asdict(case), "first_seed": first_seed} | found


def line(case: Case, found: dict[str, Any]) -> tuple[str, ...]:
    return (
        case.label,
        f"{found['successes']} of {found['runs']}",
        f"{found['queries_median']:,}",
        f"{found['queries_most']:,}",
        seconds(found["cpu_seconds_median"]),
        f"{found['r2_least']:.6f}",
    )


if __name__ == "__main__":
    main()
