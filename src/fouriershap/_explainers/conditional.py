"""Conditional explainers: any explainer, with a model of how features depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fouriershap._base.checks import check_choice, check_number
from fouriershap._base.errors import InputError
from fouriershap._base.files import Contents
from fouriershap._base.headers import get_part
from fouriershap._base.messages import truncated_repr
from fouriershap._base.queries import check_random_state
from fouriershap._blackbox.coded import CodedEngine
from fouriershap._blackbox.live import LiveEngine
from fouriershap._blackbox.masked import MaskedEngine, fit_masked
from fouriershap._dependence.fit import MODELS
from fouriershap._explainers.parts import Parts
from fouriershap._rows.frames import unmask
from fouriershap._rows.inputs import InputAdapter, LevelEncoder
from fouriershap._shapley.conditional.choice import AUTO, DependenceChoice
from fouriershap._shapley.conditional.engine import ConditionalEngine, Settings, make_conditional

CONDITIONAL, DATA = "conditional", "data"
_TOLERANCE = 0.02
_FITTED, _FITTED_TO_BOXES = 1 << 15, 1 << 13  # rows whose outputs a control is fitted to
_OPTIONS = ("dependence", "data", "tolerance", "random_state")


def with_dependence(build: Callable[[dict[str, Any]], Parts], options: dict[str, Any]) -> Parts:
    """Build an explainer, of conditional values where ``feature_perturbation`` says so.

    `Explainer` explains the options.
    """
    perturbation = options.get("feature_perturbation")
    if not (isinstance(perturbation, str) and perturbation == CONDITIONAL):
        if "dependence" in options:
            raise InputError(
                "dependence belongs to feature_perturbation='conditional'; give both, or leave it out."
            )
        return build(options)
    own = {name: options[name] for name in _OPTIONS if name in options}
    others = {
        name: value for name, value in options.items() if name not in (*_OPTIONS, "feature_perturbation")
    }
    if others.get("device", "cpu") != "cpu":
        raise InputError("device is 'jax', but conditional values are computed on 'cpu' only.")
    choice = check_choice("dependence", own.get("dependence", AUTO), (AUTO, *MODELS, DATA))
    tolerance = check_number("tolerance", own.get("tolerance", _TOLERANCE))
    if not 0 < tolerance <= 1:
        raise InputError(f"tolerance is {truncated_repr(tolerance)}; give a number above 0, up to 1.")
    seed = own.get("random_state")
    check_random_state(seed)
    return _conditioned(build(others), choice, own.get("data"), tolerance, int(seed or 0))


def _conditioned(parts: Parts, dependence: str, data: Any, tolerance: float, seed: int) -> Parts:
    """Return the parts of an explainer with a dependence."""
    if parts.engine.output.needs_labels:
        raise InputError(
            f"output is {truncated_repr(parts.engine.output.name)}, which conditional values do not explain. Use "
            "output='raw', 'probability' or 'response'."
        )
    n_fitted = _FITTED
    if isinstance(parts.engine, LiveEngine):
        parts, n_fitted = _coded(parts, parts.engine), _FITTED_TO_BOXES
    background = parts.engine.background
    if background is None:
        raise InputError(
            "feature_perturbation='conditional' needs a background, to which the dependence is fitted."
        )
    rows, weights = background.rows, background.weights
    if data is not None:
        rows, weights = parts.inputs.encode(unmask(data), "data").codes, None
    if len(rows) < 2 or np.isinf(rows).any():
        what = f"{len(rows)} row" if len(rows) < 2 else "infinite values"
        raise InputError(
            f"{'background' if data is None else 'data'} has {what}; a dependence is fitted to several rows of finite "
            "numbers."
        )
    if dependence == DATA:
        masked = fit_masked(parts.engine, rows, parts.inputs.code_players, seed)
        return replace(parts, engine=masked, fit=None)
    player = tuple(parts.inputs.code_players.tolist())
    choice = DependenceChoice(dependence, parts.inputs.encoder.label_codes(), player, seed)
    engine = make_conditional(parts.engine, choice, rows, weights, Settings(tolerance, n_fitted, seed))
    return replace(parts, engine=engine, fit=None)


def _coded(parts: Parts, engine: LiveEngine) -> Parts:
    """Return the parts of a black box that is asked about codes."""
    box = engine.box
    encoder = LevelEncoder(box.encoding, box.background.names)
    inputs = InputAdapter(encoder, box.background.names, box.column_player, box.encoding.player_names)
    return replace(parts, inputs=inputs, engine=CodedEngine(engine, box))


def conditional_from_contents(parts: Parts, contents: Contents) -> Parts:
    """Return the parts of a saved explainer with the dependence that the file holds, if it does."""
    header = get_part(contents.header, "engine")
    if "masked" in header:
        about = get_part(header, "masked")
        return replace(parts, engine=MaskedEngine.from_contents(contents.arrays, about, parts.engine))
    if CONDITIONAL not in header:
        return parts
    about = get_part(header, CONDITIONAL)
    return replace(parts, engine=ConditionalEngine.from_contents(contents.arrays, about, parts.engine))
