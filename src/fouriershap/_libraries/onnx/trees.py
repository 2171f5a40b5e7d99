"""The attributes of ONNX's operators of trees as nodes in one numbering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._libraries.onnx.graph import WAY_OUT, Node
from fouriershap._trees.ensemble import LEAF

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)  # the numbers of TreeEnsemble; the other two have words
_MOST_TARGETS = 1 << 16
_MOST_COPIES = 100  # of all nodes, where trees share some
_MODES = {"BRANCH_LEQ": LEQ, "BRANCH_LT": LT, "BRANCH_GTE": GTE, "BRANCH_GT": GT, "BRANCH_EQ": EQ}
_MODES |= {"BRANCH_NEQ": NEQ, "LEAF": LEAF}


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of all trees, in one numbering, leaves included; ``yes`` is where the condition holds."""

    tree: NDArray[np.int64]
    mode: NDArray[np.int64]  # LEAF at leaves
    feature: NDArray[np.int64]
    value: NDArray[Any]
    members: dict[int, NDArray[Any]]
    yes: NDArray[np.int64]
    no: NDArray[np.int64]
    missing_yes: NDArray[np.bool_]
    weights: NDArray[np.float64]  # (n_nodes, n_targets) of leaves
    has_target: NDArray[np.bool_]  # (n_targets,) targets that some leaf names


def read_nodes(node: Node) -> Nodes:
    """Return the nodes of any of the operators, each with one parent."""
    nodes = _read_new(node) if node.op == "TreeEnsemble" else _read_old(node)
    inner = np.flatnonzero(nodes.mode != LEAF)
    children = np.concatenate([nodes.yes[inner], nodes.no[inner]])
    n_parents = np.bincount(children, minlength=len(nodes.mode))
    roots = np.flatnonzero(n_parents == 0)
    one_root = np.array_equal(np.sort(nodes.tree[roots]), np.unique(nodes.tree))
    if not one_root or (nodes.tree[children] != np.tile(nodes.tree[inner], 2)).any():
        raise InputError(
            "its nodes do not make trees: some go round in circles, or have a parent in another tree."
        )
    if nodes.feature[inner].min(initial=0) < 0:
        raise InputError("its trees compare a column of a negative number.")
    if np.isnan(nodes.value[nodes.mode != LEAF].astype(np.float64)).any():
        raise InputError("its trees compare with a threshold that is not a number.")
    return _unshared(nodes, roots) if n_parents.max(initial=0) > 1 else nodes


def _unshared(nodes: Nodes, roots: NDArray[np.int64]) -> Nodes:
    """Copy nodes so that each has one path to it: converters let tests of several labels share subtrees."""
    most = _MOST_COPIES * len(nodes.mode)
    origins: list[NDArray[np.int64]] = []
    yes: list[NDArray[np.int64]] = []
    level, n_nodes = roots, len(roots)
    while len(level):
        inner = nodes.mode[level] != LEAF
        first_child = n_nodes + 2 * (np.cumsum(inner) - 1)
        origins.append(level)
        yes.append(np.where(inner, first_child, LEAF))
        level = np.stack([nodes.yes[level[inner]], nodes.no[level[inner]]], axis=1).ravel()
        n_nodes += len(level)
        if n_nodes > most:
            raise UnsupportedModelError(
                f"the trees of the ONNX model share so many nodes that apart they are more than {most:,}. {WAY_OUT}"
            )
    origin, branch = np.concatenate(origins), np.concatenate(yes)
    members = {i: nodes.members[n] for i, n in enumerate(origin.tolist()) if n in nodes.members}
    columns = ("tree", "mode", "feature", "value", "missing_yes", "weights")
    moved = {name: getattr(nodes, name)[origin] for name in columns}
    no = np.where(branch == LEAF, LEAF, branch + 1)
    return Nodes(**moved, members=members, yes=branch, no=no, has_target=nodes.has_target)


def _read_old(node: Node) -> Nodes:
    """Nodes by the numbers of tree and node, weights in lists of their own."""
    tree, number = node.wholes("nodes_treeids"), node.wholes("nodes_nodeids")
    mode = np.array([_MODES.get(text, -2) for text in node.texts("nodes_modes")])
    if (mode == -2).any():
        raise InputError("its trees have a node of an unknown mode.")
    place = {key: position for position, key in enumerate(zip(tree.tolist(), number.tolist(), strict=True))}

    def find(name: str) -> NDArray[np.int64]:
        children = zip(tree.tolist(), node.wholes(name).tolist(), mode.tolist(), strict=True)
        return np.array([LEAF if m == LEAF else place[t, c] for t, c, m in children], dtype=np.int64)

    prefix = "class" if node.op == "TreeEnsembleClassifier" else "target"
    keys = zip(
        node.wholes(f"{prefix}_treeids").tolist(), node.wholes(f"{prefix}_nodeids").tolist(), strict=True
    )
    leaves = np.array([place[key] for key in keys], dtype=np.int64)
    targets, weights = node.wholes(f"{prefix}_ids"), node.floats(f"{prefix}_weights").astype(np.float64)
    n_targets = len(class_labels(node)) if prefix == "class" else node.whole("n_targets", 1)
    tracks = node.wholes("nodes_missing_value_tracks_true").astype(bool)
    return Nodes(
        tree=tree,
        mode=mode,
        feature=np.where(mode == LEAF, LEAF, node.wholes("nodes_featureids")),
        value=node.floats("nodes_values"),
        members={},
        yes=find("nodes_truenodeids"),
        no=find("nodes_falsenodeids"),
        missing_yes=tracks if len(tracks) else np.zeros(len(tree), dtype=bool),
        **_leaf_weights(len(tree), n_targets, leaves, targets, weights),
    )


def _read_new(node: Node) -> Nodes:
    """Nodes and leaves in two lists, told apart by flags; each branch to a leaf gets a leaf of its own."""
    mode = node.wholes("nodes_modes")
    n = len(mode)
    targets, weights = node.wholes("leaf_targetids"), node.floats("leaf_weights").astype(np.float64)
    branches = [
        (node.wholes(f"nodes_{side}nodeids"), node.wholes(f"nodes_{side}leafs").astype(bool))
        for side in ("true", "false")
    ]
    leaf_of = np.concatenate([child[to_leaf] for child, to_leaf in branches])
    children, made = [], n
    for child, to_leaf in branches:
        children.append(np.where(to_leaf, made + np.cumsum(to_leaf) - 1, child))
        made += int(to_leaf.sum())
    root_of = _trees_of(node.wholes("tree_roots"), children[0], children[1], made)
    sets = np.split(
        node.floats("membership_values"), np.flatnonzero(np.isnan(node.floats("membership_values")))
    )
    sets = [part[~np.isnan(part)] for part in sets]
    tracks = node.wholes("nodes_missing_value_tracks_true").astype(bool)
    more = np.full(made - n, LEAF)
    splits = node.floats("nodes_splits")
    return Nodes(
        tree=root_of,
        mode=np.concatenate([mode, more]),
        feature=np.concatenate([node.wholes("nodes_featureids"), more]),
        value=np.concatenate([splits, np.zeros(made - n, dtype=splits.dtype)]),
        members=dict(zip(np.flatnonzero(mode == MEMBER).tolist(), sets, strict=False)),
        yes=np.concatenate([children[0], more]),
        no=np.concatenate([children[1], more]),
        missing_yes=np.concatenate([tracks if len(tracks) else np.zeros(n, dtype=bool), more == 0]),
        **_leaf_weights(
            made, node.whole("n_targets", 1), np.arange(n, made), targets[leaf_of], weights[leaf_of]
        ),
    )


def _trees_of(
    roots: NDArray[np.int64], yes: NDArray[np.int64], no: NDArray[np.int64], n_nodes: int
) -> NDArray[np.int64]:
    """Return the tree of each node, leaves included; -1 for those that no root leads to."""
    if min(yes.min(initial=0), no.min(initial=0), roots.min(initial=0)) < 0:
        raise InputError("its trees have a branch to a node of a negative number.")
    tree = np.full(n_nodes, -1, dtype=np.int64)
    tree[roots] = np.arange(len(roots))
    level = roots
    for _ in range(len(yes) + 1):
        inner = level[level < len(yes)]
        if not len(inner):
            return tree
        level = np.unique(np.concatenate([yes[inner], no[inner]]))
        tree[yes[inner]] = tree[no[inner]] = tree[inner]
    raise InputError("its nodes do not make trees: some go round in circles.")


def _leaf_weights(
    n_nodes: int, n_targets: int, leaves: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any]
) -> dict[str, Any]:
    if (
        not 0 < n_targets <= _MOST_TARGETS
        or targets.min(initial=0) < 0
        or targets.max(initial=0) >= n_targets
    ):
        raise InputError(f"it has {n_targets} outputs, and leaves for the output {targets.max(initial=0)}.")
    table = np.zeros((n_nodes, n_targets))
    np.add.at(table, (leaves, targets), weights)
    return {"weights": table, "has_target": np.isin(np.arange(n_targets), targets)}


def class_labels(node: Node) -> list[Any]:
    return node.texts("classlabels_strings") or node.wholes("classlabels_int64s").tolist()
