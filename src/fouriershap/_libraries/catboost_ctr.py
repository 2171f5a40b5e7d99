"""CatBoost's target statistics (CTRs) as ordinary splits on labels.

A CTR replaces a combination of labels and of bits (whether ``x > border``, whether a label is a certain one) by a
number from a table of its model: a mean of the target, or a count. A split on it is true for some combinations, and
has one answer for all combinations that the table lacks. As a tree of ordinary splits: group the labels of the first
feature that lead to the same function of the others, and go on with these.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.messages import truncated_repr
from fouriershap._libraries.catboost_tables import ADVICE, COUNTS, Table, Variable, decode, table_values
from fouriershap._trees.assemble import Tree, join_in_line, right_above

MOST_NODES = 500_000  # of a tree
MOST_NODES_TOGETHER = 5_000_000
_MOST_CHOICES = 10  # features whose subsets are tried

Ints = NDArray[np.int64]
Template = Any  # False, True, or (record, feature, levels that go left, Template, Template)


class Features(NamedTuple):
    """Columns of the model's features, and its labels.

    ``codes`` maps each categorical column to {hash of a label: code}; codes are added as they come up.
    """

    float_column: dict[int, int]
    category_column: dict[int, int]
    nan_right: dict[int, bool]
    codes: dict[int, dict[int, int]]


def read_nodes(document: dict[str, Any], features: Features, scale: float, width: int) -> dict[str, Any]:
    """Return the nodes of a CatBoost model with CTRs, as `join` does.

    Covers are kept where every CTR is of one feature, else zero: branches within a combination have no counts.
    """
    grower = _Grower(document, features)
    if "oblivious_trees" in document:
        trees = [_oblivious(tree, grower, scale, width) for tree in document["oblivious_trees"]]
    else:
        trees = [_nested(tree, grower, scale, width) for tree in document["trees"]]
    sizes = [grower.grow(tree, number) for number, tree in enumerate(trees)]
    return grower.nodes(trees, np.array(sizes), width)


class _Decisions(NamedTuple):
    """A tree of splits: state v leads to ``children[v]``, (if false, if true), or is a leaf (a template of None)."""

    templates: list[Template | None]
    children: list[tuple[int, int]]
    values: NDArray[np.float64]  # (n_states, width)
    cover: NDArray[np.float64]


def _oblivious(document: dict[str, Any], grower: _Grower, scale: float, width: int) -> _Decisions:
    """Read a tree with one split per level: large templates come last, where equal branches can be merged."""
    splits = document["splits"] or []
    depth = len(splits)
    found = grower.templates(splits)
    # Without combinations, the last split is the root, as in CatBoost's own SHAP values.
    order = sorted(range(depth), key=lambda s: (_size(found[s]), -s))
    n_inner = 2**depth - 1
    heap = np.arange(2**depth)
    leaf = np.zeros(2**depth, dtype=np.int64)
    for level, split in enumerate(order):
        leaf |= (heap >> (depth - 1 - level) & 1) << split
    values = np.zeros((n_inner + 2**depth, width))
    values[n_inner:] = np.reshape(document["leaf_values"], (2**depth, width))[leaf] * scale
    cover = np.zeros(len(values))
    cover[n_inner:] = np.asarray(document.get("leaf_weights", np.zeros(2**depth)), dtype=np.float64)[leaf]
    templates = [found[split] for level, split in enumerate(order) for _ in range(2**level)]
    children = [(2 * v + 1, 2 * v + 2) for v in range(n_inner)]
    return _Decisions(templates + [None] * 2**depth, children, values, cover)


def _nested(document: dict[str, Any], grower: _Grower, scale: float, width: int) -> _Decisions:
    """Read nodes inside nodes: left is false, right is true."""
    nodes, children = [document], []
    for node in nodes:  # grows while it is walked
        children.append((len(nodes), len(nodes) + 1))
        if "split" in node:
            nodes += [node["left"], node["right"]]
    is_leaf = np.array(["split" not in node for node in nodes])
    values, cover = np.zeros((len(nodes), width)), np.zeros(len(nodes))
    for v in np.flatnonzero(is_leaf):
        values[v] = np.asarray(nodes[v]["value"], dtype=np.float64) * scale
        cover[v] = nodes[v]["weight"]
    found = iter(grower.templates([node["split"] for node in nodes if "split" in node]))
    return _Decisions([None if leaf else next(found) for leaf in is_leaf], children, values, cover)


def _size(template: Template) -> int:
    return 0 if isinstance(template, bool) else 1 + _size(template[3]) + _size(template[4])


class _Grower:
    """Splits as templates, and trees grown from them.

    Levels of a feature are the bits of an integer: of a number its intervals, of a label its codes and, as the last
    bit, all labels that the model does not know.
    """

    def __init__(self, document: dict[str, Any], features: Features) -> None:
        info = document["features_info"]
        self._features = features
        self._ctrs = info["ctrs"]
        floats, labels = info.get("float_features", []), info.get("categorical_features", [])
        n_cuts = sum(len(f.get("borders") or []) for f in floats)
        n_cuts += sum(len(f.get("values") or []) for f in labels)
        # Splits are numbered: borders, then one-hot values, then the borders of CTRs.
        self._ctr_start = n_cuts + np.cumsum([0, *(len(ctr["borders"]) for ctr in self._ctrs)])
        for f in labels:
            for value in f.get("values") or []:
                self._code(features.category_column[f["feature_index"]], value)
        elements = {ctr["identifier"]: self._variables(ctr["elements"]) for ctr in self._ctrs}
        self._tables = decode(document["ctr_data"], elements, features.codes)
        self._sort_labels()
        self._nan_right = {column: features.nan_right[f] for f, column in features.float_column.items()}
        cuts = {features.float_column[f["feature_index"]]: set(f.get("borders") or []) for f in floats}
        for variable in (variable for found in elements.values() for variable in found):
            if variable.kind == "border":
                cuts[variable.feature].add(variable.cut)
        self._borders = {f: np.unique(np.array(list(found), np.float32)) for f, found in cuts.items()}
        self._full = {f: (1 << len(found) + 1) - 1 for f, found in self._borders.items()}
        self._full |= {f: (1 << len(codes) + 1) - 1 for f, codes in features.codes.items()}
        self._records: dict[tuple[int, int], int] = {}
        self._of_split: dict[Any, Template] = {}
        self._combines = any(len(found) > 1 for found in elements.values())
        self._masks = dict(self._full)
        self._code_of_node: list[int] = []  # a record, or ~state of a leaf
        self._skip: list[int] = []  # from a node to its right child

    def _code(self, feature: int, value: int) -> int:
        codes = self._features.codes[feature]
        return codes.setdefault(value & 0xFFFFFFFF, len(codes))

    def _variables(self, elements: list[dict[str, Any]]) -> list[Variable]:
        found = []
        for element in elements:
            kind = element["combination_element"]
            if kind == "float_feature":
                column = self._features.float_column[element["float_feature_index"]]
                found.append(Variable(column, "border", element["border"]))
                continue
            column = self._features.category_column[element["cat_feature_index"]]
            if kind == "cat_feature_value":
                found.append(Variable(column, "label", 0))
            else:
                self._code(column, element["value"])
                found.append(Variable(column, "value", element["value"]))
        return found

    def _sort_labels(self) -> None:
        """Give labels between the same borders consecutive codes, since tables cut codes into intervals."""
        keys: dict[int, list[tuple[bool, int, Ints]]] = {}
        for ctr in self._ctrs:
            table = self._tables[ctr["identifier"]]
            if len(table.variables) > 1:
                continue
            feature = table.variables[0].feature
            value, unseen = table_values(ctr, table)
            of_label = np.full(len(self._features.codes[feature]), unseen)
            of_label[table.cells[:, 0]] = value[table.entry]
            interval = np.searchsorted(np.array(ctr["borders"], dtype=np.float32), of_label)
            keys.setdefault(feature, []).append(
                (ctr["ctr_type"] not in COUNTS, len(ctr["borders"]), interval)
            )
        for feature, found in keys.items():
            found.sort(key=lambda key: key[:2])  # the last is compared first
            order = np.lexsort([interval for _, _, interval in found])
            labels = np.array(list(self._features.codes[feature]))[order].tolist()
            self._features.codes[feature].clear()
            self._features.codes[feature].update({label: code for code, label in enumerate(labels)})
            rank = np.argsort(order)
            for table in self._tables.values():
                for i, variable in enumerate(table.variables):
                    if variable.feature == feature and variable.kind == "label":
                        table.cells[:, i] = rank[table.cells[:, i]]

    def templates(self, splits: list[dict[str, Any]]) -> list[Template]:
        """Return the splits of a tree as trees of tests."""
        ctrs = [self._ctr(split) for split in splits if split["split_type"] == "OnlineCtr"]
        combined = [self._tables[ctr["identifier"]].variables for ctr in ctrs]
        sets = {frozenset(v.feature for v in variables if v.kind == "label") for variables in combined}
        first = self._first_features({found for found in sets if len(found) > 1})
        return [self._template(split, first) for split in splits]

    def _first_features(self, combined: set[frozenset[int]]) -> frozenset[int]:
        """Return the features to tell apart first: all but one of each combination, with few labels together.

        Once these are known, every split is one set of labels of one feature.
        """
        features = sorted(frozenset().union(*combined))
        every = frozenset(features)
        if len(features) > _MOST_CHOICES:
            return every
        chosen = [frozenset(some) for n in range(len(features)) for some in combinations(features, n)]
        enough = [some for some in chosen if all(len(found - some) <= 1 for found in combined)]
        codes = self._features.codes
        return min(enough, key=lambda some: math.prod(len(codes[f]) for f in some), default=every)

    def _ctr(self, split: dict[str, Any]) -> dict[str, Any]:
        place = int(np.searchsorted(self._ctr_start, split["split_index"], side="right")) - 1
        found: dict[str, Any] = self._ctrs[place]
        return found

    def _template(self, split: dict[str, Any], first: frozenset[int]) -> Template:
        kind = split["split_type"]
        if kind == "FloatFeature":
            f = self._features.float_column[split["float_feature_index"]]
            return self._node(f, self._up_to(f, split["border"]), False, True)
        if kind == "OneHotFeature":
            f = self._features.category_column[split["cat_feature_index"]]
            return self._node(f, 1 << self._code(f, split["value"]), True, False)
        if kind != "OnlineCtr":
            raise UnsupportedModelError(
                f"model is a CatBoost model with splits of the unknown type {truncated_repr(kind)}; update fouriershap."
            )
        ctr = self._ctr(split)
        table = self._tables[ctr["identifier"]]
        key = split["split_index"], first.intersection(v.feature for v in table.variables)
        if key not in self._of_split:
            self._of_split[key] = self._of_ctr(ctr, table, split["border"], first)
        return self._of_split[key]

    def _of_ctr(self, ctr: dict[str, Any], table: Table, border: float, first: frozenset[int]) -> Template:
        """Return the tree of a split on a CTR."""
        value, unseen = table_values(ctr, table)
        default = bool(unseen > np.float32(border))
        other = (value > np.float32(border)) != default
        # In the same order in every split of a tree, so that splits share branches.
        variables = table.variables
        size = [len(self._features.codes[v.feature]) if v.kind == "label" else 2 for v in variables]
        last = [v.kind == "label" and v.feature not in first for v in variables]
        order = sorted(range(len(size)), key=lambda i: (last[i], size[i], variables[i]))
        strides = [1]
        for i in order[:0:-1]:
            strides.insert(0, strides[0] * size[i])
        if strides[0] * size[order[0]] >= 1 << 62:
            raise UnsupportedModelError(
                f"model is a CatBoost model with a combination of {len(size)} features that has too many labels to be "
                f"read. {ADVICE}"
            )
        if len(order) == 1:
            codes = table.cells[other[table.entry], 0]
            return self._node(variables[0].feature, self._levels(variables[0], codes), not default, default)
        keys = np.sort(table.cells[other[table.entry]][:, order] @ np.array(strides, dtype=np.int64))
        return self._branch(keys, [variables[i] for i in order], strides, default)

    def _branch(self, keys: Ints, variables: list[Variable], strides: list[int], default: bool) -> Template:
        """Return the tree that is ``not default`` at these sorted cells (mixed radix numbers)."""
        if not len(keys):
            return default
        if not variables:
            return not default
        first, rest = keys // strides[0], keys % strides[0]
        starts = np.flatnonzero(np.diff(first, prepend=-1))
        groups: dict[bytes, list[int]] = {}  # with the same rest
        data, ends = rest.tobytes(), [*(8 * starts).tolist(), 8 * len(rest)]
        for number, (begin, end) in enumerate(pairwise(ends)):
            groups.setdefault(data[begin:end], []).append(number)
        parts = []
        left_over = self._full[variables[0].feature]
        for key, numbers in groups.items():
            mask = self._levels(variables[0], first[starts[numbers]])
            left_over &= ~mask
            part = np.frombuffer(key, dtype=np.int64)
            parts.append((mask, self._branch(part, variables[1:], strides[1:], default)))
        if left_over:
            parts.insert(0, (left_over, default))
        if variables[0].kind == "border":  # what is at most the border comes first
            parts.sort(key=lambda part: part[0] & -part[0])
        return self._choose(variables[0].feature, parts)

    def _levels(self, variable: Variable, values: Ints) -> int:
        """Return the levels of a variable's feature at which it has one of these values."""
        if variable.kind == "label":
            bits = np.zeros(int(values.max(initial=0)) + 1, dtype=np.uint8)
            bits[values] = 1
            return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
        full = self._full[variable.feature]
        if variable.kind == "border":
            no = self._up_to(variable.feature, variable.cut)
        else:
            no = full & ~(1 << self._code(variable.feature, int(variable.cut)))
        return sum(full & ~no if value else no for value in np.unique(values))

    def _choose(self, feature: int, parts: list[tuple[int, Template]]) -> Template:
        """Return a balanced tree over groups of levels."""
        if len(parts) == 1:
            return parts[0][1]
        half = len(parts) // 2
        mask = 0
        for levels, _ in parts[:half]:
            mask |= levels
        return self._node(
            feature, mask, self._choose(feature, parts[:half]), self._choose(feature, parts[half:])
        )

    def _up_to(self, feature: int, border: float) -> int:
        """Return the levels of a number that are at most a border."""
        return (2 << int(np.searchsorted(self._borders[feature], np.float32(border)))) - 1

    def _node(self, feature: int, mask: int, left: Template, right: Template) -> Template:
        """Return a test whether the level is in ``mask``; category sets never hold the unknown label."""
        if feature in self._features.codes and mask >> len(self._features.codes[feature]) & 1:
            mask, left, right = self._full[feature] & ~mask, right, left
        record = self._records.setdefault((feature, mask), len(self._records))
        return record, feature, mask, left, right

    def grow(self, tree: _Decisions, number: int) -> int:
        """Append the nodes of a tree in preorder; return how many there are."""
        codes, skip, masks = self._code_of_node, self._skip, self._masks
        templates, children = tree.templates, tree.children
        start = len(codes)

        def visit(template: Template, state: int) -> None:
            while True:
                if template is None:
                    codes.append(~state)
                    skip.append(0)
                    return
                if isinstance(template, bool):
                    state = children[state][template]
                    template = templates[state]
                    continue
                record, feature, mask, left, right = template
                before = masks[feature]
                inside = before & mask
                # Covers count rows by the statistics of training, which lead them to leaves that no row reaches later.
                if (inside and inside != before) or not self._combines:
                    break
                template = left if inside else right
            node = len(codes)
            if node - start > MOST_NODES:
                raise _too_large(f"tree {number} has more than {MOST_NODES:,} nodes")
            codes.append(record)
            skip.append(0)
            masks[feature] = inside
            visit(left, state)
            middle = len(codes)
            masks[feature] = before & ~mask
            visit(right, state)
            masks[feature] = before
            if len(codes) - middle == middle - node - 1 and codes[node + 1 : middle] == codes[middle:]:
                del codes[middle:], skip[middle:], codes[node], skip[node]  # both sides are the same
            else:
                skip[node] = middle - node

        visit(templates[0], 0)
        if len(codes) > MOST_NODES_TOGETHER:
            raise _too_large(f"the trees have more than {MOST_NODES_TOGETHER:,} nodes")
        return len(codes) - start

    def nodes(self, trees: list[_Decisions], sizes: Ints, width: int) -> dict[str, Any]:
        """Return the arrays of all trees that were grown; nodes with equal tests share a category set."""
        code, skip = np.array(self._code_of_node), np.array(self._skip)
        is_leaf = code < 0
        tree = np.repeat(np.arange(len(trees)), sizes)
        local = np.arange(len(code)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first_state = np.cumsum([0, *(len(t.values) for t in trees)])[:-1]
        state = np.where(is_leaf, ~code, 0) + first_state[tree]
        values = np.concatenate([t.values for t in trees])[state]
        cover = np.where(is_leaf, np.concatenate([t.cover for t in trees])[state], 0.0)
        cover = np.zeros(len(code)) if self._combines else _add_up(cover, skip)
        used, record = np.unique(code, return_inverse=True)
        n_leaf_codes = int((used < 0).sum())
        every = list(self._records)
        records = [every[number] for number in used[n_leaf_codes:]]
        tests = [self._test(feature, mask) for feature, mask in records]
        threshold, missing_left, members = zip(*tests, strict=True) if tests else ((), (), ())
        feature = np.array([feature for feature, _ in records], dtype=np.int64)
        is_set = np.array([found is not None for found in members], dtype=bool)
        sets = [found for found in members if found is not None]
        record = np.where(is_leaf, len(tests), record - n_leaf_codes)  # the last is for leaves
        grown = Tree(
            feature=np.append(feature, -1)[record],
            threshold=np.append(np.array(threshold, dtype=np.float64), 0.0)[record],
            left=np.where(is_leaf, -1, local + 1),
            right=np.where(is_leaf, -1, local + skip),
            missing_left=np.append(np.array(missing_left, dtype=bool), False)[record],
            cover=cover,
            values=values.reshape(-1, width),
        )
        return join_in_line(grown, sizes) | {
            "category_set": np.append(np.where(is_set, np.cumsum(is_set) - 1, -1), -1)[record],
            "set_start": np.cumsum([0, *map(len, sets)]),
            "set_categories": np.concatenate([*sets, np.empty(0, dtype=np.int64)]),
        }

    def _test(self, feature: int, mask: int) -> tuple[float, bool, Ints | None]:
        """Return threshold, side of missing values, and category set of a test."""
        if feature in self._features.codes:
            data = np.frombuffer(mask.to_bytes(mask.bit_length() // 8 + 1, "little"), dtype=np.uint8)
            return 0.0, False, np.flatnonzero(np.unpackbits(data, bitorder="little"))
        border = self._borders[feature][mask.bit_count() - 1]
        return float(right_above(np.array(border), np.float32)), not self._nan_right[feature], None


def _too_large(what: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        "model is a CatBoost model with target statistics (CTR) of combinations of features, and "
        f"{what} once combinations are turned into ordinary splits. {ADVICE}"
    )


def _add_up(cover: NDArray[np.float64], skip: Ints) -> NDArray[np.float64]:
    """Return covers of all nodes, in preorder, from those of leaves."""
    total = cover.tolist()
    steps = skip.tolist()
    for v in range(len(total) - 1, -1, -1):
        if steps[v]:
            total[v] = total[v + 1] + total[v + steps[v]]
    return np.array(total)
