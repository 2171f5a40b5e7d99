"""Results of analyses as the page shows them: intervals, drift, cohorts, sets, sentences of reasons."""

from __future__ import annotations

from dataclasses import replace
from string import Formatter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap.analysis.cohorts import Cohorts, cohorts, with_column
from fouriershap.analysis.drift import Drift, drift
from fouriershap.analysis.explainer import ExplainerLike
from fouriershap.analysis.interactions import Interactions, interactions_of
from fouriershap.analysis.moments import Floats, Moments, interval
from fouriershap.analysis.reasons import read_sentences
from fouriershap.report._content import Comparison, Sets

_LEVEL = 0.95
_SETS, _SETS_OF_A_SIZE = 30, 10  # sets of players that are listed
_SET_ROWS = 200  # rows that they are found on


def importance_intervals(values: Floats) -> tuple[Floats, Floats] | None:
    """Return the ends (n_players, n_outputs) of the intervals of mean absolute values; None for a single row."""
    if len(values) < 2:
        return None
    found = Moments()
    found.add(np.abs(values), None)
    low, high = interval(found.mean, [found.error()], _LEVEL)
    return np.maximum(low, 0.0), high


def show_drift(explainer: ExplainerLike, given: Any) -> Comparison:
    """Return the change of the mean prediction to other rows: ``given``, or a result for them."""
    found = given if isinstance(given, Drift) else drift(explainer, given)
    _check_names("drift", found.names, explainer.player_names)
    text = (
        f"From the background to {int(found.n_rows.sum()):,} other rows. The bars are the parts of the features in "
        "the change of the mean prediction; they add up to it."
    )
    return _compare(found, [text], found.before + found.change, found.before)


def show_cohorts(explainer: ExplainerLike, X: Any, given: Any, name: Any) -> Comparison:
    """Return the mean explanations of groups of rows: an entry per row, True to find groups, or a result.

    ``name`` is the name of the column that the entries are from, if it is one.
    """
    found = given
    if not isinstance(given, Cohorts):
        found = cohorts(explainer, X, None if given is True else given)
        found = replace(found, groups=with_column(name, found.groups))
    _check_names("cohorts", found.names, explainer.player_names)
    words = [
        "Mean SHAP values of groups of rows: what moves their mean prediction away from the background's."
    ]
    if given is True:
        words.append(
            "A small tree found the groups on half of the rows; the means are those of the other half."
        )
    base = np.array(explainer.engine.expected, dtype=np.float64)
    return _compare(found, words, found.predictions, base)


def find_sets(explainer: ExplainerLike, codes: NDArray[Any], given: int | Interactions) -> Sets:
    """Return the strongest sets of two players and more, of the raw output: up to an order, or from a result."""
    engine, first = explainer.engine, 0
    if isinstance(given, Interactions):
        _check_names("interactions", given.players, explainer.player_names)
        found, which = [given], f"At most {_SETS} sets are listed."
    else:
        engine, first = engine.raw, 0 if engine.raw is engine else engine.n_outputs
        sizes = range(2, min(given, len(explainer.player_names)) + 1)
        found = [
            interactions_of(explainer, engine, codes[:_SET_ROWS], given, "k-SII", _SETS_OF_A_SIZE, least)
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
        return Sets(["No features interact in these rows."], (), none, none, first)
    values = np.stack([columns[players] for players in order], axis=1)
    words = [
        f"Mean absolute {found[0].index} values of sets of up to {found[0].order} features over {len(values):,} rows: "
        f"what they contribute together, beyond what fewer of them do. {which}"
    ]
    return Sets(words, tuple(order), np.abs(values).mean(axis=0), values.mean(axis=0), first)


def _compare(found: Drift | Cohorts, words: list[str], means: Floats, base: Floats) -> Comparison:
    about = "No intervals were computed."
    if found.level is not None:
        given = "" if found.counts_background else "; the background, which is not available, counts as given"
        about = f"Lines are {100 * found.level:g} % intervals{given}."
    return Comparison(
        words=[*words, about],
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
            f"{argument} is a result with {len(names)} names, such as {truncated_repr(names[-1])}, that are "
            "not the players of "
            "this explainer. Compute it with this explainer, without interactions."
        )


def split_sentences(text: Any, players: tuple[str, ...]) -> list[list[list[tuple[str, str, str]]]] | None:
    """Return the parts of each player's sentences, raising and lowering: (text before a field, field, format)."""
    if text is None:
        return None
    return [list(map(_split, wording)) for wording in read_sentences(text, players, "both")]


def _split(sentence: Any) -> list[tuple[str, str, str]]:
    if not isinstance(sentence, str):
        raise InputError("text is a function, which a page cannot call; give sentences.")
    return [(before, field or "", form or "") for before, field, form, _ in Formatter().parse(sentence)]
