"""What the page of `Explainer.report` shows: gathered here, drawn by `fouriershap.report`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_number, check_whole
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.short import reason, short, short_list
from fouriershap._explainers.page_metrics import make_actual
from fouriershap._explainers.page_questions import (
    importance_ends,
    make_sentences,
    of_cohorts,
    of_drift,
    of_sets,
)
from fouriershap._explainers.page_subjects import Subject
from fouriershap._explainers.page_versions import make_facts, make_versions
from fouriershap._explainers.questions.orders import Interactions as Sets
from fouriershap._rows.batch import open_batch
from fouriershap._rows.frames import Rows, as_frame
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.interactions import interaction_values
from fouriershap.report import Content, Input, Interactions, Output, write_report

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_MOST_HEAT, _HEAT_ROWS = 30, 200  # players and rows of the interaction heat map
_STRONGEST = 20  # players whose pairs are shown where there are more than that


@dataclass(frozen=True, eq=False)
class Wishes:
    """What `Explainer.report` was asked for, beside rows and a path."""

    y: Any = None
    ids: Any = None
    drift: Any = None
    cohorts: Any = None
    interactions: Any = None
    text: Any = None
    unit: Any = None
    facts: Any = None
    rows: int | None = None
    title: str | None = None
    max_bytes: int = 15_000_000

    def check(self) -> None:
        """Raise now rather than after the work."""
        check_number("rows", 1 if self.rows is None else self.rows, 1)
        check_number("max_bytes", self.max_bytes, 1)
        if self.interactions is not None and not isinstance(self.interactions, Sets):
            check_whole("interactions", self.interactions, 2, ", the most features of a set, or Interactions")
        for name in ("title", "unit"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):
                raise InputError(f"{name} is {short(given)}; give a text, or None.")
        if self.facts is not None and not isinstance(self.facts, Mapping):
            raise InputError(f"facts is {short(self.facts)}; give a mapping from names to texts.")


def write_page(explainer: Explainer, X: Any, path: str | os.PathLike[str], wishes: Wishes) -> Path:
    """Write the page of an explainer (see `Explainer.report`)."""
    wishes.check()
    index = explainer._engine.index
    if index != "shapley":
        raise InputError(
            f"this explainer has index={short(index)}, whose values do not add up to a prediction, as those of a "
            "report must. Use index='shapley'."
        )
    sentences = make_sentences(wishes.text, explainer.player_names)
    features, extra = _apart(explainer, X, wishes)
    given = explainer._read(features)
    if not len(given):
        raise InputError("X has 0 rows; a page shows some.")
    row_names = _row_names(X, extra["ids"], len(given))
    subject = explainer._subject(given, wishes.max_bytes)
    values, expected = explainer._explain(given, explainer.n_jobs), explainer._engine.expected
    outputs, n_explained = _outputs(explainer, subject, wishes.unit), values.shape[2]
    actual = None
    if extra["y"] is not None:
        actual = make_actual(explainer, extra["y"], expected + values.sum(axis=1), subject.link)
    if subject.beside is not None:
        raw = subject.beside.shap_values(given.codes, explainer.n_jobs)
        values, expected = np.concatenate([values, raw], 2), np.append(expected, subject.beside.expected)
    wrong = expected[~np.isfinite(expected)]
    if len(wrong):
        raise InputError(f"the expected value of the explainer is {wrong[0]}; a page shows finite numbers.")
    content = Content(
        title=wishes.title or f"{subject.kind}, explained",
        facts=make_facts(explainer, subject.facts, wishes.facts),
        meaning=subject.meaning,
        inputs=subject.inputs,
        players=_player_names(explainer.player_names, subject.inputs),
        outputs=outputs,
        expected=expected,
        values=values,
        row_names=row_names,
        what_if=subject.what_if,
        link=subject.link,
        profile=subject.profile,
        interactions=_interactions(explainer, subject.beside or explainer._engine, given, values),
        first_raw=n_explained if subject.beside is not None else 0,
        # Of two classes the second is the positive one.
        output=1 if n_explained == 2 and explainer.output_names is not None else 0,
        importance_ends=importance_ends(values),
        actual=actual,
        drift=None if wishes.drift is None else of_drift(explainer, wishes.drift),
        cohorts=_cohorts(explainer, features, wishes.cohorts, extra["cohorts"]),
        sets=None
        if wishes.interactions is None
        else of_sets(explainer, subject.beside, given, wishes.interactions),
        sentences=sentences,
        versions=make_versions(explainer),
    )
    return write_report(content, path, rows=wishes.rows, max_bytes=wishes.max_bytes)


def _apart(explainer: Explainer, X: Any, wishes: Wishes) -> tuple[Any, dict[str, Any]]:
    """The features of X, and what y, ids and cohorts say of each row: a column of X by name, or what was given."""
    found: dict[str, Any] = {name: getattr(wishes, name) for name in ("y", "ids", "cohorts")}
    named = {argument: name for argument, name in found.items() if isinstance(name, str)}
    if not named:
        return X, found
    frame, known = as_frame(X), explainer.input_names
    for argument, name in named.items():
        if frame is None:
            raise InputError(
                f"{argument} is {short(name)}, but X has no names of columns; give one entry per row."
            )
        if name not in frame.columns:
            raise InputError(
                f"{argument} is {short(name)}, which X has no column of; it has {short_list(frame.columns)}."
            )
        found[argument] = np.asarray(frame[name].to_numpy())
    extra = tuple(dict.fromkeys(name for name in named.values() if known is None or name not in known))
    return open_batch(X, extra, known).features if extra else X, found


def _cohorts(explainer: Explainer, features: Any, asked: Any, by: Any) -> Any:
    if asked is None or asked is False:
        return None
    return of_cohorts(explainer, features, asked if asked is True else by)


def _outputs(explainer: Explainer, subject: Subject, unit: str | None) -> list[Output]:
    """What the outputs are called, those of the margin beside them last."""
    names, n = explainer.output_names, explainer._engine.n_outputs

    def named(own: str, scale: str | None) -> list[Output]:
        found = []
        for k in range(n):
            label = "prediction" if n == 1 else f"output {k}"
            if names is not None:
                label = f"{own or 'output'} of {names[k]}"
            elif own:
                label = own if n == 1 else f"{own} of output {k}"
            is_told = own or names is not None
            found.append(Output(label, scale if scale is not None else label if is_told else ""))
        return found

    raw = [] if subject.beside is None else named(subject.raw_unit or "raw output", None)
    return named(subject.unit, unit) + raw


def _player_names(names: tuple[str, ...], inputs: list[Input]) -> list[str]:
    """Names of the players; of one that owns a single input, the input's, as the rows call it."""
    owned: dict[int, list[str]] = {}
    for entry in inputs:
        owned.setdefault(entry.player, []).append(entry.name)
    return [owned[p][0] if len(owned.get(p, ())) == 1 else name for p, name in enumerate(names)]


def _row_names(X: Any, ids: Any, n_rows: int) -> list[str] | None:
    """The ids, or the labels of a frame's index, where it has one that says more than positions."""
    if ids is not None:
        found = np.asarray(ids)
        if found.shape != (n_rows,):
            raise InputError(f"ids has shape {found.shape}; give one entry per row of X, ({n_rows},).")
        return [str(label) for label in found.tolist()]
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex" or len(index) != n_rows:
        return None
    return [str(label) for label in index]


def _interactions(
    explainer: Explainer, engine: Engine, rows: Rows, values: NDArray[np.float64]
) -> Interactions | str:
    """Mean sizes of the pair interactions of the first rows; of many players, those of the strongest."""
    names, first = explainer.player_names, rows.codes[:_HEAT_ROWS]
    if len(names) < 2:
        return ""
    players, pairs = np.arange(len(names)), None
    if len(names) > _MOST_HEAT:
        strength = np.abs(values).mean(axis=0).sum(axis=1)
        players = np.sort(np.argsort(-strength, kind="stable")[:_STRONGEST])
        pairs = [(int(i), int(j)) for k, i in enumerate(players) for j in players[k + 1 :]]
    try:
        found = np.asarray(interaction_values(engine, first, names, pairs, None, explainer.n_jobs, False))
    except (
        CapacityError,
        InputError,
    ) as error:  # tables of pairs that no memory holds; explainers that have none
        return reason(error)
    mean = np.abs(found).mean(axis=0)
    if pairs is None:
        return Interactions(players, np.ascontiguousarray(np.moveaxis(mean, -1, 0)))
    sizes = np.full((mean.shape[1], len(players), len(players)), np.nan)
    upper = np.triu_indices(len(players), 1)
    sizes[:, upper[0], upper[1]] = sizes[:, upper[1], upper[0]] = mean.T
    return Interactions(players, sizes)
