"""`Reasons`: for each row the few things that raised or lowered its output, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import check_choice, check_int, check_number, find_position
from fouriershap._base.errors import InputError, ReportWarning
from fouriershap._base.messages import error_text, truncated_list, truncated_repr
from fouriershap._base.warn import warn
from fouriershap._rows.frames import Rows
from fouriershap._rows.players import check_groups
from fouriershap._rows.text import text_of
from fouriershap.analysis import plotting
from fouriershap.analysis.explainer import (
    ExplainerLike,
    check_engine,
    estimates,
    output_names,
    with_other_background,
)
from fouriershap.analysis.groups import split_column
from fouriershap.analysis.moments import Floats
from fouriershap.analysis.results import AnalysisResult, check_output, predicted

DIRECTIONS = ("raised", "lowered", "both")
Sentence = str | Callable[..., Any]
Wording = tuple[Sentence, Sentence]  # of a reason that raises the output, and of one that lowers it
_SIDES = ("raises", "lowers")
_PLAIN = "{feature} = {value}"
_SAME = 1e-6  # of a row's largest value: closer ones are ties, since tables are in single precision
_FIELDS = ("feature", "value", "contribution")
_SHOWN = 3


@check_arguments
@dataclass(frozen=True, eq=False, repr=False)
class Reasons(AnalysisResult):
    """Ordered reasons of each row; returned by `Explainer.reasons`. One entry per reason, in the order of the rows.

    Attributes
    ----------
    row : (n,) int64
        Position of the row.
    rank : (n,) int64
        1 for the strongest reason of the row.
    reason, value, text : tuple of str
        Player or group, its value in the row, and the sentence.
    contribution : (n,) float64
        SHAP value; for a group the sum over its players.
    share : (n,) float64
        Share of all contributions of the row in the same direction, listed or not.
    error : (n,) float64 or None
        Standard error of the contribution, where values are estimated; of a group, as if its players had independent
        ones.
    actionable : (n,) bool or None
        Whether the reason is in ``actionable``, if that was given.
    direction : str
    output : str
        What is explained, such as "probability of default".
    ids : tuple or None
        An id per row.
    n_rows : int

    Examples
    --------
    >>> import pandas as pd, fouriershap as fs
    >>> from sklearn.linear_model import LinearRegression
    >>> X = pd.DataFrame({"debt": [1.0, 2.0, 9.0], "income": [4.0, 5.0, 3.0]})
    >>> explainer = fs.Explainer(LinearRegression().fit(X, [0.1, 0.1, 0.9]), X)
    >>> reasons = explainer.reasons(X[2:], text={"debt": "Your debt of {value} is high."})
    >>> reasons.sentences(0)[0]
    'Your debt of 9 is high.'
    """

    row: NDArray[np.int64]
    rank: NDArray[np.int64]
    reason: tuple[str, ...]
    value: tuple[str, ...]
    text: tuple[str, ...]
    contribution: Floats
    share: Floats
    actionable: NDArray[np.bool_] | None
    direction: str
    n_rows: int
    ids: tuple[Any, ...] | None = None
    like: Any = None
    error: Floats | None = None
    output: str = "prediction"
    analysis = "reasons"
    _FACTS = ("direction", "n_rows")
    _BAR = "contribution"
    _IN_ORDER = True

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        lines = [f"Reasons({self.n_rows:,} rows, direction={self.direction!r})"]
        for row in range(min(self.n_rows, _SHOWN)):
            lines.append(f"row {row if self.ids is None else self.ids[row]}:")
            mine = np.flatnonzero(self.row == row)
            errors = ["" if self.error is None else f" ± {self.error[k]:.2g}" for k in mine]
            lines += [
                f"  {self.rank[k]}. {self.text[k]}  ({self.contribution[k]:+.4g}{error})"
                for k, error in zip(mine, errors, strict=True)
            ]
        return "\n".join(lines + ["..."] * (self.n_rows > _SHOWN))

    def sentences(self, row: int) -> list[str]:
        """Return the sentences of a row, the strongest reason first.

        Parameters
        ----------
        row : int
            Position of the row.
        """
        return [self.text[k] for k in self._find(row)]

    def _find(self, row: Any) -> NDArray[np.int64]:
        """Return the positions of the reasons of a row."""
        if check_int("row", row, 0) >= self.n_rows:
            raise InputError(f"row is {row}, but there are {self.n_rows} rows, counted from 0.")
        return np.flatnonzero(self.row == row)

    def table(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"row": self.row}
        if self.ids is not None:
            columns["id"] = [self.ids[k] for k in self.row]
        columns |= {"rank": self.rank, "reason": list(self.reason), "value": list(self.value)}
        columns |= {"text": list(self.text), "contribution": self.contribution, "share": self.share}
        if self.error is not None:
            columns["error"] = self.error
        return columns if self.actionable is None else columns | {"actionable": self.actionable}

    def plot(self, *, row: int = 0, ax: Any = None) -> Any:
        """Plot the reasons of one row as bars (matplotlib).

        Parameters
        ----------
        row : int
            Position of the row.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        mine = self._find(row)
        what = f"what {'changed' if self.direction == 'both' else self.direction} the {self.output}"
        title = f"row {row if self.ids is None else self.ids[row]}: {what}"
        texts = tuple(self.text[k] for k in mine)
        size = self.contribution[mine]
        reach = None if self.error is None else 1.96 * self.error[mine]
        ends = None if reach is None else (size - reach, size + reach)
        return plotting.bars(texts, size, max(len(mine), 1), title, ax, ends)


@check_arguments
def reasons(
    explainer: ExplainerLike,
    X: Any,
    top_k: int = 4,
    *,
    direction: str = "raised",
    cohort: Any = None,
    cohort_weights: ArrayLike | None = None,
    output: int | str | None = None,
    groups: Any = None,
    text: Any = None,
    actionable: Any = None,
    min_contribution: float = 0.0,
    ids: Any = None,
) -> Reasons:
    """List the main reasons of each row, in the caller's wording: what a letter about a decision states.

    Parameters
    ----------
    X : array or data frame, shape (n_rows, n_columns)
    top_k : int
        Most reasons per row; a row has fewer if fewer players contribute in that direction.
    direction : {"raised", "lowered", "both"}
        Which reasons: those that raised the output, those that lowered it, or both by size.
    cohort : array or data frame, optional
        Rows to compare with instead of the background, such as those that were accepted.
    cohort_weights : array_like, optional
        A weight per row of ``cohort``.
    output : int or str, optional
        Output to explain; required if there are several.
    groups : mapping or sequence, optional
        ``{"name of a reason": [players]}``: players that form one reason, with the sum of their values; or the name of
        a reason per player.
    text : mapping, str or callable, optional
        The sentences of each reason, ``{"debt": {"raises": "Your debt of {value} is high.", "lowers": ...}}``, with
        the fields ``{feature}``, ``{value}`` and ``{contribution}``; or functions of these three. A single sentence
        is that of ``direction``; with "both" it must name ``{contribution}``. Else "feature = value".
    actionable : sequence of str, optional
        Reasons that the person concerned could change: the frame then has a column for it.
    min_contribution : float
        Smallest absolute contribution that counts as a reason.
    ids : str or array_like, optional
        A column of X that is not a feature, or an entry per row, to carry along.

    Returns
    -------
    Reasons
        With ``frame()``, ``sentences(row)``, ``plot()`` and ``to_json()``.
    """
    check_choice("direction", direction, DIRECTIONS)
    check_int("top_k", top_k)
    check_number("min_contribution", min_contribution, 0)
    explainer = with_other_background(explainer, cohort, cohort_weights, "cohort")
    check_engine(explainer, "reasons")
    players, outputs = explainer.player_names, output_names(explainer)
    if output is None and len(outputs) > 1:
        raise InputError(
            f"the model has {len(outputs)} outputs; give output=, one of {truncated_list(outputs)}."
        )
    chosen = check_output(0 if output is None else output, outputs)
    features, labels = (X, None) if ids is None else split_column(X, ids, "ids", explainer.input_names)
    rows = explainer.inputs.encode(features)
    if labels is not None and len(labels) != len(rows):
        raise InputError(f"ids has {len(labels)} entries for {len(rows)} rows.")
    owner, names = check_groups(groups, players)
    members = [np.flatnonzero(owner == k).tolist() for k in range(len(names))]
    sentences, can_change = read_sentences(text, names, direction), _find_actionable(actionable, names)
    found = estimates(explainer, rows.codes)
    by_player, spread = found.values[:, :, chosen], None
    if found.errors is not None and found.errors.any():
        squares = found.errors[:, :, chosen] ** 2
        spread = np.sqrt(np.column_stack([squares[:, mine].sum(axis=1) for mine in members]))
    values = np.column_stack([by_player[:, mine].sum(axis=1) for mine in members])
    order, counts = rank_reasons(values, direction, min_contribution)
    counts[:, top_k:] = False
    row, place = np.nonzero(counts)
    entry = order[row, place]
    shown = _show_values(rows, players, members, row, entry)
    contribution, size = values[row, entry], _directed(values, direction)
    return Reasons(
        row=row.astype(np.int64),
        rank=(place + 1).astype(np.int64),
        reason=tuple(names[j] for j in entry),
        value=shown,
        text=tuple(
            _fill_in(sentences[j][int(c < 0)], names[j], v, float(c))
            for j, v, c in zip(entry, shown, contribution, strict=True)
        ),
        contribution=contribution,
        share=size[row, entry] / size.sum(axis=1)[row],
        actionable=None if can_change is None else can_change[entry],
        direction=direction,
        n_rows=len(rows),
        ids=None if labels is None else tuple(labels.tolist()),
        like=X,
        error=None if spread is None else spread[row, entry],
        output=predicted(outputs, chosen),
    )


def _directed(values: Floats, direction: str) -> Floats:
    """Return the size of each value in a direction, 0 if it has the other one."""
    if direction == "both":
        return np.abs(values)
    return np.maximum(values if direction == "raised" else -values, 0.0)


def rank_reasons(
    values: Floats, direction: str, min_contribution: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the order of the reasons of each row, and which of them count: (n_rows, n_reasons) both.

    Values that differ by rounding are ties, and come in the order of the players. Whether they are ties does not depend
    on the other rows.
    """
    size = _directed(values, direction)
    order = np.argsort(-size, axis=1, kind="stable")
    falling = np.take_along_axis(size, order, axis=1)
    noise = _SAME * np.abs(values).max(axis=1, initial=0.0)[:, None]
    run = np.cumsum(np.diff(falling, axis=1, prepend=falling[:, :1]) < -noise, axis=1)
    order = np.take_along_axis(order, np.lexsort((order, run), axis=1), axis=1)
    falling = np.take_along_axis(size, order, axis=1)
    return order, (falling > noise) & (falling >= min_contribution)


def read_sentences(text: Any, names: tuple[str, ...], direction: str) -> list[Wording]:
    """Return the two sentences of each reason, or functions that make them.

    A single sentence belongs to the direction that is listed. If both are, it has to name its contribution.
    """
    if text is None:
        return [(_PLAIN, _PLAIN)] * len(names)
    if isinstance(text, str) or callable(text):
        text = dict.fromkeys(names, text)
    if not isinstance(text, Mapping):
        raise InputError(
            f"text is {truncated_repr(text)}; give a mapping from reasons to sentences, a sentence, or a function."
        )
    unknown = [name for name in text if name not in names]
    if unknown:
        raise InputError(
            f"text names {truncated_repr(unknown[0])}, which is not a reason; the reasons are {truncated_list(names)}."
        )
    found = {name: _read_wording(name, given, direction) for name, given in text.items()}
    unused = [name for name, wording in found.items() if wording is None]
    if unused:
        warn(
            f"text has one sentence for {truncated_list(unused)}, but reasons of both directions are listed, so it "
            'is not used: give {"raises": ..., "lowers": ...}, one or both, or a sentence with {contribution}.',
            ReportWarning,
        )
    return [found.get(name) or (_PLAIN, _PLAIN) for name in names]


def _read_wording(name: str, given: Any, direction: str) -> Wording | None:
    """Return the sentences of both directions; None if it is unknown which of them a single one is true for."""
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in _SIDES]
        if unknown or not given:
            raise InputError(
                f"text has {truncated_repr(given)} for {truncated_repr(name)}; its keys are 'raises' and 'lowers'."
            )
        raises, lowers = (_check_sentence(given.get(side, _PLAIN)) for side in _SIDES)
        return raises, lowers
    sentence = _check_sentence(given)
    if not isinstance(sentence, str) or "contribution" in _fields(sentence):
        return sentence, sentence
    if direction == "both":
        return None
    return (sentence, _PLAIN) if direction == "raised" else (_PLAIN, sentence)


def _fields(sentence: str) -> set[str]:
    """Return the names of fields; a format that has fields itself counts as one."""
    found = [(name, form) for _, name, form, _ in Formatter().parse(sentence) if name is not None]
    return {name for name, _ in found} | {form for _, form in found if form and "{" in form}


def _check_sentence(sentence: Any) -> Sentence:
    if not isinstance(sentence, str):
        if callable(sentence):
            return sentence  # type: ignore[no-any-return]
        raise InputError(
            f"text has {truncated_repr(sentence)}; give sentences, with {{value}} in place of the value."
        )
    try:
        wrong = sorted(_fields(sentence) - set(_FIELDS))
        if not wrong:
            sentence.format(feature="", value="", contribution=0.0)
    except ValueError as error:
        raise InputError(
            f"text has {truncated_repr(sentence)}: {error_text(error)}. Feature and value are texts."
        ) from None
    if wrong:
        raise InputError(
            f"text has {truncated_repr(sentence)} with the field {truncated_repr(wrong[0])}; the fields are "
            f"{truncated_list(_FIELDS)}."
        )
    return sentence


def _fill_in(sentence: Sentence, feature: str, value: str, contribution: float) -> str:
    if callable(sentence):
        return str(sentence(feature, value, contribution))
    return sentence.format(feature=feature, value=value, contribution=contribution)


def _find_actionable(actionable: Any, names: tuple[str, ...]) -> NDArray[np.bool_] | None:
    """Return for each reason whether it can be changed."""
    if actionable is None:
        return None
    if isinstance(actionable, str) or not isinstance(actionable, Iterable):
        raise InputError(
            f"actionable is {truncated_repr(actionable)}; give a list of reasons that can be changed."
        )
    can = np.zeros(len(names), dtype=bool)
    can[[find_position(name, names, "actionable") for name in actionable]] = True
    return can


def _show_values(
    rows: Rows,
    players: tuple[str, ...],
    members: list[list[int]],
    row: NDArray[np.int64],
    entry: NDArray[np.int64],
) -> tuple[str, ...]:
    """Return the values that the reasons are about, as texts."""
    data, labels = rows.display(len(players)) if len(rows) else (np.zeros((0, len(players))), None)
    cells = data if labels is None else labels

    def text(r: int, j: int) -> str:
        cell = cells[r, j]
        return text_of(float(cell)) if isinstance(cell, np.number) else text_of(cell)

    found = []
    for r, e in zip(row.tolist(), entry.tolist(), strict=True):
        mine = members[e]
        found.append(
            text(r, mine[0]) if len(mine) == 1 else ", ".join(f"{players[j]}={text(r, j)}" for j in mine)
        )
    return tuple(found)
