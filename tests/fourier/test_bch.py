from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap import CapacityError
from fouriershap._fourier import bch
from fouriershap._fourier.gf2 import product, xor_product, xor_span


def key_of(code, positions):
    return np.bitwise_xor.reduce(code.bit_words[positions], axis=1)


def random_positions(rng, n_bits, width, count):
    bits = np.zeros((count, n_bits), dtype=bool)
    for line in bits:
        line[rng.choice(n_bits, rng.integers(0, width + 1), replace=False)] = True
    return bits, bch.list_positions(bits, width)


@pytest.mark.parametrize("m", range(2, 17))
def test_field_is_a_field(m):
    exp, log = bch._field(m)
    order = 2**m - 1
    assert sorted(exp[:order]) == list(range(1, order + 1))  # the polynomial is primitive
    assert (exp[log[1:]] == np.arange(1, order + 1)).all()
    assert (exp[log[0] + log] == 0).all()  # zero times anything


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(40, 5), (63, 3), (64, 2), (80, 5), (236, 5), (236, 8), (1000, 7), (70, 1)]),
)
def test_decode_inverts_the_key(seed, shape):
    n_bits, degree = shape
    code = bch.make_code(n_bits, degree)
    bits, positions = random_positions(np.random.default_rng(seed), n_bits, degree, 20)
    keys = key_of(code, positions)
    found, valid = code.decode(keys)
    assert valid.all()
    assert np.array_equal(found, positions)
    # The measured parities give the same key.
    parities = product(bits.astype(np.uint8), code.rows.T)
    assert np.array_equal(xor_product(parities, code.row_words), keys)


def test_decode_of_every_key_of_a_small_code():
    code = bch.BCHCode.make(12, 2)
    keys = xor_span(code.row_words)
    found, valid = code.decode(keys)
    admissible = [c for d in range(3) for c in combinations(range(12), d)]
    assert valid.sum() == len(admissible)
    assert {tuple(p[p < 12]) for p in found} == set(admissible)
    assert np.array_equal(key_of(code, found), keys[valid])


def test_large_fields_decode_without_a_table():
    code = bch.BCHCode.make(5000, 3)
    assert code.table is None
    _, positions = random_positions(np.random.default_rng(0), 5000, 3, 20)
    found, valid = code.decode(key_of(code, positions))
    assert valid.all()
    assert np.array_equal(found, positions)


def test_only_independent_rows_are_measured():
    assert len(bch.make_code(40, 5).rows) == 27  # of 30
    assert len(bch.make_code(80, 5).rows) == 35
    assert len(bch.make_code(236, 5).rows) == 40


def test_unit_code_where_it_is_no_longer():
    code = bch.make_code(13, 5)
    assert type(code) is bch.Code
    keys = np.array([[0b101], [0b111111]], dtype=np.uint64)
    found, valid = code.decode(keys)
    assert valid.tolist() == [True, False]  # the second has degree 6
    assert found.tolist() == [[0, 2, 13, 13, 13]]


def test_keys_of_several_words_fold_apart():
    keys = np.random.default_rng(0).integers(0, 2, (4096, 2)).astype(np.uint64)
    keys[:, 0] |= np.arange(4096, dtype=np.uint64) << np.uint64(1)
    assert len(np.unique(bch.fold(keys))) == len(np.unique(keys, axis=0))


def test_too_many_bits():
    with pytest.raises(CapacityError, match="1,048,576"):
        bch.BCHCode.make(1 << 20, 2)
