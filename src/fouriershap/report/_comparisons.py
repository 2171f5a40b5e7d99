"""Answers to questions beyond the row, as a page shows them: intervals, drift, cohorts, sets, sentences of reasons."""

from __future__ import annotations

from dataclasses import replace
from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np

from fouriershap._base.errors import InputError
from fouriershap._base.short import short
from fouriershap._explainers.questions.cohorts import Cohorts
from fouriershap._explainers.questions.drift import Drift
from fouriershap._explainers.questions.letters import read_sentences
from fouriershap._explainers.questions.moments import Floats, Moments, interval
from fouriershap._explainers.questions.orders import Interactions, interactions_of
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine
from fouriershap.report import Comparison, Sets

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_LEVEL = 0.95
_SETS, _SETS_OF_A_SIZE = 30, 10  # of players that are listed
_SET_ROWS = 200  # that they are found on


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


def of_sets(explainer: Explainer, beside: Engine | None, rows: Rows, asked: int | Interactions) -> Sets:
    """The strongest sets of two players and more, up to an order that is given; or an answer about them.

    They are of the margin, the engine ``beside``, where the page explains what is made of it.
    """
    engine, first = explainer._engine, 0
    if isinstance(asked, Interactions):
        _check_names("interactions", asked.players, explainer.player_names)
        found, which = [asked], f"At most {_SETS} sets are listed."
    else:
        some = replace(rows, codes=rows.codes[:_SET_ROWS])
        engine, first = (engine, 0) if beside is None else (beside, engine.n_outputs)
        sizes = range(2, min(asked, len(explainer.player_names)) + 1)
        found = [
            interactions_of(explainer, engine, some, asked, "k-SII", _SETS_OF_A_SIZE, least)
            for least in sizes
        ]
        larger = "".join(
            f", and the {_SETS_OF_A_SIZE} strongest of {least} features or more" for least in sizes[1:]
        )
        which = f"Listed are the {_SETS_OF_A_SIZE} strongest{larger}."
    columns: dict[tuple[int, ...], Floats] = {}
    for one in found:
        values = one.values.reshape(len(one.values), len(one), len(one.outputs))
        columns |= {players: values[:, k] for k, players in enumerate(one.positions) if len(players) > 1}
    order = sorted(columns, key=lambda players: -np.abs(columns[players]).mean())[:_SETS]
    if not order:
        none = np.empty((0, engine.n_outputs))
        return Sets(["No features act together in these rows."], (), none, none, first)
    values = np.stack([columns[players] for players in order], axis=1)
    words = [
        f"Mean size of the {found[0].index} values of sets of up to {found[0].order} features over {len(values):,} "
        f"rows: what they bring together, beyond what fewer of them do. {which}"
    ]
    return Sets(words, tuple(order), np.abs(values).mean(axis=0), values.mean(axis=0), first)


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
