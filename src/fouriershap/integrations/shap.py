"""shap computed by fouriershap: its classes stay what they are, and only their inner loops are replaced.

shap's `TreeExplainer` computes in one C function, `dense_tree_shap`, or asks the library of a booster for its own
SHAP values. `patch_shap` puts fouriershap in both places. Everything around them is shap's code (classes, shapes,
warnings, exceptions, the check of additivity), and so is whatever fouriershap cannot compute. The log "fouriershap"
has a line for each call, which says who computed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial, wraps
from hashlib import blake2b
from importlib import import_module
from threading import RLock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, finalize

import numpy as np
from numpy.typing import NDArray

from fouriershap import (
    Explainer,
    FourierShapError,
    TreeEnsemble,
    TreeExplainer,
    UnsupportedModelError,
    read_model,
)
from fouriershap._base.checks import import_optional
from fouriershap._base.links import LOGISTIC, MEAN, UNKNOWN

_log = logging.getLogger("fouriershap")
_OPTIONS: dict[str, Any] = {"precision": "double", "progress": False}
_INTERVENTIONAL, _BY_PATH = 0, 1  # shap's codes
_OUTPUTS = {
    0: ("raw", UNKNOWN),
    1: ("probability", LOGISTIC),
    2: ("log_loss", LOGISTIC),
    3: ("log_loss", MEAN),
}
_FEW = 4  # rows on which a library and fouriershap must agree
_TOLERANCE = 1e-3  # of the largest value: libraries add up in float32


def _log_ours(name: str) -> None:
    _log.info("shap.%s: computed by fouriershap", name)


def _log_theirs(name: str, why: object) -> None:
    _log.info("shap.%s: left to shap: %s", name, why)


class _Call(NamedTuple):
    """The arguments of shap's `dense_tree_shap`, in its order."""

    left: NDArray[Any]  # (n_trees, n_nodes), as all of nodes; -1 at leaves and beyond the last node
    right: NDArray[Any]
    default: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    is_categorical: NDArray[Any]
    values: NDArray[Any]  # (n_trees, n_nodes, n_outputs)
    weight: NDArray[Any]
    max_depth: int
    X: NDArray[Any]
    X_missing: NDArray[Any]
    y: Any
    background: NDArray[Any] | None
    background_missing: NDArray[Any] | None
    tree_limit: int
    base: NDArray[Any]
    phi: NDArray[
        Any
    ]  # the result: (n_rows, n_features + 1, n_outputs), of interactions with features + 1 twice
    perturbation: int
    transform: int
    interactions: bool


class _Kernels:
    """shap's module of C functions with another `dense_tree_shap`."""

    def __init__(self, theirs: Any) -> None:
        self.theirs = theirs
        self.explainers: dict[bytes, Explainer] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.theirs, name)

    def dense_tree_shap(self, *args: Any) -> None:
        """Write SHAP values, or interactions, into the array ``phi`` among the arguments."""
        full = args
        if len(args) == len(_Call.__annotations__) - 1:  # shap before 0.50, whose nodes are all numerical
            full = (*args[:5], np.zeros_like(args[0]), *args[5:])
        try:
            if len(full) != len(_Call.__annotations__):
                raise UnsupportedModelError("this version of shap is unknown.")
            call = _Call(*full)
            call.phi[:] = _values(self._explainer(call), call.X, call.y, call.interactions)
            _log_ours("TreeExplainer")
        except FourierShapError as error:
            _log_theirs("TreeExplainer", error)
            self.theirs.dense_tree_shap(*args)

    def dense_tree_saabas(self, *args: Any) -> None:
        """Write Saabas values, which are not SHAP values."""
        _log_theirs("TreeExplainer", "approximate=True")
        self.theirs.dense_tree_saabas(*args)

    def _explainer(self, call: _Call) -> Explainer:
        """Return the explainer of these arrays; found by their contents, since callers may change them."""
        background = None if call.background is None else np.asarray(call.background, dtype=call.X.dtype)
        digest = blake2b(
            repr((call.tree_limit, call.perturbation, call.transform, call.X.shape[1:])).encode()
        )
        for array in (*call[:8], call.base, background):
            if array is not None:
                digest.update(repr((array.shape, array.dtype)).encode() + array.tobytes())
        key = digest.digest()
        found = self.explainers.get(key)
        if found is None:
            found = self.explainers[key] = _compile(call, background)
            finalize(call.values, self.explainers.pop, key, None)
        return found


def _compile(call: _Call, background: NDArray[Any] | None) -> Explainer:
    """Return the explainer of shap's trees."""
    if call.perturbation not in (_INTERVENTIONAL, _BY_PATH):
        raise UnsupportedModelError("global path-dependent values are not supported.")
    output, link = _OUTPUTS[call.transform]
    reading = read_model(_ensemble(call)).replace(link=link)
    rows = background if call.perturbation == _INTERVENTIONAL else None
    return TreeExplainer(reading, rows, output=output, **_OPTIONS)


def _ensemble(call: _Call) -> TreeEnsemble:
    """Return shap's trees without their padding, each level by level."""
    trees = slice(call.tree_limit)
    n_trees, width = call.left[trees].shape
    roots = np.arange(n_trees) * width

    def flat(array: NDArray[Any]) -> NDArray[Any]:
        return array[trees].reshape(n_trees * width, *array.shape[2:])

    def moved(children: NDArray[Any]) -> NDArray[Any]:
        return np.where(flat(children) >= 0, flat(children) + np.repeat(roots, width), -1)

    left, right = moved(call.left), moved(call.right)
    levels = [roots]
    while len(levels[-1]):
        inner = levels[-1][right[levels[-1]] >= 0]
        levels.append(np.concatenate([left[inner], right[inner]]))
    order = np.concatenate(levels)
    order = order[np.argsort(order // width, kind="stable")]
    position = np.full(n_trees * width + 1, -1)  # the last one: of no child
    position[order] = np.arange(len(order))
    tree, is_leaf = order // width, right[order] < 0
    cover = flat(call.weight)[order]
    if flat(call.is_categorical)[order[~is_leaf]].any():
        raise UnsupportedModelError("categorical splits, which shap holds in 31 bits, are not supported.")
    if call.perturbation == _BY_PATH and not (cover > 0).all():
        raise UnsupportedModelError("some nodes are not reached by any row.")
    threshold = np.nextafter(
        flat(call.threshold)[order].astype(np.float64), np.inf
    )  # left iff x <= threshold
    values = np.where(is_leaf[:, None], flat(call.values)[order], 0.0)
    used = np.zeros((n_trees, values.shape[1]), dtype=bool)
    np.logical_or.at(used, tree, values != 0)
    output = np.full(n_trees, -1)
    if (used.sum(axis=1) <= 1).all():  # every tree adds to one output
        output = used.argmax(axis=1)
        values = values[np.arange(len(values)), output[tree]][:, None]
    return TreeEnsemble(
        n_features=call.X.shape[1],
        n_outputs=call.values.shape[2],
        dtype=np.dtype(np.float64),
        roots=position[roots],
        tree_output=output,
        feature=np.where(is_leaf, -1, flat(call.feature)[order]),
        threshold=np.where(threshold == np.inf, np.nan, threshold),
        left=position[left[order]],
        right=position[right[order]],
        missing_left=moved(call.default)[order] == left[order],
        category_set=np.full(len(order), -1),
        set_start=np.zeros(1, dtype=np.int64),
        set_categories=np.zeros(0, dtype=np.int64),
        cover=cover,
        values=values,
        base=call.base,
    )


def _values(explainer: Explainer, X: Any, y: Any, interactions: bool) -> NDArray[np.float64]:
    """Return values (n_rows, n_features + 1, n_outputs), the base value last; interactions likewise."""
    found = explainer.shap_interaction_values(X) if interactions else explainer.shap_values(X, y)
    axes = 2 if interactions else 1
    found = found.reshape(*found.shape[: axes + 1], explainer.representation.n_outputs)
    values = np.pad(found, [(0, 0), *[(0, 1)] * axes, (0, 0)])
    if y is None:
        base = values[:, -1, -1] if interactions else values[:, -1]
        base[:] = explainer.expected_value
    return values


_of_boosters: WeakKeyDictionary[Any, dict[tuple[int, bool], Explainer]] = WeakKeyDictionary()


class _Booster:
    """The booster in shap's copy of a model, during one call: its contributions come from fouriershap."""

    def __init__(self, model: Any, X: Any) -> None:
        self.model, self.booster, self.X = model, model.original_model, X

    def __getattr__(self, name: str) -> Any:
        return getattr(self.booster, name)

    def predict(self, data: Any, **options: Any) -> Any:
        """Predict like a booster of XGBoost or LightGBM."""
        ask = partial(self.booster.predict, **options)
        if options.get("approx_contribs"):
            _log_theirs("TreeExplainer", "approximate=True")
        elif any(options.get(name) for name in ("pred_contribs", "pred_contrib", "pred_interactions")):
            rounds = (
                options["iteration_range"][1] if "iteration_range" in options else options["num_iteration"]
            )
            return self._contributions(ask, data, rounds, bool(options.get("pred_interactions")))
        return ask(data)

    def get_feature_importance(self, data: Any, fstr_type: str) -> Any:
        """Return the contributions of a CatBoost model."""
        ask = partial(self.booster.get_feature_importance, fstr_type=fstr_type)
        return self._contributions(ask, data, 0, fstr_type == "ShapInteractionValues")

    def _contributions(self, ask: Callable[..., Any], data: Any, rounds: int, interactions: bool) -> Any:
        """Return contributions like the library, which would answer ``ask(data)``."""
        known = _of_boosters.setdefault(self.model, {})
        try:
            rows, explainer = self._rows(data), known.get((rounds, interactions))
            if explainer is None:
                explainer = self._build(rounds)
                few = (
                    data.slice([*range(min(_FEW, data.num_row()))]) if hasattr(data, "slice") else data[:_FEW]
                )
                ours = self._layout(
                    _values(explainer, few if rows is data else rows[:_FEW], None, interactions)
                )
                theirs = np.asarray(ask(few))
                if not np.abs(ours - theirs).max(initial=0) <= _TOLERANCE * np.abs(theirs).max(initial=0):
                    raise UnsupportedModelError("the library of the model computes other values.")
                known[rounds, interactions] = explainer
            values = self._layout(_values(explainer, rows, None, interactions))
        except FourierShapError as error:
            _log_theirs("TreeExplainer", error)
            return ask(data)
        _log_ours("TreeExplainer")
        return values

    def _build(self, rounds: int) -> Explainer:
        """Return the explainer of the first rounds (0 or -1: all); columns go by position, as for shap."""
        booster, limit = self.booster, rounds * self.model.num_stacked_models
        if self.model.model_type == "lightgbm":
            booster, limit = type(booster)(model_str=booster.model_to_string(num_iteration=rounds)), 0
        reading = read_model(booster).replace(feature_names=None)
        return TreeExplainer(reading, tree_limit=limit if limit > 0 else None, **_OPTIONS)

    def _rows(self, data: Any) -> Any:
        """Return rows that fouriershap reads: those of the caller where the library's container has lost labels."""
        if hasattr(data, "tocsr") or getattr(data, "ndim", 2) != 2:
            raise UnsupportedModelError("sparse rows and single rows are not supported here.")
        has_labels = (
            "c" in (getattr(data, "feature_types", None) or ()) or self.model.model_type == "catboost"
        )
        return self.X if has_labels and getattr(self.X, "ndim", 0) == 2 else data

    def _layout(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Return values (n_rows, ..., n_outputs) in the shape and type that the library returns."""
        kind, values = self.model.model_type, np.moveaxis(values, -1, 1)
        if values.shape[1] == 1:
            values = values[:, 0]
        elif kind == "lightgbm":
            values = values.reshape(len(values), -1)
        return values.astype(np.float32) if kind == "xgboost" else values


def _with_booster(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of shap's TreeExplainer whose path-dependent values of boosters come from `_Booster`."""

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if self.feature_perturbation != "tree_path_dependent" or not hasattr(self.model, "original_model"):
            return method(self, X, *args, **options)
        twin = copy(self)
        twin.model = copy(self.model)
        twin.model.original_model = _Booster(self.model, X)
        values = method(twin, X, *args, **options)
        self.expected_value = twin.expected_value  # shap sets it here
        return values

    return call


def _all_rows_at_once(call_by_row: Callable[..., Any]) -> Callable[..., Any]:
    """Return `__call__` of shap's LinearExplainer for all rows at once, by its own formula."""

    @wraps(call_by_row)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        X: Any = args[0] if len(args) == 1 and not options else None
        rows: NDArray[Any] = (
            np.asarray(X) if hasattr(X, "columns") or isinstance(X, np.ndarray) else np.empty(0)
        )
        names = list(X.columns) if hasattr(X, "columns") else self.feature_names
        is_plain = rows.ndim == 2 and rows.size and rows.dtype.kind in "fiub" and self.output_names is None
        is_plain = is_plain and (names is None or not isinstance(names[0], list | tuple))
        if self.feature_perturbation != "interventional" or not is_plain:
            _log_theirs("LinearExplainer", "only plain tables of numbers, without options")
            return call_by_row(self, *args, **options)
        values = self.shap_values(rows)
        _log_ours("LinearExplainer")
        return import_module("shap").Explanation(
            values,
            np.array([self.expected_value] * len(rows)),
            rows,
            feature_names=[f"Feature {f}" for f in range(rows.shape[1])] if names is None else list(names),
            main_effects=values if values.ndim == 3 else values[:, :, None],
            compute_time=time.perf_counter() - begin,
        )

    return call


def _logging_choice(init: Callable[..., None]) -> Callable[..., None]:
    """Return `__init__` of shap's Explainer that logs the choice of an explainer that is not computed here."""

    @wraps(init)
    def call(self: Any, *args: Any, **options: Any) -> None:
        is_general = type(self).__name__ == "Explainer"
        init(self, *args, **options)
        if is_general and type(self).__name__ not in ("TreeExplainer", "LinearExplainer"):
            _log_theirs("Explainer", f"it is a {type(self).__name__}")

    return call


class _Patch:
    """Whether shap is patched, and what to put back."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.is_wanted = False
        self.n_contexts = 0
        self.originals: list[tuple[Any, str, Any]] = []

    def change(self, is_wanted: bool | None = None, contexts: int = 0) -> None:
        """Patch shap, or undo it, as these changes require."""
        with self.lock:
            if is_wanted is not False:
                import_optional("shap", "patch_shap", "[shap]")
            self.is_wanted = self.is_wanted if is_wanted is None else is_wanted
            self.n_contexts += contexts
            is_needed = self.is_wanted or self.n_contexts > 0
            if is_needed and not self.originals:
                self.apply()
            elif not is_needed:
                while self.originals:
                    owner, name, original = self.originals.pop()
                    if original is None:
                        delattr(owner, name)
                    else:
                        setattr(owner, name, original)

    def apply(self) -> None:
        """Put our functions in the place of shap's."""
        tree, linear, general = (
            import_module(f"shap.explainers.{name}") for name in ("_tree", "_linear", "_explainer")
        )
        for owner, name, replace in (
            (tree, "_cext", _Kernels),
            (tree.TreeExplainer, "shap_values", _with_booster),
            (tree.TreeExplainer, "shap_interaction_values", _with_booster),
            (linear.LinearExplainer, "__call__", _all_rows_at_once),
            (general.Explainer, "__init__", _logging_choice),
        ):
            self.originals.append((owner, name, vars(owner).get(name)))
            setattr(owner, name, replace(getattr(owner, name)))


_patch = _Patch()


def patch_shap() -> None:
    """Let shap compute with fouriershap, until `unpatch_shap`.

    ``shap.TreeExplainer``, ``shap.LinearExplainer`` and ``shap.Explainer`` stay shap's own classes, also where they
    were imported before, with shap's signatures, results and errors. Only the values are computed by fouriershap, in
    double precision; what it cannot compute is left to shap. The log "fouriershap" has a line (INFO) for each call.

    Examples
    --------
    >>> import fouriershap as fs, numpy as np, shap
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 4)).astype("float32")
    >>> model = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> explainer = shap.TreeExplainer(model, X[:50])
    >>> by_shap = explainer.shap_values(X)
    >>> fs.patch_shap()
    >>> bool(np.allclose(explainer.shap_values(X), by_shap))
    True
    >>> fs.unpatch_shap()
    """
    _patch.change(is_wanted=True)


def unpatch_shap() -> None:
    """Undo `patch_shap`. Within ``with patched_shap():`` shap stays patched until the end of the block."""
    _patch.change(is_wanted=False)


@contextmanager
def patched_shap() -> Iterator[None]:
    """Let shap compute with fouriershap during a ``with`` block, in all threads; see `patch_shap`."""
    _patch.change(contexts=1)
    try:
        yield
    finally:
        _patch.change(contexts=-1)
