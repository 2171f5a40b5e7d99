"""DeepLIFT through shap's DeepExplainer, on the same network as a torch module: it sees all activations."""

from __future__ import annotations

import warnings

import numpy as np

from peers import Explain


def as_torch(weights: tuple[np.ndarray, ...], biases: tuple[np.ndarray, ...]) -> object:
    import torch

    layers: list[torch.nn.Module] = []
    for weight, bias in zip(weights, biases, strict=True):
        linear = torch.nn.Linear(*weight.shape)
        linear.weight.data = torch.as_tensor(weight.T.copy(), dtype=torch.float32)
        linear.bias.data = torch.as_tensor(bias, dtype=torch.float32)
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def deep_lift(
    weights: tuple[np.ndarray, ...], biases: tuple[np.ndarray, ...], background: np.ndarray
) -> Explain:
    import shap
    import torch

    explainer = shap.DeepExplainer(
        as_torch(weights, biases), torch.as_tensor(background, dtype=torch.float32)
    )

    def explain(X: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = torch.as_tensor(X, dtype=torch.float32)
            return np.asarray(explainer.shap_values(rows, check_additivity=False)).reshape(X.shape)

    return explain
