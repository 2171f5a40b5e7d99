"""The demo: a function as a spectrum, the SHAP values of a few rows, and a picture (`make demo`).

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

FOLDER = Path("demo")
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
_INK, _POSITIVE, _NEGATIVE, _QUIET = "#1f2933", "#d1495b", "#2e86ab", "#9aa5b1"


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
    import matplotlib.pyplot as plt

    style = {"font.size": 10, "axes.edgecolor": _QUIET, "text.color": _INK, "axes.labelcolor": _INK}
    style |= {"xtick.color": _INK, "ytick.color": _INK, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(1, 3, figsize=(15, 5), layout="constrained", width_ratios=(1, 1.35, 1.35))
        _draw_profile(axes[0], spectrum)
        _draw_person(axes[1], row, phi, expected)
        _draw_everybody(axes[2], everybody)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _title(axis: Any, title: str, subtitle: str) -> None:
    axis.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=26)
    axis.text(0, 1.025, subtitle, transform=axis.transAxes, fontsize=9.5, color="#616e7c")


def _draw_profile(axis: Any, spectrum: fs.Spectrum) -> None:
    share = 100 * spectrum.degree_profile()[1:] / spectrum.variance
    degrees = np.arange(1, len(share) + 1)
    axis.bar(degrees, share, color=_NEGATIVE, width=0.65)
    for degree, part in zip(degrees, share, strict=True):
        label = f"{part:.1f}" if part >= 0.1 else "< 0.1"
        axis.text(degree, part + 1.2, label, ha="center", fontsize=9.5)
    axis.set(xlabel="degree (bits in a term)", ylabel="share of the variance, %", xticks=degrees)
    axis.set_ylim(0, 1.12 * share.max())
    _title(
        axis, "The score is a low-degree function", f"{len(spectrum)} of {1 << spectrum.n_bits:,} characters"
    )


def _draw_person(axis: Any, row: NDArray[np.uint8], phi: NDArray[np.float64], expected: float) -> None:
    order = np.argsort(np.abs(phi))
    ends = expected + np.cumsum(phi[order])
    begins = np.concatenate([[expected], ends[:-1]])
    y = np.arange(len(order))
    colours = [_POSITIVE if value > 0 else _NEGATIVE for value in phi[order]]
    axis.barh(y, phi[order], left=begins, color=colours, height=0.62)
    for position, end in enumerate(ends[:-1]):
        axis.plot([end, end], [position + 0.31, position + 0.69], color=_QUIET, lw=0.8)
    lowest, highest = min(begins.min(), ends.min()), max(begins.max(), ends.max())
    reach = highest - lowest
    axis.set_xlim(lowest - 0.05 * reach, highest + 0.14 * reach)
    for i, value in zip(y, phi[order], strict=True):
        right = max(begins[i], ends[i])
        axis.text(
            right + 0.015 * reach,
            i,
            f"{value:+.1f}".replace("-", "−"),
            va="center",
            fontsize=9.5,
            color=colours[i],
        )
    names = [f"{FEATURES[j]}: {_answer(row, int(j))}" for j in order]
    axis.set_yticks(y, names)
    axis.axvline(expected, color=_QUIET, lw=0.8, ls=":")
    axis.set_xlabel("points")
    _title(axis, "One person", f"from the average {expected:.1f} to the score {ends[-1]:.1f}")


def _draw_everybody(axis: Any, phi: NDArray[np.float64]) -> None:
    order = np.argsort(np.abs(phi).mean(axis=0))
    rng = np.random.default_rng(0)
    for i, j in enumerate(order):
        values = phi[:, j]
        jitter = rng.uniform(-0.28, 0.28, size=len(values))
        colours = np.where(values > 0, _POSITIVE, _NEGATIVE)
        axis.scatter(values, i + jitter, s=5, c=colours, alpha=0.45, linewidths=0)
    axis.axvline(0, color=_QUIET, lw=0.8)
    axis.set_yticks(np.arange(len(order)), [FEATURES[j] for j in order])
    axis.set_xlabel("SHAP value, points")
    _title(axis, "Everybody", f"{len(phi):,} people; region is one player, three bits")


def main() -> None:
    """Run the demo; the picture goes to demo/spectrum.png."""
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
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "spectrum.png"
    draw(spectrum, chosen[1], phi[1], tables.shap_values(people[:1500]), expected, path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
