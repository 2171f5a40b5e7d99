"""LinRegSHAP, a baseline written from Covert and Lee, "Improving KernelSHAP" (2020): paired sampling.

Coalitions are drawn from the Shapley kernel together with their complements, and the least squares problem with its
sum constraint is solved on them. Sampling ends once the largest standard error is below a share of the spread of the
values; that is looked at whenever the number of coalitions has doubled.
"""

from __future__ import annotations

import numpy as np

from peers import Explain, Predict, coalitions

FIRST_PAIRS, RATIO, MOST_SAMPLES = 64, 0.01, 65_536


def linreg_shap(predict: Predict, background: np.ndarray, seed: int, n_samples: int | None = None) -> Explain:
    """Without ``n_samples``, sampling goes on until convergence is detected."""
    n, rng = background.shape[1], np.random.default_rng(seed)
    empty = float(predict(background).mean())

    def sample(row: np.ndarray, pairs: int) -> tuple[np.ndarray, np.ndarray]:
        """Coalitions (pairs, 2, n), each with its complement, and their values (pairs, 2)."""
        z = coalitions.draw(rng, (pairs,), n)
        both = np.stack([z, ~z], axis=1)
        v = coalitions.values(predict, background, row, both.reshape(-1, n)) - empty
        return both.astype(float), v.reshape(-1, 2)

    def explain_row(row: np.ndarray) -> np.ndarray:
        total = float(predict(row[None])[0]) - empty
        z, v = sample(row, FIRST_PAIRS if n_samples is None else max(n_samples // 2, 1))
        while True:
            phi, error = _solve(z, v, total)
            if n_samples is not None or error < RATIO * np.ptp(phi) or v.size >= MOST_SAMPLES:
                return phi
            more = sample(row, len(z))
            z, v = np.concatenate([z, more[0]]), np.concatenate([v, more[1]])

    return lambda X: np.stack([explain_row(row) for row in X])


def _solve(z: np.ndarray, v: np.ndarray, total: float) -> tuple[np.ndarray, float]:
    """The values, and the largest of their standard errors (pairs are the independent samples)."""
    flat = z.reshape(-1, z.shape[-1])
    inverse = np.linalg.pinv(flat.T @ flat / len(flat), hermitian=True)
    b, ones = flat.T @ v.ravel() / len(flat), inverse.sum(axis=1)
    phi = inverse @ b - ones * ((ones @ b - total) / ones.sum())
    gradient = (z * (v - z @ phi)[..., None]).mean(axis=1)
    covariance = inverse @ (gradient.T @ gradient) @ inverse / len(z) ** 2
    return phi, float(np.sqrt(covariance.diagonal().max()))
