"""`Effects`: how much of the predictions' variance each feature explains, by itself and through interactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import check_bool
from fouriershap._base.errors import InputError
from fouriershap._base.progress import Progress
from fouriershap._rows.tables import to_frame
from fouriershap._shapley.interactions import met_pairs
from fouriershap.analysis import plotting
from fouriershap.analysis.explainer import (
    ExplainerLike,
    check_engine,
    check_row_weights,
    encode_rows,
    output_names,
    shap_values,
    with_other_background,
)
from fouriershap.analysis.means import rows_per_block
from fouriershap.analysis.moments import Floats
from fouriershap.analysis.results import PlayerResult, repeat_names

_SHOWN = 15
_NO_SHARE = 1e-12  # rounding
_ROUNDING = 1e-14  # of an output


@dataclass(frozen=True, eq=False, repr=False)
class Effects(PlayerResult):
    """Shares of the predictions' variance by feature and pair; returned by `Explainer.effects`.

    Attributes
    ----------
    names, outputs : tuple of str
    shares : (n_names, n_outputs) float64
        Covariance of a feature's SHAP values with the predictions, over their variance. They add up to 1. If features
        are independent, these are the Shapley effects.
    main : (n_names, n_outputs) float64
        The same of the main effect alone, partial dependence minus its mean: the first Sobol' index of an independent
        feature.
    pairs : tuple of tuples of int
        With ``pairs=True``: players whose interaction has a share, the largest first.
    pair_shares : (n_pairs, n_outputs) float64
        The same of what two features add together, beyond both main effects.
    variance : (n_outputs,) float64
        Of the predictions of the rows.
    n_rows : int

    Examples
    --------
    >>> import numpy as np, fouriershap as fs
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T * 2.0 - 1
    >>> explainer = fs.Explainer(DecisionTreeRegressor().fit(X, 2 * X[:, 0] + X[:, 1] * X[:, 2]), X)
    >>> found = explainer.effects(X, pairs=True)
    >>> found.shares[:, 0].round(3), found.main[:, 0].round(3), found.pairs
    (array([0.8, 0.1, 0.1]), array([0.8, 0. , 0. ]), ((1, 2),))
    """

    names: tuple[str, ...]
    outputs: tuple[str, ...]
    shares: Floats
    main: Floats
    pairs: tuple[tuple[int, int], ...]
    pair_shares: Floats
    variance: Floats
    n_rows: int
    like: Any = None
    analysis = "effects"
    _BAR = "share"
    _FACTS = ("variance", "n_rows", "outputs")

    @property
    def interaction(self) -> Floats:
        """(n_names, n_outputs) what of a feature's share comes from interactions."""
        return self.shares - self.main

    @property
    def pair_names(self) -> tuple[str, ...]:
        """The names of the pairs: those of their players, joined."""
        return tuple(f"{self.names[i]} x {self.names[j]}" for i, j in self.pairs)

    def __repr__(self) -> str:
        lines = [f"Effects(shares of the variance of {self.n_rows:,} predictions)"]
        for o, output in enumerate(self.outputs[:4]):
            lines += [f"{output}:"] * (len(self.outputs) > 1)
            for k in np.argsort(-self.shares[:, o], kind="stable")[:_SHOWN]:
                parts = f"{self.main[k, o]:.1%} by itself, {self.interaction[k, o]:.1%} through interactions"
                lines.append(f"  {self.names[k]}: {self.shares[k, o]:.1%} ({parts})")
            for k in np.argsort(-self.pair_shares[:, o], kind="stable")[:_SHOWN]:
                lines.append(f"  {self.pair_names[k]}: {self.pair_shares[k, o]:.1%}")
        return "\n".join(lines)

    def table(self) -> dict[str, Any]:
        shape = self.shares.shape
        columns: dict[str, Any] = {"feature": repeat_names(self.names, shape, 0)}
        if len(self.outputs) > 1:
            columns["output"] = repeat_names(self.outputs, shape, 1)
        parts = {"share": self.shares, "main": self.main, "interaction": self.interaction}
        return columns | {name: part.reshape(-1) for name, part in parts.items()}

    def pair_frame(self) -> Any:
        """Return the shares of pairs as a table like `frame`."""
        shape = self.pair_shares.shape
        columns: dict[str, Any] = {"pair": repeat_names(self.pair_names, shape, 0)}
        if len(self.outputs) > 1:
            columns["output"] = repeat_names(self.outputs, shape, 1)
        return to_frame(columns | {"share": self.pair_shares.reshape(-1)}, self.like)

    def _draw(self, output: int, top_k: int, ax: Any) -> Any:
        parts = {"by itself": self.main[:, output], "through interactions": self.interaction[:, output]}
        return plotting.stacked_bars(self.names, parts, top_k, "share of the predictions' variance", ax)


@check_arguments
def effects(
    explainer: ExplainerLike,
    X: Any,
    *,
    pairs: bool = False,
    weights: ArrayLike | None = None,
    background: Any = None,
    background_weights: ArrayLike | None = None,
) -> Effects:
    """Measure how much of the predictions' variance each feature explains, by itself and through interactions.

    A prediction is a sum: the mean, a main effect of each feature (its partial dependence), what pairs add to these,
    and so on (functional ANOVA). The share of a part is its covariance with the prediction over the variance of the
    predictions. The SHAP value of a feature collects its main effect and its part of all interactions, so the shares
    of the features add up to 1. One below 0 is possible if features depend on each other.

    Parameters
    ----------
    X : array or data frame, shape (n_rows, n_columns)
        Rows over which variance is measured.
    pairs : bool
        Whether to compute the shares of pairs as well.
    weights : array_like, optional
        A weight per row.
    background, background_weights
        As in `drift`.

    Returns
    -------
    Effects
        With ``frame()``, ``pair_frame()``, ``plot()`` and ``to_json()``.
    """
    explainer = with_other_background(explainer, background, background_weights).offline(X)
    engine = check_engine(explainer, "effects")
    if engine.quality.is_rescaled:
        raise InputError(
            "effects need SHAP values of what is explained, not those of the raw output rescaled. Use output='raw' or "
            "exact=True."
        )
    codes = encode_rows(explainer, X).codes
    given = check_row_weights(weights, len(codes))
    share = np.full(len(codes), 1 / len(codes)) if given is None else given / given.sum()
    n, players = engine.n_players, list(range(engine.n_players))
    met = met_pairs(engine) if check_bool("pairs", pairs) else np.zeros((0, 2), dtype=np.int32)
    sets: list[tuple[int, ...]] = [*((i,) for i in players), *map(tuple, met.tolist())]
    with Progress(explainer.progress):
        outputs = engine.predict(codes, explainer.n_jobs)
        outputs = outputs - engine.expected  # which may be far from 0
        centered = outputs - share @ outputs
        deviation = centered * share[:, None]
        variance = (deviation * centered).sum(axis=0)
        # What is left of a constant output is rounding.
        variance[variance <= (_ROUNDING * np.abs(engine.expected)) ** 2] = 0.0
        values, means = np.zeros((n, engine.n_outputs)), np.zeros((len(sets), engine.n_outputs))
        step = rows_per_block(len(sets) + n, engine.n_outputs)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            values += _covariance(shap_values(explainer, codes[part]), deviation[part])
            found = engine.partial_means(codes[part], sets, explainer.n_jobs)
            means += _covariance(found - engine.expected, deviation[part])
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where(variance > 0, 1 / variance, np.nan)
    main, both = means[:n], means[n:]
    beyond = both - main[met[:, 0]] - main[met[:, 1]]
    size = np.nansum(np.abs(beyond * scale), axis=1)
    order = np.argsort(-size, kind="stable")[: (size > _NO_SHARE).sum()]
    return Effects(
        names=explainer.player_names,
        outputs=output_names(explainer),
        shares=values * scale,
        main=main * scale,
        pairs=tuple((int(i), int(j)) for i, j in met[order]),
        pair_shares=beyond[order] * scale,
        variance=np.asarray(variance),
        n_rows=len(codes),
        like=X,
    )


def _covariance(values: NDArray[Any], deviation: Floats) -> Floats:
    """Return the sums (n_terms, n_outputs) of values (n_rows, n_terms, n_outputs) times weighted deviations."""
    return np.asarray(np.einsum("rko,ro->ko", values, deviation))
