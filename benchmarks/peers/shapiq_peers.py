"""shapiq's approximators on the interventional game, with the whole background."""

from __future__ import annotations

import contextlib
import io
import warnings

import numpy as np

from peers import Explain, Predict, coalitions

BUDGET = 2048  # coalitions per row
DEGREES = {"spex": 3}  # of the code; shapiq's default, 5, needs more coalitions than the budget for wide rows


def shapiq(predict: Predict, background: np.ndarray, seed: int, *, method: str = "kernelshap") -> Explain:
    import shapiq as library

    n = background.shape[1]

    def approximator() -> object:
        if method == "kernelshap":
            return library.KernelSHAP(n=n, random_state=seed)
        if method == "oddshap":
            return library.OddSHAP(n=n, random_state=seed)
        if method == "polyshap":  # pairs of features; as many as the coalitions can tell apart
            terms = {"max_terms": max(n + 1, BUDGET // 2)} if n * (n + 1) // 2 >= BUDGET // 2 else {}
            return library.PolySHAP(n=n, random_state=seed, **terms)
        if method == "proxyshap":
            return library.ProxySHAP(n=n, index="SV", max_order=1, random_state=seed)
        if method == "proxyspex":
            return library.ProxySPEX(n=n, index="SV", max_order=1, random_state=seed)
        return library.SPEX(n=n, index="SV", max_order=1, random_state=seed, degree_parameter=DEGREES[method])

    def explain_row(row: np.ndarray) -> np.ndarray:
        def game(z: np.ndarray) -> np.ndarray:
            return coalitions.values(predict, background, row, z)

        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            found = approximator().approximate(budget=min(BUDGET, 2**n), game=game)
        phi = np.zeros(n)
        for coalition, position in found.interaction_lookup.items():
            if len(coalition) == 1:
                phi[coalition[0]] = found.values[position]
        return phi

    return lambda X: np.stack([explain_row(row) for row in X])
