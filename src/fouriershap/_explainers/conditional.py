"""Conditional explainers: any explainer, with a model of how features depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from fouriershap._dependence.causes import Chain
from fouriershap._dependence.fit import MODELS
from fouriershap._explainers.parts import Parts
from fouriershap._rows.frames import unmask
from fouriershap._rows.inputs import InputAdapter, LevelEncoder
from fouriershap._shapley.conditional.choice import AUTO, DependenceChoice
from fouriershap._shapley.conditional.engine import ConditionalEngine, Settings, make_conditional
from fouriershap._shapley.players import chain_of

CONDITIONAL, DATA = "conditional", "data"
_TOLERANCE = 0.02
_FITTED, _FITTED_TO_BOXES = 1 << 15, 1 << 13  # rows whose outputs a control is fitted to
_OPTIONS = ("dependence", "data", "tolerance", "random_state", "confounded")
ORDERED = "ordered"  # coalitions of causal values: only those that respect the chain
_OF_CAUSES = ("gaussian", "copula")


def with_dependence(build: Callable[[dict[str, Any]], Parts], options: dict[str, Any]) -> Parts:
    """Build an explainer, of conditional values where ``feature_perturbation`` says so.

    `Explainer` explains the options.
    """
    perturbation = options.get("feature_perturbation")
    if not (isinstance(perturbation, str) and perturbation == CONDITIONAL):
        for name in ("dependence", "confounded"):
            if name in options:
                raise InputError(
                    f"{name} belongs to feature_perturbation='conditional'; give both, or leave it out."
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
    causes = None
    if own.get("confounded") is not None:
        if choice not in (AUTO, *_OF_CAUSES):
            raise InputError(
                f"dependence is {truncated_repr(choice)}, but causal values, which confounded= asks for, take "
                "'gaussian' or 'copula'."
            )
        if others.get("causal_order") is None:
            raise InputError("confounded= is about the groups of causal_order=; give both.")
        causes = others["causal_order"], own["confounded"]
        if others.get("coalitions") == ORDERED:
            del others["coalitions"]
        else:
            del others["causal_order"]  # every order of players counts
    return _conditioned(build(others), choice, own.get("data"), tolerance, int(seed or 0), causes)


def _chain(parts: Parts, causal_order: Any, confounded: Any) -> Chain:
    """Return the groups of the columns of codes."""
    groups = chain_of(causal_order, parts.inputs.player_names)
    flags = [confounded] * len(groups) if isinstance(confounded, bool | np.bool_) else confounded
    are_flags = isinstance(flags, Sequence | np.ndarray) and all(
        isinstance(f, bool | np.bool_) for f in flags
    )
    if not are_flags or len(flags) != len(groups):
        raise InputError(
            f"confounded is {truncated_repr(confounded)}; give True, False, or one of them for each of the "
            f"{len(groups)} groups of causal_order."
        )
    place = np.empty(len(parts.inputs.player_names), dtype=np.int64)
    for number, group in enumerate(groups):
        place[group] = number
    return Chain(place[parts.inputs.code_players], np.array(flags, dtype=bool))


def _conditioned(
    parts: Parts, dependence: str, data: Any, tolerance: float, seed: int, causes: tuple[Any, Any] | None
) -> Parts:
    """Return the parts of an explainer with a dependence, and with ``causal_order`` and ``confounded``."""
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
        masked = fit_masked(parts.engine, rows, weights, parts.inputs.code_players, seed)
        return replace(parts, engine=masked, fit=None)
    player = tuple(parts.inputs.code_players.tolist())
    chain = None if causes is None else _chain(parts, *causes)
    choice = DependenceChoice(
        dependence, parts.inputs.encoder.label_codes(), player, seed, MODELS if chain is None else _OF_CAUSES
    )
    engine = make_conditional(parts.engine, choice, rows, weights, Settings(tolerance, n_fitted, seed), chain)
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
