"""Counter-based random numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlearn.core.random import (
    Purpose,
    box_muller,
    check_seed,
    log,
    permutation,
    permutations,
    philox,
    random_uint64,
    sincos_turns,
    uniform,
)

# Known answers of philox4x32-10, published with the Random123 library (kat_vectors).
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_philox_gives_the_published_answers(counter, key, expected):
    assert tuple(philox(counter, key[0] | key[1] << 32)) == expected


def test_a_number_does_not_depend_on_the_rest_of_the_batch():
    many = random_uint64(3, Purpose.SHAPE, np.arange(50), 2, count=7)
    alone = random_uint64(3, Purpose.SHAPE, 31, 2, count=7)
    assert (many[31] == alone).all()
    longer = random_uint64(3, Purpose.SHAPE, 31, 2, count=11)
    assert (longer[:7] == alone).all()


def test_seeds_purposes_indices_and_rows_share_no_numbers():
    numbers = np.concatenate(
        [
            random_uint64(seed, purpose, np.arange(20), row, count=4).reshape(-1)
            for seed in (0, 1, 2**32)
            for purpose in Purpose
            for row in (0, 1)
        ]
        + [random_uint64(0, Purpose.SHAPE, 2**32 + np.arange(20), count=4).reshape(-1)]
    )
    assert len(np.unique(numbers)) == len(numbers)


def test_uniform_numbers_are_uniform():
    u = np.sort(uniform(9, Purpose.FACTORS, 0, np.arange(20_000)).reshape(-1))
    gap = np.abs(u - (np.arange(len(u)) + 0.5) / len(u)).max()
    assert gap < 1.95 / math.sqrt(len(u))  # Kolmogorov-Smirnov, one in a thousand
    assert u[0] >= 0
    assert u[-1] < 1


def test_normal_numbers_have_normal_moments():
    u = uniform(5, Purpose.SHAPE, np.arange(100_000), count=2)
    x, y = box_muller(u[:, 0], u[:, 1])
    both = np.concatenate((x, y))
    assert abs(both.mean()) < 0.01
    assert abs(both.std() - 1) < 0.01
    assert abs((both**4).mean() - 3) < 0.1
    assert abs((x * y).mean()) < 0.01


@given(st.floats(1e-300, 1e300))
def test_log_agrees_with_the_library(x):
    assert math.isclose(float(log(np.array([x]))[0]), math.log(x), rel_tol=1e-14, abs_tol=1e-15)


@given(st.floats(-1000, 1000))
def test_sine_and_cosine_agree_with_the_library(turns):
    sine, cosine = sincos_turns(np.array([turns]))
    angle = 2 * math.pi * math.remainder(turns, 1)
    assert abs(sine[0] - math.sin(angle)) < 1e-14
    assert abs(cosine[0] - math.cos(angle)) < 1e-14


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
def test_permutation_contains_every_number_once(size):
    assert sorted(permutation(1, Purpose.ORDER, 4, size)) == list(range(size))


def test_permutations_differ_between_substreams_and_indices():
    rows = permutations(1, Purpose.ORDER, [0, 1], 100)
    other = permutation(1, Purpose.ORDER, 0, 100, substream=1)
    assert (rows[0] != rows[1]).any()
    assert (rows[0] != other).any()
    assert (rows[1] == permutation(1, Purpose.ORDER, 1, 100)).all()


def test_every_number_is_equally_likely_to_come_first():
    first = permutations(2, Purpose.SPLIT, np.arange(20_000), 5)[:, 0]
    assert (np.abs(np.bincount(first) / 20_000 - 0.2) < 0.012).all()


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_rejected(seed):
    with pytest.raises(ValueError, match=r"seed must lie in 0 \.\. 2\*\*64 - 1"):
        check_seed(seed)


@pytest.mark.parametrize("seed", [1.5, "1", None, True])
def test_a_seed_that_is_not_an_integer_is_rejected(seed):
    with pytest.raises(TypeError, match="whole number"):
        check_seed(seed)


def test_an_empty_batch_gives_an_empty_array():
    assert uniform(0, Purpose.MEMORY, 3, np.arange(0)).shape == (0, 1)
