"""The trees of LightGBM's text model, all of them at once, from the bytes of the text."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._rows.rules import ZERO_BAND
from fouriershap._trees.assemble import Tree, bits_of, right_above

Fields = dict[bytes, tuple[int, int]]  # where the value of a key begins and ends

END = b"\nend of trees"
_OF_INNER = (
    b"decision_type",
    b"split_feature",
    b"left_child",
    b"right_child",
    b"threshold",
    b"internal_count",
)
_OF_LEAVES = (b"leaf_value", b"leaf_count")
_NO_MISSING = 0  # a kind of missing values


def read_fields(text: bytes) -> tuple[Fields, list[Fields], int]:
    """Find the ``key=value`` lines of the header and of each tree, and where the trees end; flags have no value."""
    end = text.rfind(END)
    if end < 0:
        raise ValueError("it has no line 'end of trees'; the file is truncated")
    header: Fields = {}
    trees: list[Fields] = []
    found, at = header, 0
    while at < end:
        stop = text.find(b"\n", at, end)
        stop = end if stop < 0 else stop
        equals = text.find(b"=", at, stop)
        key_end = stop if equals < 0 else equals
        key = text[at:key_end].rstrip()
        if key == b"Tree":
            found = {}
            trees.append(found)
        found[key] = (min(key_end + 1, stop), stop)
        at = stop + 1
    if b"tree_sizes" in header:
        sizes = [int(size) for size in text[slice(*header[b"tree_sizes"])].split()]
        n_bytes = end + 1 - text.find(b"Tree=", header[b"tree_sizes"][1]) if trees else 0
        if (len(sizes), sum(sizes)) != (len(trees), n_bytes):
            raise ValueError(
                f"its tree_sizes lists {len(sizes)} trees of {sum(sizes)} bytes, but it holds {len(trees)} of {n_bytes}"
            )
    return header, trees, end


def missing_kind(decision: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what counts as missing at a node: nothing, zero or NaN."""
    return decision >> 2 & 3


class TextTrees:
    """The numbers of all trees by key, parsed at once: those of inner nodes, and those of leaves."""

    def __init__(self, text: bytes, fields: list[Fields]) -> None:
        self.text, self.fields = text, fields
        self.n_leaves = np.array(
            [int(text[slice(*found[b"num_leaves"])]) for found in fields], dtype=np.int64
        )
        if self.n_leaves.min(initial=1) < 1:
            raise ValueError(f"num_leaves of a tree is {self.n_leaves.min()}")
        self.n_inner = self.n_leaves - 1
        self.sizes = self.n_leaves + self.n_inner
        # A tree that is one leaf may leave out how many rows reached it.
        counted = [bool(self._value(found, b"leaf_count", b"")) for found in fields]
        sizes = np.array([*[self.n_inner] * len(_OF_INNER), self.n_leaves, self.n_leaves * counted])
        numbers = dict(zip((*_OF_INNER, *_OF_LEAVES), self._parse(sizes), strict=True))
        self.decision, self.feature, self.left, self.right = (
            numbers[key].astype(np.int64) for key in _OF_INNER[:4]
        )
        self.threshold, self.inner_count = (numbers[key] for key in _OF_INNER[4:])
        self.leaf_value, self.leaf_count = numbers[b"leaf_value"], np.zeros(self.n_leaves.sum())
        self.leaf_count[np.repeat(counted, self.n_leaves)] = numbers[b"leaf_count"]

    def _value(self, found: Fields, key: bytes, default: bytes) -> bytes:
        return self.text[slice(*found[key])].strip() if key in found else default

    def _parse(self, sizes: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Return the numbers of each key; ``sizes`` (n_keys, n_trees) says how many a tree has."""
        keys = (*_OF_INNER, *_OF_LEAVES)
        bounds = np.array([found.get(key, (0, 0)) for key in keys for found in self.fields], dtype=np.int64)
        some = np.flatnonzero(sizes)
        start, count = bounds[some, 0], sizes.ravel()[some]
        # Seen before there is memory for them. Counts come from the file: twice a large one would be negative.
        few = count > (bounds[some, 1] - start + 1) // 2
        n_read = int(few.argmax()) if few.any() else len(some)
        numbers = np.empty(count[:n_read].sum())
        n_read = kernels.numbers.parse_lines(self._bytes, start[:n_read], count[:n_read], numbers)
        if n_read < len(some):
            key, tree = divmod(int(some[n_read]), len(self.fields))
            raise ValueError(
                f"{keys[key].decode()} of tree {tree} is not as many numbers as its num_leaves says"
            )
        return np.split(numbers, np.cumsum(sizes.sum(axis=1))[:-1])

    @cached_property
    def _bytes(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.text, dtype=np.uint8)

    def in_line(self, scale: float) -> Tree:
        """All trees end to end: of each the inner nodes, then the leaves; a negative child c is the leaf -c - 1.

        Leaves of linear trees have a second value: their number.
        """
        n_nodes, first = int(self.sizes.sum()), np.cumsum(self.sizes) - self.sizes
        of_inner = _places(first, self.n_inner)
        of_leaves = _places(first + self.n_inner, self.n_leaves)
        n_inner = np.repeat(self.n_inner, self.n_inner)

        def spread(of: NDArray[np.int64], numbers: NDArray[Any], elsewhere: Any) -> NDArray[Any]:
            out = np.full(n_nodes, elsewhere, dtype=numbers.dtype)
            out[of] = numbers
            return out

        cover = spread(of_leaves, self.leaf_count, 0.0)
        cover[of_inner] = self.inner_count
        values = spread(of_leaves, self.leaf_value * scale, 0.0)[:, None]
        if self.is_linear:  # by their numbers, leaves are found again where nodes are
            values = np.append(values, spread(of_leaves, np.arange(len(of_leaves)), -1)[:, None], axis=1)
        return Tree(
            feature=spread(of_inner, self.feature, -1),
            threshold=spread(of_inner, _canonical(self.threshold), 0.0),
            left=spread(of_inner, np.where(self.left < 0, n_inner - self.left - 1, self.left), -1),
            right=spread(of_inner, np.where(self.right < 0, n_inner - self.right - 1, self.right), -1),
            missing_left=spread(of_inner, _missing_left(self.decision, self.threshold), False),
            cover=cover,
            values=values,
            categories=self._categories(of_inner),
        )

    @cached_property
    def is_linear(self) -> bool:
        """Whether leaves of some tree hold linear functions."""
        return any(self._value(found, b"is_linear", b"0") != b"0" for found in self.fields)

    def linear_leaves(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Return the constant of each leaf, and leaf, column and slope of each term; leaves are those of all trees."""
        constant, n_terms = self.leaf_value.copy(), np.zeros(len(self.leaf_value), dtype=np.int64)
        columns, slopes = [np.empty(0)], [np.empty(0)]
        ends = np.cumsum(self.n_leaves).tolist()
        for k, (found, end) in enumerate(zip(self.fields, ends, strict=True)):
            if self._value(found, b"is_linear", b"0") == b"0":
                continue
            keys = (b"leaf_const", b"num_features", b"leaf_features", b"leaf_coeff")
            numbers = [np.array(self._value(found, key, b"").split(), dtype=np.float64) for key in keys]
            mine = slice(end - int(self.n_leaves[k]), end)
            n_listed = [int(self.n_leaves[k])] * 2 + [int(numbers[1].sum())] * 2
            if [len(each) for each in numbers] != n_listed or (numbers[1] < 0).any():
                raise ValueError(f"the linear functions of tree {k} are not as many as its num_leaves says")
            constant[mine], n_terms[mine] = numbers[:2]
            columns.append(numbers[2])
            slopes.append(numbers[3])
        leaf = np.repeat(np.arange(len(n_terms)), n_terms).astype(np.int32)
        return constant, leaf, np.concatenate(columns).astype(np.int32), np.concatenate(slopes)

    def _categories(self, of_inner: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
        """Return the categories that go left, by node."""
        found: dict[int, NDArray[np.int64]] = {}
        nodes = np.flatnonzero(self.decision & 1)
        trees = np.searchsorted(np.cumsum(self.n_inner), nodes, side="right")
        for tree in np.unique(trees).tolist():
            mine = self.fields[tree]
            words = np.array(self.text[slice(*mine[b"cat_threshold"])].split(), dtype=np.uint32)
            bounds = np.array(self.text[slice(*mine[b"cat_boundaries"])].split(), dtype=np.int64)
            mine = nodes[trees == tree]
            for node, index in zip(
                of_inner[mine].tolist(), self.threshold[mine].astype(np.int64), strict=True
            ):
                found[node] = bits_of(words[bounds[index] : bounds[index + 1]])
        return found


def _places(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """first[0], first[0] + 1, ... so many as sizes[0], then from first[1] on, and so forth."""
    return np.arange(sizes.sum()) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)


def _canonical(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least number that goes right. LightGBM reads all ``|x| <= ZERO_BAND`` as 0.0 before it compares."""
    above = right_above(threshold, np.float64)
    inside = (threshold >= -ZERO_BAND) & (threshold <= ZERO_BAND)
    zero_side = np.where(threshold < 0, -ZERO_BAND, np.nextafter(ZERO_BAND, np.inf))
    return np.where(inside, zero_side, above)


def _missing_left(decision: NDArray[np.int64], threshold: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where NaN goes: as 0.0 unless missing values were seen in training; right at categorical nodes."""
    left = np.where(missing_kind(decision) == _NO_MISSING, threshold >= 0, decision & 2 != 0)
    left[decision & 1 != 0] = False
    return left
