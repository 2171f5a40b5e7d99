"""`Reasons`: for each row the few things that speak against a lower or a higher output, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice, check_number, check_whole, find_position
from fouriershap._base.errors import InputError
from fouriershap._base.short import reason as why
from fouriershap._base.short import short, short_list
from fouriershap._explainers.questions import pictures
from fouriershap._explainers.questions.answer import Answer, check_output
from fouriershap._explainers.questions.groups import find_groups
from fouriershap._explainers.questions.means import check_engine, names_of_outputs
from fouriershap._explainers.questions.moments import Floats
from fouriershap._rows.frames import Rows
from fouriershap._rows.text import text_of

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

AGAINST = ("lower", "higher", "both")
_SAME = 1e-6  # of a row's largest value: closer ones are equal, since tables are in single precision
_FIELDS = ("feature", "value", "contribution")
_SHOWN = 3


@dataclass(frozen=True, eq=False, repr=False)
class Reasons(Answer):
    """Ordered reasons of each row; what `Explainer.reasons` returns. One entry per reason, rows in their order.

    Attributes
    ----------
    row : (n,) int64
        Position of the row.
    rank : (n,) int64
        1 for the strongest reason of the row.
    reason, value, text : tuple of str
        Player or group, what the row has there, and the sentence.
    contribution : (n,) float64
        SHAP value, of a group the sum of its players'.
    share : (n,) float64
        Of all that speaks in the same direction in the row, named or not.
    actionable : (n,) bool or None
        Whether the row's owner could change it, where that was told.
    against : str
    ids : tuple or None
        Of all rows.
    n_rows : int

    Examples
    --------
    >>> import pandas as pd, fouriershap as fs
    >>> from sklearn.linear_model import LinearRegression
    >>> X = pd.DataFrame({"debt": [1.0, 2.0, 9.0], "income": [4.0, 5.0, 3.0]})
    >>> explainer = fs.Explainer(LinearRegression().fit(X, [0.1, 0.1, 0.9]), X)
    >>> reasons = explainer.reasons(X[2:], text={"debt": "Your debt of {value} is high."})
    >>> reasons.letter(0)[0]
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
    against: str
    n_rows: int
    ids: tuple[Any, ...] | None = None
    like: Any = None
    question = "reasons"

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        lines = [f"Reasons({self.n_rows:,} rows, against {self.against!r})"]
        for row in range(min(self.n_rows, _SHOWN)):
            lines.append(f"row {row if self.ids is None else self.ids[row]}:")
            mine = np.flatnonzero(self.row == row)
            lines += [f"  {self.rank[k]}. {self.text[k]}  ({self.contribution[k]:+.4g})" for k in mine]
        return "\n".join(lines + ["..."] * (self.n_rows > _SHOWN))

    def letter(self, row: int) -> list[str]:
        """The sentences of a row, the strongest reason first.

        Parameters
        ----------
        row : int
            Its position.
        """
        return [self.text[k] for k in np.flatnonzero(self.row == self._position(row))]

    def _position(self, row: Any) -> int:
        if check_whole("row", row, 0) >= self.n_rows:
            raise InputError(f"row is {row}; there are {self.n_rows} rows, from 0.")
        return int(row)

    def table(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"row": self.row}
        if self.ids is not None:
            columns["id"] = [self.ids[k] for k in self.row]
        columns |= {"rank": self.rank, "reason": list(self.reason), "value": list(self.value)}
        columns |= {"text": list(self.text), "contribution": self.contribution, "share": self.share}
        return columns if self.actionable is None else columns | {"actionable": self.actionable}

    def facts(self) -> dict[str, Any]:
        return {"against": self.against, "n_rows": self.n_rows}

    def plot(self, *, row: int = 0, ax: Any = None) -> Any:
        """Bars of the reasons of one row (matplotlib).

        Parameters
        ----------
        row : int
            Its position.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        mine = np.flatnonzero(self.row == self._position(row))
        names, values = tuple(self.text[k] for k in mine), self.contribution[mine]
        unknown = np.full(len(mine), np.nan)
        what = "both ways" if self.against == "both" else f"against a {self.against} output"
        title = f"row {row if self.ids is None else self.ids[row]}: {what}"
        return pictures.bars(names, values, unknown, unknown, max(len(mine), 1), title, ax)


def make_reasons(
    explainer: Explainer,
    X: Any,
    top_k: Any,
    against: Any,
    output: Any,
    groups: Any,
    text: Any,
    actionable: Any,
    least: Any,
    ids: Any,
) -> Reasons:
    """What `Explainer.reasons` documents."""
    against = check_choice("against", against, AGAINST)
    k, least = check_whole("top_k", top_k), check_number("least", least, 0)
    check_engine(explainer, "reasons")
    outputs = names_of_outputs(explainer)
    if output is None and len(outputs) > 1:
        raise InputError(f"the model has {len(outputs)} outputs; give output=, one of {short_list(outputs)}.")
    chosen = check_output(0 if output is None else output, outputs)
    features, labels = (X, None) if ids is None else find_groups(X, ids, explainer.input_names)
    rows = explainer._read(features)
    if labels is not None and len(labels) != len(rows):
        raise InputError(f"ids has {len(labels)} entries for {len(rows)} rows.")
    names, members = _merged(explainer.player_names, groups)
    sentences, can = read_sentences(text, names), _flags(actionable, names)
    by_player = explainer._explain(rows, explainer.n_jobs)[:, :, chosen]
    values = np.column_stack([by_player[:, mine].sum(axis=1) for mine in members])
    order, counted = ranked(values, against, least)
    counted[:, k:] = False
    row, place = np.nonzero(counted)
    entry = order[row, place]
    shown = _shown(rows, explainer.player_names, members, row, entry)
    contribution = values[row, entry]
    every = _directed(values, against).sum(axis=1)
    return Reasons(
        row=row.astype(np.int64),
        rank=(place + 1).astype(np.int64),
        reason=tuple(names[j] for j in entry),
        value=shown,
        text=tuple(
            _say(sentences[j], names[j], v, float(c))
            for j, v, c in zip(entry, shown, contribution, strict=True)
        ),
        contribution=contribution,
        share=_directed(values, against)[row, entry] / every[row],
        actionable=None if can is None else can[entry],
        against=against,
        n_rows=len(rows),
        ids=None if labels is None else tuple(labels.tolist()),
        like=X,
    )


def _directed(values: Floats, against: str) -> Floats:
    """How much each value speaks against a lower or a higher output, 0 where it speaks for it."""
    if against == "both":
        return np.abs(values)
    return np.maximum(values if against == "lower" else -values, 0.0)


def ranked(values: Floats, against: str, least: float) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The order of the reasons of each row, and which of them are some: (n_rows, n_reasons) both.

    Values that rounding cannot tell apart are ties, and come in the order of the players; whether they are does not
    depend on the other rows.
    """
    size = _directed(values, against)
    order = np.argsort(-size, axis=1, kind="stable")
    falling = np.take_along_axis(size, order, axis=1)
    noise = _SAME * np.abs(values).max(axis=1, initial=0.0)[:, None]
    run = np.cumsum(np.diff(falling, axis=1, prepend=falling[:, :1]) < -noise, axis=1)
    order = np.take_along_axis(order, np.lexsort((order, run), axis=1), axis=1)
    falling = np.take_along_axis(size, order, axis=1)
    return order, (falling > noise) & (falling >= least)


def _merged(players: tuple[str, ...], groups: Any) -> tuple[tuple[str, ...], list[list[int]]]:
    """Names of the reasons, and the players of each."""
    if groups is None:
        return players, [[j] for j in range(len(players))]
    if not isinstance(groups, Mapping):
        raise InputError(
            f"groups is {short(groups)}; give a mapping from the name of a reason to its players."
        )
    found: dict[str, list[int]] = {}
    taken: dict[int, str] = {}
    for name, mine in groups.items():
        if isinstance(mine, str) or not isinstance(mine, Iterable):
            raise InputError(f"groups has {short(mine)} for {short(name)}; give a list of players.")
        positions = [find_position(player, players, "groups") for player in mine]
        for j in positions:
            if j in taken:
                raise InputError(f"groups has {short(players[j])} in {short(taken[j])} and in {short(name)}.")
            taken[j] = str(name)
        if positions:
            found[str(name)] = positions
    first = {min(positions): name for name, positions in found.items()}
    names, members = [], []
    for j, player in enumerate(players):  # a group stands where its first player does
        if j in first:
            names.append(first[j])
            members.append(found[first[j]])
        elif j not in taken:
            names.append(player)
            members.append([j])
    return tuple(names), members


def read_sentences(text: Any, names: tuple[str, ...]) -> list[str | Callable[..., Any]]:
    """What each reason is said by."""
    plain = "{feature} = {value}"
    if text is None:
        return [plain] * len(names)
    if callable(text):
        return [text] * len(names)
    if isinstance(text, str):
        return [_checked(text)] * len(names)
    if not isinstance(text, Mapping):
        raise InputError(
            f"text is {short(text)}; give a mapping from reasons to sentences, a sentence, or a function."
        )
    unknown = [name for name in text if name not in names]
    if unknown:
        raise InputError(
            f"text names {short(unknown[0])}, which is no reason; there are {short_list(names)}."
        )
    return [_checked(text[name]) if name in text else plain for name in names]


def _checked(sentence: Any) -> str | Callable[..., Any]:
    if callable(sentence):
        found: Callable[..., Any] = sentence
        return found
    if not isinstance(sentence, str):
        raise InputError(
            f"text has {short(sentence)}; give sentences, with {{value}} where the value belongs."
        )
    try:
        fields = {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}
        wrong = sorted(fields - set(_FIELDS))
        if not wrong:
            sentence.format(feature="", value="", contribution=0.0)
    except ValueError as error:
        raise InputError(f"text has {short(sentence)}: {why(error)}. Feature and value are texts.") from None
    if wrong:
        raise InputError(
            f"text has {short(sentence)} with the field {short(wrong[0])}; there are {short_list(_FIELDS)}."
        )
    return sentence


def _say(sentence: str | Callable[..., Any], feature: str, value: str, contribution: float) -> str:
    if callable(sentence):
        return str(sentence(feature, value, contribution))
    return sentence.format(feature=feature, value=value, contribution=contribution)


def _flags(actionable: Any, names: tuple[str, ...]) -> NDArray[np.bool_] | None:
    """Of each reason, whether it is among those that can be changed."""
    if actionable is None:
        return None
    if isinstance(actionable, str) or not isinstance(actionable, Iterable):
        raise InputError(
            f"actionable is {short(actionable)}; give a list of reasons that the row's owner can change."
        )
    can = np.zeros(len(names), dtype=bool)
    can[[find_position(name, names, "actionable") for name in actionable]] = True
    return can


def _shown(
    rows: Rows,
    players: tuple[str, ...],
    members: list[list[int]],
    row: NDArray[np.int64],
    entry: NDArray[np.int64],
) -> tuple[str, ...]:
    """What the rows have where the reasons are."""
    data, labels = rows.display(len(players)) if len(rows) else (np.zeros((0, len(players))), None)
    cells = data if labels is None else labels

    def text(r: int, j: int) -> str:
        cell = cells[r, j]
        return text_of(float(cell)) if isinstance(cell, np.number | bool | np.bool_) else text_of(cell)

    found = []
    for r, e in zip(row.tolist(), entry.tolist(), strict=True):
        mine = members[e]
        found.append(
            text(r, mine[0]) if len(mine) == 1 else ", ".join(f"{players[j]}={text(r, j)}" for j in mine)
        )
    return tuple(found)
