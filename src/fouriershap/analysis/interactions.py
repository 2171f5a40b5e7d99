"""`Interactions`: what sets of up to so many players bring together, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice, check_memory, check_whole, find_position
from fouriershap._base.errors import InputError
from fouriershap._base.parallel import Watch
from fouriershap._base.short import short
from fouriershap._explainers.questions import pictures
from fouriershap._explainers.questions.answer import Answer, check_output, number, repeated
from fouriershap._explainers.questions.means import check_engine, names_of_outputs, read_rows
from fouriershap._explainers.questions.moments import Floats
from fouriershap._explainers.reasons import to_frame
from fouriershap._rows.frames import Rows
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.orders.indices import ORDER_INDICES
from fouriershap._shapley.orders.sets import key_sets
from fouriershap._shapley.orders.values import set_values

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_SHOWN = 10
_JOINED = " x "
_COLOURS = ("#1f6fb4", "#e08e1b", "#c8373a", "#7a4fb5", "#3a9d5d")  # by the number of players


@dataclass(frozen=True, eq=False, repr=False)
class Interactions(Answer):
    """Interactions of sets of players, the strongest first; what `Explainer.interactions` returns.

    Attributes
    ----------
    index : {"k-SII", "STII", "FSII", "SII"}
    order, min_order : int
        The most and the fewest players of a set.
    positions : tuple of tuples of int
        The players of each set, ascending.
    sets : tuple of tuples of str
        Their names.
    values : (n_rows, n_sets) or (n_rows, n_sets, n_outputs) float64
    strength : (n_sets,) float64
        Mean absolute value over rows and outputs.
    rest : (n_rows,) or (n_rows, n_outputs) float64
        What all sets that are not listed here add up to.
    base : (n_outputs,) float64
        Mean prediction of the background. With "k-SII", "STII" and "FSII", ``min_order=1``: base, values and rest of a
        row add up to its prediction.
    n_met : int
        How many sets interact at all, in some row.
    players, outputs : tuple of str

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).integers(0, 2, size=(200, 3))
    >>> model = DecisionTreeRegressor().fit(X, X[:, 0] * X[:, 1] * X[:, 2])
    >>> found = fs.TreeExplainer(model, X, feature_names=["a", "b", "c"]).interactions(X, order=3)
    >>> found.value_of("a", "b", "c").shape
    (200,)
    >>> bool(np.allclose(found.base + found.values.sum(axis=1), model.predict(X)))
    True
    """

    index: str
    order: int
    min_order: int
    positions: tuple[tuple[int, ...], ...]
    values: Floats
    strength: Floats
    rest: Floats
    base: Floats
    n_met: int
    players: tuple[str, ...]
    outputs: tuple[str, ...]
    like: Any = None
    question = "interactions"

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        lines = [f"  {name}: {size:.4g}" for name, size in zip(self.names, self.strength, strict=True)]
        more = [] if len(lines) <= _SHOWN else [f"  ... {len(lines) - _SHOWN:,} more"]
        told = f"{self.index} of order {self.order}, {len(self.values):,} rows"
        which = f"{len(self):,} of {self.n_met:,} sets, mean |value|"
        return "\n".join([f"Interactions({told}, {which})", *lines[:_SHOWN], *more])

    @cached_property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """The names of the players of each set."""
        return tuple(tuple(self.players[player] for player in players) for players in self.positions)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each set."""
        return tuple(_JOINED.join(players) for players in self.sets)

    def value_of(self, *players: int | str) -> Floats:
        """The values of one set, (n_rows,) or (n_rows, n_outputs); its players by name or position."""
        wanted = tuple(sorted(find_position(player, self.players, "players") for player in players))
        if wanted in self.positions:
            return np.asarray(self.values[:, self.positions.index(wanted)])
        if len(set(wanted)) < len(wanted) or not self.min_order <= len(wanted) <= self.order:
            raise InputError(
                f"players are {short(players)}; give {self.min_order} to {self.order} different ones, as many as the "
                "sets of this answer have."
            )
        if len(self) < self.n_met:
            raise InputError(
                f"the set {short(players)} is not among the {len(self)} strongest; ask for more by top_k=."
            )
        return np.zeros_like(self.rest)  # they never meet

    def table(self) -> dict[str, Any]:
        values = self._with_outputs()
        shape = values.shape[1:]
        columns: dict[str, Any] = {"set": repeated(self.names, shape, 0)}
        columns["size"] = np.repeat([len(players) for players in self.sets], shape[1])
        if len(self.outputs) > 1:
            columns["output"] = repeated(self.outputs, shape, 1)
        columns["mean"] = values.mean(axis=0).reshape(-1)
        columns["strength"] = np.abs(values).mean(axis=0).reshape(-1)
        return columns

    def facts(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "order": self.order,
            "min_order": self.min_order,
            "n_rows": len(self.values),
            "n_sets": self.n_met,
            "outputs": self.outputs,
            "mean_before": self.base,
        }

    def row(self, row: int, *, output: int | str = 0) -> Any:
        """What one row has of each set, the largest first: a frame with ``set``, ``size`` and ``value``."""
        r, o = self._check_row(row), check_output(output, self.outputs)
        values = self._with_outputs()[r, :, o]
        order = np.argsort(-np.abs(values), kind="stable")
        table = {
            "set": [self.names[k] for k in order.tolist()],
            "size": np.array([len(self.sets[k]) for k in order.tolist()], dtype=np.int64),
            "value": values[order],
        }
        return to_frame(table, self.like)

    def plot(self, *, row: int | None = None, output: int | str = 0, top: int = 15, ax: Any = None) -> Any:
        """Bars of the strongest sets: mean sizes over all rows, or the values of one (matplotlib).

        Parameters
        ----------
        row : int, optional
            The position of a row; None for mean sizes over all of them.
        output : int or str
            Which output, where there are several.
        top : int
            Most sets shown.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        o = check_output(output, self.outputs)
        values = self._with_outputs()[:, :, o]
        unknown = np.full(values.shape[1], np.nan)
        if row is None:
            title = f"{self.index} of order {self.order}: mean |value|, {len(values):,} rows"
            sizes = np.abs(values).mean(axis=0)
            ax = pictures.bars(self.names, sizes, unknown, unknown, top, title, ax, signed=False)
            self._colour_by_size(ax, np.argsort(-sizes, kind="stable")[:top])
            return ax
        r = self._check_row(row)
        rest = float(self.rest.reshape(len(values), -1)[r, o])
        title = f"{self.index} of order {self.order}, row {r}; sets not listed: {number(rest)}"
        return pictures.bars(self.names, values[r], unknown, unknown, top, title, ax)

    def _colour_by_size(self, ax: Any, shown: NDArray[np.int64]) -> None:
        """Bars of single players, pairs and triples in colours of their own, and a legend that says so."""
        labelled = set()
        for bar, k in zip(ax.patches, shown.tolist(), strict=True):
            size = len(self.positions[k])
            bar.set_color(_COLOURS[(size - 1) % len(_COLOURS)])
            if size not in labelled:
                bar.set_label(f"{size} player{'s' if size > 1 else ''}")
            labelled.add(size)
        handles, labels = ax.get_legend_handles_labels()
        ordered = sorted(zip(labels, handles, strict=True), key=lambda each: each[0])
        if len(labelled) > 1:
            ax.legend([h for _, h in ordered], [t for t, _ in ordered], frameon=False, fontsize=9)

    def _with_outputs(self) -> Floats:
        return self.values.reshape(*self.values.shape[:2], len(self.outputs))

    def _check_row(self, row: int) -> int:
        if check_whole("row", row, 0) >= len(self.values):
            raise InputError(f"row is {short(row)}; there are {len(self.values):,} rows, counted from 0.")
        return int(row)


def make_interactions(
    explainer: Explainer, X: Any, order: int, index: str, top_k: int | None, min_order: int
) -> Interactions:
    """What `Explainer.interactions` documents."""
    check_choice("index", index, ORDER_INDICES)
    check_whole("order", order)
    if check_whole("min_order", min_order) > order:
        raise InputError(f"min_order is {short(min_order)}; give no more than order={order}.")
    if top_k is not None:
        check_whole("top_k", top_k, 1, ", or None for all sets")
    engine = check_engine(explainer, "interactions")
    return interactions_of(explainer, engine, read_rows(explainer, X), order, index, top_k, min_order, like=X)


def interactions_of(
    explainer: Explainer,
    engine: Engine,
    rows: Rows,
    order: int,
    index: str,
    top_k: int | None,
    min_order: int,
    like: Any = None,
) -> Interactions:
    """The answer about rows that are read, of an engine of the explainer; arguments are checked."""
    memory = check_memory(None)
    with Watch(explainer.progress):
        found = set_values(engine, rows.codes, index, order, min_order, top_k, memory, explainer.n_jobs)
    positions = key_sets(found.keys, engine.n_players)
    rest = found.total - found.values.sum(axis=1)
    if len(found.keys) == found.n_met:
        rest = np.zeros_like(rest)  # nothing is left out but rounding
    single = engine.n_outputs == 1
    return Interactions(
        index=index,
        order=order,
        min_order=min_order,
        positions=tuple(positions),
        values=found.values[..., 0] if single else found.values,
        strength=found.strength,
        rest=rest[..., 0] if single else rest,
        base=np.array(engine.expected, dtype=np.float64),
        n_met=found.n_met,
        players=explainer.player_names,
        outputs=names_of_outputs(explainer),
        like=like,
    )
