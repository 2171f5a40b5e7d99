"""Answers to questions beyond the row, as a page shows them: intervals, drift, cohorts, sentences of reasons."""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np

from fouriershap._base.errors import InputError
from fouriershap._base.short import short
from fouriershap._explainers.questions.cohorts import Cohorts
from fouriershap._explainers.questions.drift import Drift
from fouriershap._explainers.questions.letters import read_sentences
from fouriershap._explainers.questions.moments import Floats, Moments, interval
from fouriershap.report import Comparison

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_LEVEL = 0.95


def importance_ends(values: Floats) -> tuple[Floats, Floats] | None:
    """Ends of the intervals (n_players, n_outputs) of the mean size of values; None for a single row."""
    if len(values) < 2:
        return None
    found = Moments()
    found.add(np.abs(values), None)
    low, high = interval(found.mean, [found.error()], _LEVEL)
    return np.maximum(low, 0.0), high


def of_drift(explainer: Explainer, asked: Any) -> Comparison:
    """The change of the mean prediction to other rows, which are given, or the answer about them."""
    found = asked if isinstance(asked, Drift) else explainer.drift(asked)
    _check_names("drift", found.names, explainer.player_names)
    words = [
        f"From the background to {int(found.n_rows.sum()):,} other rows. The bars are what each feature brings to the "
        "change of the mean prediction; they add up to it."
    ]
    return _comparison(found, words, found.before + found.change, found.before)


def of_cohorts(explainer: Explainer, X: Any, asked: Any) -> Comparison:
    """Mean explanations of groups of rows; ``asked`` says of each row which, True finds groups, an answer is shown."""
    found = asked
    if not isinstance(asked, Cohorts):
        found = explainer.cohorts(X, None if asked is True else asked)
    _check_names("cohorts", found.names, explainer.player_names)
    words = [
        "Mean SHAP values of groups of rows: what moves the group's mean prediction away from the background's."
    ]
    if asked is True:
        words.append(
            "A small tree found the groups on half of the rows; the means are those of the other half."
        )
    base = np.array(explainer._engine.expected, dtype=np.float64)
    return _comparison(found, words, found.predictions, base)


def _comparison(found: Drift | Cohorts, words: list[str], means: Floats, base: Floats) -> Comparison:
    return Comparison(
        words=[*words, _sureness(found)],
        groups=found.groups,
        n_rows=found.n_rows.tolist(),
        values=found.values,
        low=found.low,
        high=found.high,
        means=means,
        base=base,
    )


def _check_names(argument: str, names: tuple[str, ...], players: tuple[str, ...]) -> None:
    if names != players:
        raise InputError(
            f"{argument} is an answer about {len(names)} things, such as {short(names[-1])}, that are not the "
            "players of this explainer. Ask this explainer, without interactions."
        )


def _sureness(found: Drift | Cohorts) -> str:
    if found.level is None:
        return "No intervals were asked for."
    both = "" if found.counts_background else "; the background, which is not at hand, counts as given"
    return f"Lines are {100 * found.level:g} % intervals{both}."


def make_sentences(text: Any, players: tuple[str, ...]) -> list[list[tuple[str, str, str]]] | None:
    """The sentence of each player's reasons: (text before a field, the field, its format), part by part."""
    if text is None:
        return None
    found = []
    for sentence in read_sentences(text, players):
        if not isinstance(sentence, str):
            raise InputError("text is a function, which a page cannot call; give sentences.")
        parts = Formatter().parse(sentence)
        found.append([(before, field or "", form or "") for before, field, form, _ in parts])
    return found
