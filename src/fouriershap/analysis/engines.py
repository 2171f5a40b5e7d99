"""What analyses ask of engines: the one place to change when engines answer it themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.interactions import chosen_pairs, top_pairs
from fouriershap._shapley.orders.indices import ORDER_INDICES
from fouriershap._shapley.orders.sets import HigherOrders, set_keys
from fouriershap._shapley.orders.values import SetValues, set_values

Floats = NDArray[np.float64]
Background = tuple[NDArray[Any], Floats | None]


def adds_up(engine: Engine) -> bool:  # -> engine.index.adds_up
    """Return whether the values of a row add up to its prediction."""
    return engine.index == "shapley"


def index_name(engine: Engine) -> str:  # -> engine.index.name
    """Return the name of the index."""
    return engine.index


def needs_labels(engine: Engine) -> bool:  # -> engine.output.needs_labels
    """Return whether rows are explained together with their labels."""
    return bool(getattr(engine, "needs_labels", False))


def background_of(explainer: Any) -> Background | None:  # -> explainer.engine.background (.rows, .weights)
    """Return the encoded background rows and their weights; None if the explainer does not have them."""
    found: Background | None = explainer._background_codes()
    return found


def probability_link(explainer: Any) -> str | None:  # -> explainer.engine.output.probability_link
    """Return "identity" if outputs are probabilities, "logit" if they are margins, None if that is unknown."""
    found: str | None = explainer._output_link()
    return found


def met_pairs(engine: Engine) -> NDArray[np.int32]:  # -> _shapley.interactions.met_pairs
    """Return the pairs of players that interact at all."""
    return engine.pairs(None).pairs


def pair_interactions(  # -> _shapley.interactions.pair_interactions
    engine: Engine, rows: NDArray[Any], pairs: NDArray[np.int32], n_jobs: Any
) -> Floats:
    """Return half of each pair's interaction, (n_rows, n_pairs, n_outputs)."""
    return chosen_pairs(engine.pairs(None), rows, pairs, engine.n_players, n_jobs)


def check_interaction_index(index: Any) -> str:  # -> _shapley.indices.find_interaction_index
    """Return the name of an index of interactions."""
    return check_choice("index", index, ORDER_INDICES)


def strongest_sets(  # -> _shapley.interactions.strongest_sets
    engine: Engine,
    rows: NDArray[Any],
    index: str,
    order: int,
    min_order: int,
    top_k: int | None,
    memory: int,
    n_jobs: Any,
) -> SetValues:
    """Return the interactions of the strongest sets of players."""
    if isinstance(engine, HigherOrders) or (order, min_order, index) != (2, 2, "SII"):
        return set_values(engine, rows, index, order, min_order, top_k, memory, n_jobs)
    pairs = engine.pairs(None)
    every = top_pairs(pairs, rows, len(pairs.pairs), ("",) * engine.n_players, n_jobs, False)
    met = int((every.strength > 0).sum())
    best = slice(0, met if top_k is None else min(top_k, met))
    keys, total = set_keys(every.positions[best], engine.n_players), 2 * every.values.sum(axis=1)
    return SetValues(keys, 2 * every.values[:, best], 2 * every.strength[best], total, met)
