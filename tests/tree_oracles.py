"""Brute force for trees on codes, straight from the definitions, and random trees to try it on."""

from itertools import product
from math import factorial

import numpy as np

from fouriershap._trees.codes import CodedTrees, code_trees
from fouriershap._trees.ensemble import TreeEnsemble


class RandomTrees:
    """Grows random ensembles: features repeat on paths, a node may be numerical or categorical."""

    def __init__(self, rng, n_features, categorical=(), n_thresholds=6, no_cover=0.0):
        self.rng, self.n_features, self.n_thresholds = rng, n_features, n_thresholds
        self.categorical = set(categorical)
        self.no_cover = no_cover
        self.columns = {name: [] for name in ("feature", "threshold", "left", "right", "missing", "set")}
        self.cover, self.sets, self.roots = [], [], []

    def _node(self, cover, leaf):
        rng, columns = self.rng, self.columns
        f = -1 if leaf else int(rng.integers(self.n_features))
        columns["feature"].append(f)
        columns["threshold"].append(float(rng.integers(self.n_thresholds)))
        columns["missing"].append(bool(rng.integers(2)))
        columns["set"].append(len(self.sets) if f in self.categorical else -1)
        if f in self.categorical:
            members = np.flatnonzero(rng.integers(2, size=self.n_thresholds))
            self.sets.append(members if len(members) else np.array([0]))
        columns["left"].append(-1)
        columns["right"].append(-1)
        self.cover.append(cover)
        return len(self.cover) - 1

    def _children(self, node, leaves):
        cover = self.cover[node]
        share = self.rng.integers(1, 10) / 10 if self.rng.random() >= self.no_cover else 0.0
        for name, part, leaf in (("left", share, leaves[0]), ("right", 1 - share, leaves[1])):
            self.columns[name][node] = self._node(cover * part, leaf)
        return self.columns["left"][node], self.columns["right"][node]

    def grow(self, depth, p_leaf=0.2):
        self.roots.append(self._node(100.0, depth == 0))
        level = [] if depth == 0 else [self.roots[-1]]
        for d in range(depth):
            last = d == depth - 1
            pairs = [
                self._children(node, (last or self.rng.random() < p_leaf, last or self.rng.random() < p_leaf))
                for node in level
            ]
            level = [child for pair in pairs for child in pair if self.columns["feature"][child] >= 0]

    def chain(self, depth, target=None):
        """A path with leaves on both sides of it; ``target`` (n_features,) whole numbers goes all the way."""
        self.roots.append(self._node(100.0, depth == 0))
        node = self.roots[-1]
        for d in range(depth):
            side = int(self.rng.integers(2) if target is None else not self._goes_left(node, target))
            leaves = [True, True]
            leaves[side] = d == depth - 1
            node = self._children(node, leaves)[side]

    def _goes_left(self, node, row):
        c = self.columns
        value = row[c["feature"][node]]
        return value in self.sets[c["set"][node]] if c["set"][node] >= 0 else value < c["threshold"][node]

    def coded(self, n_outputs=1, vector=False) -> CodedTrees:
        rng, c = self.rng, self.columns
        feature = np.array(c["feature"])
        values = rng.normal(size=(len(feature), n_outputs if vector else 1))
        values[feature >= 0] = 0.0
        n_trees = len(self.roots)
        output = np.full(n_trees, -1) if vector or n_outputs == 1 else rng.integers(n_outputs, size=n_trees)
        ensemble = TreeEnsemble(
            n_features=self.n_features,
            n_outputs=n_outputs,
            dtype=np.float64,
            roots=self.roots,
            tree_output=output,
            feature=feature,
            threshold=c["threshold"],
            left=c["left"],
            right=c["right"],
            missing_left=c["missing"],
            category_set=c["set"],
            set_start=np.concatenate([[0], np.cumsum([len(s) for s in self.sets])]),
            set_categories=np.concatenate([np.empty(0, dtype=int), *self.sets]),
            cover=self.cover,
            values=values,
            base=np.zeros(n_outputs),
        )
        return code_trees(ensemble)


def random_codes(rng, coded, n_rows):
    """(n_features, n_rows) int32, every code equally likely, the missing one included."""
    return np.array([rng.integers(n, size=n_rows) for n in coded.book.n_codes], dtype=np.int32)


def leaf_output(coded, tree, leaf):
    e = coded.ensemble
    out = np.zeros(e.n_outputs)
    if e.tree_output[tree] < 0:
        return out + e.values[leaf]
    out[e.tree_output[tree]] = e.values[leaf, 0]
    return out


def evaluate(coded, row):
    """Prediction (n_outputs,) of one row of codes (n_features,)."""
    e = coded.ensemble
    total = np.zeros(e.n_outputs)
    for tree, node in enumerate(e.roots):
        while e.feature[node] >= 0:
            node = e.left[node] if coded.goes_left(node)[row[e.feature[node]]] else e.right[node]
        total += leaf_output(coded, tree, node)
    return total


def interventional_game(coded, row, background, weights, player_of_feature):
    """S (bool, n_players) -> mean prediction of the hybrids of the row and the background."""

    def value(S):
        hybrids = np.where(S[player_of_feature][:, None], row[:, None], background)
        return np.average([evaluate(coded, h) for h in hybrids.T], axis=0, weights=weights)

    return value


def path_dependent_game(coded, row, player_of_feature):
    """S -> EXPVALUE of Lundberg et al. 2018: absent players take both ways, weighted with the cover."""
    e = coded.ensemble

    def expected(tree, node, S):
        f = e.feature[node]
        if f < 0:
            return leaf_output(coded, tree, node)
        left, right = e.left[node], e.right[node]
        if S[player_of_feature[f]]:
            return expected(tree, left if coded.goes_left(node)[row[f]] else right, S)
        if e.cover[node] == 0:
            return (expected(tree, left, S) + expected(tree, right, S)) / 2
        both = e.cover[left] * expected(tree, left, S) + e.cover[right] * expected(tree, right, S)
        return both / e.cover[node]

    return lambda S: sum(expected(tree, root, S) for tree, root in enumerate(e.roots))


def shapley_values(value, n_players):
    """(n_players, n_outputs) by the sum over all coalitions."""
    worth = {S: value(np.array(S, dtype=bool)) for S in product((0, 1), repeat=n_players)}
    phi = np.zeros((n_players, len(worth[(0,) * n_players])))
    for S, v in worth.items():
        for i in range(n_players):
            if not S[i]:
                size = sum(S)
                share = factorial(size) * factorial(n_players - size - 1) / factorial(n_players)
                phi[i] += share * (worth[(*S[:i], 1, *S[i + 1 :])] - v)
    return phi
