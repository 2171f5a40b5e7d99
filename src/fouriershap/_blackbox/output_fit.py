"""A representation of an output of a model that was read: fitted as to a black box, the same at every run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.queries import QueryModel
from fouriershap._blackbox.candidates.members import members_on_codes
from fouriershap._blackbox.fidelity import warn_if_low
from fouriershap._blackbox.fit import Fitter
from fouriershap._blackbox.hybrid_model import HybridModel
from fouriershap._blackbox.transform import Limits
from fouriershap._rows.levels import LABEL, Encoding, make_encoding
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Floats
from fouriershap._shapley.outputs.transformed import FittedOutput, Margin
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.level_sets import split_by_level

_BUDGET = 20_000  # queries of the output, which our copy of the model answers quickly
_BATCH = 8192
_WAYS_OUT = (
    "fewer players by groups= and a smaller background (with fewer than 16 players, values by definition may be "
    "affordable), or BlackBoxExplainer(model.predict_proba, background), which asks the model about each row"
)


def fit_output(margin: Margin, predict: Callable[[NDArray[Any]], Floats], asked_by: str) -> FittedOutput:
    """Fit a representation to a function of the rows of an engine (see `Fit`)."""
    background, model = margin.background, margin.representation
    assert background is not None  # its caller has checked it
    trees = model if isinstance(model, TreeEnsemble) else None
    labels = [] if trees is None else np.flatnonzero(trees.is_categorical).tolist()
    pool = Pool(background.rows, "background")
    names = tuple(map(str, range(margin.n_players)))
    encoding = make_encoding(pool, margin.player, names, labels)
    every = np.arange(pool.n_rows)
    fitter = Fitter(
        model=HybridModel(QueryModel(predict, "the output", _BATCH, _BUDGET), margin.player),
        pool=pool,
        first_rows=every,
        second_rows=every,
        encoding=encoding,
        budget=_BUDGET,
        seed=0,
        limits=Limits(),
        members=members_on_codes(None if trees is None else _on_levels(trees, encoding), encoding),
    )
    fitted = fitter.fit("auto")
    codes = fitted.encoding.encode(pool, "background")
    engine = fitted.surrogate.compile(codes, background.weights, margin.index)
    warn_if_low(fitted.fidelity, fitted.method, f"{asked_by}: of the output, ", _WAYS_OUT)
    return FittedOutput(_Encoder(fitted.encoding, asked_by), fitted.fidelity, engine)


@dataclass(frozen=True, eq=False)
class _Encoder:
    """Turns rows into codes of a representation; errors name the argument that asked for it."""

    encoding: Encoding
    asked_by: str

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        try:
            return self.encoding.encode(Pool(rows, "X"), "X")
        except InputError as error:
            raise InputError(
                f"{self.asked_by} explains these rows by a representation that was fitted to hybrids of the background,"
                f" and {error} Here that means: more background rows, or groups= that leave fewer than 16 players."
            ) from error


def _on_levels(trees: TreeEnsemble, encoding: Encoding) -> TreeEnsemble | None:
    """Return the trees for rows in which labels are numbers of levels."""
    labels = [f for f in encoding.features if f.kind == LABEL]
    return split_by_level(trees, {f.columns[0]: np.array(f.levels, dtype=np.float64) for f in labels})
