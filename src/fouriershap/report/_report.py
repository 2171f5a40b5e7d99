"""`write_report`: collect what the page shows, and write it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import check_int, check_number
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.messages import error_text, truncated_repr
from fouriershap._rows.frames import Rows
from fouriershap._rows.inputs import InputField
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.interactions import interaction_matrices, pair_interactions
from fouriershap.analysis.explainer import ExplainerLike, check_engine, encode_rows, estimates
from fouriershap.analysis.groups import split_columns
from fouriershap.analysis.interactions import Interactions
from fouriershap.report._comparisons import (
    find_sets,
    importance_intervals,
    show_cohorts,
    show_drift,
    split_sentences,
)
from fouriershap.report._content import Content, Floats, Output, PairSizes, Sets
from fouriershap.report._metrics import measure
from fouriershap.report._subject import (
    explain_meaning,
    find_versions,
    kind_of,
    list_facts,
    make_profile,
    make_what_if,
    page_link,
    split_facts,
)
from fouriershap.report._write import write_content

_MOST_HEAT, _HEAT_ROWS = 30, 200  # players and rows of the interaction heat map
_STRONGEST = 20  # players whose pairs are shown if there are more


@check_arguments
def write_report(
    explainer: ExplainerLike,
    X: Any,
    path: str | os.PathLike[str],
    y: Any = None,
    *,
    ids: Any = None,
    drift: Any = None,
    cohorts: Any = None,
    interactions: Any = None,
    text: Any = None,
    unit: str | None = None,
    facts: Mapping[str, Any] | None = None,
    max_rows: int | None = None,
    title: str | None = None,
    max_bytes: int = 15_000_000,
) -> Path:
    """Write a page that shows the SHAP values of rows, and computes new ones when its reader changes a row.

    It is one HTML file that opens from disk and fetches nothing. Needs ``pip install 'fouriershap[report]'``.

    Parameters
    ----------
    X : array or data frame, shape (n_rows, n_columns)
        Rows to explain; importance is over all of them.
    path : path of the file
    y : array_like or str, optional
        Observed numbers or classes, or the column of X that holds them. The page then shows how well the model
        predicts these rows.
    ids : array_like or str, optional
        Names of the rows, or the column of X that holds them; by default the index of a pandas frame.
    drift : array or data frame, or Drift, optional
        Other rows: the page shows why the mean prediction changed from the background to them.
    cohorts : array_like or str, True, or Cohorts, optional
        Groups of rows to compare: an entry per row, a column of X, or True for a tree that finds them.
    interactions : int or Interactions, optional
        Most features of a set, 2 or more: the page lists the sets that interact most strongly.
    text : mapping or str, optional
        The sentences of reasons, one for each direction, as in `reasons` with ``direction="both"``.
    unit : str, optional
        Unit of the predictions, such as "€". Of a classifier, what is explained: "log-odds of default".
    facts : mapping, optional
        What readers should know: ``{"Owner": "risk team", "Limits": ..., "Approved by": ...}``. The names "Model",
        "Version", "Owner", "Data" and "Limits" make a block of their own at the top.
    max_rows : int, optional
        Most rows that the page holds, a random sample of X; by default 10,000.
    title : str, optional
    max_bytes : int
        Largest size of the file. If it is too small, the page holds fewer rows and, finally, no what-if part.

    Returns
    -------
    pathlib.Path
        The file that was written.

    Warns
    -----
    ReportWarning
        If the page lacks its what-if part or interactions, with the reason; the page says so as well.
    """
    check_number("max_rows", 1 if max_rows is None else max_rows, 1)
    check_number("max_bytes", max_bytes, 1)
    if interactions is not None and not isinstance(interactions, Interactions):
        check_int("interactions", interactions, 2, ", the most features of a set, or Interactions")
    for name, label in (("title", title), ("unit", unit)):
        if label is not None and not isinstance(label, str):
            raise InputError(f"{name} is {truncated_repr(label)}; give a text, or None.")
    if facts is not None and not isinstance(facts, Mapping):
        raise InputError(f"facts is {truncated_repr(facts)}; give a mapping from names to texts.")
    engine = check_engine(explainer, "a report")
    sentences = split_sentences(text, explainer.player_names)
    given = {"y": y, "ids": ids, "cohorts": cohorts}
    features, columns = split_columns(X, given, explainer.input_names)
    rows = encode_rows(explainer, features)
    row_names = _name_rows(X, columns["ids"], len(rows))
    raw, inputs = engine.raw, explainer.inputs.fields(rows)
    (values, errors), expected = estimates(explainer, rows.codes), engine.expected
    errors = errors if errors is not None and errors.any() else None
    link = engine.output.display_link
    is_of_response = link is not None and not link.gives_probability  # the raw output has no such unit
    outputs, n_explained = _name_outputs(explainer, None if is_of_response else unit), values.shape[2]
    actual = None
    if columns["y"] is not None:
        actual = measure(explainer, columns["y"], expected + values.sum(axis=1))
    if raw is not engine:
        both = [values, raw.shap_values(rows.codes, explainer.n_jobs)]
        values, expected = np.concatenate(both, 2), np.append(expected, raw.expected)
        errors = None if errors is None else np.concatenate([errors, np.zeros_like(both[1])], 2)
    wrong = expected[~np.isfinite(expected)]
    if len(wrong):
        raise InputError(f"the expected value of the explainer is {wrong[0]}; a page shows finite numbers.")
    versions = find_versions(explainer)
    record, more = split_facts(facts)
    has_cohorts = cohorts is not None and cohorts is not False
    content = Content(
        title=title or f"{kind_of(explainer)}, explained",
        record=record,
        facts=list_facts(explainer, versions, more),
        meaning=explain_meaning(explainer),
        inputs=inputs,
        players=_name_players(explainer.player_names, inputs),
        outputs=outputs,
        expected=expected,
        values=values,
        errors=errors,
        row_names=row_names,
        what_if=make_what_if(explainer, rows, len(inputs), max_bytes),
        link=page_link(explainer),
        response_unit=(unit or "") if is_of_response else "",
        profile=make_profile(raw.info),
        interactions=_pair_sizes(explainer, raw, rows.codes, values),
        first_raw=n_explained if raw is not engine else 0,
        # The second of two classes is the positive one.
        output=1 if n_explained == 2 and explainer.output_names is not None else 0,
        importance_ends=importance_intervals(values),
        actual=actual,
        drift=None if drift is None else show_drift(explainer, drift),
        cohorts=show_cohorts(explainer.offline(X), features, columns["cohorts"], cohorts)
        if has_cohorts
        else None,
        sets=None if interactions is None else _find_sets(explainer, X, features, rows, interactions),
        sentences=sentences,
        versions=versions,
    )
    return write_content(content, path, max_rows=max_rows, max_bytes=max_bytes)


def _find_sets(explainer: ExplainerLike, X: Any, features: Any, rows: Rows, wanted: Any) -> Sets:
    """Return the sets that interact, of a black box those of a representation."""
    other = explainer.offline(X)
    return find_sets(other, (rows if other is explainer else encode_rows(other, features)).codes, wanted)


def _name_outputs(explainer: ExplainerLike, unit: str | None) -> list[Output]:
    """Return the names of the outputs, raw ones last."""
    engine, names, n = explainer.engine, explainer.output_names, explainer.engine.n_outputs

    def name(own: str, given: str | None) -> list[Output]:
        found = []
        for k in range(n):
            of = names[k] if names is not None else f"output {k}" * (n > 1)
            if given is not None and own:
                label = given if n == 1 else f"{given} of {of}"
            elif names is not None or own:
                unit = own or "output" * (names == explainer.class_labels)
                label = f"{unit} of {of}" if of and unit else of or own
            else:
                label = of or "prediction"
            is_named = own or names is not None
            found.append(Output(label, label if is_named else given or ""))
        return found

    raw = [] if engine.raw is engine else name(engine.raw.output.unit or "raw output", None)
    return name(engine.output.unit, unit) + raw


def _name_players(names: tuple[str, ...], inputs: list[InputField]) -> list[str]:
    """Return the names of the players; a player with a single input has the name of the input."""
    owned: dict[int, list[str]] = {}
    for entry in inputs:
        owned.setdefault(entry.player, []).append(entry.name)
    return [owned[p][0] if len(owned.get(p, ())) == 1 else name for p, name in enumerate(names)]


def _name_rows(X: Any, ids: Any, n_rows: int) -> list[str] | None:
    """Return the ids, or the labels of a frame's index unless they are just positions."""
    if ids is not None:
        found = np.asarray(ids)
        if found.shape != (n_rows,):
            raise InputError(f"ids has shape {found.shape}; give one entry per row of X, ({n_rows},).")
        return [str(label) for label in found.tolist()]
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex" or len(index) != n_rows:
        return None
    return [str(label) for label in index]


def _pair_sizes(
    explainer: ExplainerLike, engine: Engine, codes: NDArray[Any], values: Floats
) -> PairSizes | str:
    """Return mean absolute pair interactions of the first rows; of many players, those of the strongest."""
    names = explainer.player_names
    if len(names) < 2:
        return ""
    players, pairs = np.arange(len(names)), None
    if len(names) > _MOST_HEAT:
        strength = np.abs(values).mean(axis=0).sum(axis=1)
        players = np.sort(np.argsort(-strength, kind="stable")[:_STRONGEST])
        pairs = [(int(i), int(j)) for k, i in enumerate(players) for j in players[k + 1 :]]
    try:
        if pairs is None:
            found = interaction_matrices(engine, codes[:_HEAT_ROWS], explainer.n_jobs)
        else:
            found = pair_interactions(engine, codes[:_HEAT_ROWS], np.array(pairs), explainer.n_jobs)
    except (CapacityError, InputError) as error:  # too large, or not available for this explainer
        return error_text(error)
    mean = np.abs(found).mean(axis=0)
    if pairs is None:
        return PairSizes(players, np.ascontiguousarray(np.moveaxis(mean, -1, 0)))
    sizes = np.full((mean.shape[1], len(players), len(players)), np.nan)
    upper = np.triu_indices(len(players), 1)
    sizes[:, upper[0], upper[1]] = sizes[:, upper[1], upper[0]] = mean.T
    return PairSizes(players, sizes)
