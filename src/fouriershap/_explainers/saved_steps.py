"""Steps of a Pipeline in the header of a file: kept where they are known ones, with a warning where not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fouriershap._base.errors import ModelWarning
from fouriershap._base.headers import require, take
from fouriershap._base.warn import warn
from fouriershap._rows.pipelines import Preprocessing
from fouriershap._rows.recipes import Recipe, make_recipe, why_not_kept
from fouriershap._rows.step_readers import UnknownStepError

Before = Preprocessing | Recipe  # both have `transform` and `known_names`


def steps_for_file(
    before: Before, tried: Any, inputs: tuple[str, ...] | None, absent_is_missing: bool = False
) -> dict[str, Any]:
    """Steps before a model and, where they are the players, its input columns; warns where steps cannot be kept."""
    if isinstance(before, Preprocessing):
        try:
            before = make_recipe(before, tried, absent_is_missing)
        except UnknownStepError as error:
            warn(why_not_kept(error), ModelWarning)
            return {}
    return {"steps": before.to_json(), "inputs": inputs}


def steps_from_file(
    header: Mapping[str, Any], n_features: int, players: tuple[str, ...]
) -> tuple[Recipe, tuple[str, ...] | None]:
    """The inverse."""
    recipe = Recipe.from_json(header["steps"], n_features)
    inputs = take(header, "inputs", tuple[str, ...] | None)
    if inputs is not None:
        fits = len(inputs) == recipe.n_columns and set(players) <= set(inputs)
        require(fits, "its input columns are not those of its steps")
    return recipe, inputs
