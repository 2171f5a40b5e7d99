"""R^2 on the cube, for whoever asks: uniform points say nothing about SHAP values, but the literature reports them."""

from __future__ import annotations

import numpy as np

from fouriershap.blackbox._bits import exact_code
from fouriershap.blackbox._fidelity import Interval, measure
from fouriershap.blackbox._fit import Fitted
from fouriershap.blackbox._hybrids import hybrid_codes
from fouriershap.blackbox._pool import Pool
from fouriershap.blackbox._queries import Oracle


def cube_fidelity(oracle: Oracle, fitted: Fitted, pool: Pool, n: int, rng: np.random.Generator) -> Interval:
    """R^2 at ``n`` rows that show each level of each player with equal chance."""
    encoding = fitted.encoding
    pool_codes = encoding.encode(pool, "data")
    players = exact_code(encoding, pool_codes).players
    index = np.column_stack([rng.choice(player.rows, n) for player in players]).astype(np.int32)
    codes = hybrid_codes(pool_codes, encoding.player, index)
    answers = oracle.ask(pool, index, codes)
    return Interval(*measure(answers, fitted.surrogate.predict(codes), rng))
