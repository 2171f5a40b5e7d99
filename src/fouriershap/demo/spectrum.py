"""A function as a spectrum, the SHAP values of a few rows, and a picture.

A small insurer scores people by eight yes/no questions and a region, which takes three more bits, one-hot.
The score is a black box to us: the exact transform asks for its value at all 2^11 rows.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fouriershap as fs
from fouriershap.demo._draw import NEGATIVE, panels, swarm, title, waterfall

FEATURES = (
    "smoker",
    "over 50",
    "exercises",
    "urban",
    "night shift",
    "family history",
    "high BMI",
    "insured before",
    "region",
)
# Bit -> player: the last three bits are one question.
PLAYERS = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8])


def risk(rows: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The score: a decision rule with interactions, in points."""
    smoker, old, active, urban, night, family, heavy, known = (rows[:, i].astype(float) for i in range(8))
    north, south, coast = (rows[:, i].astype(float) for i in (8, 9, 10))
    score = 20.0 + 14.0 * smoker + 9.0 * old + 6.0 * family + 4.0 * heavy - 5.0 * active
    score += 10.0 * smoker * old + 8.0 * old * family * heavy - 4.0 * active * heavy
    score += 5.0 * night * (1.0 - active) + 3.0 * urban * night - 2.0 * known
    score += 12.0 * smoker * family * night + 6.0 * smoker * old * family * heavy
    return np.asarray(score + 4.0 * north - 3.0 * south + 2.0 * coast * urban)


def random_people(n_people: int, random_state: int) -> NDArray[np.uint8]:
    """Rows of bits; exactly one region each."""
    rng = np.random.default_rng(random_state)
    shares = (0.25, 0.35, 0.5, 0.6, 0.2, 0.3, 0.35, 0.7)
    answers = (rng.random((n_people, len(shares))) < shares).astype(np.uint8)
    regions = np.eye(3, dtype=np.uint8)[rng.integers(0, 3, size=n_people)]
    return np.concatenate([answers, regions], axis=1)


def print_spectrum(spectrum: fs.Spectrum) -> None:
    """The degree profile as bars."""
    print(f"{spectrum!r}: the score, exactly, as a sum of characters\n")
    profile = spectrum.degree_profile()
    share = profile[1:] / profile[1:].sum()
    counts = np.bincount(spectrum.degrees, minlength=len(profile))[1:]
    print("degree  terms  share of the variance")
    for degree, (count, part) in enumerate(zip(counts, share, strict=True), start=1):
        print(f"{degree:6d}  {count:5d}  {'█' * round(40 * part):<40} {100 * part:7.3f} %")
    print()


def print_explanations(
    rows: NDArray[np.uint8], phi: NDArray[np.float64], scores: NDArray[np.float64], expected: float
) -> None:
    """A column per person: who they are, what every answer did to their score."""
    width = max(map(len, FEATURES))
    print(f"{'':{width}}  " + "  ".join(f"person {i + 1:>2}" for i in range(len(rows))))
    for j in np.argsort(-np.abs(phi).sum(axis=0)):
        cells = (
            f"{_answer(row, int(j)):>3} {value:+5.1f}" for row, value in zip(rows, phi[:, j], strict=True)
        )
        print(f"{FEATURES[j]:{width}}  " + "  ".join(cells))
    print(f"{'average':{width}}  " + "  ".join(f"{expected:9.1f}" for _ in rows))
    print(f"{'score':{width}}  " + "  ".join(f"{score:9.1f}" for score in scores))
    gap = np.abs(phi.sum(axis=1) + expected - scores).max()
    print(f"\naverage + SHAP values = score, up to {gap:.0e}")


def _answer(row: NDArray[np.uint8], player: int) -> str:
    bits = np.flatnonzero(player == PLAYERS)
    if len(bits) > 1:
        return ("N", "S", "C")[int(row[bits].argmax())]
    return "yes" if row[bits[0]] else "no"


def print_speed(tables: fs.Tables, rows: NDArray[np.uint8], n_background: int) -> None:
    """Explain everybody, and tell how long it took."""
    begin = time.perf_counter()
    tables.shap_values(rows)
    seconds = time.perf_counter() - begin
    print(
        f"{tables!r}\n{len(rows):,} people against {n_background:,} explained in {seconds:.2f} s: "
        f"{len(rows) / seconds:,.0f} a second"
    )


def draw(
    spectrum: fs.Spectrum,
    row: NDArray[np.uint8],
    phi: NDArray[np.float64],
    everybody: NDArray[np.float64],
    expected: float,
    path: Path,
) -> None:
    """Three panels: the spectrum by degree, one person from the average to the score, everybody."""
    with panels(path, widths=(1, 1.35, 1.35)) as axes:
        _draw_profile(axes[0], spectrum)
        names = [f"{name}: {_answer(row, j)}" for j, name in enumerate(FEATURES)]
        waterfall(axes[1], names, phi, expected)
        axes[1].set_xlabel("points")
        score = expected + phi.sum()
        title(axes[1], "One person", f"from the average {expected:.1f} to the score {score:.1f}")
        swarm(axes[2], FEATURES, everybody)
        axes[2].set_xlabel("SHAP value, points")
        title(axes[2], "Everybody", f"{len(everybody):,} people; region is one player, three bits")


def _draw_profile(axis: Any, spectrum: fs.Spectrum) -> None:
    share = 100 * spectrum.degree_profile()[1:] / spectrum.variance
    degrees = np.arange(1, len(share) + 1)
    axis.bar(degrees, share, color=NEGATIVE, width=0.65)
    for degree, part in zip(degrees, share, strict=True):
        label = f"{part:.1f}" if part >= 0.1 else "< 0.1"
        axis.text(degree, part + 1.2, label, ha="center", fontsize=9.5)
    axis.set(xlabel="degree (bits in a term)", ylabel="share of the variance, %", xticks=degrees)
    axis.set_ylim(0, 1.12 * share.max())
    subtitle = f"{len(spectrum)} of {1 << spectrum.n_bits:,} characters"
    title(axis, "The score is a low-degree function", subtitle)


def run(folder: Path) -> Path:
    """Show the spectrum and what it explains; returns the picture's path."""
    background, people = random_people(5_000, random_state=0), random_people(200_000, random_state=1)
    spectrum = fs.walsh_hadamard(risk, n_bits=len(PLAYERS))
    spectrum = spectrum.prune(min_amplitude=1e-12)  # what is left of zeros after rounding
    print_spectrum(spectrum)
    tables = fs.compile(spectrum, background, players=PLAYERS)
    expected = float(tables.expected_value)
    chosen = people[np.argsort(-risk(people[:2000]))[[0, 400, 1000, 1600]]]
    phi = tables.shap_values(chosen)
    print_explanations(chosen, phi, risk(chosen), expected)
    print_speed(tables, people, len(background))
    path = folder / "spectrum.png"
    draw(spectrum, chosen[1], phi[1], tables.shap_values(people[:1500]), expected, path)
    return path
