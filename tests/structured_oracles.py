"""Owen, Winter and asymmetric values by their definition: the mean over all orders that respect the structure."""

from itertools import pairwise, permutations

import numpy as np

from fouriershap._shapley.indices import ASYMMETRIC


def members(tree):
    return [player for child in tree for player in (members(child) if isinstance(child, list) else [child])]


def blocks(tree):
    """Yield the members of every group."""
    for child in tree:
        if isinstance(child, list):
            yield members(child)
            yield from blocks(child)


def admissible(kind, tree):
    """All orders of the players that count."""
    n = len(members(tree))
    orders = list(permutations(range(n)))
    if kind == ASYMMETRIC:
        place = {player: at for at, group in enumerate(tree) for player in group}
        return [o for o in orders if all(place[a] <= place[b] for a, b in pairwise(o))]

    def together(order, group):
        at = [order.index(player) for player in group]
        return max(at) - min(at) == len(group) - 1

    return [o for o in orders if all(together(o, group) for group in blocks(tree))]


def by_orders(v, kind, tree):
    """Values (n_players, n_outputs) of a game (2^n_players, n_outputs)."""
    orders = admissible(kind, tree)
    out = np.zeros((len(members(tree)), v.shape[1]))
    for order in orders:
        coalition = 0
        for player in order:
            out[player] += v[coalition | 1 << player] - v[coalition]
            coalition |= 1 << player
    return out / len(orders)
