"""Splitting trees with too many players on some path into two parts that add up to them: to stream and to walk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fouriershap._shapley.trees.walk import WalkTrees

_LEAF = -1


def cut_wide(trees: WalkTrees, most_players: int) -> tuple[WalkTrees, WalkTrees | None]:
    """Return the trees cut to ``most_players`` players on a path, and the rest; None where nothing is cut off.

    A subtree with one player too many becomes a leaf of value 0. The rest is a tree of its own: the paths to such
    subtrees, with leaves of value 0 beside them, which cost next to nothing to walk.
    """
    wide = np.flatnonzero(trees.tree_players > most_players)
    if not len(wide):
        return trees, None
    nodes, values, roots = trees.nodes, trees.values, trees.roots
    near, near_values, far, far_values = nodes.copy(), values.copy(), nodes.copy(), values.copy()
    for root in roots[wide].tolist():
        cuts, beside = _split(trees, root, most_players)
        near[cuts, 0], near_values[cuts] = _LEAF, 0.0
        far[beside, 0], far_values[beside] = _LEAF, 0.0
    rest = trees.part(np.isin(np.arange(trees.n_trees), wide))
    return replace(trees, nodes=near, values=near_values), replace(rest, nodes=far, values=far_values)


def _split(trees: WalkTrees, root: int, most_players: int) -> tuple[list[int], list[int]]:
    """Return the topmost nodes whose player is one too many on their path, and the nodes beside these paths."""
    nodes, owner = trees.nodes, trees.players.tolist()
    parent = {root: root}
    cuts, pending = [], [(root, 0)]
    while pending:
        node, before = pending.pop()
        head = int(nodes[node, 0])
        if head < 0:
            continue
        players = before | 1 << owner[head >> 1]
        if players.bit_count() > most_players:
            cuts.append(node)
            continue
        for child in nodes[node, 2:].tolist():
            parent[child] = node
            pending.append((child, players))
    on_paths = set()
    for cut in cuts:
        node = cut
        while node not in on_paths:
            on_paths.add(node)
            node = parent[node]
    inner = on_paths.difference(cuts)
    children = {child for node in inner for child in nodes[node, 2:].tolist()}
    return cuts, sorted(children - on_paths)
