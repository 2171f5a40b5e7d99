import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap._fourier import gf2

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, n_rows=st.integers(1, 6), n_columns=st.integers(1, 6))
def test_pivots_are_a_basis(seed, n_rows, n_columns):
    matrix = np.random.default_rng(seed).integers(0, 2, (n_rows, n_columns), np.uint8)
    span = {tuple(row) for row in gf2.xor_span(matrix)}
    columns = gf2.pivots(matrix)
    assert 2 ** len(columns) == len(span)
    # Restricted to the pivot columns nothing collapses: they are independent.
    assert len({tuple(np.array(row)[columns]) for row in span}) == len(span)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, size=st.integers(1, 40))
def test_random_invertible(seed, size):
    matrix, inverted = gf2.random_invertible(size, np.random.default_rng(seed))
    assert np.array_equal(gf2.product(matrix, inverted), np.eye(size, dtype=np.uint8))


def test_singular_has_no_inverse():
    assert gf2.inverse(np.ones((2, 2), np.uint8)) is None


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_full_rank(seed):
    assert len(gf2.pivots(gf2.random_full_rank(5, 6, np.random.default_rng(seed)))) == 5


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n_words=st.integers(1, 3))
def test_xor_product_selects_lines_of_the_span(seed, n_words):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**63, (5, n_words)).astype(np.uint64)
    bits = (np.arange(32)[:, None] >> np.arange(5) & 1).astype(np.uint8)
    assert np.array_equal(gf2.xor_product(bits, words), gf2.xor_span(words))
