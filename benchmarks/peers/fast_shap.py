"""FastSHAP, a baseline written from Jethani et al. (2021): a network learns to give SHAP values in one pass.

The loss is the Shapley kernel's: the squared difference of v(S) - v(empty) and the sum of the network's values over
S, which are first shifted so that they add up to f(x) - v(empty).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from peers.fast_shap_answers import Answers

LAYERS = {"small": 1, "medium": 3, "large": 5}  # hidden layers of 128
BATCH, LEARNING_RATE, VALIDATION_SHARE, PATIENCE = 64, 1e-3, 0.1, 5


def train(answers: Answers, size: str, epochs: int, seed: int) -> tuple[Any, int]:
    """The network with the best validation loss, and the number of epochs that were run."""
    torch.manual_seed(seed)
    n = answers.X.shape[1]
    widths = [n, *[128] * LAYERS[size], n]
    layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())]
    network = nn.Sequential(*layers[:-1])
    parts = [torch.as_tensor(np.asarray(a, dtype=np.float32)) for a in vars(answers).values()]
    n_held = int(VALIDATION_SHARE * len(answers.X))
    held, kept = [part[:n_held] for part in parts], [part[n_held:] for part in parts]
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    losses: list[float] = []
    while len(losses) < epochs and (not losses or len(losses) - np.argmin(losses) <= PATIENCE):
        for batch in torch.randperm(len(kept[0])).split(BATCH):
            optimiser.zero_grad()
            _loss(network, *(part[batch] for part in kept)).backward()
            optimiser.step()
        with torch.no_grad():
            losses.append(float(_loss(network, *held)))
        if losses[-1] == min(losses):
            best = {name: weight.clone() for name, weight in network.state_dict().items()}
    network.load_state_dict(best)
    return network, len(losses)


def _loss(network: Any, X: Any, subsets: Any, values: Any, totals: Any) -> Any:
    phi = network(X)
    phi = phi + ((totals - phi.sum(dim=1)) / phi.shape[1])[:, None]
    return ((values - (subsets * phi[:, None]).sum(dim=2)) ** 2).mean()
