"""A function as a spectrum, the SHAP values of a few rows, and a picture.

A small insurer scores people by eight yes/no questions and a region, which takes three more bits, one-hot.
The score is a black box to us: the exact transform asks for its value at all 2^11 rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fouriershap as fs
from fouriershap.demo._draw import NEGATIVE, panels, swarm, title, waterfall
from fouriershap.demo._page import Section, in_seconds
from fouriershap.demo.trees import timed

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


def _answer(row: NDArray[np.uint8], player: int) -> str:
    bits = np.flatnonzero(player == PLAYERS)
    if len(bits) > 1:
        return ("N", "S", "C")[int(row[bits].argmax())]
    return "yes" if row[bits[0]] else "no"


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


def run(folder: Path) -> Section:
    """Show what the spectrum explains."""
    background, people = random_people(5_000, random_state=0), random_people(200_000, random_state=1)
    spectrum = fs.walsh_hadamard(risk, n_bits=len(PLAYERS))
    spectrum = spectrum.prune(min_amplitude=1e-12)  # what is left of zeros after rounding
    tables = fs.spectra.compile(spectrum, background, players=PLAYERS)
    expected = float(tables.expected_value)
    everybody, seconds = timed(lambda: tables.shap_values(people))
    chosen = np.argsort(-risk(people[:2000]))[[0, 400, 1000, 1600]]
    phi, scores = everybody[chosen], risk(people[chosen])
    gap = np.abs(phi.sum(axis=1) + expected - scores).max()
    table = [("", *(f"person {i + 1}" for i in range(len(chosen))))]
    for j in np.argsort(-np.abs(phi).sum(axis=0)):
        cells = zip(people[chosen], phi[:, j], strict=True)
        table.append((FEATURES[j], *(f"{_answer(row, int(j))} {value:+6.1f}" for row, value in cells)))
    table.append(("average", *[f"{expected:.1f}"] * len(chosen)))
    table.append(("score", *(f"{score:.1f}" for score in scores)))
    text = (
        f"An insurer's score of eight questions and a region, exactly as a sum of {len(spectrum)} characters. "
        f"{len(people):,} people against {len(background):,} explained in {in_seconds(seconds)}. Average and SHAP "
        f"values add up to the score to {gap:.0e}."
    )
    picture = folder / "spectrum.png"
    draw(spectrum, people[chosen[1]], phi[1], everybody[:1500], expected, picture)
    return Section("A function on bits, as a spectrum", text, table, picture)
