"""R^2 on the cube, for whoever asks: uniform points say nothing about SHAP values, but the literature reports them."""

from __future__ import annotations

import numpy as np

from fouriershap._blackbox.bit_code import exact_code
from fouriershap._blackbox.fidelity import NOTICED, Interval, measure
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.hybrids import hybrid_codes
from fouriershap._blackbox.oracle import Oracle
from fouriershap._rows.pool import Pool


def cube_fidelity(oracle: Oracle, fitted: Fitted, pool: Pool, n: int, rng: np.random.Generator) -> Interval:
    """R^2 at ``n`` rows that show each level of each player with equal chance."""
    encoding = fitted.encoding
    pool_codes = encoding.encode(pool, "data")
    players = exact_code(encoding, pool_codes).players
    index = np.column_stack([rng.choice(player.rows, n) for player in players]).astype(np.int32)
    codes = hybrid_codes(pool_codes, encoding.player, index)
    # Known answers are free, but a representation may repeat their noise.
    is_noisy = fitted.fidelity.noise > NOTICED
    answers = oracle.ask_again(pool, index) if is_noisy else oracle.ask(pool, index, codes)
    return measure(answers, fitted.surrogate.predict(codes), rng)
