"""A function as a spectrum, and the SHAP values of many rows.

A small insurer scores people by eight yes/no questions and a region, which takes three more bits, one-hot.
The score is a black box to us: the exact transform asks for its value at all 2^11 rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import fouriershap as fs
from demo_section import Section, in_seconds, timed

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
REGIONS = ("north", "south", "coast")
# The player of each bit: the last three bits are one question.
PLAYERS = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8])


def risk(rows: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the score: a decision rule with interactions, in points."""
    smoker, old, active, urban, night, family, heavy, known = (rows[:, i].astype(float) for i in range(8))
    north, south, coast = (rows[:, i].astype(float) for i in (8, 9, 10))
    score = 20.0 + 14.0 * smoker + 9.0 * old + 6.0 * family + 4.0 * heavy - 5.0 * active
    score += 10.0 * smoker * old + 8.0 * old * family * heavy - 4.0 * active * heavy
    score += 5.0 * night * (1.0 - active) + 3.0 * urban * night - 2.0 * known
    score += 12.0 * smoker * family * night + 6.0 * smoker * old * family * heavy
    return np.asarray(score + 4.0 * north - 3.0 * south + 2.0 * coast * urban)


def random_people(n_people: int, random_state: int) -> NDArray[np.uint8]:
    """Return rows of bits with exactly one region each."""
    rng = np.random.default_rng(random_state)
    shares = (0.25, 0.35, 0.5, 0.6, 0.2, 0.3, 0.35, 0.7)
    answers = (rng.random((n_people, len(shares))) < shares).astype(np.uint8)
    regions = np.eye(3, dtype=np.uint8)[rng.integers(0, 3, size=n_people)]
    return np.concatenate([answers, regions], axis=1)


def _answer(row: NDArray[np.uint8], player: int) -> str:
    bits = np.flatnonzero(player == PLAYERS)
    if len(bits) > 1:
        return REGIONS[int(row[bits].argmax())]
    return "yes" if row[bits[0]] else "no"


def run(folder: Path) -> Section:
    """Compute the spectrum, explain people by it, and write a report page."""
    background, people = random_people(5_000, random_state=0), random_people(200_000, random_state=1)
    spectrum = fs.walsh_hadamard(risk, n_bits=len(PLAYERS))
    spectrum = spectrum.prune(min_amplitude=1e-12)  # rounding errors of zeros
    names = [*FEATURES[:-1], *REGIONS]
    explainer = fs.Explainer(
        spectrum, background, feature_names=names, groups=[FEATURES[player] for player in PLAYERS]
    )
    expected = float(explainer.expected_value)
    everybody, seconds = timed(lambda: explainer.shap_values(people))
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
        f"An insurer's score of eight questions and a region is exactly a sum of {len(spectrum)} of 2,048 characters. "
        f"{len(people):,} people against {len(background):,} took {in_seconds(seconds)}. Average and SHAP values add "
        f"up to the score to {gap:.0e}."
    )
    page = explainer.report(
        people[:2000], folder / "spectrum.html", interactions=3, title="Risk score", unit="points"
    )
    return Section("A function of bits, as a spectrum", text, table, page)
