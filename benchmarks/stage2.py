"""Stage 2 on spectra: is the background free, what do tables bring, how few look-ups are needed?

n = 40 bits, 2,000 frequencies of degree 1 to 4. (a) 10,000 rows against 100 and against 100,000 background
rows; (b) 400 rows against 400, by tables and by the closed form; (c) look-ups per row for all pairs and
triples of 16 bits. Results are checked to be equal before anything is timed.

    python benchmarks/stage2.py [--n-jobs 1]     # what is not in results/stage2.json yet
"""

from __future__ import annotations

import argparse
from itertools import combinations
from typing import Any

import numpy as np

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, Timing, print_machine, print_table, seconds, time_interleaved, times

N_BITS, N_TERMS = 40, 2000


def random_spectrum(rng: np.random.Generator) -> fs.Spectrum:
    """Distinct frequencies of degree 1 to 4, as many of each as there are."""
    frequencies: set[tuple[int, ...]] = set()
    while len(frequencies) < N_TERMS:
        degree = int(rng.integers(1, 5))
        frequencies.add(tuple(sorted(rng.choice(N_BITS, size=degree, replace=False).tolist())))
    matrix = np.zeros((N_TERMS, N_BITS), dtype=bool)
    for line, bits in zip(matrix, sorted(frequencies), strict=True):
        line[list(bits)] = True
    return fs.Spectrum(matrix, rng.standard_normal(N_TERMS))


def rows_of_bits(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    return rng.integers(0, 2, size=(n_rows, N_BITS)).astype(np.uint8)


def check_equal(one: np.ndarray, other: np.ndarray, what: str) -> float:
    """The largest difference relative to the largest value; stops the run where it is not rounding."""
    error = float(np.abs(one - other).max() / np.abs(other).max())
    if error > 1e-10:
        raise SystemExit(f"{what}: results differ by {error:.1e} of the largest value; nothing was timed.")
    return error


def background_is_free(h: fs.Spectrum, rng: np.random.Generator, n_jobs: int) -> dict[str, Any]:
    X = rows_of_bits(rng, 10_000)
    few, many = rows_of_bits(rng, 100), rows_of_bits(rng, 100_000)
    tables = {"100": fs.SpectrumExplainer(h, few), "100000": fs.SpectrumExplainer(h, many)}
    check_equal(
        tables["100"].shap_values(X[:20]), fs.spectra.shap_values(h, X[:20], few, strategy="direct"), "a, few"
    )
    check_equal(
        tables["100000"].shap_values(X[:2]),
        fs.spectra.shap_values(h, X[:2], many, strategy="direct"),
        "a, many",
    )
    found = time_interleaved(
        {n: (lambda t=t: t.shap_values(X, n_jobs=n_jobs)) for n, t in tables.items()}, rounds=200
    )
    compiling = time_interleaved(
        {"100": lambda: fs.SpectrumExplainer(h, few), "100000": lambda: fs.SpectrumExplainer(h, many)},
        rounds=5,
    )
    print("(a) 10,000 rows explained, by the size of the background\n")
    print_table(
        ("background rows", "compile", "explain: wall", "CPU", "per row"),
        [
            (
                f"{int(n):,}",
                seconds(compiling[n].wall_seconds),
                *_wall_and_cpu(t),
                seconds(t.wall_seconds / 10_000),
            )
            for n, t in found.items()
        ],
    )
    ratio = times(found["100"], found["100000"])
    print(f"ratio {ratio['wall']:.3f} by wall time, {ratio['cpu']:.3f} by CPU time (target <= 1.15)\n")
    return {"explain": found, "compile": compiling, "ratio": ratio}


def tables_against_direct(h: fs.Spectrum, rng: np.random.Generator, n_jobs: int) -> dict[str, Any]:
    X, background = rows_of_bits(rng, 400), rows_of_bits(rng, 400)
    tables = fs.SpectrumExplainer(h, background)
    direct = fs.spectra.shap_values(h, X, background, strategy="direct")
    error = check_equal(tables.shap_values(X), direct, "b")
    found = time_interleaved(
        {
            "direct": lambda: fs.spectra.shap_values(h, X, background, strategy="direct", n_jobs=n_jobs),
            "tables, compile included": lambda: fs.spectra.shap_values(
                h, X, background, strategy="tables", n_jobs=n_jobs
            ),
            "tables, compiled before": lambda: tables.shap_values(X, n_jobs=n_jobs),
        },
        rounds=30,
    )
    speedups = {name: times(timing, found["direct"]) for name, timing in found.items()}
    print(f"(b) 400 rows against 400 background rows (largest relative difference {error:.0e})\n")
    print_table(
        ("method", "wall", "CPU", "times faster: by wall", "by CPU"),
        [
            (name, *_wall_and_cpu(t), f"{speedups[name]['wall']:,.1f}", f"{speedups[name]['cpu']:,.1f}")
            for name, t in found.items()
        ],
    )
    print("targets: >= 100 times with the tables at hand, >= 10 times with compiling\n")
    return {"timings": found, "times_faster_than_direct": speedups, "largest_relative_difference": error}


def look_ups_per_row(rng: np.random.Generator) -> dict[str, Any]:
    sets = [s for size in (2, 3) for s in combinations(range(16), size)]
    frequencies = np.zeros((len(sets), 16), dtype=bool)
    for line, bits in zip(frequencies, sets, strict=True):
        line[list(bits)] = True
    h = fs.Spectrum(frequencies, rng.standard_normal(len(sets)))
    X, background = (rng.integers(0, 2, size=(200, 16)) for _ in range(2))
    tables = fs.SpectrumExplainer(h, background)
    check_equal(tables.shap_values(X), fs.spectra.shap_values(h, X, background, strategy="direct"), "c")
    fewer = len(sets) / tables.n_tables
    print("(c) look-ups per row: all pairs and triples of 16 bits\n")
    print_table(
        ("", "tables", "memory"),
        [
            ("one table per frequency", str(len(sets)), ""),
            ("block builder", str(tables.n_tables), f"{tables.nbytes / 1e3:,.0f} KB"),
        ],
    )
    print(f"{fewer:.1f} times fewer (target >= 10)\n")
    return {"frequencies": len(sets), "look_ups": tables.n_tables, "times_fewer": fewer}


def _wall_and_cpu(timing: Timing) -> tuple[str, str]:
    return seconds(timing.wall_seconds), seconds(timing.cpu_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--n-jobs", type=int, default=1, help="threads (default 1: one core against one core)"
    )
    n_jobs = parser.parse_args().n_jobs
    print_machine()
    print(f"n_jobs = {n_jobs}; minima of interleaved runs\n")
    h = random_spectrum(np.random.default_rng(0))
    # Each with random numbers of its own, so that any of them can be measured alone.
    work = {
        "background_is_free": lambda: background_is_free(h, np.random.default_rng(1), n_jobs),
        "tables_against_direct": lambda: tables_against_direct(h, np.random.default_rng(2), n_jobs),
        "look_ups_per_row": lambda: look_ups_per_row(np.random.default_rng(3)),
    }
    cells = Cells(RESULTS / "stage2.json", (), where=("results",), wanted=work)
    for name, measure in work.items():
        cells.measure(name, lambda measure=measure: measure() | {"n_jobs": n_jobs})
    print(cells.told())


if __name__ == "__main__":
    main()
