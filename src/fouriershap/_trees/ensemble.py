"""`TreeEnsemble`: any tree model as plain arrays, the one form that every reader produces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.errors import InputError
from fouriershap._base.short import short_text
from fouriershap._rows.batch import open_batch

LEAF = -1
MIXED = "mixed"
STEPS = "steps"
STEPS_MIXED = "steps mixed"  # as well, and libraries that round large integers in different ways
BEHIND_STEPS = (STEPS, STEPS_MIXED)
# LightGBM's kZeroThreshold: a float32 constant held in a double.
ZERO_BAND = float(np.float32(1e-35))
ARRAY_TYPES = dict.fromkeys(("roots", "tree_output", "feature", "left", "right", "category_set"), "i4")
ARRAY_TYPES |= dict.fromkeys(("threshold", "cover", "values", "base"), "f8")
ARRAY_TYPES |= {"set_start": "i8", "set_categories": "i8", "missing_left": "?", "zero_as_missing": "?"}
_CELLS = 1 << 20  # (row, tree) pairs walked at a time: bounds the scratch memory to some tens of MB


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A sum of decision trees as flat, read-only arrays.

    The nodes of all trees share one numbering; the nodes of a tree are consecutive, its root first,
    and every child comes after its parent. A row is first cast to ``dtype``. Then, at a node:

    - a missing value (NaN) goes left where ``missing_left``;
    - at a numerical node, a number ``x`` goes right iff ``x >= threshold`` (NaN as threshold: every
      number goes left);
    - at a categorical node, ``x`` is cut to an integer and goes left iff that integer is in the
      node's category set. Everything else that is not missing goes right.

    The raw output is ``base`` plus the values of the leaves reached. Scales (learning rates, the mean
    over a forest, dart weights) are already in the values.

    Attributes
    ----------
    n_features, n_outputs : int
    dtype : numpy.dtype
        float32 or float64: what the library casts rows to before it compares.
    roots : (n_trees,) int32
    tree_output : (n_trees,) int32
        The output that a tree adds to; -1 where its leaves hold a vector of all outputs (width > 1).
    feature : (n_nodes,) int32
        Feature tested at a node, -1 at a leaf.
    threshold : (n_nodes,) float64
    left, right : (n_nodes,) int32
        Children, -1 at a leaf.
    missing_left : (n_nodes,) bool
    category_set : (n_nodes,) int32
        -1 at numerical nodes, else the index of the node's set in ``set_start``.
    set_start : (n_sets + 1,) int64
    set_categories : (sum of set sizes,) int64
        Non-negative integers, sorted within a set.
    cover : (n_nodes,) float64
        Training weight that reached the node (what path-dependent SHAP values need).
    values : (n_nodes, width) float64
        Leaf values; width is 1, or ``n_outputs`` where leaves hold vectors. Zero at inner nodes.
    base : (n_outputs,) float64
    zero_as_missing : (n_features,) bool
        Features in which ``|x| <= 1e-35`` counts as missing (LightGBM's ``zero_as_missing``).
    missing_value : float
        A number that counts as missing beside NaN (XGBoost's ``missing``); NaN for none.
    absent_is_missing : bool
        Whether a cell that a sparse matrix does not store is missing (XGBoost) instead of 0 (all others).
    accepts_missing : bool
        Whether the library takes missing values at all (scikit-learn's gradient boosting does not).
    feature_names : tuple of str or None
    output_names : tuple of str or None
    vocabularies : dict
        feature index -> tuple of labels; the label at position c is category c of that feature.
        `fouriershap._trees.labels` turns a column of labels into codes.
    frame_labels : tuple of tuples
        Where a frame that has as many categorical columns as there are tuples is coded by their order, whatever
        the columns (LightGBM): the labels of each, in the order of their codes.
    lost_labels : tuple of int
        Categorical features whose labels the model has, or had, but does not tell: they take codes alone.
    numbers_are_labels : bool
        Whether numbers in a column with a vocabulary are labels too (scikit-learn, CatBoost); otherwise they
        are codes already (XGBoost, LightGBM).
    negative_is_unknown : bool
        Whether a number between -1 and 0 is no category (XGBoost), rather than category 0 (LightGBM).
    hashed : bool
        Whether the vocabularies hold CatBoost's 32-bit hashes of the labels: it keeps no labels.
    kind : str
        What was read, for people: ``"xgboost gbtree"``.
    objective : str
        What the raw output means: "binary" (log odds), "multiclass" (log odds of softmax), "probability" (class
        probabilities themselves), "squared_error" (a mean), "regression" (what ``predict`` returns, by another loss),
        "log" and "log1p" (``predict`` returns its exponential, or that less one), "one against the rest: binary" and
        "...: probability" (scores of classes, whose probabilities are divided by their sum); "" for anything else, or
        where it is not known.
    computes_in : numpy.dtype
        The precision in which the library itself adds up leaves.
    casting : str
        Whose rules turn numbers of other types into ``dtype`` (see `fouriershap._trees.rows`): "xgboost", "lightgbm",
        "lightgbm booster", "catboost", "scikit-learn"; "mixed" where several libraries read the same row; "steps" where
        some of them do so behind steps that were taken into the trees ("steps mixed" where they round integers in
        different ways); "" for plain casts.
    """

    n_features: int
    n_outputs: int
    dtype: np.dtype[Any]
    roots: NDArray[np.int32]
    tree_output: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    category_set: NDArray[np.int32]
    set_start: NDArray[np.int64]
    set_categories: NDArray[np.int64]
    cover: NDArray[np.float64]
    values: NDArray[np.float64]
    base: NDArray[np.float64]
    zero_as_missing: NDArray[np.bool_]
    missing_value: float = float("nan")
    absent_is_missing: bool = False
    accepts_missing: bool = True
    feature_names: tuple[str, ...] | None = None
    output_names: tuple[str, ...] | None = None
    vocabularies: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    lost_labels: tuple[int, ...] = ()
    frame_labels: tuple[tuple[Any, ...], ...] = ()
    numbers_are_labels: bool = False
    negative_is_unknown: bool = False
    hashed: bool = False
    kind: str = "trees"
    objective: str = ""
    computes_in: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    casting: str = ""

    def __post_init__(self) -> None:
        for name, dtype in ARRAY_TYPES.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=dtype)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.n_outputs == 1:  # all outputs are the one output
            object.__setattr__(self, "tree_output", np.zeros_like(self.tree_output))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        object.__setattr__(self, "computes_in", np.dtype(self.computes_in))
        self._check()

    def _check(self) -> None:
        # Kernels follow these numbers without asking again, and a file may hold anything.
        if not (self._lengths_fit() and self._nodes_are_trees() and self._outputs_fit() and self._sets_fit()):
            raise InputError(
                f"the arrays of this tree ensemble do not fit together ({short_text(self.kind)}): a number for every "
                "node, children after their one parent and in its tree, trees one after the other, values as "
                "(n_nodes, 1) with an output per tree, or (n_nodes, n_outputs) with tree_output -1, category sets one "
                "after the other."
            )

    def _lengths_fit(self) -> bool:
        n_nodes = len(self.feature)
        of_nodes = ("feature", "threshold", "left", "right", "missing_left", "category_set", "cover")
        return (
            all(getattr(self, name).shape == (n_nodes,) for name in of_nodes)
            and self.values.ndim == 2
            and self.values.shape[0] == n_nodes
            and self.values.shape[1] in (1, self.n_outputs)
            and self.roots.shape == self.tree_output.shape == (len(self.roots),)
            and self.base.shape == (self.n_outputs,)
            and self.zero_as_missing.shape == (self.n_features,)
        )

    def _nodes_are_trees(self) -> bool:
        """Whether every node but the roots has one parent, before it and in its own tree."""
        if not len(self.feature) or self.feature.min() < LEAF or self.feature.max() >= self.n_features:
            return False
        return kernels.nodes.are_trees(self.roots, self.feature, self.left, self.right)

    def _sets_fit(self) -> bool:
        """Whether the category set of every node is there, and has its categories."""
        start, sets = self.set_start, self.category_set
        return (
            start.ndim == self.set_categories.ndim == 1
            and len(start) > 0
            and start[0] == 0
            and start[-1] == len(self.set_categories)
            and bool((np.diff(start) >= 0).all())
            and bool(((sets >= -1) & (sets < len(start) - 1)).all())
        )

    def _outputs_fit(self) -> bool:
        """Whether trees with one value a leaf name an output, and trees with vectors none."""
        if self.values.shape[1] > 1:
            return bool((self.tree_output == -1).all())
        return bool(((self.tree_output >= 0) & (self.tree_output < self.n_outputs)).all())

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        return int((self.feature == LEAF).sum())

    @cached_property
    def is_categorical(self) -> NDArray[np.bool_]:
        """(n_features,) bool: features that a categorical node tests."""
        mask = np.zeros(self.n_features, dtype=bool)
        mask[self.feature[self.category_set >= 0]] = True
        mask.flags.writeable = False
        return mask

    def __repr__(self) -> str:
        return (
            f"TreeEnsemble({short_text(self.kind)}: {self.n_trees} trees, {self.n_leaves} leaves, "
            f"{self.n_features} features, {self.n_outputs} outputs)"
        )

    @property
    def tree_of_node(self) -> NDArray[np.int64]:
        """(n_nodes,) the tree that each node belongs to."""
        sizes = np.diff(np.append(self.roots, self.n_nodes))
        return np.repeat(np.arange(self.n_trees), sizes)

    def select(self, kept: NDArray[np.bool_]) -> TreeEnsemble:
        """Some of the trees; base and category sets stay."""
        nodes = kept[self.tree_of_node]
        index = np.append(np.cumsum(nodes) - 1, LEAF).astype(np.int32)  # -1 stays -1
        per_node = ("feature", "threshold", "missing_left", "category_set", "cover", "values")
        changes = {name: getattr(self, name)[nodes] for name in per_node}
        changes |= {name: index[getattr(self, name)[nodes]] for name in ("left", "right")}
        return self.replace(roots=index[self.roots[kept]], tree_output=self.tree_output[kept], **changes)

    def sum_by_output(
        self, leaves: NDArray[np.integer[Any]], shares: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Values (n_outputs,) of leaves (n,), each times its share."""
        values = shares[:, None] * self.values[leaves]
        if self.values.shape[1] == self.n_outputs:
            return np.asarray(values.sum(axis=0))
        output = self.tree_output[self.tree_of_node[leaves]]
        return np.bincount(output, values[:, 0], minlength=self.n_outputs).astype(np.float64)

    def clean_rows(self, X: NDArray[Any]) -> NDArray[Any]:
        """Cast rows (n_rows, n_features) to the model's dtype, with every missing value as NaN."""
        with np.errstate(over="ignore"):
            rows = np.asarray(X).astype(self.dtype, copy=False)
        if not np.isnan(self.missing_value):
            rows = np.where(rows == self.dtype.type(self.missing_value), self.dtype.type("nan"), rows)
        if self.zero_as_missing.any():
            rows = np.where(self.zero_as_missing & (np.abs(rows) <= ZERO_BAND), self.dtype.type("nan"), rows)
        if self.negative_is_unknown and self.is_categorical.any():
            rows = np.where(self.is_categorical & (rows < 0), np.floor(rows), rows)
        return rows

    def select_columns(self, frame: Any) -> Any:
        """The features out of a data frame: found by name, in the model's order; all columns, if it knows no names."""
        return open_batch(frame, (), self.feature_names).features

    @property
    def has_cover(self) -> bool:
        """Whether the training rows were counted, which path-dependent values need; constants need none."""
        inner = self.feature >= 0
        return bool(self.cover[inner].any()) or not inner.any()

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Raw output (n_rows, n_outputs) of rows (n_rows, n_features), categories given as codes."""
        rows = self.clean_rows(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise InputError(f"X has the shape {rows.shape}; the model needs (n_rows, {self.n_features}).")
        return _predict(self, rows)

    def replace(self, **changes: Any) -> TreeEnsemble:
        """A copy with some attributes changed."""
        return TreeEnsemble(**({f.name: getattr(self, f.name) for f in fields(self)} | changes))


def _predict(ensemble: TreeEnsemble, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Raw output (n_rows, n_outputs) of cleaned rows (n_rows, n_features)."""
    output = np.empty((len(rows), ensemble.n_outputs))
    for start, leaves in leaves_of(ensemble, rows):
        output[start : start + len(leaves)] = _sum_leaves(ensemble, leaves)
    return output


def leaves_of(ensemble: TreeEnsemble, rows: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """`find_leaves` of cleaned rows, some at a time, each with the position of the first."""
    step = max(1, _CELLS // ensemble.n_trees)
    for start in range(0, len(rows), step):
        yield start, find_leaves(ensemble, rows[start : start + step])


def find_leaves(ensemble: TreeEnsemble, rows: NDArray[Any]) -> NDArray[np.int32]:
    """The leaf (n_rows, n_trees) that each of the cleaned rows reaches in each tree."""
    e = ensemble
    leaves = np.empty((len(rows), e.n_trees), dtype=np.int32)
    nodes = e.feature, e.threshold.astype(e.dtype), e.left, e.right, e.missing_left, e.category_set
    trees = kernels.leaves.Trees(e.roots, *nodes, e.set_start, e.set_categories)
    kernels.leaves.find(trees, np.ascontiguousarray(rows), leaves)
    return leaves


def _sum_leaves(e: TreeEnsemble, leaves: NDArray[np.int32]) -> NDArray[np.float64]:
    output = np.tile(e.base, (len(leaves), 1))
    for k in range(e.n_outputs):
        column = k if e.values.shape[1] > 1 else 0
        trees = (e.tree_output == k) | (e.tree_output < 0)
        output[:, k] += e.values[leaves[:, trees], column].sum(axis=1)
    return output
