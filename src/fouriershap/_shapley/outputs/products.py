"""Responses that are no sums of products (several classes, networks): by the definition, or fitted.

As the probabilities of trees with ``exact=True``: over all coalitions where players and background rows are few, else
by a representation that is fitted to what our reading answers, with its fidelity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from numpy.typing import NDArray

from fouriershap._base.checks import check_choice
from fouriershap._base.errors import InputError
from fouriershap._base.headers import require, take, take_size
from fouriershap._explainers.outputs import MOST_HYBRIDS, ByDefinition, Fitted
from fouriershap._rows.levels import Encoding
from fouriershap._shapley.engine import Contents, Engine, Floats
from fouriershap._shapley.indices import INDICES
from fouriershap._shapley.products.engine import ProductPlan
from fouriershap._shapley.products.model import Background, make_background
from fouriershap._waves.products import Products
from fouriershap._waves.responses import LINKS


@dataclass(frozen=True, eq=False)
class Margins:
    """The raw output and a background: what responses are made of."""

    model: Products
    background: Background
    link: str
    index: str
    n_background: int | None

    @property
    def n_players(self) -> int:
        return self.model.n_players

    @property
    def n_outputs(self) -> int:
        return self.model.n_outputs

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> Floats:
        del n_jobs
        return self.model.predict(rows)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Margins:
        return replace(self, background=make_background(rows, weights), n_background=len(rows))


class _Response:
    """What both ways share."""

    engine: Any
    way: ClassVar[tuple[str, str]]  # what it is called, and why

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        return choose(self.engine.with_background(rows, weights))

    @property
    def model(self) -> Products:
        found: Products = self.engine.model
        return found

    def plan(self, n_rows: int | None) -> ProductPlan:
        del n_rows
        return ProductPlan(self.way[0], 0, 0.0, self.way[1])

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "products",
            "n_terms": self.engine.model.coefficients.shape[2],
            "road": self.way[0],
            "n_components": 0,
            "background_error": 0.0,
            "n_background": self.engine.n_background,
            "by_path": False,
        }

    def to_contents(self, interactions: bool) -> Contents:
        del interactions
        margins: Margins = self.engine
        header = {"road": "response", "index": margins.index, "link": margins.link}
        return margins.background.to_arrays(), header | {"n_background": margins.n_background}


class DefinedResponse(_Response, ByDefinition):  # type: ignore[misc]
    """Over all coalitions."""

    way = ("definition", "few players and background rows: all coalitions")


class FittedResponse(_Response, Fitted):  # type: ignore[misc]
    """By a representation."""

    way = ("fitted", "the response is no sum of products: a representation is fitted to it")
    asked_by: ClassVar[str] = "output='probability'"

    @property
    def label_columns(self) -> list[int]:
        return []

    def members(self, encoding: Encoding) -> None:
        """There are no trees here."""

    @property
    def fidelity(self) -> Any:
        return self.fit[1]


def choose(margins: Margins) -> Engine:
    """By the definition where that is affordable, else by a representation."""
    n_background, link = len(margins.background), LINKS[margins.link]
    if margins.n_players < 16 and n_background << margins.n_players <= MOST_HYBRIDS:
        return DefinedResponse(margins, link)  # type: ignore[arg-type]
    if n_background < 2:
        raise InputError(
            f"output='probability' has {margins.n_players} players, too many for all coalitions, and one background "
            "row, too few to fit a representation to. Give more background rows, or groups= that leave fewer than 16 "
            "players."
        )
    return FittedResponse(margins, link)  # type: ignore[arg-type]


def fit_response(model: Products, link: str, rows: Floats, weights: Floats | None, index: str) -> Engine:
    """What explains the response of a model against a background."""
    return choose(Margins(model, make_background(rows, weights), link, index, len(rows)))


def response_from_contents(
    arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: Products
) -> Engine:
    """The inverse of `to_contents`."""
    link = take(header, "link", str)
    require(link in LINKS, "it has a link that nobody knows")
    background = Background.from_arrays(arrays, model.n_features)
    index = check_choice("index", take(header, "index", str), INDICES)
    return choose(Margins(model, background, link, index, take_size(header, "n_background")))
